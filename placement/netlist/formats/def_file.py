"""Reads DEF files (5.6 to 5.8): units, die, rows, tracks, components, pins, blockages, regions, groups, nets.

Axis legend: W rows, T tracks, M components, D design pins, B blockages, G groups, E nets, C connections of nets.
Lengths are in database units, as the file writes them.
"""

import codecs
import dataclasses
import enum
import os
import re
from typing import Any, TypeVar

import numpy as np

from placement.netlist import _native
from placement.netlist.errors import DesignError, listing, reject
from placement.netlist.files import SourceFile, read_bytes
from placement.netlist.technology import with_brackets

# The `use` columns of design pins and nets contain indices of these words.
USES = ("", "SIGNAL", "POWER", "GROUND", "CLOCK", "TIEOFF", "ANALOG", "SCAN", "RESET")
DIRECTIONS = ("", "INPUT", "OUTPUT", "INOUT", "FEEDTHRU")
# Matches a `;` that ends a statement without a space before it.
_GLUED = re.compile(rb"(?<=[^\s\\;]);(?=\s)")
# These findings make a file unusable; others are notices.
_FAULTS = ("duplicate component names", "connections to components that do not exist")


class PlacementStatus(enum.IntEnum):
    """Whether a component or pin is placed."""

    NONE = 0
    UNPLACED = 1
    PLACED = 2
    FIXED = 3
    COVER = 4


@dataclasses.dataclass(frozen=True, eq=False)
class DefRows:
    """Rows of sites, int32 [W] each; orientation is int8 [W], and `site` an index in `sites`."""

    names: list[str]
    sites: list[str]
    site: np.ndarray
    x: np.ndarray
    y: np.ndarray
    count_x: np.ndarray
    count_y: np.ndarray
    step_x: np.ndarray
    step_y: np.ndarray
    orientation: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class DefTracks:
    """Routing tracks, int32 [T] each; `is_x` (int8 [T]) is 1 for lines at x positions, which are vertical."""

    layers: list[str]
    layer: np.ndarray
    is_x: np.ndarray
    start: np.ndarray
    count: np.ndarray
    step: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class DefComponents:
    """Instances of masters."""

    names: list[str]  # M names, unescaped and with `/` as the divider
    written_names: list[str]  # M names as the file writes them
    masters: list[str]  # the masters' names; master: int32 [M], indices in it
    master: np.ndarray
    status: np.ndarray  # int8 [M], `PlacementStatus`
    x: np.ndarray  # x, y: int32 [M], the lower left corner of the rotated box; 0 where not placed
    y: np.ndarray
    orientation: np.ndarray  # int8 [M]
    begin: np.ndarray  # begin, end: int64 [M], byte range of the entry, from its `-` to after its `;`
    end: np.ndarray
    halo_component: np.ndarray  # int32 [·], components with a halo; halo: int32 [·, 4], left, bottom, right, top
    halo: np.ndarray
    # regions' names; region_component, region: int32 [·], components with a region, and the index of the region
    regions: list[str]
    region_component: np.ndarray
    region: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class DefPins:
    """Pins of the design: those of PINS without further positions (`NAME.extra1`), then those that only NETS names."""

    names: list[str]  # names, written_names: as in `DefComponents`
    written_names: list[str]
    nets: list[str]  # nets, layers: names; net, layer: int32 [D], indices in them, -1: none
    net: np.ndarray
    layers: list[str]
    layer: np.ndarray
    x: np.ndarray  # x, y: int32 [D]; orientation: int8 [D]; status: int8 [D], of the first port
    y: np.ndarray
    box: np.ndarray  # int32 [D, 4], the box around the shapes of the first port, relative to (x, y), in orientation N
    status: np.ndarray
    orientation: np.ndarray
    # direction, use: int8 [D], indices in `DIRECTIONS` and `USES`; special: int8 [D], 1 for SPECIAL
    direction: np.ndarray
    use: np.ndarray
    special: np.ndarray
    begin: np.ndarray  # int64 [D], the byte at which the entry begins


@dataclasses.dataclass(frozen=True, eq=False)
class DefBlockages:
    """Blockages: `layer` and `component` int32 [B], -1 for none (a blockage without a layer blocks placement).

    `partial` float64 [B] is the maximum density in per cent, NaN for none. Blockage b has the polygons
    `start[b]:start[b+1]`, polygon p the points `points[polygon_start[p]:polygon_start[p+1]]`; two points span a box.
    """

    layers: list[str]
    layer: np.ndarray
    components: list[str]
    component: np.ndarray
    is_soft: np.ndarray
    is_pushdown: np.ndarray
    partial: np.ndarray
    start: np.ndarray
    polygon_start: np.ndarray
    points: np.ndarray
    begin: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class DefAreas:
    """Regions and groups.

    Region r has the boxes `boxes[start[r]:start[r+1]]` (int32 [·, 4]). Group g has the name patterns
    `patterns[group_start[g]:group_start[g+1]]` and the region `group_region[g]` ("": none).
    """

    regions: list[str]
    is_guide: np.ndarray
    is_fence: np.ndarray
    start: np.ndarray
    boxes: np.ndarray
    groups: list[str]
    group_region: list[str]
    group_start: np.ndarray
    patterns: list[str]
    group_begin: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class DefNets:
    """Nets without their wires: those of NETS, signals of SPECIALNETS, and those that only pins name.

    A special and a regular net of one name are one net.
    """

    names: list[str]  # E names; start: int32 [E+1]; net e has the connections `start[e]:start[e+1]`
    start: np.ndarray
    component: np.ndarray  # int32 [C], -1 for a pin of the design
    pin: np.ndarray  # int32 [C], the index in `pins`, or the index of the design pin if `component` is -1
    pins: list[str]  # names of masters' pins
    use: np.ndarray  # int8 [E], indices in `USES`; weight: float64 [E]
    weight: np.ndarray
    begin: np.ndarray  # int64 [E], the byte at which the entry begins


