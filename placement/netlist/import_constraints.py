"""The constraints of a flat design, from its files and from the user's settings, and its snapping grid.

The files count from their own origin; constraints count from the lower left corner of the core, as the canvas does.
Axis legend: N nodes, K rectangles, each (x_low, y_low, x_high, y_high). Lengths in µm.
"""

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

import numpy as np

from placement.netlist.constraints import ALL_ORIENTATIONS, LEAST_PITCH, Constraints, SnapGrid, four_sides
from placement.netlist.constraints_file import hard_names, matching, orientation_set
from placement.netlist.design import NodeKind
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Blockage, Floorplan, Region
from placement.netlist.geometry import Rectangle, clipped, complement, merged_in_line
from placement.netlist.macro_gaps import channel_for_straps, spacing_for_cells
from placement.netlist.pin_tracks import macro_grids_on_tracks
from placement.netlist.technology import LayerDirection, Technology

MOST_OBSTACLES = 1000
"""Maximum number of fixed cells that macros keep out of, since every move of a search looks at those nearby."""
_MISSING = 0.01  # minimum fraction of the core without rows that causes a notice
Snap = Literal["manufacturing", "tracks", "none"]


@dataclasses.dataclass(frozen=True)
class RegionSetting:
    """A region that the user adds: rectangles in the files' coordinates, and patterns (`*`) of its macros' names."""

    name: str
    rectangles: tuple[Rectangle, ...]
    macros: tuple[str, ...]
    is_exclusive: bool = False


@dataclasses.dataclass(frozen=True)
class ConstraintSettings:
    """The user's settings. Lengths in µm; rectangles in the files' own coordinates."""

    # x and y of every macro, or left, bottom, right and top, which replace the files' halos; None: keep the files'
    # halos
    halo: tuple[float, ...] | None = None
    # name of a master, or pattern (`*`) of names → the same; a later one replaces an earlier one
    halos: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    halo_pins: bool = False  # whether halos are kept on the sides with pins only
    blockages: tuple[Rectangle, ...] = ()  # blockages to add to those of the files
    regions: tuple[RegionSetting, ...] = ()  # regions to add to those of the files
    port_keepout: float = 0.0  # distance of macros from ports
    # across and up, the minimum width of a gap beside a macro that does not abut; 0: no rule; None: derived from the
    # power straps in the files
    channel: tuple[float, float] | None = None
    # the grid of lower left corners: the manufacturing grid (if a file gives one), a grid on which the pins of each
    # layer lie on its routing tracks, none, or a grid in the files' coordinates
    snap: Snap | SnapGrid = "manufacturing"
    any_orientation: bool = False  # whether macros may have any orientation, regardless of the LEF file


def constraints_of(flat: FlatDesign, settings: ConstraintSettings | None = None) -> tuple[Constraints, tuple[str, ...]]:
    """The constraints on the macros of a flat design, for all its nodes, and a notice for everything that is omitted.

    The files give halos, placement blockages (except soft and partial ones, and those of movable components), fixed
    cells on nets (others are taps and fillers), fences and regions with a macro (guides: `with_guides`), the
    orientations that the masters' SYMMETRY allows, and the manufacturing grid. The spacing is derived from rows and
    cells, the channel from power straps. Raises DesignError if a pattern matches no macro, a rectangle is empty or lies
    outside the core, there are no tracks to snap to, or as `Constraints` does.
    """
    chosen = settings or ConstraintSettings()
    notices = _missing_rows(flat)
    halo = _halos(flat, chosen, notices)
    orientations = _orientations(flat, chosen, notices)
    if chosen.snap == "tracks" and not flat.floorplan.tracks:
        raise DesignError("snap=tracks: the floorplan has no tracks")
    grids = macro_grids_on_tracks(flat, orientations, notices) if chosen.snap == "tracks" else ()
    all_have_grids = sum(len(one.nodes) for one in grids) == len(flat.netlist.hard) > 0
    channel = _channel(flat, chosen, halo, notices)
    constraints = Constraints(
        halo=halo,
        blockages=np.concatenate((_blockages(flat, chosen, notices), _fixed_cells(flat, notices))),
        regions=(*_file_regions(flat, notices), *_added_regions(flat, chosen)),
        orientations=orientations,
        grid=snap_grid(flat.floorplan, flat.technology, "manufacturing" if all_have_grids else chosen.snap),
        macro_grids=grids,
        port_keepout=chosen.port_keepout,
        spacing=_spacing(flat, chosen, halo, notices) if max(channel) == 0 else 0.0,
        channel=channel,
    )
    return constraints, tuple(notices)


