"""Macros' places handed back to other tools: the user's own DEF with the macros' entries changed, Tcl scripts, tables.

`FORMATS` has an entry per format, and is the place to add one (docs/how-to/add-a-format.md). The formats in the user's
coordinates all contain the same: the lower left corner of the rotated box, and the orientation.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from placement.netlist import files
from placement.netlist.design import Design, Netlist, Orientation, Placement
from placement.netlist.errors import DesignError, reject
from placement.netlist.flat_design import FlatDesign, read_flat
from placement.netlist.formats.def_file import DefFile, read_def
from placement.netlist.formats.plc import placement_text
from placement.netlist.formats.protobuf import netlist_text
from placement.netlist.load import DEF_NAME, POSITIONS_NAME

# The Tcl names of LEF/DEF's orientations in OpenROAD and ICC2, and in Innovus.
_TCL_NAMES = {"N": "R0", "S": "R180", "FN": "MY", "FS": "MX", "W": "R90", "E": "R270", "FW": "MXR90", "FE": "MYR90"}
_INNOVUS_NAMES = _TCL_NAMES | {"FW": "MX90", "FE": "MY90"}
# The orientations that OpenROAD's place_macro takes.
_UPRIGHT = ("R0", "R180", "MX", "MY")
_DEF_WORD = re.compile(rb'"[^"]*"|#[^\n]*|[^\s"]\S*')
_PLACINGS = (b"PLACED", b"FIXED", b"COVER", b"UNPLACED")
_COMPONENTS = re.compile(rb"^[ \t]*COMPONENTS\s+(\d+)\s*;", re.MULTILINE)
_END_COMPONENTS = re.compile(rb"^[ \t]*END\s+COMPONENTS\b", re.MULTILINE)
# The sections that may follow COMPONENTS (LEF/DEF Language Reference).
_BEHIND_COMPONENTS = re.compile(
    rb"^[ \t]*(PINS|PINPROPERTIES|BLOCKAGES|SLOTS|FILLS|SPECIALNETS|NETS|SCANCHAINS|GROUPS|BEGINEXT|END\s+DESIGN)\b",
    re.MULTILINE,
)


@dataclasses.dataclass(frozen=True)
class MacroLocation:
    """Where a macro is located.

    Attributes:
        name: unescaped, with `/` as the divider.
        written_name: as the user's DEF file writes it.
        master: the master's name, or "" if it is unknown.
        x, y: database units, the lower left corner of the rotated box.
        orientation: of the macro.
    """

    name: str
    written_name: str
    master: str
    x: int
    y: int
    orientation: Orientation


@dataclasses.dataclass(frozen=True)
class Export:
    """What a format is written from.

    Attributes:
        design: as it was loaded.
        placement: of its nodes.
        folder: of the design, with the files that it was imported from.
        name: of the file that is written, for messages.
        changes_only: whether `locations` leaves out macros that stay where the user's files fix them.
    """

    design: Design
    placement: Placement
    folder: Path
    name: str = ""
    changes_only: bool = False

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
        return macro_locations(self.flat, self.design.netlist, self.placement)

    @functools.cached_property
    def locations(self) -> list[MacroLocation]:
        """The macros to write, in the user's coordinates."""
        return without_fixed(self.flat, self.all_locations) if self.changes_only else self.all_locations

    def source(self, name: str, what: str) -> Path:
        """The user's own file in the design's folder; raises DesignError if the design was not imported from one."""
        path = self.folder / name
        if not path.is_file():
            raise DesignError(f"{self.folder} was not imported from {what} (there is no {name})")
        return path


@dataclasses.dataclass(frozen=True)
class ExportFormat:
    """How one format is written.

    Attributes:
        write: the content of the file.
        changes_only: whether the format says what to change, so that fixed macros that stay are left out.
        on_canvas: whether it contains the design on its canvas, instead of its macros in the user's coordinates.
    """

    write: Callable[[Export], str | bytes]
    changes_only: bool = False
    on_canvas: bool = False


@dataclasses.dataclass(frozen=True)
class Exported:
    """A written format: the file's bytes, the number of macros in it, and notes on them."""

    data: bytes
    macros: int
    notes: tuple[str, ...]


def export_format(name: str) -> ExportFormat:
    """The format of a name in `FORMATS`, or of an import path such as `my_package.formats.MINE`; else DesignError."""
    if name in FORMATS:
        return FORMATS[name]
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute) if module else None
    except (ImportError, AttributeError) as error:
        raise DesignError(f"format={name!r}: {error}") from None
    if not isinstance(found, ExportFormat):
        known = ", ".join(FORMATS)
        raise DesignError(f"format={name!r}: must be one of {known}, or the import path of an ExportFormat")
    return found


