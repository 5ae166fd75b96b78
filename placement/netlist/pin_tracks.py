"""The snapping grids of macros on which their pins lie on the routing tracks of their layers.

A pin is on a track if the centre of one of its shapes is, across the layer's preferred direction, within half a
database unit of it. The lower left corner of a macro is then at the position of a track minus that of a pin, and the
corners that suit all pins of a layer repeat with the period of its tracks. Several layers suit at once if these periods
have a common one (the Chinese remainder theorem). Axis legend: K rectangles. Lengths are in database units unless a
name says otherwise.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from placement.netlist.constraints import MacroGrid, SnapGrid
from placement.netlist.design import TURN, Orientation
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan
from placement.netlist.technology import LayerDirection, Master

COARSEST = 2.0  # maximum common period in µm of layers that are aligned together
_MOST_LINES = 1_000
"""Maximum number of tracks in a period of a layer; for a layer with more, only the first pattern counts."""
_DIRECTIONS = (
    LayerDirection.VERTICAL,
    LayerDirection.HORIZONTAL,
)  # Layers whose tracks have positions in x, in y.


class _Lines(NamedTuple):
    """The tracks of a layer, at `at` (sorted, in [0, period)) plus whole periods."""

    period: int
    at: tuple[int, ...]


class _Layer(NamedTuple):
    """A layer's constraint on a macro's corner: corner modulo the period → number of pins then on tracks."""

    name: str
    pins: int
    period: int
    suits: Counter[int]


class _Chosen(NamedTuple):
    """Corners at `offset` plus whole pitches, and layer → number of its pins that are then on no track."""

    pitch: int
    offset: int
    off: dict[str, int]


def macro_grids_on_tracks(flat: FlatDesign, orientations: np.ndarray, notices: list[str]) -> tuple[MacroGrid, ...]:
    """The grids of the hard macros whose masters are known, relative to the core's corner.

    On an axis without pin layers, corners lie on the database units and the manufacturing grid. Notices name the
    layers, and the masters of which some pins cannot be on tracks in an orientation that they may have.

    Args:
        flat: the design before clustering.
        orientations: uint8 [N], the set of allowed orientations of each node.
        notices: the list that notices are added to.
    """
    netlist, plan, technology = flat.netlist, flat.floorplan, flat.technology
    lines = [_lines(flat, direction) for direction in _DIRECTIONS]
    nodes_of = defaultdict[str, list[int]](list)
    for node in netlist.hard.tolist():
        name = flat.master_names[flat.master[node]] if flat.master[node] >= 0 else ""
        if name in technology.masters:
            nodes_of[name].append(node)
    found, aligned, failed = [], set[str](), set[str]()
    for name, nodes in nodes_of.items():
        master, grids = technology.masters[name], list[SnapGrid]()
        counts = Counter(layer for pin in master.pins if pin.is_signal for layer in pin.shapes)  # pins on each layer
        off = defaultdict[str, dict[Orientation, int]](dict)
        for turn in Orientation:
            axes = [_chosen(master, turn, axis, lines[axis], plan) for axis in (0, 1)]
            grids.append(_grid(axes, plan))
            for layer, pins in [item for one in axes for item in one.off.items()]:
                if (orientations[nodes] >> turn & 1).any():
                    off[layer][turn] = pins
        what = f"of {name!r} ({len(nodes)} macros, first: {netlist.names[nodes[0]]!r})"
        for layer, by_turn in off.items():
            wrong = [turn for turn, pins in by_turn.items() if pins]
            upright = [turn for turn in by_turn if not turn.swaps_sides]
            (failed if {*wrong} & {*upright} else aligned).add(layer)
            if wrong:
                where = "" if len(wrong) == len(by_turn) else f" in {', '.join(turn.name for turn in wrong)}"
                notices.append(
                    f"{max(by_turn.values())} of {counts[layer]} pins on {layer} {what} cannot be on the tracks of "
                    f"their layer together with the others{where}"
                )
        for layer in sorted(counts.keys() - lines[0].keys() - lines[1].keys()):
            notices.append(
                f"{counts[layer]} pins on {layer} of {name!r} are on no track: the floorplan has no tracks on {layer}"
            )
        found.append(MacroGrid(np.array(nodes), tuple(grids)))
    if aligned - failed:
        layers = ", ".join(sorted(aligned - failed))
        notices.append(f"macros are snapped so that their pins lie on the tracks of {layers}")
    return tuple(found)


def _lines(flat: FlatDesign, direction: LayerDirection) -> Mapping[str, _Lines]:
    """Layer → its tracks, for the layers that prefer a direction."""
    units, is_vertical, found = flat.floorplan.units, direction is LayerDirection.VERTICAL, {}
    for layer in flat.technology.layers:
        patterns = [
            (round(one.step * units), round(one.start * units))
            for one in flat.floorplan.tracks
            if one.layer == layer.name and one.is_vertical == is_vertical and round(one.step * units) > 0
        ]
        if layer.direction is not direction or not patterns:
            continue
        period = math.lcm(*(step for step, _ in patterns))
        if sum(period // step for step, _ in patterns) > _MOST_LINES:
            patterns, period = patterns[:1], patterns[0][0]
        at = {(start + i * step) % period for step, start in patterns for i in range(period // step)}
        found[layer.name] = _Lines(period, tuple(sorted(at)))
    return found


def _layers(master: Master, turn: Orientation, axis: int, lines: Mapping[str, _Lines], units: float) -> list[_Layer]:
    """The layers of a master's signal pins with tracks on an axis, the one with the most pins first."""
    size = np.array([master.width, master.height])
    matrix = TURN[turn].reshape(2, 2)
    half = np.abs(matrix @ size) / 2
    suits, pins = defaultdict[str, Counter[int]](Counter), Counter[str]()
    for pin in master.pins if master.has_size else ():
        for layer, shapes in pin.shapes.items() if pin.is_signal else ():
            if layer not in lines:
                continue
            centres = (shapes[:, :2] + shapes[:, 2:] - size) / 2
            at = (centres @ matrix.T + half)[:, axis] * units
            period, tracks = lines[layer]
            exact = np.subtract.outer(tracks, at)
            # corners on database units, within half a unit; 1e-6 absorbs rounding
            near = np.stack((np.floor(exact + 0.5 + 1e-6), np.ceil(exact - 0.5 - 1e-6)))
            suits[layer].update(np.unique(near.astype(np.int64) % period).tolist())
            pins[layer] += 1
    return [_Layer(name, count, lines[name].period, suits[name]) for name, count in pins.most_common()]


