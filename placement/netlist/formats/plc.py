"""Reads and writes placement files in Circuit Training's format (`*.plc`).

Comment lines `# Key : value` contain the canvas, possibly several keys to a line; every other line places a node:
`node_index x y orientation fixed`, with the centre in µm and `-` for no orientation.
"""

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
from placement.netlist.files import SourceFile, decoded, finite, read_bytes, write_whole

NO_ORIENTATION = "-"

# Field of Canvas → key as written; "hor" and "ver" are on the line of the routes that they belong to.
_KEYS = {
    "columns": "Columns",
    "rows": "Rows",
    "width": "Width",
    "height": "Height",
    "smoothing": "Smoothing factor",
    "overlap_threshold": "Overlap threshold",
    "routes_horizontal": "Routes per micron, hor",
    "routes_vertical": "Routes per micron, ver",
    "macro_routes_horizontal": "Routes used by macros, hor",
    "macro_routes_vertical": "Routes used by macros, ver",
}
_FIELDS = {key.lower(): field for field, key in _KEYS.items()}
_OPTIONAL = "overlap_threshold"
_WHOLE = ("columns", "rows")
_ENTRY = re.compile(
    rf"(?:(?P<key>{'|'.join(key for key in _KEYS.values() if ',' not in key)})\s*:\s*(?P<value>\S+)"
    r"|(?P<routes>routes per micron|routes used by macros)"
    r"\s*[,:]\s*hor\s*:\s*(?P<hor>\S+?)[\s,;]+ver\s*:\s*(?P<ver>\S+))[\s,;]*",
    re.IGNORECASE,
)


@dataclasses.dataclass
class _CanvasComments:
    """The part of the canvas that has been read, as field → (value, line)."""

    path: object
    fields: dict[str, tuple[float, int]] = dataclasses.field(default_factory=dict)

    def read(self, comment: str, line: int) -> None:
        """Reads the keys of one comment; a comment that does not consist of keys and values is free text."""
        comment, at = comment.strip().lstrip("#").strip(), 0
        entries: list[tuple[str, str]] = []
        while at < len(comment):
            found = _ENTRY.match(comment, at)
            if found is None:
                return
            keys = [found["key"]] if found["key"] else [f"{found['routes']}, {axis}" for axis in ("hor", "ver")]
            entries += zip(keys, filter(None, found.group("value", "hor", "ver")), strict=True)
            at = found.end()
        for key, text in entries:
            self.enter(_FIELDS[key.lower()], text.rstrip(",;"), line)

    def enter(self, field: str, text: str, line: int) -> None:
        value = finite(text)
        if value is None or (field in _WHOLE and value != int(value)):
            kind = "a finite number" if value is None else "a whole number"
            raise DesignError.at(self.path, line, f"canvas {field} is {text!r}; must be {kind}")
        known = self.fields.setdefault(field, (value, line))
        if known[0] != value:
            raise DesignError.at(self.path, line, f"canvas {field} is {text} here but {known[0]} on line {known[1]}")

    def canvas(self, last_line: int, known: Canvas | None = None) -> Canvas:
        values: dict[str, Any] = {} if known is None else {field: getattr(known, field) for field in _KEYS}
        values |= {field: value for field, (value, _) in self.fields.items()}
        missing = [repr(key) for field, key in _KEYS.items() if field not in (*values, _OPTIONAL)]
        if missing:
            message = f"the comments do not give the canvas's {', '.join(missing)}"
            raise DesignError.at(self.path, last_line, message)
        values |= {field: math.floor(values[field]) for field in (*_WHOLE, "smoothing")}
        try:
            return Canvas(**values)
        except DesignError as error:
            named = next((line for field, (_, line) in self.fields.items() if f"canvas {field}:" in str(error)), 1)
            raise DesignError.at(self.path, named, str(error)) from None


def read_canvas(path: str | os.PathLike[str]) -> tuple[Canvas, SourceFile]:
    """Reads the canvas in a `.plc` file without a netlist; also returns the file's name and checksum.

    Raises:
        DesignError: like `read_placement`.
    """
    header, _, last_line, source = _split(path)
    return header.canvas(last_line), source


def _split(path: str | os.PathLike[str]) -> tuple[_CanvasComments, list[tuple[int, str]], int, SourceFile]:
    """The comments of a file, its other lines with their numbers, its last line's number, and its checksum."""
    data, source = read_bytes(path)
    header, rows = _CanvasComments(path), list[tuple[int, str]]()
    lines = decoded(data, path).split("\n")
    for line, text in enumerate(map(str.strip, lines), start=1):
        if text.startswith("#"):
            header.read(text, line)
        elif text:
            rows.append((line, text))
    return header, rows, max(1, len(lines) - (not lines[-1])), source


def read_placement(
    path: str | os.PathLike[str], netlist: Netlist, *, located: Placement | None = None, canvas: Canvas | None = None
) -> tuple[Canvas, Placement]:
    """Reads the canvas and the placement in a `.plc` file.

    Args:
        path: the file.
        netlist: the netlist whose nodes the file's indices refer to.
        located: the positions of ports and standard cells that the file does not list, and the orientations of macros
            with `-`; by default, such cells are not placed and such macros have orientation N.
        canvas: the values of canvas keys that the file does not contain.

    Example:
        >>> design = placement.load("toy6")
        >>> placement.write_placement("mine.plc", design, design.initial)
        >>> canvas, mine = placement.read_placement("mine.plc", design.netlist)
        >>> mine == design.initial
        True

    Raises:
        DesignError: with file and line; a macro or an unlocated port without a line, unknown or repeated indices,
            values that are not finite numbers, unknown orientations, or missing or invalid canvas keys.
    """
    return read_placement_lines(path, netlist, located=located, canvas=canvas)[:2]


