"""Placements that a search begins with: hard macros by several methods, soft macros by a soft placer.

Axis legend: R grid rows, C grid columns. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placement.annealing.anneal_config import SOFT_PLACER, STARTS, AnnealConfig
from placement.annealing.legaliser import NoLegalPlacement, legalise
from placement.annealing.rows import RowPacker, spring_equilibrium, spring_matrix
from placement.engine import _native
from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights, compute_costs
from placement.engine.soft import place_soft_macros
from placement.engine.state import PlacementState, naming_unplayable
from placement.flat.clusters import place_design
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready

ELECTROSTATIC = "electrostatic"
MOST_ELECTROSTATIC = 4
"""Electrostatic starts of a search, at most."""
SECONDS_PER_PIN = 4e-5
"""CPU seconds that the electrostatic start takes, about, for each pin of each net."""
MOST_OF_BUDGET = 0.3
"""Share of a search's seconds that electrostatic starts may take."""
MOVES_PER_SECOND = 150_000
"""Proposals of a search in a second, about."""
MOST_ROWS = 4
"""Pitches of rows or columns, the cheapest, that are starts."""
COSTLIER = 2
"""Pitches in turn, ever wider, that cost more than the cheapest so far, after which no more are looked at."""
HOLDS = (0.01, 0.03, 0.1, 0.3)
"""Stiffness of the springs that tie hard macros to their places while the nets' springs say how to exchange them."""
NOISE = 0.1
"""Share of the added wirelength that is random in greedy placements."""


class Start(NamedTuple):
    """A legal placement to begin with, and its name."""

    name: str
    placement: Placement


def make_starts(
    design: Design,
    config: AnnealConfig,
    seed: int,
    weights: CostWeights = DEFAULT_WEIGHTS,
    *,
    electrostatic: int = MOST_ELECTROSTATIC,
) -> list[Start]:
    """A start by each method of `config.starts` that finds a legal placement, several by `packed` and `electrostatic`.

    Where none of them finds one, the other methods are tried, the greedy one last. `seed` is that of the electrostatic
    and greedy ones, `weights` choose rows. Raises DesignError where no method found a legal placement, or the design's
    constraints cannot be met.
    """
    design = ready(design)
    generator = np.random.default_rng(seed)

    def of(method: str) -> Iterator[Start]:
        if method == "packed":
            return _packed(design, config, weights)
        if method == ELECTROSTATIC:
            return _electrostatic(design, config, generator, electrostatic)
        if method == "initial":
            return _legalised("initial", design, design.initial, config)
        return _on_grid(method, design, config, generator)

    found = [start for method in config.starts for start in of(method)]
    for method in (*STARTS, "greedy"):  # any rather than none
        if not found and method not in config.starts:
            found = list(of(method))
    if not found:
        raise DesignError(f"{design.name}: no legal placement of all hard macros found by {', '.join(STARTS)}")
    return [_complete(design, start, weights) for start in found]


def affordable(
    design: Design, config: AnnealConfig, seconds: float | None, moves: int | None
) -> tuple[AnnealConfig, int]:
    """How many electrostatic starts a search of `seconds` (None: of `moves`) has time for, and its settings.

    Without that method where the seconds are too few for one, unless it is the only one.
    """
    others = tuple(method for method in config.starts if method != ELECTROSTATIC)
    each = SECONDS_PER_PIN * len(design.netlist.net_pins)
    whole = (moves or 0) / MOVES_PER_SECOND if seconds is None else seconds
    count = min(MOST_ELECTROSTATIC, int(MOST_OF_BUDGET * whole / each)) if each else 1
    if count == 0 and others and seconds is not None:
        config = dataclasses.replace(config, starts=others)
    return config, max(1, count)


def legal(design: Design, placement: Placement, config: AnnealConfig) -> Placement:
    """`placement` with its hard macros moved clear of each other and of what `config` names; raises as `legalise`."""
    return legalise(design, placement, spacing=config.spacing, blockages=config.blockages)


def refinement_starts(design: Design, starts: Sequence[Start], config: AnnealConfig) -> list[Start]:
    """A policy's samples, the best first, made legal, and the best one set out in rows.

    From gcell centres a search does not find rows with gaps, which the cost of a large design needs. Raises DesignError
    where none of them can be made legal.
    """
    found = [one for start in starts for one in _legalised(start.name, design, start.placement, config)]
    if starts:
        found += repacked(design, starts[0], config)
    if not found:
        raise DesignError(f"{design.name}: no sample of the policy could be made legal with spacing and blockages")
    return found


def repacked(design: Design, start: Start, config: AnnealConfig, weights: CostWeights = DEFAULT_WEIGHTS) -> list[Start]:
    """A placement's macros in rows and columns of the cheapest pitches, each macro near to where it was."""
    rows = _cheapest_rows(design, config, weights, start.placement)
    return [Start(f"{start.name}, re{one.name}", place_soft_macros(design, one.placement, SOFT_PLACER)) for one in rows]


