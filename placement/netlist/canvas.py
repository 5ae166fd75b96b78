"""The canvas of a flat design: the core of its rows, a grid of gcells, and the routing capacity.

**Grid.** Circuit Training's rule (google-research/circuit_training, `grid_size_selection`, as first published): of all
grids of 10 to 127 columns and rows, 500 to 2,500 gcells (a later version: 4,096), and gcells at most 1.5 times as wide
as high or vice versa, into which the macros can be packed, rate each by the fraction of gcells that the packed macros
leave empty, plus the fraction that adjacent macros waste neither across nor up (`waste`); of those within 5% of the
best rating, take the one with the highest rating per gcell.

**Routing capacity.** A layer counts in its preferred direction; the lowest routing layer does not count, since pins and
rails of cells fill it. A layer's capacity is its tracks per µm across the core: DEF's TRACKS, or one per LEF pitch. A
macro blocks in each layer the fraction of its area that its OBS and its pins' shapes cover.

Axis legend: H macros. Lengths in µm.
"""

import contextlib
import itertools
import math
import re
from typing import NamedTuple

import numpy as np

from placement.netlist import _native
from placement.netlist.constraints import Constraints
from placement.netlist.design import Canvas
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan
from placement.netlist.geometry import clipped, union_area
from placement.netlist.technology import LayerDirection, Master, RoutingLayer

_LINES = range(10, 128)  # candidate numbers of columns and of rows in the grid rule
_GCELLS = range(500, 2501)
_ASPECT, _TOLERANCE = 1.5, 0.05
_SMOOTHING = 2  # gcells on each side over which congestion is spread; Circuit Training's default
_TRACKS_PER_ROW = 27.0
"""Tracks per row height and direction assumed if no file gives any: three layers of a nine-track library."""
_BLOCKED_LAYERS = 4  # number of lowest routing layers that macros are assumed to block if no OBS is given
_MOST_TRACKS = 10_000_000
"""Upper limit on the tracks of one TRACKS statement; a 10 cm chip has a tenth of that in its finest layer."""


class LayerCapacity(NamedTuple):
    """A routing layer: `tracks` per µm across its wires; macros block the fraction `blocked` of them in their area."""

    name: str
    is_vertical: bool
    tracks: float
    blocked: float


class RoutingCapacity(NamedTuple):
    """Tracks per µm."""

    horizontal: float  # horizontal, vertical: sums over all layers
    vertical: float
    # macro_horizontal, macro_vertical: tracks that a macro blocks in its area, averaged by area over all hard macros
    macro_horizontal: float
    macro_vertical: float
    # the contribution of each layer, lowest first; empty if the layers are unknown
    layers: tuple[LayerCapacity, ...] = ()
    notices: tuple[str, ...] = ()  # the assumptions that were made


def canvas_of(
    design: FlatDesign,
    *,
    columns: int | None = None,
    rows: int | None = None,
    constraints: Constraints | None = None,
) -> tuple[Canvas, RoutingCapacity]:
    """The canvas of a flat design, which is its core, and the details of its routing capacity.

    Args:
        design: the flat netlist on its floorplan.
        columns: number of columns of the grid; None: chosen by the rule.
        rows: number of rows of the grid; None: chosen by the rule.
        constraints: constraints on the nodes of the flat netlist; the rule leaves their halos between macros. None: no
            halos.

    Raises:
        DesignError: a layer has more than ten million tracks.
    """
    core, capacity = design.floorplan.core, routing_capacity(design)
    if columns is None or rows is None:
        try:
            grid = _grid(design, constraints or Constraints.none(design.netlist.num_nodes))
        except DesignError as error:  # A search needs no grid, but a training episode does.
            grid = finest_grid(core.width, core.height)
            notice = f"{error}; until then it is {grid[0]} × {grid[1]} gcells, on which training may find dead ends"
            capacity = capacity._replace(notices=(*capacity.notices, notice))
        columns, rows = columns or grid[0], rows or grid[1]
    return Canvas(core.width, core.height, columns, rows, *capacity[:4], smoothing=_SMOOTHING), capacity


def _grid(design: FlatDesign, constraints: Constraints) -> tuple[int, int]:
    """The rule's columns and rows for the movable macros with their halos, or without halos if these do not fit."""
    netlist, core = design.netlist, design.floorplan.core
    movable = netlist.hard[~design.placement.fixed[netlist.hard]]
    turned = constraints.turned(design.placement.orientation)
    width, height = (side[movable] for side in netlist.sides(turned))
    halo = constraints.turned_halo(turned)[movable]
    across, up = (halo[:, :2] + halo[:, 2:]).T
    with contextlib.suppress(DesignError):
        return choose_grid(core.width, core.height, width + across, height + up)
    return choose_grid(core.width, core.height, width, height)


