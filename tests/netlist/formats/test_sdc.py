"""SDC files: clocks, delays, exceptions, surrounding Tcl, and unsupported commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.netlist.errors import DesignError
from placement.netlist.formats import tcl
from placement.netlist.formats.sdc import read_sdc
from placement.netlist.formats.sdc_objects import REGISTERS, DesignObjects
from placement.netlist.timing_constraints import (
    Clock,
    Derating,
    Object,
    PathException,
    PortDelay,
    PortLoad,
    PortTransition,
    TimingConstraints,
)

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


def test_a_file_as_flows_write_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERIOD_OF_TEST", "9")
    (tmp_path / "common.tcl").write_text("proc part {of {share 2}} {\n  return [expr {$of / $share}]\n}\n")
    text = """
    source common.tcl
    if {[info exists ::env(PERIOD_OF_TEST)]} { set period $::env(PERIOD_OF_TEST) } else { set period 1 }
    set port [get_ports clk]
    create_clock -name core -period $period -waveform [list 0 [part $period]] $port
    set inputs [lsearch -inline -all -not -exact [all_inputs] $port]
    set_input_delay [expr $period * 0.5] -clock core $inputs
    set late {}
    foreach one [all_outputs] {
        if {[get_property $one direction] eq "output" && [string match o* [get_full_name $one]]} { lappend late $one }
    }
    set_output_delay [part 9.0 4] -clock core $late
    foreach {bit value} {0 1 1 2} { set_multicycle_path $value -from [get_ports bus[$bit]] }
    set_false_path -to [get_cells * -filter "ref_name =~ DF* && full_name != u/ff[0]"]
    """
    found = read(tmp_path, text)
    assert found.clocks == (Clock("core", 9, 0, 4, (Object("port", "clk"),)),)  # Integers divide to an integer.
    assert [(one.port, one.rise) for one in found.inputs] == [("in", 4.5), ("bus[0]", 4.5), ("bus[1]", 4.5)]
    assert [(one.port, one.fall) for one in found.outputs] == [("out", 2.25)]
    assert found.exceptions == (
        PathException(1, (Object("port", "bus[0]"),)),
        PathException(2, (Object("port", "bus[1]"),)),
        PathException(0, (), (Object("cell", "u/ff[1]"),)),
    )
    assert found.notices == (f"{tmp_path}/chip.sdc: values of environment variables: PERIOD_OF_TEST=9",)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 / 2 + 7 % 4", "6"),
        ("7 / 2.0", "3.5"),
        ("-3 + 2 * (4 - 1)", "3"),
        ("[info exists no] ? $no : 80", "80"),
        ("0 && $no || 2 > 1", "1"),
        ('"a b" eq {a b} && !0', "1"),
        ("round(2.5) + max(1, 2.25)", "5.25"),
        ("1e3 == 1000 && {x} < {y}", "1"),
    ],
)
def test_expressions(tmp_path: Path, expression: str, value: str) -> None:
    found = read(tmp_path, f"create_clock -period 1 -name [expr {{{expression}}}]")
    assert found.clocks[0].name == value


def test_loops_and_lists(tmp_path: Path) -> None:
    text = """
    set found {}
    for {set i 0} {$i < 9} {incr i} {
        if {$i == 1} continue
        if {$i > 3} { break }
        lappend found $i
    }
    while {[llength $found] > 2} { set found [lrange $found 1 end] }
    switch -glob [lindex $found end] { 1* - 3* { append name [join $found _] } default { error "no" } }
    if {[catch { error "wrong" } message]} { set name "$name.[string length [lindex [split $message :] end]]" }
    foreach {*}[list x {a b}] { append name $x }
    create_clock -period 1 -name $name
    """
    assert read(tmp_path, text).clocks[0].name == "2_3.6ab"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("set_max_delay 80 -from [all_inputs -no_clocks] -to [all_registers]", ("registers", 80.0, False)),
        ("set_max_delay -ignore_clock_latency [expr {0.5 * 10}] -to out", ("port", 5.0, True)),
    ],
)
def test_maximum_delays(tmp_path: Path, line: str, expected: tuple[str, float, bool]) -> None:
    (found,) = read(tmp_path, CLOCK + line).exceptions
    assert (found.ends[0].kind, found.delay, found.ignores_latency) == expected
    assert (found.ends[0] == REGISTERS) == (expected[0] == "registers")


def test_slews_and_derating(tmp_path: Path) -> None:
    text = """set_clock_transition -max 3 c
    set_clock_transition -min 9 c
    set_input_transition 2 [get_ports bus*]
    set_timing_derate -late 1.5
    set_timing_derate -late -net_delay 1.25
    set_timing_derate -early 0.5
    set_load -pin_load 3 [all_outputs]
    set_units -capacitance 10pF
    set_load 2 [get_ports bus[1]]
    """
    (tmp_path / "chip.sdc").write_text(CLOCK + text)
    found = read_sdc(tmp_path / "chip.sdc", OBJECTS, time_unit=1.0, slew_factor=2.0, capacitance_unit=4.0)[0]
    assert found.clocks[0].transition == 6  # 3 ps from 25% to 75%
    assert found.loads == (PortLoad("out", 12), PortLoad("bus[1]", 20_000))
    assert found.transitions == (PortTransition("bus[0]", 4), PortTransition("bus[1]", 4))
    assert found.derating == Derating(cells=1.5, wires=1.25)


def test_blocked_pins(tmp_path: Path) -> None:
    text = "set_false_path -through [get_pins u/gate/Y]\nset_disable_timing u/ff[0]/D\nset_case_analysis 0 in\n"
    found = read(tmp_path, CLOCK + text)
    assert found.blocked == (Object("pin", "u/gate/Y"), Object("pin", "u/ff[0]/D"), Object("port", "in"))
    assert found.notices[0].endswith(":4: 1 values of set_case_analysis, which only block paths at their pins: in")


def test_a_clock_replaces_those_at_its_port(tmp_path: Path) -> None:
    text = CLOCK + "set_input_delay 1 -clock c in\ncreate_clock -name d -period 5 [get_ports clk]\n"
    found = read(tmp_path, text + "create_clock -name e -period 4 -add [get_ports clk]")
    assert [clock.name for clock in found.clocks] == ["d", "e"] and not found.inputs


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
        + """set_sense -stop in
    set_max_fanout 16 [current_design]
    set_false_path -from clk -through u/gate/Y
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
        ":2: 1 unsupported commands: set_sense",
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
        ("\nif {1} {\n set p $::env(NO_SUCH_VARIABLE)\n}", ":3: environment variable 'NO_SUCH_VARIABLE' is not set"),
        ("source nowhere.tcl", ":1: .*nowhere.tcl: cannot be read"),
        ("proc p {a} {}\np", ":2: the argument 'a' of a procedure is missing"),
        ("lindex", ":1: lindex '': arguments are missing"),
        ("get_ports -regexp {a(}", ":1: get_ports: 'a\\(' is not a valid regular expression"),
        ("get_ports -regexp {(a+)+}", r":1: get_ports: '\(a\+\)\+' is not .* \(\(a\+\)\+ repeats repetitions\)"),
        (r"regexp {x(\w*|[0-9]?){2,}} x", ":1: regexp "),
        ("lsearch -regexp {a b} {(?:.*)*}", ":1: lsearch "),
        ("create_clock -period 5 -waveform {3 1} clk", ":1: clock 'clk': -waveform must be two rising times"),
        ("set_units -time 1us\ncreate_clock -period 1e306 clk", ":2: clock 'clk': a period of inf must be"),
        ("foreach {} {1 2} {}", ":1: foreach ' 1 2 '"),
        ("switch a {a -}", ":1: switch"),
        ("lsearch -start 1 {a b} b", ":1: lsearch"),
        ("set_units -time 0ns", ":1: set_units: -time '0ns'"),
        ("set_units -time 1.2.3ns", ":1: set_units: -time '1.2.3ns'"),
        (CLOCK + "set_false_path -setup", ":2: set_false_path: expected -from, -through or -to"),
        (CLOCK + "set_timing_derate 0", ":2: set_timing_derate: 0 must be above 0"),
        (CLOCK + "set_load -1 out", ":2: set_load: -1 must be at least 0"),
        ("source /dev/zero", ":1: .*/dev/zero"),
        ("set x a\nwhile {1} {append x $x}", ":2: append"),
        ("break", ": break outside of a loop"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DesignError, match=r"chip\.sdc" + message):
        read(tmp_path, text)


