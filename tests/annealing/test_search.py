from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from placement.annealing import legaliser, search_checkpoint
from placement.annealing import search as search_module
from placement.annealing import starts as starts_module
from placement.annealing.config import STARTS, AnnealConfig, Budget
from placement.annealing.cooling import Adaptive, Geometric
from placement.annealing.legaliser import fits
from placement.annealing.rows import RowPacker
from placement.annealing.search import Watch, search
from placement.annealing.starts import (
    MOST_OF_BUDGET,
    MOVES_PER_SECOND,
    SECONDS_PER_PIN,
    Start,
    affordable,
    make_starts,
    refinement_starts,
)
from placement.config import ConfigError
from placement.engine.costs import CostWeights, compute_costs, legality
from placement.engine.soft import place_soft_macros
from placement.netlist.design import NodeKind
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load
from tests.support.designs import Net, Node, build, square_canvas

QUICK = AnnealConfig(round_moves=1_000, soft_placer="analytic_fast")


@pytest.fixture(scope="module", autouse=True)
def few_attempts() -> Iterator[None]:
    """Less time for a smaller displacement, and for room where there is none, of which nothing is asked here."""
    with mock.patch.multiple(legaliser, ATTEMPTS=20, COMPARISONS=10**7):
        yield


@pytest.fixture(scope="module")
def design():
    return load("clustered40")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("soft_moves", [True, False])
def test_equal_arguments_give_equal_results(design, threads, soft_moves):
    config = AnnealConfig(round_moves=1_000, soft_placer="analytic_fast", soft_moves=soft_moves)
    first, second = (search(design, config=config, budget=Budget(moves=12_000), threads=threads, seed=3) for _ in "ab")
    assert first.placement == second.placement
    assert first.costs == second.costs == compute_costs(design, first.placement)
    assert legality(design, first.placement) == (0, 0)
    assert first.finished
    assert first.moves >= 12_000


def test_cost_falls_well_below_the_starts(design):
    best_start = min(compute_costs(design, start.placement).total for start in make_starts(design, QUICK, 0))
    result = search(design, config=QUICK, budget=Budget(moves=150_000), seed=0)
    assert result.costs.total < 0.97 * best_start
    costs = [point.cost for point in result.history]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == result.costs.total


@pytest.mark.parametrize("schedule", ["geometric", "adaptive"])
@pytest.mark.parametrize("after", [2, 12])  # rounds: while the starts are raced, and later
@pytest.mark.parametrize("threads", [1, 2])
def test_a_stopped_search_goes_on_to_the_same_end(design, tmp_path, threads, after, schedule):
    starts = ("greedy", "spiral", "random", "electrostatic")  # made sooner than packed ones
    config = dataclasses.replace(QUICK, race=0.5, schedule=schedule, round_moves=500, starts=starts)
    arguments = {"config": config, "budget": Budget(moves=16_000), "threads": threads, "seed": 5}
    whole = search(design, **arguments)
    rounds = []

    def stopped() -> bool:
        return len(rounds) >= after

    watch = Watch(tmp_path, stopped, lambda progress, point: rounds.append(progress))
    first = search(design, **arguments, watch=watch)
    assert not first.finished
    assert (tmp_path / search_checkpoint.STATE_NAME).is_file()
    _, kept = read_placement(tmp_path / search_checkpoint.BEST_NAME, design.netlist)
    assert compute_costs(design, kept).total == first.costs.total
    lines = (tmp_path / search_checkpoint.HISTORY_NAME).read_text().splitlines()
    assert [float(line.split(",")[2]) for line in lines[1:]] == [point.cost for point in first.history]
    second = search(design, **arguments, watch=Watch(tmp_path))
    assert second.finished
    assert second.placement == whole.placement
    assert [point.moves for point in second.history] == [point.moves for point in whole.history]
    assert not (tmp_path / search_checkpoint.STATE_NAME).exists()


