"""Reads LEF files (5.6 to 5.8): units, routing layers, sites and masters; everything else is skipped.

Axis legend: K rectangles, each (x_low, y_low, x_high, y_high), µm.
"""

import contextlib
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from placement.netlist.errors import DesignError
from placement.netlist.files import SourceFile, decoded_leniently, read_bytes
from placement.netlist.geometry import path_rectangles, polygon_rectangles
from placement.netlist.technology import (
    BLOCK_KINDS,
    LayerDirection,
    Master,
    MasterPin,
    RoutingLayer,
    Site,
    Technology,
    conflict,
    merged,
    with_brackets,
)

# Blocks `KEYWORD name … END name` that are irrelevant to placement.
_NAMED_BLOCKS = ("VIA", "VIARULE", "NONDEFAULTRULE", "ARRAY")
# Blocks `KEYWORD … END KEYWORD`.
_PLAIN_BLOCKS = ("PROPERTYDEFINITIONS", "SPACING", "NOISETABLE", "CORRECTIONTABLE", "IRDROP")
# LEF58_TYPE values of metal layers without signal routing.
_NO_ROUTING = ("POLYROUTING", "MIMCAP", "TSVMETAL", "PADMETAL")
_STATEMENTS = (
    "VERSION", "NAMESCASESENSITIVE", "DIVIDERCHAR", "CLEARANCEMEASURE", "USEMINSPACING",
    "NOWIREEXTENSIONATPIN", "FIXEDMASK", "MAXVIASTACK", "MINFEATURE", "DIELECTRIC", "UNIVERSALNOISEMARGIN",
    "EDGERATETHRESHOLD1", "EDGERATETHRESHOLD2", "EDGERATESCALEFACTOR", "INPUTPINANTENNASIZE", "ANTENNAINPUTGATEAREA",
    "OUTPUTPINANTENNASIZE", "INOUTPINANTENNASIZE", "ANTENNAINOUTDIFFAREA", "ANTENNAOUTPUTDIFFAREA",
)  # fmt: skip
_WORD = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|;|#[^\n]*|[^\s;"][^\s;]*|"', re.DOTALL)


def read_lefs(paths: Sequence[str | os.PathLike[str]]) -> tuple[Technology, tuple[SourceFile, ...]]:
    """Reads LEF files, plain or gzipped, as one technology (`placement.netlist.technology.merged`), with their sources.

    Raises:
        DesignError: with file and line; a file is truncated, a statement is unknown, or a number is invalid.
    """
    files = [(path, *read_bytes(path)) for path in paths]
    found, widths = dict[int, Technology](), dict[str, float]()
    # Files with layers come first, since paths in macros are as wide as their layer.
    for number in sorted(range(len(files)), key=lambda number: b"ROUTING" not in files[number][1].upper()):
        path, data, _ = files[number]
        found[number] = _FileReader(LefWords(path, decoded_leniently(data)), widths).read()
    return merged([found[number] for number in range(len(files))]), tuple(source for _, _, source in files)


