"""Static timing: a pipeline by hand, exceptions, latches, loops, bad input, the timing file, and OpenSTA."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import integers

from placement.flat import timing_tags
from placement.flat.timing import TimingEstimate, TimingEvaluator
from placement.netlist.design import NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign, read_flat, write_flat
from placement.netlist.importing import ChipFiles, ImportSettings, import_flat, read_chip
from placement.netlist.macro_arrays import ArraySetting
from placement.netlist.timing_netlist import TIMING_NAME, TimingNetlist, WireModel, read_timing, write_timing
from tests.support.small_timing import DEF, LEF, LIBERTY, SDC, VERILOG, arc, check

WIRES = WireModel(0.1, 0.1, 1.0, 1e9, 10.0, 100.0, 4.0, "BUF", "by hand")
CLOCK = "create_clock -name clock -period 200 [get_ports clk]\n"


def chip(
    tmp_path: Path,
    *,
    verilog: str = VERILOG,
    sdc: str = SDC,
    liberty: str = LIBERTY,
    def_text: str = DEF,
    lef: str = LEF,
) -> tuple[TimingNetlist, FlatDesign]:
    texts = {"chip.v": verilog, "chip.lef": lef, "chip.def": def_text, "chip.lib": liberty, "chip.sdc": sdc}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    read = read_chip(
        ChipFiles(
            lef=[tmp_path / "chip.lef"],
            def_=tmp_path / "chip.def",
            verilog=[tmp_path / "chip.v"],
            liberty=[tmp_path / "chip.lib"],
            sdc=tmp_path / "chip.sdc",
        )
    )
    assert read.timing is not None
    return dataclasses.replace(read.timing, wires=WIRES), read.flat


def timed(timing: TimingNetlist, flat: FlatDesign, *, paths: int = 10) -> TimingEstimate:
    return TimingEvaluator(timing, flat).evaluate(flat.placement, paths=paths)


def ends(timing: TimingNetlist, flat: FlatDesign, found: TimingEstimate) -> dict[str, float]:
    return {
        timing.pin_name(pin, flat): float(slack)
        for pin, slack in zip(found.endpoint.tolist(), found.slack_at_end, strict=True)
    }


# Loads: fF of the sinks' pins and 0.1 per µm of the box around the net; delays of small_timing.DELAY; 0.1 ps per µm.
A = 20 + (2 + 4 + 0.1 * (10 + 22))  # at first/Q; its slew is 10 + that load
A_SLEW = 10 + 9.2
B = A + 0.1 * 10 + (5 + 0.1 * A_SLEW + 0.5 * (2 + 0.1 * 8))  # at one/Y
C = B + 0.1 * 8 + (5 + 0.1 * (10 + 2.8) + 0.5 * (3 + 4 + 0.1 * 39.5))  # at two/Y
REQUIRED = 200 - 5 - 15  # period, uncertainty, setup
EXPECTED = {
    "first/D": REQUIRED - (50 + 0.1 * 0.5),
    "second/D": REQUIRED - (C + 0.1 * 20),
    "ram/D[0]": REQUIRED - (C + 0.1 * 19.5),
    "ram/D[1]": REQUIRED - (A + 0.1 * 26.5),
    "third/D": REQUIRED - (100 + 0.1 * 20),
    "out": 200 - 5 - 30 - (20 + 0.1 * 9.5 + 0.1 * 9.5),
}


def test_slacks_by_hand(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path)
    found = timed(timing, flat)
    assert ends(timing, flat, found) == pytest.approx(EXPECTED, abs=1e-3)
    assert found.wns == 0 and found.tns == 0 and found.total.wns == pytest.approx(EXPECTED["third/D"], abs=1e-3)
    assert {name: group.endpoints for name, group in found.groups.items()} == {
        "registers": 1, "from macros": 1, "to macros": 2, "ports": 2,
    }  # fmt: skip
    assert found.notices == ()


def test_a_shorter_clock_fails_where_it_should(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path, sdc=SDC.replace("period 200", "period 120").replace("0.25 * $period", "50"))
    found = timed(timing, flat)
    short = {name: slack - 80 for name, slack in EXPECTED.items()}
    assert ends(timing, flat, found) == pytest.approx(short, abs=1e-3)
    assert found.wns == pytest.approx(short["third/D"], abs=1e-3)
    assert found.tns == pytest.approx(sum(min(slack, 0) for slack in short.values()), abs=1e-3)
    assert found.groups["from macros"].failing == 1 and found.total.failing == 1


def test_the_worst_path_by_hand(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path)
    paths = timed(timing, flat).paths
    assert [path.end for path in paths] == sorted(EXPECTED, key=EXPECTED.__getitem__)
    path = next(path for path in paths if path.end == "second/D")
    assert path.pins == ("first/CK", "first/Q", "one/A", "one/Y", "two/A", "two/Y", "second/D")
    assert path.times == pytest.approx((0, A, A + 1, B, B + 0.8, C, C + 2), abs=1e-3)
    assert (path.wire, path.length) == (pytest.approx(3.8, abs=1e-3), pytest.approx(0 + 10 + 0 + 8 + 0 + 20, abs=1e-3))
    assert (path.group, path.launch, path.macros) == ("registers", "clock rising", ())
    assert next(path for path in paths if path.end == "third/D").macros == ("ram",)


def test_every_pin_has_the_slack_of_its_worst_path(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path)
    found = timed(timing, flat)
    slack = {timing.pin_name(pin, flat): float(found.slack[pin]) for pin in range(len(timing.instance))}
    assert slack["one/A"] == pytest.approx(EXPECTED["second/D"], abs=1e-3)
    assert slack["first/Q"] == pytest.approx(min(EXPECTED["second/D"], EXPECTED["ram/D[1]"]), abs=1e-3)
    assert slack["in"] == pytest.approx(EXPECTED["first/D"], abs=1e-3)


def test_a_moved_and_mirrored_macro(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path, lef=LEF.replace("4.9 2.9 5.1 3.1", "0 0 0.2 0.2"))
    ram = flat.netlist.names.index("ram")
    x, orientation = flat.placement.x.copy(), flat.placement.orientation.copy()
    x[ram] += 7
    orientation[ram] = Orientation.S
    moved = dataclasses.replace(flat.placement, x=x, orientation=orientation)
    evaluator = TimingEvaluator(timing, flat)
    at_x, at_y = evaluator.places(moved)
    pins = [pin for pin in range(len(timing.node)) if timing.node[pin] == ram]
    # The pin is 4.9 µm left of and 2.9 µm below the centre, (5, 23) and 7 to the right; S reverses this.
    assert at_x[pins].tolist() == pytest.approx([12 + 4.9] * len(pins), abs=1e-4)
    assert at_y[pins].tolist() == pytest.approx([23 + 2.9] * len(pins), abs=1e-4)


def test_a_heavy_net_is_taken_as_buffered(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path)
    limited = dataclasses.replace(timing, wires=dataclasses.replace(WIRES, most_load=3.0))
    found = ends(limited, flat, timed(limited, flat))
    # First drives 3 fF instead of 9.2; its pins of 6 fF need a tree of log(6 / 3) / log(4) stages of 10 ps.
    assert found["ram/D[1]"] == pytest.approx(REQUIRED - (20 + 3 + 0.1 * 26.5 + 10 * np.log(2) / np.log(4)), abs=1e-3)


@pytest.mark.parametrize(
    ("exception", "changes"),
    [
        ("set_false_path -from first/CK", {"second/D": None, "ram/D[0]": None, "ram/D[1]": None}),
        ("set_false_path -to [get_cells ram]", {"ram/D[0]": None, "ram/D[1]": None}),
        ("set_false_path -from [get_cells first] -to ram/D[1]", {"ram/D[1]": None}),
        ("set_multicycle_path 3 -to second/D", {"second/D": 400.0}),
        ("set_multicycle_path 2 -from ram/CK", {"third/D": 200.0}),
        ("set_false_path -from in", {"first/D": None}),
        ("set_clock_latency 20 clock", {"out": 0.0, "first/D": 0.0}),
        ("set_load 7 [all_outputs]", {"out": -7.0}),
        ("set_false_path -through [get_pins one/Y]", {"second/D": None, "ram/D[0]": None}),
        ("set_disable_timing first/CK", {"second/D": None, "ram/D[0]": None, "ram/D[1]": None}),
        ("set_case_analysis 0 [get_ports in]", {"first/D": None}),
    ],
)
def test_exceptions(tmp_path: Path, exception: str, changes: dict[str, float | None]) -> None:
    timing, flat = chip(tmp_path, sdc=f"{SDC}\n{exception}\n")
    expected = {name: slack + (changes.get(name) or 0.0) for name, slack in EXPECTED.items()}
    expected = {name: slack for name, slack in expected.items() if changes.get(name, 0.0) is not None}
    assert ends(timing, flat, timed(timing, flat)) == pytest.approx(expected, abs=1e-3)


# The clock arrives at 10 ps; slacks are those of OpenSTA 2.0.17.
LATENCY = "create_clock -name c -period 200 [get_ports clk]\nset_clock_latency 10 c\nset_clock_uncertainty 5 c\n"
DELAYS = LATENCY + "set_input_delay 40 -clock c [get_ports in]\nset_output_delay 30 -clock c [get_ports out]\n"
FALL = DELAYS.replace("-clock c [get_ports in]", "-clock_fall -clock c [get_ports in]")


@pytest.mark.parametrize(
    ("sdc", "expected"),
    [
        (f"{LATENCY}set_max_delay 80 -from [get_ports in]", {"first/D": 69.95, "out": None}),
        (f"{LATENCY}set_max_delay 80 -to [get_ports out]", {"first/D": None, "out": 48.1}),
        (f"{LATENCY}set_max_delay -ignore_clock_latency 80 -from [all_inputs -no_clocks]", {"first/D": 64.95}),
        (f"{LATENCY}set_max_delay -ignore_clock_latency 80 -to [all_outputs]", {"out": 58.1}),
        (f"{DELAYS}set_max_delay 80 -from c -to c", {"first/D": 19.95, "out": 18.1, "third/D": -42.0}),
        (f"{DELAYS}set_max_delay -ignore_clock_latency 80 -from c -to c", {"first/D": 14.95, "third/D": -37.0}),
        (f"{DELAYS}set_clock_uncertainty 12 -from c -to [get_clocks c]", {"first/D": 132.95, "third/D": 71.0}),
        (f"{FALL}set_max_delay 80 -from [get_ports in]", {"first/D": 19.95, "third/D": 78.0}),
        (f"{LATENCY}set_max_delay 50 -from [all_registers] -to [all_registers]", {"third/D": -72.0, "first/D": None}),
        # A false path precedes a maximum delay, and this a multicycle path; then the more specific and the tighter one.
        (f"{DELAYS}set_false_path -from c -to [all_outputs]\nset_max_delay 80 -to out", {"out": None, "third/D": 78.0}),
        (f"{DELAYS}set_max_delay 80 -from c -to c\nset_multicycle_path 3 -to second/D", {"second/D": 6.925}),
        (
            f"{DELAYS}set_max_delay 80 -from c -to c\nset_max_delay 100 -to [get_cells third]\n"
            "set_max_delay 90 -to [get_pins third/D]",
            {"third/D": -32.0},
        ),
        (
            f"{DELAYS}set_multicycle_path 3 -to [get_cells second]\nset_multicycle_path 2 -to [get_clocks c]\n"
            "set_multicycle_path 4 -from [get_pins first/CK] -to c\nset_multicycle_path 5 -to [get_cells third]\n"
            "set_multicycle_path 6 -to [get_pins third/D]",
            {"out": 343.1, "ram/D[0]": 726.975, "second/D": 726.925, "third/D": 878.0},
        ),
    ],
)
def test_maximum_delays_and_priorities(tmp_path: Path, sdc: str, expected: dict[str, float | None]) -> None:
    timing, flat = chip(tmp_path, sdc=sdc)
    found = ends(timing, flat, timed(timing, flat))
    assert {name: found.get(name) for name in expected} == {
        name: slack if slack is None else pytest.approx(slack, abs=2e-3) for name, slack in expected.items()
    }


def test_derated_delays(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path, sdc=f"{SDC}set_timing_derate -late 1.1\n")
    found = ends(timing, flat, timed(timing, flat))
    assert found["third/D"] == pytest.approx(REQUIRED - 1.1 * (100 + 0.1 * 20), abs=1e-3)
    assert found["second/D"] == pytest.approx(REQUIRED - 1.1 * (C + 0.1 * 20), abs=1e-3)


def test_slews_of_clocks_and_ports_are_in_the_thresholds_of_the_library(tmp_path: Path) -> None:
    """A delay of 0.1 ps per ps from 20% to 80%: OpenSTA looks the SDC file's value up as it is."""
    liberty = LIBERTY.replace("lower_threshold_pct_rise : 0", "lower_threshold_pct_rise : 20")
    liberty = liberty.replace("upper_threshold_pct_rise : 100", "upper_threshold_pct_rise : 80")
    verilog = VERILOG.replace("INV one (.A(a)", "INV one (.A(in)")
    before, after = (
        ends(timing, flat, timed(timing, flat))["second/D"]
        for timing, flat in (
            chip(tmp_path, verilog=verilog, liberty=liberty, sdc=f"{SDC}set_input_transition {slew} [get_ports in]\n")
            for slew in (0, 30)
        )
    )
    assert before - after == pytest.approx(0.1 * 30, abs=1e-3)


