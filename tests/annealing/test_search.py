from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from placement.annealing import legaliser
from placement.annealing import search as search_module
from placement.annealing import starts as starts_module
from placement.annealing.anneal_config import FINAL_TEMPERATURE, SOFT_PLACER, STARTS, AnnealConfig
from placement.annealing.legaliser import fits
from placement.annealing.rows import RowPacker, spring_equilibrium
from placement.annealing.search import BEST_NAME, HISTORY_NAME, STATE_NAME, Watch, search
from placement.annealing.starts import (
    LEAST_MOVES,
    MOST_ELECTROSTATIC,
    MOST_OF_BUDGET,
    MOVES_PER_SECOND,
    SECONDS_PER_PIN,
    affordable,
    grid_starts,
    make_starts,
    refinement_starts,
)
from placement.config import ConfigError
from placement.engine.costs import DEFAULT_WEIGHTS, PROXY_WEIGHTS, CostWeights, compute_costs, legality
from placement.engine.soft import place_soft_macros
from placement.netlist.constraints import SnapGrid
from placement.netlist.design import NodeKind
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load
from tests.support.constrained_designs import constrained
from tests.support.designs import Net, Node, build, square_canvas

QUICK = AnnealConfig()


@pytest.fixture(scope="module", autouse=True)
def few_attempts() -> Iterator[None]:
    """Spends less time on small displacements and on searches for whitespace, which these tests do not need."""
    with mock.patch.multiple(legaliser, ATTEMPTS=20, COMPARISONS=10**7):
        yield


@pytest.fixture(scope="module")
def design():
    return load("clustered40")


@pytest.fixture(scope="module")
def starts(design):
    return make_starts(design, QUICK, 0)


@pytest.mark.parametrize(("threads", "soft_moves"), [(1, False), (2, True)])
def test_equal_arguments_give_equal_results(design, threads, soft_moves):
    arguments = {"config": AnnealConfig(soft_moves=soft_moves), "threads": threads, "seed": 3, "round_moves": 1_000}
    first, second = (search(design, moves=6_000, **arguments) for _ in "ab")
    assert first.placement == second.placement
    assert first.costs == second.costs == compute_costs(design, first.placement)
    assert legality(design, first.placement) == (0, 0)
    assert first.finished
    assert first.moves >= 6_000


def test_cost_falls_well_below_the_starts(design, starts):
    best_start = min(compute_costs(design, start.placement).total for start in starts)
    result = search(design, moves=60_000, round_moves=1_000)
    assert result.costs.total < 0.97 * best_start
    costs = [point.cost for point in result.history]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == result.costs.total


@pytest.mark.parametrize(
    ("threads", "after", "schedule"),  # number of rounds: while the starts are compared, and later
    [(1, 2, "geometric"), (2, 2, "adaptive"), (1, 12, "adaptive"), (2, 12, "geometric")],
)
def test_a_stopped_search_resumes_to_the_same_end(design, tmp_path, monkeypatch, threads, after, schedule):
    monkeypatch.setattr(search_module, "HALVING_SHARE", 0.5)
    config = AnnealConfig(schedule=schedule, starts=("initial", "electrostatic"))  # faster to compute than packed ones
    arguments = {"config": config, "moves": 16_000, "threads": threads, "seed": 5, "round_moves": 500}
    whole = search(design, **arguments)
    rounds = []

    def stopped() -> bool:
        return len(rounds) >= after

    watch = Watch(tmp_path, stopped, lambda progress, point: rounds.append(progress))
    first = search(design, **arguments, watch=watch)
    assert not first.finished
    assert (tmp_path / STATE_NAME).is_file()
    _, kept = read_placement(tmp_path / BEST_NAME, design.netlist)
    assert compute_costs(design, kept).total == first.costs.total
    lines = (tmp_path / HISTORY_NAME).read_text().splitlines()
    assert [float(line.split(",")[2]) for line in lines[1:]] == [point.cost for point in first.history]
    second = search(design, **arguments, watch=Watch(tmp_path))
    assert second.finished
    assert second.placement == whole.placement
    assert [point.moves for point in second.history] == [point.moves for point in whole.history]
    assert not (tmp_path / STATE_NAME).exists()


