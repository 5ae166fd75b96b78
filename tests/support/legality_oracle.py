"""Legal positions of hard macros in plain Python, slow and directly from the definitions, as reference for the engine.

Nothing is shared with the engine or with `placement.netlist.feasibility`. Lengths are in µm; a box is (left, bottom,
right, top).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from placement.netlist.design import TURN, Design, NodeKind, Orientation, Placement

TOUCHING = 1e-6
"""Tolerance of length comparisons, µm."""
Box = tuple[float, float, float, float]


class OracleViolations(NamedTuple):
    """Number of violations of each rule by all hard macros, including fixed ones."""

    overlaps: int
    outside: int
    halos: int
    blockages: int
    regions: int
    orientations: int
    grid: int
    port_keepout: int
    channels: int


def violations(design: Design, placement: Placement) -> OracleViolations:
    """Counts as `placement.engine.costs.Legality` and `Violations` define."""
    hard = [int(node) for node in design.netlist.hard]
    pairs = list(itertools.combinations(hard, 2))
    overlapping = [overlaps(design, placement, a, b) for a, b in pairs]
    close = [too_close(design, placement, a, b) for a, b in pairs]
    return OracleViolations(
        overlaps=sum(overlapping),
        outside=sum(is_outside(design, placement, node) for node in hard),
        halos=sum(near and not over for near, over in zip(close, overlapping, strict=True)),
        blockages=sum(on_blockage(design, placement, node) for node in hard),
        regions=sum(breaks_region(design, placement, node) for node in hard),
        orientations=sum(not design.constraints.allows(node, int(placement.orientation[node])) for node in hard),
        grid=sum(is_off_grid(design, placement, node) for node in hard),
        port_keepout=sum(near_port(design, placement, node) for node in hard),
        channels=narrow_gaps(design, placement),
    )


def narrow_gaps(design: Design, placement: Placement) -> int:
    """Counts pairs and macros at an edge that break the rule, one axis after the other."""
    canvas, kept = design.canvas, design.constraints
    boxes = design.netlist.boxes(placement, design.netlist.hard)
    every = [kept.grid, *(grid for own in kept.macro_grids for grid in own.grids)]
    slack = [max(1e-6, 3 * max(grid.axes[axis][0] for grid in every) - 1e-6) for axis in (0, 1)]

    def narrow(gap: float, needed: float, axis: int) -> bool:
        return needed + slack[axis] < gap < kept.channel[axis] - 1e-6

    found = 0
    for box in boxes:
        gaps = [(box[axis], extent - box[2 + axis]) for axis, extent in enumerate((canvas.width, canvas.height))]
        found += any(narrow(gap, 0.0, axis) for axis in (0, 1) for gap in gaps[axis])
    for one, other in itertools.combinations(range(len(boxes)), 2):
        a, b = boxes[one], boxes[other]
        first, second = design.netlist.hard[[one, other]].tolist()
        halos = [halos_between(design, placement, first, second, axis) for axis in (0, 1)]
        gap = [max(a[axis], b[axis]) - min(a[2 + axis], b[2 + axis]) for axis in (0, 1)]
        found += any(narrow(gap[axis], halos[axis], axis) and gap[1 - axis] < -1e-6 for axis in (0, 1))
    return found


def may_stand(design: Design, placement: Placement, node: int) -> bool:
    """Returns whether a hard macro meets all rules that do not concern other macros."""
    return not (
        is_outside(design, placement, node)
        or on_blockage(design, placement, node)
        or breaks_region(design, placement, node)
        or is_off_grid(design, placement, node)
        or near_port(design, placement, node)
        or not design.constraints.allows(node, int(placement.orientation[node]))
    )


def is_legal(design: Design, placement: Placement, *, spacing: float = 0.0) -> bool:
    """Returns whether every movable hard macro meets all rules, including those about other macros.

    `spacing`: µm that macros keep from each other and from blockages, beside their halos.
    """
    movable = [int(node) for node in design.placing_order]
    for node in movable:
        if not may_stand(design, placement, node) or on_blockage(design, placement, node, spacing=spacing):
            return False
        for other in design.netlist.hard.tolist():
            if other != node and too_close(design, placement, node, other, spacing=spacing):
                return False
    return True


def box_of(design: Design, placement: Placement, node: int) -> Box:
    """Returns the box of a macro."""
    width, height = float(design.netlist.width[node]), float(design.netlist.height[node])
    if Orientation(int(placement.orientation[node])).swaps_sides:
        width, height = height, width
    x, y = float(placement.x[node]), float(placement.y[node])
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def overlaps(design: Design, placement: Placement, first: int, second: int) -> bool:
    """Returns whether two macros overlap by more than the canvas's threshold on both axes."""
    across, up = shared(box_of(design, placement, first), box_of(design, placement, second))
    return min(across, up) > design.canvas.overlap_threshold + TOUCHING


def too_close(design: Design, placement: Placement, first: int, second: int, *, spacing: float = 0.0) -> bool:
    """Returns whether two macros are closer on both axes than allowed."""
    both = shared(box_of(design, placement, first), box_of(design, placement, second))
    for axis in (0, 1):
        gap = max(spacing, halos_between(design, placement, first, second, axis))
        allowed = -gap if gap > 0 else design.canvas.overlap_threshold
        if both[axis] <= allowed + TOUCHING:
            return False
    return True