def test_a_port_in_both_directions_is_driven_by_a_cell(tmp_path: Path) -> None:
    timing, flat = chip(
        tmp_path,
        verilog=VERILOG.replace("output out", "inout out"),
        def_text=DEF.replace("DIRECTION OUTPUT", "DIRECTION INOUT"),
    )
    found = timed(timing, flat)
    assert ends(timing, flat, found)["out"] == pytest.approx(EXPECTED["out"], abs=1e-3) and not found.notices


def test_a_reset_is_checked_against_its_recovery(tmp_path: Path) -> None:
    limit = check("CK").replace("setup_rising", "recovery_rising")
    liberty = LIBERTY.replace("pin (D)", f"pin (RN) {{ direction : input; capacitance : 1; {limit} }} pin (D)", 1)
    lef = LEF.replace("PIN D DIR", "PIN RN DIRECTION INPUT ; PORT LAYER M1 ; RECT 0 1 1 1.1 ; END END RN\nPIN D DIR", 1)
    timing, flat = chip(tmp_path, liberty=liberty, lef=lef, verilog=VERILOG.replace(".D(data[0])", ".RN(data[0])"))
    found = ends(timing, flat, timed(timing, flat))
    assert found["third/RN"] == pytest.approx(EXPECTED["third/D"], abs=0.1)


