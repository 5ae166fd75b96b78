"""Which hard macros are placed illegally, and why.

The rules are the engine's (`legality.hpp`); here each violation gets its macro and its reason.
Axis legend: K pairs of hard macros, W hard macros that are checked. Lengths are in µm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from placement.netlist.design import Design, Orientation, Placement
from placement.netlist.keep_outs import KeepOutKind, keep_outs

TOLERANCE = 1e-6
"""µm: lengths that differ by rounding only are equal, as in the engine."""
MOST_REASONS = 6
"""Reasons reported for one macro."""
_KEEP_OUT = {
    KeepOutKind.BLOCKAGE: "is on a blockage",
    KeepOutKind.REGION: "is outside its region, or inside one that is reserved for others",
    KeepOutKind.PORT: "is closer to a port than the keep-out of {:g} µm",
}
Faults = dict[int, list[str]]
Reasons = Iterator[tuple[int, str]]


def find_faults(design: Design, placement: Placement) -> Faults:
    """The reasons, in words, by the node of the hard macro; legal macros are left out."""
    every = np.arange(len(design.netlist.hard))
    return _by_macro(_HardBoxes(design, placement, every).reasons(*np.triu_indices(len(every), 1)))


class DragFaults:
    """The faults while a few nodes move and all others rest: only those that involve a moving node are found anew."""

    def __init__(self, design: Design, placement: Placement, nodes: Collection[int]) -> None:
        """Takes the nodes that will move, and the placement before they do."""
        self._design = design
        moves = np.isin(design.netlist.hard, list(nodes))
        self._moving, resting = np.flatnonzero(moves), np.flatnonzero(~moves)
        first, second = np.triu_indices(len(resting), 1)
        self._resting = list(_HardBoxes(design, placement, resting).reasons(resting[first], resting[second]))

    def find(self, placement: Placement) -> Faults:
        """As `find_faults`; only the moving nodes may have new positions."""
        hard = np.arange(len(self._design.netlist.hard))
        first, second = (one.reshape(-1) for one in np.meshgrid(self._moving, hard, indexing="ij"))
        once = (first < second) | ~np.isin(second, self._moving)
        boxes = _HardBoxes(self._design, placement, self._moving)
        return _by_macro([*boxes.reasons(first[once], second[once]), *self._resting])


def _by_macro(reasons: Iterable[tuple[int, str]]) -> Faults:
    """The reasons by macro in the order of nodes, `MOST_REASONS` of each macro at most."""
    found: Faults = {}
    for node, reason in reasons:
        found.setdefault(node, []).append(reason)
    for node, listed in found.items():
        if len(listed) > MOST_REASONS:
            found[node] = [*listed[:MOST_REASONS], f"and {len(listed) - MOST_REASONS} more"]
    return dict(sorted(found.items()))


class _HardBoxes:
    """The boxes of all hard macros, and which of them are checked: `who`, int [W], indices of hard macros."""

    def __init__(self, design: Design, placement: Placement, who: np.ndarray) -> None:
        self.design, self.constraints, self.who = design, design.constraints, who
        self.hard = hard = design.netlist.hard
        self.x, self.y, self.orientation = placement.x[hard], placement.y[hard], placement.orientation[hard]
        self.width, self.height = (side[hard] for side in design.netlist.sides(placement.orientation))
        self.halo_x, self.halo_y = (side[hard] for side in design.constraints.sides(placement.orientation))

    def reasons(self, first: np.ndarray, second: np.ndarray) -> Reasons:
        """The faults of the checked macros, and of pairs (int [K] each) of hard macros."""
        yield from self.outside()
        yield from self.too_close(first, second)
        yield from self.on_keep_outs()
        yield from self.misoriented()
        yield from self.off_grid()

    def outside(self) -> Reasons:
        canvas = self.design.canvas
        beyond = np.zeros(len(self.hard))
        for centre, length, extent in ((self.x, self.width, canvas.width), (self.y, self.height, canvas.height)):
            beyond = np.maximum(beyond, np.maximum(length / 2 - centre, centre + length / 2 - extent))
        for index in self.who[beyond[self.who] > TOLERANCE]:
            yield int(self.hard[index]), f"reaches {beyond[index]:.4g} µm beyond the canvas"

    def too_close(self, first: np.ndarray, second: np.ndarray) -> Reasons:
        """Both macros of every pair that overlaps, or is closer than its halos allow."""
        threshold = self.design.canvas.overlap_threshold
        across = _shared(self.x, self.width, first, second)
        up = _shared(self.y, self.height, first, second)
        overlap = (across > threshold + TOLERANCE) & (up > threshold + TOLERANCE)
        gap_x, gap_y = self.halo_x[first] + self.halo_x[second], self.halo_y[first] + self.halo_y[second]
        least_x, least_y = np.where(gap_x > 0, -gap_x, threshold), np.where(gap_y > 0, -gap_y, threshold)
        close = (across > least_x + TOLERANCE) & (up > least_y + TOLERANCE) & ~overlap
        names = self.design.netlist.names
        for pair in np.flatnonzero(overlap | close):
            one, other = int(self.hard[first[pair]]), int(self.hard[second[pair]])
            if overlap[pair]:
                reason = f"overlaps {{}} by {across[pair]:.4g} × {up[pair]:.4g} µm"
            else:
                reason = f"is closer to {{}} than their halos allow ({gap_x[pair]:g} × {gap_y[pair]:g} µm)"
            yield one, reason.format(names[other])
            yield other, reason.format(names[one])

    def on_keep_outs(self) -> Reasons:
        """Macros on blockages, outside their regions, too close to ports."""
        kept = keep_outs(self.design)
        if not len(kept.rectangles):
            return
        left, low, right, high = kept.rectangles.T
        for index, node in zip(self.who.tolist(), self.hard[self.who].tolist(), strict=True):
            items = kept.of(node)
            half_x, half_y = self.width[index] / 2, self.height[index] / 2
            across = np.minimum(right[items], self.x[index] + half_x) - np.maximum(left[items], self.x[index] - half_x)
            up = np.minimum(high[items], self.y[index] + half_y) - np.maximum(low[items], self.y[index] - half_y)
            for kind in np.unique(kept.kind[items[(across > TOLERANCE) & (up > TOLERANCE)]]):
                yield node, _KEEP_OUT[KeepOutKind(kind)].format(self.constraints.port_keepout)

    def misoriented(self) -> Reasons:
        for node, orientation in zip(self.hard[self.who].tolist(), self.orientation[self.who].tolist(), strict=True):
            if not self.constraints.allows(node, orientation):
                allowed = ", ".join(one.name for one in Orientation if self.constraints.allows(node, one))
                yield node, f"has orientation {Orientation(orientation).name}; it may be {allowed}"

    def off_grid(self) -> Reasons:
        """Macros whose lower left corner is not on the snapping grid."""
        grid = self.constraints.grid
        off = np.zeros(len(self.hard), dtype=bool)
        for corner, pitch, offset in (
            (self.x - self.width / 2, grid.pitch_x, grid.offset_x),
            (self.y - self.height / 2, grid.pitch_y, grid.offset_y),
        ):
            if pitch > 0:
                off |= np.abs(corner - offset - pitch * np.round((corner - offset) / pitch)) > TOLERANCE
        for node in self.hard[self.who[off[self.who]]].tolist():
            yield node, f"its lower left corner is off the grid of {grid.pitch_x:g} × {grid.pitch_y:g} µm"


def _shared(centre: np.ndarray, length: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """µm, [K]: the overlap of two macros along an axis; below 0, their distance."""
    reach = (length[first] + length[second]) / 2 - np.abs(centre[first] - centre[second])
    return np.minimum(np.minimum(reach, length[first]), length[second])
