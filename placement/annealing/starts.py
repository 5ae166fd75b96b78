"""Starting placements of a search: several methods place the hard macros, a soft placer the soft macros.

Axis legend: R grid rows, C grid columns. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placement.annealing.anneal_config import DEFAULT_STARTS, SOFT_PLACER, STARTS, AnnealConfig
from placement.annealing.legaliser import NoLegalPlacement, fits, legalise
from placement.annealing.rows import RowPacker, spring_equilibrium, spring_matrix
from placement.engine import _native
from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights, compute_costs
from placement.engine.soft import place_soft_macros
from placement.engine.state import PlacementState, naming_unplayable
from placement.flat.clusters import place_design, spacing_for_channels
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready

ELECTROSTATIC = "electrostatic"
MOST_ELECTROSTATIC = 4  # maximum number of electrostatic starts in a search
SECONDS_PER_PIN = 4e-5  # approximate CPU seconds of an electrostatic start per pin of each net
MOST_OF_BUDGET = 0.3  # maximum share of a search's time for electrostatic starts
MOVES_PER_SECOND = 150_000  # approximate number of moves that a search proposes per second
LEAST_MOVES = 4000
"""Moves per macro below which a search for the chip cost begins with one start: halving cannot rank several then."""
MOST_ROWS = 4  # number of row or column pitches, cheapest first, that become starts
COSTLIER = 2  # number of consecutive wider pitches costlier than the cheapest after which the scan of pitches ends
HOLDS = (0.01, 0.03, 0.1, 0.3)
"""Stiffnesses of the springs that hold each hard macro at its position while the nets' springs reorder the macros."""
NOISE = 0.1  # relative amplitude of the noise in the added wirelength that greedy placements minimise


