"""The graph of a design, and the command that prints its statistics."""

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
    console = Console(file=io.StringIO(), width=100)
    print_description(hand_made, console=console)
    cells = [line.split("│") for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    found = {line[1].strip(): line[2].strip() for line in cells if len(line) == 4}
    assert found["hard macros"] == "2 (4 pins; 0 fixed)"
    assert found["macros by size"] == "2 of 2 × 2 µm"
    assert found["soft macros"] == "1 (1 pins)"
    assert (found["ports"], found["standard cells"], found["pins in no net"]) == ("3", "0", "1")
    assert found["nets"] == "3 (6 by weight)"
    assert found["nets by pins"] == "2: 1, 3: 1, 4: 1"
    assert found["utilization"] == "hard 8.0%, soft 1.0%"
    assert found["graph"] == "5 nodes, 4 edges"
    assert found["neighbours"] == "1.5 per hard macro, 2.0 per soft macro"
    assert found["components"] == "1: connected"


def test_ariane_graph(ariane_folder: Path) -> None:
    design = load(ariane_folder)
    graph = graph_arrays(design)
    assert (graph.kind == NodeKind.HARD).sum() == 133
    assert (graph.kind == NodeKind.SOFT).sum() == 782
    assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
    assert len(np.unique(graph.edges, axis=0)) == len(graph.edges)


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