def test_only_a_whole_state_of_the_same_search_is_resumed(design, tmp_path):
    config = AnnealConfig(starts=("initial", "electrostatic"))

    def moves(folder: Path, *, seed: int = 1, rounds: int = 1) -> list[int]:
        """Returns the moves after each of the next rounds of a search in `folder`."""
        done: list[int] = []
        watch = Watch(folder, lambda: len(done) >= rounds, lambda progress, point: done.append(point.moves))
        search(design, config=config, moves=16_000, seed=seed, watch=watch, round_moves=1_000)
        return done

    stopped = moves(tmp_path / "whole", rounds=7)
    fresh = stopped[:1]
    for name in ("damaged", "other"):
        shutil.copytree(tmp_path / "whole", tmp_path / name)
    state = tmp_path / "damaged" / STATE_NAME
    state.write_bytes(state.read_bytes()[:-100])
    assert moves(tmp_path / "whole") > stopped[-1:]
    assert moves(tmp_path / "damaged") == fresh
    assert moves(tmp_path / "other", seed=2) == fresh


def test_a_given_start_never_gets_worse(design, starts):
    start = starts[0]
    result = search(design, [start], moves=2_000, round_moves=1_000)
    assert result.start == start.name
    assert result.costs.total <= compute_costs(design, start.placement).total


def test_planted_optimum_is_neared():
    design = load("planted20")
    optimum = read_placement("netlists/planted20/optimum.plc", design.netlist)[1]
    weights = CostWeights(1.0, 0.0, 0.0)
    best = compute_costs(design, optimum, weights=weights)
    result = search(design, grid_starts("random", design, QUICK, 0), moves=400_000, weights=weights)
    start = compute_costs(design, design.initial, weights=weights)
    assert best.wirelength <= result.costs.wirelength <= best.wirelength * 1.12
    assert start.wirelength > 2 * best.wirelength


def test_the_named_starts_are_legal_and_whole(design):
    starts = make_starts(design, AnnealConfig(starts=STARTS), 0)
    assert {start.name.split()[0] for start in starts} == set(STARTS)
    on_grid = [start for method in ("greedy", "random") for start in grid_starts(method, design, QUICK, 0)]
    for start in (*starts, *on_grid):
        assert legality(design, start.placement) == (0, 0), start.name
    greedy, random = (compute_costs(design, start.placement).wirelength for start in on_grid)
    assert greedy < random


def test_the_electrostatic_start_leaves_soft_macros_where_that_costs_less(design):
    config = AnnealConfig(starts=("electrostatic",))
    weights = CostWeights(1.0, 1.0, 1.0, "chip")
    (scattered,) = grid_starts("random", design, QUICK, 0)
    for start in make_starts(design, config, 0, weights, electrostatic=2):
        placed_anew = place_soft_macros(design, start.placement, SOFT_PLACER)
        costs = [compute_costs(design, one, weights=weights).total for one in (start.placement, placed_anew)]
        assert costs[0] <= costs[1]
        assert costs[0] < 0.9 * compute_costs(design, scattered.placement, weights=weights).total


def test_space_around_the_macros_makes_the_electrostatic_start_cheaper(design, monkeypatch):
    def cost() -> float:
        (start,) = make_starts(design, AnnealConfig(starts=("electrostatic",)), 0, electrostatic=1)
        assert legality(design, start.placement) == (0, 0)
        return compute_costs(design, start.placement).total

    with_space = cost()
    monkeypatch.setattr(starts_module, "spacing_for_channels", lambda *args, spacing, **options: spacing)
    without = cost()
    assert with_space < 0.85 * without
    monkeypatch.setattr(starts_module, "spacing_for_channels", lambda *args, **options: 1000.0)
    assert cost() == without  # there is not enough space for that


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

    def afford(config: AnnealConfig, *budget: float | None, weights: CostWeights = DEFAULT_WEIGHTS):
        return affordable(design, config, weights, *budget)

    for times, count in ((1.01, 1), (1.99, 1), (2.01, 2), (4.01, 4), (99, 4)):
        assert afford(both, times * seconds, None) == (both, count)
        assert afford(both, None, round(times * seconds * MOVES_PER_SECOND)) == (both, count)
    assert afford(both, 0.99 * seconds, None)[0].starts == ("packed",)
    assert afford(both, None, 1) == (both, 1)
    assert afford(alone, 1e-3, None) == (alone, 1)
    found = make_starts(design, alone, 0, electrostatic=3)
    assert [start.name for start in found] == ["electrostatic", "electrostatic 2", "electrostatic 3"]
    assert len({start.placement.x[design.netlist.hard].tobytes() for start in found}) == 3
    result = search(design, config=both, seconds=0.1 * seconds)
    assert result.start.startswith("packed")