def test_two_clocks_are_aligned(tmp_path: Path) -> None:
    """From edges every 200 ps to edges every 300 ps: at least 100 ps apart."""
    sdc = SDC + "create_clock -name other -period 300\nset_output_delay 30 -clock other [get_ports out]\n"
    timing, flat = chip(tmp_path, sdc=sdc)
    assert ends(timing, flat, timed(timing, flat))["out"] == pytest.approx(100 - 30 - (20 + 0.2 * 9.5), abs=1e-3)


@pytest.mark.parametrize(
    ("options", "period", "from_clock", "to_clock"),
    [
        ("-divide_by 2", 400, 200, 200),
        ("-divide_by 2 -invert", 400, 200, 200),
        ("-divide_by 3", 600, 200, 200),
        ("-multiply_by 2", 100, 100, 100),
        ("-invert", 200, 100, 100),
    ],
)
def test_a_generated_clock(tmp_path: Path, options: str, period: float, from_clock: float, to_clock: float) -> None:
    """From and to registers of the master, and between two of its own; OpenSTA 2.0.17 agrees on all three."""
    verilog = VERILOG.replace(
        "DFF second (.CK(clk)",
        "wire nq, half, d; DFF div (.CK(clk), .D(nq), .Q(half)); INV inv (.A(half), .Y(nq)); "
        "DFF fourth (.CK(half), .D(out), .Q(d)); DFF fifth (.CK(clk), .D(d), .Q()); DFF second (.CK(half)",
    )
    places = {"div DFF": "0 10000", "inv INV": "5000 10000", "fourth DFF": "20000 12000", "fifth DFF": "9000 12000"}
    placed = "".join(f"- {cell} + PLACED ( {place} ) N ;\n" for cell, place in places.items())
    command = f"create_generated_clock -name half -source [get_ports clk] {options} [get_pins div/Q]\n"
    timing, flat = chip(
        tmp_path,
        verilog=verilog,
        sdc=SDC + command,
        def_text=DEF.replace("COMPONENTS 6 ;", f"COMPONENTS 10 ;\n{placed}"),
    )
    found = ends(timing, flat, timed(timing, flat))
    # The generated clock has no uncertainty.
    assert found["second/D"] == pytest.approx(EXPECTED["second/D"] + 5 + from_clock - 200, abs=1e-3)
    at_fourth = 20 + (3 + 0.1 * (19.5 + 4)) + 0.1 * (10 + 4)
    assert found["fourth/D"] == pytest.approx(period - 15 - at_fourth, abs=1e-3)
    assert found["fifth/D"] == pytest.approx(to_clock - 5 - 15 - (20 + 3 + 0.2 * 11), abs=1e-3)


