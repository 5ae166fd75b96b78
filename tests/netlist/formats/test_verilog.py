"""Structural Verilog: a hierarchy by hand, constants and concatenations, damaged text, and statistics of real
netlists.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.netlist.design import NodeKind
from placement.netlist.errors import DesignError
from placement.netlist.formats.lef import read_lefs
from placement.netlist.formats.verilog import VerilogNetlist, read_verilog
from placement.netlist.formats.verilog_design import read_verilog_def
from placement.netlist.importing import ChipFiles
from tests.support import small_lef_def

LEF = small_lef_def.LEF.replace("  PIN Q\n", "  PIN CK\n    DIRECTION INPUT ;\n  END CK\n  PIN Q\n", 1)

FLOORPLAN = r"""VERSION 5.8 ; DIVIDERCHAR "/" ; BUSBITCHARS "[]" ; DESIGN chip ; UNITS DISTANCE MICRONS 1000 ;
DIEAREA ( 0 0 ) ( 40000 20000 ) ;
ROW r0 core 0 0 N DO 80 BY 1 STEP 500 0 ;
PINS 2 ;
- in + NET in + DIRECTION INPUT + USE SIGNAL + LAYER M1 ( 0 0 ) ( 100 100 ) + FIXED ( 0 5000 ) N ;
- VDD + NET VDD + USE POWER ;
END PINS
END DESIGN
"""
CHIP = r"""
// the top is not the first
module pair (a, y);
  input a; output [1:0] y;
  wire mid;
  INV \u[0] (.A(a), .Y(mid)), u1 (.A(mid), .Y(y[0]));
  assign y[1] = mid;
endmodule
`timescale 1ns/1ps
module chip (input wire in, output out, output q);
  wire [1:0] both; (* keep *) wire spare; supply0 gnd;
  pair p (.a(in), .y(both));
  INV last (.A(both[1]), .Y(out)), idle (.A(1'b0), .Y()), grounded (.A(gnd), .Y(spare));
  RAM \mem[0]/ram (.D({both[0]}), .CK(in), .Q(q));
endmodule
"""


def technology(tmp_path: Path) -> object:
    (tmp_path / "cells.lef").write_text(LEF)
    return read_lefs([tmp_path / "cells.lef"])[0]


def read(tmp_path: Path, text: str, *more: str, top: str = "") -> VerilogNetlist:
    paths = [tmp_path / f"chip{number}.v" for number in range(1 + len(more))]
    for path, content in zip(paths, (text, *more), strict=True):
        path.write_text(content)
    return read_verilog(paths, technology(tmp_path), top=top)  # type: ignore[arg-type]


def ends(netlist: VerilogNetlist) -> list[set[str]]:
    """Returns the pins of each net, as `component:pin` or the port's name."""
    names = [
        netlist.ports[pin] if component < 0 else f"{netlist.names[component]}:{netlist.pins[pin]}"
        for component, pin in zip(netlist.component.tolist(), netlist.pin.tolist(), strict=True)
    ]
    return [set(names[begin:end]) for begin, end in zip(netlist.start[:-1], netlist.start[1:], strict=True)]


def test_hierarchy_by_hand(tmp_path: Path) -> None:
    netlist = read(tmp_path, CHIP)
    assert netlist.top == "chip"
    assert netlist.names == ["p/u[0]", "p/u1", "last", "idle", "grounded", "mem[0]/ram"]
    assert (netlist.ports, netlist.direction.tolist()) == (["in", "out", "q"], [1, 2, 2])
    assert sorted(map(sorted, ends(netlist))) == sorted(
        map(
            sorted,
            [
                {"in", "p/u[0]:A", "mem[0]/ram:CK"},
                {"p/u[0]:Y", "p/u1:A", "last:A"},
                {"p/u1:Y", "mem[0]/ram:D[0]"},
                {"last:Y", "out"},
                {"mem[0]/ram:Q", "q"},
                {"grounded:Y"},
            ],
        )
    )
    assert [notice.partition(": ")[2] for notice in netlist.notices] == [
        "2 pins of cells and macros are tied to a constant",
        "1 pins of cells and macros are not connected",
    ]


def bus(ports: str, body: str) -> str:
    return f"module chip ({ports}); input [7:0] a; {body} endmodule"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a[3]", "a[3]"),
        ("{a[5:4]}", "a[4]"),
        ("{2{a[6]}}", "a[6]"),
        ("{a, a[2]}", "a[2]"),
        ("a", "a[0]"),
        ("4'hz", None),
        ("8'd2", None),
        ("{1'b1, a[7]}", "a[7]"),
    ],
)
def test_the_lowest_bit_of_an_expression(tmp_path: Path, expression: str, expected: str | None) -> None:
    netlist = read(tmp_path, bus("a", f"INV u (.A({expression}));"))
    found = [net for net in ends(netlist) if "u:A" in net]
    assert found == ([{expected, "u:A"}] if expected else [])


def test_rising_ranges_count_from_their_right_end(tmp_path: Path) -> None:
    text = "module one (d); input [0:1] d; INV u (.A(d[1])), v (.A(d[0])); endmodule "
    text += "module chip (input x, input y); one o (.d({x, y})); endmodule"
    assert sorted(map(sorted, ends(read(tmp_path, text)))) == [["o/u:A", "y"], ["o/v:A", "x"]]


def test_ports_by_order_and_several_files(tmp_path: Path) -> None:
    inner = "module one (z, a); input a; output z; INV u (.A(a), .Y(z)); endmodule"
    netlist = read(tmp_path, "module chip (input x, output y);\none o (y, x);\nendmodule", inner)
    assert sorted(map(sorted, ends(netlist))) == [["o/u:A", "x"], ["o/u:Y", "y"]]


def test_a_top_is_chosen_by_its_name(tmp_path: Path) -> None:
    text = "module a (); INV u (); endmodule\nmodule b (); INV v (); endmodule"
    assert read(tmp_path, text, top="b").names == ["v"]
    with pytest.raises(DesignError, match=r"chip0\.v:2: both 'a' and 'b' are top modules"):
        read(tmp_path, text)


def test_directives_and_attributes(tmp_path: Path) -> None:
    text = """`timescale 1ns/1ps