def test_only_a_whole_state_of_the_same_search_is_gone_on_from(design, tmp_path):
    config = dataclasses.replace(QUICK, starts=("greedy", "random"))

    def moves(folder: Path, *, seed: int = 1, rounds: int = 1) -> list[int]:
        """Moves after each of the rounds that a search in `folder` then does."""
        done: list[int] = []
        watch = Watch(folder, lambda: len(done) >= rounds, lambda progress, point: done.append(point.moves))
        search(design, config=config, budget=Budget(moves=16_000), seed=seed, watch=watch)
        return done

    stopped = moves(tmp_path / "whole", rounds=7)
    fresh = stopped[:1]
    for name in ("damaged", "other"):
        shutil.copytree(tmp_path / "whole", tmp_path / name)
    state = tmp_path / "damaged" / search_checkpoint.STATE_NAME
    state.write_bytes(state.read_bytes()[:-100])
    assert moves(tmp_path / "whole") > stopped[-1:]
    assert moves(tmp_path / "damaged") == fresh
    assert moves(tmp_path / "other", seed=2) == fresh


def test_a_given_start_is_never_made_worse(design):
    start = make_starts(design, QUICK, 1)[0]
    result = search(design, [start], config=QUICK, budget=Budget(moves=2_000))
    assert result.start == start.name
    assert result.costs.total <= compute_costs(design, start.placement).total


def test_planted_optimum_is_neared():
    design = load("planted20")
    optimum = read_placement("netlists/planted20/optimum.plc", design.netlist)[1]
    weights = CostWeights(1.0, 0.0, 0.0)
    best = compute_costs(design, optimum, weights=weights)
    result = search(design, config=AnnealConfig(starts=("random",)), budget=Budget(moves=400_000), weights=weights)
    start = compute_costs(design, design.initial, weights=weights)
    assert best.wirelength <= result.costs.wirelength <= best.wirelength * 1.12
    assert start.wirelength > 2 * best.wirelength


def test_the_named_starts_are_legal_and_whole(design):
    config = AnnealConfig(starts=STARTS, soft_placer="analytic_fast")
    starts = make_starts(design, config, 0)
    assert {start.name.split()[0] for start in starts} == set(config.starts)
    for start in starts:
        assert legality(design, start.placement) == (0, 0), start.name
    costs = {start.name: compute_costs(design, start.placement) for start in starts}
    assert costs["greedy"].wirelength < costs["random"].wirelength
    assert isinstance(starts[0], Start)


def test_the_electrostatic_start_leaves_soft_macros_where_that_costs_less(design):
    config = AnnealConfig(starts=("electrostatic",), electrostatic_starts=2)
    weights = CostWeights(1.0, 1.0, 1.0, "chip")
    (scattered,) = make_starts(design, AnnealConfig(starts=("random",)), 0, weights)
    for start in make_starts(design, config, 0, weights):
        placed_anew = place_soft_macros(design, start.placement, config.soft_placer)
        costs = [compute_costs(design, one, weights=weights).total for one in (start.placement, placed_anew)]
        assert costs[0] <= costs[1]
        assert costs[0] < 0.9 * compute_costs(design, scattered.placement, weights=weights).total


def test_where_the_electrostatic_start_finds_no_room_other_kinds_are_starts(design, monkeypatch):
    def fail(*args, **options):
        raise DesignError("still overlapped")

    monkeypatch.setattr(starts_module, "place_design", fail)
    for kinds in (("electrostatic",), ("packed", "electrostatic")):
        found = make_starts(design, AnnealConfig(starts=kinds), 0)
        assert found and all(start.name.startswith("packed") for start in found)


