"""Finds designs on disk by path or by name, loads them, and writes their folders as a whole.

A design is a folder with `netlist.pb.txt` (or `.pb.txt.gz`) and `initial.plc`, with `constraints.json` if its macros
have constraints, and with the files of `FILES` if it was imported. Names are looked up among the project's own designs
(`netlists/`), then in the folders of the environment variable `PLACEMENT_PATH`, then among the public designs that
`macro-placement fetch` downloaded.
"""

import contextlib
import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from placement.netlist.constraints import NO_CONSTRAINTS
from placement.netlist.constraints_file import CONSTRAINTS_NAME, read_constraints, write_constraints
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.files import check_output_folder, read_npz, stem, umask
from placement.netlist.flat_design import FLAT_NAME, FlatDesign
from placement.netlist.formats.plc import read_placement_lines, write_placement
from placement.netlist.formats.protobuf import read_netlist_file, write_netlist
from placement.netlist.timing_netlist import TIMING_NAME

NETLIST_NAMES = ("netlist.pb.txt", "netlist.pb.txt.gz")
_CHIP_FILES = (".def", ".lef", ".v", ".sv", ".aux", ".nodes", ".lib")
INITIAL_NAME = "initial.plc"
PLACEMENT_NAMES = ("placement.plc", "best.plc", INITIAL_NAME)
"""The placement files in the folders of searches, training runs and designs."""
CLUSTERS_NAME = "clusters.npz"
OPTIMUM_NAME = "optimum.plc"
PICTURE_NAME = "floorplan.png"
SOURCE_NAME = "source.json"
DEF_NAME = "source.def.gz"
POSITIONS_NAME = "source.pl.gz"  # the user's own DEF file, or Bookshelf's positions, which an export changes
FILES = (  # all files that the folder of a design may contain
    *NETLIST_NAMES, INITIAL_NAME, OPTIMUM_NAME, CONSTRAINTS_NAME, FLAT_NAME, CLUSTERS_NAME, SOURCE_NAME, DEF_NAME,
    POSITIONS_NAME, PICTURE_NAME, TIMING_NAME,
)  # fmt: skip
LISTED_DESIGNS = 5  # maximum number of designs that a message names
SEARCH_VARIABLE = "PLACEMENT_PATH"


def data_folder(name: str) -> Path:
    """The folder `netlists` or `configs`, inside the installed package or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_data" / name
    return installed if installed.is_dir() else package.parent / name


def load(netlist: str | os.PathLike[str], initial: str | os.PathLike[str] | None = None) -> Design:
    """Loads the design in a netlist file and a placement file.

    Args:
        netlist: a name, a folder, or a path to a `.pb.txt` or `.pb.txt.gz` file.
        initial: the `.plc` file with the canvas and the initial placement; default: `initial.plc` in the netlist's
            folder.

    Example:
        >>> placement.load("clustered40").netlist.num_nodes
        410

    Raises:
        DesignError: it cannot be found or read; the message names the file, the line and the fault.
    """
    path = find(netlist)
    plc = Path(initial) if initial is not None else path.parent / INITIAL_NAME
    if initial is not None:
        check_placement_file("initial", plc)
    elif not plc.is_file():
        if path.name.lower().removesuffix(".gz").endswith(_CHIP_FILES):
            raise DesignError(f"{path}: is a chip's file, not a design: convert it with `macro-placement import`")
        raise DesignError(
            f"{path} has no {INITIAL_NAME} in its folder, which defines the canvas: add this placement file, or "
            "give initial=PATH.plc if the command has that setting"
        )
    _, netlist_read, located, *_ = read_netlist_file(path)
    canvas, placement, lines = read_placement_lines(plc, netlist_read, located=located)
    constraints_path = path.parent / CONSTRAINTS_NAME
    constraints = read_constraints(constraints_path, netlist_read) if constraints_path.is_file() else NO_CONSTRAINTS
    try:
        name = path.resolve().parent.name if path.name in NETLIST_NAMES else stem(path)
        return Design(name, netlist_read, canvas, placement, constraints=constraints)
    except DesignError as error:
        raise DesignError.at(plc, lines["width"], str(error)) from None


def find(netlist: str | os.PathLike[str]) -> Path:
    """The netlist file for a name or a path; raises DesignError with the searched folders."""
    path = Path(os.path.expanduser(netlist))
    if path.is_file():
        return path
    is_name = len(path.parts) == 1 and path.name not in ("..", ".")
    folders = [folder / path for folder in _search_folders()] if is_name else []
    for folder in [*folders, path]:
        for name in NETLIST_NAMES:
            if (folder / name).is_file():
                return folder / name
    inside = [str(path / name) for name in _designs_in(path)]
    if inside:
        listed = ", ".join([*inside[:LISTED_DESIGNS], *["…"][: len(inside) > LISTED_DESIGNS]])
        raise DesignError(f"{path}: is a folder of designs, not a design; it contains {listed}")
    if path.is_dir() and not is_name:
        raise DesignError(f"{path}: the folder contains no {' or '.join(NETLIST_NAMES)}")
    if not is_name:
        raise DesignError(f"{path}: no such file or folder")
    raise DesignError(
        f"no design {str(netlist)!r}: it is neither a netlist file nor a folder with one, and not in "
        f"{', '.join(str(folder) for folder in _search_folders())}; known there: {', '.join(available()) or 'none'}; "
        f"add folders of designs with {SEARCH_VARIABLE}; `macro-placement fetch` lists and downloads public designs"
    )


def fetched_folder() -> Path:
    """The folder of fetched designs, `macro-placement/designs` in the user's data folder (XDG)."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "macro-placement" / "designs"


