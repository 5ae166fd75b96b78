"""Why an action may not be taken, in words, and how actions and gcells correspond.

An action is row · columns + column over the grid of the observation (the largest of the designs in a pool).
"""

from __future__ import annotations

from placement.engine import _native
from placement.netlist.design import Design

Refusal = tuple[int, int, int, "_native.Verdict", int]
"""index of the environment or episode, macros placed, index of the design, the verdict, the node in the way."""


class IllegalAction(ValueError):
    """An action that may not be taken; the message says whose, the macro, the gcell and why."""


def explain(design: Design, step: int, action: int, columns: int, refusal: Refusal) -> str:
    """One sentence on why `action` may not be taken in `design` after `step` macros.

    Args:
        design: the design that is played.
        step: macros placed so far.
        action: row · columns + column.
        columns: of the observation's grid.
        refusal: what the engine said.
    """
    verdict, obstacle = refusal[3], refusal[4]
    canvas, names, order = design.action_canvas, design.netlist.names, design.placing_order
    if verdict == _native.Verdict.all_placed:
        return f"action {action}: all {len(order)} macros of {design.name!r} are placed"
    macro = f"macro {names[order[step]]!r} (step {step} of {design.name!r})"
    row, column = divmod(action, columns)
    at = f"action {action} (row {row}, column {column}) for {macro}"
    if verdict == _native.Verdict.out_of_range:
        at = at if action >= 0 else f"action {action} for {macro}"
        return f"{at}: no cell of its grid of {canvas.rows} × {canvas.columns} (an action is row · {columns} + column)"
    if verdict == _native.Verdict.outside_canvas:
        return f"{at}: it would reach beyond the canvas of {canvas.width:g} × {canvas.height:g} µm"
    return f"{at}: {_reason(design, int(order[step]), verdict, obstacle)}"


def _reason(design: Design, macro: int, verdict: _native.Verdict, obstacle: int) -> str:
    """Why a macro may not stand on a gcell inside the canvas."""
    names, constraints = design.netlist.names, design.constraints
    if verdict == _native.Verdict.off_lines:
        grid = constraints.grid
        return f"the snapping grid of {grid.pitch_x:g} × {grid.pitch_y:g} µm has no place there that is free"
    if verdict == _native.Verdict.on_blockage:
        return "it would stand on a placement blockage"
    if verdict == _native.Verdict.near_port:
        return f"it would stand less than the keep-out of {constraints.port_keepout:g} µm from a port"
    if verdict == _native.Verdict.off_region:
        own = [region.name for region in constraints.regions if macro in region.nodes]
        others = [region.name for region in constraints.regions if region.is_exclusive and macro not in region.nodes]
        inside = [f"it must stay in region {name!r}" for name in own]
        outside = [f"it must stay out of the exclusive region {name!r}" for name in others]
        return " and ".join(inside + outside)
    if verdict == _native.Verdict.too_close:
        across, up = constraints.sides(design.initial.orientation)
        nodes = [macro, obstacle]
        if not (across[nodes].any() or up[nodes].any()):
            return f"it would stand too close to macro {names[obstacle]!r}: on the snapping grid they may overlap"
        return (
            f"it would stand too close to macro {names[obstacle]!r}: their halos are {across[macro]:g} and "
            f"{across[obstacle]:g} µm in x, {up[macro]:g} and {up[obstacle]:g} µm in y"
        )
    return (
        f"it would overlap macro {names[obstacle]!r} by more than the threshold of "
        f"{design.canvas.overlap_threshold:g} µm"
    )
