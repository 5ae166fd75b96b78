"""Exports macros' positions to other tools: the user's own DEF with the macros' entries changed, Tcl scripts, tables.

`FORMATS` has an entry per format, and is the place to add one (docs/how-to/add-a-format.md). The formats in the user's
coordinates all contain the same values: the lower left corner of the rotated box, and the orientation.
"""

import dataclasses
import functools
import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from placement.config import ConfigError, import_object
from placement.netlist import files
from placement.netlist.design import Design, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError, reject
from placement.netlist.flat_design import FlatDesign, read_flat
from placement.netlist.formats.def_file import DefFile, read_def
from placement.netlist.formats.plc import placement_text
from placement.netlist.formats.protobuf import netlist_text
from placement.netlist.import_constraints import constraints_of
from placement.netlist.load import DEF_NAME, POSITIONS_NAME

# The Tcl names of LEF/DEF's orientations in OpenROAD and ICC2, and in Innovus.
_TCL_NAMES = {"N": "R0", "S": "R180", "FN": "MY", "FS": "MX", "W": "R90", "E": "R270", "FW": "MXR90", "FE": "MYR90"}
_INNOVUS_NAMES = _TCL_NAMES | {"FW": "MX90", "FE": "MY90"}
# The orientations that OpenROAD's place_macro accepts.
_UPRIGHT = ("R0", "R180", "MX", "MY")
_DEF_WORD = re.compile(rb'"[^"]*"|#[^\n]*|[^\s"]\S*')
# The releases whose commands the scripts use; the first line of each script names them.
_OPENROAD = "OpenROAD, a build of 2025 or later"
_INNOVUS = "Innovus 21.1, legacy commands"
_ICC2 = "IC Compiler II, R-2020.09 or later"
TOLERANCE = 1e-6  # tolerance of coordinates in µm
SHOWN_MASTERS = 3
_COARSE = 0.01  # smallest database unit, in µm, whose rounding is reported
_MOVED = 0.01  # smallest reported displacement by rounding, in units
_PLACINGS = (b"PLACED", b"FIXED", b"COVER", b"UNPLACED")
_ORIENTATIONS = tuple(name.encode() for name in Orientation.__members__)
_COMPONENTS = re.compile(rb"(?<!\S)COMPONENTS\s+(\d+)\s*;", re.IGNORECASE)
_END_COMPONENTS = re.compile(rb"(?<!\S)END\s+COMPONENTS\b", re.IGNORECASE)
# The sections that may follow COMPONENTS (LEF/DEF Language Reference).
_BEHIND_COMPONENTS = re.compile(
    rb"(?<!\S)((PINS|PINPROPERTIES|BLOCKAGES|SLOTS|FILLS|SPECIALNETS|NETS|SCANCHAINS|GROUPS)\s+\d+\s*;|BEGINEXT\b|"
    rb"END\s+DESIGN\b)",
    re.IGNORECASE,
)


_Corners = tuple[float, float, float, float]
_Halo = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class MacroLocation:
    """The position of a macro."""

    name: str  # unescaped, with `/` as the divider
    written_name: str  # as the user's DEF file writes it
    master: str  # the master's name, or "" if it is unknown
    x: int  # x, y: database units, the lower left corner of the rotated box
    y: int
    orientation: Orientation  # the macro's orientation
    halo: tuple[int, ...] | None = None  # database units left, below, right and above in orientation N; None: unknown


@dataclasses.dataclass(frozen=True)
class Export:
    """The input of an export format."""

    design: Design  # the design as loaded
    placement: Placement  # the placement of its nodes
    folder: Path  # the design's folder, with the files that it was imported from
    name: str = ""  # the name of the output file, for messages
    changes_only: bool = False  # whether `locations` leaves out macros that stay where the user's files fix them
    blockages: bool = False  # whether a script also adds the placement blockages that the user's files do not have
    cut_rows: bool = False  # whether a script also cuts the rows at the macros

    @functools.cached_property
    def flat(self) -> FlatDesign:
        """The flat design; raises DesignError if the design was not imported."""
        return read_flat(self.folder)

    @property
    def units(self) -> float:
        """Database units per µm."""
        return self.flat.floorplan.units

    @functools.cached_property
    def all_locations(self) -> list[MacroLocation]:
        """All macros in the user's coordinates."""
        return macro_locations(self.flat, self.design.netlist, self.placement, halo=self.design.constraints.halo)

    @functools.cached_property
    def locations(self) -> list[MacroLocation]:
        """The macros to write, in the user's coordinates."""
        return without_fixed(self.flat, self.all_locations) if self.changes_only else self.all_locations

    @property
    def added_blockages(self) -> list[_Corners]:
        """The blockages to add (µm, the user's coordinates): the macros with their halos, and those of the import."""
        return added_blockages(self.flat, self.design, self.placement) if self.blockages else []

    @property
    def cut(self) -> _Halo | None:
        """The distance from the macros at which rows are cut, x and y in µm; None: rows are left unchanged."""
        if not self.cut_rows:
            return None
        across, up = self.design.constraints.halo.reshape(-1, 2).max(axis=0, initial=0.0).tolist()
        return across, up

    def source(self, name: str, what: str) -> Path:
        """The user's own file in the design's folder; raises DesignError if the design was not imported from one."""
        path = self.folder / name
        if not path.is_file():
            raise DesignError(f"{self.folder} was not imported from {what} (there is no {name})")
        return path


