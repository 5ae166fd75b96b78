"""Macros' places handed back to flows: the user's own DEF with the macros' entries changed, Tcl scripts, tables.

Every format says the same: the lower left corner of the turned box, and the orientation.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence

from placement.netlist import files
from placement.netlist.design import Netlist, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.def_file import DefFile
from placement.netlist.formats.findings import refuse

# How Tcl tools call the orientations of LEF/DEF: OpenROAD and ICC2, and Innovus.
_TURNS = {"N": "R0", "S": "R180", "FN": "MY", "FS": "MX", "W": "R90", "E": "R270", "FW": "MXR90", "FE": "MYR90"}
_INNOVUS_TURNS = _TURNS | {"FW": "MX90", "FE": "MY90"}
# The orientations that OpenROAD's place_macro takes.
_UPRIGHT = ("R0", "R180", "MX", "MY")
_DEF_WORD = re.compile(rb'"[^"]*"|#[^\n]*|[^\s"]\S*')
_PLACINGS = (b"PLACED", b"FIXED", b"COVER", b"UNPLACED")


@dataclasses.dataclass(frozen=True)
class MacroLocation:
    """Where a macro stands.

    Attributes:
        name: unescaped, with `/` as the divider.
        written_name: as the user's DEF file writes it.
        master: the master's name, "" where it is not known.
        x, y: database units, the lower left corner of the turned box.
        orientation: of the macro.
    """

    name: str
    written_name: str
    master: str
    x: int
    y: int
    orientation: Orientation


def macro_locations(flat: FlatDesign, netlist: Netlist, placement: Placement) -> list[MacroLocation]:
    """Where the hard macros of a placement stand, in the user's coordinates; of an array each of its macros.

    Args:
        flat: the design as it was read.
        netlist: the flat netlist itself, or a clustered one with the same hard macros by name.
        placement: of `netlist`'s nodes, µm: from the user's origin where `netlist` is the flat netlist, else from the
            lower left corner of the core.

    Raises:
        DesignError: a macro has no position, or the two netlists do not hold the same macros.
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
        found += [
            MacroLocation(
                name=name,
                written_name=written,
                master=master,
                x=round((centre_x - width / 2) * units),
                y=round((centre_y - height / 2) * units),
                orientation=turned,
            )
            for name, written, centre_x, centre_y in named
        ]
    return found


def without_fixed(flat: FlatDesign, locations: Sequence[MacroLocation]) -> list[MacroLocation]:
    """The locations without those of macros that the user's files fix, and that still stand there: pads above all.

    Args:
        flat: the design as it was read.
        locations: from `macro_locations`.
    """
    placement, units = flat.placement, flat.floorplan.units
    width, height = flat.netlist.sides(placement.orientation)
    fixed = flat.netlist.hard[placement.fixed[flat.netlist.hard] & placement.placed[flat.netlist.hard]]
    there = {
        flat.netlist.names[node]: (
            round((float(placement.x[node]) - float(width[node]) / 2) * units),
            round((float(placement.y[node]) - float(height[node]) / 2) * units),
            int(placement.orientation[node]),
        )
        for node in fixed.tolist()
    }
    return [place for place in locations if there.get(place.name) != (place.x, place.y, int(place.orientation))]


def def_bytes(file: DefFile, locations: Sequence[MacroLocation]) -> bytes:
    """The user's DEF file with the macros' entries changed to `FIXED` at their places, and nothing else.

    Raises:
        DesignError: a macro is no component of the file.
    """
    index = {name: component for component, name in enumerate(file.components.written_names)}
    missing = [location.written_name for location in locations if location.written_name not in index]
    if missing:
        refuse(file.path, [("macros that are no components of it", len(missing), [(0, name) for name in missing[:10]])])
    parts: list[bytes] = []
    done = 0
    for location in sorted(locations, key=lambda place: index[place.written_name]):
        component = index[location.written_name]
        begin, end = int(file.components.begin[component]), int(file.components.end[component])
        parts += [file.data[done:begin], _placed_entry(file.data[begin:end], location)]
        done = end
    return b"".join([*parts, file.data[done:]])


def _placed_entry(entry: bytes, location: MacroLocation) -> bytes:
    """A component's entry with its placing replaced, or one added behind its master."""
    fixed = f"FIXED ( {location.x} {location.y} ) {location.orientation.name}".encode()
    words = [word for word in _DEF_WORD.finditer(entry) if not word[0].startswith(b"#")]
    for at, word in enumerate(words[:-1]):
        follower = words[at + 1]
        if word[0] == b"+" and follower[0] in _PLACINGS:
            last = follower if follower[0] == b"UNPLACED" else words[at + 6]
            return entry[: follower.start()] + fixed + entry[last.end() :]
    # `- name master`: the third word.
    behind = words[2].end()
    return entry[:behind] + b" + " + fixed + entry[behind:]


def openroad_tcl(locations: Sequence[MacroLocation], units: float) -> str:
    """A script for OpenROAD: `place_macro` where it can, the database's own calls for macros turned by 90°."""
    lines = []
    for place in locations:
        name, turn = tcl_word(place.written_name), _TURNS[place.orientation.name]
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
        f"{_INNOVUS_TURNS[place.orientation.name]} -fixed"
        for place in locations
    )


def icc2_tcl(locations: Sequence[MacroLocation], units: float) -> str:
    """A script for ICC2: `set_cell_location`."""
    return _script(
        f"set_cell_location -coordinates {{{_microns(place.x, units)} {_microns(place.y, units)}}} "
        f"-orientation {_TURNS[place.orientation.name]} -fixed [get_cells {tcl_word(place.name)}]"
        for place in locations
    )


def csv_text(locations: Sequence[MacroLocation], units: float) -> str:
    """A table: name, master, x, y (µm, lower left corner), orientation."""
    rows = (
        (place.name, place.master, _microns(place.x, units), _microns(place.y, units), place.orientation.name)
        for place in locations
    )
    return files.csv_text([("name", "master", "x", "y", "orientation"), *rows])


def bookshelf_pl(text: str, locations: Sequence[MacroLocation], units: float) -> str:
    """The user's `.pl` file with the macros' lines changed, and nothing else; macros it lacks are added at its end."""
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


def _microns(value: int, units: float) -> str:
    """Database units as µm, without rounding."""
    microns = value / units
    return f"{microns:.0f}" if microns == int(microns) else repr(microns)


def tcl_word(name: str) -> str:
    """A name as one Tcl word, every character taken as it stands."""
    if "{" in name or "}" in name or name.endswith("\\"):
        return "".join(letter if letter.isalnum() or letter in "_/.:-" else "\\" + letter for letter in name)
    return "{" + name + "}"


def _script(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