def export_placement(
    design: Design, placement: Placement, folder: str | os.PathLike[str], *, form: str, name: str = ""
) -> Exported:
    """A placement of a design, as it was loaded from its folder, in a format of `FORMATS` or of the user's own.

    `form` is the format, as `export_format` takes it; `name`, of the file that will be written, is for messages.

    Raises:
        DesignError: the format is unknown, the design was not imported, or not from files of this format.
    """
    chosen = export_format(form)
    export = Export(design, placement, Path(folder), name, changes_only=chosen.changes_only)
    content = chosen.write(export)
    data = content.encode() if isinstance(content, str) else content
    if chosen.on_canvas:
        return Exported(data, len(design.netlist.hard), ())
    notes = _off_grid(export.flat, export.all_locations)
    fixed = len(export.all_locations) - len(export.locations)
    if fixed:
        notes.append(f"{fixed} of {len(export.all_locations)} macros are fixed, and stay as your files have them")
    return Exported(data, len(export.locations), tuple(notes))


def _off_grid(flat: FlatDesign, locations: Sequence[MacroLocation]) -> list[str]:
    """A note if macros are not on the manufacturing grid."""
    grid = round(flat.floorplan.manufacturing_grid * flat.floorplan.units)
    corners = np.array([(place.x, place.y) for place in locations], dtype=np.int64).reshape(-1, 2)
    off = int((corners % grid != 0).any(axis=1).sum()) if grid > 1 else 0
    what = f"macros are not on the manufacturing grid of {flat.floorplan.manufacturing_grid:g} µm"
    return [f"{off} {what}"] if off else []


def macro_locations(flat: FlatDesign, netlist: Netlist, placement: Placement) -> list[MacroLocation]:
    """The hard macros of a placement in the user's coordinates; of an array, each of its macros.

    Args:
        flat: the design as it was read.
        netlist: the flat netlist itself, or a clustered one with the same hard macros by name.
        placement: of `netlist`'s nodes, µm: from the user's origin if `netlist` is the flat netlist, else from the
            lower left corner of the core.

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
            f"the placement has {len(netlist.hard)} macros and the design {len(node_of)}: not the same ones"
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
        for name, written, centre_x, centre_y in named:
            corner = round((centre_x - width / 2) * units), round((centre_y - height / 2) * units)
            found.append(MacroLocation(name, written, master, *corner, orientation=turned))
    return found


def without_fixed(flat: FlatDesign, locations: Sequence[MacroLocation]) -> list[MacroLocation]:
    """The locations of macros, without those that the user's files fix in the same place: pads above all."""
    placement, units = flat.placement, flat.floorplan.units
    width, height = flat.netlist.sides(placement.orientation)
    fixed = flat.netlist.hard[placement.fixed[flat.netlist.hard] & placement.placed[flat.netlist.hard]]
    before = {
        flat.netlist.names[node]: (
            round((float(placement.x[node]) - float(width[node]) / 2) * units),
            round((float(placement.y[node]) - float(height[node]) / 2) * units),
            int(placement.orientation[node]),
        )
        for node in fixed.tolist()
    }
    return [place for place in locations if before.get(place.name) != (place.x, place.y, int(place.orientation))]


def def_bytes(file: DefFile, locations: Sequence[MacroLocation]) -> bytes:
    """The user's DEF file with the macros' entries changed to `FIXED` at their places, and nothing else.

    Macros are added to a file that has none of them, as a floorplan beside another netlist.

    Raises:
        DesignError: a macro is no component of the file, but others are.
    """
    index = {name: component for component, name in enumerate(file.components.written_names)}
    missing = [location.written_name for location in locations if location.written_name not in index]
    if missing and len(missing) == len(locations) and all(location.master for location in locations):
        return _with_components(file.data, locations)
    if missing:
        reject(file.path, [("macros that are no components of it", len(missing), [(0, name) for name in missing[:10]])])
    pieces: list[bytes] = []
    done = 0
    for location in sorted(locations, key=lambda place: index[place.written_name]):
        component = index[location.written_name]
        begin, end = int(file.components.begin[component]), int(file.components.end[component])
        pieces += [file.data[done:begin], _placed_entry(file.data[begin:end], location)]
        done = end
    return b"".join([*pieces, file.data[done:]])


def _with_components(data: bytes, locations: Sequence[MacroLocation]) -> bytes:
    """A DEF file with further components, in its section of them, or in one before what follows that section."""
    lines = "".join(
        f"- {place.written_name} {place.master} + FIXED ( {place.x} {place.y} ) {place.orientation.name} ;\n"
        for place in locations
    ).encode()
    head = _COMPONENTS.search(data)
    if head is None:
        begin, end = b"COMPONENTS %d ;\n" % len(locations), b"END COMPONENTS\n"
        at = next(_BEHIND_COMPONENTS.finditer(data)).start()
        return data[:at] + begin + lines + end + b"\n" + data[at:]
    count = b"COMPONENTS %d ;" % (int(head[1]) + len(locations))
    at = next(_END_COMPONENTS.finditer(data, head.end())).start()
    return data[: head.start()] + count + data[head.end() : at] + lines + data[at:]