def read_placement_lines(
    path: str | os.PathLike[str], netlist: Netlist, *, located: Placement | None = None, canvas: Canvas | None = None
) -> tuple[Canvas, Placement, dict[str, int]]:
    """Does the same as `read_placement`, and also returns the line of each canvas field in the file."""
    header, lines, last_line, _ = _split(path)
    rows = _Rows(path, netlist, located)
    for line, text in lines:
        rows.read(text, line)
    line_of = {field: line for field, (_, line) in header.fields.items()}
    return header.canvas(last_line, canvas), rows.placement(last_line), line_of


class _Rows:
    """The part of the placement that has been read."""

    def __init__(self, path: object, netlist: Netlist, located: Placement | None) -> None:
        self.path = path
        self.netlist = netlist
        self.node_of = {int(index): node for node, index in enumerate(netlist.file_index)}
        self.is_port = (netlist.kind == NodeKind.PORT).tolist()
        self.x, self.y, self.orientation, self.placed, self.fixed = np.zeros((5, netlist.num_nodes))
        if located:
            self.x, self.y, self.orientation = located.x.copy(), located.y.copy(), located.orientation.copy()
            # Only ports and cells may be located by the netlist; macros need a line here.
            self.placed = located.placed & (netlist.kind >= NodeKind.PORT)
            self.fixed = self.placed & (netlist.kind == NodeKind.PORT)
        self.line_of: dict[int, int] = {}

    def read(self, text: str, line: int) -> None:
        """Reads one line `node_index x y orientation fixed`."""
        fields = text.partition("#")[0].split()
        if len(fields) != 5:
            message = f"expected 'node_index x y orientation fixed', found {len(fields)} fields: {text[:60]!r}"
            raise DesignError.at(self.path, line, message)

        def wrong(what: str, field: str, right: str) -> DesignError:
            return DesignError.at(self.path, line, f"{what} of node {index} is {field!r}; must be {right}")

        index, x, y, orientation, fixed = fields
        node = self.node(index, line)
        for name, field, values in (("x", x, self.x), ("y", y, self.y)):
            value = finite(field)
            if value is None or abs(value) > LARGEST:
                raise wrong(name, field, f"a finite number up to ±{LARGEST:g} µm")
            values[node] = value
        if orientation in Orientation.__members__:
            self.orientation[node] = Orientation[orientation]
        elif orientation != NO_ORIENTATION:
            raise wrong("orientation", orientation, f"one of {', '.join([*Orientation.__members__, NO_ORIENTATION])}")
        if fixed not in ("0", "1"):
            raise wrong("fixed", fixed, "0 or 1")
        self.placed[node] = True
        self.fixed[node] = fixed == "1" or self.is_port[node]

    def node(self, text: str, line: int) -> int:
        """The node of a node_index."""
        index = int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else -1
        node = self.node_of.get(index)
        if node is None:
            message = f"node index {text!r} is not a port, macro or standard cell of the netlist"
            raise DesignError.at(self.path, line, message)
        if node in self.line_of:
            name, before = self.netlist.names[node], self.line_of[node]
            raise DesignError.at(self.path, line, f"node index {index} ({name!r}) was already placed on line {before}")
        self.line_of[node] = line
        return node

    def placement(self, last_line: int) -> Placement:
        missing = np.flatnonzero((self.placed == 0) & (self.netlist.kind != NodeKind.CELL))
        if len(missing):
            index, name = self.netlist.file_index[missing[0]], self.netlist.names[missing[0]]
            message = f"the file ends without lines for {len(missing)} nodes, the first being index {index} ({name!r})"
            raise DesignError.at(self.path, last_line, message)
        return Placement(x=self.x, y=self.y, orientation=self.orientation, placed=self.placed, fixed=self.fixed)


def write_placement(
    path: str | os.PathLike[str], design: Design, placement: Placement, *, comments: Iterable[str] = ()
) -> None:
    """Writes a `.plc` file that reads back bit for bit: positions, orientations, fixed flags and canvas.

    Args:
        path: the file, written whole or not at all.
        design: the netlist, the canvas and the name.
        placement: positions of all its ports and macros; standard cells may be unplaced.
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
    rows = [f"# {line}".rstrip() for line in lines]
    columns = (netlist.file_index, netlist.kind, placement.x, placement.y, placement.orientation, placement.fixed)
    for index, kind, x, y, orientation, fixed in zip(
        *(column[placement.placed].tolist() for column in columns), strict=True
    ):
        turned = NO_ORIENTATION if kind >= NodeKind.PORT else Orientation(orientation).name
        rows.append(f"{index} {x!r} {y!r} {turned} {fixed:d}")
    return "".join(f"{line}\n" for line in rows)


def _checked_comments(name: str, comments: Iterable[str]) -> list[str]:
    """The comments, one per line; raises DesignError for one that would be read as a canvas key."""
    result = [line.strip() for comment in comments for line in comment.splitlines()]
    for line in result:
        header = _CanvasComments(name)
        header.read(line, 1)
        if header.fields:
            raise DesignError(f"{name}: the comment {line!r} would be read as a canvas key")
    return result