class LefWords:
    """The words of one file, read in order as statements that end in `;` and blocks that end in `END`."""

    def __init__(self, path: object, text: str) -> None:
        self.path = path
        self.text = text
        # Comments are omitted; the position of a word is found again only for a message.
        self.words = [word for word in _WORD.findall(text) if word[0] != "#"]
        self.ends = [word for word in ("END", "end", "End") if word in self.words]
        self.at = 0

    def error(self, message: str, at: int | None = None) -> DesignError:
        """Makes an error, with file and line, about word number `at`, by default the one read last."""
        wanted = max(0, (self.at - 1) if at is None else at)
        number = -1
        for found in _WORD.finditer(self.text):
            number += found[0][0] != "#"
            if number == wanted:
                return DesignError.at(self.path, self.text.count("\n", 0, found.start()) + 1, message)
        return DesignError.at(self.path, self.text.count("\n") + 1, message)

    def next(self) -> str | None:
        """Returns the next word, or None at the end."""
        if self.at == len(self.words):
            return None
        self.at += 1
        return self.words[self.at - 1]

    def need(self, what: str) -> str:
        """Returns the next word, which must exist."""
        word = self.next()
        if word is None:
            raise self.error(f"expected {what}, found the end of the file; it appears to be truncated", self.at)
        if word == '"':
            raise self.error("the string that begins here has no closing quote")
        return word

    def name(self, what: str) -> str:
        """Returns the next word, which must not be `;`."""
        word = self.need(what)
        if word == ";":
            raise self.error(f"expected {what}, found ';'")
        return word

    def statement(self) -> list[str]:
        """Returns the words up to the next `;`, which is skipped."""
        try:
            end = self.words.index(";", self.at)
        except ValueError:
            self.at = len(self.words)
            raise self.error("the file ends within a statement; it appears to be truncated", self.at) from None
        found = self.words[self.at : end]
        if '"' in found:
            raise self.error("the string that begins here has no closing quote", self.at + found.index('"'))
        self.at = end + 1
        return found

    def number(self, word: str, what: str) -> float:
        """Parses a finite number."""
        try:
            value = float(word) if "_" not in word else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(f"expected {what}, a number, found {word[:40]!r}")
        return value

    def numbers(self, words: list[str], what: str, *, count: int | None = None) -> list[float]:
        """Parses finite numbers, `count` of them if given; brackets and BY between them are skipped."""
        found = [self.number(word, what) for word in words if word.upper() not in ("(", ")", "BY")]
        if count not in (None, len(found)):
            raise self.error(f"{what}: expected {count} number{'s' * (count != 1)}, found {len(found)}")
        return found

    def close(self, name: str, what: str) -> None:
        """Checks the name after an END that has been read."""
        if self.need(f"'{name}'") != name:
            raise self.error(f"{what} must end with 'END {name}'")

    def skip_block(self, name: str) -> None:
        """Moves past `END name`."""
        begin = self.at
        while (at := self._next_end()) is not None:
            self.at = at + 1
            if self.at < len(self.words) and name in (self.words[self.at], self.words[self.at].upper()):
                self.at += 1
                return
        raise self.error(f"the block {name} that begins here has no 'END {name}'", begin - 1)

    def skip_extension(self) -> None:
        """Moves past ENDEXT."""
        while self.need("'ENDEXT'").upper() != "ENDEXT":
            pass

    def _next_end(self) -> int | None:
        """The position of the next END, in any case; None if there is none."""
        found = []
        for word in self.ends:
            with contextlib.suppress(ValueError):
                found.append(self.words.index(word, self.at))
        return min(found, default=None)


