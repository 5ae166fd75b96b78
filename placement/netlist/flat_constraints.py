"""The constraints of a flat design: what its files say, and what the user says beside them.

The files count from their own origin; constraints count from the lower left corner of the core, as the canvas does.
Axis legend: N nodes, K rectangles, each (x_low, y_low, x_high, y_high), µm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from placement.netlist.constraints import ALL_ORIENTATIONS, Constraints, SnapGrid, check_rectangles
from placement.netlist.constraints_file import hard_names, matching, orientation_set
from placement.netlist.design import Netlist
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Blockage, Rectangle, Region
from placement.netlist.rectangles import complement
from placement.netlist.snapping import Snap, snap_grid


@dataclasses.dataclass(frozen=True)
class RegionSetting:
    """A region that the user gives: rectangles in the files' coordinates, and patterns (`*`) of its macros' names."""

    name: str
    rectangles: tuple[Rectangle, ...]
    macros: tuple[str, ...]
    is_exclusive: bool = False


@dataclasses.dataclass(frozen=True)
class ConstraintSettings:
    """What the user says beside the files. Lengths in µm; rectangles in the files' own coordinates.

    Attributes:
        halo: x and y of every macro, in the place of the files' halos; None: those of the files.
        halos: the same for macros whose names a pattern (`*`) means; a later one holds before an earlier one.
        blockages: added to those of the files.
        regions: added to those of the files.
        port_keepout: that macros keep from ports.
        snap: what lower left corners lie on: the manufacturing grid (where a file gives one), the routing tracks,
            nothing, or a grid in the files' coordinates.
        any_orientation: macros may be turned as they like, whatever the LEF file says.
    """

    halo: tuple[float, float] | None = None
    halos: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    blockages: tuple[Rectangle, ...] = ()
    regions: tuple[RegionSetting, ...] = ()
    port_keepout: float = 0.0
    snap: Snap | SnapGrid = "manufacturing"
    any_orientation: bool = False


def constraints_of(flat: FlatDesign, settings: ConstraintSettings | None = None) -> tuple[Constraints, tuple[str, ...]]:
    """What the macros of a flat design must keep to.

    Of the files: halos (the larger of left and right, and of bottom and top), placement blockages (soft and partial
    ones do not stop macros, those of components count where their component is fixed), regions with a macro or that
    are fences (guides are wishes), the orientations that the masters' SYMMETRY allows, the manufacturing grid.

    Args:
        flat: the design as it was read.
        settings: what the user says; default: nothing.

    Returns:
        The constraints of all nodes of `flat`, from the lower left corner of its core; and notices of what was left
        out, one sentence each.

    Raises:
        DesignError: a pattern means no macro, a rectangle is empty or lies beyond the core, there are no tracks to
            snap to, as `Constraints`.
    """
    chosen = settings or ConstraintSettings()
    plan, notices = flat.floorplan, list[str]()
    constraints = Constraints(
        halo=_halos(flat, chosen),
        blockages=_blockages(flat, chosen, notices),
        regions=(*_regions(flat, notices), *_given_regions(flat, chosen)),
        orientations=_orientations(flat, chosen, notices),
        grid=snap_grid(plan, flat.technology, chosen.snap),
        port_keepout=chosen.port_keepout,
    )
    return constraints, tuple(notices)


def carried_over(constraints: Constraints, of: Netlist, to: Netlist) -> Constraints:
    """The same constraints for the nodes of the same names in another netlist; its other nodes get none."""
    index = {name: node for node, name in enumerate(to.names)}
    old = np.array([node for node, name in enumerate(of.names) if name in index], dtype=np.int64)
    new = np.array([index[of.names[node]] for node in old.tolist()], dtype=np.int64)
    number = np.full(of.num_nodes, -1, dtype=np.int64)
    number[old] = new
    halo, orientations = np.zeros((to.num_nodes, 2)), np.full(to.num_nodes, ALL_ORIENTATIONS)
    halo[new], orientations[new] = constraints.halo[old], constraints.orientations[old]
    regions = [
        dataclasses.replace(region, nodes=np.sort(number[region.nodes][number[region.nodes] >= 0]))
        for region in constraints.regions
    ]
    return dataclasses.replace(constraints, halo=halo, orientations=orientations, regions=tuple(regions))


def _halos(flat: FlatDesign, settings: ConstraintSettings) -> np.ndarray:
    netlist, plan = flat.netlist, flat.floorplan
    halo = np.zeros((netlist.num_nodes, 2))
    if settings.halo is None:
        halo[plan.halo_node] = np.maximum(plan.halo[:, :2], plan.halo[:, 2:])
    else:
        halo[netlist.hard] = settings.halo
    names = hard_names(netlist)
    for pattern, sides in settings.halos.items():
        halo[_meant(names, pattern, "halo")] = sides
    return np.where((netlist.kind == 0)[:, None], halo, 0.0)


def _meant(names: Mapping[str, int], pattern: str, what: str) -> list[int]:
    found = matching(names, pattern)
    if not found:
        raise DesignError(f"{what}: the netlist has no hard macro {pattern!r}")
    return found


def _blockages(flat: FlatDesign, settings: ConstraintSettings, notices: list[str]) -> np.ndarray:
    core, fixed = flat.floorplan.core, flat.placement.fixed
    shapes, weak, owned, layers = [np.zeros((0, 4))], 0, 0, 0
    for blockage in flat.floorplan.blockages:
        if blockage.layer:
            layers += 1
        elif blockage.is_soft or blockage.density is not None:
            weak += 1
        elif blockage.node < 0:
            shapes.append(blockage.rectangles)
        elif fixed[blockage.node]:
            shapes.append(_beside(flat, blockage))
        else:
            owned += 1
    if layers:
        notices.append(f"{layers} routing blockages are left out: the routing capacity is that of a core without them")
    if weak:
        notices.append(f"{weak} soft or partial placement blockages are left out: they stop cells, not macros")
    if owned:
        notices.append(f"{owned} placement blockages of components are left out: they move with their component")
    found = _in_canvas(np.concatenate(shapes), core)
    for number, rectangle in enumerate(settings.blockages):
        found = np.concatenate((found, _given(f"blockage {number + 1}", (rectangle,), core)))
    return found


def _beside(flat: FlatDesign, blockage: Blockage) -> np.ndarray:
    """float64 [K, 4]: a blockage of a fixed component, without the component itself, which does not stand on it."""
    node, placement = blockage.node, flat.placement
    width, height = flat.netlist.sides(placement.orientation)
    half = np.array([width[node], height[node]]) / 2
    centre = np.array([placement.x[node], placement.y[node]])
    own = np.concatenate((centre - half, centre + half))
    parts = [np.zeros((0, 4))]
    for box in blockage.rectangles:
        corner = np.tile(box[:2], 2)
        parts.append(complement((own - corner)[None, :], box[2] - box[0], box[3] - box[1]) + corner)
    return np.concatenate(parts)


def _in_canvas(rectangles: np.ndarray, core: Rectangle) -> np.ndarray:
    """Rectangles in the files' coordinates as seen from the core's corner, cut at its edges; what is outside goes."""
    low, high = np.array([core.x_low, core.y_low]), np.array([core.x_high, core.y_high])
    cut = np.concatenate((np.maximum(rectangles[:, :2], low), np.minimum(rectangles[:, 2:], high)), axis=1)
    inside = (cut[:, 0] < cut[:, 2]) & (cut[:, 1] < cut[:, 3])
    return (cut - np.tile(low, 2))[inside]


def _given(what: str, rectangles: tuple[Rectangle, ...], core: Rectangle) -> np.ndarray:
    """The user's rectangles in the canvas; raises DesignError where nothing of one lies in it."""
    array = np.array([dataclasses.astuple(rectangle) for rectangle in rectangles]).reshape(-1, 4)
    check_rectangles(what, array)
    found = _in_canvas(array, core)
    if len(found) < len(array) or not len(array):
        raise DesignError(
            f"{what}: its rectangles must lie in the core, from ({core.x_low:g}, {core.y_low:g}) to "
            f"({core.x_high:g}, {core.y_high:g}) µm"
        )
    return found