def test_the_master_ends_where_a_clock_is_generated(tmp_path: Path) -> None:
    verilog = VERILOG.replace("DFF second (.CK(clk)", "wire g; BUF b (.A(clk), .Y(g)); DFF second (.CK(g)")
    timing, flat = chip(
        tmp_path, verilog=verilog,
        def_text=DEF.replace("COMPONENTS 6 ;", "COMPONENTS 7 ;\n- b BUF + PLACED ( 0 10000 ) N ;"),
        sdc=SDC + "create_generated_clock -name slow -source [get_pins b/A] -divide_by 2 [get_pins b/Y]\n"
        "set_multicycle_path 2 -to slow\n",
        lef=LEF.replace("MACRO DFF", "MACRO BUF\nCLASS CORE ;\nSIZE 1 BY 2 ;\n" + "".join(
            f"PIN {pin} DIRECTION {way} ; PORT LAYER M1 ; RECT 0.4 0.9 0.6 1.1 ; END END {pin}\n"
            for pin, way in (("A", "INPUT"), ("Y", "OUTPUT"))
        ) + "END BUF\nMACRO DFF"),
    )  # fmt: skip
    found = ends(timing, flat, timed(timing, flat))
    assert found["second/D"] == pytest.approx(EXPECTED["second/D"] + 5 + 400, abs=1e-3)
    assert found["ram/D[1]"] == pytest.approx(EXPECTED["ram/D[1]"], abs=1e-3)


