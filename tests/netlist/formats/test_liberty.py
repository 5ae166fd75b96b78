"""Liberty libraries: one by hand, units, merged conditions, damaged text, and statistics of real libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.netlist.errors import DesignError
from placement.netlist.formats.liberty import LibertyFiles, read_liberty
from placement.netlist.timing_library import (
    COMBINATIONAL,
    RISING_EDGE,
    SETUP_RISING,
    TRANSPARENT,
    TimingLibrary,
    buffers,
)
from tests.support.small_timing import DELAY, LIBERTY, SETUP, arc, check


def read(tmp_path: Path, *texts: str) -> LibertyFiles:
    paths = [tmp_path / f"cells{number}.lib" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return read_liberty(paths)


def arcs_of(library: TimingLibrary, name: str) -> list[tuple[str, str, int, int]]:
    """Returns from, to, kind and sense of a cell's arcs."""
    cell = library.cells.index(name)
    return [
        (
            library.pins[library.arc_from[arc]],
            library.pins[library.arc_to[arc]],
            int(library.arc_kind[arc]),
            int(library.arc_sense[arc]),
        )
        for arc in range(library.arc_start[cell], library.arc_start[cell + 1])
    ]


def test_a_library_by_hand(tmp_path: Path) -> None:
    files = read(tmp_path, LIBERTY)
    library = files.library
    assert library.cells == ("INV", "BUF", "DFF", "RAM")
    assert list(library.pin_index(3)) == ["CK", "D[0]", "D[1]", "Q[0]", "Q[1]"]
    assert arcs_of(library, "INV") == [("A", "Y", COMBINATIONAL, -1)]
    assert sorted(arcs_of(library, "DFF")) == [("CK", "D", SETUP_RISING, 0), ("CK", "Q", RISING_EDGE, 0)]
    assert len(arcs_of(library, "RAM")) == 4
    assert library.rise_capacitance[:2].tolist() == [2, 0]
    constant, per_slew, per_load = DELAY["INV"]
    found = library.look_up(int(library.arc_tables[0]), 30.0, 70.0)  # beyond the table, where it is extrapolated
    assert found == pytest.approx(constant + 30 * per_slew + 70 * per_load)
    check = [kind == SETUP_RISING for kind in library.arc_kind].index(True)
    assert library.look_up(int(library.arc_tables[4 * check]), 9.0, 9.0) == SETUP
    assert [library.cells[one.cell] for one in buffers(library)] == ["BUF"]
    assert (files.time_unit, files.notices) == (1.0, ())


def test_units_and_thresholds(tmp_path: Path) -> None:
    text = LIBERTY.replace('"1ps"', '"1ns"').replace("(1, ff)", '(2, "pf")')
    text = text.replace("pct_rise : 0;", "pct_rise : 20;").replace("pct_rise : 100;", "pct_rise : 70;")
    library = read(tmp_path, text).library
    assert library.rise_capacitance[0] == 2 * 2000
    begin = int(library.offset[library.arc_tables[0]])
    # Slews of 50% of the swing in ns, loads in 2 pF.
    assert library.numbers[begin : begin + 4].tolist() == [0, 100 * 1000 * 2, 0, 50 * 2000]
    slews = int(library.offset[library.arc_tables[2]])
    assert library.numbers[slews + 4] == 10 * 1000 * 2
    assert library.numbers[begin + 4] == DELAY["INV"][0] * 1000


def test_conditions_are_merged_to_the_slowest(tmp_path: Path) -> None:
    slower = 'timing () { related_pin : "A"; timing_sense : negative_unate; when : "B"; '
    slower += 'cell_rise (grid) { values ("9, 9", "9, 99"); } rise_transition (grid) { values ("1, 1", "1, 1"); } }'
    library = read(tmp_path, LIBERTY.replace('function : "!A";', slower)).library
    assert arcs_of(library, "INV") == [("A", "Y", COMBINATIONAL, -1)]
    begin = int(library.offset[library.arc_tables[0]])
    constant, per_slew, per_load = DELAY["INV"]
    plain = [constant, constant + 50 * per_load, constant + 100 * per_slew, constant + 100 * per_slew + 50 * per_load]
    assert library.numbers[begin + 4 : begin + 8].tolist() == np.maximum(plain, [9, 9, 9, 99]).tolist()


