"""Placements of the hard macros to begin a search with; the soft macros are placed by a soft placer.

Axis legend: N nodes, R grid rows, C grid columns. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placement.engine import _native
from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights, proxy_cost
from placement.engine.rendering import refusing_unplayable
from placement.engine.soft import place_soft_macros
from placement.engine.state import PlacementState
from placement.flat.clusters import place_design
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.search.config import STARTS, AnnealConfig, Budget
from placement.search.legaliser import NoRoom, legalise
from placement.search.rows import RowPacker
from placement.search.springs import spring_matrix, springs_at_rest

ELECTROSTATIC = "electrostatic"
SECONDS_PER_PIN = 4e-5
"""CPU seconds that the electrostatic start takes, about, for each pin of each net."""
MOST_OF_BUDGET = 0.3
"""Share of a search's seconds that electrostatic starts may take."""
MOVES_PER_SECOND = 150_000
"""That a search draws, about: of a budget in moves, how long it is."""
RACED = 4
"""Pitches of rows or columns, the cheapest, that are starts."""
DEARER = 2
"""Pitches in turn, ever wider, that cost more than the cheapest so far, after which no more are looked at."""
HOLDS = (0.01, 0.03, 0.1, 0.3)
"""How stiffly hard macros are tied to their places while springs say how to exchange them; relative to their nets."""
NOISE = 0.1
"""Share of the added wirelength that is random in greedy starts."""


class Start(NamedTuple):
    """A legal placement to begin with, and what it is called."""

    name: str
    placement: Placement


def make_starts(design: Design, config: AnnealConfig, seed: int, weights: CostWeights = DEFAULT_WEIGHTS) -> list[Start]:
    """A start of each kind that `config` names, several of `packed`; kinds that find no room are left out.

    Where none of them finds room, the other kinds are tried.

    Raises:
        DesignError: none found room for all macros, or the design's constraints cannot be met.
    """
    design = ready(design)
    generator = np.random.default_rng(seed)
    found: list[Start] = []
    for kind in config.starts:
        found += _KINDS[kind](design, config, generator, weights)
    for kind in STARTS:  # better any than none
        if not found and kind not in config.starts:
            found += _KINDS[kind](design, config, generator, weights)
    if not found:
        raise DesignError(f"{design.name}: no room found for all hard macros by {', '.join(STARTS)}")
    return [_complete(design, start, config.soft_placer, weights) for start in found]


def affordable(design: Design, config: AnnealConfig, budget: Budget) -> AnnealConfig:
    """`config` with as many electrostatic starts as do not take too much of the time.

    With none where that is too short for one, unless no other kind is asked for, or the budget is one of moves.
    """
    others = tuple(kind for kind in config.starts if kind != ELECTROSTATIC)
    each = SECONDS_PER_PIN * len(design.netlist.net_pins)
    seconds = (budget.moves or 0) / MOVES_PER_SECOND if budget.seconds is None else budget.seconds
    count = min(config.electrostatic_starts, int(MOST_OF_BUDGET * seconds / each)) if each else 1
    if count == 0 and others and budget.seconds is not None:
        return dataclasses.replace(config, starts=others, electrostatic_starts=1)
    return dataclasses.replace(config, electrostatic_starts=max(1, count))


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


def _complete(design: Design, start: Start, placer: str, weights: CostWeights) -> Start:
    """The start with its soft macros placed; those of an electrostatic one stay where they are if that costs less."""
    placement = _with_soft(design, start.placement, placer)
    if start.name.startswith(ELECTROSTATIC):
        both = (start.placement, placement)
        placement = min(both, key=lambda one: proxy_cost(design, one, weights=weights).proxy_cost)
    return Start(start.name, placement)


def _with_soft(design: Design, placement: Placement, placer: str) -> Placement:
    return place_soft_macros(design, placement, placer) if len(design.netlist.soft) else placement