@pytest.mark.parametrize(("text", "line"), [("while {1} {\n set a 1 }", 2), ("while {1} {}", 1)])
def test_a_loop_without_end_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int) -> None:
    monkeypatch.setattr(tcl, "_MOST_STATEMENTS", 100)
    with pytest.raises(DesignError, match=rf"chip\.sdc:{line}: a loop does not end within 100 statements"):
        read(tmp_path, text)


def test_a_regular_expression_may_repeat_a_group(tmp_path: Path) -> None:
    text = r"create_clock -period [regexp {^([a-z]+/)*(_[0-9]+)+(a+)?([)*]+)\*$} {a/bc/_1_23a)*}] clk"
    assert read(tmp_path, text).clocks[0].period == 1


def test_objects_of_an_unsupported_option_match_nothing(tmp_path: Path) -> None:
    found = read(tmp_path, CLOCK + "set_false_path -to [get_cells -of_objects [get_nets x]]")
    assert any("unsupported options, which match nothing: -of_objects of get_cells" in one for one in found.notices)
    assert not found.exceptions


@given(st.text(alphabet='set[]{}$"\\;# \n-from get_ports clk1.?&|:()<*', max_size=80))
def test_any_text_is_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    try:
        read(tmp_path_factory.getbasetemp(), text)
    except DesignError as error:
        assert "chip.sdc:" in str(error)