def _placed_entry(entry: bytes, location: MacroLocation) -> bytes:
    """A component's entry with its placement replaced, or one added behind its master."""
    fixed = f"FIXED ( {location.x} {location.y} ) {location.orientation.name}".encode()
    words = [word for word in _DEF_WORD.finditer(entry) if not word[0].startswith(b"#")]
    for at, word in enumerate(words[:-1]):
        follower = words[at + 1]
        if word[0] == b"+" and follower[0] in _PLACINGS:
            has_point = words[at + 2][0] == b"(" if at + 2 < len(words) else False  # UNPLACED may have one, too
            last = words[at + 6] if has_point else follower
            return entry[: follower.start()] + fixed + entry[last.end() :]
    behind = words[2].end()  # the third word of `- name master`
    return entry[:behind] + b" + " + fixed + entry[behind:]


def bookshelf_pl(text: str, locations: Sequence[MacroLocation], units: float) -> str:
    """The user's `.pl` file with the macros' lines changed, and nothing else; macros that it lacks are appended."""
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


def openroad_tcl(locations: Sequence[MacroLocation], units: float) -> str:
    """A script for OpenROAD: `place_macro`, or for macros rotated by 90° the database's own calls."""
    lines = []
    for place in locations:
        name, turn = tcl_word(place.written_name), _TCL_NAMES[place.orientation.name]
        if turn in _UPRIGHT:
            x, y = _microns(place.x, units), _microns(place.y, units)
            lines.append(f"place_macro -macro_name {name} -location {{{x} {y}}} -orientation {turn} -exact")
        else:
            lines += [
                f"set inst [[ord::get_db_block] findInst {name}]",
                f"$inst setOrient {turn}",
                f"$inst setLocation {place.x} {place.y}",
                "$inst setPlacementStatus FIRM",
            ]
    return _script(lines)


def innovus_tcl(locations: Sequence[MacroLocation], units: float) -> str:
    """A script for Innovus: `placeInstance`."""
    return _script(
        f"placeInstance {tcl_word(place.name)} {_microns(place.x, units)} {_microns(place.y, units)} "
        f"{_INNOVUS_NAMES[place.orientation.name]} -fixed"
        for place in locations
    )


def icc2_tcl(locations: Sequence[MacroLocation], units: float) -> str:
    """A script for ICC2: `set_cell_location`."""
    return _script(
        f"set_cell_location -coordinates {{{_microns(place.x, units)} {_microns(place.y, units)}}} "
        f"-orientation {_TCL_NAMES[place.orientation.name]} -fixed [get_cells {tcl_word(place.name)}]"
        for place in locations
    )


def csv_text(locations: Sequence[MacroLocation], units: float) -> str:
    """A table: name, master, x, y (µm, lower left corner), orientation."""
    rows = (
        (place.name, place.master, _microns(place.x, units), _microns(place.y, units), place.orientation.name)
        for place in locations
    )
    return files.csv_text([("name", "master", "x", "y", "orientation"), *rows])


def _microns(value: int, units: float) -> str:
    """Database units as µm, without rounding."""
    microns = float(value / units)
    return f"{microns:.0f}" if microns == int(microns) else repr(microns)


def tcl_word(name: str) -> str:
    """A name as one Tcl word, every character taken literally."""
    if "{" in name or "}" in name or name.endswith("\\"):
        return "".join(letter if letter.isalnum() or letter in "_/.:-" else "\\" + letter for letter in name)
    return "{" + name + "}"


def _script(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _def(export: Export) -> bytes:
    return def_bytes(read_def(export.source(DEF_NAME, "a DEF file")), export.locations)


def _bookshelf(export: Export) -> str:
    positions = export.source(POSITIONS_NAME, "a Bookshelf design with a .pl file")
    return bookshelf_pl(files.unpacked_bytes(positions).decode(), export.locations, export.units)


FORMATS: dict[str, ExportFormat] = {
    "def": ExportFormat(_def, changes_only=True),
    "openroad": ExportFormat(lambda export: openroad_tcl(export.locations, export.units), changes_only=True),
    "innovus": ExportFormat(lambda export: innovus_tcl(export.locations, export.units), changes_only=True),
    "icc2": ExportFormat(lambda export: icc2_tcl(export.locations, export.units), changes_only=True),
    "bookshelf": ExportFormat(_bookshelf),
    "plc": ExportFormat(lambda export: placement_text(export.name, export.design, export.placement), on_canvas=True),
    "csv": ExportFormat(lambda export: csv_text(export.locations, export.units)),
    "protobuf": ExportFormat(lambda export: netlist_text(export.design.netlist, export.placement), on_canvas=True),
}
