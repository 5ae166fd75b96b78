"""The MACRO blocks of LEF files.

Axis legend: K rectangles, each (x_low, y_low, x_high, y_high), µm.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from placement.netlist.formats.lef_statements import LefWords
from placement.netlist.formats.shapes import path_rectangles, polygon_rectangles
from placement.netlist.technology import BLOCK_KINDS, Master, MasterPin


def read_master(words: LefWords, name: str, widths: Mapping[str, float]) -> Master:
    """The macro whose name has just been read.

    Args:
        words: the file, behind the name.
        name: the macro's name.
        widths: µm, the layers' default widths, for PATH.

    Raises:
        DesignError: the block is cut, a pin is defined twice, the size is missing or not above 0.
    """
    return _MasterReader(words, name, widths).read()


class _Shapes:
    """Rectangles by layer, in the order in which the layers come."""

    def __init__(self) -> None:
        self.by_layer: dict[str, list[np.ndarray]] = {}

    def add(self, layer: str, rectangles: np.ndarray) -> None:
        self.by_layer.setdefault(layer, []).append(rectangles)

    def frozen(self, shift: np.ndarray) -> Mapping[str, np.ndarray]:
        """Layer → float64 [K, 4], moved by `shift` float64 [4]."""
        result = {}
        for layer, parts in self.by_layer.items():
            result[layer] = np.concatenate(parts) + shift
            result[layer].setflags(write=False)
        return MappingProxyType(result)


class _MasterReader:
    """One MACRO block as far as it has been read."""

    def __init__(self, words: LefWords, name: str, widths: Mapping[str, float]) -> None:
        self.words = words
        self.name = name
        self.widths = widths
        self.begin = words.at - 1
        self.fields: dict[str, list[str]] = {}
        self.obstructions = _Shapes()
        self.pin_shapes = _Shapes()
        # name → (direction, use, box float64 [4] or None, layer)
        self.pins: dict[str, tuple[str, str, np.ndarray | None, str]] = {}

    def read(self) -> Master:
        words = self.words
        while (keyword := words.need(f"'END {self.name}'").upper()) != "END":
            if keyword == "PIN":
                self.pin(words.name("the pin's name"))
            elif keyword == "OBS":
                self.shapes(self.obstructions)
            elif keyword == "DENSITY":
                self.skip_to_end()
            elif keyword == "TIMING":
                words.skip_block("TIMING")
            elif keyword == "BEGINEXT":
                while words.need("'ENDEXT'").upper() != "ENDEXT":
                    pass
            else:
                statement = words.statement()
                if keyword in ("SIZE", "ORIGIN"):
                    words.numbers([word for word in statement if word.upper() != "BY"], f"the {keyword.lower()}")
                self.fields.setdefault(keyword, statement)
        if words.need(f"'{self.name}'") != self.name:
            raise words.error(f"macro {self.name!r} must end with 'END {self.name}'")
        return self.built()

    def built(self) -> Master:
        words = self.words
        size = words.numbers([word for word in self.fields.get("SIZE", []) if word.upper() != "BY"], "the size")
        if len(size) != 2 or not min(size) > 0:
            found = " × ".join(f"{value:g}" for value in size) or "missing"
            raise words.error(f"the size of macro {self.name!r} is {found}; must be two numbers above 0", self.begin)
        origin = words.numbers(self.fields.get("ORIGIN", ["0", "0"]), "the origin")
        if len(origin) != 2:
            raise words.error(f"the origin of macro {self.name!r} must be two numbers", self.begin)
        kind = [word.upper() for word in self.fields.get("CLASS", ["CORE"])] or ["CORE"]
        shift = np.array([*origin, *origin])
        return Master(
            name=self.name,
            kind=kind[0],
            subkind=kind[1] if len(kind) > 1 else "",
            width=size[0],
            height=size[1],
            symmetry=frozenset(word.upper() for word in self.fields.get("SYMMETRY", [])),
            site=(self.fields.get("SITE") or [""])[0],
            pins=tuple(self.pin_at(name, shift, size) for name in self.pins),
            obstructions=self.obstructions.frozen(shift),
            pin_shapes=self.pin_shapes.frozen(shift) if kind[0] in BLOCK_KINDS else MappingProxyType({}),
        )

    def pin_at(self, name: str, shift: np.ndarray, size: list[float]) -> MasterPin:
        """A pin with its centre; one without a shape sits in the middle of the macro."""
        direction, use, box, layer = self.pins[name]
        around = box + shift if box is not None else np.array([0.0, 0.0, *size])
        return MasterPin(
            name=name,
            direction=direction,
            use=use,
            x=float(around[0] + around[2]) / 2,
            y=float(around[1] + around[3]) / 2,
            layer=layer,
        )

    def pin(self, name: str) -> None:
        words = self.words
        if name in self.pins:
            raise words.error(f"macro {self.name!r} has pin {name!r} twice")
        direction, use = "", "SIGNAL"
        ports = _Shapes()
        while (keyword := words.need(f"'END {name}'").upper()) != "END":
            if keyword == "PORT":
                self.shapes(ports)
                continue
            statement = words.statement()
            if keyword == "DIRECTION" and statement:
                direction = statement[0].upper()
            elif keyword == "USE" and statement:
                use = statement[0].upper()
        if words.need(f"'{name}'") != name:
            raise words.error(f"pin {name!r} of macro {self.name!r} must end with 'END {name}'")
        parts = [part for rectangles in ports.by_layer.values() for part in rectangles]
        box = None
        if parts:
            every = np.concatenate(parts)
            box = np.concatenate((every[:, :2].min(axis=0), every[:, 2:].max(axis=0)))
        for layer, rectangles in ports.by_layer.items():
            self.pin_shapes.add(layer, np.concatenate(rectangles))
        self.pins[name] = (direction, use, box, next(iter(ports.by_layer), ""))

    def shapes(self, into: _Shapes) -> None:
        """The statements of a PORT or an OBS, up to its END."""
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
                into.add(layer, self.shape(keyword, statement, width))
            elif keyword not in ("VIA", "CLASS", "SPACING", "DESIGNRULEWIDTH", "EXCEPTPGNET"):
                raise words.error(f"{keyword[:40]!r} is no shape of a PORT or OBS")

    def shape(self, keyword: str, statement: list[str], width: float) -> np.ndarray:
        """float64 [K, 4]: the rectangles of one RECT, POLYGON or PATH."""
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
        elif keyword == "PATH":
            rectangles = path_rectangles(points, width)
        else:
            rectangles = polygon_rectangles(points)
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

    def skip_to_end(self) -> None:
        """Moves past a block that ends with a bare END."""
        while not self.words.is_end("'END'"):
            pass
