"""Which hard macros stand where they may not, and why.

The rules are the engine's (`legality.hpp`); here each fault gets its macro and its reason.
Axis legend: H hard macros, K pairs of them, R rectangles, W macros that are looked at. Lengths are in µm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from placement.netlist.design import Design, Orientation, Placement
from placement.netlist.feasibility import KeepOutKind, keep_outs

TOLERANCE = 1e-6
"""µm: lengths that are equal but for rounding are equal, as in the engine."""
MOST_REASONS = 6
"""Of one macro that are told."""
_KEEP_OUT = {
    KeepOutKind.BLOCKAGE: "stands on a blockage",
    KeepOutKind.REGION: "stands outside of its region, or in one that is for others",
    KeepOutKind.PORT: "is nearer to a port than the keep-out of {:g} µm",
}
Faults = dict[int, list[str]]
Reasons = Iterator[tuple[int, str]]


def find_faults(design: Design, placement: Placement) -> Faults:
    """The reasons, in words, by the node of the hard macro that is at fault; macros without a fault are left out."""
    every = np.arange(len(design.netlist.hard))
    return _told(_HardBoxes(design, placement, every).reasons(*np.triu_indices(len(every), 1)))


class DragFaults:
    """The faults while a few nodes move and all others stand: only what the moving ones take part in is found anew."""

    def __init__(self, design: Design, placement: Placement, nodes: Collection[int]) -> None:
        """Takes the nodes that will move, and the placement before they do."""
        self._design = design
        moves = np.isin(design.netlist.hard, list(nodes))
        self._moving, resting = np.flatnonzero(moves), np.flatnonzero(~moves)
        first, second = np.triu_indices(len(resting), 1)
        boxes = _HardBoxes(design, placement, resting)
        self._resting = list(boxes.reasons(resting[first], resting[second]))

    def find(self, placement: Placement) -> Faults:
        """As `find_faults`; only the nodes that move may stand elsewhere than before."""
        count = len(self._design.netlist.hard)
        first, second = (one.reshape(-1) for one in np.meshgrid(self._moving, np.arange(count), indexing="ij"))
        once = (first < second) | ~np.isin(second, self._moving)
        boxes = _HardBoxes(self._design, placement, self._moving)
        return _told([*boxes.reasons(first[once], second[once]), *self._resting])


def _told(reasons: Iterable[tuple[int, str]]) -> Faults:
    """The reasons by macro, in the order of nodes, not too many of one macro."""
    found: Faults = {}
    for node, reason in reasons:
        found.setdefault(node, []).append(reason)
    for node, listed in found.items():
        if len(listed) > MOST_REASONS:
            found[node] = [*listed[:MOST_REASONS], f"and {len(listed) - MOST_REASONS} more"]
    return dict(sorted(found.items()))


class _HardBoxes:
    """The hard macros as they stand, and which of them are looked at: `who`, int [W], indices of hard macros."""

    def __init__(self, design: Design, placement: Placement, who: np.ndarray) -> None:
        self.design, self.who = design, who
        self.constraints = design.constraints
        self.hard = hard = design.netlist.hard
        self.x, self.y = placement.x[hard], placement.y[hard]
        self.orientation = placement.orientation[hard]
        self.width, self.height = (side[hard] for side in design.netlist.sides(placement.orientation))
        self.halo_x, self.halo_y = (side[hard] for side in design.constraints.sides(placement.orientation))

    def reasons(self, first: np.ndarray, second: np.ndarray) -> Reasons:
        """The faults of those looked at, and of pairs, int [K] each, of hard macros."""
        yield from self.outside()
        yield from self.too_close(first, second)
        yield from self.on_keep_outs()
        yield from self.turned()
        yield from self.off_grid()

    def outside(self) -> Reasons:
        """Macros that reach beyond the canvas."""
        canvas = self.design.canvas
        beyond = np.zeros(len(self.hard))
        for centre, length, extent in ((self.x, self.width, canvas.width), (self.y, self.height, canvas.height)):
            beyond = np.maximum(beyond, np.maximum(length / 2 - centre, centre + length / 2 - extent))
        for index in self.who[beyond[self.who] > TOLERANCE]:
            yield int(self.hard[index]), f"reaches {beyond[index]:.4g} µm beyond the canvas"

    def too_close(self, first: np.ndarray, second: np.ndarray) -> Reasons:
        """Both macros of every pair that overlaps, or is closer than its halos let it."""
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
                reason = f"is nearer to {{}} than their halos let it ({gap_x[pair]:g} × {gap_y[pair]:g} µm)"
            yield one, reason.format(names[other])
            yield other, reason.format(names[one])

    def on_keep_outs(self) -> Reasons:
        """Macros on blockages, off their regions, too near to ports."""
        kept = keep_outs(self.design)
        if not len(kept.rectangles):
            return
        left, low, right, high = kept.rectangles.T
        for index, node in zip(self.who.tolist(), self.hard[self.who].tolist(), strict=True):
            items = kept.of(node)
            half_x, half_y = self.width[index] / 2, self.height[index] / 2
            across = np.minimum(right[items], self.x[index] + half_x) - np.maximum(left[items], self.x[index] - half_x)
            up = np.minimum(high[items], self.y[index] + half_y) - np.maximum(low[items], self.y[index] - half_y)
            broken = kept.kind[items[(across > TOLERANCE) & (up > TOLERANCE)]]
            for kind in np.unique(broken):
                yield node, _KEEP_OUT[KeepOutKind(kind)].format(self.constraints.port_keepout)

    def turned(self) -> Reasons:
        """Macros in an orientation that they may not have."""
        for node, orientation in zip(self.hard[self.who].tolist(), self.orientation[self.who].tolist(), strict=True):
            if not self.constraints.allows(node, orientation):
                allowed = ", ".join(one.name for one in Orientation if self.constraints.allows(node, one))
                yield node, f"is turned {Orientation(orientation).name}; it may be {allowed}"

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
    """µm, [K]: how much of an axis two macros share; below 0: how far they are apart."""
    reach = (length[first] + length[second]) / 2 - np.abs(centre[first] - centre[second])
    return np.minimum(np.minimum(reach, length[first]), length[second])
