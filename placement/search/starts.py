"""Placements of the hard macros to begin a search with; the soft macros are placed by a soft placer.

Axis legend: N nodes, R grid rows, C grid columns. Lengths are in µm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from placement.engine import _native
from placement.engine.rendering import refusing_unplayable
from placement.engine.soft import place_soft_macros
from placement.engine.state import PlacementState
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.search.config import STARTS, AnnealConfig
from placement.search.legaliser import NoRoom, legalise

STRETCHES = (1.0, 1.15, 1.3, 1.45)
"""Pitch of the macros of a row over their widths."""
NOISE = 0.1
"""Share of the added wirelength that is random in greedy starts."""


class Start(NamedTuple):
    """A legal placement to begin with, and what it is called."""

    name: str
    placement: Placement


def make_starts(design: Design, config: AnnealConfig, seed: int) -> list[Start]:
    """A start of each kind that `config` names, several of `packed`; kinds that find no room are left out.

    Where none of them finds room, the other kinds are tried.

    Raises:
        DesignError: none found room for all macros, or the design's constraints cannot be met.
    """
    design = ready(design)
    generator = np.random.default_rng(seed)
    found: list[Start] = []
    for kind in config.starts:
        found += _KINDS[kind](design, config, generator)
    for kind in STARTS:  # better any than none
        if not found and kind not in config.starts:
            found += _KINDS[kind](design, config, generator)
    if not found:
        raise DesignError(f"{design.name}: no room found for all hard macros by {', '.join(STARTS)}")
    return [Start(start.name, _with_soft(design, start.placement, config.soft_placer)) for start in found]


def legal(design: Design, placement: Placement, config: AnnealConfig) -> Placement:
    """`placement`, its hard macros moved off each other and off what `config` has them keep clear of.

    Raises:
        NoRoom: no legal placement was found; there may be one.
        DesignError: a hard macro is not placed.
    """
    return legalise(design, placement, spacing=config.spacing, blockages=config.blockages)


def refinement_starts(design: Design, starts: Sequence[Start], config: AnnealConfig, seed: int) -> list[Start]:
    """A policy's samples, the best first, with room made for spacing and blockages, and the best one repacked.

    Raises:
        DesignError: there is room for none of them.
    """
    found = []
    for start in starts:
        try:
            found.append(Start(start.name, legal(design, start.placement, config)))
        except NoRoom:
            continue
    if config.repack and starts:
        found += repacked(design, starts[0], config, seed)
    if not found:
        raise DesignError(f"{design.name}: no sample of the policy could be made legal with spacing and blockages")
    return found


def _with_soft(design: Design, placement: Placement, placer: str) -> Placement:
    return place_soft_macros(design, placement, placer) if len(design.netlist.soft) else placement


def _packed(design: Design, config: AnnealConfig, generator: np.random.Generator) -> Iterator[Start]:
    """Macros in rows from the lower and the upper edge inwards, with more or less room between those of a row.

    The density cost looks at the fullest gcells only, so gaps between macros that leave no gcell full are worth much.
    """
    if len(design.placing_order) == 0:
        yield Start("fixed", design.initial)
        return
    for stretch in STRETCHES:
        placement = pack_rows(design, stretch, config, generator)
        if placement is not None:
            yield Start(f"packed {stretch:g}", placement)


def repacked(design: Design, start: Start, config: AnnealConfig, seed: int) -> list[Start]:
    """A placement's macros in rows of each pitch, those of equal size as near to where they stood as can be.

    The macros keep their neighbourhoods, and get the gaps that lower the density cost.

    Args:
        design: whose macros.
        start: where they stand.
        config: of the search.
        seed: of the order of macros of unlike sizes in the rows.
    """
    found = []
    for stretch in STRETCHES:
        placement = pack_rows(design, stretch, config, np.random.default_rng(seed), like=start.placement)
        if placement is not None:
            name = f"{start.name}, repacked {stretch:g}"
            found.append(Start(name, _with_soft(design, placement, config.soft_placer)))
    return found


def pack_rows(
    design: Design,
    stretch: float,
    config: AnnealConfig,
    generator: np.random.Generator,
    *,
    like: Placement | None = None,
) -> Placement | None:
    """The movable hard macros in rows, the tallest first, those of equal height in random order.

    Args:
        design: whose macros.
        stretch: a row takes macros of 1 / `stretch` of the canvas's width, spread evenly.
        config: what macros keep clear of.
        generator: of the order.
        like: macros of equal size change places so that the sum of their squared distances to where they stand here is
            the least.

    Returns:
        None where they do not fit, or what they must keep off is in the way.
    """
    across, up = _row_gaps(design, config)
    canvas, initial = design.canvas, design.initial
    order = generator.permutation(design.placing_order)
    height = design.netlist.sides(design.initial.orientation)[1]
    order = order[np.argsort(-height[order], kind="stable")]
    rows = list(_rows_of(design, order, stretch, across))
    heights = [float(height[row].max()) + up for row in rows]
    whole = [np.ceil(tall / canvas.cell_height - 1e-9) * canvas.cell_height for tall in heights]
    heights = whole if sum(whole) <= canvas.height else heights  # on whole gcells where there is room
    if sum(heights) > canvas.height + up:
        return None
    x, y = initial.x.copy(), initial.y.copy()
    low, high = 0.0, canvas.height
    for number, (row, tall) in enumerate(zip(rows, heights, strict=True)):
        _spread(design, row, x, across)
        y[row] = low + tall / 2 if number % 2 == 0 else high - tall / 2
        low, high = (low + tall, high) if number % 2 == 0 else (low, high - tall)
    if like is not None:
        _exchange(design, x, y, like)
    try:
        return legal(
            design, initial.moved(design.placing_order, x[design.placing_order], y[design.placing_order]), config
        )
    except NoRoom:
        return None


def _row_gaps(design: Design, config: AnnealConfig) -> tuple[float, float]:
    """µm between macros of a row, and between rows."""
    halos = design.constraints.sides(design.initial.orientation)
    across, up = (2 * float(halo[design.placing_order].max(initial=0.0)) for halo in halos)
    return max(config.spacing, across), max(config.spacing, up)


def _exchange(design: Design, x: np.ndarray, y: np.ndarray, like: Placement) -> None:
    """Gives the spots that macros of equal size have in `x`, `y` (µm, changed) to those of them that stand nearest."""
    macros = design.placing_order
    sides = np.stack(design.netlist.sides(design.initial.orientation), axis=1)[macros]
    for size in np.unique(sides, axis=0):
        equal = macros[(sides == size).all(axis=1)]
        distance = (like.x[equal][:, None] - x[equal]) ** 2 + (like.y[equal][:, None] - y[equal]) ** 2
        who, spot = linear_sum_assignment(distance)
        x[equal[who]], y[equal[who]] = x[equal[spot]], y[equal[spot]]


def _rows_of(design: Design, order: np.ndarray, stretch: float, spacing: float) -> Iterator[np.ndarray]:
    width = design.netlist.sides(design.initial.orientation)[0] + spacing
    row: list[int] = []
    for node in order:
        if row and (width[row].sum() + width[node]) * stretch > design.canvas.width + spacing:
            yield np.array(row)
            row = []
        row.append(int(node))
    yield np.array(row)


def _spread(design: Design, row: np.ndarray, x: np.ndarray, spacing: float) -> None:
    """Puts a row's macros evenly over the canvas's width, half a gap at the edges."""
    width = design.netlist.sides(design.initial.orientation)[0][row]
    gap = (design.canvas.width - width.sum()) / len(row)
    left, right = (
        (gap / 2, gap) if gap >= spacing else (0.0, (design.canvas.width - width.sum()) / max(1, len(row) - 1))
    )
    x[row] = left + np.concatenate([[0.0], np.cumsum(width + right)[:-1]]) + width / 2


def _on_grid(name: str) -> Callable[..., Iterator[Start]]:
    """A kind of start that puts macro after macro on the legal gcell of least score."""

    def make(design: Design, config: AnnealConfig, generator: np.random.Generator) -> Iterator[Start]:
        with refusing_unplayable([design]):
            try:
                state = PlacementState(design)
            except _native.GridTooCoarse:
                return  # only places between the gcells' centres will do
        score = _SCORES[name]
        while state.step < len(design.placing_order):
            if state.legal_cells == 0:
                return
            mask = state.mask()
            scores = np.where(mask, score(state, generator), np.inf)
            row, column = np.unravel_index(int(np.argmin(scores)), scores.shape)
            state.place(int(row), int(column))
        centres = state.centres()
        placement = design.initial.moved(design.placing_order, centres[:, 0], centres[:, 1])
        try:
            placement = legal(design, placement, config)
        except NoRoom:
            return
        yield Start(name, placement)

    return make


def _wire(state: PlacementState, generator: np.random.Generator) -> np.ndarray:
    """Added wirelength with some noise, so that no two are alike; [R, C]."""
    wire = state.wire_mask()
    return (wire + 1e-9) * (1 + NOISE * generator.random(wire.shape))


def _inwards(state: PlacementState, generator: np.random.Generator) -> np.ndarray:
    """The place of each gcell on a spiral from the lower left corner around the edge and inwards; [R, C]."""
    rows, columns = state.design.action_canvas.rows, state.design.action_canvas.columns
    row, column = np.mgrid[:rows, :columns]
    ring = np.minimum.reduce([row, column, rows - 1 - row, columns - 1 - column])
    along = np.arctan2(row - (rows - 1) / 2, column - (columns - 1) / 2)
    return ring * 10.0 + (along + 0.75 * np.pi) % (2 * np.pi)


def _anywhere(state: PlacementState, generator: np.random.Generator) -> np.ndarray:
    return generator.random((state.design.action_canvas.rows, state.design.action_canvas.columns))


def _initial(design: Design, config: AnnealConfig, generator: np.random.Generator) -> Iterator[Start]:
    """The placement that the design came with, made legal."""
    if not design.initial.placed[design.placing_order].all():
        return
    try:
        yield Start("initial", legal(design, design.initial, config))
    except NoRoom:
        return


_SCORES = {"greedy": _wire, "spiral": _inwards, "random": _anywhere}
_KINDS: dict[str, Callable[..., Iterator[Start]]] = {
    "packed": _packed,
    "greedy": _on_grid("greedy"),
    "spiral": _on_grid("spiral"),
    "random": _on_grid("random"),
    "initial": _initial,
}