@dataclasses.dataclass(frozen=True, eq=False)
class DefStraps:
    """Straight segments of supply nets with SHAPE STRIPE."""

    layers: list[str]  # names; layer: int32 [·], indices in them
    net: np.ndarray  # int32 [·], equal for segments of one net
    layer: np.ndarray
    width: np.ndarray  # int32 [·]
    # int32 [·], x of vertical segments (is_vertical, int8 [·]), y of others; low, high: int32 [·], their ends
    at: np.ndarray
    low: np.ndarray
    high: np.ndarray
    is_vertical: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class DefFile:
    """A DEF file."""

    path: str  # the file's path, for messages; source: the file's name and checksum
    source: SourceFile
    data: bytes = dataclasses.field(repr=False)  # its unpacked bytes
    version: str  # version, divider, design: the header; design is "" if it gives none
    divider: str
    design: str
    units: float  # database units per µm
    die: np.ndarray  # int32 [·, 2], corners; two corners span a box; none: the box around the rows
    rows: DefRows
    tracks: DefTracks
    components: DefComponents
    pins: DefPins
    blockages: DefBlockages
    areas: DefAreas
    nets: DefNets
    straps: DefStraps
    notices: tuple[str, ...]  # unusual but harmless properties of the file

    def line(self, offset: int) -> int:
        """The line of a byte, from 1."""
        return _native.line_at(self.data, int(offset))

    def error(self, offset: int, message: str) -> DesignError:
        """Makes an error, with file and line, about the entry that begins at a byte."""
        return DesignError.at(self.path, self.line(offset), message)


_Section = TypeVar("_Section")


def _section(kind: type[_Section], columns: dict[str, Any], **shaped: int) -> _Section:
    """A section's read-only columns; those in `shaped` are reshaped to the given number of values per row."""
    for name, width in shaped.items():
        columns[name] = columns[name].reshape(-1, width)
    for column in columns.values():
        if isinstance(column, np.ndarray):
            column.setflags(write=False)
    return kind(**columns)


def read_def(path: str | os.PathLike[str], *, units: float = 0.0) -> DefFile:
    """Reads a DEF file, plain or gzipped.

    Args:
        path: the file.
        units: database units per µm if the file does not give them; 0: 100, the default of DEF.

    Raises:
        DesignError: with file and line; the file is truncated, a number is invalid or out of range, a component is
            repeated, a net connects a component that does not exist, or neither a die area nor rows are given.
    """
    data, source = read_bytes(path)
    data, sections, spaced = _parsed(path, data.removeprefix(codecs.BOM_UTF8))
    findings = sections["findings"]
    reject(path, [finding for finding in findings if finding[0] in _FAULTS])
    header = sections["header"]
    if not len(header["die"]) and not len(sections["rows"]["x"]):
        raise DesignError.at(path, 1, "the file has no DIEAREA and no rows")
    assumed = [] if header["units"] else [f"{path}: the file has no UNITS: {units or 100:g} per µm are assumed"]
    sections["nets"]["pins"] = [with_brackets(name, header["bus_bits"]) for name in sections["nets"]["pins"]]
    return DefFile(
        path=str(path),
        source=source,
        data=data,
        version=header["version"],
        divider=header["divider"],
        design=header["design"],
        units=header["units"] or units or 100.0,
        die=header["die"].reshape(-1, 2),
        rows=_section(DefRows, sections["rows"]),
        tracks=_section(DefTracks, sections["tracks"]),
        components=_section(DefComponents, sections["components"], halo=4),
        pins=_section(DefPins, sections["pins"], box=4),
        blockages=_section(DefBlockages, sections["blockages"], points=2),
        areas=_section(DefAreas, sections["areas"], boxes=4),
        nets=_section(DefNets, sections["nets"]),
        straps=_section(DefStraps, sections["straps"]),
        notices=(*spaced, *assumed, *(listing(path, *finding) for finding in findings if finding[0] not in _FAULTS)),
    )


def _parsed(path: str | os.PathLike[str], data: bytes) -> tuple[bytes, dict[str, Any], list[str]]:
    """The text, its sections, and a notice if statements end in a `;` without a space, which is then inserted."""
    try:
        return data, _native.read_def(data), []
    except _native.ParseError as error:
        line, _, message = str(error).partition(":")
        rejected = DesignError.at(path, int(line), message)
    spaced, count = _GLUED.subn(b" ;", data)
    try:
        return spaced, _native.read_def(spaced), [f"{path}: {count:,} missing spaces before ';' are assumed"]
    except _native.ParseError:
        raise rejected from None
