"""`constraints.json`: a design's constraints on disk, with macros by name.

`docs/reference/file-formats.md` describes the file. Axis legend: N nodes, K rectangles.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from placement.netlist.constraints import ALL_ORIENTATIONS, Constraints, MacroGrid, SnapGrid
from placement.netlist.design import Netlist, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.files import read_text, write_whole
from placement.netlist.floorplan import Region

CONSTRAINTS_NAME = "constraints.json"
_FORMAT_VERSION = 1
_KEYS = (
    *("form", "halos", "blockages", "regions", "orientations", "grid", "macro_grids", "port_keepout", "spacing"),
    "channel",
)
_REGION_KEYS = ("name", "rectangles", "macros", "exclusive")


def hard_names(netlist: Netlist) -> dict[str, int]:
    """Maps the hard macros' names to their nodes, in file order."""
    return {netlist.names[node]: int(node) for node in netlist.hard}


def matching(names: Mapping[str, int], pattern: str, what: str) -> list[int]:
    """The nodes whose names match a pattern, in their order; `*` matches anything.

    Raises DesignError if no name matches; `what` names the source of the pattern.
    """
    found = [names[pattern]] if pattern in names else []
    if "*" in pattern:
        expression = re.compile(".*".join(re.escape(piece) for piece in pattern.split("*")), re.DOTALL)
        found = [node for name, node in names.items() if expression.fullmatch(name)]
    if not found:
        raise _Wrong(f"{what}: the netlist has no hard macro {pattern!r}", pattern)
    return found


def orientation_set(names: Sequence[str]) -> int:
    """The bit set of some orientations; raises KeyError for an unknown name."""
    return sum({1 << Orientation[name] for name in names})


def orientation_names(allowed: int) -> list[str]:
    """The names of the orientations in a bit set."""
    return [orientation.name for orientation in Orientation if allowed >> orientation & 1]


def read_constraints(path: str | os.PathLike[str], netlist: Netlist) -> Constraints:
    """The constraints in a file.

    Raises DesignError if the file cannot be read, is not JSON, has an unknown key or macro, a number that is not finite
    or is negative, an empty rectangle, or no allowed orientation; the message has the file, and the line where it is
    known.
    """
    return constraints_of(path, read_text(path), netlist)


def constraints_of(path: str | os.PathLike[str], text: str, netlist: Netlist) -> Constraints:
    """The constraints in the text of a file; raises DesignError like `read_constraints`."""
    try:
        return _read(json.loads(text), netlist)
    except json.JSONDecodeError as error:
        raise DesignError.at(path, error.lineno, f"not valid JSON: {error.msg}") from None
    except RecursionError:
        raise DesignError(f"{path}: not a constraints file: lists are nested too deeply") from None
    except DesignError as error:
        line = _line_of(text, error.quoted if isinstance(error, _Wrong) else "")
        raise (DesignError(f"{path}: {error}") if line is None else DesignError.at(path, line, str(error))) from None


class _Wrong(DesignError):
    """An error in a file, with a string in the file that identifies the line, or "" if it is unknown."""

    def __init__(self, message: str, quoted: str = "") -> None:
        super().__init__(message)
        self.quoted = quoted


def _line_of(text: str, quoted: str) -> int | None:
    for ascii_only in (False, True) if quoted else ():
        at = text.find(json.dumps(quoted, ensure_ascii=ascii_only))
        if at >= 0:
            return text.count("\n", 0, at) + 1
    return None