def _halos(flat: FlatDesign, settings: ConstraintSettings, notices: list[str]) -> np.ndarray:
    netlist, plan = flat.netlist, flat.floorplan
    halo = np.zeros((netlist.num_nodes, 4))
    if settings.halo is None:
        halo[plan.halo_node] = plan.halo
    else:
        halo[netlist.hard] = four_sides([settings.halo])[0]
    names = hard_names(netlist)
    masters = defaultdict[str, list[int]](list)
    for node in netlist.hard.tolist():
        if flat.master[node] >= 0:
            masters[flat.master_names[flat.master[node]]].append(node)
    for pattern, sides in settings.halos.items():
        halo[masters.get(pattern) or matching(names, pattern, "halo")] = four_sides([sides])[0]
    if settings.halo_pins:
        halo = np.where(_sides_with_pins(flat), halo, 0.0)
        bare = int((~halo.any(axis=1))[netlist.hard].sum())
        notices.append(f"halos are kept only on sides with pins; {bare} macros have none")
    return np.where((netlist.kind == NodeKind.HARD)[:, None], halo, 0.0)


def _sides_with_pins(flat: FlatDesign) -> np.ndarray:
    """Whether the nearest side (left, bottom, right, top) of some pin on a net is this one, bool [N, 4].

    Macros of one master have the pins of all of them.
    """
    netlist = flat.netlist
    pin = np.unique(netlist.net_pins)
    node = netlist.pin_node[pin]
    half = np.stack([netlist.width[node], netlist.height[node]], axis=1) / 2
    offset = np.stack([netlist.pin_dx[pin], netlist.pin_dy[pin]], axis=1)
    nearest = np.argmin(np.concatenate([half + offset, half - offset], axis=1), axis=1)
    alike = np.where(flat.master >= 0, flat.master, len(flat.master_names) + np.arange(netlist.num_nodes))
    has_pins = np.zeros((int(alike.max(initial=0)) + 1, 4), dtype=bool)
    has_pins[alike[node], nearest] = True
    return has_pins[alike]


def _missing_rows(flat: FlatDesign) -> list[str]:
    """Returns a notice if a part of the core has no rows and no fixed macro."""
    rows, core, netlist = flat.floorplan.rows, flat.floorplan.core, flat.netlist
    fixed = netlist.hard[flat.placement.fixed[netlist.hard]]
    if not len(rows) or len(fixed) == len(netlist.hard):
        return []
    has_rows, has_macros = (rows.width * rows.height).sum(), (netlist.width * netlist.height)[fixed].sum()
    missing = float(core.area - has_rows - has_macros)
    if missing <= _MISSING * core.area:
        return []
    return [
        f"{missing / core.area:.1%} of the core has no rows, perhaps because rows were cut around macros: no cells are "
        "placed there until the rows are created again"
    ]


def _channel(
    flat: FlatDesign, settings: ConstraintSettings, halo: np.ndarray, notices: list[str]
) -> tuple[float, float]:
    if settings.channel is not None:
        return settings.channel
    channel, reasons = channel_for_straps(flat, halo)
    notices += reasons
    return channel


def _spacing(flat: FlatDesign, settings: ConstraintSettings, halo: np.ndarray, notices: list[str]) -> float:
    """The spacing that cells need between macros; 0 if the settings give macros no halos."""
    if settings.halo is not None and not halo.any():
        return 0.0
    spacing = spacing_for_cells(flat, halo)
    if spacing:
        why = "so that the rows between their halos are connected" if halo.any() else "so that cells fit between them"
        notices.append(f"searches keep macros {spacing:g} µm apart, {why}, unless anneal.spacing is given")
    return spacing


def _blockages(flat: FlatDesign, settings: ConstraintSettings, notices: list[str]) -> np.ndarray:
    core, fixed = flat.floorplan.core, flat.placement.fixed
    shapes, left_out = [np.zeros((0, 4))], Counter[str]()
    for blockage in flat.floorplan.blockages:
        if blockage.layer:
            left_out["routing blockages are ignored: they do not reduce the routing capacity"] += 1
        elif blockage.is_soft or blockage.density is not None:
            left_out[_about_cells(blockage)] += 1
        elif blockage.node < 0:
            shapes.append(blockage.rectangles)
        elif fixed[blockage.node]:
            shapes.append(_around_component(flat, blockage))
        else:
            left_out["placement blockages of components are ignored: they move with the component"] += 1
    notices += [f"{count} {what}" for what, count in left_out.items()]
    added = [_in_core(f"blockage {number + 1}", (box,), core) for number, box in enumerate(settings.blockages)]
    return np.concatenate((_on_canvas(np.concatenate(shapes), core), *added))


