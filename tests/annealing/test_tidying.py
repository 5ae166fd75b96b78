"""A straightening search: within its bound, legal, tidier, and the same after an interruption."""

import pytest

import placement
from placement import AnnealConfig
from placement.annealing.annealer import Annealer
from placement.annealing.search import Watch
from placement.annealing.tidying import straighten
from placement.config import ConfigError
from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs, legality
from placement.engine.tidiness import largest_empty_rectangle, tidiness
from placement.netlist.design import NodeKind
from tests.support.designs import Net, Node, build, square_canvas


@pytest.fixture(scope="module")
def design():
    return placement.load("clustered40")


@pytest.fixture(scope="module")
def found(design):
    packed = AnnealConfig(starts=("packed",))
    return placement.search(design, config=packed, moves=30_000, seed=1, round_moves=1000).placement


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_straightens_within_the_bound(design, found, share):
    base = compute_costs(design, found).total
    straight = straighten(design, found, weights=DEFAULT_WEIGHTS, config=AnnealConfig(tidy=share), moves=30_000, seed=3)
    assert straight.finished
    assert straight.moves == 30_000
    assert compute_costs(design, straight.placement).total <= base * (1 + share) * (1 + 1e-12)
    assert legality(design, straight.placement) == (0, 0)
    before, after = tidiness(design, found), tidiness(design, straight.placement)
    assert after.aligned > before.aligned
    assert after.cost < before.cost


def test_a_search_straightens_at_its_end_and_resumes(design, tmp_path):
    config = AnnealConfig(tidy=0.02, starts=("packed",))
    whole = placement.search(design, moves=20_000, config=config, seed=5, round_moves=1000)
    plain = placement.search(design, moves=20_000, config=AnnealConfig(starts=("packed",)), seed=5, round_moves=1000)
    assert tidiness(design, whole.placement).cost < tidiness(design, plain.placement).cost
    assert whole.moves == pytest.approx(20_000, abs=1000)
    calls = iter(range(100))
    stopped = placement.search(
        design, moves=20_000, config=config, seed=5, round_moves=1000,
        watch=Watch(folder=tmp_path, stopped=lambda: next(calls) > 25),
    )  # fmt: skip
    assert not stopped.finished
    resumed = placement.search(
        design, moves=20_000, config=config, seed=5, round_moves=1000, watch=Watch(folder=tmp_path)
    )
    assert resumed.finished
    assert resumed.placement == whole.placement


def test_the_cost_can_weigh_tidiness_all_along(design):
    weights, packed = DEFAULT_WEIGHTS._replace(tidy=0.05), AnnealConfig(starts=("packed",))
    tidy = placement.search(design, moves=20_000, config=packed, seed=5, weights=weights, round_moves=1000)
    plain = placement.search(design, moves=20_000, config=packed, seed=5, round_moves=1000)
    assert tidiness(design, tidy.placement).cost < tidiness(design, plain.placement).cost
    assert tidy.tallies["tidy_run"].accepted > 0
    assert plain.tallies["tidy_run"].drawn == 0


def test_a_share_beyond_one_is_rejected():
    with pytest.raises(ConfigError, match=r"anneal\.tidy"):
        AnnealConfig(tidy=2.0)


def test_a_macro_in_the_way_of_the_largest_empty_rectangle_costs_more():
    """A column at the left edge, a macro in front of it; the rectangle beside it (140 × 200 µm) is to grow by 35 µm."""
    corners = [(0, y) for y in (40, 60, 80, 100, 120)] + [(40, 90)]
    nodes = [Node(f"{x}_{y}", NodeKind.HARD, x + 10.0, y + 10.0, 20.0, 20.0) for x, y in corners]
    design = build("column", square_canvas(20, 20), nodes, [Net([(node.name, 0.0, 0.0) for node in nodes])])
    annealer = Annealer(design, design.initial, config=AnnealConfig(), weights=DEFAULT_WEIGHTS._replace(tidy=1.0))
    before = annealer.costs.total
    annealer.grow_clear()
    assert annealer.costs.total == pytest.approx(before + 40 / len(nodes))
    assert annealer.best_cost == annealer.costs.total
    for _ in range(3):
        annealer.run(2000, 0.0)
        annealer.grow_clear()
    left, low, right, high = largest_empty_rectangle(design, annealer.placement)
    assert (right - left) * (high - low) >= 180 * 200 - 1


def test_a_column_leaves_a_channel_in_front_of_its_pins_and_pushes_what_is_behind():
    """Pins are on the left: the middle and the right column move to the right by a channel of 5 µm each."""
    corners = [(x, y) for x in (40, 60, 80) for y in (50, 70)]
    nodes = [Node(f"m{at}_{at}", NodeKind.HARD, x + 10, y + 10, 20.0, 20.0) for at, (x, y) in enumerate(corners)]
    design = build("columns", square_canvas(20, 20), nodes, [Net([(node.name, -9.0, 0.0) for node in nodes])])
    annealer = Annealer(
        design, design.initial, config=AnnealConfig(), weights=DEFAULT_WEIGHTS._replace(tidy=10.0), seed=1
    )
    annealer.set_mix({"tidy_part": 1.0})
    assert tidiness(design, annealer.placement).pins_free == 1 / 3
    annealer.run(300, 0.0)
    after = annealer.placement
    assert tidiness(design, after).pins_free == 1.0
    assert after.x.tolist() == pytest.approx([50, 50, 75, 75, 100, 100], abs=1e-4)
    assert after.y.tolist() == design.initial.y.tolist()