def _read(values: Any, netlist: Netlist) -> Constraints:
    if not isinstance(values, dict):
        raise _Wrong("must be an object of constraints: {…}")
    _check_keys(values, _KEYS, "the file")
    if values.get("form", _FORMAT_VERSION) != _FORMAT_VERSION:
        raise _Wrong(f"form: {values['form']!r} is unknown; this version reads form {_FORMAT_VERSION}", "form")
    names, every = hard_names(netlist), list(Orientation.__members__)
    halo, allowed = np.zeros((netlist.num_nodes, 4)), np.full(netlist.num_nodes, ALL_ORIENTATIONS)
    for pattern, sides in _object("halos", values.get("halos", {})).items():
        is_whole = isinstance(sides, list) and len(sides) == 4
        four = [_number(pattern, side) for side in sides] if is_whole else [*_pair(pattern, sides)] * 2
        if not all(0 <= side < np.inf for side in four):
            raise _Wrong(f"halos: {pattern!r} has {sides}; must be finite and at least 0 µm", pattern)
        halo[matching(names, pattern, "halos")] = four
    for pattern, turns in _object("orientations", values.get("orientations", {})).items():
        if not _list(pattern, turns) or any(turn not in every for turn in turns):
            known = ", ".join(every)
            raise _Wrong(f"orientations: {pattern!r} has {turns!r}; must be at least one of {known}", pattern)
        allowed[matching(names, pattern, "orientations")] = orientation_set(turns)
    return Constraints(
        halo=halo,
        blockages=_rectangles("blockages", values.get("blockages", [])),
        regions=tuple(_region(one, names) for one in _list("regions", values.get("regions", []))),
        orientations=allowed,
        grid=_grid("grid", values.get("grid", {})),
        macro_grids=tuple(_macro_grid(one, names) for one in _list("macro_grids", values.get("macro_grids", []))),
        port_keepout=_number("port_keepout", values.get("port_keepout", 0.0)),
        spacing=_number("spacing", values.get("spacing", 0.0)),
        channel=_pair("channel", values.get("channel", [0.0, 0.0])),
    )


def _region(values: Any, names: Mapping[str, int]) -> Region:
    _check_keys(_object("regions", values), _REGION_KEYS, "a region")
    name, exclusive = values.get("name"), values.get("exclusive", False)
    if not isinstance(name, str) or not name:
        raise _Wrong(f"regions: the name {name!r} must be a string", "regions")
    nodes = _members(f"region {name!r}", name, values, names)
    if not isinstance(exclusive, bool):
        raise _Wrong(f"region {name!r}: exclusive is {exclusive!r}; must be true or false", name)
    rectangles = _rectangles(name, values.get("rectangles", []))
    return Region(name, rectangles, nodes, is_exclusive=exclusive)


def _members(what: str, quoted: str, values: Any, names: Mapping[str, int]) -> np.ndarray:
    """The nodes of the macros that an object's patterns name, int32 [·]."""
    nodes: list[int] = []
    for pattern in _list(quoted, values.get("macros", [])):
        if not isinstance(pattern, str):
            raise _Wrong(f"{what}: the macro {pattern!r} must be a string", quoted)
        nodes += matching(names, pattern, what)
    return np.unique(np.array(nodes, dtype=np.int32))


def _grid(what: str, values: Any) -> SnapGrid:
    _check_keys(_object(what, values), ("pitch", "offset"), what)
    return SnapGrid(*_pair("pitch", values.get("pitch", [0, 0])), *_pair("offset", values.get("offset", [0, 0])))


def _macro_grid(values: Any, names: Mapping[str, int]) -> MacroGrid:
    what = "macro_grids"
    _check_keys(_object(what, values), ("macros", "grids"), what)
    nodes = _members(what, what, values, names)
    grids = _object(what, values.get("grids", {}))
    if set(grids) != set(Orientation.__members__):
        raise _Wrong(f"{what}: grids must have the keys {', '.join(Orientation.__members__)}", what)
    found = tuple(_grid(f"{what}: {name}", grids[name]) for name in Orientation.__members__)
    return MacroGrid(nodes, found)


def _check_keys(values: Mapping[str, Any], keys: Sequence[str], what: str) -> None:
    unknown = next((key for key in values if key not in keys), None)
    if unknown is not None:
        raise _Wrong(f"{what} has the unknown key {unknown!r}; known keys are {', '.join(keys)}", unknown)