def _about_cells(blockage: Blockage) -> str:
    """Describes the treatment of a soft or partial placement blockage."""
    if blockage.node >= 0:
        return "soft or partial placement blockages of components are ignored: they apply to cells, not to macros"
    if blockage.density is None:
        return "soft placement blockages do not apply to macros; a full evaluation places no cells there"
    share = f"{blockage.density:.0%}"
    return f"partial placement blockages do not apply to macros; a full evaluation lets cells cover {share} of them"


def _fixed_cells(flat: FlatDesign, notices: list[str]) -> np.ndarray:
    """The fixed cells that macros keep out of, on the canvas, float64 [K, 4]; none if there are too many."""
    netlist, placement = flat.netlist, flat.placement
    is_fixed = (netlist.kind == NodeKind.CELL) & placement.fixed & placement.placed
    cells = np.intersect1d(np.flatnonzero(is_fixed), netlist.pin_node)
    physical = int(is_fixed.sum()) - len(cells)
    if physical:
        notices.append(f"{physical:,} fixed cells without a net (taps, fillers) are not obstacles to macros")
    width, height = netlist.sides(placement.orientation)
    half = np.stack((width[cells], height[cells]), axis=1) / 2
    centres = np.stack((placement.x[cells], placement.y[cells]), axis=1)
    boxes = merged_in_line(_on_canvas(np.concatenate((centres - half, centres + half), axis=1), flat.floorplan.core))
    if len(boxes) > MOST_OBSTACLES:
        notices.append(
            f"{len(cells):,} fixed cells on nets are not obstacles to macros: at most {MOST_OBSTACLES:,} are"
        )
        return boxes[:0]
    if len(cells):
        notices.append(f"macros keep off {len(cells):,} fixed cells on nets")
    return boxes


def _around_component(flat: FlatDesign, blockage: Blockage) -> np.ndarray:
    """A blockage of a fixed component without the area of the component itself, float64 [K, 4]."""
    (own,) = flat.netlist.boxes(flat.placement, np.array([blockage.node]))
    found = [np.zeros((0, 4))]
    for box in blockage.rectangles:
        corner = np.tile(box[:2], 2)
        found.append(complement((own - corner)[None, :], box[2] - box[0], box[3] - box[1]) + corner)
    return np.concatenate(found)


def _on_canvas(rectangles: np.ndarray, core: Rectangle) -> np.ndarray:
    """Rectangles in the files' coordinates, relative to the core's corner and clipped to the core."""
    return clipped(rectangles - np.array([core.x_low, core.y_low] * 2), core.width, core.height)


def _in_core(what: str, rectangles: tuple[Rectangle, ...], core: Rectangle) -> np.ndarray:
    """The user's rectangles on the canvas; raises DesignError if one of them does not intersect it."""
    array = np.array([dataclasses.astuple(rectangle) for rectangle in rectangles]).reshape(-1, 4)
    found = _on_canvas(array, core)
    if len(found) < len(array) or not len(array):
        raise DesignError(
            f"{what}: its rectangles must lie in the core, from ({core.x_low:g}, {core.y_low:g}) to "
            f"({core.x_high:g}, {core.y_high:g}) µm"
        )
    return found


def _file_regions(flat: FlatDesign, notices: list[str]) -> list[Region]:
    found = []
    for region in flat.floorplan.regions:
        macros = region.nodes[flat.netlist.kind[region.nodes] == 0]
        rectangles = _on_canvas(region.rectangles, flat.floorplan.core)
        if region.is_guide:
            continue
        if not len(macros) and not region.is_exclusive:
            notices.append(f"region {region.name!r} is ignored: no macro belongs to it")
        elif len(rectangles):
            found.append(dataclasses.replace(region, rectangles=rectangles, nodes=macros))
        elif len(macros):
            name = flat.netlist.names[macros[0]]
            raise DesignError(
                f"region {region.name!r} is outside the core, so its macro {name!r} has no legal position"
            )
    return found


