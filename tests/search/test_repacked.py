"""A placement's macros repacked: set out in rows with gaps."""

from __future__ import annotations

import numpy as np

from placement.engine.costs import legality
from placement.netlist.load import load
from placement.search.config import AnnealConfig
from placement.search.starts import Start, make_starts, pack_rows, repacked


def test_macros_of_equal_size_stand_as_near_as_they_can_to_where_they_stood() -> None:
    design = load("clustered40")
    config = AnnealConfig(soft_placer="analytic_fast", starts=("random",))
    start = make_starts(design, config, 3)[0]
    found = repacked(design, start, config, 0)
    assert found[0].name == "random, repacked 1"
    order = design.placing_order

    def distance(x: np.ndarray, y: np.ndarray) -> float:
        return float(((x - start.placement.x) ** 2 + (y - start.placement.y) ** 2)[order].sum())

    for one, stretch in zip(found, (1.0, 1.15, 1.3, 1.45), strict=False):
        assert not legality(design, one.placement).overlaps and not legality(design, one.placement).outside
        plain = pack_rows(design, stretch, config, np.random.default_rng(0))
        assert plain is not None
        assert distance(one.placement.x, one.placement.y) < 0.9 * distance(plain.x, plain.y)


def test_the_name_says_where_it_came_from() -> None:
    design = load("toy6")
    start = Start("sample 0", design.initial) if design.initial.placed[design.placing_order].all() else None
    start = start or make_starts(design, AnnealConfig(starts=("greedy",)), 0)[0]
    assert all(one.name.startswith(start.name) for one in repacked(design, start, AnnealConfig(), 0))
