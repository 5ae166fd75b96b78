"""Finds the hard macros that are placed illegally, and the reasons.

The rules are the engine's (`legality.hpp`); here each violation has its macro and its reason. Axis legend: H hard
macros, K rectangles that macros keep out of. Lengths are in µm.
"""

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from placement.netlist.design import Design, Orientation, Placement
from placement.netlist.keep_outs import KeepOutKind, keep_outs

TOLERANCE = 1e-6  # µm; lengths that differ only by rounding are equal, as in the engine
NARROW = "less than a channel"  # in the reasons of the channel rule
MOST_REASONS = 6  # maximum number of reasons reported for one macro
_KEEP_OUT = {
    KeepOutKind.BLOCKAGE: "is on a blockage",
    KeepOutKind.REGION: "is outside its region, or inside one that is reserved for others",
    KeepOutKind.PORT: "is closer to a port than the keep-out of {:g} µm",
}
Faults = dict[int, list[str]]
Reasons = Iterator[tuple[int, str]]


def find_faults(design: Design, placement: Placement, macros: np.ndarray | None = None) -> Faults:
    """The reasons, in words, by the node of the hard macro; legal macros are omitted.

    `macros` are the hard macros to check, with each other only; None: all.
    """
    who = np.ones(len(design.netlist.hard), dtype=bool) if macros is None else np.isin(design.netlist.hard, macros)
    return _by_macro(_Macros(design, placement).reasons(who, np.outer(who, who)))


class DragFaults:
    """The faults while a few nodes move and all others rest; recomputes only those that involve a moving node."""

    def __init__(self, design: Design, placement: Placement, nodes: Collection[int]) -> None:
        """Takes the nodes that will move, and the placement before the move."""
        self._design, self._moving = design, np.isin(design.netlist.hard, list(nodes))
        rest = ~self._moving
        self._resting = list(_Macros(design, placement).reasons(rest, np.outer(rest, rest)))

    def find(self, placement: Placement) -> Faults:
        """Does the same as `find_faults`; only the moving nodes may have new positions."""
        moving = self._moving
        return _by_macro([*_Macros(self._design, placement).reasons(moving, moving[:, None] | moving), *self._resting])


def _by_macro(reasons: Iterable[tuple[int, str]]) -> Faults:
    """The reasons by macro in the order of nodes, at most `MOST_REASONS` of each macro."""
    found: Faults = {}
    for node, reason in reasons:
        found.setdefault(node, []).append(reason)
    for node, listed in found.items():
        if len(listed) > MOST_REASONS:
            found[node] = [*listed[:MOST_REASONS], f"and {len(listed) - MOST_REASONS} more"]
    return dict(sorted(found.items()))


