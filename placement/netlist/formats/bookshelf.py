"""Reader of Bookshelf designs (`.aux`, `.nodes`, `.nets`, `.pl`, `.scl`, `.wts`), each file plain or gzipped.

Axis legend: N nodes, E nets, L net pins, W rows. Lengths are in the files' own unit.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from placement.netlist.design import Orientation
from placement.netlist.errors import DesignError
from placement.netlist.files import read_text
from placement.netlist.formats.bytes_file import SourceFile, read_bytes
from placement.netlist.formats.findings import SHOWN, refuse

_ORIENTATIONS = Orientation.__members__


@dataclasses.dataclass(frozen=True, eq=False)
class Bookshelf:
    """A Bookshelf design as columns.

    Attributes:
        path: the `.aux` file, for messages; sources: the files read.
        names: N node names; width, height: float64 [N]; terminal: bool [N].
        x, y: float64 [N], lower left corners; orientation: int8 [N]; fixed: bool [N]; located: bool [N], whether
            the `.pl` file names the node.
        net_names: E names; net_start: int64 [E+1]; net_weight: float64 [E].
        pin_node: int64 [L]; pin_dx, pin_dy: float64 [L], from the node's centre; pin_drives: bool [L].
        row_x, row_y, row_width, row_height, site_width: float64 [W]; row_orientation: int8 [W].
        notices: what is missing or was passed over.
    """

    path: str
    sources: tuple[SourceFile, ...]
    names: list[str]
    width: np.ndarray
    height: np.ndarray
    terminal: np.ndarray
    x: np.ndarray
    y: np.ndarray
    orientation: np.ndarray
    fixed: np.ndarray
    located: np.ndarray
    net_names: list[str]
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


class _Lines:
    """The lines of one file without comments and empty ones; `number` is the current line's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.lines = read_text(path).split("\n")

    def __iter__(self) -> Iterator[list[str]]:
        for number, text in enumerate(self.lines, start=1):
            words = text.partition("#")[0].replace(":", " : ").split()
            if words and words[0] != "UCLA":
                self.number = number
                yield words

    def error(self, message: str) -> DesignError:
        return DesignError.at(self.path, self.number, message)

    def number_of(self, word: str, what: str) -> float:
        try:
            value = float(word) if "_" not in word else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or abs(value) > 1e12:
            raise self.error(f"expected {what}, a number, found {word[:40]!r}")
        return value