def _regions(flat: FlatDesign, notices: list[str]) -> list[Region]:
    found, core = [], flat.floorplan.core
    for region in flat.floorplan.regions:
        macros = region.nodes[flat.netlist.kind[region.nodes] == 0]
        if region.is_guide:
            notices.append(f"region {region.name!r} is left out: a guide is a wish")
            continue
        if not len(macros) and not region.is_exclusive:
            notices.append(f"region {region.name!r} is left out: no macro belongs to it")
            continue
        rectangles = _in_canvas(region.rectangles, core)
        if not len(rectangles):
            if len(macros):
                raise DesignError(
                    f"region {region.name!r} lies outside of the core, so its macro "
                    f"{flat.netlist.names[macros[0]]!r} has no place"
                )
            continue
        found.append(dataclasses.replace(region, rectangles=rectangles, nodes=macros))
    return found


def _given_regions(flat: FlatDesign, settings: ConstraintSettings) -> list[Region]:
    names = hard_names(flat.netlist)
    found = []
    for region in settings.regions:
        what = f"region {region.name!r}"
        nodes = [node for pattern in region.macros for node in _meant(names, pattern, what)]
        found.append(
            Region(
                name=region.name,
                rectangles=_given(what, region.rectangles, flat.floorplan.core),
                nodes=np.unique(np.array(nodes, dtype=np.int32)),
                is_exclusive=region.is_exclusive,
            )
        )
    return found


