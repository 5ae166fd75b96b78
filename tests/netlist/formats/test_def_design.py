"""Flat designs from LEF and DEF: a chip by hand, rejections, and statistics of real files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from placement.netlist.design import NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import spread_on_edges
from placement.netlist.formats.def_design import read_lef_def
from placement.netlist.geometry import Rectangle
from tests.support.small_lef_def import DEF, LEF


def read(tmp_path: Path, *, lef: str = LEF, text: str = DEF) -> FlatDesign:
    (tmp_path / "cells.lef").write_text(lef)
    (tmp_path / "chip.def").write_text(text)
    return read_lef_def([tmp_path / "cells.lef"], tmp_path / "chip.def")[0]


def test_nodes_by_hand(tmp_path: Path) -> None:
    design = read(tmp_path)
    netlist = design.netlist
    assert netlist.names == ("mem[0]/ram", "mem[1]/ram", "u1", "u2", "u/v", "in", "out", "clk", "q")
    assert netlist.kind.tolist() == [NodeKind.HARD] * 2 + [NodeKind.CELL] * 3 + [NodeKind.PORT] * 4
    assert netlist.width.tolist() == [10, 10, 1, 1, 1, 0, 0, 0, 0]
    assert netlist.height.tolist() == [6, 6, 2, 2, 2, 0, 0, 0, 0]
    assert (design.name, [design.master_names[index] for index in design.master[:3]]) == ("chip", ["RAM", "RAM", "INV"])
    assert design.written_name(0) == r"mem\[0\]/ram"
    assert design.written_name(2) == "u1"


def test_nets_by_hand(tmp_path: Path) -> None:
    design = read(tmp_path)
    netlist = design.netlist
    # The net of one pin and the ground net are ignored; drivers come first.
    ends = [
        [netlist.names[node] for node in netlist.pin_node[netlist.net_pins[begin:end]]]
        for begin, end in zip(netlist.net_start[:-1], netlist.net_start[1:], strict=True)
    ]
    assert ends == [["in", "u1"], ["clk", "mem[0]/ram", "mem[1]/ram"], ["u1", "out", "u2"], ["mem[0]/ram", "q"]]
    assert netlist.net_weight.tolist() == [1, 3, 1, 1]
    pins = netlist.net_pins
    # From the centre of the box: D[0] of the memory at (0.5, 0.2) of 10 × 6, A of the inverter at (0.2, 1) of 1 × 2.
    assert (netlist.pin_dx[pins[3]], netlist.pin_dy[pins[3]]) == (pytest.approx(-4.5), pytest.approx(-2.8))
    assert (netlist.pin_dx[pins[1]], netlist.pin_dy[pins[1]]) == (pytest.approx(-0.3), pytest.approx(0.0))
    assert any("1 supply nets" in notice for notice in design.notices)
    assert any("1 nets with fewer than two pins" in notice for notice in design.notices)


def test_positions_by_hand(tmp_path: Path) -> None:
    design = read(tmp_path)
    placement = design.placement
    assert placement.placed.tolist() == [True, True, True, False, False, True, True, True, True]
    assert placement.fixed.tolist() == [True, False, False, False, False, True, True, True, True]
    # FS keeps the sides, E swaps them: lower left (5, 8) of 10 × 6, (20, 8) of 6 × 10.
    assert (placement.x[:3].tolist(), placement.y[:3].tolist()) == ([10, 23, 2.5], [11, 13, 5])
    assert placement.orientation[:2].tolist() == [Orientation.FS, Orientation.E]
    # The centre of the shape (-70 0) (70 140), rotated to E about (0, 475), is (70, 475).
    assert (placement.x[5], placement.y[5]) == (0.07, 0.475)
    assert (placement.x[6], placement.y[6]) == (0.105, 0.205)
    # Two ports have no position: they are at a quarter and three quarters of the perimeter of a die of 60 × 40.
    assert [(placement.x[node], placement.y[node]) for node in (7, 8)] == [(10, 40), (50, 0)]
    assert any("2 of 4 ports have no position" in notice for notice in design.notices)


def test_floorplan_by_hand(tmp_path: Path) -> None:
    plan = read(tmp_path).floorplan
    assert plan.die == Rectangle(0, 0, 60, 40)
    assert plan.core == Rectangle(2, 4, 52, 8)
    assert (plan.rows.x.tolist(), plan.rows.width.tolist(), plan.rows.height.tolist()) == ([2, 2], [50, 45], [2, 2])
    assert [(tracks.layer, tracks.is_vertical, tracks.start) for tracks in plan.tracks] == [
        ("M2", True, 0.1),
        ("M1", True, 0.1),
        ("M1", False, 0.05),
    ]
    corner, soft, partial, layer = plan.blockages
    assert corner.rectangles.tolist() == [[50, 20, 60, 40]]
    assert (soft.is_soft, soft.rectangles.tolist()) == (True, [[0, 0, 1, 1]])
    # The L of the polygon: two wide below y = 1, one wide above.
    assert partial.density == 0.4
    assert partial.rectangles.tolist() == [[3, 3, 4, 4], [0, 0, 2, 1], [0, 1, 1, 2]]
    assert (layer.layer, layer.node) == ("M1", 2)
    (region,) = plan.regions
    assert (region.name, region.nodes.tolist(), region.is_exclusive) == ("left", [0, 1, 2], True)
    assert region.rectangles.tolist() == [[0, 0, 30, 20], [30, 0, 40, 5]]
    assert (plan.halo_node.tolist(), plan.halo.tolist()) == ([0], [[0.1, 0.2, 0.3, 0.4]])


FAULTS = {
    "unknown master": (
        LEF,
        DEF.replace("u2 INV", "u2 NAND"),
        r"chip\.def:23: 1 masters that no LEF file defines: NAND",
    ),
    "unknown pin": (
        LEF,
        DEF.replace("( u2 A ) ;\n- q", "( u2 B ) ;\n- q"),
        r"chip\.def:\d+: 1 connections .* B of u2 \(INV\)",
    ),
    "no nets": (LEF, DEF[: DEF.index("NETS 6 ;")] + "END DESIGN", "the file has no nets"),
    "rows beyond the die": (
        LEF,
        DEF.replace("r0 core 2000", "r0 core 90000").replace("r1 core 2000", "r1 core 90000"),
        "the rows span .* beyond the die of .* they must be inside the die",
    ),
    "unknown site": (
        LEF.replace("SITE core", "SITE other").replace("END core", "END other"),
        DEF.replace("ROW r1 core 2000 6000", "ROW r1 core 2000 4000"),
        "a single row does not show its height",
    ),
    "rows without a step": (LEF, DEF.replace("DO 90 BY 1", "DO 90 BY 2"), "repeated in y needs a y STEP"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_rejected(tmp_path: Path, name: str) -> None:
    lef, text, reason = FAULTS[name]
    with pytest.raises(DesignError, match=reason):
        read(tmp_path, lef=lef, text=text)


def test_a_group_names_its_components_with_other_escapes(tmp_path: Path) -> None:
    plain, other = (
        read(tmp_path, text=DEF.replace("- rams mem*", f"- rams {name}")) for name in (r"mem\[0\]/ram", "mem[0]/ram")
    )
    regions = [chip.floorplan.regions[0].nodes.tolist() for chip in (plain, other)]
    assert regions[0] == regions[1] and plain.netlist.names.index("mem[0]/ram") in regions[0]
    assert not any("names in groups" in notice for notice in other.notices)


def test_a_blockage_of_a_missing_component_belongs_to_none(tmp_path: Path) -> None:
    with_component, without = (read(tmp_path, text=text) for text in (DEF, DEF.replace("COMPONENT u1", "COMPONENT u9")))
    nodes = [[blockage.node for blockage in chip.floorplan.blockages] for chip in (with_component, without)]
    (own,) = [at for at, (node, other) in enumerate(zip(*nodes, strict=True)) if node != other]
    assert nodes[0][own] >= 0 and nodes[1][own] == -1
    assert any(
        re.search(r"chip\.def:\d+: 1 blockages of components that do not exist .*u9", one) for one in without.notices
    )


def test_names_that_differ_in_escapes_alone_stay_apart(tmp_path: Path) -> None:
    text = (
        DEF.replace("- u/v INV ;", "- mem[0]/ram INV ;").replace("- q + NET", "- u1 + NET").replace("PIN q", "PIN u1")
    )
    names = read(tmp_path, text=text).netlist.names
    assert names[:5] == (r"mem\[0\]/ram", "mem[1]/ram", "u1", "u2", "mem[0]/ram")
    assert names[-1] == "port:u1"


def test_a_design_without_rows_has_the_die_for_its_core(tmp_path: Path) -> None:
    lines = [line for line in DEF.split("\n") if not line.startswith("ROW")]
    design = read(tmp_path, text="\n".join(lines))
    assert design.floorplan.core == design.floorplan.die
    assert any("has no rows" in notice for notice in design.notices)


def test_a_core_ends_with_the_die(tmp_path: Path) -> None:
    design = read(tmp_path, text=DEF.replace("r0 core 2000", "r0 core 20000"))
    assert design.floorplan.core == Rectangle(2, 4, 60, 8)
    assert any(notice.endswith("the core is clipped to the die") for notice in design.notices)


def test_supplies_are_known_by_their_pins(tmp_path: Path) -> None:
    nets = "- vdd ( mem\\[0\\]/ram VDD ) ( mem\\[1\\]/ram VDD ) ( PIN VDD ) ;\nEND NETS"
    design = read(tmp_path, text=DEF.replace("NETS 6", "NETS 7").replace("END NETS", nets))
    assert design.netlist.num_nets == 4
    assert any("2 supply nets" in notice for notice in design.notices)


def test_a_master_without_a_size_is_rejected_if_it_is_used(tmp_path: Path) -> None:
    unused = LEF.replace("END LIBRARY", "MACRO BUMP CLASS BLOCK ;\nEND BUMP\nEND LIBRARY")
    assert "BUMP" not in read(tmp_path, lef=unused).master_names
    cover = unused.replace("BLOCK ;\nEND BUMP", "COVER ;\nEND BUMP")
    text = DEF.replace("- u/v INV", "- u/v BUMP")
    assert read(tmp_path, lef=cover, text=text).netlist.kind[4] == NodeKind.PORT
    with pytest.raises(DesignError, match=r"chip\.def:24: 1 masters whose LEF gives no SIZE above 0: BUMP"):
        read(tmp_path, lef=unused, text=text)


def test_ports_are_spread_evenly() -> None:
    points = spread_on_edges(Rectangle(1, 2, 5, 4), 6)
    # A perimeter of 12: a point every 2 µm, from 1 µm up the left edge.
    np.testing.assert_allclose(points, [[1, 3], [2, 4], [4, 4], [5, 3], [4, 2], [2, 2]])


def test_real_files_have_their_counts(real: Callable[[str], Path]) -> None:
    files = ("asap7_tech_1x_201209.lef.gz", "asap7sc7p5t_28_R_1x_220121a.lef.gz", "fr7.lef.gz")
    design, _ = read_lef_def([real(f"riscv_asap7/{name}") for name in files], real("riscv_asap7/riscv.def.gz"))
    netlist = design.netlist
    assert (len(netlist.hard), len(netlist.hard) + len(design.cells), len(netlist.ports)) == (4, 12161, 135)
    assert netlist.num_nets == 9585 - 157
    # Every component is inside the die; rows have the site's height of 0.27 µm.
    placed = design.placement.placed
    assert design.floorplan.rows.row_height == 0.27
    assert (design.placement.x[placed] >= 0).all()
    assert (design.placement.x[placed] <= 80).all()
