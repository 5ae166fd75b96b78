"""A design's folder as commands write it: refused where it would replace something, and put in its place whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from placement.netlist.constraints_file import CONSTRAINTS_NAME
from placement.netlist.errors import DesignError
from placement.netlist.files import check_output_folder, umask
from placement.netlist.flat_file import DEF_NAME, FLAT_NAME, POSITIONS_NAME
from placement.netlist.load import INITIAL_NAME, NETLIST_NAMES

CLUSTERS_NAME = "clusters.npz"
OPTIMUM_NAME = "optimum.plc"
PICTURE_NAME = "floorplan.png"
SOURCE_NAME = "source.json"
FILES = (
    *NETLIST_NAMES, INITIAL_NAME, OPTIMUM_NAME, CONSTRAINTS_NAME, FLAT_NAME, CLUSTERS_NAME, SOURCE_NAME, DEF_NAME,
    POSITIONS_NAME, PICTURE_NAME,
)  # fmt: skip
"""All that the folder of a design may hold of it."""


def check_design_folder(folder: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raises DesignError where a design must not or cannot be written to the folder `out`.

    Args:
        folder: of the design; it need not exist yet.
        force: it may hold a design already.
    """
    check_output_folder("out", folder)
    path = Path(folder)
    if not force and path.is_dir() and any(path.iterdir()):
        raise DesignError(
            f"out={folder}: the folder is there already and not empty; --force replaces the design in it, be it the "
            "same or another, or give another out"
        )


@contextlib.contextmanager
def design_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to write a design's files in, which then gets the name `folder`: whole or not at all.

    An existing folder keeps its other files; those of the design in it are replaced or removed.

    Args:
        folder: made if it does not exist, with the folders above it.

    Raises:
        OSError: the folder cannot be made or written.
    """
    path = Path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield made
        _move_into(made, path)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _move_into(made: Path, path: Path) -> None:
    """Gives a finished folder its name; where there is one of that name, its files go into it."""
    if not path.exists():
        made.chmod(0o777 & ~umask())
        made.rename(path)
        return
    new = {file.name for file in made.iterdir()}
    # The netlist goes first and comes last: without it the folder is no design.
    for name in NETLIST_NAMES:
        (path / name).unlink(missing_ok=True)
    for name in sorted(new, key=lambda name: name in NETLIST_NAMES):
        os.replace(made / name, path / name)
    for name in set(FILES) - new:
        (path / name).unlink(missing_ok=True)