def _added_regions(flat: FlatDesign, settings: ConstraintSettings) -> list[Region]:
    names, found = hard_names(flat.netlist), []
    for region in settings.regions:
        what = f"region {region.name!r}"
        nodes = [node for pattern in region.macros for node in matching(names, pattern, what)]
        rectangles = _in_core(what, region.rectangles, flat.floorplan.core)
        members = np.unique(np.array(nodes, dtype=np.int32))
        found.append(Region(region.name, rectangles, members, is_exclusive=region.is_exclusive))
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
            continue
        allowed[node] = symmetric_orientations(master.symmetry)
        if not flat.placement.fixed[node]:
            if not master.symmetry:
                stiff.add(name)
            turns += "R90" in master.symmetry and master.width != master.height
    if unknown:
        named = sorted(unknown - {""})  # Bookshelf designs have no masters.
        which = f" of {len(named)} masters (first: {named[0]!r})" if named else ""
        notices.append(f"no LEF file gives the SYMMETRY of macros{which}: any orientation is allowed")
    if stiff:
        notices.append(
            f"{len(stiff)} masters of macros (first: {min(stiff)!r}) have no SYMMETRY in LEF: they keep orientation N, "
            "unless --any-orientation is given"
        )
    if turns:
        notices.append(
            f"{turns} macros may be rotated by 90° (SYMMETRY R90): a search does so only with anneal.rotate=true"
        )
    return allowed


def symmetric_orientations(symmetry: frozenset[str]) -> int:
    """The set of orientations that a master's SYMMETRY allows (LEF/DEF Language Reference, MACRO).

    They are N and the results of mirroring it about X (FS) or Y (FN) and rotating it by 90° (R90).
    """
    mirrored = {"X": ["FS"], "Y": ["FN"], "XY": ["FS", "FN", "S"]}.get("".join(sorted(symmetry & {"X", "Y"})), [])
    if "R90" in symmetry:
        return ALL_ORIENTATIONS if mirrored else orientation_set(["N", "S", "E", "W"])
    return orientation_set(["N", *mirrored])


def snap_grid(plan: Floorplan, technology: Technology, snap: Snap | SnapGrid) -> SnapGrid:
    """The snapping grid relative to the core's corner; raises DesignError for an unknown name or missing tracks."""
    core = plan.core
    if isinstance(snap, SnapGrid):
        return _shifted(snap, core)
    if snap == "none":
        return SnapGrid()
    if snap == "manufacturing":
        pitch = writable_pitch(plan)
        return _shifted(SnapGrid(pitch, pitch), core) if pitch >= LEAST_PITCH else SnapGrid()
    if snap != "tracks":
        raise DesignError(f"snap={snap!r}: must be manufacturing, tracks, none, or a grid")
    return track_grid(plan, technology)


def writable_pitch(plan: Floorplan) -> float:
    """The least common multiple of the manufacturing grid and the database unit; 0 if there is no such grid.

    A DEF file whose units are coarser than the manufacturing grid cannot express all of its points.
    """
    if plan.manufacturing_grid <= 0:
        return 0.0
    units = Fraction(plan.units).limit_denominator(1_000_000)
    grid = Fraction(plan.manufacturing_grid).limit_denominator(1_000_000)
    return float((grid * units).numerator / units)


def track_grid(plan: Floorplan, technology: Technology) -> SnapGrid:
    """The routing tracks relative to the core's corner; raises DesignError if a direction has none.

    The tracks are those of the lowest layer that prefers their direction; without LEF, the first of the direction.
    """
    chosen = []
    for is_vertical, direction in ((True, LayerDirection.VERTICAL), (False, LayerDirection.HORIZONTAL)):
        tracks_of = {tracks.layer: tracks for tracks in reversed(plan.tracks) if tracks.is_vertical == is_vertical}
        preferred = [layer.name for layer in technology.layers if layer.direction is direction]
        layers = (*preferred, *(tracks.layer for tracks in plan.tracks))
        layer = next((name for name in layers if name in tracks_of), None)
        if layer is None:
            raise DesignError("snap=tracks: the floorplan must have tracks in both directions")
        chosen.append(tracks_of[layer])
    across, up = chosen
    return _shifted(SnapGrid(across.step, up.step, across.start, up.start), plan.core)


def _shifted(grid: SnapGrid, core: Rectangle) -> SnapGrid:
    """A grid in the files' coordinates relative to the core's corner."""
    x = _offset(grid.offset_x - core.x_low, grid.pitch_x)
    return SnapGrid(grid.pitch_x, grid.pitch_y, x, _offset(grid.offset_y - core.y_low, grid.pitch_y))


def _offset(offset: float, pitch: float) -> float:
    """The same offset in [0, pitch); 0 if it differs from that by a rounding error."""
    if pitch <= 0:
        return 0.0
    rest = math.fmod(math.fmod(offset, pitch) + pitch, pitch)
    return 0.0 if min(rest, pitch - rest) < 1e-7 else round(rest, 9)
