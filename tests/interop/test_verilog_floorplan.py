"""A floorplan without components combined with structural Verilog."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from placement.annealing.search import search
from placement.api import import_design
from placement.engine.costs import legality
from placement.netlist.errors import DesignError
from placement.netlist.export import export_placement
from placement.netlist.flat_design import FlatDesign, read_flat
from placement.netlist.formats.verilog_design import read_verilog_def
from tests.interop.chips import RAM, Chip

BANK = """\
MACRO BANK CLASS BLOCK ; SIZE 20 BY 30 ;
  PIN A[0] DIRECTION INPUT ; PORT LAYER M2 ; RECT 0 0 0.1 0.1 ; END END A[0]
  PIN A[1] DIRECTION INPUT ; PORT LAYER M2 ; RECT 0 1 0.1 1.1 ; END END A[1]
  PIN Q[0] DIRECTION OUTPUT ; PORT LAYER M2 ; RECT 0 5 0.1 5.1 ; END END Q[0]
  PIN Q[1] DIRECTION OUTPUT ; PORT LAYER M2 ; RECT 0 6 0.1 6.1 ; END END Q[1]
  PIN VDD USE POWER ; PORT LAYER M1 ; RECT 0 0 1 1 ; END END VDD
END BANK
"""
NETLIST = r"""
// Generated
`timescale 1ns/1ps
module half (input [1:0] in, output [1:0] out, input vdd);
  wire \odd[1] , n;
  BUF c0 (.D(in[0]), .Q(n));  /* a cell */
  (* keep *) BUF \c/1 (.D(n), .Q(\odd[1] ));
  BANK ram (.A({in[1], \odd[1] }), .Q(out), .VDD(vdd));
endmodule
module top (a, z, clk);
  input [1:0] a;
  output [1:0] z;
  input clk;
  wire [1:0] w;
  wire same;
  assign same = clk;
  half u0 (.in(a), .out(w), .vdd(1'b1));
  half u1 (.in({w[1], w[0]}), .out(z), .vdd(1'b1));
  BUF load (.D(same), .Q());
  BUF tied (.D(1'b0), .Q(open));
endmodule
"""
PORTS = {name: f"+ NET {name} + LAYER M2 ( 0 0 ) ( 9 9 ) + FIXED ( 0 {at}000 ) N" for at, name in enumerate(
    ("a[0]", "a[1]", r"z\[0\]", "z[1]", "clk"), start=1)}  # fmt: skip


def floorplan(macros: dict[str, str] | None = None) -> str:
    """Returns the DEF text of a floorplan, without COMPONENTS and NETS unless it has macros."""
    chip = Chip(macros=macros or {}, cells={}, nets={}, ports=PORTS)
    text = chip.text
    for name in ("NETS",) if macros else ("NETS", "COMPONENTS"):
        text = re.sub(rf"{name} \d+ ;\n(- .*\n)*END {name}\n", "", text)
    return text


def write(folder: Path, *, netlist: str = NETLIST, text: str | None = None) -> dict[str, Path]:
    lef, path = folder / "chip.lef", folder / "fp.def"
    lef.write_text(Chip(masters=f"{RAM}{BANK}MACRO LOGO CLASS BLOCK ; SIZE 20 BY 20 ;\nEND LOGO\n").lef)
    path.write_text(text or floorplan())
    (folder / "top.v").write_text(netlist)
    return {"lef": lef, "def": path, "verilog": folder / "top.v"}


def read(folder: Path, **texts: str) -> FlatDesign:
    files = write(folder, **texts)
    return read_verilog_def([files["verilog"]], [files["lef"]], files["def"])[0]


def ends(flat: FlatDesign) -> list[set[str]]:
    """Returns the nodes of each net."""
    netlist = flat.netlist
    nodes = [netlist.names[node] for node in netlist.pin_node[netlist.net_pins].tolist()]
    return [set(nodes[begin:end]) for begin, end in zip(netlist.net_start[:-1], netlist.net_start[1:], strict=True)]


EXPECTED = [
    {"a[1]", "u0/ram"}, {"a[0]", "u0/c0"}, {"z[1]", "u1/ram"}, {"z[0]", "u1/ram"}, {"clk", "load"},
    {"u0/c0", "u0/c/1"}, {"u0/c/1", "u0/ram"}, {"u0/ram", "u1/ram"}, {"u0/ram", "u1/c0"},
    {"u1/c0", "u1/c/1"}, {"u1/c/1", "u1/ram"},
]  # fmt: skip


def test_a_netlist_by_hand(tmp_path: Path) -> None:
    flat = read(tmp_path)
    assert sorted(map(sorted, ends(flat))) == sorted(map(sorted, EXPECTED))
    names = {
        name: flat.master_names[master]
        for name, master in zip(flat.netlist.names, flat.master.tolist(), strict=True)
        if master >= 0
    }
    assert {name for name, kind in names.items() if kind == "BANK"} == {"u0/ram", "u1/ram"}
    assert len(names) == 8 and not flat.placement.placed[flat.netlist.hard].any()
    # Bit 1 of A is in[1], the first item in the braces.
    pins = {
        (flat.netlist.names[node], round(dy, 2))
        for node, dy in zip(flat.netlist.pin_node, flat.netlist.pin_dy, strict=True)
    }
    assert ("u0/ram", -15 + 1.05) in {(name, round(dy, 2)) for name, dy in pins}


def test_the_whole_way(tmp_path: Path) -> None:
    files = write(tmp_path)
    out = tmp_path / "design"
    design = import_design(lef=[files["lef"]], def_=files["def"], verilog=[files["verilog"]], out=out)
    placement = search(design, moves=2_000, round_moves=1_000).placement
    assert tuple(legality(design, placement)) == (0, 0)
    text = export_placement(design, placement, out, form="def").data.decode()
    assert re.search(r"^- u0/ram BANK \+ FIXED \( \d+ \d+ \) \w+ ;$", text, re.MULTILINE)
    assert r"- z\[0\] + NET z\[0\]" in text
    assert len(read_flat(out).netlist.ports) == 5


def test_macros_of_the_floorplan_keep_their_places(tmp_path: Path) -> None:
    flat = read(tmp_path, text=floorplan({"u0/ram": "BANK + FIXED ( 10000 20000 ) N", "tap": "BUF + FIXED ( 0 0 ) N"}))
    ram = flat.netlist.names.index("u0/ram")
    assert flat.placement.fixed[ram] and (flat.placement.x[ram], flat.placement.y[ram]) == (20, 35)
    assert any("tap" in notice for notice in flat.notices)
    assert sorted(map(sorted, ends(flat))) == sorted(map(sorted, EXPECTED))
    with pytest.raises(DesignError, match=r"fp\.def:\d+: 1 macros that are not in the netlist: other"):
        read(tmp_path, text=floorplan({"other": "BANK"}))


def test_macros_without_signals_need_not_be_in_the_netlist(tmp_path: Path) -> None:
    flat = read(tmp_path, text=floorplan({"logo": "LOGO + FIXED ( 10000 20000 ) N"}))
    logo = flat.netlist.names.index("logo")
    assert logo in flat.netlist.hard and flat.placement.fixed[logo]
    assert (flat.placement.x[logo], flat.placement.y[logo]) == (20, 30)
    assert any("1 macros without signal pins are not in the netlist: they are added: logo" in n for n in flat.notices)
    assert sorted(map(sorted, ends(flat))) == sorted(map(sorted, EXPECTED))


def test_a_netlist_belongs_to_one_chip(tmp_path: Path) -> None:
    files = write(tmp_path)
    with pytest.raises(DesignError, match="verilog needs a floorplan"):
        import_design(verilog=[files["verilog"]])
    with pytest.raises(DesignError, match="verilog and protobuf are two netlists"):
        import_design(verilog=[files["verilog"]], protobuf="x", def_=files["def"])


def test_positions_and_dotted_widths(tmp_path: Path) -> None:
    """Connections by position if the Verilog declares the module; ascending vectors; repeated constants."""
    netlist = NETLIST.replace("half u1 (.in({w[1], w[0]}), .out(z), .vdd(1'b1));", "half u1 (w[1:0], z, {1{1'b1}});")
    assert sorted(map(sorted, ends(read(tmp_path, netlist=netlist)))) == sorted(map(sorted, EXPECTED))
    upwards = NETLIST.replace("wire [1:0] w", "wire [0:1] w").replace("w[1], w[0]", "w[0], w[1]")
    assert sorted(map(sorted, ends(read(tmp_path, netlist=upwards)))) == sorted(map(sorted, EXPECTED))
