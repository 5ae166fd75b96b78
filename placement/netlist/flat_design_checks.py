"""Checks for probable mistakes in a flat design that was read without error.

Axis legend: H hard macros, K rectangles. Lengths in µm.
"""

import numpy as np

from placement.netlist.flat_design import FlatDesign
from placement.netlist.geometry import clipped, grown, union_area

TALL = 4.0  # maximum height in rows of a standard cell that is not reported; tall cells of libraries take two or three
COVERED = 0.9  # minimum fraction of their bounding box that rows cover; less is reported
MARGIN = 0.01
"""Tolerance for ports beyond the die and pins beyond a macro, as a fraction of a side. Wires end beyond the edge."""


def lint(design: FlatDesign) -> tuple[str, ...]:
    """Notices of cells as large as macros, pins without shapes, misplaced ports and fixed macros, and missing rows."""
    checks = (
        tall_cells,
        _without_shapes,
        _beyond_size,
        _not_rectangles,
        _beyond_die,
        _beyond_core,
        _overlapping,
        _without_rows,
    )
    return tuple(notice for check in checks if (notice := check(design)))


def tall_cells(design: FlatDesign) -> str:
    """Reports nodes that are too high for standard cells; empty if there are none."""
    row = design.floorplan.rows.row_height
    cells = design.cells[design.netlist.height[design.cells] > TALL * row] if row else design.cells[:0]
    if not len(cells):
        return ""
    masters = sorted({design.master_names[master] for master in design.master[cells].tolist()})
    master = design.technology.masters[masters[0]]
    return (
        f"{len(cells):,} standard cells are higher than {TALL:g} rows (masters: {len(masters)}, first {master.name!r} "
        f"of {master.width:g} × {master.height:g} µm): set CLASS BLOCK in the LEF of those that are macros"
    )


def _without_shapes(design: FlatDesign) -> str:
    names = {design.master_names[master] for master in design.master[design.netlist.hard].tolist()}
    pins = [
        f"{pin.name!r} of {name}"
        for name in sorted(names)
        for pin in design.technology.masters[name].pins
        if not pin.layer and pin.use not in ("POWER", "GROUND")
    ]
    if not pins:
        return ""
    where = "they are assumed to be at the macro's centre"
    return f"{len(pins):,} pins of macros have no shape in LEF (first: {pins[0]}): {where}"


def _beyond_size(design: FlatDesign) -> str:
    beyond = list[str]()
    for name in sorted({design.master_names[master] for master in design.master[design.netlist.hard].tolist()}):
        master = design.technology.masters[name]
        slack = MARGIN * min(master.width, master.height)
        for pin in master.pins:
            shapes = np.concatenate([np.zeros((0, 4)), *pin.shapes.values()])
            if (shapes < -slack).any() or (shapes[:, 2:] > np.array([master.width, master.height]) + slack).any():
                beyond.append(f"{pin.name!r} of {name}")
    if not beyond:
        return ""
    return (
        f"{len(beyond):,} pins of macros extend beyond the SIZE in LEF (first: {beyond[0]}): only a halo keeps other "
        "macros off them"
    )


def _not_rectangles(design: FlatDesign) -> str:
    names = {design.master_names[master] for master in design.master[design.netlist.hard].tolist()}
    shaped = []
    for master in (design.technology.masters[name] for name in sorted(names)):
        shapes = [boxes for layer, boxes in master.obstructions.items() if layer.upper() == "OVERLAP"]
        if shapes and union_area(np.concatenate(shapes)) < COVERED * master.width * master.height:
            shaped.append(master.name)
    if not shaped:
        return ""
    what = f"{len(shaped):,} masters of macros are not rectangles (OBS on OVERLAP in LEF; first: {shaped[0]!r})"
    return f"{what}: their bounding boxes are used"


def _beyond_die(design: FlatDesign) -> str:
    die, ports = design.floorplan.die, design.netlist.ports
    x, y, slack = design.placement.x[ports], design.placement.y[ports], MARGIN * max(die.width, die.height)
    beyond = np.maximum(die.x_low - x, x - die.x_high) > slack
    beyond |= np.maximum(die.y_low - y, y - die.y_high) > slack
    if not beyond.any():
        return ""
    first = design.netlist.names[ports[beyond][0]]
    return f"{int(beyond.sum()):,} ports are outside the die, the first being {first!r}: they keep their positions"


def _boxes(design: FlatDesign, nodes: np.ndarray) -> np.ndarray:
    """The boxes of nodes relative to the core's lower left corner, float64 [H, 4]."""
    core = design.floorplan.core
    return design.netlist.boxes(design.placement, nodes) - np.array([core.x_low, core.y_low] * 2)


def _fixed(design: FlatDesign) -> np.ndarray:
    """The fixed macros, int32 [H]."""
    placement, hard = design.placement, design.netlist.hard
    return hard[placement.fixed[hard] & placement.placed[hard]]


def _overlapping(design: FlatDesign) -> str:
    fixed, names = _fixed(design), design.netlist.names
    low, high = np.split(_boxes(design, fixed), 2, axis=1)
    shared = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    pairs = np.argwhere(np.triu((shared > 1 / design.floorplan.units).all(axis=2), 1))
    if not len(pairs):
        return ""
    one, other = (names[node] for node in fixed[pairs[0]].tolist())
    return f"{len(pairs):,} pairs of fixed macros overlap, the first being {one!r} and {other!r}: they stay in place"


def _beyond_core(design: FlatDesign) -> str:
    core, slack = design.floorplan.core, 1 / design.floorplan.units
    low, high = np.split(_boxes(design, _fixed(design)), 2, axis=1)
    beyond = _fixed(design)[((low < -slack) | (high > np.array([core.width, core.height]) + slack)).any(axis=1)]
    if not len(beyond):
        return ""
    first = design.netlist.names[beyond[0]]
    return f"{len(beyond):,} fixed macros extend beyond the core, the first being {first!r}: they stay in place"


def _without_rows(design: FlatDesign) -> str:
    """Reports rows that leave much of the core uncovered, apart from placed macros and blockages."""
    plan, netlist = design.floorplan, design.netlist
    if not len(plan.rows):
        return ""
    core, rows = plan.core, plan.rows
    corner = np.array([core.x_low, core.y_low, core.x_low, core.y_low])
    placed = netlist.hard[design.placement.placed[netlist.hard]]
    taken = [np.stack((rows.x, rows.y, rows.x + rows.width, rows.y + rows.height), axis=1) - corner]
    # Rows end at some distance from a macro.
    taken.append(grown(_boxes(design, placed), (5 * rows.row_height, 5 * rows.row_height)))
    taken += [
        blockage.rectangles - corner
        for blockage in plan.blockages
        if not blockage.layer and not blockage.is_soft and blockage.density is None
    ]
    share = union_area(clipped(np.concatenate(taken), core.width, core.height)) / core.area
    if share >= COVERED:
        return ""
    return (
        f"rows, placed macros and blockages cover {share:.0%} of the core, the box around all rows: macros may also "
        "be placed on the rest, unless --blockage excludes it"
    )