def test_axes_in_the_other_order(tmp_path: Path) -> None:
    slew, load = "input_net_transition", "total_output_net_capacitance"
    straight = f"variable_1 : {slew}; variable_2 : {load}"
    assert straight in LIBERTY
    turned = LIBERTY.replace(straight, f"variable_1 : {load}; variable_2 : {slew}")
    library = read(tmp_path, turned).library
    table = int(library.arc_tables[0])
    begin = int(library.offset[table])
    assert library.numbers[begin : begin + 4].tolist() == [0, 50, 0, 100]  # slews, then loads
    constant, per_slew, per_load = DELAY["INV"]
    # The table's second value belonged to the second load; now it belongs to the second slew.
    assert library.look_up(table, 50.0, 0.0) == pytest.approx(constant + 50 * per_load)
    assert library.look_up(table, 0.0, 100.0) == pytest.approx(constant + 100 * per_slew)


MEMORY_ARCS = sorted(
    [("CK", f"D[{bit}]", SETUP_RISING, 0) for bit in range(2)]
    + [("CK", f"Q[{bit}]", RISING_EDGE, 0) for bit in range(2)]
)
DATA, OUT = (
    f"direction : input; capacitance : 4; {check('CK')}",
    f"direction : output; {arc('RAM', 'CK', '', 'rising_edge')}",
)


@pytest.mark.parametrize(
    "pins",
    [
        f"bus (D) {{ bus_type : two; pin (D[1:0]) {{ {DATA} }} }} "
        f"bus (Q) {{ bus_type : two; pin (Q[0:1]) {{ {OUT} }} }}",
        f"bus (D) {{ bus_type : own; {DATA} }} bus (Q) {{ bus_type : own; {OUT} }} "
        "type (own) { bit_width : 2; bit_from : 0; bit_to : 1; }",
        f"bus (D) {{ bus_type : two; {DATA} }} bus (Q) {{ bus_type : two; {OUT} }}".replace("pin :", "bus_pins :"),
        f"bundle (D) {{ members (D[1], D[0]); {DATA} }} "
        f"bundle (Q) {{ members (Q[0], Q[1]); direction : output; pin (Q[0]) {{ {OUT} }} pin (Q[1]) {{ {OUT} }} }}",
        f"pin (D[1:0]) {{ {DATA} }} pin (Q[1], Q[0]) {{ {OUT} }}",
    ],
    ids=["ranges in buses", "type in the cell", "related_bus_pins", "bundles", "ranges"],
)
def test_pins_of_memories(tmp_path: Path, pins: str) -> None:
    begin = LIBERTY.index("bus (D)")
    library = read(tmp_path, f"{LIBERTY[:begin]}{pins} }} }}").library
    assert sorted(arcs_of(library, "RAM")) == MEMORY_ARCS
    index = library.pin_index(3)
    assert [(library.rise_capacitance[index[name]], library.direction[index[name]]) for name in ("D[0]", "Q[1]")] == [
        (4, 1),
        (0, 2),
    ]


def test_edges_of_arcs_and_missing_units(tmp_path: Path) -> None:
    text = LIBERTY.replace("negative_unate; ", "negative_unate; timing_type : combinational_rise; ", 1)
    files = read(tmp_path, text.replace("capacitive_load_unit (1, ff);", "").replace('"1ps"', '"1 PS"'))
    assert (files.library.arc_tables[:4] >= 0).tolist() == [True, False, True, False]
    assert files.library.rise_capacitance[0] == 2 * 1000 and files.time_unit == 1.0
    assert "libraries without capacitive_load_unit: 1 pF is assumed: hand" in files.notices[0]


def test_the_clock_passes_through_a_gate_with_a_latch(tmp_path: Path) -> None:
    text = LIBERTY.replace("cell (BUF) {", 'cell (BUF) { latch (IQ, IQN) { enable : "!A"; }')
    text = text.replace("capacitance : 1; }", "capacitance : 1; clock : true; }", 1)
    assert arcs_of(read(tmp_path, text).library, "BUF") == [("A", "Y", COMBINATIONAL, 1)]


