"""The canvas of a flat design: the core of its rows, a grid of gcells, and the routing capacity.

**Grid.** Circuit Training's rule (google-research/circuit_training, `grid_size_selection`, as first published): of all
grids of 10 to 127 columns and rows, 500 to 2,500 gcells (a later version: 4,096), and gcells at most 1.5 times as wide
as high or vice versa, into which the macros can be packed at all, rate each by the share of gcells that the packed
macros leave empty, plus what macros side by side waste neither across nor up; of those within 5% of the best rating,
take the one with the highest rating per gcell.

**Routing capacity.** A layer counts in its preferred direction; the lowest routing layer does not count, since pins and
rails of cells fill it. A layer's capacity is its tracks per µm across the core: DEF's TRACKS, or one per LEF pitch. A
macro takes from each layer the share of its area that its OBS and its pins' shapes cover.

Axis legend: H macros. Lengths in µm.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re

import numpy as np

from placement.netlist import _native
from placement.netlist.constraints import Constraints
from placement.netlist.design import Canvas, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan
from placement.netlist.geometry import clipped, union_area
from placement.netlist.technology import LayerDirection, Master, RoutingLayer

_SMOOTHING = 2
"""Gcells on each side over which congestion is spread: Circuit Training's default."""
_TRACKS_PER_ROW = 27.0
"""Assumed tracks per row height and direction if no file gives any: three layers of a nine-track library."""
_BLOCKED_LAYERS = 4
"""The number of layers, from the lowest, that macros are assumed to fill if no OBS is given."""
_MOST_TRACKS = 10_000_000
"""In one TRACKS statement; a chip of 10 cm has a tenth of that in its finest layer."""


@dataclasses.dataclass(frozen=True)
class GridRule:
    """The bounds of the choice.

    Attributes:
        least, most: columns and rows, each.
        least_cells, most_cells: gcells.
        aspect: the largest ratio of a gcell's sides.
        tolerance: how far below the best rating a smaller grid may be, as a share of it.
        spacing: µm between macros, which is added to their widths and heights.
    """

    least: int = 10
    most: int = 127
    least_cells: int = 500
    most_cells: int = 2500
    aspect: float = 1.5
    tolerance: float = 0.05
    spacing: float = 0.0


@dataclasses.dataclass(frozen=True)
class GridRating:
    """The quality of one grid.

    Attributes:
        columns, rows: of the grid.
        empty: the share of gcells that packed macros do not touch.
        waste_across, waste_up: the share of the spanned gcells that macros side by side leave unused.
    """

    columns: int
    rows: int
    empty: float
    waste_across: float
    waste_up: float

    @property
    def rating(self) -> float:
        """0 to 3; larger is better."""
        return self.empty + (1 - self.waste_across) + (1 - self.waste_up)


@dataclasses.dataclass(frozen=True)
class LayerCapacity:
    """A routing layer: `tracks` per µm across its wires, of which macros block the share `blocked` of their area."""

    name: str
    is_vertical: bool
    tracks: float
    blocked: float


@dataclasses.dataclass(frozen=True)
class RoutingCapacity:
    """Tracks per µm.

    Attributes:
        horizontal, vertical: all layers together.
        macro_horizontal, macro_vertical: what a macro blocks in its area, the mean by area over all hard macros.
        layers: the contribution of each layer, lowest first; empty if the layers are unknown.
        notices: what was assumed.
    """

    horizontal: float
    vertical: float
    macro_horizontal: float
    macro_vertical: float
    layers: tuple[LayerCapacity, ...] = ()
    notices: tuple[str, ...] = ()


def canvas_of(
    design: FlatDesign,
    *,
    columns: int | None = None,
    rows: int | None = None,
    rule: GridRule | None = None,
    constraints: Constraints | None = None,
) -> tuple[Canvas, RoutingCapacity]:
    """The canvas of a flat design, and the details of its routing capacity.

    Args:
        design: its core becomes the canvas.
        columns: of the grid; None: chosen by the rule.
        rows: of the grid; None: chosen by the rule.
        rule: bounds and tolerances; default: the published ones.
        constraints: of the flat netlist's nodes; the rule leaves their halos between macros. None: no halos.

    Raises:
        DesignError: the macros fit into no grid, or a layer has more than ten million tracks.
    """
    netlist, core = design.netlist, design.floorplan.core
    movable = netlist.hard[~design.placement.fixed[netlist.hard]]
    if columns is None or rows is None:
        grid = _grid(design, movable, rule or GridRule(), constraints)
        columns, rows = columns or grid.columns, rows or grid.rows
    capacity = routing_capacity(design)
    canvas = Canvas(
        width=core.width,
        height=core.height,
        columns=columns,
        rows=rows,
        routes_horizontal=capacity.horizontal,
        routes_vertical=capacity.vertical,
        macro_routes_horizontal=capacity.macro_horizontal,
        macro_routes_vertical=capacity.macro_vertical,
        smoothing=_SMOOTHING,
    )
    return canvas, capacity