class _FileReader:
    """The part of a file that has been read; `widths` has the layers of all files so far."""

    def __init__(self, words: LefWords, widths: dict[str, float]) -> None:
        self.words = words
        self.units = 0.0
        self.grid = 0.0
        self.layers: dict[str, RoutingLayer] = {}
        self.widths = widths
        self.sites: dict[str, Site] = {}
        self.masters: dict[str, Master] = {}
        self.notices: list[str] = []
        self.unknown = Counter[str]()
        self.unknown_blocks = set[str]()
        self.is_lef = False  # whether a statement of a LEF file has been read
        self.is_over = False  # whether END LIBRARY was the last statement
        self.bus_bits = "[]"

    def read(self) -> Technology:
        words = self.words
        while (keyword := words.next()) is not None:
            if keyword.upper() == "END":
                self.end(words.need("'LIBRARY'"))
            else:
                self.entry(keyword.upper())
        if not (self.masters or self.layers or self.sites):
            if not self.is_lef or self.unknown:
                raise words.error("the file contains no layer, site or macro; expected a LEF file")
            self.notices.append(f"{words.path}: the file contains no layer, site or macro")
        return Technology(
            units=self.units,
            manufacturing_grid=self.grid,
            layers=tuple(self.layers.values()),
            sites=MappingProxyType(self.sites),
            masters=MappingProxyType(self.masters),
            notices=(*self.notices, *self.about_unknown()),
        )

    def end(self, name: str) -> None:
        """Handles the end of a library, after which another may follow, or of an unknown block."""
        self.is_over = name.upper() == "LIBRARY"
        if not self.is_over and name not in self.unknown_blocks:
            raise self.words.error(f"END {name[:40]} matches no earlier statement")

    def pass_over(self, keyword: str) -> None:
        """Skips an unknown statement, or the first one of an unknown block; its other statements follow."""
        words = self.words
        if not self.is_lef:
            raise words.error(f"{keyword[:40]!r} is not a LEF statement")
        if self.is_over:
            self.notices.append(f"{words.path}: words after END LIBRARY are ignored: {keyword[:40]}")
            words.at = len(words.words)
            return
        self.unknown_blocks |= {words.words[words.at - 1], *words.words[words.at : words.at + 1]}
        self.unknown[keyword[:40]] += 1
        words.statement()

    def about_unknown(self) -> list[str]:
        names = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in self.unknown.items())
        return [f"{self.words.path}: {self.unknown.total()} unknown statements are ignored: {names}"] if names else []

    def entry(self, keyword: str) -> None:
        words = self.words
        if keyword == "MACRO":
            self.macro(words.name("the macro's name"))
        elif keyword == "LAYER":
            self.layer(words.name("the layer's name"))
        elif keyword == "SITE":
            self.site(words.name("the site's name"))
        elif keyword == "UNITS":
            self.read_units()
        elif keyword == "MANUFACTURINGGRID":
            (self.grid,) = words.numbers(words.statement(), "the manufacturing grid", count=1)
        elif keyword in _NAMED_BLOCKS:
            words.skip_block(words.name("a name"))
        elif keyword in _PLAIN_BLOCKS:
            words.skip_block(keyword)
        elif keyword == "BEGINEXT":
            words.skip_extension()
        elif keyword == "BUSBITCHARS":
            self.bus_bits = (words.statement() or [""])[0].strip('"')
            if len(self.bus_bits) != 2:
                raise words.error("BUSBITCHARS must be two characters in quotes")
        elif keyword in _STATEMENTS:
            words.statement()
        else:
            return self.pass_over(keyword)
        self.is_lef, self.is_over = True, False
        return None

    def macro(self, name: str) -> None:
        reader = _MasterReader(self.words, name, self.widths, self.bus_bits)
        master = reader.read()
        self.notices += [f"{self.words.path}: {text}" for text in reader.notices]
        self.notices += conflict(self.masters.setdefault(name, master), master)

    def read_units(self) -> None:
        words = self.words
        while (keyword := words.need("'END UNITS'").upper()) != "END":
            statement = words.statement()
            if keyword == "DATABASE" and len(statement) == 2:
                self.units = words.number(statement[1], "database units per micron")
                if self.units <= 0:
                    raise words.error(f"database units per micron are {self.units:g}; must be above 0")
        words.need("'UNITS'")

    def layer(self, name: str) -> None:
        words = self.words
        fields: dict[str, list[str]] = {}
        properties: dict[str, str] = {}
        while (keyword := words.need(f"'END {name}'").upper()) != "END":
            statement = words.statement()
            # The first width and pitch count; later ones belong to tables and rules.
            fields.setdefault(keyword, statement)
            if keyword == "PROPERTY":
                properties |= dict(zip(map(str.upper, statement[::2]), map(str.upper, statement[1::2]), strict=False))
        words.close(name, f"layer {name!r}")
        width = words.number(fields["WIDTH"][0], "the width") if fields.get("WIDTH") else 0.0
        self.widths[name] = width
        is_routing = [word.upper() for word in fields.get("TYPE", [])[:1]] == ["ROUTING"]
        kind = re.findall(r"\w+", properties.get("LEF58_TYPE", ""))
        # Metal on the back of the wafer carries only power.
        if not is_routing or "LEF58_BACKSIDE" in properties or not {*kind}.isdisjoint(_NO_ROUTING):
            return
        pitch = words.numbers(fields.get("PITCH", [])[:2], "the pitch") or [0.0]
        if min(pitch) < 0:
            raise words.error(f"layer {name!r}: its pitch must be above 0")
        direction = self.direction(name, fields.get("DIRECTION", []))
        electrical = self.electrical(name, fields, width)
        layer = RoutingLayer(name, direction, pitch[0], pitch[-1], width, len(self.layers), *electrical)
        self.layers.setdefault(name, layer)

    def electrical(self, name: str, fields: Mapping[str, list[str]], width: float) -> tuple[float, float]:
        """Ω and fF per µm of a wire of µm `width`, from Ω per square, pF per µm² and pF per µm of each edge."""
        found = []
        for keyword, unit in (("RESISTANCE", "RPERSQ"), ("CAPACITANCE", "CPERSQDIST"), ("EDGECAPACITANCE", "")):
            words = fields.get(keyword, [])
            value = words[1:2] if unit and words[:1] == [unit] else words[:1] if not unit else []
            found.append(self.words.number(value[0], f"{keyword} of layer {name!r}") if value else 0.0)
        per_square, per_area, per_edge = found
        return per_square / width if width else 0.0, 1000 * (per_area * width + 2 * per_edge)

    def direction(self, name: str, words: list[str]) -> LayerDirection:
        text = words[0].upper() if words else "NONE"
        if text.startswith("DIAG"):
            return LayerDirection.DIAGONAL
        if text not in LayerDirection.__members__:
            raise self.words.error(f"layer {name!r}: its direction is {text!r}; must be HORIZONTAL or VERTICAL")
        return LayerDirection[text]

    def site(self, name: str) -> None:
        words = self.words
        kind, size = "CORE", [0.0, 0.0]
        while (keyword := words.need(f"'END {name}'").upper()) != "END":
            statement = words.statement()
            if keyword == "CLASS" and statement:
                kind = statement[0].upper()
            elif keyword == "SIZE":
                size = words.numbers(statement, "the size")
        words.close(name, f"site {name!r}")
        if len(size) != 2 or not np.min(size) > 0:
            self.notices.append(f"{words.path}: site {name!r}, which has no size above 0, is ignored")
            return
        site = Site(name=name, kind=kind, width=size[0], height=size[1])
        if self.sites.setdefault(name, site) != site:
            self.notices.append(f"{words.path}: site {name!r} is defined twice: the first definition is used")