def test_starts_that_took_long_are_annealed_before_one_is_chosen(design, monkeypatch):
    """Successive halving gets its share of the remaining time; otherwise the initially cheapest start would win."""
    moves = []

    def starts(*args, **options):
        return [start for method in ("greedy", "random") for start in grid_starts(method, design, QUICK, 0)]

    def halve(run, *args):
        found = original(run, *args)
        moves.append(run.state.moves)
        return found

    original = search_module._Run.halve
    clock = SimpleNamespace(thread_time=iter((0.0, 0.3)).__next__, monotonic=time.monotonic)  # before and after starts
    monkeypatch.setattr(search_module, "time", clock)
    monkeypatch.setattr(search_module, "make_starts", starts)
    monkeypatch.setattr(search_module._Run, "halve", halve)
    search(design, seconds=1.0, round_moves=1_000)
    assert moves[0] > 0


def test_a_grid_too_coarse_for_a_macro_leaves_other_starts():
    nodes = [Node("p", NodeKind.PORT, 0, 0), Node("wide", NodeKind.HARD, 10, 10, 14, 14)]
    coarse = build("coarse", square_canvas(2, 2), nodes, [Net([("p", 0, 0), ("wide", 0, 0)])])
    assert not grid_starts("greedy", coarse, QUICK, 0)
    for start in make_starts(coarse, AnnealConfig(), 0):
        assert legality(coarse, start.placement) == (0, 0)


def test_a_design_without_any_legal_start_is_reported(design):
    placed, fixed = design.initial.placed.copy(), design.initial.fixed.copy()
    macro = design.placing_order[0]
    placed[macro], fixed[macro] = False, True
    lost = dataclasses.replace(design, initial=dataclasses.replace(design.initial, placed=placed, fixed=fixed))
    with pytest.raises(DesignError, match="is fixed but has no position in the initial placement"):
        grid_starts("greedy", lost, QUICK, 0)


@pytest.mark.parametrize("schedule", ["geometric", "adaptive"])
def test_schedules_fall_to_the_final_temperature(schedule):
    design = load("toy6")
    config = AnnealConfig(schedule=schedule, initial_temperature=100 * FINAL_TEMPERATURE)
    run = search_module._Run(design, config, {"weights": ["chip"], "starts": 0}, Watch())
    run.state.unit, run.state.accepted = 1.0, 0.5
    temperatures = []
    for round_number in range(101):
        run.state.temperature = run._next_temperature(round_number / 100)
        temperatures.append(run.state.temperature)
        run.state.accepted = 0.5 * (temperatures[-1] / temperatures[0]) ** 0.5
    assert temperatures[0] == pytest.approx(100 * temperatures[-1])
    assert temperatures[-1] < temperatures[50] < temperatures[0]
    assert temperatures == sorted(temperatures, reverse=True)


@pytest.mark.parametrize(
    ("names", "given", "share"),
    [(["electrostatic"], 0, 0.2), (["packed", "electrostatic"], 0, 1.0), (["a", "b"], 2, 0.2)],
)
def test_one_electrostatic_start_is_refined_as_a_given_placement_is(names, given, share):
    """The first temperature is 0.4 times the cost of the cheapest start per macro: toy6 has six."""
    about = {"weights": DEFAULT_WEIGHTS, "starts": given, "moves": 10}
    run = search_module._Run(load("toy6"), AnnealConfig(), about, Watch())
    run.begin(names, [SimpleNamespace(best_cost=cost) for cost in (3.0, 4.0)[: len(names)]], 0.0)
    assert run._next_temperature(0.0) == pytest.approx(share * 0.4 * 3.0 / 6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"initial_temperature": 0.0}, "anneal.initial_temperature=0.0: must be above 0"),
        ({"starts": ("greedy",)}, "anneal.starts='greedy': must be packed, electro"),
        ({"starts": ()}, "anneal.starts=\\(\\): must be at least one of packed"),
        ({"schedule": "linear"}, "anneal.schedule='linear': must be geometric or adaptive"),
        ({"spacing": -1.0}, "anneal.spacing=-1.0: must be at least 0"),
    ],
)
def test_wrong_settings_are_rejected(settings, message):
    with pytest.raises(ConfigError, match=message):
        AnnealConfig(**settings)