def _chosen(master: Master, turn: Orientation, axis: int, lines: Mapping[str, _Lines], plan: Floorplan) -> _Chosen:
    """The corners at which the most pins are on tracks, layer by layer."""
    step = plan.manufacturing_grid * plan.units
    pitch = max(round(step), 1) if abs(step - round(step)) < 1e-6 else 1
    offset, off = 0, {}
    for layer in _layers(master, turn, axis, lines, plan.units):
        best, joined = 0, None
        for corner, count in sorted(layer.suits.items()):
            if count <= best:
                continue
            period = _shortest_period(layer, count)
            together = _both((offset, pitch), (corner % period, period))
            longest = max(COARSEST * plan.units, pitch, period)
            if together is not None and together[1] <= longest:
                best, joined = count, together
        off[layer.name] = layer.pins - best
        offset, pitch = joined or (offset, pitch)
    return _Chosen(pitch, offset, off)


def _shortest_period(layer: _Layer, count: int) -> int:
    """The number of units after which the corners that suit `count` pins repeat."""
    corners = {corner for corner, suited in layer.suits.items() if suited == count}
    for parts in range(len(corners), 1, -1):
        if len(corners) % parts == 0 and layer.period % parts == 0:
            shift = layer.period // parts
            if {(corner + shift) % layer.period for corner in corners} == corners:
                return shift
    return layer.period


def _both(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int] | None:
    """The numbers that satisfy two congruences (rest, modulus), as such a pair; None if there are none."""
    (rest, modulus), (second, other_modulus) = one, other
    common = math.gcd(modulus, other_modulus)
    if (second - rest) % common:
        return None
    parts = other_modulus // common
    times = (second - rest) // common * pow(modulus // common, -1, parts) % parts if parts > 1 else 0
    whole = modulus * parts
    return (rest + modulus * times) % whole, whole


def _grid(axes: list[_Chosen], plan: Floorplan) -> SnapGrid:
    """The corners on both axes in µm, relative to the core's corner."""
    across, up = axes
    offsets = [
        (one.offset - round(low * plan.units)) % one.pitch / plan.units
        for one, low in zip(axes, (plan.core.x_low, plan.core.y_low), strict=True)
    ]
    return SnapGrid(across.pitch / plan.units, up.pitch / plan.units, *offsets)