@dataclasses.dataclass(frozen=True)
class ExportFormat:
    """The writer of a format and its properties."""

    write: Callable[[Export], str | bytes]  # returns the content of the file
    changes_only: bool = False  # whether the format lists changes, so that fixed macros that stay are omitted
    # whether it contains the design on its canvas, instead of its macros in the user's coordinates
    on_canvas: bool = False
    options: tuple[str, ...] = ()  # which of `blockages` and `cut_rows` it supports


@dataclasses.dataclass(frozen=True)
class Exported:
    """A written format: the file's bytes (gzipped if its name ends in .gz), the number of macros in it, and notes."""

    data: bytes
    macros: int
    notes: tuple[str, ...]


def export_format(name: str) -> ExportFormat:
    """The format of a name in `FORMATS` or an import path such as `my_package.formats.MINE`; raises DesignError."""
    if name in FORMATS:
        return FORMATS[name]
    try:
        found = import_object(name, key="format") if "." in name else None
    except ConfigError as error:
        raise DesignError(str(error)) from None
    if not isinstance(found, ExportFormat):
        known = ", ".join(FORMATS)
        raise DesignError(f"format={name!r}: must be one of {known}, or the import path of an ExportFormat")
    return found


def export_placement(
    design: Design,
    placement: Placement,
    folder: str | os.PathLike[str],
    *,
    form: str,
    name: str = "",
    blockages: bool = False,
    cut_rows: bool = False,
) -> Exported:
    """Exports a placement of a design in a format of `FORMATS` or of the user's own.

    Args:
        design: the design as loaded.
        placement: the placement of its macros.
        folder: the design's folder.
        form: the format, as for `export_format`.
        name: the name of the output file.
        blockages: whether a script also adds placement blockages: the macros with their halos, and those of the import.
        cut_rows: whether a script also cuts the rows at the macros.

    Raises:
        DesignError: the format is unknown or does not support an option, the design was not imported, or not from files
            of this format.
    """
    chosen = export_format(form)
    for option, wanted in (("blockages", blockages), ("cut_rows", cut_rows)):
        if wanted and option not in chosen.options:
            able = ", ".join(known for known, one in FORMATS.items() if option in one.options)
            raise DesignError(f"{option}=true: format={form} cannot express it; formats that can: {able}")
    export = Export(design, placement, Path(folder), name, chosen.changes_only, blockages, cut_rows)
    content = chosen.write(export)
    data = files.packed(name, content)
    if chosen.on_canvas:
        return Exported(data, len(design.netlist.hard), ())
    notes = [*_off_grid(export.flat, export.all_locations), *_rounded(export.flat, design.netlist, placement)]
    notes += cells_beneath(export.flat, design.netlist, placement)
    fixed = len(export.all_locations) - len(export.locations)
    if fixed:
        notes.append(f"{fixed} of {len(export.all_locations)} macros are fixed, and stay as in your files")
    return Exported(data, len(export.locations), tuple(notes))


def _off_grid(flat: FlatDesign, locations: Sequence[MacroLocation]) -> list[str]:
    """Returns a note if macros are not on the manufacturing grid."""
    grid = round(flat.floorplan.manufacturing_grid * flat.floorplan.units)
    corners = np.array([(place.x, place.y) for place in locations], dtype=np.int64).reshape(-1, 2)
    off = int((corners % grid != 0).any(axis=1).sum()) if grid > 1 else 0
    what = f"macros are not on the manufacturing grid of {flat.floorplan.manufacturing_grid:g} µm"
    return [f"{off} {what}"] if off else []


