"""Reads flat designs from Bookshelf files (`.aux`, `.nodes`, `.nets`, `.pl`, `.scl`, `.wts`), each plain or gzipped.

The files' unit of length is interpreted as 1 µm. Axis legend: N nodes, E nets, L net pins, W rows.
"""

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from placement.netlist.builder import file_indices
from placement.netlist.design import Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import SHOWN, DesignError, listing, reject
from placement.netlist.files import decoded_leniently, finite, read_bytes, stem
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan, Rows, place_missing
from placement.netlist.geometry import Rectangle
from placement.netlist.technology import Technology

_UTILIZATION = 0.7  # fraction of the core that macros and cells cover if no file gives a core
_ORIENTATIONS = Orientation.__members__
_SUFFIXES = ("nodes", "nets", "wts", "pl", "scl")
_COMMENT = re.compile(r"(^|\s)#.*")  # names may contain a `#`


def read_bookshelf(
    path: str | os.PathLike[str], *, name: str | None = None, free_blocks: bool = False
) -> tuple[FlatDesign, bytes | None]:
    """Reads a flat design from the files that an `.aux` file names; also returns the unpacked bytes of its `.pl` file,
    if any.

    A terminal no higher and no wider than a row is high, or above all rows (`terminal_NI`, `/FIXED_NI`), is a port; a
    larger one is a fixed macro. Another node higher than a row is a macro, and the rest are standard cells. If `.scl`
    is missing, rows are made within the box around the fixed nodes, or, if that is too small, in a square that nodes
    cover to 70%.

    Args:
        path: the `.aux` file.
        name: the design's name; default: the file's name without suffix.
        free_blocks: whether large terminals are movable macros, as in some publications on designs whose blocks are all
            fixed.

    Raises:
        DesignError: with file and line; `.nodes` or `.nets` are missing, a file contains another number of entries than
            it declares, a name is unknown or repeated, a number is invalid, a row has no width or height, or no row
            height can be found.
    """
    files = _Files(Path(path))
    notices = list(files.notices)
    row_height = _row_height(files, notices)
    small = (files.width <= row_height) & (files.height <= row_height)
    kind = np.where(files.height > row_height, NodeKind.HARD, NodeKind.CELL)
    kind = np.where(files.terminal, np.where(small, NodeKind.PORT, NodeKind.HARD), kind).astype(np.int8)
    kind[files.above] = NodeKind.PORT
    netlist = _netlist(files, kind, notices)
    rows, core = _rows(files, netlist, row_height, notices)
    low_x, low_y, high_x, high_y = files.fixed_box() or (core.x_low, core.y_low, core.x_high, core.y_high)
    die = Rectangle(min(core.x_low, low_x), min(core.y_low, low_y), max(core.x_high, high_x), max(core.y_high, high_y))
    placement = _placement(files, netlist, die, notices, free_blocks=free_blocks)
    corners = np.array(files.rows).reshape(-1, 6)[:, :2].ravel()
    values = np.concatenate((files.x, files.y, files.width, files.height, corners))
    design = FlatDesign(
        name=name or stem(path),
        netlist=netlist,
        placement=placement,
        floorplan=Floorplan(units=1.0 if (values == np.round(values)).all() else 1000.0, die=die, core=core, rows=rows),
        technology=Technology(),
        master=np.full(netlist.num_nodes, -1),
        master_names=(),
        written_names={},
        sources=tuple(file.source for file in files.files),
        notices=tuple(notices),
    )
    return design, files.positions_data


