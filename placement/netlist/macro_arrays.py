"""Joins macros of a flat design to arrays, so that they are placed together.

An array becomes one hard macro with the pins of all its macros, so that training, search, legaliser and full evaluation
need no special case; an export expands it. Axis legend: N nodes, M macros of an array. Lengths in µm.
"""

import dataclasses
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from placement.netlist.builder import file_indices
from placement.netlist.constraints import ALL_ORIENTATIONS, Constraints
from placement.netlist.constraints_file import hard_names, matching, orientation_names, orientation_set
from placement.netlist.design import Netlist, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import STRAYED, FlatDesign, MacroArray
from placement.netlist.floorplan import Floorplan

_LAST_NUMBER = re.compile(r"(.*?)(\d+)(\D*)", re.DOTALL)
_UPRIGHT = orientation_set(["N", "FN", "S", "FS"])
_EXACT = 1e-6  # µm


@dataclasses.dataclass(frozen=True)
class ArraySetting:
    """An array that the user requests. Raises DesignError if a number is negative."""

    name: str  # the name of the macro that represents it
    macros: tuple[str, ...]  # patterns (`*`) of its macros' names
    columns: int = 0  # number of columns; 0: the block of minimum half perimeter without an empty place
    # µm between its macros, across and up; None: the distance that their halos require
    gap: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.columns < 0:
            raise DesignError(f"array {self.name!r}: {self.columns} columns; must be at least 1, or 0 (automatic)")
        if self.gap is not None and not all(0 <= side < math.inf for side in self.gap):
            raise DesignError(f"array {self.name!r}: gaps of {self.gap} µm must be at least 0")


class _Group(NamedTuple):
    """Macros that become one: their nodes in rows from the lower left corner, and the block's shape."""

    name: str
    nodes: np.ndarray  # int [M]
    columns: int
    gap: tuple[float, float]
    orientations: int  # allowed for all macros; only upright ones if rotation by 90° leaves the snapping grid

    @property
    def what(self) -> str:
        return f"array {self.name!r}"


def with_arrays(
    flat: FlatDesign,
    constraints: Constraints,
    settings: Sequence[ArraySetting],
    *,
    banks: bool = False,
    places: Placement | None = None,
) -> tuple[FlatDesign, Constraints, tuple[str, ...]]:
    """The design with arrays in place of their macros, its constraints, and notices.

    Distances between an array's macros are rounded up to the snapping grid, so that every macro lies on it. The array
    has the largest of its macros' halos, the orientations that all of them may have, and their region.

    Args:
        flat: the design as read.
        constraints: constraints on its nodes.
        settings: the arrays.
        banks: whether macros of one size, whose names differ only in their last number, become arrays, too.
        places: individual positions of the macros. Each macro is then as near to its own as its array allows; None:
            macros are ordered by name, numbers by their value.

    Raises:
        DesignError: a pattern matches no macro, an array has fewer than two, a macro is in two arrays, is fixed or has
            another size, region or orientations than the others, or an array's name is in use.
    """
    groups = [_requested(flat, constraints, one) for one in settings]
    taken = {node for group in groups for node in group.nodes.tolist()}
    groups += _banks(flat, constraints, taken) if banks else []
    if not groups:
        return flat, constraints, ("--banks: no macros of one size have names that differ in a number",) * banks
    _check(flat, constraints, groups)
    if places is not None:
        groups = [_by_places(flat, constraints, group, places) for group in groups]
    return _joined(flat, constraints, groups)


def _requested(flat: FlatDesign, constraints: Constraints, setting: ArraySetting) -> _Group:
    netlist, names = flat.netlist, hard_names(flat.netlist)
    found = [matching(names, pattern, f"array {setting.name!r}") for pattern in setting.macros]
    nodes = list(dict.fromkeys(node for of_pattern in found for node in of_pattern))
    if len(nodes) < 2:
        raise DesignError(
            f"array {setting.name!r}: {', '.join(setting.macros)} matches one macro; must match two or more"
        )
    nodes.sort(key=lambda node: _natural(netlist.names[node]))
    return _group(flat, constraints, setting.name, nodes, setting.columns, setting.gap)


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts macro_10 after macro_9."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]


def _banks(flat: FlatDesign, constraints: Constraints, taken: set[int]) -> list[_Group]:
    """Groups movable macros of one size, orientations and regions whose names differ only in their last number."""
    netlist = flat.netlist
    alike = defaultdict(list)
    for node in netlist.hard[~flat.placement.fixed[netlist.hard]].tolist():
        pieces = _LAST_NUMBER.fullmatch(netlist.names[node])
        if pieces and node not in taken:
            within = tuple(region.name for region in constraints.regions if node in region.nodes)
            size = (float(netlist.width[node]), float(netlist.height[node]), int(flat.master[node]))
            key = (pieces[1], pieces[3], size, int(constraints.orientations[node]), within)
            alike[key].append((int(pieces[2]), node))
    found = []
    for (before, behind, *_), members in alike.items():
        if len(members) > 1:
            members.sort()
            name = f"{before}{members[0][0]}..{members[-1][0]}{behind}"
            found.append(_group(flat, constraints, name, [node for _, node in members]))
    return found


