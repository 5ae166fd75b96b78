"""Routing capacity of a floorplan, and how much of it macros take.

A layer counts in its preferred direction; the lowest routing layer does not count, since cells' own pins and rails
fill it. A layer's capacity is its tracks per µm across the core: as DEF's TRACKS give them, else one per LEF pitch.
A macro takes of each layer the share of its area that its OBS and its pins' shapes cover.

Axis legend: L routing layers, H macros.
"""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np

from placement.netlist.design import Canvas
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan
from placement.netlist.rectangles import clipped, union_area
from placement.netlist.technology import LayerDirection, Master, RoutingLayer

# Where no file says: tracks per row height and direction, as three layers of a nine-track library have them.
_TRACKS_PER_ROW = 27.0
# Where no OBS says: macros are taken to fill this many layers, from the lowest.
_BLOCKED_LAYERS = 4
# Of one TRACKS statement across the core; a chip of 10 cm has a tenth of that in its finest layer.
_MOST_TRACKS = 10_000_000


@dataclasses.dataclass(frozen=True)
class LayerCapacity:
    """A routing layer: `tracks` per µm across its wires, of which macros take the share `blocked` where they stand."""

    name: str
    is_vertical: bool
    tracks: float
    blocked: float


@dataclasses.dataclass(frozen=True)
class RoutingCapacity:
    """Tracks per µm.

    Attributes:
        horizontal, vertical: all layers together.
        macro_horizontal, macro_vertical: what a macro takes where it stands, the mean by area over all hard macros.
        layers: what each layer adds, lowest first; empty where nothing is known of layers.
        notices: what was assumed.
    """

    horizontal: float
    vertical: float
    macro_horizontal: float
    macro_vertical: float
    layers: tuple[LayerCapacity, ...]
    notices: tuple[str, ...]


def routing_capacity(design: FlatDesign) -> RoutingCapacity:
    """The routing capacity of a flat design's floorplan; what no file says is assumed, with a notice.

    Raises:
        DesignError: tracks lie so close that more than ten million of them cross the core.
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
    if not all(any(layer.is_vertical == up and layer.tracks > 0 for layer in found) for up in (False, True)):
        return _assumed(design.floorplan, notices)
    if len(design.netlist.hard) and not known:
        notices.append(f"no OBS says what macros block: they are taken to fill the lowest {_BLOCKED_LAYERS} layers")
    across = [layer for layer in found if not layer.is_vertical]
    upward = [layer for layer in found if layer.is_vertical]
    return RoutingCapacity(
        horizontal=math.fsum(layer.tracks for layer in across),
        vertical=math.fsum(layer.tracks for layer in upward),
        macro_horizontal=math.fsum(layer.tracks * layer.blocked for layer in across),
        macro_vertical=math.fsum(layer.tracks * layer.blocked for layer in upward),
        layers=tuple(found),
        notices=tuple(notices),
    )


def capacity_of(canvas: Canvas) -> RoutingCapacity:
    """The routing capacity that a canvas was given."""
    return RoutingCapacity(
        horizontal=canvas.routes_horizontal,
        vertical=canvas.routes_vertical,
        macro_horizontal=canvas.macro_routes_horizontal,
        macro_vertical=canvas.macro_routes_vertical,
        layers=(),
        notices=(),
    )


def _assumed(plan: Floorplan, notices: list[str]) -> RoutingCapacity:
    height = plan.rows.row_height or plan.core.height / 100
    tracks = _TRACKS_PER_ROW / height
    notices.append(
        f"no file gives tracks or pitches in both directions: {tracks:g} tracks per µm are assumed in each, of which "
        "macros take half"
    )
    return RoutingCapacity(tracks, tracks, tracks / 2, tracks / 2, (), tuple(notices))


def _layers(design: FlatDesign, notices: list[str]) -> list[RoutingLayer]:
    """The routing layers that have tracks or a pitch, lowest first."""
    plan = design.floorplan
    tracked = {tracks.layer for tracks in plan.tracks}
    if design.technology.layers:
        directed = (LayerDirection.HORIZONTAL, LayerDirection.VERTICAL)
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
    turns = (LayerDirection.HORIZONTAL, LayerDirection.VERTICAL)
    return [RoutingLayer(name, turns[number % 2], 0.0, 0.0, 0.0, number) for number, name in enumerate(names)]


def _trailing_number(name: str) -> int:
    found = re.search(r"(\d+)$", name)
    return int(found[1]) if found else 1_000_000


def _tracks_per_micron(plan: Floorplan, layer: RoutingLayer) -> float:
    """Different tracks across the core in the layer's direction, over the core's length; else one per pitch."""
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
        # Whole database units, so that the same track given twice counts once.
        positions.append(np.round((tracks.start + step * np.arange(first, last + 1)) * plan.units))
    if positions:
        return len(np.unique(np.concatenate(positions))) / (high - low)
    return 1 / layer.pitch if layer.pitch > 0 else 0.0


def _macros(design: FlatDesign) -> list[tuple[Master, float]]:
    """The masters of the hard macros that a LEF file describes, each with the area of its instances in µm²."""
    netlist = design.netlist
    numbers, counts = np.unique(design.master[netlist.hard], return_counts=True)
    masters = design.technology.masters
    return [
        (masters[design.master_names[number]], count * masters[design.master_names[number]].width
         * masters[design.master_names[number]].height)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
        if number >= 0 and design.master_names[number] in masters
    ]  # fmt: skip


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