def _grid(design: FlatDesign, movable: np.ndarray, rule: GridRule, constraints: Constraints | None) -> GridRating:
    """The rule's grid for the movable macros with their halos; without halos if these cannot be packed."""
    core, turned = design.floorplan.core, design.placement.orientation
    if constraints is not None:
        turned = np.where(constraints.lying(turned), Orientation.E, Orientation.N)
    width, height = (side[movable] for side in design.netlist.sides(turned))
    if constraints is not None:
        across, up = (2 * halo[movable] for halo in constraints.sides(turned))
        own = np.maximum(across - rule.spacing, 0.0), np.maximum(up - rule.spacing, 0.0)
        with contextlib.suppress(DesignError):
            return choose_grid(core.width, core.height, width + own[0], height + own[1], rule=rule)
    return choose_grid(core.width, core.height, width, height, rule=rule)


def choose_grid(
    width: float, height: float, macro_width: np.ndarray, macro_height: np.ndarray, *, rule: GridRule | None = None
) -> GridRating:
    """The grid for a canvas of `width` × `height` µm and its movable hard macros.

    Args:
        width: µm, of the canvas.
        height: µm, of the canvas.
        macro_width: float64 [H], µm, in file order.
        macro_height: float64 [H], µm.
        rule: bounds and tolerances; default: the published ones.

    Raises:
        DesignError: the macros can be packed into none of the grids.
    """
    bounds = rule or GridRule()
    ratings = _ratings(width, height, macro_width, macro_height, bounds)
    if not ratings:
        raise DesignError(
            f"{len(macro_width)} macros cannot be packed, centred in gcells, into any grid of {bounds.least_cells} to "
            f"{bounds.most_cells} gcells on a canvas of {width:g} × {height:g} µm: give columns and rows, or more room"
        )
    best = max(rating.rating for rating in ratings)
    # Ties go to the better rating, then to the order of the search, rows first.
    good = sorted(ratings, key=lambda rating: -rating.rating)
    good = [rating for rating in good if rating.rating >= best * (1 - bounds.tolerance)]
    return max(good, key=lambda rating: rating.rating / (rating.columns * rating.rows))


def _ratings(
    width: float, height: float, macro_width: np.ndarray, macro_height: np.ndarray, rule: GridRule
) -> list[GridRating]:
    """Every grid within the bounds into which the macros can be packed."""
    widths, heights = macro_width + rule.spacing, macro_height + rule.spacing
    order = np.argsort(-(macro_width * macro_height), kind="stable")
    packed_width, packed_height = widths[order].tolist(), heights[order].tolist()
    counts = range(rule.least, rule.most + 1)
    across = {count: waste(widths, width / count) for count in counts}
    up = {count: waste(heights, height / count) for count in counts}
    ratings = []
    for rows in counts:
        for columns in counts:
            aspect = (width / columns) / (height / rows)
            if not (rule.least_cells <= columns * rows <= rule.most_cells) or max(aspect, 1 / aspect) > rule.aspect:
                continue
            empty = _native.empty_share(width, height, columns, rows, packed_width, packed_height, tolerance=0.0)
            if empty >= 0:
                ratings.append(GridRating(columns, rows, empty, across[columns], up[rows]))
    return ratings


def waste(sides: np.ndarray, step: float) -> float:
    """The share of the gcells they span that macros side by side leave unused.

    The centre of each macro is the centre of a gcell, so that it spans an odd number of them; it shares its first gcell
    with the macro before it if both of their ends fit into one.

    Args:
        sides: float64 [H], µm, above 0.
        step: µm, a gcell's side.
    """
    if not len(sides):
        return 0.0
    spanned, previous = 0, 0.0
    for side in sides.tolist():
        cells = 2 * max(0, math.ceil((side / step - 1) / 2 - 1e-12)) + 1
        end = step - (cells * step - side) / 2
        spanned += cells - (end + previous <= step)
        previous = end
    total = (spanned + 1) * step
    return float((total - sides.sum()) / total)