class _File:
    """A file, read once; iterates over the words of its lines, without comments and empty lines."""

    def __init__(self, path: Path) -> None:
        self.path, self.number = path, 0
        self.data, self.source = read_bytes(path)
        self.counts: dict[str, int] = {}
        self.ignored: list[tuple[int, str]] = []  # lines and unknown words at their ends

    def __iter__(self) -> Iterator[list[str]]:
        for number, text in enumerate(decoded_leniently(self.data).split("\n"), start=1):
            words = _COMMENT.sub("", text).replace(":", " : ").split()
            if words and not (words[0].upper() == "UCLA" and words[1:2] and words[1].lower() in _SUFFIXES):
                self.number = number
                yield words

    def ignore(self, words: list[str]) -> None:
        """Ignores words at the end of the current line, if there are any."""
        if words:
            self.ignored.append((self.number, " ".join(words)))

    def ignored_words(self) -> list[str]:
        """Returns a notice if words were ignored."""
        what = "lines end in unknown words, which are ignored"
        return [listing(self.path, what, len(self.ignored), self.ignored[:SHOWN])] if self.ignored else []

    def error(self, message: str) -> DesignError:
        """Makes an error about the current line."""
        return DesignError.at(self.path, max(self.number, 1), message)

    def expected(self, what: str, words: list[str]) -> DesignError:
        return self.error(f"expected {what}, found {' '.join(words)[:60]!r}")

    def value(self, word: str, what: str) -> float:
        """Parses a finite number."""
        value = finite(word)
        if value is None or abs(value) > 1e12:
            raise self.error(f"expected {what}, a number, found {word[:40]!r}")
        return value

    def is_count(self, words: list[str]) -> bool:
        """Whether a line is `NumThings : number` (colon optional); stores the number under the lower-case key."""
        if words[0].lower().startswith("num") and (words[1:-1] == [":"] or (len(words) == 2 and words[1].isdecimal())):
            self.counts[words[0].lower()] = int(self.value(words[-1], "a number of entries"))
            return True
        return False

    def miscounted(self, key: str, found: int) -> list[str]:
        """Returns a notice if the file declares another number of entries than were found."""
        declared = self.counts.get(key, found)
        return [f"{self.path}: the file says {key} : {declared}, but it contains {found}"] if declared != found else []

    def check_count(self, key: str, found: int) -> list[str]:
        """Does the same as `miscounted`, but raises DesignError if the file has fewer entries than it declares."""
        if self.counts.get(key, found) > found:
            raise self.error(f"the file says {key} : {self.counts[key]}, but it contains {found}; it may be truncated")
        return self.miscounted(key, found)