@pytest.mark.parametrize("kind", ["packed", "electrostatic", "initial"])
def test_blockages_spacing_and_the_manufacturing_grid_are_kept(design, kind):
    corner = np.array([[0.0, 0.0, design.canvas.width / 6, design.canvas.height / 6]])
    blocked = constrained(design, blockages=corner, grid=SnapGrid(0.5, 0.5))
    result = search(blocked, config=dataclasses.replace(QUICK, starts=(kind,), spacing=1.0), moves=20_000)
    found = result.placement
    assert legality(design, found) == (0, 0)
    assert fits(blocked, found, spacing=1.0)
    hard = design.placing_order
    corners = np.stack([found.x - design.netlist.width / 2, found.y - design.netlist.height / 2])[:, hard] / 0.5
    assert np.abs(corners - np.round(corners)).max() < 1e-6
    assert kind in result.start


def test_a_policys_samples_are_legalised_before_they_are_refined(design, starts):
    sample = starts[0]
    macro = design.placing_order[0]
    x, y = sample.placement.x[macro], sample.placement.y[macro]
    blocked = constrained(design, blockages=np.array([[x - 20.0, y - 20.0, x + 20.0, y + 20.0]]))
    assert not fits(blocked, sample.placement)
    start, *rows = refinement_starts(blocked, [sample], QUICK)
    assert start.name == sample.name and all(one.name.startswith(f"{sample.name}, repacked") for one in rows)
    assert all(fits(blocked, one.placement) for one in (start, *rows))
    everything = constrained(design, blockages=np.array([[0.0, 0.0, design.canvas.width, design.canvas.height]]))
    with pytest.raises(DesignError, match="no sample of the policy could be made legal"):
        refinement_starts(everything, [sample], QUICK)


def test_where_the_time_is_short_a_search_for_the_chip_cost_has_one_start(design):
    few = LEAST_MOVES * 290  # 40 hard and 250 soft macros
    for weights, seconds, moves, methods, count in (
        (DEFAULT_WEIGHTS, None, few - 1, ("electrostatic",), 1),
        (DEFAULT_WEIGHTS, None, few, ("packed", "electrostatic"), MOST_ELECTROSTATIC),
        (DEFAULT_WEIGHTS, 1e-3, None, ("electrostatic",), 1),  # rows take as long
        (PROXY_WEIGHTS, None, few - 1, ("packed", "electrostatic"), MOST_ELECTROSTATIC),
        (PROXY_WEIGHTS, 1e-3, None, ("packed",), 1),
    ):
        found, number = affordable(design, AnnealConfig(), weights, seconds, moves)
        assert (found.starts, number) == (methods, count)
    given = AnnealConfig(starts=("packed",))
    assert affordable(design, given, DEFAULT_WEIGHTS, None, 1)[0] == given


def test_seconds_and_moves_are_above_0(design):
    for budget in ({"moves": 0}, {"seconds": 0.0}):
        with pytest.raises(ConfigError, match="must be"):
            search(design, **budget)


def test_other_starts_are_used_where_the_requested_ones_do_not_fit():
    nodes = [
        Node("tall", NodeKind.HARD, 5.0, 35.0, 10.0, 70.0),
        Node("wide", NodeKind.HARD, 45.0, 5.0, 50.0, 10.0),
        Node("small", NodeKind.HARD, 35.0, 35.0, 20.0, 20.0),
        Node("cluster", NodeKind.SOFT, 25.0, 25.0, 12.0, 12.0),
    ]
    nets = [Net([("tall", 0, 0), ("wide", 0, 0)]), Net([("small", 0, 0), ("cluster", 0, 0)])]
    design = build("l_shape", square_canvas(7, 7), nodes, nets)
    assert RowPacker(design, AnnealConfig()).pack(1.0, spring_equilibrium(design)) is None
    starts = make_starts(design, AnnealConfig(), 0)
    assert starts
    for start in starts:
        assert legality(design, start.placement) == (0, 0)


def test_a_design_of_fixed_macros_has_its_soft_macros_placed(design):
    fixed = design.initial.fixed.copy()
    fixed[design.netlist.hard] = True
    held = dataclasses.replace(design, initial=dataclasses.replace(design.initial, fixed=fixed))
    result = search(held, moves=5_000, round_moves=1_000)
    assert result.costs.total < compute_costs(held, design.initial).total
    hard = design.netlist.hard
    assert (result.placement.x[hard] == design.initial.x[hard]).all()