class Start(NamedTuple):
    """A legal starting placement and its name."""

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
    """Returns one start per method of `config.starts` that succeeds, and several for `packed` and `electrostatic`.

    If every method fails, the remaining methods are tried, `greedy` last. `seed` drives the electrostatic and greedy
    starts; `weights` rank the row pitches. Raises DesignError if no method finds a legal placement or the design's
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

    methods = config.starts or DEFAULT_STARTS
    found = [start for method in methods for start in of(method)]
    for method in (*STARTS, "greedy"):  # fall back on any other method
        if not found and method not in methods:
            found = list(of(method))
    if not found:
        raise DesignError(f"{design.name}: no legal placement of all hard macros found by {', '.join(STARTS)}")
    return [_complete(design, start, weights) for start in found]


def affordable(
    design: Design, config: AnnealConfig, weights: CostWeights, seconds: float | None, moves: int | None
) -> tuple[AnnealConfig, int]:
    """Returns the settings of a search, with its starts, and the number of electrostatic starts it can afford.

    The budget is `seconds`, or `moves` if `seconds` is None. With the default starts and a budget of fewer than
    `LEAST_MOVES` per macro, a search for the chip cost has one electrostatic start, even if that exceeds the budget.
    Otherwise, if `MOST_OF_BUDGET` of `seconds` does not suffice for one, that method is dropped, unless it is the only
    one.
    """
    methods = config.starts or DEFAULT_STARTS
    available = (moves or 0) if seconds is None else seconds * MOVES_PER_SECOND
    each = SECONDS_PER_PIN * MOVES_PER_SECOND * len(design.netlist.net_pins)
    count = min(MOST_ELECTROSTATIC, int(MOST_OF_BUDGET * available / each)) if each else 1
    nodes = np.r_[design.netlist.hard, design.netlist.soft] if config.soft_moves else design.netlist.hard
    few = available < LEAST_MOVES * np.count_nonzero(~design.initial.fixed[nodes])
    if config.starts is None and weights.name == "chip" and few:
        methods, count = (ELECTROSTATIC,), 1
    elif count == 0 and seconds is not None:
        methods = tuple(method for method in methods if method != ELECTROSTATIC) or methods
    return dataclasses.replace(config, starts=methods), max(1, count)


def legal(design: Design, placement: Placement, config: AnnealConfig) -> Placement:
    """Returns `placement` with its hard macros moved clear of each other and within the constraints.

    The spacing in `config` is mandatory; the design's own spacing is dropped if no legal placement keeps it. Raises the
    errors of `legalise`.
    """
    try:
        return legalise(design, placement, spacing=config.spacing_in(design))
    except NoLegalPlacement:
        if config.spacing is not None or not design.constraints.spacing:
            raise
    return legalise(design, placement)


def with_spacing(design: Design, config: AnnealConfig, placements: Sequence[Placement]) -> AnnealConfig:
    """Returns `config` with its spacing resolved: its own, else the design's, or 0 if a placement violates the latter.

    Args:
        design: the design of the placements.
        config: the settings of a search.
        placements: legal placements.
    """
    spacing = config.spacing_in(design)
    if config.spacing is None and not all(fits(design, one, spacing=spacing) for one in placements):
        spacing = 0.0
    return dataclasses.replace(config, spacing=spacing)


def refinement_starts(design: Design, starts: Sequence[Start], config: AnnealConfig) -> list[Start]:
    """Returns a policy's samples, best first, made legal, followed by the best sample repacked in rows.

    Starting from gcell centres, a search does not find the rows with gaps that are cheapest on a large design. Raises
    DesignError if no sample can be made legal.
    """
    found = [one for start in starts for one in _legalised(start.name, design, start.placement, config)]
    if starts:
        found += repacked(design, starts[0], config)
    if not found:
        raise DesignError(f"{design.name}: no sample of the policy could be made legal")
    return found


def repacked(design: Design, start: Start, config: AnnealConfig, weights: CostWeights = DEFAULT_WEIGHTS) -> list[Start]:
    """Returns the macros of a placement packed in the cheapest rows and columns, each macro close to its position."""
    rows = _cheapest_rows(design, config, weights, start.placement)
    return [Start(f"{start.name}, re{one.name}", place_soft_macros(design, one.placement, SOFT_PLACER)) for one in rows]


def _complete(design: Design, start: Start, weights: CostWeights) -> Start:
    """Returns the start with its soft macros placed; an electrostatic start keeps its own if they cost less."""
    placement = place_soft_macros(design, start.placement, SOFT_PLACER)
    if start.name.startswith(ELECTROSTATIC):
        both = (start.placement, placement)
        placement = min(both, key=lambda one: compute_costs(design, one, weights=weights).total)
    return Start(start.name, placement)


def _legalised(name: str, design: Design, placement: Placement, config: AnnealConfig) -> Iterator[Start]:
    """Yields the legalised placement; yields nothing if a hard macro is not placed or the legaliser fails."""
    if placement.placed[design.placing_order].all():
        try:
            yield Start(name, legal(design, placement, config))
        except NoLegalPlacement:
            return


def _packed(design: Design, config: AnnealConfig, weights: CostWeights) -> Iterator[Start]:
    """Packs the macros in rows and in columns with gaps of several widths, ordered by the springs along the nets.

    The density cost depends only on the fullest gcells, so it is lowest when gaps between the macros leave no gcell
    full.
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
    """Returns the `MOST_ROWS` cheapest pitches of rows and columns, each macro close to its position in `like`.

    Pitches are tried from narrow to wide until `COSTLIER` in a row cost more than the cheapest of their direction.
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
    """Places hard and soft macros together as charges from `count` random initial positions, then legalises them."""
    least = config.spacing_in(design)
    widest = spacing_for_channels(design, spacing=least)
    for number in range(count):
        seed = int(generator.integers(2**31))
        for spacing in dict.fromkeys((widest, least)):
            try:
                placed = place_design(design, spacing=spacing, seed=seed)
                yield Start(f"{ELECTROSTATIC} {number + 1}" if number else ELECTROSTATIC, legal(design, placed, config))
                break
            except DesignError:  # too little whitespace for this method
                continue


def grid_starts(method: str, design: Design, config: AnnealConfig, seed: int) -> list[Start]:
    """Places each macro in turn on the legal gcell with the lowest `_SCORES[method]`; returns [] at a dead end."""
    design = ready(design)
    found = _on_grid(method, design, config, np.random.default_rng(seed))
    return [_complete(design, start, DEFAULT_WEIGHTS) for start in found]


def _on_grid(method: str, design: Design, config: AnnealConfig, generator: np.random.Generator) -> Iterator[Start]:
    with naming_unplayable([design]):
        try:
            state = PlacementState(design)
        except _native.GridTooCoarse:
            return  # only positions off the gcell centres are legal
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
    "greedy": lambda wire, noise: (wire + 1e-9) * (1 + NOISE * noise),  # noise makes each placement different
    "random": lambda wire, noise: noise,
}
"""Score of each gcell from the wirelength that the macro adds there (µm) and noise in [0, 1); all [R, C]."""