class _Macros:
    """All hard macros as placed; arrays are [H]."""

    def __init__(self, design: Design, placement: Placement) -> None:
        self.design, self.constraints = design, design.constraints
        self.hard = hard = design.netlist.hard
        self.orientation = placement.orientation[hard]
        self.size = np.stack(design.netlist.sides(placement.orientation))[:, hard]
        self.halo = design.constraints.turned_halo(placement.orientation)[hard].T  # [4, H]
        self.centre = np.stack((placement.x[hard], placement.y[hard]))
        # The largest gap of an abutment beyond the distance that halos need, by axis; see native/cost/legality.hpp.
        self.slack = np.maximum(TOLERANCE, 3 * np.array(design.constraints.coarsest_pitch) - TOLERANCE)
        self.low, self.high = self.centre - self.size / 2, self.centre + self.size / 2  # [2, H]: x and y

    def reasons(self, who: np.ndarray, pairs: np.ndarray) -> Reasons:
        """The faults of the macros in `who` (bool [H]), and of the pairs in `pairs` (bool [H, H], symmetric)."""
        chosen = np.flatnonzero(who)
        yield from self.outside(chosen)
        yield from self.too_close(*np.nonzero(np.triu(pairs, 1)))
        yield from self.narrow(*np.nonzero(np.triu(pairs, 1)))
        yield from self.at_edges(chosen)
        yield from self.on_keep_outs(chosen)
        yield from self.misoriented(chosen)
        yield from self.off_grid(chosen)

    def needed(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Distance in µm that the halos of pairs require on each axis, float64 [2, ·]."""
        low, high = self.halo[:2], self.halo[2:]
        is_first = self.centre[:, first] <= self.centre[:, second]
        return np.where(is_first, high[:, first] + low[:, second], low[:, first] + high[:, second])

    def outside(self, chosen: np.ndarray) -> Reasons:
        extent = np.array([[self.design.canvas.width], [self.design.canvas.height]])
        beyond = np.maximum(-self.low, self.high - extent).max(axis=0)
        for index in chosen[beyond[chosen] > TOLERANCE]:
            yield int(self.hard[index]), f"extends {beyond[index]:.4g} µm beyond the canvas"

    def too_close(self, first: np.ndarray, second: np.ndarray) -> Reasons:
        """Both macros of every pair that overlaps, or is closer than its halos allow."""
        threshold = self.design.canvas.overlap_threshold
        reach = (self.size[:, first] + self.size[:, second]) / 2 - np.abs(
            self.centre[:, first] - self.centre[:, second]
        )
        # Positive values are the overlap along an axis; negative ones are the distance.
        shared = np.minimum(reach, np.minimum(self.size[:, first], self.size[:, second]))
        gap = self.needed(first, second)
        overlap = (shared > threshold + TOLERANCE).all(axis=0)
        close = (shared > np.where(gap > 0, -gap, threshold) + TOLERANCE).all(axis=0)
        names = self.design.netlist.names
        for pair in np.flatnonzero(overlap | close):
            one, other = int(self.hard[first[pair]]), int(self.hard[second[pair]])
            if overlap[pair]:
                reason = f"overlaps {{}} by {shared[0, pair]:.4g} × {shared[1, pair]:.4g} µm"
            else:
                reason = f"is closer to {{}} than their halos allow ({gap[0, pair]:g} × {gap[1, pair]:g} µm)"
            yield one, reason.format(names[other])
            yield other, reason.format(names[one])

    def narrow(self, first: np.ndarray, second: np.ndarray) -> Reasons:
        """Both macros of every pair whose gap is more than an abutment and less than a channel."""
        if not self.constraints.has_channels:
            return
        apart = np.abs(self.centre[:, first] - self.centre[:, second])
        gap = apart - (self.size[:, first] + self.size[:, second]) / 2
        needed = self.needed(first, second)
        faces = np.minimum(-gap, np.minimum(self.size[:, first], self.size[:, second])) > TOLERANCE
        channel = np.array(self.constraints.channel)[:, None]
        broken = faces[::-1] & (gap > needed + self.slack[:, None]) & (gap < channel - TOLERANCE)
        names = self.design.netlist.names
        for pair in np.flatnonzero(broken.any(axis=0)):
            one, other, axis = int(self.hard[first[pair]]), int(self.hard[second[pair]]), int(broken[:, pair].argmax())
            reason = f"is {gap[axis, pair]:.4g} µm from {{}}, {NARROW} of {channel[axis, 0]:g} µm"
            yield one, reason.format(names[other])
            yield other, reason.format(names[one])

    def at_edges(self, chosen: np.ndarray) -> Reasons:
        """Macros whose gap to the canvas's edge is less than a channel."""
        if not self.constraints.has_channels:
            return
        extent = np.array([[self.design.canvas.width], [self.design.canvas.height]])
        gap = np.stack((self.low, extent - self.high))[:, :, chosen]  # [2 (low, high), 2, ·]
        channel = np.array(self.constraints.channel)[:, None]
        broken = (gap > self.slack[:, None]) & (gap < channel - TOLERANCE)
        for index in np.flatnonzero(broken.any(axis=(0, 1))):
            side, axis = np.argwhere(broken[:, :, index])[0]
            distance, width = gap[side, axis, index], channel[axis, 0]
            yield (
                int(self.hard[chosen[index]]),
                (f"is {distance:.4g} µm from the canvas's edge, {NARROW} of {width:g} µm"),
            )

    def on_keep_outs(self, chosen: np.ndarray) -> Reasons:
        """Macros on blockages, outside their regions, too close to ports."""
        kept = keep_outs(self.design)
        if not len(kept.rectangles):
            return
        low, high = kept.rectangles[:, :2], kept.rectangles[:, 2:]
        for index, node in zip(chosen.tolist(), self.hard[chosen].tolist(), strict=True):
            items = kept.of(node)
            shared = np.minimum(high[items], self.high[:, index]) - np.maximum(low[items], self.low[:, index])
            for kind in np.unique(kept.kind[items[(shared > TOLERANCE).all(axis=1)]]):
                yield node, _KEEP_OUT[KeepOutKind(kind)].format(self.constraints.port_keepout)

    def misoriented(self, chosen: np.ndarray) -> Reasons:
        for node, orientation in zip(self.hard[chosen].tolist(), self.orientation[chosen].tolist(), strict=True):
            if not self.constraints.allows(node, orientation):
                allowed = ", ".join(one.name for one in Orientation if self.constraints.allows(node, one))
                yield node, f"has orientation {Orientation(orientation).name}; it may be {allowed}"

    def off_grid(self, chosen: np.ndarray) -> Reasons:
        """Macros whose lower left corner is not on the snapping grid."""
        pitch, offset = self.constraints.corner_grids(self.hard[chosen], self.orientation[chosen])
        step, corner = np.where(pitch > 0, pitch, 1.0), self.low[:, chosen]
        away = np.abs(corner - offset - step * np.round((corner - offset) / step))
        for index in np.flatnonzero(((pitch > 0) & (away > TOLERANCE)).any(axis=0)):
            across, up = pitch[:, index]
            yield int(self.hard[chosen[index]]), f"its lower left corner is off the grid of {across:g} × {up:g} µm"