def test_as_many_electrostatic_starts_as_the_time_is_for(design):
    both, alone = AnnealConfig(starts=("electrostatic", "packed")), AnnealConfig(starts=("electrostatic",))
    seconds = SECONDS_PER_PIN * len(design.netlist.net_pins) / MOST_OF_BUDGET
    for times, count in ((1.01, 1), (1.99, 1), (2.01, 2), (4.01, 4), (99, 4)):
        assert affordable(design, both, Budget(seconds=times * seconds)).electrostatic_starts == count
        moves = Budget(moves=round(times * seconds * MOVES_PER_SECOND))
        assert affordable(design, both, moves).electrostatic_starts == count
    few = dataclasses.replace(both, electrostatic_starts=3)
    assert affordable(design, few, Budget(seconds=99 * seconds)) == few
    assert affordable(design, both, Budget(seconds=0.99 * seconds)).starts == ("packed",)
    assert affordable(design, both, Budget(moves=1)) == dataclasses.replace(both, electrostatic_starts=1)
    assert affordable(design, alone, Budget(seconds=1e-3)) == dataclasses.replace(alone, electrostatic_starts=1)
    found = make_starts(design, dataclasses.replace(alone, electrostatic_starts=3), 0)
    assert [start.name for start in found] == ["electrostatic", "electrostatic 2", "electrostatic 3"]
    assert len({start.placement.x[design.netlist.hard].tobytes() for start in found}) == 3
    result = search(design, config=both, budget=Budget(seconds=0.1 * seconds))
    assert result.start.startswith("packed")


def test_starts_that_took_long_are_raced_all_the_same(design, monkeypatch):
    """The race has its share of what is left, or the start that is cheapest before any move would go on."""
    moves = []

    def slow(*args):
        end = time.thread_time() + 0.3
        while time.thread_time() < end:
            pass
        return make_starts(*args)

    def race(run, *args):
        found = _race(run, *args)
        moves.append(run._moves)
        return found

    _race = search_module._SearchRun.race
    monkeypatch.setattr(search_module, "make_starts", slow)
    monkeypatch.setattr(search_module._SearchRun, "race", race)
    search(design, config=dataclasses.replace(QUICK, starts=("greedy", "random")), budget=Budget(seconds=1.0))
    assert moves[0] > 0


def test_a_grid_too_coarse_for_a_macro_leaves_other_starts():
    nodes = [Node("p", NodeKind.PORT, 0, 0), Node("wide", NodeKind.HARD, 10, 10, 14, 14)]
    coarse = build("coarse", square_canvas(2, 2), nodes, [Net([("p", 0, 0), ("wide", 0, 0)])])
    starts = make_starts(coarse, AnnealConfig(starts=("greedy",)), 0)
    assert starts and "greedy" not in {start.name for start in starts}
    for start in starts:
        assert legality(coarse, start.placement) == (0, 0)


def test_what_no_start_can_mend_is_told(design):
    placed, fixed = design.initial.placed.copy(), design.initial.fixed.copy()
    macro = design.placing_order[0]
    placed[macro], fixed[macro] = False, True
    lost = dataclasses.replace(design, initial=dataclasses.replace(design.initial, placed=placed, fixed=fixed))
    with pytest.raises(DesignError, match="never moves, and the initial placement gives it no position"):
        make_starts(lost, AnnealConfig(starts=("greedy",)), 0)