`define HAS_Q
(* src = "a.v:1 *)" *)
module chip (input x,
`ifdef POWER
  inout VDD,
`endif
`ifdef HAS_Q
  output q,
`else
  output r,
`endif
  output y);
`ifndef HAS_Q
  `ifdef X
  `endif
  INV a (.A(x), .Y(y));
`elsif SYNTHESIS
  INV b (.A(x), .Y(y));
`else
  INV c (.A(x), .Y(y));
`endif
endmodule
"""
    netlist = read(tmp_path, text)
    assert (netlist.ports, netlist.names) == (["x", "q", "y"], ["b"])


def test_included_files_are_noted(tmp_path: Path) -> None:
    text = '// `include "a.v"\nmodule chip (input x);\n  `include "b.v" \n`include "c.v"\n INV u (.A(x));\nendmodule'
    (notice,) = read(tmp_path, text).notices
    assert notice.endswith(':3: 2 `include directives, whose files are not read: "b.v", "c.v" (line 4)')
    with pytest.raises(DesignError, match=r"(?s)1 masters that are defined neither .*2 `include directives"):
        read(tmp_path, text.replace("INV", "NAND"))


def test_black_boxes_are_named(tmp_path: Path) -> None:
    netlist = read(tmp_path, "module box (input i); endmodule\nmodule chip (input x); box b (.i(x)); endmodule")
    assert netlist.names == []
    assert "2: 1 instances of empty modules" in netlist.notices[0]
    assert "b (box)" in netlist.notices[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module chip (input x);\n INV u (.A(x);\nendmodule", ":2: expected ',' between connections, found ';'"),
        ("module chip (input x);\n INV u (.A(x));\n", ":1: module 'chip' has no endmodule"),
        (
            "module chip (input x);\n NAND u (.A(x)), v ();\nendmodule",
            ":2: 1 masters that are defined neither by a LEF ",
        ),
        ("module chip (input x);\n INV u (.B(x));\nendmodule", r":2: 1 connections to pins .*: B of u \(INV\)"),
        ("module chip (input x);\n INV u (.A(x)), u ();\nendmodule", ":2: 1 repeated component names: u"),
        ("module chip (input [3:0] x);\n\n INV u (.A(x[4]));\nendmodule", r":3: 'x' has no bits \[4:4\]; its range is"),
        (
            "module chip (input x);\n always @(x) y = 1;\nendmodule",
            ":2: 'always' is not a statement of a gate-level netlist",
        ),
        ("module chip (input x, output y);\n assign y = x & x;\nendmodule", ":2: the operator '&' is not supported"),
        ("module chip (input x);\n assign 1'b0 = x;\nendmodule", ":2: a constant cannot be assigned to"),
        ("module chip (input x);\n chip again (x);\nendmodule", ":1: there is no top module"),
        ("module chip (input x);\n/* cut", ":2: the comment or attribute that begins here is not closed"),
        ("module chip (input x);\n INV u (.A(2'b12));\nendmodule", ":2: .*digit that is invalid in its base"),
        ("module chip (x);\n INV u (.A(x));\nendmodule", ":1: port 'x' of module 'chip' has no direction"),
        ("module a ();\nendmodule\nmodule a ();\nendmodule", ":3: module 'a' is defined twice"),
        ("module chip (input x);\n `MY_CELL u (.A(x));\nendmodule", ":2: the macro 'MY_CELL' is not expanded"),
        ("module chip (input x);\n`ifdef A\nendmodule", ":2: the conditional has no `endif"),
        ("library (x) {}", ":1: expected 'module', found 'library'"),
        ("module chip (input x); INV u (.A(" + "{" * 200 + "x", ":1: braces are nested more than 100 deep"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DesignError, match=r"chip0\.v" + message):
        read(tmp_path, text)


def test_errors_name_the_file_of_several(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match=r"chip1\.v:2: expected the name of a net"):
        read(tmp_path, CHIP, "module x ();\nwire ;\nendmodule")


def test_a_module_in_a_circle_is_rejected(tmp_path: Path) -> None:
    text = "module chip (input x); one o (x); endmodule\nmodule one (input x); one o (x); endmodule"
    with pytest.raises(DesignError, match=r"chip0\.v:2: module 'one' contains itself"):
        read(tmp_path, text)


@given(
    st.integers(0, len(CHIP)),
    st.sampled_from(["", "(", "}", "\\", "'", "[", ";", "\0", "module", "é", "`ifdef X", "(*", '"']),
)
def test_damaged_text_never_crashes(tmp_path_factory: pytest.TempPathFactory, at: int, inserted: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    for text in (CHIP[:at] + inserted + CHIP[at:], CHIP[:at] + inserted):
        try:
            netlist = read(folder, text)
        except DesignError as error:
            assert "chip0.v:" in str(error)
        else:
            assert netlist.start[-1] == len(netlist.component) == len(netlist.pin)


def test_on_a_floorplan_without_components(tmp_path: Path) -> None:
    (tmp_path / "chip.v").write_text(CHIP)
    (tmp_path / "cells.lef").write_text(LEF)
    (tmp_path / "chip.def").write_text(FLOORPLAN)
    design, file = read_verilog_def([tmp_path / "chip.v"], [tmp_path / "cells.lef"], tmp_path / "chip.def")
    netlist = design.netlist
    assert file.data == FLOORPLAN.encode()
    assert netlist.names == ("p/u[0]", "p/u1", "last", "idle", "grounded", "mem[0]/ram", "in", "out", "q")
    assert netlist.kind.tolist() == [NodeKind.CELL] * 5 + [NodeKind.HARD] + [NodeKind.PORT] * 3
    assert not design.placement.placed[:6].any()
    # The port has the floorplan's position: the centre of its shape.
    assert (design.placement.x[6], design.placement.y[6]) == (pytest.approx(0.05), pytest.approx(5.05))
    assert netlist.num_nets == 5
    assert design.written_name(5) == r"mem\[0\]/ram"


def test_supply_nets_of_a_netlist_with_power_pins_are_ignored(tmp_path: Path) -> None:
    text = CHIP.replace("INV last (", "INV last (.VDD(VDD), ").replace("idle (", "idle (.VDD(VDD), ")
    (tmp_path / "chip.v").write_text(text.replace("chip (input", "chip (inout VDD, input"))
    supply = "  PIN VDD\n    DIRECTION INOUT ;\n    USE POWER ;\n  END VDD\n"
    (tmp_path / "cells.lef").write_text(LEF.replace("MACRO INV\n", f"MACRO INV\n{supply}"))
    (tmp_path / "chip.def").write_text(FLOORPLAN)
    design, file = read_verilog_def([tmp_path / "chip.v"], [tmp_path / "cells.lef"], tmp_path / "chip.def")
    assert design.netlist.num_nets == 5 and "VDD" not in design.netlist.names
    assert any("1 supply nets are ignored" in notice for notice in design.notices) and file.design == "chip"


def test_a_floorplan_of_another_netlist_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "chip.v").write_text(CHIP)
    (tmp_path / "cells.lef").write_text(LEF)
    other = "COMPONENTS 1 ;\n- other RAM + PLACED ( 0 0 ) N ;\nEND COMPONENTS\nPINS"
    (tmp_path / "chip.def").write_text(FLOORPLAN.replace("PINS", other, 1))
    with pytest.raises(DesignError, match=r"chip\.def:5: 1 macros that are not in the netlist: other"):
        read_verilog_def([tmp_path / "chip.v"], [tmp_path / "cells.lef"], tmp_path / "chip.def")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"verilog": ["a.v"]}, "verilog needs a floorplan"),
        ({"verilog": ["a.v"], "def_": "a.def"}, "verilog needs a floorplan"),
        ({"verilog": ["a.v"], "bookshelf": "a.aux"}, "verilog and bookshelf are two netlists"),
        ({"verilog": ["a.v"], "protobuf": "a.pb", "def_": "a.def"}, "verilog and protobuf are two netlists"),
    ],
)
def test_files_that_make_no_chip(files: dict[str, object], message: str) -> None:
    with pytest.raises(DesignError, match=message):
        ChipFiles(**files)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("design", "lef", "components", "macros", "constants"),
    [("asap7_ariane133", "asap7_lef", 100_835, 133, 19_958), ("sky130_mempool_tile", "sky130_lef", 157_376, 20, 3_813)],
)
def test_real_netlists(
    real: Callable[[str], Path], design: str, lef: str, components: int, macros: int, constants: int
) -> None:
    """Leaves as counted by najaeda 0.7.32, less its own for `assign`: 111,065 - 10,230 and 157,454 - 78."""
    netlist = real(f"{design}/netlist.v.gz")
    lefs = sorted((netlist.parents[1] / lef).glob("*.lef.gz"))
    flat, _ = read_verilog_def([netlist], lefs, netlist.parent / "floorplan.def.gz")
    assert (len(flat.cells) + len(flat.netlist.hard), len(flat.netlist.hard)) == (components, macros)
    assert any(f"{constants:,} pins of cells and macros are tied to a constant" in text for text in flat.notices)