def choose_grid(width: float, height: float, macro_width: np.ndarray, macro_height: np.ndarray) -> tuple[int, int]:
    """Columns and rows for a canvas of `width` × `height` µm and its movable hard macros (float64 [H], in file order).

    Raises DesignError if the macros can be packed into none of the grids.
    """
    order = np.argsort(-(macro_width * macro_height), kind="stable")
    packed_width, packed_height = macro_width[order].tolist(), macro_height[order].tolist()
    across = {count: waste(macro_width, width / count) for count in _LINES}
    up = {count: waste(macro_height, height / count) for count in _LINES}
    rated: list[tuple[float, int, int]] = []
    for rows, columns in itertools.product(_LINES, repeat=2):
        aspect = (width / columns) / (height / rows)
        if columns * rows not in _GCELLS or max(aspect, 1 / aspect) > _ASPECT:
            continue
        empty = _native.empty_share(width, height, columns, rows, packed_width, packed_height, tolerance=0.0)
        if empty >= 0:
            rated.append((empty + (1 - across[columns]) + (1 - up[rows]), columns, rows))
    if not rated:
        raise DesignError(
            f"{len(macro_width)} macros cannot be packed, centred in gcells, into any grid of {_GCELLS[0]} to "
            f"{_GCELLS[-1]} gcells on a canvas of {width:g} × {height:g} µm: give columns and rows, or a larger core"
        )
    # Ties go to the better rating, then to the first candidate, rows first.
    rated.sort(key=lambda rating: -rating[0])
    good = [rating for rating in rated if rating[0] >= rated[0][0] * (1 - _TOLERANCE)]
    return max(good, key=lambda rating: rating[0] / (rating[1] * rating[2]))[1:]


def finest_grid(width: float, height: float) -> tuple[int, int]:
    """Columns and rows of the finest nearly square grid that the rule allows on a canvas of `width` × `height` µm."""
    columns = min(max(round(math.sqrt(_GCELLS[-1] * width / height)), _LINES[0]), _LINES[-1])
    return columns, min(max(_GCELLS[-1] // columns, _LINES[0]), _LINES[-1])


def waste(sides: np.ndarray, step: float) -> float:
    """Fraction of the spanned gcells that a row of adjacent macros leaves unused.

    The centre of each macro is the centre of a gcell, so that it spans an odd number of them; it shares its first gcell
    with the macro before it if both of their ends fit into one. `sides` are float64 [H], µm, above 0; `step` is a
    gcell's side.
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
    """The routing capacity of a flat design's floorplan, with notices of the assumptions that were made.

    Raises DesignError if a layer has more than ten million tracks across the core.
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
        tracks = _TRACKS_PER_ROW / (design.floorplan.rows.row_height or design.floorplan.core.height / 100)
        notices.append(
            f"no file gives tracks or pitches in both directions: {tracks:g} tracks per µm are assumed in each, "
            "half of them blocked by macros"
        )
        return RoutingCapacity(tracks, tracks, tracks / 2, tracks / 2, notices=tuple(notices))
    if len(design.netlist.hard) and not known:
        notices.append(f"no OBS in LEF: macros are assumed to block the lowest {_BLOCKED_LAYERS} layers")
    horizontal, vertical = (math.fsum(layer.tracks for layer in direction) for direction in (across, up))
    taken = [math.fsum(layer.tracks * layer.blocked for layer in direction) for direction in (across, up)]
    return RoutingCapacity(horizontal, vertical, taken[0], taken[1], tuple(found), tuple(notices))


def _layers(design: FlatDesign, notices: list[str]) -> list[RoutingLayer]:
    """The routing layers that have tracks or a pitch, lowest first."""
    tracked = {tracks.layer for tracks in design.floorplan.tracks}
    directed = (LayerDirection.HORIZONTAL, LayerDirection.VERTICAL)
    if design.technology.layers:
        usable = [layer for layer in design.technology.layers if layer.direction in directed]
        notices += [
            f"layer {layer.name!r} has no DIRECTION in its LEF file: it is ignored in the routing capacity"
            for layer in design.technology.layers
            if layer.direction is LayerDirection.NONE
        ]
        return [layer for layer in usable if not tracked or layer.name in tracked]
    trailing = {name: re.search(r"\d+$", name) for name in tracked}
    names = sorted(tracked, key=lambda name: (int(found[0]) if (found := trailing[name]) else 1_000_000, name))
    if names:
        notices.append(
            f"no LEF file gives the layers' directions: they are assumed to alternate, {names[0]} being horizontal"
        )
    return [RoutingLayer(name, directed[number % 2], 0.0, 0.0, 0.0, number) for number, name in enumerate(names)]


def _tracks_per_micron(plan: Floorplan, layer: RoutingLayer) -> float:
    """Distinct tracks per µm of the core in the layer's direction; without tracks, one per pitch."""
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
        # Tracks are in whole database units, so that one listed twice counts once.
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
    """Fraction of the macros' area that is blocked on a layer."""
    total = sum(area for _, area in masters)
    share = 0.0
    for master, area in masters:
        shapes = [shapes[layer] for shapes in (master.obstructions, master.pin_shapes) if layer in shapes]
        if shapes:
            inside = clipped(np.concatenate(shapes), master.width, master.height)
            share += area * union_area(inside) / (master.width * master.height)
    return share / total if total else 0.0