def test_an_inverted_clock_captures_half_a_period_earlier(tmp_path: Path) -> None:
    verilog = VERILOG.replace("DFF second (.CK(clk)", "wire nclk; INV i (.A(clk), .Y(nclk)); DFF second (.CK(nclk)")
    timing, flat = chip(tmp_path, verilog=verilog, def_text=DEF.replace(
        "COMPONENTS 6 ;", "COMPONENTS 7 ;\n- i INV + PLACED ( 0 10000 ) N ;"))  # fmt: skip
    found = ends(timing, flat, timed(timing, flat))
    assert found["second/D"] == pytest.approx(EXPECTED["second/D"] - 100, abs=1e-3)
    # Its launched signals arrive 100 ps later, too.
    assert found["out"] == pytest.approx(EXPECTED["out"] - 100, abs=1e-3)


LATCH = LIBERTY.replace(
    "cell (RAM)",
    """cell (LATCH) {
    latch (IQ, IQN) { enable : "G"; data_in : "D"; }
    pin (G) { direction : input; capacitance : 1; clock : true; }
    pin (D) { direction : input; capacitance : 3;
      timing () { related_pin : "G"; timing_type : setup_falling; rise_constraint (scalar) { values ("15"); }
        fall_constraint (scalar) { values ("15"); } } }
    pin (Q) { direction : output;
      timing () { related_pin : "G"; timing_sense : non_unate; timing_type : rising_edge;
        cell_rise (scalar) { values ("40"); } cell_fall (scalar) { values ("40"); }
        rise_transition (scalar) { values ("1"); } fall_transition (scalar) { values ("1"); } }
      timing () { related_pin : "D"; timing_sense : positive_unate;
        cell_rise (scalar) { values ("30"); } cell_fall (scalar) { values ("30"); }
        rise_transition (scalar) { values ("1"); } fall_transition (scalar) { values ("1"); } } }
  }
  cell (RAM)""",
)
LATCHED = "LATCH l (.G(clk), .D({}), .Q(d))"
LATCH_LEF = LEF.replace("MACRO DFF", "MACRO LATCH\nCLASS CORE ;\nSIZE 1 BY 2 ;\n" + "".join(
    f"PIN {pin} DIRECTION {way} ; PORT LAYER M1 ; RECT 0.4 0.9 0.6 1.1 ; END END {pin}\n"
    for pin, way in (("G", "INPUT"), ("D", "INPUT"), ("Q", "OUTPUT"))
) + "END LATCH\nMACRO DFF")  # fmt: skip


@pytest.mark.parametrize(
    ("delay", "at_latch", "leaves"),
    [
        (
            "-clock_fall 20",
            80 - 0.05,
            40.0,
        ),  # arrives before the latch opens at 200: the following path starts at the opening
        ("50", 0.0, 50.05 + 30),  # arrives while the latch is open, from 0 to 100: it leaves 30 ps later
        ("100", -15 - 0.05, 100 + 30),  # too late for the setup of 15; it leaves as the latch closes
    ],
)
def test_a_latch_lends_time(tmp_path: Path, delay: str, at_latch: float, leaves: float) -> None:
    verilog = VERILOG.replace("DFF second (.CK(clk), .D(c)", f"{LATCHED.format('in')}; DFF second (.CK(clk), .D(d)")
    timing, flat = chip(
        tmp_path, verilog=verilog, liberty=LATCH, lef=LATCH_LEF,
        sdc=CLOCK + f"set_input_delay {delay} -clock clock in\n",
        def_text=DEF.replace("COMPONENTS 6 ;", "COMPONENTS 7 ;\n- l LATCH + PLACED ( 0 0 ) N ;"),
    )  # fmt: skip
    found = ends(timing, flat, timed(timing, flat))
    assert found["l/D"] == pytest.approx(at_latch, abs=1e-3)
    assert found["second/D"] == pytest.approx(200 - 15 - (leaves + 0.1 * (30 + 8)), abs=1e-3)


