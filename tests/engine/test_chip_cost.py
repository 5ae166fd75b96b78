"""The chip cost: equal to the slow oracle, incrementally exact, and fit for its purpose."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.annealer import Annealer
from placement.engine.costs import CostWeights, IncrementalCost, compute_costs, cost_maps
from placement.netlist.design import Design, NodeKind, Orientation
from placement.netlist.errors import DesignError
from tests.support.chip_oracle import chip_costs
from tests.support.designs import Net, Node, build, four_macros, random_design, random_placement, square_canvas

CHIP = CostWeights(1.0, 0.7, 0.3, "chip")


def _with_room_kept(design_seed: int, pdn_channel: float | None, halo: float) -> Design:
    """Returns a random design whose hard macros have halos, some twice as wide across, and a pdn_channel."""
    design = random_design(design_seed)
    halos = np.zeros((design.netlist.num_nodes, 2))
    halos[design.netlist.hard] = halo
    halos[design.netlist.hard[::2], 0] *= 2
    return dataclasses.replace(
        design, pdn_channel=pdn_channel, constraints=dataclasses.replace(design.constraints, halo=halos)
    )


KEPT = {"pdn_channel": st.sampled_from((None, 0.0, 1.7)), "halo": st.sampled_from((0.0, 1.2, 30.0))}
"""The widest halos leave the whole canvas too little whitespace."""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(design_seed=st.integers(0, 10**6), seed=st.integers(0, 10**6), spill=st.sampled_from((0.0, 0.4)), **KEPT)
def test_the_engine_agrees_with_the_definition(
    design_seed: int, seed: int, spill: float, pdn_channel: float | None, halo: float
) -> None:
    design = _with_room_kept(design_seed, pdn_channel, halo)
    placement = random_placement(design, seed, spill=spill)
    expected = chip_costs(design, placement, CHIP[:3])
    assert compute_costs(design, placement, weights=CHIP) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_what_the_maps_show_above_1_is_what_the_cost_charges(seed: int) -> None:
    design = random_design(seed)
    canvas = dataclasses.replace(design.canvas, routes_horizontal=0.05, routes_vertical=0.08)
    design = dataclasses.replace(design, canvas=canvas, pdn_channel=0.0)
    placement = random_placement(design, seed)
    costs, maps = compute_costs(design, placement, weights=CHIP), cost_maps(design, placement, weights=CHIP)
    usable = 0.7 * canvas.cell_width * canvas.cell_height
    pairs = ((maps.horizontal, canvas.routes_horizontal), (maps.vertical, canvas.routes_vertical))
    beyond = sum(usable * routes * np.maximum(values - 1, 0).sum() for values, routes in pairs)
    assert beyond * costs.wirelength_cost / costs.wirelength == pytest.approx(costs.congestion_cost)
    assert costs.congestion_cost > 0 and maps.horizontal.shape == (canvas.rows, canvas.columns)


def test_the_map_of_density_holds_the_area_of_cells_and_hard_macros() -> None:
    design = dataclasses.replace(four_macros(), pdn_channel=0.0)
    density, netlist = cost_maps(design, weights=CHIP).density, design.netlist
    area = netlist.width * netlist.height
    bins = design.canvas.width * design.canvas.height / density.size
    assert density.sum() * bins == pytest.approx(area[netlist.hard].sum() + area[netlist.soft].sum() / 2)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(design_seed=st.integers(0, 10**6), seed=st.integers(0, 10**6), **KEPT)
def test_moves_and_undos_leave_no_trace(design_seed: int, seed: int, pdn_channel: float | None, halo: float) -> None:
    design = _with_room_kept(design_seed, pdn_channel, halo)
    generator = np.random.default_rng(seed)
    cost = IncrementalCost(design, random_placement(design, seed), weights=CHIP)
    macros = np.flatnonzero(np.isin(design.netlist.kind, (NodeKind.HARD, NodeKind.SOFT)) & ~design.initial.fixed)
    for _ in range(20):
        node = int(generator.choice(macros))
        before = cost.costs
        if design.netlist.kind[node] == NodeKind.HARD and generator.random() < 0.3:
            cost.orient(node, Orientation(int(generator.integers(8))))
        else:
            place = generator.uniform(-0.1, 1.1, 2) * (design.canvas.width, design.canvas.height)
            cost.move(node, float(place[0]), float(place[1]))
        assert cost.costs == compute_costs(design, cost.placement, weights=CHIP)
        if generator.random() < 0.4:
            assert cost.undo() == before
        else:
            cost.commit()


def _stack(distance: float) -> Design:
    """Returns two clusters whose cells fill a gcell each, `distance` µm apart in x, connected by a net."""
    side = math.sqrt(200.0)  # at half utilisation
    nodes = [
        Node("a", NodeKind.SOFT, 15.0, 15.0, side, side),
        Node("b", NodeKind.SOFT, 15.0 + distance, 15.0, side, side),
    ]
    return build("stack", square_canvas(4, 4), nodes, [Net([("a", 0.0, 0.0), ("b", 0.0, 0.0)])])


def test_clusters_upon_each_other_cost_the_way_apart() -> None:
    costs = [compute_costs(_stack(distance), weights=CHIP).density_cost for distance in (0.0, 5.0, 10.0)]
    assert costs[0] > costs[1] > 1e-6 > costs[2]
    # One gcell's area moves half a gcell's side: 100 µm² · 5 µm · 2 pins / 200 µm², divided by 80 µm.
    assert costs[0] == pytest.approx(5.0 / 80.0)


@pytest.mark.parametrize(
    ("pdn_channel", "halo", "free"), [(0.0, 0.0, 10.0), (3.0, 0.0, 7.0), (3.0, 4.0, 6.0), (0.0, 4.0, 6.0)]
)
def test_cells_keep_clear_of_macros(pdn_channel: float, halo: float, free: float) -> None:
    """A cluster fills a gcell next to a macro; its area within the clearance of the macro must move."""
    side = math.sqrt(200.0)  # at half utilisation
    nodes = [
        Node("m", NodeKind.HARD, 5.0, 20.0, 10.0, 40.0),
        Node("a", NodeKind.SOFT, 15.0, 15.0, side, side),
        Node("b", NodeKind.SOFT, 35.0, 15.0, side, side),
    ]
    design = build("beside", square_canvas(4, 4), nodes, [Net([("a", 0.0, 0.0), ("b", 0.0, 0.0)])])
    halos = np.zeros((3, 2))
    halos[0] = halo
    constraints = dataclasses.replace(design.constraints, halo=halos)
    design = dataclasses.replace(design, pdn_channel=pdn_channel, constraints=constraints)
    # The rest of 100 µm² moves 5 µm, half a gcell · 2 pins / 200 µm², divided by 80 µm.
    assert compute_costs(design, weights=CHIP).density_cost == pytest.approx((10.0 - free) / 10.0 * 5.0 / 80.0)


@pytest.mark.parametrize(("clusters", "beyond"), [(22, 0.0), (24, 24 / 0.7 - 32)])
def test_a_large_block_has_to_leave_a_flow_the_room_to_spread_cells(clusters: int, beyond: float) -> None:
    """Clusters fill this many of the 32 gcells beside a macro, one each: none overflows, but the block is too dense."""
    # This number of gcells of 100 µm² leaves the block of 80 µm, and no larger block.
    assert _density_of_a_crowd(clusters, 16) == pytest.approx(beyond * 100.0 * 80.0 * 2 / (100.0 * clusters) / 320.0)


def test_the_overflow_of_the_whole_canvas_counts_once_and_half() -> None:
    """The block is the whole canvas: its overflow at the flow's density cannot move anywhere."""
    missing_area = 24 / 0.7 - 32
    assert _density_of_a_crowd(24, 8) == pytest.approx(0.5 * missing_area * 100.0 * 80.0 * 2 / (100.0 * 24) / 160.0)
    # Two adjacent blocks of this kind, and none in the other half: each block overflows, but the canvas does not.
    assert _density_of_a_crowd(24, 16, blocks=2) == pytest.approx(
        missing_area * 100.0 * 80.0 * 2 / (100.0 * 24) / 320.0
    )
    # Four blocks: each has the same overflow, and the canvas overflows by the total, which is counted once.
    assert _density_of_a_crowd(24, 16, blocks=4) == pytest.approx(
        0.5 * 4 * missing_area * 100.0 * 160.0 * 2 / (100.0 * 96) / 320.0
    )


