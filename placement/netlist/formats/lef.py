"""Reader of LEF files (5.6 to 5.8): units, routing layers, sites and masters; everything else is passed over."""

from __future__ import annotations

import os
import re
from types import MappingProxyType

import numpy as np

from placement.netlist.bytes_file import SourceFile, read_bytes
from placement.netlist.formats.lef_master import read_master
from placement.netlist.formats.lef_statements import LefWords
from placement.netlist.technology import LayerDirection, Master, RoutingLayer, Site, Technology, merged

# Blocks `KEYWORD name … END name` that say nothing about placement.
_NAMED_BLOCKS = ("VIA", "VIARULE", "NONDEFAULTRULE", "ARRAY")
# Blocks `KEYWORD … END KEYWORD`.
_PLAIN_BLOCKS = ("PROPERTYDEFINITIONS", "SPACING", "NOISETABLE", "CORRECTIONTABLE", "IRDROP")
# What LEF58_TYPE calls metal that no signal is routed on.
_NO_ROUTING = ("POLYROUTING", "MIMCAP", "TSVMETAL", "PADMETAL")
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
            size above 0 or is defined twice in different sizes.
    """
    files = [(path, *read_bytes(path)) for path in paths]
    found, widths = dict[int, Technology](), dict[str, float]()
    # Files with layers first: paths in macros are as wide as their layer.
    for number in sorted(range(len(files)), key=lambda number: b"ROUTING" not in files[number][1].upper()):
        path, data, _ = files[number]
        found[number] = _Reader(LefWords(path, _text(data)), widths).read()
    return merged([found[number] for number in range(len(files))]), tuple(source for _, _, source in files)


def _text(data: bytes) -> str:
    """The text of a file; one that is not UTF-8 has a byte of Latin-1 in a comment (©, µ)."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


class _Reader:
    """The file as far as it has been read; `widths` has the layers of all files so far."""

    def __init__(self, words: LefWords, widths: dict[str, float]) -> None:
        self.words = words
        self.units = 0.0
        self.grid = 0.0
        self.layers: dict[str, RoutingLayer] = {}
        self.widths = widths
        self.sites: dict[str, Site] = {}
        self.masters: dict[str, Master] = {}

    def read(self) -> Technology:
        words = self.words
        while (keyword := words.next()) is not None:
            if keyword.upper() == "END" and (words.next() or "").upper() == "LIBRARY":
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
            begin = words.at - 1
            master = read_master(words, name, self.widths)
            known = self.masters.setdefault(name, master)
            if (known.width, known.height) != (master.width, master.height):
                raise words.error(f"macro {name!r} is defined twice, in different sizes", begin)
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
            while words.need("'ENDEXT'").upper() != "ENDEXT":
                pass
        elif keyword in _STATEMENTS:
            words.statement()
        else:
            raise words.error(f"{keyword[:40]!r} begins no statement of a LEF file")

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
            # The first width and pitch count: later ones stand in tables and rules.
            fields.setdefault(keyword, statement)
            if keyword == "PROPERTY":
                properties |= dict(zip(map(str.upper, statement[::2]), map(str.upper, statement[1::2]), strict=False))
        if words.need(f"'{name}'") != name:
            raise words.error(f"layer {name!r} must end with 'END {name}'")
        width = words.number(fields["WIDTH"][0], "the width") if fields.get("WIDTH") else 0.0
        self.widths[name] = width
        is_routing = [word.upper() for word in fields.get("TYPE", [])[:1]] == ["ROUTING"]
        kind = re.findall(r"\w+", properties.get("LEF58_TYPE", ""))
        # The back of the wafer has the power's own metal.
        if not is_routing or "LEF58_BACKSIDE" in properties or not {*kind}.isdisjoint(_NO_ROUTING):
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
                size = words.numbers([word for word in statement if word.upper() != "BY"], "the size")
        if words.need(f"'{name}'") != name:
            raise words.error(f"site {name!r} must end with 'END {name}'")
        if len(size) != 2 or not np.min(size) > 0:
            raise words.error(f"site {name!r} has no size above 0")
        self.sites[name] = Site(name=name, kind=kind, width=size[0], height=size[1])