def shared(first: Box, second: Box) -> tuple[float, float]:
    """Returns the overlap of two boxes on each axis; negative: their distance."""
    return (
        min(first[2], second[2]) - max(first[0], second[0]),
        min(first[3], second[3]) - max(first[1], second[1]),
    )


def is_outside(design: Design, placement: Placement, node: int) -> bool:
    """Returns whether a macro extends beyond the canvas."""
    left, bottom, right, top = box_of(design, placement, node)
    canvas = design.canvas
    return min(left, bottom, canvas.width - right, canvas.height - top) < -TOUCHING


def on_blockage(design: Design, placement: Placement, node: int, *, spacing: float = 0.0) -> bool:
    """Returns whether a macro is closer to a blockage than `spacing` on both axes."""
    box = box_of(design, placement, node)
    return any(
        min(shared(box, tuple(blockage))) > (-spacing if spacing > 0 else 0) + TOUCHING
        for blockage in design.constraints.blockages.tolist()
    )


def breaks_region(design: Design, placement: Placement, node: int) -> bool:
    """Returns whether a macro leaves its region, or is in an exclusive region of others."""
    box = _on_canvas(design, box_of(design, placement, node))
    if box is None:
        return False
    for region in design.constraints.regions:
        rectangles = [tuple(corners) for corners in region.rectangles.tolist()]
        if node in region.nodes.tolist():
            if not _lies_in(box, rectangles):
                return True
        elif region.is_exclusive and any(min(shared(box, rectangle)) > TOUCHING for rectangle in rectangles):
            return True
    return False


def is_off_grid(design: Design, placement: Placement, node: int) -> bool:
    """Returns whether a macro's lower left corner is off the snapping grid."""
    grid = design.constraints.grid
    for own in design.constraints.macro_grids:
        if node in own.nodes.tolist():
            grid = own.grids[int(placement.orientation[node])]
    left, bottom, _, _ = box_of(design, placement, node)
    for corner, pitch, offset in ((left, grid.pitch_x, grid.offset_x), (bottom, grid.pitch_y, grid.offset_y)):
        if pitch > 0:
            rest = (corner - offset) % pitch
            if min(rest, pitch - rest) > TOUCHING:
                return True
    return False


def near_port(design: Design, placement: Placement, node: int) -> bool:
    """Returns whether a macro is closer to a port than the keep-out, on both axes."""
    reach, box = design.constraints.port_keepout, _on_canvas(design, box_of(design, placement, node))
    if reach <= 0 or box is None:
        return False
    initial = design.initial
    squares = [
        (initial.x[port] - reach, initial.y[port] - reach, initial.x[port] + reach, initial.y[port] + reach)
        for port in range(design.netlist.num_nodes)
        if design.netlist.kind[port] == NodeKind.PORT
    ]
    return any(min(shared(box, square)) > TOUCHING for square in squares)


def _on_canvas(design: Design, box: Box) -> Box | None:
    """Returns the part of a box on the canvas; the rest is `outside`, and breaks no other rule."""
    left, bottom, right, top = box
    cut = max(left, 0.0), max(bottom, 0.0), min(right, design.canvas.width), min(top, design.canvas.height)
    return cut if cut[0] < cut[2] and cut[1] < cut[3] else None


def halos_between(design: Design, placement: Placement, first: int, second: int, axis: int) -> float:
    """Returns the gap that the facing sides of two macros' halos require on an axis."""
    at = (placement.x, placement.y)[axis]
    low, high = (first, second) if at[first] <= at[second] else (second, first)
    return (
        with_halo(design, placement, low)[2 + axis]
        - box_of(design, placement, low)[2 + axis]
        + (box_of(design, placement, high)[axis] - with_halo(design, placement, high)[axis])
    )


def with_halo(design: Design, placement: Placement, node: int) -> Box:
    """Returns a macro with its halo: the corners in orientation N, turned about the macro's centre."""
    left, bottom, right, top = design.constraints.halo[node].tolist()
    width, height = float(design.netlist.width[node]), float(design.netlist.height[node])
    a, b, c, d = TURN[placement.orientation[node]].tolist()
    corners = [(-width / 2 - left, -height / 2 - bottom), (width / 2 + right, height / 2 + top)]
    (x, y), (other_x, other_y) = [(a * dx + b * dy, c * dx + d * dy) for dx, dy in corners]
    at_x, at_y = float(placement.x[node]), float(placement.y[node])
    return at_x + min(x, other_x), at_y + min(y, other_y), at_x + max(x, other_x), at_y + max(y, other_y)


def _lies_in(box: Box, rectangles: list[Box]) -> bool:
    """Returns whether rectangles cover a box: it is cut at their edges, and each piece must lie in one of them."""
    left, bottom, right, top = box
    xs = sorted({left, right, *(edge for one in rectangles for edge in (one[0], one[2]) if left < edge < right)})
    ys = sorted({bottom, top, *(edge for one in rectangles for edge in (one[1], one[3]) if bottom < edge < top)})
    for x_low, x_high in itertools.pairwise(xs):
        for y_low, y_high in itertools.pairwise(ys):
            x, y = (x_low + x_high) / 2, (y_low + y_high) / 2
            covered = any(one[0] <= x <= one[2] and one[1] <= y <= one[3] for one in rectangles)
            if min(x_high - x_low, y_high - y_low) > TOUCHING and not covered:
                return False
    return True
