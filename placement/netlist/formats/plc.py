"""Reader and writer of placement files in Circuit Training's format (`*.plc`).

Comment lines `# Key : value` contain the canvas, possibly several keys to a line; every other line places a node:
`node_index x y orientation fixed`, with the centre in µm and `-` for no orientation.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from placement.netlist.design import LARGEST, Canvas, Design, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import SourceFile, decoded, read_bytes, read_text, write_whole

NO_ORIENTATION = "-"

# Key as written → field of Canvas; "hor" and "ver" are on the line of the routes that they belong to.
_SINGLE_KEYS = {
    "columns": "columns",
    "rows": "rows",
    "width": "width",
    "height": "height",
    "smoothing factor": "smoothing",
    "overlap threshold": "overlap_threshold",
}
_ROUTE_KEYS = {"routes per micron": "routes", "routes used by macros": "macro_routes"}
_REQUIRED = {
    "columns": "Columns",
    "rows": "Rows",
    "width": "Width",
    "height": "Height",
    "routes_horizontal": "Routes per micron, hor",
    "routes_vertical": "Routes per micron, ver",
    "macro_routes_horizontal": "Routes used by macros, hor",
    "macro_routes_vertical": "Routes used by macros, ver",
    "smoothing": "Smoothing factor",
}
_WHOLE = ("columns", "rows")

_SINGLE = r"(?P<key>" + "|".join(_SINGLE_KEYS) + r")\s*:\s*(?P<value>\S+)"
_SINGLES = re.compile(rf"(?:{_SINGLE})[\s,;]*", re.IGNORECASE)
_ROUTES = re.compile(
    r"(?P<key>" + "|".join(_ROUTE_KEYS) + r")\s*[,:]\s*hor\s*:\s*(?P<hor>\S+?)[\s,;]+ver\s*:\s*(?P<ver>\S+)[\s,;]*",
    re.IGNORECASE,
)


@dataclasses.dataclass
class _CanvasComments:
    """The canvas as far as it has been read: field → (value, line)."""

    path: object
    fields: dict[str, tuple[float, int]] = dataclasses.field(default_factory=dict)

    def read(self, comment: str, line: int) -> None:
        """Reads the keys of one comment; a comment that does not consist of keys and values is free text."""
        entries, at = [], 0
        while at < len(comment):
            found = _SINGLES.match(comment, at)
            routes = None if found else _ROUTES.match(comment, at)
            if found:
                entries.append((_SINGLE_KEYS[found["key"].lower()], found["value"]))
            elif routes:
                prefix = _ROUTE_KEYS[routes["key"].lower()]
                entries += [(f"{prefix}_horizontal", routes["hor"]), (f"{prefix}_vertical", routes["ver"])]
            else:
                return
            at = (found or routes).end()  # type: ignore[union-attr]
        for field, text in entries:
            self.enter(field, text.rstrip(",;"), line)

    def enter(self, field: str, text: str, line: int) -> None:
        value = _number(text)
        if value is None or (field in _WHOLE and value != int(value)):
            kind = "a finite number" if value is None else "a whole number"
            raise DesignError.at(self.path, line, f"canvas {field} is {text!r}; must be {kind}")
        known = self.fields.setdefault(field, (value, line))
        if known[0] != value:
            raise DesignError.at(self.path, line, f"canvas {field} is {text} here but {known[0]} on line {known[1]}")

    def canvas(self, last_line: int) -> Canvas:
        missing = [name for field, name in _REQUIRED.items() if field not in self.fields]
        if missing:
            message = f"the comments do not give the canvas's {', '.join(repr(name) for name in missing)}"
            raise DesignError.at(self.path, last_line, message)
        values: dict[str, Any] = {field: value for field, (value, _) in self.fields.items()}
        values |= {field: math.floor(values[field]) for field in (*_WHOLE, "smoothing")}
        try:
            return Canvas(**values)
        except DesignError as error:
            named = next((line for field, (_, line) in self.fields.items() if f"canvas {field}:" in str(error)), 1)
            raise DesignError.at(self.path, named, str(error)) from None


def _number(text: str) -> float | None:
    """A finite number written in ASCII, or None."""
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read_canvas(path: str | os.PathLike[str]) -> tuple[Canvas, SourceFile]:
    """The canvas in a `.plc` file, read without a netlist, and the file's name and checksum.

    Raises:
        DesignError: as `read_placement`.
    """
    header = _CanvasComments(path)
    data, source = read_bytes(path)
    lines = decoded(data, path).split("\n")
    for line, text in enumerate(lines, start=1):
        if text.lstrip().startswith("#"):
            header.read(text.strip().lstrip("#").strip(), line)
    return header.canvas(len(lines)), source


def read_placement(
    path: str | os.PathLike[str], netlist: Netlist, *, located: Placement | None = None
) -> tuple[Canvas, Placement]:
    """The canvas and the placement in a `.plc` file.

    Args:
        path: the file.
        netlist: whose nodes the file's indices refer to.
        located: gives the positions of standard cells that the file does not list, and the orientations of macros
            with `-`; default: such cells are not placed, such macros have orientation N.

    Example:
        >>> design = placement.load("toy6")
        >>> placement.write_placement("mine.plc", design, design.initial)
        >>> canvas, mine = placement.read_placement("mine.plc", design.netlist)
        >>> mine == design.initial
        True

    Raises:
        DesignError: with file and line; a port or a macro without a line, unknown or repeated indices, values that
            are not finite numbers, unknown orientations, missing or invalid canvas keys.
    """
    canvas, placement, _ = read_placement_lines(path, netlist, located=located)
    return canvas, placement


def read_placement_lines(
    path: str | os.PathLike[str], netlist: Netlist, *, located: Placement | None = None
) -> tuple[Canvas, Placement, dict[str, int]]:
    """As `read_placement`, and the line of each canvas field that the file gives."""
    header = _CanvasComments(path)
    rows = _Rows(path, netlist, located)
    lines = read_text(path).split("\n")
    for line, text in enumerate(lines, start=1):
        text = text.strip()
        if text.startswith("#"):
            header.read(text.lstrip("#").strip(), line)
        elif text:
            rows.read(text, line)
    last_line = max(1, len(lines) - (not lines[-1]))
    return (
        header.canvas(last_line),
        rows.placement(last_line),
        {field: line for field, (_, line) in header.fields.items()},
    )


class _Rows:
    """The placement as far as it has been read."""

    def __init__(self, path: object, netlist: Netlist, located: Placement | None) -> None:
        self.path = path
        self.netlist = netlist
        self.node_of = {int(index): node for node, index in enumerate(netlist.file_index)}
        self.is_port = (netlist.kind == NodeKind.PORT).tolist()
        count = netlist.num_nodes
        self.x = located.x.copy() if located else np.zeros(count)
        self.y = located.y.copy() if located else np.zeros(count)
        self.orientation = located.orientation.copy() if located else np.zeros(count, dtype=np.int8)
        # Only cells may be located by the netlist; everything else needs a line here.
        is_cell = netlist.kind == NodeKind.CELL
        self.placed = (located.placed & is_cell) if located else np.zeros(count, dtype=np.bool_)
        self.fixed = np.zeros(count, dtype=np.bool_)
        self.line_of: dict[int, int] = {}

    def read(self, text: str, line: int) -> None:
        """One line `node_index x y orientation fixed`."""
        fields = text.split()
        if len(fields) != 5:
            message = f"expected 'node_index x y orientation fixed', found {len(fields)} fields: {text[:60]!r}"
            raise DesignError.at(self.path, line, message)
        node = self.node(fields[0], line)
        for name, field, values in (("x", fields[1], self.x), ("y", fields[2], self.y)):
            value = _number(field)
            if value is None or abs(value) > LARGEST:
                message = f"{name} of node {fields[0]} is {field!r}; must be a finite number up to ±{LARGEST:g} µm"
                raise DesignError.at(self.path, line, message)
            values[node] = value
        if fields[3] != NO_ORIENTATION:
            if fields[3] not in Orientation.__members__:
                known = ", ".join([*Orientation.__members__, NO_ORIENTATION])
                message = f"orientation of node {fields[0]} is {fields[3]!r}; must be one of {known}"
                raise DesignError.at(self.path, line, message)
            self.orientation[node] = Orientation[fields[3]]
        if fields[4] not in ("0", "1"):
            raise DesignError.at(self.path, line, f"fixed of node {fields[0]} is {fields[4]!r}; must be 0 or 1")
        self.placed[node] = True
        self.fixed[node] = fields[4] == "1" or self.is_port[node]

    def node(self, text: str, line: int) -> int:
        """The node of a node_index."""
        index = int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else -1
        node = self.node_of.get(index)
        if node is None:
            message = f"node index {text!r} is no port, macro or standard cell of the netlist"
            raise DesignError.at(self.path, line, message)
        if node in self.line_of:
            name, before = self.netlist.names[node], self.line_of[node]
            raise DesignError.at(self.path, line, f"node index {index} ({name!r}) was placed on line {before} already")
        self.line_of[node] = line
        return node

    def placement(self, last_line: int) -> Placement:
        missing = np.flatnonzero(~self.placed & (self.netlist.kind != NodeKind.CELL))
        if len(missing):
            first = missing[0]
            raise DesignError.at(
                self.path,
                last_line,
                f"the file ends without lines for {len(missing)} nodes, the first being index "
                f"{self.netlist.file_index[first]} ({self.netlist.names[first]!r})",
            )
        return Placement(x=self.x, y=self.y, orientation=self.orientation, placed=self.placed, fixed=self.fixed)


def write_placement(
    path: str | os.PathLike[str], design: Design, placement: Placement, *, comments: Iterable[str] = ()
) -> None:
    """Writes a `.plc` file that reads back bit for bit: positions, orientations, fixed flags and canvas.

    Args:
        path: the file, written whole or not at all.
        design: gives the netlist, the canvas and the name.
        placement: of all its ports and macros; standard cells may be unplaced.
        comments: lines of free text for the top of the file.

    Example:
        >>> design = placement.load("toy6")
        >>> placement.write_placement("mine.plc", design, design.initial, comments=["as it came"])

    Raises:
        DesignError: a port or macro is not placed, or a comment would be read as a canvas key.
        OSError: the folder does not exist or cannot be written.
    """
    write_whole(path, placement_text(Path(path).name, design, placement, comments=comments))


def placement_text(name: str, design: Design, placement: Placement, *, comments: Iterable[str] = ()) -> str:
    """The text that `write_placement` writes; `name` is for messages."""
    netlist, canvas = design.netlist, design.canvas
    unplaced = np.flatnonzero(~placement.placed & (netlist.kind != NodeKind.CELL))
    if len(unplaced):
        raise DesignError(f"{name}: node {netlist.names[unplaced[0]]!r} is not placed ({len(unplaced)} in all)")
    lines = [
        "Placement file for Circuit Training",
        f"Columns : {canvas.columns}  Rows : {canvas.rows}",
        f"Width : {float(canvas.width)!r}  Height : {float(canvas.height)!r}",
        f"Block : {' '.join(design.name.split())}",
        f"Routes per micron, hor : {float(canvas.routes_horizontal)!r}  ver : {float(canvas.routes_vertical)!r}",
        f"Routes used by macros, hor : {float(canvas.macro_routes_horizontal)!r}  "
        f"ver : {float(canvas.macro_routes_vertical)!r}",
        f"Smoothing factor : {canvas.smoothing}",
        f"Overlap threshold : {float(canvas.overlap_threshold)!r}",
        *_checked_comments(name, comments),
        "",
        "node_index x y orientation fixed",
    ]
    rows = []
    columns = (netlist.file_index, netlist.kind, placement.x, placement.y, placement.orientation, placement.fixed)
    for index, kind, x, y, orientation, fixed in zip(*(column.tolist() for column in columns), strict=True):
        turned = NO_ORIENTATION if kind >= NodeKind.PORT else Orientation(orientation).name
        rows.append(f"{index} {x!r} {y!r} {turned} {fixed:d}")
    if not placement.placed.all():
        rows = [row for row, placed in zip(rows, placement.placed, strict=True) if placed]
    return "".join([*(f"# {line}".rstrip() + "\n" for line in lines), *(f"{row}\n" for row in rows)])


def _checked_comments(name: str, comments: Iterable[str]) -> list[str]:
    """The comments, one per line; raises DesignError for one that would be read as a canvas key."""
    result = [line.strip() for comment in comments for line in comment.splitlines()]
    for line in result:
        header = _CanvasComments(name)
        header.read(line.lstrip("#").strip(), 1)
        if header.fields:
            raise DesignError(f"{name}: the comment {line!r} would be read as a canvas key")
    return result
