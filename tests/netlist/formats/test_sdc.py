"""SDC files: clocks, delays, exceptions, surrounding Tcl, and unsupported commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.netlist.errors import DesignError
from placement.netlist.formats.sdc import read_sdc
from placement.netlist.formats.sdc_objects import REGISTERS, DesignObjects
from placement.netlist.timing_constraints import Clock, Object, PathException, PortDelay, TimingConstraints

OBJECTS = DesignObjects(
    ports={"clk": 1, "in": 1, "bus[0]": 1, "bus[1]": 1, "out": 2},
    cells=["u/ff[0]", "u/ff[1]", "u/gate"],
    pins_of=lambda cell: ["A", "Y"] if cell == "u/gate" else ["CK", "D", "Q"],
    master_of=lambda cell: "INV" if cell == "u/gate" else "DFF",
)
CLOCK = "create_clock -name c -period 10 [get_ports clk]\n"


def read(tmp_path: Path, text: str, *, time_unit: float = 1.0) -> TimingConstraints:
    (tmp_path / "chip.sdc").write_text(text)
    return read_sdc(tmp_path / "chip.sdc", OBJECTS, time_unit=time_unit)[0]


def test_a_clock_with_all_that_it_has(tmp_path: Path) -> None:
    text = """
    # a comment; with a semicolon
    set period 4.0; set half [expr $period / 2]
    create_clock [get_ports clk] -name core -period $period \\
        -waveform [list 0.5 [expr {0.5 + $half}]]
    set_clock_latency -source 0.1 [get_clocks core]
    set_clock_latency 0.2 [all_clocks]
    set_clock_uncertainty -setup 0.05 core
    set_clock_uncertainty -hold 9 core
    set_clock_transition 0.01 [get_clocks c*]
    """
    clock = Clock("core", 4000, 500, 2500, (Object("port", "clk"),), pytest.approx(300), 50, 10)
    assert read(tmp_path, text, time_unit=1000.0) == TimingConstraints(clocks=(clock,))


def test_units_of_the_file_count(tmp_path: Path) -> None:
    found = read(tmp_path, "set_units -time 10ps\n" + CLOCK, time_unit=1000.0)
    assert found.clocks[0].period == 100


def test_delays_of_ports(tmp_path: Path) -> None:
    text = (
        CLOCK
        + """
    set_input_delay 1 -clock c [remove_from_collection [all_inputs] [get_ports {clk in}]]
    set_input_delay 2 -clock c -rise -clock_fall {in}
    set_input_delay -min 0 -clock c in
    set_output_delay 3 -clock [get_clocks c] [get_ports o*]
    set_output_delay 4 -clock c in
    """
    )
    found = read(tmp_path, text)
    assert found.inputs == (
        PortDelay("bus[0]", "c", False, 1, 1),
        PortDelay("bus[1]", "c", False, 1, 1),
        PortDelay("in", "c", True, 2, float("-inf")),
    )
    assert found.outputs == (PortDelay("out", "c", False, 3, 3),)
    assert "1 ports of set_output_delay in the wrong direction: in" in found.notices[0]


def test_exceptions(tmp_path: Path) -> None:
    text = (
        CLOCK
        + """
    set_false_path -from bus
    set_false_path -from [get_clocks c] -to [get_pins u/ff[0]/D]
    set_false_path -hold -to out
    set_multicycle_path 2 -setup -from [get_cells u/ff*] -to [get_ports out]
    """
    )
    bits = Object("port", "bus[0]"), Object("port", "bus[1]")
    cells = Object("cell", "u/ff[0]"), Object("cell", "u/ff[1]")
    assert read(tmp_path, text).exceptions == (
        PathException(0, bits, ()),
        PathException(0, (Object("clock", "c"),), (Object("pin", "u/ff[0]/D"),)),
        PathException(2, cells, (Object("port", "out"),)),
    )


def test_clock_groups_are_false_both_ways(tmp_path: Path) -> None:
    text = CLOCK + "create_clock -name d -period 3\nset_clock_groups -asynchronous -group c -group d"
    c, d = (Object("clock", "c"),), (Object("clock", "d"),)
    assert read(tmp_path, text).exceptions == (PathException(0, c, d), PathException(0, d, c))


def test_conditions(tmp_path: Path) -> None:
    text = "set p 7\nif {[info exists ::env(NO_SUCH)]} {\n set p 9\n} elseif {$p > 6 && $p ne {x}} {\n set p 5 }\n"
    found = read(tmp_path, text + CLOCK.replace("10", "$p"))
    assert found.clocks[0].period == 5


@pytest.mark.parametrize(
    ("options", "master", "expected"),
    [
        ("-source clk -divide_by 2", "0 5", (20, 0, 10)),
        ("-source clk -divide_by 4", "2 8", (40, 2, 22)),
        ("-source clk -divide_by 3 -master_clock c", "2 8", (30, 6, 24)),
        ("-source u/gate/A -multiply_by 2", "0 5", (5, 0, 2.5)),
        ("-source clk -divide_by 2 -invert", "0 5", (20, 10, 0)),
        ("-source clk -combinational", "2 8", (10, 2, 8)),
    ],
)
def test_generated_clocks(tmp_path: Path, options: str, master: str, expected: tuple[float, float, float]) -> None:
    clock = CLOCK.replace("10", f"10 -waveform {{{master}}}")
    found = read(tmp_path, f"{clock}create_generated_clock -name g {options} u/gate/Y\nset_clock_uncertainty 1 g\n")
    sources = (Object("pin", "u/gate/Y"),)
    assert found.clocks[1] == Clock("g", *expected, sources, uncertainty=1, is_generated=True) and not found.notices


def test_generated_clocks_that_are_ignored(tmp_path: Path) -> None:
    text = (
        CLOCK
        + """create_clock -name d -period 3 [get_ports in]
    create_generated_clock -name e -source clk -edges {1 3 5} u/gate/Y
    create_generated_clock -name f -source u/ff[0]/CK -divide_by 2 u/gate/Y
    """
    )
    found = read(tmp_path, text)
    assert [clock.name for clock in found.clocks] == ["c", "d"]
    assert [notice.partition("chip.sdc")[2] for notice in found.notices] == [
        ":3: 1 unsupported options: -edges of create_generated_clock",
        ":3: 1 generated clocks with an unsupported option, which are ignored: -edges",
        ":4: 1 generated clocks without a master clock, which are ignored; set -master_clock: f",
    ]


def test_what_is_not_understood_is_listed(tmp_path: Path) -> None:
    text = (
        CLOCK
        + """set_case_analysis 0 in
    set_max_fanout 16 [current_design]
    set_false_path -through u/gate/Y
    set_false_path -from nowhere
    create_clock -name d -period 3 -frequency
    """
    )
    found = read(tmp_path, text)
    assert not found.exceptions
    assert [notice.partition("chip.sdc")[2] for notice in found.notices] == [
        ":4: 1 unsupported options, whose exceptions are ignored: -through of set_false_path",
        ":5: 1 names without a match: nowhere",
        ":6: 1 unsupported options: -frequency of create_clock",
        ":2: 1 unsupported commands: set_case_analysis",
        ":3: 1 commands without effect on the estimate: set_max_fanout",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\ncreate_clock -period $p clk", ":2: variable 'p' is not set"),
        ("create_clock -period ten clk", ":1: -period of create_clock: expected a number, found 'ten'"),
        ("create_clock -period 0 clk", ":1: clock 'clk': a period of 0 must be above 0"),
        ("create_clock -period 5", ":1: create_clock: expected -name or a source"),
        (CLOCK + "set_multicycle_path 0 -to out", ":2: set_multicycle_path: 0 must be a whole number"),
        (
            CLOCK + "create_generated_clock -source clk -divide_by 0 u/gate/Y",
            ":2: create_generated_clock: -divide_by 0 ",
        ),
        (CLOCK + "create_generated_clock -source clk -divide_by 2 -multiply_by 3 u/gate/Y", ":2: clock .* either"),
        ("set_units -time 1parsec", ":1: set_units: -time '1parsec'"),
        ("create_clock -period {5", r":1: the \{ that begins here is not closed"),
        ("set a [expr 1 / 0]", ":1: expr '1 / 0': expected numbers"),
        ("set a [expr __import__('os')]", ":1: expr "),
        ("create_clock -period 5 -waveform {3 1} clk", ":1: clock 'clk': -waveform must be two rising times"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DesignError, match=r"chip\.sdc" + message):
        read(tmp_path, text)


@given(st.text(alphabet='set[]{}$"\\;# \n-from get_ports clk1.', max_size=80))
def test_any_text_is_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    try:
        read(tmp_path_factory.getbasetemp(), text)
    except DesignError as error:
        assert "chip.sdc:" in str(error)
