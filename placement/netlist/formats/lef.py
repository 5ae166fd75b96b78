"""Reader of LEF files (5.6 to 5.8): units, routing layers, sites and masters; everything else is passed over."""

from __future__ import annotations

import os
from types import MappingProxyType

import numpy as np

from placement.netlist.bytes_file import SourceFile, read_bytes
from placement.netlist.files import decoded
from placement.netlist.formats.lef_master import read_master
from placement.netlist.formats.lef_statements import LefWords
from placement.netlist.technology import LayerDirection, Master, RoutingLayer, Site, Technology, merged

# Blocks `KEYWORD name … END name` that say nothing about placement.
_NAMED_BLOCKS = ("VIA", "VIARULE", "NONDEFAULTRULE", "ARRAY")
# Blocks `KEYWORD … END KEYWORD`.
_PLAIN_BLOCKS = ("PROPERTYDEFINITIONS", "SPACING", "NOISETABLE", "CORRECTIONTABLE", "IRDROP")
_STATEMENTS = (
    "VERSION", "NAMESCASESENSITIVE", "BUSBITCHARS", "DIVIDERCHAR", "CLEARANCEMEASURE", "USEMINSPACING",
    "NOWIREEXTENSIONATPIN", "FIXEDMASK", "MAXVIASTACK", "MINFEATURE", "DIELECTRIC", "UNIVERSALNOISEMARGIN",
    "EDGERATETHRESHOLD1", "EDGERATETHRESHOLD2", "EDGERATESCALEFACTOR", "INPUTPINANTENNASIZE", "ANTENNAINPUTGATEAREA",
    "OUTPUTPINANTENNASIZE", "INOUTPINANTENNASIZE", "ANTENNAINOUTDIFFAREA", "ANTENNAOUTPUTDIFFAREA",
)  # fmt: skip


def read_lefs(paths: list[str | os.PathLike[str]]) -> tuple[Technology, tuple[SourceFile, ...]]:
    """LEF files, plain or gzipped, as one (see `placement.netlist.technology.merged`), and where it comes from.

    Raises:
        DesignError: with file and line; a file is cut, a statement is unknown, a number is none, a macro has no
            size above 0 or is defined twice.
    """
    found, sources = [], []
    for path in paths:
        data, source = read_bytes(path)
        found.append(_Reader(LefWords(path, decoded(data, path))).read())
        sources.append(source)
    return merged(found), tuple(sources)


class _Reader:
    """The file as far as it has been read."""

    def __init__(self, words: LefWords) -> None:
        self.words = words
        self.units = 0.0
        self.grid = 0.0
        self.layers: dict[str, RoutingLayer] = {}
        self.widths: dict[str, float] = {}
        self.sites: dict[str, Site] = {}
        self.masters: dict[str, Master] = {}

    def read(self) -> Technology:
        words = self.words
        while (keyword := words.next()) is not None:
            if keyword == "END" and words.next() == "LIBRARY":
                break
            self.entry(keyword.upper())
        if not (self.masters or self.layers or self.sites):
            raise words.error("the file holds no layer, site or macro; expected a LEF file")
        return Technology(
            units=self.units,
            manufacturing_grid=self.grid,
            layers=tuple(self.layers.values()),
            sites=MappingProxyType(self.sites),
            masters=MappingProxyType(self.masters),
        )

    def entry(self, keyword: str) -> None:
        words = self.words
        if keyword == "MACRO":
            name = words.name("the macro's name")
            if name in self.masters:
                raise words.error(f"macro {name!r} is defined twice")
            self.masters[name] = read_master(words, name, self.widths)
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
            while words.need("'ENDEXT'") != "ENDEXT":
                pass
        elif keyword in _STATEMENTS:
            words.statement()
        else:
            raise words.error(f"{keyword[:40]!r} begins no statement of a LEF file")

    def read_units(self) -> None:
        words = self.words
        while (keyword := words.need("'END UNITS'")) != "END":
            statement = words.statement()
            if keyword.upper() == "DATABASE" and len(statement) == 2:
                self.units = words.number(statement[1], "database units per micron")
                if self.units <= 0:
                    raise words.error(f"database units per micron are {self.units:g}; must be above 0")
        words.need("'UNITS'")

    def layer(self, name: str) -> None:
        words = self.words
        fields: dict[str, list[str]] = {}
        while (keyword := words.need(f"'END {name}'")) != "END":
            # The first width and pitch count: later ones stand in tables and rules.
            fields.setdefault(keyword.upper(), words.statement())
        if words.need(f"'{name}'") != name:
            raise words.error(f"layer {name!r} must end with 'END {name}'")
        width = words.number(fields["WIDTH"][0], "the width") if fields.get("WIDTH") else 0.0
        self.widths[name] = width
        if [word.upper() for word in fields.get("TYPE", [])[:1]] != ["ROUTING"]:
            return
        pitch = words.numbers(fields.get("PITCH", [])[:2], "the pitch") or [0.0]
        if min(pitch) < 0:
            raise words.error(f"layer {name!r}: its pitch must be above 0")
        self.layers[name] = RoutingLayer(
            name=name,
            direction=self.direction(name, fields.get("DIRECTION", [])),
            pitch_x=pitch[0],
            pitch_y=pitch[-1],
            width=width,
            number=len(self.layers),
        )

    def direction(self, name: str, words: list[str]) -> LayerDirection:
        text = words[0].upper() if words else ""
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
                size = words.numbers([word for word in statement if word.upper() != "BY"], "the size")
        if words.need(f"'{name}'") != name:
            raise words.error(f"site {name!r} must end with 'END {name}'")
        if len(size) != 2 or not np.min(size) > 0:
            raise words.error(f"site {name!r} has no size above 0")
        self.sites[name] = Site(name=name, kind=kind, width=size[0], height=size[1])
