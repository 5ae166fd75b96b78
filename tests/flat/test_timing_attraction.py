"""Wires of failing paths as nets of the clustered netlist, by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from placement.engine.costs import compute_costs
from placement.flat.timing import TimingEvaluator
from placement.flat.timing_attraction import Attractions, attracted, attractions
from placement.netlist.clustering.cluster import Clustering, ClusteringSettings
from placement.netlist.clustering.soft_macros import clustered_design
from placement.netlist.design import Design, Orientation
from placement.netlist.flat_design import FlatDesign
from placement.netlist.importing import ImportSettings, import_flat
from placement.netlist.timing_netlist import TimingNetlist
from tests.flat.test_timing import SDC, chip


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> tuple[TimingNetlist, FlatDesign, np.ndarray, Design]:
    """The chip by hand; `one` and `two` are in a cluster of their own."""
    fast = SDC.replace("period 200", "period 60").replace("0.25 * $period", "50")
    timing, flat = chip(tmp_path_factory.mktemp("chip"), sdc=fast)
    canvas = import_flat(flat, ImportSettings(columns=2, rows=2)).design.canvas
    cluster = np.where(np.isin(flat.netlist.names, ["one", "two"]), 1, 0)
    cluster[~np.isin(np.arange(len(cluster)), flat.cells)] = -1
    clustering = Clustering(cluster.astype(np.int32), 2, ClusteringSettings(), 2, placed=True, notices=())
    return timing, flat, cluster, clustered_design(flat, clustering, canvas)[0]


def test_wires_between_clusters_macros_and_ports(
    clustered: tuple[TimingNetlist, FlatDesign, np.ndarray, Design],
) -> None:
    timing, flat, cluster, design = clustered
    limited = dataclasses.replace(timing, wires=dataclasses.replace(timing.wires, most_load=1.0))
    evaluator = TimingEvaluator(limited, flat)
    slope = evaluator.slack_per_um(flat.placement, margin=0.0, softness=1.0)
    found = attractions(evaluator, cluster, design.netlist, slope)
    name = design.netlist.names
    pairs = {(name[a], name[b]): slack for (a, b), slack in zip(found.node.T.tolist(), found.slack, strict=True)}
    # From first to one for two endpoints, from two to second and to the memory for one each; 0.1 ps per µm.
    assert pairs == pytest.approx(
        {("in", "Grp_0"): 0.1, ("Grp_0", "Grp_1"): 0.2, ("Grp_1", "Grp_0"): 0.1, ("Grp_1", "ram"): 0.1,
         ("ram", "Grp_0"): 0.1}
    )  # fmt: skip


def test_an_attraction_costs_its_length(clustered: tuple[TimingNetlist, FlatDesign, np.ndarray, Design]) -> None:
    design = clustered[3]
    nodes = [design.netlist.names.index(name) for name in ("in", "ram")]
    pulled = Attractions(np.array(nodes)[:, None], np.array([[0.0], [3.0]]), np.array([[0.0], [1.0]]), np.ones(1))
    orientation = design.initial.orientation.copy()
    orientation[nodes[1]] = Orientation.S
    placement = dataclasses.replace(design.initial, orientation=orientation)
    apart = np.abs(placement.x[nodes[1]] - 3 - placement.x[nodes[0]])
    apart += np.abs(placement.y[nodes[1]] - 1 - placement.y[nodes[0]])
    assert pulled.lengths(placement) == pytest.approx([apart])
    before, after = (
        compute_costs(one, placement).wirelength for one in (design, attracted(design, pulled, np.array([4.0])))
    )
    assert after - before == pytest.approx(4 * apart)


def test_blended_attractions_are_merged() -> None:
    one = Attractions(np.array([[0, 1], [2, 3]]), np.zeros((2, 2)), np.zeros((2, 2)), np.array([1.0, 2.0]))
    other = Attractions(np.array([[1, 5], [3, 6]]), np.zeros((2, 2)), np.zeros((2, 2)), np.array([4.0, 6.0]))
    both = one.blended(other, 0.5)
    assert dict(zip(map(tuple, both.node.T.tolist()), both.slack.tolist(), strict=True)) == {
        (0, 2): 1.0, (1, 3): 4.0, (5, 6): 3.0,
    }  # fmt: skip
    assert one.blended(None, 0.5) is one
