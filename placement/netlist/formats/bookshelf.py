"""Reader of Bookshelf designs (`.aux`, `.nodes`, `.nets`, `.pl`, `.scl`, `.wts`), each file plain or gzipped.

Axis legend: N nodes, E nets, L net pins, W rows. Lengths are in the files' own unit.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np

from placement.netlist.bytes_file import SourceFile
from placement.netlist.formats.bookshelf_files import (
    BookshelfLines,
    InputFile,
    NetsFile,
    NodesFile,
    PositionsFile,
    RowsFile,
)


@dataclasses.dataclass(frozen=True, eq=False)
class Bookshelf:
    """A Bookshelf design as columns.

    Attributes:
        path: the `.aux` file, for messages; sources: the files read.
        positions_data: the `.pl` file's unpacked bytes; None where there is none.
        names: N node names; width, height: float64 [N]; terminal: bool [N].
        x, y: float64 [N], lower left corners; orientation: int8 [N]; fixed: bool [N]; located: bool [N], whether
            the `.pl` file names the node.
        net_start: int64 [E+1]; net_weight: float64 [E].
        pin_node: int64 [L]; pin_dx, pin_dy: float64 [L], from the node's centre; pin_drives: bool [L].
        row_x, row_y, row_width, row_height, site_width: float64 [W]; row_orientation: int8 [W].
        notices: what is missing or was passed over.
    """

    path: str
    sources: tuple[SourceFile, ...]
    positions_data: bytes | None
    names: list[str]
    width: np.ndarray
    height: np.ndarray
    terminal: np.ndarray
    x: np.ndarray
    y: np.ndarray
    orientation: np.ndarray
    fixed: np.ndarray
    located: np.ndarray
    net_start: np.ndarray
    net_weight: np.ndarray
    pin_node: np.ndarray
    pin_dx: np.ndarray
    pin_dy: np.ndarray
    pin_drives: np.ndarray
    row_x: np.ndarray
    row_y: np.ndarray
    row_width: np.ndarray
    row_height: np.ndarray
    site_width: np.ndarray
    row_orientation: np.ndarray
    notices: tuple[str, ...]


def read_bookshelf(path: str | os.PathLike[str]) -> Bookshelf:
    """The design that an `.aux` file names.

    Raises:
        DesignError: with file and line; `.nodes` or `.nets` are missing, a file holds another number of entries than
            it says, a name is unknown or there twice, a number is none, a row has no width or height.
    """
    aux = InputFile.read(Path(path))
    files = {suffix: InputFile.read(file) for suffix, file in _named(aux).items()}
    notices: list[str] = []
    nodes = NodesFile(files["nodes"])
    nets = NetsFile(files["nets"], nodes.index)
    notices += nets.read_weights(files.get("wts"))
    positions = PositionsFile(files.get("pl"), nodes.index)
    rows = RowsFile(files.get("scl"))
    for suffix, what in (("pl", "positions"), ("scl", "rows")):
        if suffix not in files:
            notices.append(f"{aux.path}: there is no .{suffix} file, so no {what}")
    return Bookshelf(
        path=str(aux.path),
        sources=tuple(file.source for file in (aux, *files.values())),
        positions_data=files["pl"].data if "pl" in files else None,
        names=list(nodes.index),
        width=np.array(nodes.width),
        height=np.array(nodes.height),
        terminal=np.array(nodes.terminal, dtype=np.bool_),
        net_start=np.array(nets.start, dtype=np.int64),
        net_weight=np.array(nets.weight),
        pin_node=np.array(nets.node, dtype=np.int64),
        pin_dx=np.array(nets.dx),
        pin_dy=np.array(nets.dy),
        pin_drives=np.array(nets.drives, dtype=np.bool_),
        notices=tuple(notices),
        **positions.columns,
        **rows.columns(),
    )


def _named(aux: InputFile) -> dict[str, Path]:
    """Suffix → file, of those that an `.aux` file names; a file that is there gzipped only is taken so."""
    lines = BookshelfLines(aux)
    found: dict[str, Path] = {}
    for words in lines:
        for word in words[words.index(":") + 1 if ":" in words else 0 :]:
            name = Path(word)
            if name.is_absolute() or ".." in name.parts:
                raise lines.error(f"{word!r} must be a file beside the .aux file")
            file = aux.path.parent / name
            zipped = file.with_name(file.name + ".gz")
            suffix = Path(name.name.removesuffix(".gz")).suffix.removeprefix(".")
            if file.is_file() or zipped.is_file():
                found[suffix] = file if file.is_file() else zipped
            elif suffix in ("nodes", "nets"):
                raise lines.error(f"{word!r} does not exist beside the .aux file")
    missing = [suffix for suffix in ("nodes", "nets") if suffix not in found]
    if missing:
        raise lines.error(f"the file names no {' and no '.join('.' + suffix for suffix in missing)} file")
    return found