class _Files:
    """All files of a design as columns.

    Attributes:
        index: name → node; width, height: float64 [N]; terminal: bool [N]; above: bool [N], terminals above all rows.
        x, y: float64 [N], lower left corners; orientation: int8 [N]; fixed, located: bool [N].
        net_start: int64 [E+1]; net_weight: float64 [E].
        pin_node: int64 [L]; pin_dx, pin_dy: float64 [L], from the node's centre; pin_drives: bool [L].
        rows: (x, y, width, height, site width, orientation) of each row.
        notices: the missing and the skipped entries.
    """

    def __init__(self, path: Path) -> None:
        aux = _File(path)
        named = _named(aux)
        of = {suffix: _File(file) for suffix, file in named.items() if suffix in _SUFFIXES}
        self.path, self.files, self.notices = path, (aux, *of.values()), list[str]()
        if others := [file.name for suffix, file in named.items() if suffix not in _SUFFIXES]:
            self.notices.append(f"{aux.path}: {', '.join(others)} contain no positions and are ignored")
        self.positions_data = of["pl"].data if "pl" in of else None
        self.rows: list[tuple[float, ...]] = []
        self.read_nodes(of["nodes"])
        self.read_nets(of["nets"])
        if "wts" in of:
            self.read_weights(of["wts"])
        count = len(self.index)
        self.x, self.y, self.orientation = np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int8)
        self.fixed, self.located = np.zeros((2, count), dtype=np.bool_)
        if "pl" in of:
            self.read_positions(of["pl"])
        if "scl" in of:
            self.read_rows(of["scl"])
        for file in of.values():
            self.notices += file.ignored_words()
        for suffix, what in (("pl", "positions"), ("scl", "rows")):
            if suffix not in of:
                self.notices.append(f"{aux.path}: there is no .{suffix} file, and therefore no {what}")

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Widths and heights of the nodes in their orientations, float64 [N] each."""
        swapped = self.orientation >= Orientation.E
        return np.where(swapped, self.height, self.width), np.where(swapped, self.width, self.height)

    def fixed_box(self) -> tuple[float, float, float, float] | None:
        """x_low, y_low, x_high and y_high of the fixed nodes; None if there are none."""
        fixed = self.located & (self.terminal | self.fixed)
        if not fixed.any():
            return None
        width, height = self.sides()
        right, top = (self.x + width)[fixed].max(), (self.y + height)[fixed].max()
        return float(self.x[fixed].min()), float(self.y[fixed].min()), float(right), float(top)

    def read_nodes(self, file: _File) -> None:
        """Reads the `.nodes` file: name, width, height, and whether the node is a terminal."""
        self.index: dict[str, int] = {}
        sizes: list[tuple[float, float, bool, bool]] = []
        repeated: list[tuple[int, str]] = []
        for words in file:
            if file.is_count(words):
                continue
            if len(words) < 3 or ":" in words[:3]:
                raise file.expected("'name width height [terminal]'", words)
            kind = words[3].lower() if len(words) > 3 else ""
            is_terminal = kind.startswith("terminal")
            file.ignore(words[3 + is_terminal :])
            if self.index.setdefault(words[0], len(sizes)) != len(sizes):
                repeated.append((file.number, words[0]))
            width, height = file.value(words[1], "the width"), file.value(words[2], "the height")
            if min(width, height) < 0:
                raise file.error(f"node {words[0]!r} is {width:g} × {height:g}; must be at least 0")
            sizes.append((width, height, is_terminal, kind == "terminal_ni"))
        if repeated:
            reject(file.path, [("duplicate node names", len(repeated), repeated[:SHOWN])])
        self.width, self.height, terminal, above = np.array(sizes, dtype=np.float64).reshape(-1, 4).T
        self.terminal, self.above = terminal > 0, above > 0
        self.notices += file.check_count("numnodes", len(sizes))
        self.notices += file.miscounted("numterminals", int(self.terminal.sum()))

    def read_nets(self, file: _File) -> None:
        """Reads the `.nets` file: nets and their pins."""
        nets: list[tuple[str, int, int]] = []  # Each entry has name, number of pins and line.
        pins: list[tuple[int, int, float, float, bool]] = []
        unknown: list[tuple[int, str]] = []
        for words in file:
            if words[0].lower() == "netdegree":
                words = [word for word in words if word != ":"]
                if len(words) < 2:
                    raise file.error("expected 'NetDegree : number [name]'")
                name = words[2] if len(words) > 2 else f"net{len(nets)}"
                file.ignore(words[3:])
                nets.append((name, int(file.value(words[1], "the number of pins")), file.number))
            elif not file.is_count(words):
                if not nets:
                    raise file.expected("NetDegree before the first pin", words)
                # The direction and the colon may be missing.
                rest = [word for word in words[1:] if word != ":"]
                drives = bool(rest) and rest[0].upper() in ("O", "OUTPUT")
                offsets = rest[bool(rest) and rest[0][0].isalpha() :]
                if len(offsets) == 1:
                    raise file.error("a pin has two offsets or none")
                file.ignore(offsets[2:])
                if words[0] not in self.index:
                    unknown.append((file.number, words[0]))
                dx, dy = (file.value(word, "an offset") for word in offsets[:2] or ("0", "0"))
                pins.append((len(nets) - 1, self.index.get(words[0], -1), dx, dy, drives))
        net, node, self.pin_dx, self.pin_dy, drives_net = np.array(pins, dtype=np.float64).reshape(-1, 5).T
        self.pin_node, self.pin_drives = node.astype(np.int64), drives_net > 0
        degree = np.bincount(net.astype(np.int64), minlength=len(nets)).tolist()
        for (name, declared, line), found in zip(nets, degree, strict=True):
            if found != declared:
                raise DesignError.at(file.path, line, f"net {name!r} says {declared} pins, but has {found}")
        if unknown:
            reject(file.path, [("pins on nodes that do not exist", len(unknown), unknown[:SHOWN])])
        self.net_names, self.net_weight = [name for name, _, _ in nets], np.ones(len(nets))
        self.net_start = np.cumsum([0, *degree])
        self.notices += file.check_count("numnets", len(self.net_names))
        self.notices += file.miscounted("numpins", len(pins))

    def read_weights(self, file: _File) -> None:
        """Reads the `.wts` file: weights of nets; others are skipped."""
        index = {name: number for number, name in enumerate(self.net_names)}
        others = 0
        for words in file:
            if len(words) < 2 or words[0] not in index:
                others += 1
                continue
            weight = file.value(words[1], "the weight")
            if weight < 0:
                raise file.error(f"the weight of net {words[0]!r} is {weight:g}; must be at least 0")
            self.net_weight[index[words[0]]] = weight
        if others:
            self.notices.append(f"{file.path}: {others:,} weights are not for nets and are ignored")

    def read_positions(self, file: _File) -> None:
        """Reads the `.pl` file: lower left corners, orientations, and fixed nodes."""
        unknown: list[tuple[int, str]] = []
        for words in file:
            node = self.index.get(words[0])
            if node is None and file.is_count(words):
                continue
            if node is None:
                unknown.append((file.number, words[0]))
                continue
            if len(words) < 3 or ":" in words[:3]:
                raise file.expected("'name x y [: orientation]'", words)
            if self.located[node]:
                raise file.error(f"node {words[0]!r} already has a position")
            self.x[node], self.y[node] = file.value(words[1], "x"), file.value(words[2], "y")
            self.located[node] = True
            others = []
            for before, word in itertools.pairwise(words[2:]):
                if word.upper() in _ORIENTATIONS:
                    self.orientation[node] = _ORIENTATIONS[word.upper()]
                elif (status := word.upper().removeprefix("/")).startswith("FIXED"):
                    self.fixed[node] = True
                    self.above[node] |= status == "FIXED_NI"
                elif before == ":":
                    raise file.error(f"expected an orientation or /FIXED, found {word[:40]!r}")
                elif word != ":":
                    others.append(word)
            file.ignore(others)
        if unknown:
            reject(file.path, [("positions of nodes that do not exist", len(unknown), unknown[:SHOWN])])

    def read_rows(self, file: _File) -> None:
        """Reads the `.scl` file: rows, each with one or more subrows."""
        row: dict[str, str] | None = None
        count = 0
        for words in file:
            if words[0].lower() == "corerow":
                row, count = {}, count + 1
            elif words[0].lower() == "end":
                row = None
            elif row is not None:
                keys = [at - 1 for at, word in enumerate(words) if word == ":"]
                if not keys or keys[0] != 0:
                    raise file.expected("'key : value'", words)
                # If there are several values, the first counts (Sitesymmetry : X Y).
                spans = zip(keys, [*keys[1:], None], strict=True)
                row |= {words[at].lower(): (words[at + 2 : end] or [""])[0] for at, end in spans}
                if {"subroworigin", "numsites"} <= row.keys():
                    self.read_subrow(file, row)
            elif not file.is_count(words):
                raise file.expected("CoreRow", words)
        if row is not None:
            raise file.error("the file ends within a row; it appears to be truncated")
        self.notices += file.check_count("numrows", count)

    def read_subrow(self, file: _File, row: dict[str, str]) -> None:
        """Reads the keys of a row, and removes `subroworigin` and `numsites`, since another subrow may follow."""
        keys = ("coordinate", "height", "numsites", "subroworigin")
        number = {key: file.value(row[key], key) for key in keys if key in row}
        if not {"coordinate", "height"} <= number.keys():
            raise file.error("the row's Coordinate and Height must come before its SubrowOrigin")
        step = file.value(row.get("sitespacing", row.get("sitewidth", "1")), "sitespacing")
        if not (number["height"] > 0 and number["numsites"] >= 0 and step > 0):
            raise file.error("the row's height and the spacing of its sites must be above 0")
        turned = _ORIENTATIONS.get(row.get("siteorient", "N"), Orientation.N)
        del row["numsites"], row["subroworigin"]
        if not number["numsites"]:
            return file.ignore(["NumSites : 0"])
        corner = number["subroworigin"], number["coordinate"]
        self.rows.append((*corner, number["numsites"] * step, number["height"], step, int(turned)))
        return None


def _named(aux: _File) -> dict[str, Path]:
    """Maps suffixes to the files that an `.aux` file names; a file may exist in gzipped form only."""
    found: dict[str, Path] = {}
    for words in aux:
        for word in words[words.index(":") + 1 if ":" in words else 0 :]:
            name = Path(word)
            if name.is_absolute() or ".." in name.parts:
                raise aux.error(f"{word!r} must be in the folder of the .aux file")
            file = aux.path.parent / name
            zipped = file.with_name(file.name + ".gz")
            suffix = Path(name.name.removesuffix(".gz")).suffix.removeprefix(".").lower()
            if file.is_file() or zipped.is_file():
                found[suffix] = file if file.is_file() else zipped
            elif suffix in ("nodes", "nets"):
                raise aux.error(f"{word!r} does not exist in the folder of the .aux file")
    missing = [suffix for suffix in ("nodes", "nets") if suffix not in found]
    if missing:
        raise aux.error(f"the file names no {' and no '.join('.' + suffix for suffix in missing)} file")
    return found


def _row_height(files: _Files, notices: list[str]) -> float:
    """The most frequent row height; without rows, the most frequent height of movable nodes."""
    cells = files.height[~files.terminal & (files.height > 0)]
    heights = np.array([row[3] for row in files.rows]) if files.rows else cells
    if not len(heights):
        raise DesignError(f"{files.path}: there is no .scl file, and no cell to derive the row height from")
    values, counts = np.unique(heights, return_counts=True)
    height = float(values[np.argmax(counts)])
    if not files.rows:
        notices.append(f"rows are assumed to be {height:g} high, as most cells are")
    return height


def _netlist(files: _Files, kind: np.ndarray, notices: list[str]) -> Netlist:
    is_port, names = kind == NodeKind.PORT, tuple(files.index)
    flat = np.flatnonzero((kind == NodeKind.HARD) & ((files.width <= 0) | (files.height <= 0)))
    if len(flat):
        raise DesignError(f"{files.path}: macro {names[flat[0]]!r} has no width or height above 0")
    degree = np.diff(files.net_start)
    net = np.repeat(np.arange(len(degree)), degree)
    order = np.lexsort((np.arange(len(net)), ~files.pin_drives, net))
    order = order[degree[net[order]] >= 2]
    used = degree >= 2
    if not used.all():
        notices.append(f"{int((~used).sum()):,} nets with fewer than two pins are ignored")
    pin_node = files.pin_node[order]
    # A port is a point at the centre of its shape.
    return Netlist(
        names=names,
        kind=kind,
        width=np.where(is_port, 0.0, files.width),
        height=np.where(is_port, 0.0, files.height),
        file_index=file_indices(kind, pin_node),
        pin_node=pin_node,
        pin_dx=np.where(is_port[pin_node], 0.0, files.pin_dx[order]),
        pin_dy=np.where(is_port[pin_node], 0.0, files.pin_dy[order]),
        net_weight=files.net_weight[used],
        net_start=np.concatenate(([0], np.cumsum(degree[used]))),
        net_pins=np.arange(len(order)),
    )


def _rows(files: _Files, netlist: Netlist, height: float, notices: list[str]) -> tuple[Rows, Rectangle]:
    """The rows and the box around them."""
    if files.rows:
        rows = Rows(*np.array(files.rows).T)
        assert rows.box is not None
        return rows, rows.box
    area = float((netlist.width * netlist.height).sum())
    around = files.fixed_box()
    if around is not None and (around[2] - around[0]) * (around[3] - around[1]) * 0.95 > area:
        box = Rectangle(*around)
        notices.append("the core is assumed to be the box around the fixed nodes")
    else:
        side = height * np.ceil(np.sqrt(area / _UTILIZATION) / height)
        box = Rectangle(0.0, 0.0, side, side)
        notices.append(f"the core is assumed to be a square with a utilization of {_UTILIZATION:.0%}")
    count = max(1, int(box.height / height))
    rows = Rows.filling(box, height, count, site_width=1.0)
    return rows, Rectangle(box.x_low, box.y_low, box.x_high, box.y_low + count * height)


def _placement(files: _Files, netlist: Netlist, die: Rectangle, notices: list[str], *, free_blocks: bool) -> Placement:
    """Centres of the nodes; movable nodes that are all at (0, 0) are not placed."""
    is_port = netlist.kind == NodeKind.PORT
    moves = ~(files.terminal | files.fixed)
    placed = files.located.copy()
    if not (files.x[moves].any() or files.y[moves].any()):
        placed &= ~moves
    width, height = files.sides()
    x, y = files.x + width / 2, files.y + height / 2
    port_x, port_y, port_placed = x[is_port], y[is_port], placed[is_port]
    notices += place_missing(port_x, port_y, port_placed, box=die)
    x[is_port], y[is_port], placed[is_port] = port_x, port_y, port_placed
    fixed = is_port | (~moves & placed)
    if free_blocks:
        fixed &= netlist.kind != NodeKind.HARD
    return Placement(
        x=np.where(placed, x, 0.0),
        y=np.where(placed, y, 0.0),
        orientation=np.where(is_port, 0, files.orientation),
        placed=placed,
        fixed=fixed,
    )
