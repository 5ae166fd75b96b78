"""How the placements come about that a judge learns from, or that costs are ranked on: good, bad and between.

Lengths in µm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from placement.annealing.config import AnnealConfig, Budget
from placement.annealing.search import search
from placement.annealing.starts import make_starts
from placement.config import CostWeights
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError

LEAST_MOVES = 1000
"""Of a search."""
START_SHARE = 0.2
"""Of the recipes that are starts, the others being searches."""
_STARTS = ("random", "greedy", "packed", "electrostatic")
_SEARCHED = ("packed", "greedy", "electrostatic")
# Cost, weights of wirelength, density and congestion.
_COSTS = (
    ("chip", (1.0, 1.0, 1.0)),
    ("proxy", (1.0, 0.5, 0.5)),
    ("proxy", (5.0, 0.5, 0.5)),
    ("proxy", (20.0, 0.5, 0.5)),
    ("proxy", (1.0, 0.0, 0.0)),
    ("proxy", (5.0, 0.0, 0.5)),
    ("proxy", (5.0, 1.0, 0.0)),
    ("chip", (1.0, 0.5, 0.5)),
    ("chip", (1.0, 0.1, 0.5)),
    ("chip", (1.0, 2.0, 0.0)),
)
_SHARES = (1.0, 0.1, 0.02)  # of the moves


class Recipe(NamedTuple):
    """How a placement comes about: one of the starts, or a search.

    Attributes:
        name: unique among the recipes of a design; fit for a file.
        start: the kind of start, alone or of the search.
        weights: what the search minimises; None: no search.
        share: of the moves that the longest searches get.
        spacing: µm between macros.
        seed: of the start and of the search.
    """

    name: str
    start: str
    weights: CostWeights | None
    share: float
    spacing: float
    seed: int


def recipes(count: int, *, seed: int = 0, spacings: tuple[float, ...] = (0.0,)) -> Iterator[Recipe]:
    """`count` of them: a fifth are starts, the others searches.

    Args:
        count: of recipes.
        seed: of the order of the searches, and of what each recipe draws.
        spacings: µm between macros, one for each recipe in turn.
    """
    generator = np.random.default_rng([seed, 0x7EC1])
    pairs = [(cost, share) for share in _SHARES for cost in _COSTS]
    starts = round(count * START_SHARE)
    order: list[int] = []
    while len(order) < count - starts:
        order += generator.permutation(len(pairs)).tolist()
    for number in range(count):
        spacing, own = spacings[number % len(spacings)], int(generator.integers(2**31))
        if number < starts:
            start = _STARTS[number % len(_STARTS)]
            yield Recipe(f"{number:03d}-{start}-{spacing:g}", start, None, 0.0, spacing, own)
            continue
        (cost, weights), share = pairs[order[number - starts]]
        name = f"{number:03d}-{cost}-{'-'.join(f'{weight:g}' for weight in weights)}-{share:g}-{spacing:g}"
        start = _SEARCHED[int(generator.integers(len(_SEARCHED)))]
        yield Recipe(name, start, CostWeights(*weights, cost), share, spacing, own)


def make_placement(design: Design, recipe: Recipe, *, moves: int) -> Placement:
    """The legal placement of a recipe, soft macros included; without the spacing where that leaves no room.

    Args:
        design: whose macros are placed.
        recipe: how.
        moves: of the longest searches.

    Raises:
        DesignError: no room was found for all macros.
    """
    try:
        return _made(design, recipe, moves, recipe.spacing)
    except DesignError:
        if recipe.spacing == 0:
            raise
        return _made(design, recipe, moves, 0.0)


def _made(design: Design, recipe: Recipe, moves: int, spacing: float) -> Placement:
    config = AnnealConfig(starts=(recipe.start,), electrostatic_starts=1, spacing=spacing)
    if recipe.weights is None:
        return make_starts(design, config, recipe.seed)[0].placement
    budget = Budget(moves=max(LEAST_MOVES, round(moves * recipe.share)))
    return search(design, config=config, budget=budget, weights=recipe.weights, seed=recipe.seed).placement
