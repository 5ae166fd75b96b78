"""Clustering: its steps by hand, invariants for any design, and repeatability."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from placement.netlist.canvas import canvas_of
from placement.netlist.clustering.cluster import ClusteringSettings, cluster_cells, fixed_groups, module_edges
from placement.netlist.clustering.groups import break_up, centroids, connectivity, merge_small
from placement.netlist.clustering.partition import partition
from placement.netlist.clustering.soft_macros import clustered_design
from placement.netlist.design import NodeKind
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import check_constraints
from placement.netlist.formats.protobuf import read_netlist
from placement.netlist.geometry import Rectangle
from placement.netlist.import_constraints import ConstraintSettings
from placement.netlist.importing import ImportSettings, import_flat, write_design
from placement.netlist.load import load, read_clusters
from tests.support.flat_designs import chain_design

mtkahypar = pytest.importorskip("mtkahypar")


def test_centroids_and_break_up_by_hand() -> None:
    group = np.array([0, 0, 0, 1, 1, -1])
    x, y = np.array([0.0, 10.0, 25.0, 3.0, 4.0, 99.0]), np.zeros(6)
    area = np.array([1.0, 1.0, 2.0, 1.0, 3.0, 1.0])
    centre_x, _ = centroids(group, 2, x=x, y=y, area=area)
    assert centre_x.tolist() == [15, 3.75]
    # Group 0 spans 25 ≥ 10 around 15: distances -15, -5, 10 are 2 squares below (1.5 rounds away), 1 below, 1 above.
    broken, count = break_up(group, 2, x=x, y=y, area=area, reach=10.0)
    assert broken.tolist() == [2, 3, 4, 1, 1, -1]
    assert count == 5


def test_small_groups_merge_into_the_most_adjacent_one_in_reach() -> None:
    # A chain a0-a1-a2-b-c0-c1-c2; b is alone in its group and on one net with each side.
    design = chain_design([("a", 3), ("b", 1), ("c", 3)])
    joined = connectivity(design)
    group = np.array([0, 0, 0, 1, 2, 2, 2, *([-1] * (design.netlist.num_nodes - 7))])
    merged = merge_small(group, 3, joined, most_nodes=1, reach=np.inf)
    assert merged[:7].tolist() == [0, 0, 0, 0, 2, 2, 2]
    # With distance: c's centre is closer to b than a's once a is somewhere else.
    far = joined.x.copy()
    far[:3] += 1000
    apart = dataclasses.replace(joined, x=far)
    merged = merge_small(group, 3, apart, most_nodes=1, reach=30.0)
    assert merged[:7].tolist() == [0, 0, 0, 2, 2, 2, 2]
    merged = merge_small(group, 3, apart, most_nodes=1, reach=1.0)
    assert merged.tolist() == group.tolist()


def test_modules_are_hints_unless_they_are_large() -> None:
    names = ["top/a/x", "top/a/y", "top/b/z", "top/b/w", "other"]
    module, node = module_edges(names, np.arange(5), 2)
    assert [sorted(node[module == index].tolist()) for index in range(module.max() + 1)] == [
        [0, 1],
        [0, 1, 2, 3],
        [2, 3],
    ]
    module, node = module_edges(names, np.arange(5), 5)
    assert [node[module == index].tolist() for index in range(module.max() + 1)] == [[0, 1], [2, 3]]


def test_fixed_groups_hold_macros_ports_and_what_is_next_to_them() -> None:
    design = chain_design([("u", 6)], macro_after=2)
    canvas, _ = canvas_of(design, columns=4, rows=4)
    joined = connectivity(design)
    group, count = fixed_groups(design, canvas, joined)
    names = design.netlist.names
    of = {name: int(group[index]) for index, name in enumerate(names)}
    # The macro and the cells on its nets; the two ports are on different sides.
    assert of["macro"] == 0
    assert (of["u1"], of["u2"]) == (0, 0)
    assert of["in"] != of["out"]
    assert (of["u0"], of["u5"]) == (of["in"], of["out"])
    assert (of["u3"], of["u4"], count) == (-1, -1, 3)


@pytest.mark.parametrize("use_positions", [True, False])
def test_what_every_clustering_holds(use_positions: bool) -> None:
    design = chain_design([(f"block{number}/", 60) for number in range(6)], macro_after=100)
    canvas, _ = canvas_of(design, columns=6, rows=6)
    settings = ClusteringSettings(clusters=12, use_positions=use_positions)
    clustering = cluster_cells(design, canvas, settings=settings)
    netlist = design.netlist
    is_cell = netlist.kind == NodeKind.CELL
    assert (clustering.cluster[is_cell] >= 0).all()
    assert (clustering.cluster[~is_cell] == -1).all()
    assert np.unique(clustering.cluster[is_cell]).tolist() == list(range(clustering.count))
    clustered, _ = clustered_design(design, clustering, canvas)
    coarse = clustered.netlist
    assert len(coarse.soft) == clustering.count
    assert [coarse.names[node] for node in coarse.hard] == ["macro"]
    area = (coarse.width * coarse.height)[coarse.soft].sum()
    assert area == pytest.approx((netlist.width * netlist.height)[is_cell].sum() / 0.5)
    # Computed slowly, net by net: the total weight of nets between clusters is that of the flat nets that leave a
    # cluster.
    expected = 0.0
    for net in range(netlist.num_nets):
        pins = netlist.net_pins[netlist.net_start[net] : netlist.net_start[net + 1]]
        places = [
            clustering.cluster[netlist.pin_node[pin]] if is_cell[netlist.pin_node[pin]] else -1 - pin for pin in pins
        ]
        expected += netlist.net_weight[net] * (len(set(places)) > 1)
    assert coarse.net_weight.sum() == pytest.approx(expected)
    assert (np.diff(coarse.net_start) >= 2).all()


def test_nets_of_a_cluster_to_one_place_are_one() -> None:
    design = chain_design([("a", 4), ("b", 4)], parallel=3)
    canvas, _ = canvas_of(design, columns=4, rows=4)
    clustering = cluster_cells(design, canvas, settings=ClusteringSettings(clusters=1))
    by_hand = clustering.__class__(
        cluster=np.array([0] * 4 + [1] * 4 + [-1] * (design.netlist.num_nodes - 8), dtype=np.int32), count=2,
        settings=clustering.settings, placed=True, notices=(),
    )  # fmt: skip
    coarse = clustered_design(design, by_hand, canvas)[0].netlist
    weights = {
        tuple(coarse.names[node] for node in coarse.pin_node[coarse.net_pins[begin:end]]): weight
        for begin, end, weight in zip(coarse.net_start[:-1], coarse.net_start[1:], coarse.net_weight, strict=True)
    }
    # One link of the chain, and three more between its ends.
    assert weights[("Grp_0", "Grp_1")] == 4


def test_inconsistent_settings_are_rejected() -> None:
    for change in ({"clusters": 0}, {"clusters": 1.5}, {"seed": -1}):
        with pytest.raises(DesignError, match=f"{next(iter(change))}="):
            ClusteringSettings(**change)


_SCRIPT = """
import os, sys
os.sched_getaffinity = lambda _: set(range(int(sys.argv[1])))
from placement.netlist.canvas import canvas_of
from placement.netlist.clustering.cluster import cluster_cells
from placement.netlist.clustering.cluster import ClusteringSettings
from tests.support.flat_designs import chain_design
design = chain_design([(f"b{number}/", 300) for number in range(4)], parallel=400)
clustering = cluster_cells(design, canvas_of(design, columns=5, rows=5)[0], settings=ClusteringSettings(clusters=20))
print(clustering.cluster.tobytes().hex())
"""


def test_the_same_on_every_run_and_number_of_threads() -> None:
    results = [
        subprocess.run(
            [sys.executable, "-c", _SCRIPT, threads], capture_output=True, check=True, text=True, timeout=500
        ).stdout
        for threads in ("1", "2", "2")
    ]
    assert len(results[0]) > 1000
    assert results[0] == results[1] == results[2]


def test_the_folder_holds_what_later_steps_read(tmp_path: Path) -> None:
    design = chain_design([(f"block{number}/", 40) for number in range(4)], macro_after=50)
    imported = import_flat(design, ImportSettings(columns=5, rows=4, clustering=ClusteringSettings(clusters=8)))
    write_design(tmp_path / "chip", imported, def_data=b"VERSION 5.8 ;")
    again = load(tmp_path / "chip")
    assert (again.canvas, again.netlist.names) == (imported.design.canvas, imported.design.netlist.names)
    np.testing.assert_array_equal(
        again.netlist.net_pins, read_netlist(tmp_path / "chip" / "netlist.pb.txt.gz").net_pins
    )
    np.testing.assert_array_equal(again.netlist.net_weight, imported.design.netlist.net_weight)
    np.testing.assert_array_equal(read_clusters(tmp_path / "chip"), imported.clustering.cluster)
    assert str(tmp_path) not in (tmp_path / "chip" / "source.json").read_text()


@pytest.mark.parametrize("fixed", [[-1, -1, -1, -1, -1, -1], [0, -1, -1, -1, -1, -1], [0, 1, 2, -1, -1, -1]])
def test_without_any_hyperedge_parts_are_even(fixed: list[int]) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    part = partition(
        nothing, nothing, edge_weight=nothing, vertex_weight=np.ones(6, dtype=np.int64),
        fixed=np.array(fixed, dtype=np.int32), parts=3, imbalance=0.3, seed=0,
    )  # fmt: skip
    assert part.dtype == np.int32
    assert all(own in (-1, found) for own, found in zip(fixed, part.tolist(), strict=True))
    counts = np.bincount(part, minlength=3)
    assert counts.sum() == 6 and counts.max() <= 3


def reject_clustering(*_: object, **__: object) -> None:
    raise AssertionError("clustering was begun")


@pytest.mark.parametrize("fault", ["blockage", "name"])
def test_constraints_that_cannot_be_met_are_rejected_before_clustering(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement.netlist.importing.cluster_cells", reject_clustering)
    design, constraints = chain_design([("u", 30)], macro_after=10), None
    core = design.floorplan.core
    if fault == "blockage":
        middle = Rectangle(core.x_low + 15, core.y_low + 15, core.x_high - 15, core.y_high - 15)
        constraints = ConstraintSettings(blockages=(middle,))
    else:
        names = tuple("Grp7" if name == "macro" else name for name in design.netlist.names)
        design = dataclasses.replace(design, netlist=dataclasses.replace(design.netlist, names=names))
    with pytest.raises(
        DesignError, match="leave no legal position for macro 'macro'" if fault == "blockage" else "macro 'Grp7'"
    ):
        import_flat(design, ImportSettings(columns=4, rows=4, constraints=constraints))


@pytest.mark.parametrize("shift", [0.0, 7.0])
def test_rules_that_fixed_macros_break_are_reported_wherever_the_core_is(shift: float) -> None:
    design = chain_design([("u", 30)], macro_after=10)
    core, there = design.floorplan.core, design.placement
    moved = Rectangle(core.x_low + shift, core.y_low + shift, core.x_high + shift, core.y_high + shift)
    design = dataclasses.replace(
        design,
        floorplan=dataclasses.replace(design.floorplan, core=moved),
        placement=dataclasses.replace(
            there, x=there.x + shift, y=there.y + shift, fixed=there.fixed | (design.netlist.kind == NodeKind.HARD)
        ),
    )
    at = int(design.netlist.hard[0])
    x, y = float(design.placement.x[at]), float(design.placement.y[at])
    over = Rectangle(x - 1, y - 1, x + 1, y + 1)
    for blockage, expected_notices in (
        (over, 1),
        (Rectangle(moved.x_low, moved.y_low, moved.x_low + 1, moved.y_low + 1), 0),
    ):
        settings = ClusteringSettings(clusters=1)
        constraints = ConstraintSettings(blockages=(blockage,))
        imported = import_flat(design, ImportSettings(columns=4, rows=4, clustering=settings, constraints=constraints))
        reported = [notice for notice in imported.notices if "is on a blockage" in notice]
        assert len(reported) == expected_notices
        assert list(check_constraints(imported.design)) == reported