def _rounded(flat: FlatDesign, netlist: Netlist, placement: Placement) -> list[str]:
    """Returns a note if macros move because the database units are coarse, as in Bookshelf."""
    unit = 1 / flat.floorplan.units
    corners = _boxes(flat, netlist, placement)[:, :2] / unit
    moved = int((np.abs(corners - np.round(corners)) > _MOVED).any(axis=1).sum()) if unit >= _COARSE else 0
    return [f"{moved} macros are moved to whole units of your files ({unit:g} µm)"] if moved else []


def _boxes(flat: FlatDesign, netlist: Netlist, placement: Placement) -> np.ndarray:
    """The boxes of the hard macros in the user's coordinates, float64 [M, 4], µm."""
    core = flat.floorplan.core
    shift = (0.0, 0.0) if netlist is flat.netlist else (core.x_low, core.y_low)
    return netlist.boxes(placement, netlist.hard) + np.tile(shift, 2)


def cells_beneath(flat: FlatDesign, netlist: Netlist, placement: Placement) -> list[str]:
    """Returns a note if macros are placed on standard cells that the user's files fix, such as tap cells.

    `netlist` and `placement` are those of `macro_locations`.
    """
    cells = np.flatnonzero((flat.netlist.kind == NodeKind.CELL) & flat.placement.fixed & flat.placement.placed)
    if not len(cells):
        return []
    cell, covered = flat.netlist.boxes(flat.placement, cells), np.zeros(len(cells), dtype=np.bool_)
    for box in _boxes(flat, netlist, placement):
        covered |= (np.minimum(cell[:, 2:], box[2:]) - np.maximum(cell[:, :2], box[:2]) > TOLERANCE).all(axis=1)
    under = cells[covered]
    if not len(under):
        return []
    masters = sorted({flat.master_names[master] for master in flat.master[under].tolist() if master >= 0})
    which = ", ".join(masters[:SHOWN_MASTERS]) + (", …" if len(masters) > SHOWN_MASTERS else "")
    return [
        f"{len(under)} fixed standard cells lie beneath macros (first: {flat.netlist.names[under[0]]!r}; masters: "
        f"{which}): remove them, or export from a floorplan without them (tap cells are inserted after the macros)"
    ]


def added_blockages(flat: FlatDesign, design: Design, placement: Placement) -> list[_Corners]:
    """The placement blockages that the user's files do not have, corners in µm in the user's coordinates.

    They are the boxes of the macros with their halos, and the blockages added at the import.
    """
    netlist, core = design.netlist, flat.floorplan.core
    halo = design.constraints.turned_halo(placement.orientation)[netlist.hard]
    boxes = (_boxes(flat, netlist, placement) + halo * (-1, -1, 1, 1))[halo.any(axis=1)]
    own = {tuple(box) for box in constraints_of(flat)[0].blockages.tolist()}
    extra = [box for box in design.constraints.blockages.tolist() if tuple(box) not in own]
    on_canvas = np.array(extra).reshape(-1, 4) + np.tile((core.x_low, core.y_low), 2)
    units = flat.floorplan.units
    corners = np.round(np.concatenate((boxes, on_canvas)) * units) / units
    return [(box[0], box[1], box[2], box[3]) for box in corners.tolist()]