def test_a_latch_is_transparent(tmp_path: Path) -> None:
    library = read(tmp_path, LIBERTY.replace("cell (BUF) {", 'cell (BUF) { latch (IQ, IQN) { enable : "A"; }')).library
    assert arcs_of(library, "BUF") == [("A", "Y", TRANSPARENT, 1)]
    assert library.is_latch.tolist() == [0, 1, 0, 0]


def test_the_first_of_two_definitions_counts(tmp_path: Path) -> None:
    second = LIBERTY.replace("capacitance : 2;", "capacitance : 7;").replace("cell (RAM)", "cell (ROM)")
    files = read(tmp_path, LIBERTY, second)
    assert files.library.cells == ("INV", "BUF", "DFF", "RAM", "ROM")
    assert files.library.rise_capacitance[0] == 2
    assert "3 cells that several Liberty files define" in files.notices[0]
    # Tables and pins of the last cell, which follows the ignored ones.
    assert len(arcs_of(files.library, "ROM")) == 4 and "Q[1]" in files.library.pin_index(4)
    table = int(files.library.arc_tables[-4:][0])
    assert table < len(files.library.rows)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('time_unit : "1ps"', 'time_unit : "1parsec"', r":3: time_unit '1parsec' must be a number and a unit"),
        ("(1, ff)", "(1, mf)", ":2: capacitive_load_unit must be a number and pf or ff"),
        ("table_lookup", "polynomial", ":3: delay_model 'polynomial': only table_lookup"),
        ('values ("5', 'values ("five', r": expected a number in a table, found 'five"),
        ('values ("5, 30"', 'values ("5, 30, 7"', r": the table has 5 values instead of 2 × 2"),
        ('index_1 ("0, 100")', 'index_1 ("100, 0")', ": index_1 of the table must increase"),
        ("cell_rise (grid)", "cell_rise (net)", ": the library does not define lu_table_template 'net'"),
        ("bus_type : two", "bus_type : three", r": the library does not define the bus_type of bus 'D'"),
        ("capacitance : 2;", "capacitance : -2;", ": pin 'A' has a negative capacitance"),
        ("capacitance : 2;", "capacitance : two;", ": capacitance: expected a number, found 'two'"),
        ("cell (INV) {", "cell (INV) { }", r":\d+: expected '|is not closed|contains no cell"),
        ("library (hand)", "module (hand)", ":2: expected 'library', found 'module'"),
        ("pct_rise : 100;", "pct_rise : 0;", ":2: the slew thresholds must increase"),
        (
            "variable_1 : input_net",
            "variable_1 : phase_of",
            "the table variable 'phase_of_transition' is not supported",
        ),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in LIBERTY
    text = LIBERTY.replace(old, new, 1)
    try:
        read(tmp_path, text)
    except DesignError as error:
        import re

        assert re.search(r"cells0\.lib:\d+: ", str(error)) and re.search(message, str(error)), str(error)
    else:
        assert "{ }" in new  # the rest is then outside the cell, and is ignored


def test_a_truncated_file_is_rejected_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match=r"cells0\.lib:\d+: .*(is not closed|appears to be truncated)"):
        read(tmp_path, LIBERTY[: LIBERTY.index("bus (D)")])


@given(st.integers(0, len(LIBERTY)), st.sampled_from(["", "{", "}", "(", '"', "\\", "nan", "\0", "é", "/*"]))
def test_damaged_text_never_crashes(tmp_path_factory: pytest.TempPathFactory, at: int, inserted: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    for text in (LIBERTY[:at] + inserted + LIBERTY[at:], LIBERTY[:at] + inserted):
        try:
            library = read(folder, text).library
        except DesignError as error:
            assert "cells0.lib:" in str(error)
        else:
            assert library.arc_start[-1] == len(library.arc_from) and np.isfinite(library.numbers).all()


def test_real_libraries(real: Callable[[str], Path]) -> None:
    """The number of cells equals that of `cell (` lines in the files."""
    folder = real("liberty/ng45/nangate45_typ.lib.gz").parent.parent
    for name, cells in (("ng45/nangate45_typ", 134), ("sky130/sky130hd_tt", 428), ("asap7/sram_asap7_16x256_1rw", 1)):
        assert len(read_liberty([folder / f"{name}.lib.gz"]).library.cells) == cells