def _group(
    flat: FlatDesign, constraints: Constraints, name: str, nodes: list[int], columns: int = 0,
    gap: tuple[float, float] | None = None,
) -> _Group:  # fmt: skip
    count = len(nodes)
    left, bottom, right, top = constraints.halo[nodes].max(axis=0).tolist()
    gap = gap or (left + right, bottom + top)
    if not columns:
        width, height = float(flat.netlist.width[nodes[0]]) + gap[0], float(flat.netlist.height[nodes[0]]) + gap[1]
        even = [columns for columns in range(1, count + 1) if count % columns == 0]
        columns = min(even, key=lambda columns: columns * width + count // columns * height)
    allowed = int(np.bitwise_and.reduce(constraints.orientations[nodes]))
    grids = [constraints.grid_of(nodes[0], turn) for turn in Orientation]
    turns = len({pitch for grid in grids for pitch in (grid.pitch_x, grid.pitch_y)}) == 1
    allowed &= ALL_ORIENTATIONS if turns else _UPRIGHT
    return _Group(name, np.array(nodes, dtype=np.int64), min(columns, count), gap, allowed)


def _check(flat: FlatDesign, constraints: Constraints, groups: list[_Group]) -> None:
    netlist, seen = flat.netlist, dict[int, str]()
    joined = {node for group in groups for node in group.nodes.tolist()}
    names = {name for node, name in enumerate(netlist.names) if node not in joined}
    for group in groups:
        first = group.nodes[0]
        for node in group.nodes.tolist():
            whose = f"{group.what}: macro {netlist.names[node]!r}"
            if node in seen:
                raise DesignError(f"{whose} is also in array {seen[node]!r}")
            seen[node] = group.name
            if flat.placement.fixed[node]:
                raise DesignError(f"{whose} is fixed; --free-macros frees what the files fix")
            sides = abs(netlist.width[node] - netlist.width[first]), abs(netlist.height[node] - netlist.height[first])
            if max(sides) > _EXACT or flat.master[node] != flat.master[first]:
                raise DesignError(
                    f"{whose} of {netlist.width[node]:g} × {netlist.height[node]:g} µm has another master than "
                    f"{netlist.names[first]!r} of {netlist.width[first]:g} × {netlist.height[first]:g} µm; an array's "
                    "macros must have the same master"
                )
            for region in constraints.regions:
                if (node in region.nodes) != (first in region.nodes):
                    raise DesignError(f"{group.what}: some of its macros are in region {region.name!r}, others are not")
        if not group.orientations:
            raise DesignError(f"{group.what}: its macros have no allowed orientation in common")
        if group.name in names:
            raise DesignError(f"{group.what}: the netlist already has a node of that name")
        names.add(group.name)


def _by_places(flat: FlatDesign, constraints: Constraints, group: _Group, places: Placement) -> _Group:
    """The group in the order and orientation with the minimum sum of squared distances to `places`.

    Both are taken relative to their own middles, since the array may be anywhere.
    """
    array = _array(flat, constraints, group, 0)
    at = np.stack((places.x[group.nodes], places.y[group.nodes]), axis=1)
    at = at - at.mean(axis=0)
    found = list[tuple[float, np.ndarray]]()
    for orientation in orientation_names(group.orientations):
        slots = np.stack(array.members_at(0.0, 0.0, Orientation[orientation]), axis=1)
        distances = ((slots[:, None] - at[None]) ** 2).sum(axis=2)
        of_slot = linear_sum_assignment(distances)[1]
        found.append((float(distances[np.arange(len(slots)), of_slot].sum()), of_slot))
    return group._replace(nodes=group.nodes[min(found, key=lambda one: one[0])[1]])


def _joined(
    flat: FlatDesign, constraints: Constraints, groups: list[_Group]
) -> tuple[FlatDesign, Constraints, tuple[str, ...]]:
    target = np.arange(flat.netlist.num_nodes)  # the node whose place in the netlist each node takes
    for group in groups:
        target[group.nodes] = group.nodes.min()
    kept, number = np.unique(target, return_inverse=True)
    arrays = [_array(flat, constraints, group, int(number[group.nodes[0]])) for group in groups]
    placement, scattered = _placement(flat, kept, arrays, groups)
    joined = constraints.renumbered(number, len(kept))
    halo, orientations = joined.halo.copy(), joined.orientations.copy()
    for array, group in zip(arrays, groups, strict=True):
        halo[array.node] = constraints.halo[group.nodes].max(axis=0)
        orientations[array.node] = group.orientations
    own = {array.node for array in arrays}
    names = {new: flat.written_names.get(old) for new, old in enumerate(kept.tolist()) if new not in own}
    design = dataclasses.replace(
        flat,
        netlist=_netlist(flat.netlist, kept, number, arrays, groups),
        placement=placement,
        floorplan=_floorplan(flat.floorplan, number),
        master=flat.master[kept],
        written_names={node: name for node, name in names.items() if name is not None},
        arrays=tuple(arrays),
    )
    notice = f"the macros of {scattered} arrays are not arranged as arrays in the files: each starts at their centre"
    joined = dataclasses.replace(joined, halo=halo, orientations=orientations)
    return design, joined, (notice,) if scattered else ()


def _array(flat: FlatDesign, constraints: Constraints, group: _Group, node: int) -> MacroArray:
    """The array of a group; its macros' distances are multiples of the snapping grid, or of database units."""
    grid, units = constraints.grid_of(int(group.nodes[0]), Orientation.N), flat.floorplan.units
    width, height = float(flat.netlist.width[group.nodes[0]]), float(flat.netlist.height[group.nodes[0]])
    across = _rounded_up(width + group.gap[0], grid.pitch_x or 1 / units)
    up = _rounded_up(height + group.gap[1], grid.pitch_y or 1 / units)
    row, column = np.divmod(np.arange(len(group.nodes)), group.columns)
    return MacroArray(
        node=node,
        names=tuple(flat.netlist.names[member] for member in group.nodes.tolist()),
        written_names=tuple(flat.written_name(member) for member in group.nodes.tolist()),
        width=width,
        height=height,
        dx=(column - column.max() / 2) * across,
        dy=(row - row.max() / 2) * up,
    )


def _rounded_up(length: float, step: float) -> float:
    return math.ceil(round(length / step, 6)) * step


def _netlist(
    netlist: Netlist, kept: np.ndarray, number: np.ndarray, arrays: list[MacroArray], groups: list[_Group]
) -> Netlist:
    """The netlist with arrays in place of macros; each array has all pins of its macros."""
    names = [netlist.names[node] for node in kept.tolist()]
    width, height = netlist.width[kept].copy(), netlist.height[kept].copy()
    shift = np.zeros((netlist.num_nodes, 2))
    for array, group in zip(arrays, groups, strict=True):
        names[array.node] = group.name
        width[array.node] = array.width + np.ptp(array.dx)
        height[array.node] = array.height + np.ptp(array.dy)
        shift[group.nodes] = np.stack((array.dx, array.dy), axis=1)
    order = np.argsort(number[netlist.pin_node], kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    owner = netlist.pin_node[order]
    kind = netlist.kind[kept]
    return dataclasses.replace(
        netlist,
        names=tuple(names),
        kind=kind,
        width=width,
        height=height,
        file_index=file_indices(kind, number[owner]),
        pin_node=number[owner],
        pin_dx=netlist.pin_dx[order] + shift[owner, 0],
        pin_dy=netlist.pin_dy[order] + shift[owner, 1],
        net_pins=rank[netlist.net_pins],
    )


def _placement(
    flat: FlatDesign, kept: np.ndarray, arrays: list[MacroArray], groups: list[_Group]
) -> tuple[Placement, int]:
    """Places arrays at their macros, or amid macros that form no array; also returns the number of the latter."""
    before, scattered = flat.placement, 0
    x, y, orientation = before.x[kept].copy(), before.y[kept].copy(), before.orientation[kept].copy()
    placed = before.placed[kept].copy()
    for array, group in zip(arrays, groups, strict=True):
        members = group.nodes
        placed[array.node] = before.placed[members].all()
        place = (0.0, 0.0, Orientation[orientation_names(group.orientations)[0]])
        if placed[array.node]:
            own = before.x[members], before.y[members]
            found = array.place_of(*own, before.orientation[members], tolerance=STRAYED / flat.floorplan.units)
            scattered += found is None
            place = found or (float(own[0].mean()), float(own[1].mean()), place[2])
        x[array.node], y[array.node], orientation[array.node] = place
    return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=before.fixed[kept]), scattered


def _floorplan(plan: Floorplan, number: np.ndarray) -> Floorplan:
    """The floorplan of the joined nodes; an array has the largest of its macros' halos on each side."""
    nodes, of = np.unique(number[plan.halo_node], return_inverse=True)
    halo = np.zeros((len(nodes), 4))
    np.maximum.at(halo, of, plan.halo)
    blockages = tuple(
        blockage if blockage.node < 0 else dataclasses.replace(blockage, node=int(number[blockage.node]))
        for blockage in plan.blockages
    )
    regions = tuple(dataclasses.replace(region, nodes=np.unique(number[region.nodes])) for region in plan.regions)
    return dataclasses.replace(plan, halo_node=nodes, halo=halo, regions=regions, blockages=blockages)