def macro_locations(
    flat: FlatDesign, netlist: Netlist, placement: Placement, *, halo: np.ndarray | None = None
) -> list[MacroLocation]:
    """The hard macros of a placement in the user's coordinates; an array is expanded to its macros.

    Args:
        flat: the design as read.
        netlist: the flat netlist itself, or a clustered one with the same hard macros by name.
        placement: positions of `netlist`'s nodes in µm, from the user's origin if `netlist` is the flat netlist, else
            from the lower left corner of the core.
        halo: halos of `netlist`'s nodes, float64 [N, 4], left, bottom, right and top in orientation N, µm.

    Raises:
        DesignError: a macro has no position, or the two netlists do not have the same macros.
    """
    is_flat = netlist is flat.netlist
    shift_x, shift_y = (0.0, 0.0) if is_flat else (flat.floorplan.core.x_low, flat.floorplan.core.y_low)
    node_of = {flat.netlist.names[node]: int(node) for node in flat.netlist.hard}
    missing = [netlist.names[node] for node in netlist.hard if netlist.names[node] not in node_of]
    unplaced = [netlist.names[node] for node in netlist.hard[~placement.placed[netlist.hard]]]
    if missing or len(netlist.hard) != len(node_of):
        raise DesignError(
            f"the placement has {len(netlist.hard)} macros and the design {len(node_of)}; they must be the same macros"
            + (f" ({missing[0]!r} is not in the design)" if missing else "")
        )
    if unplaced:
        raise DesignError(f"{len(unplaced)} macros are not placed, the first being {unplaced[0]!r}")
    units = flat.floorplan.units
    array_of = {array.node: array for array in flat.arrays}
    found = []
    for node in netlist.hard.tolist():
        own = node_of[netlist.names[node]]
        turned = Orientation(placement.orientation[node])
        x, y = float(placement.x[node]) + shift_x, float(placement.y[node]) + shift_y
        array = array_of.get(own)
        if array is None:
            width, height = float(flat.netlist.width[own]), float(flat.netlist.height[own])
            named = [(flat.netlist.names[own], flat.written_name(own), x, y)]
        else:
            width, height = array.width, array.height
            at_x, at_y = (side.tolist() for side in array.members_at(x, y, turned))
            named = list(zip(array.names, array.written_names, at_x, at_y, strict=True))
        if turned.swaps_sides:
            width, height = height, width
        master = flat.master_names[flat.master[own]] if flat.master[own] >= 0 else ""
        kept = None if halo is None else tuple(np.round(halo[node] * units).astype(int).tolist())
        for name, written, centre_x, centre_y in named:
            # Rounding half up, not half to even, keeps equal distances equal, so that macros do not overlap.
            corner = math.floor((centre_x - width / 2) * units + 0.5), math.floor((centre_y - height / 2) * units + 0.5)
            found.append(MacroLocation(name, written, master, *corner, orientation=turned, halo=kept))
    return found


def without_fixed(flat: FlatDesign, locations: Sequence[MacroLocation]) -> list[MacroLocation]:
    """The locations without the macros that the user's files fix in the same place, mainly pads."""
    placement, units = flat.placement, flat.floorplan.units
    width, height = flat.netlist.sides(placement.orientation)
    fixed = flat.netlist.hard[placement.fixed[flat.netlist.hard] & placement.placed[flat.netlist.hard]]
    before = {
        flat.netlist.names[node]: (
            math.floor((float(placement.x[node]) - float(width[node]) / 2) * units + 0.5),
            math.floor((float(placement.y[node]) - float(height[node]) / 2) * units + 0.5),
            int(placement.orientation[node]),
        )
        for node in fixed.tolist()
    }
    return [place for place in locations if before.get(place.name) != (place.x, place.y, int(place.orientation))]


def def_bytes(file: DefFile, locations: Sequence[MacroLocation]) -> bytes:
    """The user's DEF file with the macros' entries changed to `FIXED` at their positions, and nothing else.

    A macro whose halo differs from the file's gets a `HALO`. Macros that are not components of the file, which is then
    the floorplan beside another netlist, are added. Raises DesignError if the master of such a macro is unknown.
    """
    index = {name: component for component, name in enumerate(file.components.written_names)}
    missing = [location for location in locations if location.written_name not in index]
    unknown = [(0, location.written_name) for location in missing if not location.master]
    what = "macros that are not components of this file, and whose masters are unknown"
    reject(file.path, [(what, len(unknown), unknown)] if unknown else [])
    locations = [location for location in locations if location.written_name in index]
    halo_of = dict(zip(file.components.halo_component.tolist(), map(tuple, file.components.halo.tolist()), strict=True))
    pieces: list[bytes] = []
    done = 0
    for location in sorted(locations, key=lambda place: index[place.written_name]):
        component = index[location.written_name]
        begin, end = int(file.components.begin[component]), int(file.components.end[component])
        entry = file.data[begin:end]
        if location.halo is None or location.halo == halo_of.get(component, (0, 0, 0, 0)):
            location = dataclasses.replace(location, halo=None)
        else:
            entry = _without_halo(entry)
        pieces += [file.data[done:begin], _placed_entry(entry, location)]
        done = end
    data = b"".join([*pieces, file.data[done:]])
    return _with_components(data, missing) if missing else data