def routing_capacity(design: FlatDesign) -> RoutingCapacity:
    """The routing capacity of a flat design's floorplan, with notices of what was assumed.

    Raises:
        DesignError: a layer has more than ten million tracks across the core.
    """
    notices: list[str] = []
    layers = _layers(design, notices)
    counted = layers[1:] if len(layers) > 2 else layers
    masters = _macros(design)
    known = any(master.obstructions for master, _ in masters)
    found = []
    for number, layer in enumerate(counted, start=len(layers) - len(counted)):
        blocked = _blocked(masters, layer.name) if known else float(number < _BLOCKED_LAYERS)
        tracks = _tracks_per_micron(design.floorplan, layer)
        found.append(LayerCapacity(layer.name, layer.direction is LayerDirection.VERTICAL, tracks, blocked))
    across, up = ([layer for layer in found if layer.is_vertical == is_vertical] for is_vertical in (False, True))
    if not all(any(layer.tracks > 0 for layer in direction) for direction in (across, up)):
        return _assumed(design.floorplan, notices)
    if len(design.netlist.hard) and not known:
        notices.append(f"no OBS says what macros block: they are taken to fill the lowest {_BLOCKED_LAYERS} layers")
    return RoutingCapacity(
        horizontal=math.fsum(layer.tracks for layer in across),
        vertical=math.fsum(layer.tracks for layer in up),
        macro_horizontal=math.fsum(layer.tracks * layer.blocked for layer in across),
        macro_vertical=math.fsum(layer.tracks * layer.blocked for layer in up),
        layers=tuple(found),
        notices=tuple(notices),
    )


def _assumed(plan: Floorplan, notices: list[str]) -> RoutingCapacity:
    height = plan.rows.row_height or plan.core.height / 100
    tracks = _TRACKS_PER_ROW / height
    notices.append(
        f"no file gives tracks or pitches in both directions: {tracks:g} tracks per µm are assumed in each, of which "
        "macros take half"
    )
    return RoutingCapacity(tracks, tracks, tracks / 2, tracks / 2, notices=tuple(notices))


def _layers(design: FlatDesign, notices: list[str]) -> list[RoutingLayer]:
    """The routing layers that have tracks or a pitch, lowest first."""
    tracked = {tracks.layer for tracks in design.floorplan.tracks}
    directed = (LayerDirection.HORIZONTAL, LayerDirection.VERTICAL)
    if design.technology.layers:
        usable = [layer for layer in design.technology.layers if layer.direction in directed]
        notices += [
            f"layer {layer.name!r} has no DIRECTION in its LEF file: it does not count for the routing capacity"
            for layer in design.technology.layers
            if layer.direction is LayerDirection.NONE
        ]
        return [layer for layer in usable if not tracked or layer.name in tracked]
    names = sorted(tracked, key=lambda name: (_trailing_number(name), name))
    if names:
        notices.append(
            f"no LEF file gives the layers' directions: they are taken to alternate, {names[0]} being horizontal"
        )
    return [RoutingLayer(name, directed[number % 2], 0.0, 0.0, 0.0, number) for number, name in enumerate(names)]


def _trailing_number(name: str) -> int:
    found = re.search(r"(\d+)$", name)
    return int(found[1]) if found else 1_000_000


def _tracks_per_micron(plan: Floorplan, layer: RoutingLayer) -> float:
    """Distinct tracks across the core in the layer's direction, over the core's length; otherwise one per pitch."""
    vertical = layer.direction is LayerDirection.VERTICAL
    low, high = (plan.core.x_low, plan.core.x_high) if vertical else (plan.core.y_low, plan.core.y_high)
    positions = []
    for tracks in plan.tracks:
        if tracks.layer != layer.name or tracks.is_vertical != vertical:
            continue
        step = tracks.step or high - low
        first = max(0, math.ceil((low - tracks.start) / step - 1e-9))
        last = min(tracks.count - 1, math.floor((high - tracks.start) / step + 1e-9))
        if last - first >= _MOST_TRACKS:
            raise DesignError(
                f"layer {layer.name!r}: TRACKS with a step of {step:g} µm put {last - first + 1:,} tracks across the "
                f"core; at most {_MOST_TRACKS:,} are taken"
            )
        # In whole database units, so that a track given twice counts once.
        positions.append(np.round((tracks.start + step * np.arange(first, last + 1)) * plan.units))
    if positions:
        return len(np.unique(np.concatenate(positions))) / (high - low)
    return 1 / layer.pitch if layer.pitch > 0 else 0.0


def _macros(design: FlatDesign) -> list[tuple[Master, float]]:
    """The masters of the hard macros that a LEF file describes, each with the area of its instances in µm²."""
    numbers, counts = np.unique(design.master[design.netlist.hard], return_counts=True)
    named = [(design.master_names[number], count) for number, count in zip(numbers, counts, strict=True) if number >= 0]
    known = [(design.technology.masters.get(name), int(count)) for name, count in named]
    return [(master, count * master.width * master.height) for master, count in known if master is not None]


def _blocked(masters: list[tuple[Master, float]], layer: str) -> float:
    """The share of the macros' area that is blocked on a layer."""
    total = sum(area for _, area in masters)
    share = 0.0
    for master, area in masters:
        shapes = [shapes[layer] for shapes in (master.obstructions, master.pin_shapes) if layer in shapes]
        if shapes:
            inside = clipped(np.concatenate(shapes), master.width, master.height)
            share += area * union_area(inside) / (master.width * master.height)
    return share / total if total else 0.0