def _orientations(flat: FlatDesign, settings: ConstraintSettings, notices: list[str]) -> np.ndarray:
    netlist = flat.netlist
    allowed = np.full(netlist.num_nodes, ALL_ORIENTATIONS)
    if settings.any_orientation:
        return allowed
    unknown, stiff, turns = set(), set(), 0
    for node in netlist.hard.tolist():
        name = flat.master_names[flat.master[node]] if flat.master[node] >= 0 else ""
        master = flat.technology.masters.get(name)
        if master is None:
            unknown.add(name)
        else:
            allowed[node] = symmetric_orientations(master.symmetry)
            if flat.placement.fixed[node]:
                continue
            if not master.symmetry:
                stiff.add(name)
            turns += "R90" in master.symmetry and master.width != master.height
    if unknown:
        # Bookshelf designs know no masters.
        named = sorted(unknown - {""})
        which = f" of {len(named)} masters (first: {named[0]!r})" if named else ""
        notices.append(f"no LEF file says how macros{which} may be turned: any way is allowed")
    if stiff:
        notices.append(
            f"{len(stiff)} masters of macros (first: {min(stiff)!r}) have no SYMMETRY in LEF: they stand in N alone, "
            "unless --any-orientation lets them turn"
        )
    if turns:
        notices.append(
            f"{turns} macros may be turned by 90 degrees (SYMMETRY R90): a search does that with anneal.rotate=true "
            "only"
        )
    return allowed


def symmetric_orientations(symmetry: frozenset[str]) -> int:
    """The orientations that a master's SYMMETRY allows, as a set (LEF/DEF Language Reference, MACRO).

    N, and what X (mirrored up and down), Y (mirrored left and right) and R90 (turned) make of it.
    """
    names = ["N"]
    if "X" in symmetry:
        names.append("FS")
    if "Y" in symmetry:
        names.append("FN")
    if {"X", "Y"} <= symmetry:
        names.append("S")
    if "R90" in symmetry:
        names = ["N", "S", "E", "W"] if len(names) == 1 else ["N", "FN", "S", "FS", "E", "FE", "W", "FW"]
    return orientation_set(names)