def test_schedules_fall_from_hot_to_cold():
    for schedule in (Geometric(1.0, 0.01), Adaptive(1.0, 0.01)):
        assert schedule.temperature == 1.0
        temperatures = []
        for round_number in range(101):
            schedule.advance(round_number / 100, 0.5 * schedule.temperature**0.5)
            temperatures.append(schedule.temperature)
        assert temperatures[-1] == pytest.approx(0.01)
        assert 0.01 < temperatures[50] < 1.0
        assert temperatures == sorted(temperatures, reverse=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hot": 0.001, "cold": 0.01}, "anneal.cold=0.01: must be above 0 and at most hot=0.001"),
        ({"without": ("hard_fly",)}, "anneal.without='hard_fly': must be one of hard_shift"),
        ({"starts": ()}, "anneal.starts=\\(\\): must be at least one of packed"),
        ({"soft_placer": "none"}, "anneal.soft_placer='none': must be force_directed, analytic or"),
        ({"blockages": ((0.0, 0.0, 5.0),)}, "anneal.blockages=.*: must be \\[left, low, right, high\\] in µm"),
        ({"blockages": ((9.0, 0.0, 5.0, 1.0),)}, "left < right"),
        ({"grid": -1.0}, "anneal.grid=-1.0: must be at least 0"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        AnnealConfig(**settings)


@pytest.mark.parametrize("kind", ["packed", "electrostatic", "greedy", "random"])
def test_blockages_spacing_and_the_manufacturing_grid_are_kept(design, kind):
    corner = (0.0, 0.0, design.canvas.width / 6, design.canvas.height / 6)
    config = dataclasses.replace(QUICK, starts=(kind,), blockages=(corner,), spacing=1.0, grid=0.5)
    result = search(design, config=config, budget=Budget(moves=20_000))
    found = result.placement
    assert legality(design, found) == (0, 0)
    assert fits(design, found, spacing=1.0, blockages=(corner,))
    assert not fits(design, found, blockages=((0.0, 0.0, design.canvas.width, design.canvas.height),))
    hard = design.placing_order
    corners = np.stack([found.x - design.netlist.width / 2, found.y - design.netlist.height / 2])[:, hard] / 0.5
    assert np.abs(corners - np.round(corners)).max() < 1e-6
    assert kind in result.start


def test_a_policys_samples_are_given_room_before_they_are_refined(design):
    sample = make_starts(design, QUICK, 0)[0]
    config = dataclasses.replace(QUICK, repack=False, blockages=((0.0, 0.0, 40.0, 40.0),))
    assert not fits(design, sample.placement, blockages=config.blockages)
    (start,) = refinement_starts(design, [sample], config, 0)
    assert start.name == sample.name
    assert fits(design, start.placement, blockages=config.blockages)
    everything = (0.0, 0.0, design.canvas.width, design.canvas.height)
    with pytest.raises(DesignError, match="no sample of the policy could be made legal"):
        refinement_starts(design, [sample], dataclasses.replace(config, blockages=(everything,)), 0)


def test_a_budget_is_either_of_moves_or_of_seconds():
    for budget in ({}, {"moves": 1, "seconds": 1.0}, {"moves": 0}, {"seconds": 0.0}):
        with pytest.raises(ConfigError):
            Budget(**budget)


def test_starts_of_another_kind_are_made_where_the_wanted_ones_find_no_room():
    nodes = [
        Node("tall", NodeKind.HARD, 5.0, 35.0, 10.0, 70.0),
        Node("wide", NodeKind.HARD, 45.0, 5.0, 50.0, 10.0),
        Node("small", NodeKind.HARD, 35.0, 35.0, 20.0, 20.0),
        Node("cluster", NodeKind.SOFT, 25.0, 25.0, 12.0, 12.0),
    ]
    nets = [Net([("tall", 0, 0), ("wide", 0, 0)]), Net([("small", 0, 0), ("cluster", 0, 0)])]
    design = build("l_shape", square_canvas(7, 7), nodes, nets)
    assert RowPacker(design, AnnealConfig()).pack(1.0, np.random.default_rng(0)) is None
    starts = make_starts(design, AnnealConfig(soft_placer="analytic_fast"), 0)
    assert starts
    for start in starts:
        assert legality(design, start.placement) == (0, 0)


def test_a_design_of_fixed_macros_has_its_soft_macros_placed(design):
    fixed = design.initial.fixed.copy()
    fixed[design.netlist.hard] = True
    held = dataclasses.replace(design, initial=dataclasses.replace(design.initial, fixed=fixed))
    result = search(held, config=QUICK, budget=Budget(moves=5_000))
    assert result.costs.total < compute_costs(held, design.initial).total
    hard = design.netlist.hard
    assert (result.placement.x[hard] == design.initial.x[hard]).all()