def _packed(
    design: Design, config: AnnealConfig, generator: np.random.Generator, weights: CostWeights
) -> Iterator[Start]:
    """Macros in rows and in columns with more or less room between them, where springs along the nets would have them.

    The density cost looks at the fullest gcells only, so gaps between macros that leave no gcell full are worth much.
    """
    if len(design.placing_order) == 0:
        yield Start("fixed", design.initial)
        return
    springs = spring_matrix(design)
    rest = springs_at_rest(design, springs=springs)
    for packer, name, stretch, placement in _cheapest_rows(design, config, generator, weights, rest):
        for hold in HOLDS:
            like = springs_at_rest(design, like=placement, hold=hold, springs=springs)
            placement = packer.pack(stretch, generator, like=like) or placement
        yield Start(name, placement)


class _Rows(NamedTuple):
    packer: RowPacker
    name: str
    stretch: float
    placement: Placement


def _cheapest_rows(
    design: Design, config: AnnealConfig, generator: np.random.Generator, weights: CostWeights, like: Placement
) -> list[_Rows]:
    """The RACED cheapest of several pitches of rows and columns, macros as near to `like` as can be.

    From narrow to wide, until two in turn are dearer than the cheapest of their kind.
    """
    found: list[tuple[float, int, _Rows]] = []
    for upright, kind in ((False, "packed"), (True, "packed upright")):
        packer = RowPacker(design, config, upright=upright)
        least, dearer = np.inf, 0
        for stretch in packer.stretches():
            placement = packer.pack(stretch, generator, like=like)
            if placement is None:
                continue
            cost = proxy_cost(design, _with_soft(design, placement, "analytic_fast"), weights=weights).proxy_cost
            found.append((cost, len(found), _Rows(packer, f"{kind} {stretch:.3g}", stretch, placement)))
            least, dearer = (cost, 0) if cost < least else (least, dearer + 1)
            if dearer == DEARER:
                break
    return [rows for _, _, rows in sorted(found)[:RACED]]


def repacked(
    design: Design, start: Start, config: AnnealConfig, seed: int, weights: CostWeights = DEFAULT_WEIGHTS
) -> list[Start]:
    """A placement's macros in rows and columns, those of equal size as near to where they stood as can be.

    The macros keep their neighbourhoods, and get the gaps that lower the density cost.

    Args:
        design: whose macros.
        start: where they stand.
        config: of the search.
        seed: of whatever is drawn.
        weights: of the cost that the cheapest few pitches are chosen by.
    """
    cheapest = _cheapest_rows(design, config, np.random.default_rng(seed), weights, start.placement)
    return [
        Start(f"{start.name}, re{rows.name}", _with_soft(design, rows.placement, config.soft_placer))
        for rows in cheapest
    ]


def _on_grid(name: str) -> Callable[..., Iterator[Start]]:
    """A kind of start that puts macro after macro on the legal gcell of least score."""

    def make(
        design: Design, config: AnnealConfig, generator: np.random.Generator, weights: CostWeights
    ) -> Iterator[Start]:
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


def _initial(
    design: Design, config: AnnealConfig, generator: np.random.Generator, weights: CostWeights
) -> Iterator[Start]:
    """The placement that the design came with, made legal."""
    if not design.initial.placed[design.placing_order].all():
        return
    try:
        yield Start("initial", legal(design, design.initial, config))
    except NoRoom:
        return


def _electrostatic(
    design: Design, config: AnnealConfig, generator: np.random.Generator, weights: CostWeights
) -> Iterator[Start]:
    """Hard and soft macros placed together as charges from unlike first places, then made legal."""
    for number in range(config.electrostatic_starts):
        seed = int(generator.integers(2**31))
        try:
            placed = place_design(design, spacing=config.spacing, blockages=config.blockages, seed=seed)
            yield Start(f"{ELECTROSTATIC} {number + 1}" if number else ELECTROSTATIC, legal(design, placed, config))
        except DesignError:  # too little room for the method; other kinds may find some
            continue


_SCORES = {"greedy": _wire, "spiral": _inwards, "random": _anywhere}
_KINDS: dict[str, Callable[..., Iterator[Start]]] = {
    "packed": _packed,
    ELECTROSTATIC: _electrostatic,
    "greedy": _on_grid("greedy"),
    "spiral": _on_grid("spiral"),
    "random": _on_grid("random"),
    "initial": _initial,
}