def _with_components(data: bytes, locations: Sequence[MacroLocation]) -> bytes:
    """A DEF file with further components, in its COMPONENTS section or in one added before the later sections."""
    lines = "".join(f"- {place.written_name} {place.master} + {_fixed(place)} ;\n" for place in locations).encode()
    head = _COMPONENTS.search(data)
    if head is None:
        begin, end = b"COMPONENTS %d ;\n" % len(locations), b"END COMPONENTS\n"
        at = next(_BEHIND_COMPONENTS.finditer(data)).start()
        return data[:at] + begin + lines + end + b"\n" + data[at:]
    count = b"COMPONENTS %d ;" % (int(head[1]) + len(locations))
    at = next(_END_COMPONENTS.finditer(data, head.end())).start()
    return data[: head.start()] + count + data[head.end() : at] + lines + data[at:]


def _fixed(location: MacroLocation) -> str:
    """The placement of a component, and its halo if it is written."""
    halo = " + HALO {} {} {} {}".format(*location.halo) if location.halo and any(location.halo) else ""
    return f"FIXED ( {location.x} {location.y} ) {location.orientation.name}{halo}"


def _words(entry: bytes) -> list[re.Match[bytes]]:
    return [word for word in _DEF_WORD.finditer(entry) if not word[0].startswith(b"#")]


def _without_halo(entry: bytes) -> bytes:
    words = _words(entry)
    for at, (word, follower) in enumerate(itertools.pairwise(words)):
        if word[0] == b"+" and follower[0].upper() == b"HALO":
            behind = next(word for word in words[at + 2 :] if word[0] in (b"+", b";"))
            return entry[: word.start()] + entry[behind.start() :]
    return entry


def _placed_entry(entry: bytes, location: MacroLocation) -> bytes:
    """A component's entry with its placement replaced, or appended after its master."""
    fixed, words = _fixed(location).encode(), _words(entry)
    written = [word[0].upper() for word in words]
    for at, (word, follower) in enumerate(itertools.pairwise(written)):
        if word == b"+" and follower in _PLACINGS:
            last = at + 1
            if written[at + 2] == b"(":  # UNPLACED may have a point, too.
                last = written.index(b")", at)
                last += written[last + 1] in _ORIENTATIONS  # The orientation N may be omitted.
            return entry[: words[at + 1].start()] + fixed + entry[words[last].end() :]
    behind = words[2].end()  # This is the third word of `- name master`.
    return entry[:behind] + b" + " + fixed + entry[behind:]


def bookshelf_pl(text: str, locations: Sequence[MacroLocation], units: float) -> str:
    """The user's `.pl` file with the macros' lines changed, and nothing else; macros not in it are appended."""
    place_of = {place.name: place for place in locations}
    lines = text.split("\n")
    for number, line in enumerate(lines):
        words = line.split()
        if words and words[0] in place_of:
            lines[number] = _pl_line(place_of.pop(words[0]), units) + "\r" * line.endswith("\r")
    body, ending = "\n".join(lines), "\r\n" if lines[0].endswith("\r") else "\n"
    added = "".join(f"{_pl_line(place, units)}{ending}" for place in place_of.values())
    return body + (ending if added and body and not body.endswith("\n") else "") + added


def _pl_line(place: MacroLocation, units: float) -> str:
    x, y = _microns(place.x, units), _microns(place.y, units)
    return f"{place.name}\t{x}\t{y}\t: {place.orientation.name} /FIXED"


def openroad_tcl(
    locations: Sequence[MacroLocation],
    units: float,
    *,
    blockages: Sequence[_Corners] = (),
    cut: _Halo | None = None,
) -> str:
    """A script for OpenROAD: `place_macro`, or the database's own calls for macros rotated by 90°.

    It first unplaces the macros: OpenROAD neither moves a macro whose status is firm or locked, nor places one on
    another placed macro (messages ODB-0359, ODB-0360 and MPL-0041). It also rotates them first, because `place_macro`
    compares the box in the former orientation with the core (MPL-0034).
    """
    names = [tcl_word(place.written_name) for place in locations]
    lines = []
    for name, place in zip(names, locations, strict=True):
        lines += [
            f"set inst [[ord::get_db_block] findInst {name}]",
            "$inst setPlacementStatus NONE",
            f"$inst setOrient {_TCL_NAMES[place.orientation.name]}",
        ]
    for name, place in zip(names, locations, strict=True):
        turn = _TCL_NAMES[place.orientation.name]
        if turn in _UPRIGHT:
            x, y = _microns(place.x, units), _microns(place.y, units)
            lines.append(f"place_macro -macro_name {name} -location {{{x} {y}}} -orientation {turn} -exact")
        else:
            lines += [
                f"set inst [[ord::get_db_block] findInst {name}]",
                f"$inst setLocation {place.x} {place.y}",
                "$inst setPlacementStatus FIRM",
            ]
    lines += [f"create_blockage -region {{{_corners(box)}}}" for box in blockages]
    if cut is not None:
        lines.append(f"cut_rows -halo_width_x {_plain(cut[0])} -halo_width_y {_plain(cut[1])}")
    return _script(_OPENROAD, lines)


