"""The graph of a design, its statistics, and the command that prints them."""

from __future__ import annotations

import io
from pathlib import Path

import networkx
import numpy as np
import pytest
from rich.console import Console

from placement.cli.main import main
from placement.netlist.builder import NetlistBuilder
from placement.netlist.design import Canvas, Design, NodeKind, Placement
from placement.netlist.graph import graph_arrays, to_networkx
from placement.netlist.load import load
from placement.netlist.statistics import statistics
from placement.report.describe import print_description


@pytest.fixture
def hand_made() -> Design:
    """Returns two hard macros, a soft one, three ports of which two share a gcell; three nets."""
    builder = NetlistBuilder()
    ports = [builder.port(f"p{number}") for number in range(3)]
    soft = builder.macro("Grp_0", NodeKind.SOFT, 1.0, 1.0)
    hard = [builder.macro(f"m{number}", NodeKind.HARD, 2.0, 2.0) for number in range(2)]
    of_soft, first, second = (builder.pin(node, 0.0, 0.0) for node in (soft, *hard))
    again, unused = builder.pin(hard[1], 0.5, 0.0), builder.pin(hard[0], 0.0, 0.5)
    builder.net(1.0, ports[0], [first])
    builder.net(2.0, ports[1], [first, ports[2]])
    builder.net(3.0, of_soft, [first, second, again])
    assert unused
    netlist = builder.build()
    canvas = Canvas(10.0, 10.0, 5, 5, 1.0, 1.0, 0.5, 0.5)
    place = np.array([[0.0, 0.5], [0.0, 1.5], [10.0, 10.0], [5, 5], [2, 5], [8, 5]])
    kept = netlist.kind == NodeKind.PORT
    initial = Placement(place[:, 0], place[:, 1], np.zeros(6), np.ones(6), kept)
    return Design("hand_made", netlist, canvas, initial)


def test_graph_by_hand(hand_made: Design) -> None:
    graph = graph_arrays(hand_made)
    # m0, m1, Grp_0, then port clusters at gcells 0 (p0, p1) and 24 (p2, at the far corner).
    assert graph.vertex.tolist() == [3, 3, 4, 2, 0, 1]
    assert graph.kind.tolist() == [NodeKind.HARD, NodeKind.HARD, NodeKind.SOFT, NodeKind.PORT, NodeKind.PORT]
    assert graph.node.tolist() == [4, 5, 3, -1, -1]
    assert graph.gcell.tolist() == [-1, -1, -1, 0, 24]
    edges = {tuple(ends): weight for ends, weight in zip(graph.edges.tolist(), graph.weight.tolist(), strict=True)}
    assert edges == {(0, 2): 3.0, (0, 3): 1.0 + 2.0, (1, 2): 3.0, (3, 4): 2.0}
    assert graph.edges.dtype == np.int32
    assert graph.weight.dtype == np.float64


def test_networkx_graph_is_the_same(hand_made: Design) -> None:
    graph = to_networkx(hand_made)
    arrays = graph_arrays(hand_made)
    assert networkx.get_edge_attributes(graph, "weight") == {
        tuple(ends): weight for ends, weight in zip(arrays.edges.tolist(), arrays.weight.tolist(), strict=True)
    }
    assert graph.nodes[0] == {"name": "m0", "kind": "hard", "width": 2.0, "height": 2.0}
    assert graph.nodes[4]["name"] == "ports at gcell (4, 4)"


def test_statistics_by_hand(hand_made: Design) -> None:
    figures = statistics(hand_made)
    assert figures.nodes == {"hard": 2, "soft": 1, "port": 3, "cell": 0}
    assert figures.pins_of == {"hard": 4, "soft": 1, "port": 3, "cell": 0}
    assert figures.unused_pins == 1
    assert (figures.nets, figures.total_weight) == (3, 6.0)
    assert figures.net_degree == {2: 1, 3: 1, 4: 1}
    assert figures.utilization == pytest.approx({"hard": 0.08, "soft": 0.01})
    assert figures.shapes == {(2.0, 2.0): 2}
    assert figures.components == [5]
    assert figures.largest_nets[0] == ("Grp_0", 4, 3.0)
    assert figures.most_connected[0] == ("m0", 6.0, 2)
    assert figures.mean_neighbours == {"hard": 1.5, "soft": 2.0}


def test_ariane_graph(ariane_folder: Path) -> None:
    design = load(ariane_folder)
    graph = graph_arrays(design)
    assert (graph.kind == NodeKind.HARD).sum() == 133
    assert (graph.kind == NodeKind.SOFT).sum() == 782
    assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
    assert len(np.unique(graph.edges, axis=0)) == len(graph.edges)
    figures = statistics(design)
    assert figures.utilization["hard"] == pytest.approx(0.496, abs=1e-3)


@pytest.mark.parametrize("name", ["toy6", "clustered40"])
def test_description_names_the_figures(name: str) -> None:
    console = Console(file=io.StringIO(), width=100)
    design = load(name)
    print_description(design, console=console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"{design.netlist.num_nets:,} (" in text
    assert f"{design.canvas.columns} × {design.canvas.rows}" in text
    assert "connected" in text


def test_describe_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "toy6"]) == 0
    assert "hard macros" in capsys.readouterr().out


def test_commands_reject_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "no_such_design"]) == 2
    assert main(["generate", "clustered", "--hard", "0", "--out", str(tmp_path / "x")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all(": " in line for line in lines), lines
    assert "no_such_design" in lines[0]


def test_generate_makes_a_design_that_loads(tmp_path: Path) -> None:
    small = ["--hard", "4", "--soft", "20", "--ports", "6", "--seed", "5"]
    assert main(["generate", "clustered", *small, "--out", str(tmp_path / "mine")]) == 0
    assert load(tmp_path / "mine").name == "mine"