def random_logic(seed: int, latches: int) -> tuple[str, str]:
    """Returns Verilog and DEF of registers, a memory and inverters with random drivers, without combinational loops."""
    random = np.random.default_rng(seed)
    cells = [("DFF", f"f{number}") for number in range(8)] + [("LATCH", f"l{number}") for number in range(latches)]
    driven = [f"{name}_q" for _, name in cells] + ["data[0]", "data[1]", "in"]
    lines = []
    for number in range(40):
        lines.append(f"INV i{number} (.A({random.choice(driven)}), .Y(i{number}_q));")
        driven.append(f"i{number}_q")
    for master, name in cells:
        clock = "CK" if master == "DFF" else "G"
        lines.append(f"{master} {name} (.{clock}(clk), .D({random.choice(driven)}), .Q({name}_q));")
    lines.append(f"RAM ram (.CK(clk), .D({{{random.choice(driven)}, {random.choice(driven)}}}), .Q(data));")
    lines.append(f"assign out = {random.choice(driven)};")
    wires = " ".join(f"wire {name};" for name in driven[:-41] if name[0] in "fl") + " wire [1:0] data;"
    wires += " ".join(f" wire i{number}_q;" for number in range(40))
    cells += [("INV", f"i{number}") for number in range(40)] + [("RAM", "ram")]
    placed = "".join(f"- {name} {master} ;\n" for master, name in cells)
    head, _, rest = DEF.partition("COMPONENTS 6 ;\n")
    components = f"COMPONENTS {len(cells)} ;\n{placed}END COMPONENTS{rest.partition('END COMPONENTS')[2]}"
    return f"module chip (input clk, input in, output out); {wires} {' '.join(lines)} endmodule", head + components


