"""Finding and loading designs, by path or by name.

A design is a folder with `netlist.pb.txt` (or `.pb.txt.gz`) and `initial.plc`, and with `constraints.json` where its
macros must keep to any. Names are looked up among the
project's own designs (`netlists/`), then in the folders of the environment variable `PLACEMENT_PATH`.
"""

from __future__ import annotations

import os
from pathlib import Path

from placement.netlist.constraints import NO_CONSTRAINTS
from placement.netlist.constraints_file import CONSTRAINTS_NAME, read_constraints
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement_lines
from placement.netlist.formats.protobuf import read_located_netlist

NETLIST_NAMES = ("netlist.pb.txt", "netlist.pb.txt.gz")
INITIAL_NAME = "initial.plc"
PLACEMENT_NAMES = ("placement.plc", "best.plc", INITIAL_NAME)
"""Of the placements that a search, a training run and a design have in their folders."""
LISTED_DESIGNS = 5
"""At most, in a message."""
SEARCH_VARIABLE = "PLACEMENT_PATH"


def data_folder(name: str) -> Path:
    """`netlists` or `configs`: inside the package where it is installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_data" / name
    return installed if installed.is_dir() else package.parent / name


def load(netlist: str | os.PathLike[str], initial: str | os.PathLike[str] | None = None) -> Design:
    """The design in a netlist file and a placement file.

    Args:
        netlist: a name, a folder, or a path to a `.pb.txt` or `.pb.txt.gz` file.
        initial: the `.plc` file that holds the canvas and the initial placement; default: `initial.plc` in the
            netlist's folder.

    Example:
        >>> placement.load("clustered40").netlist.num_nodes
        410

    Raises:
        DesignError: it cannot be found or read; the message names the file, the line and what is wrong.
    """
    path = find(netlist)
    plc = Path(initial) if initial is not None else path.parent / INITIAL_NAME
    if initial is not None:
        check_placement_file("initial", plc)
    elif not plc.is_file():
        raise DesignError(
            f"{path} has no {INITIAL_NAME} beside it, which would hold the canvas: put a placement file there under "
            "that name, or, where the command has that setting, give initial=PATH.plc"
        )
    netlist_read, located = read_located_netlist(path)
    canvas, placement, lines = read_placement_lines(plc, netlist_read, located=located)
    constraints_path = path.parent / CONSTRAINTS_NAME
    constraints = read_constraints(constraints_path, netlist_read) if constraints_path.is_file() else NO_CONSTRAINTS
    try:
        return Design(
            name=design_name(path), netlist=netlist_read, canvas=canvas, initial=placement, constraints=constraints
        )
    except DesignError as error:
        raise DesignError.at(plc, lines["width"], str(error)) from None


def design_name(path: Path) -> str:
    """What the design in a netlist file is called: its folder's name, or the file's if that is not the usual one."""
    if path.name in NETLIST_NAMES:
        return path.resolve().parent.name
    return path.name.removesuffix(".gz").removesuffix(".txt").removesuffix(".pb")


def find(netlist: str | os.PathLike[str]) -> Path:
    """The netlist file that a name or a path means; raises DesignError saying where it was looked for."""
    path = Path(os.path.expanduser(netlist))
    if path.is_file():
        return path
    is_name = len(path.parts) == 1 and path.name not in ("..", ".")
    folders = [folder / path for folder in search_folders()] if is_name else []
    for folder in [*folders, path]:
        for name in NETLIST_NAMES:
            if (folder / name).is_file():
                return folder / name
    inside = _designs_in(path)
    if inside:
        more = ", …" if len(inside) > LISTED_DESIGNS else ""
        listed = ", ".join(str(path / name) for name in inside[:LISTED_DESIGNS])
        raise DesignError(f"{path}: is a folder of designs, not a design; there are {listed}{more}")
    if not is_name:
        what = (
            f"the folder holds no {' or '.join(NETLIST_NAMES)}" if path.is_dir() else "there is no such file or folder"
        )
        raise DesignError(f"{path}: {what}")
    raise DesignError(
        f"no design {str(netlist)!r}: it is neither a netlist file nor a folder with one, and not in "
        f"{', '.join(str(folder) for folder in search_folders())}; known there: {', '.join(available()) or 'none'}; "
        f"add folders of designs with {SEARCH_VARIABLE}"
    )


def search_folders() -> list[Path]:
    """Where names are looked up, in order."""
    listed = os.environ.get(SEARCH_VARIABLE, "").split(os.pathsep)
    return [data_folder("netlists"), *(Path(folder).expanduser() for folder in listed if folder)]


def available() -> list[str]:
    """The names that `find` knows."""
    names: set[str] = set()
    for folder in search_folders():
        names.update(_designs_in(folder))
    return sorted(names)


def _designs_in(folder: Path) -> list[str]:
    """The names of the designs in a folder, sorted."""
    return sorted({found.parent.name for name in NETLIST_NAMES for found in folder.glob(f"*/{name}")})


def check_placement_file(key: str, path: str | os.PathLike[str]) -> None:
    """Raises DesignError unless there is a file, naming a placement where `path` is a folder with one.

    Args:
        key: the setting that gives the path.
        path: of a placement file.
    """
    folder = Path(path)
    if folder.is_file():
        return
    if not folder.is_dir():
        raise DesignError(f"{key}={path}: there is no such file")
    found = next((folder / name for name in PLACEMENT_NAMES if (folder / name).is_file()), None)
    hint = f"did you mean {key}={found}?" if found is not None else "give a placement file"
    raise DesignError(f"{key}={path}: is a folder; {hint}")