def read_bookshelf(path: str | os.PathLike[str]) -> Bookshelf:
    """The design that an `.aux` file names.

    Raises:
        DesignError: with file and line; `.nodes` or `.nets` are missing, a file holds another number of entries than
            it says, a name is unknown or there twice, a number is none, a row has no width or height.
    """
    aux = Path(path)
    files = _files(aux)
    notices: list[str] = []
    nodes = _Nodes(files["nodes"])
    nets = _Nets(files["nets"], nodes.index)
    notices += nets.read_weights(files.get("wts"))
    positions = _Positions(files.get("pl"), nodes.index)
    rows = _Rows(files.get("scl"))
    for suffix, what in (("pl", "positions"), ("scl", "rows")):
        if suffix not in files:
            notices.append(f"{aux} names no .{suffix} file: there are no {what}")
    return Bookshelf(
        path=str(aux),
        sources=tuple(read_bytes(file)[1] for file in (aux, *files.values())),
        names=list(nodes.index),
        width=np.array(nodes.width),
        height=np.array(nodes.height),
        terminal=np.array(nodes.terminal, dtype=np.bool_),
        net_names=nets.names,
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


def _files(aux: Path) -> dict[str, Path]:
    """Suffix → file, of those that the `.aux` file names; a file that is there gzipped only is taken so."""
    lines = _Lines(aux)
    found: dict[str, Path] = {}
    for words in lines:
        for word in words[words.index(":") + 1 if ":" in words else 0 :]:
            name = Path(word)
            if name.is_absolute() or ".." in name.parts:
                raise lines.error(f"{word!r} must be a file beside the .aux file")
            file = aux.parent / name
            zipped = file.with_name(file.name + ".gz")
            suffix = name.suffixes[-2 if name.suffix == ".gz" else -1].removeprefix(".") if name.suffix else ""
            if file.is_file() or zipped.is_file():
                found[suffix] = file if file.is_file() else zipped
            elif suffix in ("nodes", "nets"):
                raise lines.error(f"{word!r} does not exist beside the .aux file")
    missing = [suffix for suffix in ("nodes", "nets") if suffix not in found]
    if missing:
        raise lines.error(f"the file names no {' and no '.join('.' + suffix for suffix in missing)} file")
    return found


def _declared(lines: _Lines, words: list[str], counts: dict[str, int]) -> bool:
    """Whether a line is `Key : number`; the number is kept under the key in small letters."""
    if len(words) == 3 and words[1] == ":" and words[0].lower().startswith("num"):
        counts[words[0].lower()] = int(lines.number_of(words[2], "a number of entries"))
        return True
    return False


def _compare(lines: _Lines, counts: dict[str, int], key: str, found: int) -> None:
    if counts.get(key, found) != found:
        raise lines.error(f"the file says {key} : {counts[key]}, but holds {found}; it may be cut")


class _Nodes:
    """The `.nodes` file: name, width, height, and whether it is a terminal."""

    def __init__(self, path: Path) -> None:
        lines = _Lines(path)
        self.index: dict[str, int] = {}
        self.width: list[float] = []
        self.height: list[float] = []
        self.terminal: list[bool] = []
        counts: dict[str, int] = {}
        doubled: list[tuple[int, str]] = []
        for words in lines:
            if _declared(lines, words, counts):
                continue
            if len(words) not in (3, 4) or (len(words) == 4 and not words[3].lower().startswith("terminal")):
                raise lines.error(f"expected 'name width height [terminal]', found {' '.join(words)[:60]!r}")
            if self.index.setdefault(words[0], len(self.width)) != len(self.width):
                doubled.append((lines.number, words[0]))
            width, height = lines.number_of(words[1], "the width"), lines.number_of(words[2], "the height")
            if min(width, height) < 0:
                raise lines.error(f"node {words[0]!r} is {width:g} × {height:g}; must be at least 0")
            self.width.append(width)
            self.height.append(height)
            self.terminal.append(len(words) == 4)
        if doubled:
            refuse(path, [("duplicate node names", len(doubled), doubled[:SHOWN])])
        _compare(lines, counts, "numnodes", len(self.width))
        _compare(lines, counts, "numterminals", sum(self.terminal))


class _Nets:
    """The `.nets` file: nets and their pins."""

    def __init__(self, path: Path, index: dict[str, int]) -> None:
        self.names: list[str] = []
        self.start: list[int] = [0]
        self.node: list[int] = []
        self.dx: list[float] = []
        self.dy: list[float] = []
        self.drives: list[bool] = []
        self.lines = _Lines(path)
        self.unknown: list[tuple[int, str]] = []
        counts: dict[str, int] = {}
        degree = 0
        for words in self.lines:
            if words[0] == "NetDegree":
                self.close(degree)
                degree = self.open(words)
            elif not _declared(self.lines, words, counts):
                self.pin(words, index)
        self.close(degree)
        if self.unknown:
            refuse(path, [("pins on nodes that do not exist", len(self.unknown), self.unknown[:SHOWN])])
        _compare(self.lines, counts, "numnets", len(self.names))
        _compare(self.lines, counts, "numpins", len(self.node))
        self.weight = [1.0] * len(self.names)

    def open(self, words: list[str]) -> int:
        if len(words) not in (3, 4) or words[1] != ":":
            raise self.lines.error("expected 'NetDegree : number [name]'")
        self.names.append(words[3] if len(words) == 4 else f"net{len(self.names)}")
        return int(self.lines.number_of(words[2], "the number of pins"))

    def close(self, degree: int) -> None:
        """Ends the current net, which must have as many pins as it says."""
        if not self.names:
            return
        found = len(self.node) + len(self.unknown) - self.start[-1]
        if found != degree:
            raise self.lines.error(f"net {self.names[-1]!r} before here says {degree} pins, but has {found}")
        self.start.append(len(self.node) + len(self.unknown))

    def pin(self, words: list[str], index: dict[str, int]) -> None:
        if not self.names:
            raise self.lines.error(f"expected NetDegree before the first pin, found {' '.join(words)[:60]!r}")
        offsets = words[words.index(":") + 1 :] if ":" in words else []
        if len(offsets) not in (0, 2):
            raise self.lines.error("a pin has two offsets or none")
        node = index.get(words[0])
        if node is None:
            self.unknown.append((self.lines.number, words[0]))
            return
        self.node.append(node)
        self.dx.append(self.lines.number_of(offsets[0], "an offset") if offsets else 0.0)
        self.dy.append(self.lines.number_of(offsets[1], "an offset") if offsets else 0.0)
        self.drives.append(len(words) > 1 and words[1] == "O")

    def read_weights(self, path: Path | None) -> list[str]:
        """Takes the nets' weights from a `.wts` file; returns notices of what it also holds."""
        if path is None:
            return []
        lines = _Lines(path)
        index = {name: number for number, name in enumerate(self.names)}
        others = 0
        for words in lines:
            if len(words) < 2 or words[0] not in index:
                others += 1
                continue
            weight = lines.number_of(words[1], "the weight")
            if weight < 0:
                raise lines.error(f"the weight of net {words[0]!r} is {weight:g}; must be at least 0")
            self.weight[index[words[0]]] = weight
        return [f"{path}: {others:,} weights are not of nets: they are passed over"] if others else []


class _Positions:
    """The `.pl` file: lower left corners, orientations, and what is fixed."""

    def __init__(self, path: Path | None, index: dict[str, int]) -> None:
        count = len(index)
        self.columns: dict[str, np.ndarray] = {
            "x": np.zeros(count),
            "y": np.zeros(count),
            "orientation": np.zeros(count, dtype=np.int8),
            "fixed": np.zeros(count, dtype=np.bool_),
            "located": np.zeros(count, dtype=np.bool_),
        }
        if path is None:
            return
        lines = _Lines(path)
        unknown: list[tuple[int, str]] = []
        for words in lines:
            node = index.get(words[0])
            if node is None:
                unknown.append((lines.number, words[0]))
            elif len(words) < 3:
                raise lines.error(f"expected 'name x y [: orientation]', found {' '.join(words)[:60]!r}")
            else:
                self.enter(lines, words, node)
        if unknown:
            refuse(path, [("positions of nodes that do not exist", len(unknown), unknown[:SHOWN])])

    def enter(self, lines: _Lines, words: list[str], node: int) -> None:
        columns = self.columns
        if columns["located"][node]:
            raise lines.error(f"node {words[0]!r} has a position already")
        columns["x"][node] = lines.number_of(words[1], "x")
        columns["y"][node] = lines.number_of(words[2], "y")
        columns["located"][node] = True
        for word in words[3:]:
            if word in _ORIENTATIONS:
                columns["orientation"][node] = _ORIENTATIONS[word]
            elif word.upper().startswith("/FIXED"):
                columns["fixed"][node] = True
            elif word != ":":
                raise lines.error(f"expected an orientation or /FIXED, found {word[:40]!r}")


class _Rows:
    """The `.scl` file: rows, each with one or more parts."""

    def __init__(self, path: Path | None) -> None:
        self.parts: list[tuple[float, float, float, float, float, int]] = []
        if path is None:
            return
        lines = _Lines(path)
        counts: dict[str, int] = {}
        row: dict[str, str] | None = None
        rows = 0
        for words in lines:
            if words[0] == "CoreRow":
                row, rows = {}, rows + 1
            elif words[0] == "End":
                row = None
            elif row is not None:
                self.read(lines, words, row)
            elif not _declared(lines, words, counts):
                raise lines.error(f"expected CoreRow, found {' '.join(words)[:60]!r}")
        if row is not None:
            raise lines.error("the file ends within a row; it seems to be cut")
        _compare(lines, counts, "numrows", rows)

    def read(self, lines: _Lines, words: list[str], row: dict[str, str]) -> None:
        """The `key : value` pairs of one line of a row."""
        at = 0
        while at + 2 < len(words) and words[at + 1] == ":":
            row[words[at].lower()] = words[at + 2]
            at += 3
        if at != len(words):
            raise lines.error(f"expected 'key : value', found {' '.join(words)[:60]!r}")
        if not {"subroworigin", "numsites"} <= row.keys():
            return
        number = {key: lines.number_of(row[key], key) for key in ("coordinate", "height", "numsites", "subroworigin")
                  if key in row}  # fmt: skip
        if not {"coordinate", "height"} <= number.keys():
            raise lines.error("the row's Coordinate and Height must come before its SubrowOrigin")
        step = lines.number_of(row.get("sitespacing", row.get("sitewidth", "1")), "sitespacing")
        if not (number["height"] > 0 and number["numsites"] > 0 and step > 0):
            raise lines.error("the row's height, number of sites and their spacing must be above 0")
        turned = _ORIENTATIONS.get(row.get("siteorient", "N"), Orientation.N)
        del row["numsites"], row["subroworigin"]
        self.parts.append((number["subroworigin"], number["coordinate"], number["numsites"] * step, number["height"],
                           step, int(turned)))  # fmt: skip

    def columns(self) -> dict[str, np.ndarray]:
        """The rows as columns of `Bookshelf`."""
        names = ("row_x", "row_y", "row_width", "row_height", "site_width", "row_orientation")
        table = np.array(self.parts, dtype=np.float64).reshape(-1, len(names))
        return {name: table[:, column] for column, name in enumerate(names)}