def _density_of_a_crowd(clusters: int, gcells: int, blocks: int = 1) -> float:
    """Returns the density cost of clusters, a gcell each, in the right half of 8 × 8 blocks; a macro is in the left.

    Blocks are in the lower left corner of a canvas of `gcells` × `gcells`, beside each other, then above.
    """
    side = math.sqrt(200.0)  # at half utilisation
    nodes = []
    for block in range(blocks):
        left, bottom = 80.0 * (block % 2), 80.0 * (block // 2)
        nodes.append(Node(f"m{block}", NodeKind.HARD, left + 20.0, bottom + 40.0, 40.0, 80.0))
        nodes += [
            Node(
                f"s{block}-{i}", NodeKind.SOFT, left + 45.0 + 10.0 * (i % 4), bottom + 5.0 + 10.0 * (i // 4), side, side
            )
            for i in range(clusters)
        ]
    design = build("crowd", square_canvas(gcells, gcells), nodes, [Net([("s0-0", 0.0, 0.0), ("s0-1", 0.0, 0.0)])])
    return compute_costs(dataclasses.replace(design, pdn_channel=0.0), weights=CHIP).density_cost


def test_a_roomy_design_keeps_straps_free_and_a_full_one_does_not() -> None:
    def pdn_channel(cells: float) -> float:
        side = math.sqrt(2 * cells)  # at half utilisation
        nodes = [Node("m", NodeKind.HARD, 20.0, 20.0, 10.0, 10.0), Node("a", NodeKind.SOFT, 15.0, 15.0, side, side)]
        design = build("room", square_canvas(4, 4), nodes, [Net([("a", 0.0, 0.0), ("m", 0.0, 0.0)])])
        assert design.own_pdn_channel == dataclasses.replace(design, pdn_channel=design.own_pdn_channel).own_pdn_channel
        return design.own_pdn_channel

    # Of 1,600 µm², a macro leaves 1,200 with a pdn_channel of 10 µm, and 1,375 with 5 µm. Cells take at most 49% of
    # these.
    assert [pdn_channel(area) for area in (580.0, 600.0, 670.0, 690.0)] == [10.0, 5.0, 5.0, 0.0]
    with pytest.raises(DesignError, match="pdn_channel: -1"):
        dataclasses.replace(random_design(0), pdn_channel=-1.0)


def test_stacked_clusters_go_apart() -> None:
    names = "abcdefgh"
    nodes = [Node(name, NodeKind.SOFT, 15.0, 15.0, 14.0, 14.0) for name in names]
    nets = [Net([(one, 0.0, 0.0), (other, 0.0, 0.0)]) for one, other in itertools.pairwise(names)]
    design = build("stack", square_canvas(4, 4), nodes, nets)
    weights = CostWeights(1.0, 4.0, 0.0, "chip")
    annealer = Annealer(design, design.initial, config=AnnealConfig(), weights=weights)
    before = annealer.costs.density_cost
    annealer.run(20_000, 0.0)
    costs = compute_costs(design, annealer.best, weights=weights)
    assert costs.total == annealer.best_cost
    assert costs.density_cost < 0.02 * before


def test_wire_over_macros_without_tracks_costs() -> None:
    nodes = [
        Node("left", NodeKind.PORT, 0.0, 15.0),
        Node("right", NodeKind.PORT, 40.0, 15.0),
        Node("m", NodeKind.HARD, 15.0, 15.0, 10.0, 10.0),
    ]
    tracks = dict.fromkeys(
        ("routes_horizontal", "routes_vertical", "macro_routes_horizontal", "macro_routes_vertical"), 0.3
    )
    canvas = dataclasses.replace(square_canvas(4, 4), **tracks)
    design = build("over", canvas, nodes, [Net([("left", 0.0, 0.0), ("right", 0.0, 0.0)])])
    beside = design.initial.moved(np.array([2]), np.array([15.0]), np.array([35.0]))
    # Ten µm of wire are in the macro's gcell, which has no track.
    assert compute_costs(design, weights=CHIP).congestion_cost == pytest.approx(10.0 / 80.0)
    assert compute_costs(design, beside, weights=CHIP).congestion_cost == 0.0


@pytest.mark.parametrize(("width", "cut"), [(6.0, 1.0), (4.0, 0.8), (0.0, 0.0)])
def test_a_channel_next_to_a_macro_has_no_tracks_across(width: float, cut: float) -> None:
    nodes = [
        Node("left", NodeKind.PORT, 0.0, 15.0),
        Node("right", NodeKind.PORT, 40.0, 15.0),
        Node("m", NodeKind.HARD, 15.0, 15.0, width, 10.0),
    ]
    tracks = {
        "routes_horizontal": 0.1 / 0.7,
        "macro_routes_horizontal": 0.1 / 0.7,
    }  # tracks for 10 µm of wire per gcell
    design = build(
        "channel", dataclasses.replace(square_canvas(4, 4), **tracks), nodes, [Net([("left", 0, 0), ("right", 0, 0)])]
    )
    assert compute_costs(design, weights=CHIP).congestion_cost == pytest.approx(cut * 10.0 / 80.0)


def test_a_net_of_very_many_pins_needs_more_wire_than_one_of_fifty() -> None:
    def excess(count: int) -> float:
        tracks = dict.fromkeys(("routes_horizontal", "routes_vertical"), 1e-9)
        nodes = [Node(f"p{i}", NodeKind.PORT, 40.0 * i / (count - 1), 15.0) for i in range(count)]
        net = Net([(node.name, 0.0, 0.0) for node in nodes])
        design = build("wide", dataclasses.replace(square_canvas(4, 4), **tracks), nodes, [net])
        return compute_costs(design, weights=CHIP).congestion_cost

    assert excess(200) == pytest.approx(2 * excess(50), rel=1e-6)


def test_the_name_of_a_cost_is_checked() -> None:
    with pytest.raises(ValueError, match="cost 'silicon' must be proxy or chip"):
        compute_costs(_stack(0.0), weights=CostWeights(name="silicon"))