class _MasterReader:
    """The part of a MACRO block that has been read; shapes are layer → rectangles."""

    def __init__(self, words: LefWords, name: str, widths: Mapping[str, float], bus_bits: str) -> None:
        self.words = words
        self.name = name
        self.bus_bits = bus_bits
        self.widths = widths
        self.begin = words.at - 1
        self.fields: dict[str, list[str]] = {}
        self.obstructions: dict[str, list[np.ndarray]] = {}
        self.pin_shapes: dict[str, list[np.ndarray]] = {}
        # name → (direction, use, layer → rectangles)
        self.pins: dict[str, tuple[str, str, dict[str, list[np.ndarray]]]] = {}
        self.notices: list[str] = []

    def read(self) -> Master:
        words = self.words
        while (keyword := words.need(f"'END {self.name}'").upper()) != "END":
            if keyword == "PIN":
                self.pin(words.name("the pin's name"))
            elif keyword == "OBS":
                self.shapes(self.obstructions)
            elif keyword == "DENSITY":
                while words.need("'END'").upper() != "END":
                    pass
            elif keyword == "TIMING":
                words.skip_block("TIMING")
            elif keyword == "BEGINEXT":
                words.skip_extension()
            else:
                statement = words.statement()
                if keyword in ("SIZE", "ORIGIN"):
                    words.numbers(statement, f"the {keyword.lower()}")
                self.fields.setdefault(keyword, statement)
        words.close(self.name, f"macro {self.name!r}")
        return self.master()

    def master(self) -> Master:
        words = self.words
        size = words.numbers(self.fields.get("SIZE", ["0", "0"]), "the size")
        if len(size) != 2 or min(size) < 0:
            found = " × ".join(f"{value:g}" for value in size)
            raise words.error(f"the size of macro {self.name!r} is {found}; must be two numbers above 0", self.begin)
        origin = words.numbers(self.fields.get("ORIGIN", ["0", "0"]), "the origin")
        if len(origin) != 2:
            raise words.error(f"the origin of macro {self.name!r} must be two numbers", self.begin)
        kind = [word.upper() for word in self.fields.get("CLASS", ["CORE"])] or ["CORE"]
        shift = np.array([*origin, *origin])
        pin_shapes = self.pin_shapes if kind[0] in BLOCK_KINDS else {}
        return Master(
            name=self.name,
            kind=kind[0],
            subkind=kind[1] if len(kind) > 1 else "",
            width=size[0],
            height=size[1],
            symmetry=frozenset(word.upper() for word in self.fields.get("SYMMETRY", [])),
            site=(self.fields.get("SITE") or [""])[0],
            pins=tuple(self.pin_at(name, shift, size, keep=kind[0] in BLOCK_KINDS) for name in self.pins),
            obstructions=_shifted(self.obstructions, shift),
            pin_shapes=_shifted(pin_shapes, shift),
        )

    def pin_at(self, name: str, shift: np.ndarray, size: list[float], *, keep: bool) -> MasterPin:
        """A pin with its centre, and its shapes if `keep`; a pin without shapes is in the middle of the macro."""
        direction, use, ports = self.pins[name]
        around = np.array([0.0, 0.0, *size])
        if ports:
            every = np.concatenate([shape for shapes in ports.values() for shape in shapes])
            around = np.concatenate((every[:, :2].min(axis=0), every[:, 2:].max(axis=0))) + shift
        x, y = float(around[0] + around[2]) / 2, float(around[1] + around[3]) / 2
        shapes = _shifted(ports if keep else {}, shift)
        return MasterPin(name, direction, use, x, y, next(iter(ports), ""), shapes)

    def pin(self, name: str) -> None:
        words = self.words
        direction, use = "", "SIGNAL"
        ports: dict[str, list[np.ndarray]] = {}
        while (keyword := words.need(f"'END {name}'").upper()) != "END":
            if keyword == "PORT":
                self.shapes(ports)
                continue
            statement = words.statement()
            if keyword == "DIRECTION" and statement:
                direction = statement[0].upper()
            elif keyword == "USE" and statement:
                use = statement[0].upper()
        words.close(name, f"pin {name!r} of macro {self.name!r}")
        name = with_brackets(name, self.bus_bits)
        if name in self.pins and self.pins[name][1] in ("SIGNAL", "CLOCK"):
            self.notices.append(f"macro {self.name!r} has pin {name!r} twice: its shapes are merged")
        *_, joined = self.pins.setdefault(name, (direction, use, {}))
        for layer, shapes in ports.items():
            self.pin_shapes.setdefault(layer, []).extend(shapes)
            joined.setdefault(layer, []).extend(shapes)

    def shapes(self, into: dict[str, list[np.ndarray]]) -> None:
        """Reads the statements of a PORT or an OBS, up to its END."""
        words = self.words
        layer, width = "", 0.0
        while (keyword := words.need("'END'").upper()) != "END":
            statement = [word for word in words.statement() if word not in ("(", ")")]
            if keyword == "LAYER":
                layer = statement[0] if statement else ""
                width = self.widths.get(layer, 0.0)
            elif keyword == "WIDTH":
                width = words.number(statement[0] if statement else "", "the width")
            elif keyword in ("RECT", "POLYGON", "PATH"):
                into.setdefault(layer, []).append(self.shape(keyword, statement, width))
            elif keyword not in ("VIA", "CLASS", "SPACING", "DESIGNRULEWIDTH", "EXCEPTPGNET"):
                raise words.error(f"{keyword[:40]!r} is not a shape of a PORT or OBS")

    def shape(self, keyword: str, statement: list[str], width: float) -> np.ndarray:
        """The rectangles of one RECT, POLYGON or PATH, float64 [K, 4]."""
        words = self.words
        if statement and statement[0].upper() == "MASK":
            statement = statement[2:]
        steps = [[0.0, 0.0]]
        if statement and statement[0].upper() == "ITERATE":
            statement, steps = self.iterated(statement[1:])
        values = words.numbers(statement, "a coordinate")
        if len(values) % 2 or (keyword == "RECT" and len(values) != 4) or len(values) < 2:
            raise words.error(f"{keyword} with {len(values)} coordinates")
        points = np.array(values).reshape(-1, 2)
        if keyword == "RECT":
            rectangles = np.concatenate((points.min(axis=0), points.max(axis=0)))[None, :]
        else:
            rectangles = path_rectangles(points, width) if keyword == "PATH" else polygon_rectangles(points)
        return np.concatenate([rectangles + np.array([x, y, x, y]) for x, y in steps])

    def iterated(self, statement: list[str]) -> tuple[list[str], list[list[float]]]:
        """The shape of `ITERATE … DO columns BY rows STEP x y`, and the shifts of its copies."""
        words = self.words
        upper = [word.upper() for word in statement]
        if "DO" not in upper or len(statement) - upper.index("DO") != 7:
            raise words.error("ITERATE must end with DO columns BY rows STEP x y")
        at = upper.index("DO")
        columns, rows, dx, dy = words.numbers(
            [statement[at + 1], statement[at + 3], statement[at + 5], statement[at + 6]], "a number of copies"
        )
        if not (1 <= columns * rows <= 1_000_000 and columns >= 1 and rows >= 1):
            raise words.error(f"ITERATE makes {columns:g} × {rows:g} copies; must be 1 to 1,000,000")
        steps = [[column * dx, row * dy] for column in range(int(columns)) for row in range(int(rows))]
        return statement[:at], steps


def _shifted(shapes: Mapping[str, list[np.ndarray]], shift: np.ndarray) -> Mapping[str, np.ndarray]:
    """Shapes moved by `shift` (float64 [4]), as layer → float64 [K, 4]."""
    result = {}
    for layer, rectangles in shapes.items():
        result[layer] = np.concatenate(rectangles) + shift
        result[layer].setflags(write=False)
    return MappingProxyType(result)
