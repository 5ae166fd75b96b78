"""The files of a Bookshelf design, one reader each: `.nodes`, `.nets` with `.wts`, `.pl` and `.scl`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placement.netlist.bytes_file import SourceFile, read_bytes
from placement.netlist.design import Orientation
from placement.netlist.errors import DesignError
from placement.netlist.files import decoded
from placement.netlist.formats.findings import SHOWN, refuse

_ORIENTATIONS = Orientation.__members__


class InputFile(NamedTuple):
    """A file as it was read, once: its path, its unpacked bytes, and what a design keeps of it."""

    path: Path
    data: bytes
    source: SourceFile

    @classmethod
    def read(cls, path: Path) -> InputFile:
        """Raises DesignError where it cannot be read."""
        return cls(path, *read_bytes(path))


class BookshelfLines:
    """The lines of one file without comments and empty ones; `number` is the current line's."""

    def __init__(self, file: InputFile) -> None:
        self.path = file.path
        self.number = 0
        self.lines = decoded(file.data, file.path).split("\n")

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


def _declared(lines: BookshelfLines, words: list[str], counts: dict[str, int]) -> bool:
    """Whether a line is `Key : number`; the number is kept under the key in small letters."""
    if len(words) == 3 and words[1] == ":" and words[0].lower().startswith("num"):
        counts[words[0].lower()] = int(lines.number_of(words[2], "a number of entries"))
        return True
    return False


def _compare(lines: BookshelfLines, counts: dict[str, int], key: str, found: int) -> None:
    if counts.get(key, found) != found:
        raise lines.error(f"the file says {key} : {counts[key]}, but holds {found}; it may be cut")


class NodesFile:
    """The `.nodes` file: name, width, height, and whether it is a terminal."""

    def __init__(self, file: InputFile) -> None:
        lines = BookshelfLines(file)
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
            refuse(file.path, [("duplicate node names", len(doubled), doubled[:SHOWN])])
        _compare(lines, counts, "numnodes", len(self.width))
        _compare(lines, counts, "numterminals", sum(self.terminal))


class NetsFile:
    """The `.nets` file: nets and their pins."""

    def __init__(self, file: InputFile, index: dict[str, int]) -> None:
        self.names: list[str] = []
        self.start: list[int] = [0]
        self.node: list[int] = []
        self.dx: list[float] = []
        self.dy: list[float] = []
        self.drives: list[bool] = []
        self.lines = BookshelfLines(file)
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
            refuse(file.path, [("pins on nodes that do not exist", len(self.unknown), self.unknown[:SHOWN])])
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

    def read_weights(self, file: InputFile | None) -> list[str]:
        """Takes the nets' weights from a `.wts` file; returns notices of what it also holds."""
        if file is None:
            return []
        lines = BookshelfLines(file)
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
        return [f"{file.path}: {others:,} weights are not of nets: they are passed over"] if others else []


class PositionsFile:
    """The `.pl` file: lower left corners, orientations, and what is fixed."""

    def __init__(self, file: InputFile | None, index: dict[str, int]) -> None:
        count = len(index)
        self.columns: dict[str, np.ndarray] = {
            "x": np.zeros(count),
            "y": np.zeros(count),
            "orientation": np.zeros(count, dtype=np.int8),
            "fixed": np.zeros(count, dtype=np.bool_),
            "located": np.zeros(count, dtype=np.bool_),
        }
        if file is None:
            return
        lines = BookshelfLines(file)
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
            refuse(file.path, [("positions of nodes that do not exist", len(unknown), unknown[:SHOWN])])

    def enter(self, lines: BookshelfLines, words: list[str], node: int) -> None:
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


class RowsFile:
    """The `.scl` file: rows, each with one or more parts."""

    def __init__(self, file: InputFile | None) -> None:
        self.parts: list[tuple[float, float, float, float, float, int]] = []
        if file is None:
            return
        lines = BookshelfLines(file)
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

    def read(self, lines: BookshelfLines, words: list[str], row: dict[str, str]) -> None:
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
        columns = {name: table[:, column] for column, name in enumerate(names)}
        return columns | {"row_orientation": columns["row_orientation"].astype(np.int8)}