def _search_folders() -> list[Path]:
    """The folders where names are looked up, in order."""
    listed = os.environ.get(SEARCH_VARIABLE, "").split(os.pathsep)
    return [data_folder("netlists"), *(Path(folder).expanduser() for folder in listed if folder), fetched_folder()]


def available() -> list[str]:
    """The names that `find` knows, sorted."""
    return sorted({name for folder in _search_folders() for name in _designs_in(folder)})


def _designs_in(folder: Path) -> list[str]:
    """The names of the designs in a folder, sorted."""
    return sorted({found.parent.name for name in NETLIST_NAMES for found in folder.glob(f"*/{name}")})


def check_placement_file(key: str, path: str | os.PathLike[str]) -> None:
    """Raises DesignError unless the setting `key` names a file; for a folder, it suggests the placement in it."""
    folder = Path(path)
    if folder.is_file():
        return
    if not folder.is_dir():
        raise DesignError(f"{key}={path}: no such file")
    found = next((folder / name for name in PLACEMENT_NAMES if (folder / name).is_file()), None)
    hint = f"did you mean {key}={found}?" if found is not None else "give a placement file"
    raise DesignError(f"{key}={path}: is a folder; {hint}")


def read_clusters(folder: str | os.PathLike[str]) -> np.ndarray:
    """The soft macro `Grp_<n>` of each cell, int32 [nodes of the flat netlist]; -1 for nodes in no cluster.

    Raises DesignError if the file cannot be read or is damaged.
    """
    path = Path(folder) / CLUSTERS_NAME
    arrays = read_npz(path, "clusters")
    if "cluster" not in arrays:
        raise DesignError(f"{path}: not a valid clusters file: it has no array 'cluster'")
    return arrays["cluster"].astype(np.int32)


def clusters_or_none(folder: Path, flat: FlatDesign) -> np.ndarray:
    """Calls `read_clusters`; if the folder has no such file, all nodes of the flat design are in no cluster."""
    if (folder / CLUSTERS_NAME).is_file():
        return read_clusters(folder)
    return np.full(flat.netlist.num_nodes, -1, dtype=np.int32)


def check_design_folder(folder: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raises DesignError if a design cannot be written to the folder `out`, or exists there without `force`."""
    check_output_folder("out", folder)
    path = Path(folder)
    if not force and path.is_dir() and any(path.iterdir()):
        raise DesignError(
            f"out={folder}: the folder exists and is not empty; --force replaces the design in it, or give another out"
        )


def save(folder: str | os.PathLike[str], design: Design) -> None:
    """Writes a design as a folder that `load` reads: netlist, initial placement, constraints.

    It replaces an existing design (`design_folder`).

    Raises:
        DesignError: the netlist has a form that the format cannot express.
        OSError: the folder cannot be made or written.
    """
    initial = design.initial
    ports = dataclasses.replace(initial, placed=initial.placed & initial.fixed)  # The macros are in `initial.plc`.
    with design_folder(folder) as path:
        write_netlist(path / NETLIST_NAMES[1], design.netlist, ports)
        write_placement(path / INITIAL_NAME, design, initial)
        write_constraints(path / CONSTRAINTS_NAME, design.netlist, design.constraints)


@contextlib.contextmanager
def design_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to write a design's files in, which is then renamed to `folder`, entirely or not at all.

    An existing folder keeps its other files; those of the design in it are replaced or removed. Raises OSError if the
    folder cannot be made or written.
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
    """Renames a finished folder, or moves its files into the existing folder of that name."""
    if not path.exists():
        made.chmod(0o777 & ~umask())
        made.rename(path)
        return
    new = {file.name for file in made.iterdir()}
    # The netlist is removed first and added last; without it the folder is not a design.
    for name in NETLIST_NAMES:
        (path / name).unlink(missing_ok=True)
    for name in sorted(new, key=lambda name: name in NETLIST_NAMES):
        os.replace(made / name, path / name)
    for name in set(FILES) - new:
        (path / name).unlink(missing_ok=True)