def _complete(design: Design, start: Start, weights: CostWeights) -> Start:
    """The start with its soft macros placed; an electrostatic one keeps its own where they cost less."""
    placement = place_soft_macros(design, start.placement, SOFT_PLACER)
    if start.name.startswith(ELECTROSTATIC):
        both = (start.placement, placement)
        placement = min(both, key=lambda one: compute_costs(design, one, weights=weights).total)
    return Start(start.name, placement)


def _legalised(name: str, design: Design, placement: Placement, config: AnnealConfig) -> Iterator[Start]:
    """The placement made legal; nothing where hard macros are not placed or that fails."""
    if placement.placed[design.placing_order].all():
        try:
            yield Start(name, legal(design, placement, config))
        except NoLegalPlacement:
            return


def _packed(design: Design, config: AnnealConfig, weights: CostWeights) -> Iterator[Start]:
    """Macros in rows and in columns with gaps of several widths, where springs along the nets would have them.

    The density cost depends on the fullest gcells only, so gaps between macros that leave no gcell full lower it most.
    """
    if len(design.placing_order) == 0:
        yield Start("fixed", design.initial)
        return
    springs = spring_matrix(design)
    like = spring_equilibrium(design, springs=springs)
    for packer, name, stretch, placement in _cheapest_rows(design, config, weights, like):
        for hold in HOLDS:
            like = spring_equilibrium(design, like=placement, hold=hold, springs=springs)
            placement = packer.pack(stretch, like) or placement
        yield Start(name, placement)


class _Rows(NamedTuple):
    packer: RowPacker
    name: str
    stretch: float
    placement: Placement


def _cheapest_rows(design: Design, config: AnnealConfig, weights: CostWeights, like: Placement) -> list[_Rows]:
    """The `MOST_ROWS` cheapest of several pitches of rows and columns, each macro near to its place in `like`.

    From narrow to wide, until `COSTLIER` in turn cost more than the cheapest of their direction.
    """
    found: list[tuple[float, int, _Rows]] = []
    for upright, method in ((False, "packed"), (True, "packed upright")):
        packer = RowPacker(design, config, upright=upright)
        least, costlier = np.inf, 0
        for stretch in packer.stretches():
            placement = packer.pack(stretch, like)
            if placement is None:
                continue
            cost = compute_costs(design, place_soft_macros(design, placement, "analytic_fast"), weights=weights).total
            found.append((cost, len(found), _Rows(packer, f"{method} {stretch:.3g}", stretch, placement)))
            least, costlier = (cost, 0) if cost < least else (least, costlier + 1)
            if costlier == COSTLIER:
                break
    return [rows for _, _, rows in sorted(found)[:MOST_ROWS]]


def _electrostatic(design: Design, config: AnnealConfig, generator: np.random.Generator, count: int) -> Iterator[Start]:
    """Hard and soft macros placed together as charges from unlike first places, then made legal."""
    for number in range(count):
        seed = int(generator.integers(2**31))
        try:
            placed = place_design(design, spacing=config.spacing, blockages=config.blockages, seed=seed)
            yield Start(f"{ELECTROSTATIC} {number + 1}" if number else ELECTROSTATIC, legal(design, placed, config))
        except DesignError:  # too little whitespace for the method; others may do
            continue


def grid_starts(method: str, design: Design, config: AnnealConfig, seed: int) -> list[Start]:
    """A placement of macro after macro on the legal gcell of least score (`_SCORES[method]`); none at a dead end."""
    design = ready(design)
    found = _on_grid(method, design, config, np.random.default_rng(seed))
    return [_complete(design, start, DEFAULT_WEIGHTS) for start in found]


def _on_grid(method: str, design: Design, config: AnnealConfig, generator: np.random.Generator) -> Iterator[Start]:
    with naming_unplayable([design]):
        try:
            state = PlacementState(design)
        except _native.GridTooCoarse:
            return  # only positions between the gcells' centres will do
    while state.step < len(design.placing_order):
        if state.legal_cells == 0:
            return
        wire = state.wire_mask()
        scores = np.where(state.mask(), _SCORES[method](wire, generator.random(wire.shape)), np.inf)
        row, column = np.unravel_index(int(np.argmin(scores)), scores.shape)
        state.place(int(row), int(column))
    centres = state.centres()
    placement = design.initial.moved(design.placing_order, centres[:, 0], centres[:, 1])
    yield from _legalised(method, design, placement, config)


_SCORES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "greedy": lambda wire, noise: (wire + 1e-9) * (1 + NOISE * noise),  # some noise, so that no two are alike
    "random": lambda wire, noise: noise,
}
"""The score of each gcell, by the wirelength that the macro adds there (µm) and noise in [0, 1); [R, C] each."""