def _object(what: str, values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise _Wrong(f"{what}: {values!r} must be an object {{name: …}}", what)
    return values


def _list(what: str, values: Any, length: int | None = None, right: str = "a list") -> list[Any]:
    if not isinstance(values, list) or length not in (None, len(values)):
        raise _Wrong(f"{what}: {values!r} must be {right}", what)
    return values


def _number(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _Wrong(f"{what}: {value!r} must be a number", what)
    try:
        return float(value)
    except OverflowError:
        raise _Wrong(f"{what}: a number of more than 300 digits is too large", what) from None


def _pair(what: str, values: Any) -> tuple[float, float]:
    x, y = _list(what, values, 2, "two numbers, [x, y]")
    return _number(what, x), _number(what, y)


def _rectangles(what: str, values: Any) -> np.ndarray:
    right = "[x_low, y_low, x_high, y_high]"
    rows = [[_number(what, side) for side in _list(what, corners, 4, right)] for corners in _list(what, values)]
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def write_constraints(path: str | os.PathLike[str], netlist: Netlist, constraints: Constraints) -> None:
    """Writes a design's constraints, entirely or not at all; writes no file if there are none. Raises OSError."""
    if constraints.any or constraints.spacing:
        write_whole(path, constraints_text(netlist, constraints))
    else:
        Path(path).unlink(missing_ok=True)


def constraints_text(netlist: Netlist, constraints: Constraints) -> str:
    """The constraints as text: a line per halo, blockage, region and set of orientations, without defaults."""
    names, grid = hard_names(netlist), constraints.grid
    halos = {name: _halo_values(constraints.halo[node]) for name, node in names.items() if constraints.halo[node].any()}
    allowed = {
        name: orientation_names(int(constraints.orientations[node]))
        for name, node in names.items()
        if constraints.orientations[node] != ALL_ORIENTATIONS
    }
    regions = [
        {
            "name": region.name,
            "rectangles": region.rectangles.tolist(),
            "macros": [netlist.names[node] for node in region.nodes],
            "exclusive": region.is_exclusive,
        }
        for region in constraints.regions
    ]
    entries = [f'"form": {_FORMAT_VERSION}']
    entries += _by_name("halos", halos, len(names))
    entries += _lines("blockages", "[]", [json.dumps(corners) for corners in constraints.blockages.tolist()])
    entries += _lines("regions", "[]", [json.dumps(region, ensure_ascii=False) for region in regions])
    entries += _by_name("orientations", allowed, len(names))
    if grid.is_set:
        entries.append(f'"grid": {json.dumps(_grid_values(grid))}')
    own = [
        {
            "macros": [netlist.names[node] for node in one.nodes],
            "grids": {turn.name: _grid_values(one.grids[turn]) for turn in Orientation},
        }
        for one in constraints.macro_grids
    ]
    entries += _lines("macro_grids", "[]", [json.dumps(one, ensure_ascii=False) for one in own])
    if constraints.port_keepout > 0:
        entries.append(f'"port_keepout": {json.dumps(constraints.port_keepout)}')
    if constraints.spacing > 0:
        entries.append(f'"spacing": {json.dumps(constraints.spacing)}')
    if constraints.has_channels:
        entries.append(f'"channel": {json.dumps(list(constraints.channel))}')
    return "{\n " + ",\n ".join(entries) + "\n}\n"


def _halo_values(sides: np.ndarray) -> list[float]:
    """A halo as x and y, or as four sides if opposite ones differ."""
    is_even = (sides[:2] == sides[2:]).all()
    return (sides[:2] if is_even else sides).tolist()


def _grid_values(grid: SnapGrid) -> dict[str, list[float]]:
    return {"pitch": [grid.pitch_x, grid.pitch_y], "offset": [grid.offset_x, grid.offset_y]}


def _by_name(key: str, values: Mapping[str, Any], count: int) -> list[str]:
    """A key and its object; `*` represents all of `count` names if they have the same value."""
    different = {json.dumps(value) for value in values.values()}
    if len(different) == 1 and len(values) == count:
        return [f'"{key}": {{"*": {different.pop()}}}']
    lines = [f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value)}" for name, value in values.items()]
    return _lines(key, "{}", lines)


def _lines(key: str, brackets: str, lines: Sequence[str]) -> list[str]:
    return [f'"{key}": {brackets[0]}\n  ' + ",\n  ".join(lines) + f"\n {brackets[1]}"] if lines else []