@pytest.mark.parametrize("latches", [0, 3])
@given(seed=integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_an_update_finds_what_a_full_pass_finds(
    tmp_path_factory: pytest.TempPathFactory, latches: int, seed: int
) -> None:
    verilog, def_text = random_logic(seed, latches)
    timing, flat = chip(
        tmp_path_factory.mktemp("random"), verilog=verilog, def_text=def_text, liberty=LATCH, lef=LATCH_LEF,
        sdc=SDC.replace("period 200", "period 90") + "set_false_path -from [get_cells f1] -to [get_cells f2]\n",
    )  # fmt: skip
    random = np.random.default_rng(seed)
    timing = dataclasses.replace(timing, wires=dataclasses.replace(WIRES, most_load=random.choice([7.0, 1e9])))
    updated, full = TimingEvaluator(timing, flat), TimingEvaluator(timing, flat)
    movable = np.flatnonzero(flat.netlist.kind != NodeKind.PORT)
    placement = flat.placement.moved(movable, random.uniform(0, 40, len(movable)), random.uniform(0, 30, len(movable)))
    for _ in range(6):
        nodes = random.choice(movable, random.integers(1, 4), replace=False)
        orientation = placement.orientation.copy()
        orientation[nodes] = random.integers(0, 8)
        x, y = random.uniform(0, 40, len(nodes)), random.uniform(0, 30, len(nodes))
        placement = dataclasses.replace(placement.moved(nodes, x, y), orientation=orientation)
        found, expected = updated.update(placement), full.evaluate(placement)
        for name in ("slack", "endpoint", "slack_at_end"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert (found.paths, found.total, found.groups) == (expected.paths, expected.total, expected.groups)
        delays = full.delays(placement)
        if random.random() < 0.2:  # requests delays, which restarts the update
            np.testing.assert_array_equal(updated.delays(placement)["wire"], delays["wire"])


def test_loops_are_cut_and_reported(tmp_path: Path) -> None:
    verilog = VERILOG.replace("INV one (.A(a)", "wire z; INV l1 (.A(z), .Y(z)); INV one (.A(a)")
    timing, flat = chip(tmp_path, verilog=verilog, def_text=DEF.replace(
        "COMPONENTS 6 ;", "COMPONENTS 7 ;\n- l1 INV + PLACED ( 0 10000 ) N ;"))  # fmt: skip
    found = timed(timing, flat)
    assert ends(timing, flat, found) == pytest.approx(EXPECTED, abs=1e-3)
    assert found.notices[0].startswith("combinational loops are cut at ")
    assert "l1/" in found.notices[0]


@pytest.mark.parametrize(
    ("sdc", "message"),
    [
        ("", "chip: no clock is defined"),
        ("create_clock -name v -period 5", r"chip: no clock \(v\) reaches a register"),
        ("create_clock -name v -period 5 [get_ports in]", r"chip: no clock \(v\) reaches a register"),
        (SDC + "set_false_path -from clock -to clock", "chip: no endpoint is constrained"),
    ],
)
def test_without_a_clock_there_is_no_slack(tmp_path: Path, sdc: str, message: str) -> None:
    with pytest.raises(DesignError, match=message):
        timed(*chip(tmp_path, sdc=sdc))


def test_a_library_of_another_technology_is_rejected(tmp_path: Path) -> None:
    renamed = re.sub(r"cell \((INV|DFF|RAM)\)", r"cell (\1_X1)", LIBERTY)
    with pytest.raises(
        DesignError, match=r"chip\.lib: the Liberty files have none of the design's 3 masters \(first: "
    ):
        chip(tmp_path, liberty=renamed)


def test_pins_and_arcs_missing_from_a_library_are_reported(tmp_path: Path) -> None:
    without_check = LIBERTY.replace(f"capacitance : 3; {check('CK')}", "capacitance : 3;")
    timing, flat = chip(tmp_path, liberty=without_check)
    assert timing.notices[-1].endswith("1 masters with a clock have no setup check: no path ends there: DFF")
    assert "second/D" not in ends(timing, flat, timed(timing, flat))
    without_arc = LIBERTY.replace(arc("DFF", "CK", "non_unate", "rising_edge"), "")
    assert chip(tmp_path, liberty=without_arc)[0].notices[-1].endswith("from it: no path starts there: DFF")
    timing, flat = chip(tmp_path, liberty=LIBERTY.replace("pin (CK)", "pin (CP)").replace('"CK"', '"CP"'))
    assert "2 pins are missing from their cells" in timing.notices[-1]
    assert timing.notices[-1].endswith(": DFF/CK, RAM/CK")
    with pytest.raises(DesignError, match="the Liberty files contain no register"):
        timed(timing, flat)


def test_a_clock_that_reaches_nothing_is_reported(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path, sdc=CLOCK + "create_clock -name v -period 5 [get_ports in]")
    assert "clock 'v' reaches no register" in TimingEvaluator(timing, flat).notices


def test_registers_without_a_clock_are_reported(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path, verilog=VERILOG.replace("DFF third (.CK(clk)", "DFF third (.CK(in)"))
    notices = TimingEvaluator(timing, flat).notices
    assert any("no clock reaches 1 clock pins of registers and macros: third/CK" in text for text in notices)


def test_a_period_in_another_unit_is_reported(tmp_path: Path) -> None:
    timing, _ = chip(tmp_path, sdc=CLOCK.replace("200", "0.2"))
    assert "clock 'clock' has a period of 0.2 ps, less than the 20 ps of the fastest register" in timing.notices[-1]
    timing, _ = chip(tmp_path, sdc="set_units -time ns\n" + CLOCK.replace("200", "201"))
    assert "a period of 201000 ps, over 10,000 times more than the 20 ps of the fastest register" in timing.notices[-1]


def test_masters_without_timing_are_reported(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path, liberty=LIBERTY.replace("cell (INV)", "cell (OTHER)"))
    assert any("1 masters are in no Liberty file" in text and "INV" in text for text in timing.notices)
    assert "second/D" not in ends(timing, flat, timed(timing, flat))


def test_a_library_without_buffers_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match="the Liberty files have no buffer"):
        chip(tmp_path, liberty=LIBERTY.replace("positive_unate", "negative_unate"))


def test_an_unplaced_cell_is_rejected(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path, def_text=DEF.replace("- one INV + PLACED ( 10000 0 ) N", "- one INV"))
    with pytest.raises(DesignError, match="1 cells and macros have no position, the first being 'one'"):
        timed(timing, flat)


def test_the_wires_of_a_library_and_layer(tmp_path: Path) -> None:
    """The best segment of a buffer of 8 + 0.2 C ps on wires of 2 Ω and 0.1 fF per µm, from the derivative."""
    chip(tmp_path)
    read = read_chip(
        ChipFiles(
            lef=[tmp_path / "chip.lef"], def_=tmp_path / "chip.def", verilog=[tmp_path / "chip.v"],
            liberty=[tmp_path / "chip.lib"],
        )
    ).timing  # fmt: skip
    assert read is not None
    wires = read.wires
    assert (wires.resistance_per_um, wires.capacitance_per_um) == (pytest.approx(2.0), pytest.approx(0.1))
    # Per µm: (8 + 0.2 × 1) / l + 0.2 × 0.1 + 0.69 × 2 × (0.1 l / 2 + 1) / 1000.
    best = np.sqrt(8.2 / (0.69 * 2 * 0.05 / 1000))
    least = 8.2 / best + 0.02 + 0.69 * 2 * (0.05 * best + 1) / 1000
    assert wires.delay_per_um == pytest.approx(least, rel=0.01)
    assert wires.segment == pytest.approx(best, rel=0.15)
    assert (wires.repeater, wires.source) == ("BUF", "layer M1 of the LEF files")


def test_kept_with_the_design(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path, sdc=SDC + "set_multicycle_path 2 -to second/D\nset_case_analysis 0 in\n")
    write_timing(tmp_path / TIMING_NAME, timing)
    write_flat(tmp_path / "flat.npz", flat)
    again = read_timing(tmp_path)
    assert again.constraints == timing.constraints and again.wires == timing.wires
    assert again.sources == timing.sources and again.notices == timing.notices
    both = [ends(one, flat, timed(one, flat)) for one in (timing, again)]
    assert both[0] == both[1] and both[0]["second/D"] == pytest.approx(EXPECTED["second/D"] + 200, abs=1e-3)
    assert read_flat(tmp_path).technology.layers == flat.technology.layers


def test_a_damaged_file_is_rejected(tmp_path: Path) -> None:
    timing, flat = chip(tmp_path)
    with pytest.raises(DesignError, match="has no timing"):
        read_timing(tmp_path)
    wrong = timing.cell.copy()
    wrong[0] = 99
    with pytest.raises(DesignError, match="a damaged timing netlist"):
        TimingEvaluator(dataclasses.replace(timing, cell=wrong), flat)
    (tmp_path / TIMING_NAME).write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(DesignError, match="not a valid timing netlist"):
        read_timing(tmp_path)


def test_macros_in_an_array_stay_where_they_are(tmp_path: Path) -> None:
    verilog = VERILOG.replace("RAM ram (", "RAM ram2 (.CK(clk), .D({a, a}), .Q()); RAM ram (")
    timing, flat = chip(tmp_path, verilog=verilog, def_text=DEF.replace(
        "COMPONENTS 6 ;", "COMPONENTS 7 ;\n- ram2 RAM + PLACED ( 10000 20000 ) N ;"))  # fmt: skip
    imported = import_flat(
        flat, ImportSettings(columns=2, rows=2, arrays=[ArraySetting(name="both", macros=("ram*",), columns=2)])
    )
    after = imported.flat
    joined = timing.onto(flat, after)
    placement = dataclasses.replace(after.placement, placed=np.ones_like(after.placement.placed))
    node = after.netlist.names.index("both")
    x, y = placement.x.copy(), placement.y.copy()
    x[node], y[node] = 10.0, 23.0
    placement = dataclasses.replace(placement, x=x, y=y)
    before = TimingEvaluator(timing, flat).evaluate(flat.placement)
    found = TimingEvaluator(joined, after).evaluate(placement)
    assert ends(joined, after, found) == pytest.approx(ends(timing, flat, before), abs=1e-3)


def _benchmark() -> Callable[[list[str]], None]:
    script = Path(__file__).parents[2] / "benchmarks" / "bench_timing.py"
    spec = importlib.util.spec_from_file_location("bench_timing", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_timing"] = module
    spec.loader.exec_module(module)
    main: Callable[[list[str]], None] = module.main
    return main


@pytest.mark.skipif(shutil.which("sta") is None, reason="the judge needs OpenSTA (Debian: opensta)")
def test_slacks_are_those_of_opensta(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edges = "capacitance : 3; rise_capacitance : 3.5; fall_capacitance : 2.5;"
    chip(tmp_path, liberty=LIBERTY.replace("capacitance : 3;", edges, 1))
    files = {"verilog": "v", "lef": "lef", "def": "def", "liberty": "lib", "sdc": "sdc"}
    given = [word for name, suffix in files.items() for word in (f"--{name}", str(tmp_path / f"chip.{suffix}"))]
    _benchmark()([*given, "--as-placed", "--keep", str(tmp_path / "kept")])
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("endpoints:"))
    assert "6 ours, 6 OpenSTA's, 6 of both; τ 1.0000" in line
    assert float(line.partition("most ")[2].split()[0]) < 0.05


def test_exceptions_of_many_registers_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four pins begin paths; with these exceptions, only two kinds of paths remain to be analysed."""
    monkeypatch.setattr(timing_tags, "MOST_TAGS", 2)
    more = "".join(f"set_multicycle_path 2 -from {one}/CK\n" for one in ("first", "second", "third"))
    timing, flat = chip(tmp_path, sdc=f"{SDC}set_false_path -from in\n{more}")
    evaluator = TimingEvaluator(timing, flat)
    found = ends(timing, flat, evaluator.evaluate(flat.placement))
    later = {name: EXPECTED[name] + 200 for name in ("second/D", "ram/D[0]", "ram/D[1]", "out")}
    assert found == pytest.approx({**later, "third/D": EXPECTED["third/D"]}, abs=1e-3)
    timing, flat = chip(
        tmp_path, sdc=f"{SDC}set_multicycle_path 2 -from in\n{more}set_multicycle_path 3 -from ram/CK\n"
    )
    with pytest.raises(DesignError, match="more than 1 combinations"):
        monkeypatch.setattr(timing_tags, "MOST_TAGS", 1)
        TimingEvaluator(timing, flat)