def innovus_tcl(
    locations: Sequence[MacroLocation],
    units: float,
    *,
    blockages: Sequence[_Corners] = (),
    cut: _Halo | None = None,
) -> str:
    """A script for Innovus, which uses `placeInstance`."""
    lines = [
        f"placeInstance {tcl_word(place.name)} {_microns(place.x, units)} {_microns(place.y, units)} "
        f"{_INNOVUS_NAMES[place.orientation.name]} -fixed"
        for place in locations
    ]
    lines += [f"createPlaceBlockage -type hard -box {_corners(box)}" for box in blockages]
    lines += ["cutRow"] if cut is not None else []
    return _script(_INNOVUS, lines)


def icc2_tcl(locations: Sequence[MacroLocation], units: float, *, blockages: Sequence[_Corners] = ()) -> str:
    """A script for ICC2, which uses `set_cell_location`."""
    lines = [
        f"set_cell_location -coordinates {{{_microns(place.x, units)} {_microns(place.y, units)}}} "
        f"-orientation {_TCL_NAMES[place.orientation.name]} -fixed [get_cells {tcl_word(place.name)}]"
        for place in locations
    ]
    lines += [
        f"create_placement_blockage -type hard -boundary {{{{{_corners(box[:2])}}} {{{_corners(box[2:])}}}}}"
        for box in blockages
    ]
    return _script(_ICC2, lines)


def csv_text(locations: Sequence[MacroLocation], units: float) -> str:
    """A table with the columns name, master, x, y (µm, lower left corner) and orientation."""
    rows = (
        (place.name, place.master, _microns(place.x, units), _microns(place.y, units), place.orientation.name)
        for place in locations
    )
    return files.csv_text([("name", "master", "x", "y", "orientation"), *rows])


def _microns(value: int, units: float) -> str:
    """Converts database units to µm without rounding."""
    return _plain(float(value / units))


def tcl_word(name: str) -> str:
    """A name as one Tcl word, every character taken literally."""
    if "{" in name or "}" in name or name.endswith("\\"):
        return "".join(letter if letter.isalnum() or letter in "_/.:-" else "\\" + letter for letter in name)
    return "{" + name + "}"


def _corners(values: Sequence[float]) -> str:
    return " ".join(map(_plain, values))


def _plain(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else repr(value)


def _script(written_for: str, lines: Iterable[str]) -> str:
    """The lines of a script, below a line that names the tool that it was written for."""
    return "".join(f"{line}\n" for line in (f"# Written for {written_for}.", *lines))


def _bookshelf(export: Export) -> bytes:
    positions = export.source(POSITIONS_NAME, "a Bookshelf design with a .pl file")
    text = files.unpacked_bytes(positions).decode(errors="surrogateescape")
    return bookshelf_pl(text, export.locations, export.units).encode(errors="surrogateescape")


def _script_by(write: Callable[..., str], *options: str) -> ExportFormat:
    """The format of a script that `write` makes and that supports the options."""

    def text(export: Export) -> str:
        cut = {"cut": export.cut} if "cut_rows" in options else {}
        return write(export.locations, export.units, blockages=export.added_blockages, **cut)

    return ExportFormat(text, changes_only=True, options=options)


FORMATS: dict[str, ExportFormat] = {
    "def": ExportFormat(
        lambda export: def_bytes(read_def(export.source(DEF_NAME, "a DEF file")), export.locations), changes_only=True
    ),
    "openroad": _script_by(openroad_tcl, "blockages", "cut_rows"),
    "innovus": _script_by(innovus_tcl, "blockages", "cut_rows"),
    "icc2": _script_by(icc2_tcl, "blockages"),
    "bookshelf": ExportFormat(_bookshelf),
    "plc": ExportFormat(lambda export: placement_text(export.name, export.design, export.placement), on_canvas=True),
    "csv": ExportFormat(lambda export: csv_text(export.locations, export.units)),
    "protobuf": ExportFormat(lambda export: netlist_text(export.design.netlist, export.placement), on_canvas=True),
}
