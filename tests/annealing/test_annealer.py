from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.annealing.anneal_config import MOVES, AnnealConfig
from placement.annealing.annealer import Annealer
from placement.annealing.legaliser import fits
from placement.annealing.starts import grid_starts, make_starts
from placement.engine.costs import DEFAULT_WEIGHTS, PROXY_WEIGHTS, compute_costs, legality
from placement.netlist.errors import DesignError
from placement.netlist.load import load

TEMPERATURE = 1e-3


@pytest.fixture(scope="module")
def design():
    return load("clustered40")


@pytest.fixture(scope="module")
def start(design):
    return grid_starts("random", design, AnnealConfig(), 0)[0].placement


@pytest.mark.parametrize("weights", [PROXY_WEIGHTS, DEFAULT_WEIGHTS], ids=["proxy", "chip"])
def test_cost_is_the_full_evaluations_to_the_last_bit(design, start, weights):
    annealer = Annealer(design, start, config=AnnealConfig(), weights=weights, seed=1)
    annealer.run(20_000, TEMPERATURE)
    assert annealer.costs == compute_costs(design, annealer.placement, weights=weights)
    assert annealer.best_cost == compute_costs(design, annealer.best, weights=weights).total
    assert annealer.best_cost < compute_costs(design, start, weights=weights).total
    assert legality(design, annealer.placement) == legality(design, annealer.best) == (0, 0)


@pytest.mark.parametrize("weights", [PROXY_WEIGHTS, DEFAULT_WEIGHTS], ids=["proxy", "chip"])
@pytest.mark.parametrize("move", MOVES)
def test_every_kind_moves_what_it_should_and_keeps_it_legal(design, start, move, weights):
    weights = weights._replace(tidy=0.01 if move.startswith("tidy_") else 0.0)
    annealer = Annealer(design, start, config=AnnealConfig(), weights=weights, seed=2)
    annealer.set_mix({move: 1.0})
    annealer.run(4_000, 10.0)
    moved = annealer.placement
    tally = annealer.tallies[move]
    assert tally.drawn == 4_000
    assert tally.accepted > 20
    assert annealer.costs == compute_costs(design, moved, weights=weights)
    assert legality(design, moved) == (0, 0)
    changed = (moved.x != start.x) | (moved.y != start.y) | (moved.orientation != start.orientation)
    hard, soft = changed[design.netlist.hard].any(), changed[design.netlist.soft].any()
    assert hard == move.startswith(("hard_", "tidy_"))
    assert soft == (move.startswith("soft_") or move == "hard_trade")
    assert not changed[design.netlist.ports].any()
    swaps = (moved.orientation >= 4) != (start.orientation >= 4)
    assert not swaps.any(), "no macro is rotated by 90° by default"
    for node in design.netlist.soft:
        assert 0 <= moved.x[node] <= design.canvas.width
        assert 0 <= moved.y[node] <= design.canvas.height


def test_rotation_is_tried_only_on_request(design, start):
    annealer = Annealer(design, start, config=AnnealConfig(rotate=True), seed=3)
    annealer.set_mix({"hard_mirror": 1.0})
    annealer.run(4_000, 10.0)
    assert (annealer.placement.orientation >= 4).any()
    assert legality(design, annealer.placement) == (0, 0)


def test_temperature_zero_never_gets_worse(design, start):
    annealer = Annealer(design, start, config=AnnealConfig(), seed=4)
    costs = [annealer.costs.total]
    for _ in range(5):
        annealer.run(2_000, 0.0)
        costs.append(annealer.costs.total)
    assert costs == sorted(costs, reverse=True)
    assert annealer.best_cost == costs[-1] < costs[0]


def test_hard_only_leaves_soft_macros_to_the_placer(design, start):
    annealer = Annealer(design, start, config=AnnealConfig(soft_moves=False), seed=5)
    annealer.run(5_000, TEMPERATURE)
    soft = design.netlist.soft
    assert np.array_equal(annealer.placement.x[soft], start.x[soft])
    before = annealer.costs.total
    if annealer.replace_soft():
        assert annealer.costs.total < before
        assert not np.array_equal(annealer.placement.x[soft], start.x[soft])
    assert annealer.costs == compute_costs(design, annealer.placement)


def test_equal_seeds_give_equal_placements_and_others_do_not(design, start):
    def annealed(seed):
        annealer = Annealer(design, start, config=AnnealConfig(), seed=seed)
        annealer.run(5_000, TEMPERATURE)
        return annealer.placement

    assert annealed(6) == annealed(6)
    assert annealed(6) != annealed(7)


@pytest.mark.parametrize("weights", [PROXY_WEIGHTS, DEFAULT_WEIGHTS], ids=["proxy", "chip"])
def test_resumes_as_if_it_had_never_stopped(design, start, weights):
    whole = Annealer(design, start, config=AnnealConfig(), weights=weights, seed=8)
    first = Annealer(design, start, config=AnnealConfig(), weights=weights, seed=8)
    for annealer in (whole, first):
        annealer.run(6_000, TEMPERATURE)
    second = Annealer(design, first.best, config=AnnealConfig(), weights=weights, seed=99)
    second.restart(first.placement)
    second.resume(first.state)
    for annealer in (whole, second):
        annealer.run(6_000, TEMPERATURE / 3)
    assert second.placement == whole.placement
    assert second.best == whole.best
    assert second.best_cost == whole.best_cost


def test_fixed_macros_stay_and_are_kept_clear_of(design, start):
    fixed = start.fixed.copy()
    held = [*design.netlist.hard[:3], *design.netlist.soft[:3]]
    fixed[held] = True
    start = dataclasses.replace(start, fixed=fixed)
    design = dataclasses.replace(design, initial=start)
    annealer = Annealer(design, start, config=AnnealConfig(), seed=9)
    annealer.run(10_000, TEMPERATURE)
    assert np.array_equal(annealer.placement.x[held], start.x[held])
    assert legality(design, annealer.placement) == (0, 0)


def test_spacing_is_kept(design):
    config = AnnealConfig(starts=("packed",), spacing=1.5)
    start = make_starts(design, config, 0)[0].placement
    annealer = Annealer(design, start, config=config, seed=10)
    annealer.run(10_000, TEMPERATURE)
    assert fits(design, annealer.placement, spacing=1.5)
    assert annealer.tallies["hard_shift"].accepted > 0


def test_an_illegal_start_is_rejected(design, start):
    first, second = design.netlist.hard[:2]
    x, y = start.x.copy(), start.y.copy()
    x[first], y[first] = x[second], y[second]
    with pytest.raises(DesignError, match="overlaps another one, extends beyond the canvas"):
        Annealer(design, dataclasses.replace(start, x=x, y=y), config=AnnealConfig())
