"""Files that other tools read or write: each is read, with a notice of skipped contents."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from placement.annealing.search import search
from placement.api import import_design
from placement.engine.costs import compute_costs, legality, violations
from placement.netlist.design import Design, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.export import export_placement
from placement.netlist.flat_design import FlatDesign, read_flat
from placement.netlist.load import SOURCE_NAME
from placement.netlist.user_placement import read_clustered_def
from tests.interop.chips import RAM, Chip, master, section
from tests.support.command import run_here

ORIGIN = {"m0": "RAM + PLACED ( 0 0 ) N", "m1": "RAM + PLACED ( 0 0 ) N"}
FIXED = {"m0": "RAM + FIXED ( 10000 10000 ) N", "m1": "RAM + FIXED ( 60000 10000 ) N"}


@dataclasses.dataclass(frozen=True)
class Imported:
    """A chip's design and flat design, both read from the import's folder, and its notices."""

    design: Design
    flat: FlatDesign
    notices: list[str]
    folder: Path

    def has_note(self, pattern: str) -> bool:
        """Returns whether a notice matches."""
        return any(re.search(pattern, notice) for notice in self.notices)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Returns the numbers of macros, cells, nets and pins."""
        netlist = self.flat.netlist
        return len(netlist.hard), len(self.flat.cells), netlist.num_nets, len(netlist.net_pins)


def imported(chip: Chip, folder: Path, *, free_macros: bool = False) -> Imported:
    lef, text = chip.write(folder)
    out = folder / "design"
    design = import_design(lef=[lef], def_=text, out=out, free_macros=free_macros)
    return Imported(design, read_flat(out), json.loads((out / SOURCE_NAME).read_text())["notices"], out)


def placed(design: Design) -> Placement:
    """Returns the result of a short search, which must be legal."""
    placement = search(design, moves=4_000, round_moves=1_000).placement
    assert tuple(legality(design, placement)) == (0, 0)
    assert not any(violations(design, placement))
    return placement


def test_what_is_placed_at_one_point_is_not_placed(tmp_path: Path) -> None:
    cells = {"c0": "+ PLACED ( 0 0 ) N", "c1": "+ PLACED ( 0 0 ) N"}
    found = imported(Chip(macros=ORIGIN, cells=cells), tmp_path / "all")
    assert not found.flat.placement.placed[found.flat.netlist.kind != NodeKind.PORT].any()
    assert found.has_note(r"^chip\.def: 4 components PLACED at one point \(0, 0\) are treated as unplaced$")
    # Macros only; one macro at the cells' point; pins.
    spread = {"c0": "+ PLACED ( 0 0 ) N", "c1": "+ PLACED ( 8000 0 ) N", "c2": "+ PLACED ( 9000 0 ) N"}
    found = imported(Chip(macros=ORIGIN, cells=spread), tmp_path / "macros")
    assert found.flat.placement.placed[found.flat.cells].tolist() == [False, True, True]
    assert not found.flat.placement.placed[found.flat.netlist.hard].any()
    found = imported(Chip(macros={"m0": ORIGIN["m0"]}, cells=cells), tmp_path / "one")
    assert not found.flat.placement.placed[found.flat.netlist.hard].any()
    ports = dict.fromkeys("abc", "+ NET n0 + LAYER M2 ( 0 0 ) ( 10 10 ) + PLACED ( 0 0 ) N")
    found = imported(Chip(ports=ports), tmp_path / "pins")
    assert found.has_note("3 pins at one point are treated as unplaced") and found.has_note(
        "3 of 3 ports have no position"
    )
    assert len(np.unique(found.flat.placement.x[found.flat.netlist.ports])) > 1
    # Two macros at different points are placed, and so is a single one.
    apart = {"m0": ORIGIN["m0"], "m1": "RAM + PLACED ( 30000 0 ) N"}
    for number, macros in enumerate((apart, {"m0": ORIGIN["m0"]})):
        found = imported(Chip(macros=macros), tmp_path / f"placed{number}")
        assert found.flat.placement.placed[found.flat.netlist.hard].all()


def test_a_blockage_with_a_plus_keeps_its_shape(tmp_path: Path) -> None:
    text = section("BLOCKAGES", ["PLACEMENT + RECT ( 0 0 ) ( 100000 50000 )"])
    found = imported(Chip(sections=text), tmp_path)
    assert found.design.constraints.blockages.tolist() == [[0, 0, 100, 50]]
    placement = placed(found.design)
    assert (placement.y[found.design.netlist.hard] >= 65 - 1e-6).all()
    found = imported(Chip(sections=section("BLOCKAGES", ["PLACEMENT + SOFT"])), tmp_path / "none")
    assert found.has_note(r"chip\.def:\d+: 1 blockages without a shape are ignored: PLACEMENT")


@pytest.mark.parametrize("name", ["COMPONENTS", "PINS", "NETS"])
@pytest.mark.parametrize("count", [0, 99])
def test_a_count_that_is_off_is_a_notice_where_the_end_is_there(tmp_path: Path, name: str, count: int) -> None:
    chip = Chip()
    text = re.sub(rf"^{name} \d+ ;", f"{name} {count} ;", chip.text, flags=re.MULTILINE)
    lef, path = chip.write(tmp_path)
    path.write_text(text)
    import_design(lef=[lef], def_=path, out=tmp_path / "d")
    assert read_flat(tmp_path / "d").netlist.num_nets == 4
    notices = json.loads((tmp_path / "d" / SOURCE_NAME).read_text())["notices"]
    assert any(f"{name} with" in notice and f"declared {count}" in notice for notice in notices)
    path.write_text(text[: text.index(f"END {name}")])
    with pytest.raises(DesignError, match="appears to be truncated"):
        import_design(lef=[lef], def_=path)


def test_a_filler_of_class_block_is_a_cell(tmp_path: Path) -> None:
    decap = "MACRO DECAP CLASS BLOCK ; SIZE 4 BY 2 ; PIN VDD USE POWER ; END VDD\nEND DECAP\n"
    macros = Chip().macros | {"f0": "DECAP + SOURCE DIST + PLACED ( 60000 90000 ) N"}
    found = imported(Chip(masters=RAM + decap, macros=macros, nets=Chip().chain()), tmp_path)
    assert found.counts == (2, 3, 4, 8)
    assert found.has_note(
        "^1 components of CLASS BLOCK, no higher than 3 rows, have no signal pin: they are treated as cells$"
    )
    written = export_placement(found.design, placed(found.design), found.folder, form="def").data.decode()
    assert "- f0 DECAP + SOURCE DIST + PLACED ( 60000 90000 ) N ;" in written
    # Two rows high; a supply pin without USE, on no net.
    for number, other in enumerate((decap.replace("BY 2", "BY 4"), decap.replace("USE POWER", "DIRECTION INOUT"))):
        found = imported(Chip(masters=RAM + other, macros=macros, nets=Chip().chain()), tmp_path / f"other{number}")
        assert found.counts == (2, 3, 4, 8)
    assert found.has_note(
        "^1 components of CLASS BLOCK, no higher than a row, are on no net: they are treated as cells$"
    )
    # With a signal pin on a net, it may be a memory.
    found = imported(Chip(masters=RAM + master("LOW", 4, 2), macros=Chip().macros | {"l0": "LOW"}), tmp_path / "low")
    assert len(found.flat.netlist.hard) == 3
    assert found.has_note(
        "^1 components of CLASS BLOCK, no higher than a row, are treated as macros, although only one row high$"
    )


def test_macros_keep_off_fixed_cells(tmp_path: Path) -> None:
    tap = master("TAP", 1, 2, "CLASS CORE WELLTAP ; SITE unit ;")
    macros = {"m0": "RAM", "m1": "RAM", "m2": "RAM"}
    cells = {"c0": "+ FIXED ( 24000 34000 ) N", "c1": "+ FIXED ( 25000 34000 ) N", "tap": "+ FIXED ( 0 68000 ) N"}
    chain = Chip(core=(50, 70), macros=macros, cells={"c0": "", "c1": ""}).chain()
    found = imported(Chip(core=(50, 70), masters=RAM + tap, macros=macros, cells=cells, nets=chain), tmp_path)
    # Two that touch form one obstacle; a tap, which is on no net, is not an obstacle.
    assert found.design.constraints.blockages.tolist() == [[24, 34, 26, 36]]
    assert found.has_note("^macros keep off 2 fixed cells on nets$")
    assert found.has_note(r"^1 fixed cells without a net \(taps, fillers\) are not obstacles to macros$")
    placed(found.design)


def test_freed_macros_are_not_reported_as_fixed(tmp_path: Path) -> None:
    macros = {"m0": "RAM + FIXED ( -5000 0 ) N", "m1": "RAM + FIXED ( 5000 0 ) N"}
    assert imported(Chip(macros=macros), tmp_path / "held").has_note("they stay in place$")
    found = imported(Chip(macros=macros), tmp_path / "free", free_macros=True)
    assert not found.has_note("they stay|fixed")
    placed(found.design)


def test_a_placement_may_have_cells_that_are_not_in_the_design(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = imported(Chip(), tmp_path)
    placed_macros = {"m0": "RAM + FIXED ( 10000 20000 ) N", "m1": "RAM + FIXED ( 50000 20000 ) FN"}
    cells = {"c0": "+ PLACED ( 4000 2000 ) N", "c1": "+ PLACED ( 8000 2000 ) N", "TAP_0": "+ FIXED ( 0 0 ) N"}
    hand = Chip(macros=placed_macros, cells=cells, nets=Chip().chain())
    _, path = hand.write(tmp_path / "hand")
    given = read_clustered_def(path, found.folder, found.design)
    assert given.has_cells and len(given.notices) == 1
    assert re.search(r":\d+: 1 cells that are not in the design are ignored: TAP_0$", given.notices[0])
    netlist, placement = found.design.netlist, given.placement
    assert placement.x[netlist.hard].tolist() == [20, 60] and placement.y[netlist.hard].tolist() == [35, 35]
    assert placement.orientation[netlist.hard].tolist() == [Orientation.N, Orientation.FN]
    completed = run_here("macro-placement", "evaluate", f"design={found.folder}", f"placement={path}", folder=tmp_path)
    assert completed.returncode == 0 and "TAP_0" in completed.stderr
    # The same as without the tap.
    _, clean = dataclasses.replace(hand, cells=dict(list(cells.items())[:2])).write(tmp_path / "clean")
    other = read_clustered_def(clean, found.folder, found.design)
    assert compute_costs(found.design, other.placement) == compute_costs(found.design, placement)
    assert other.notices == ()
    # A macro that is not in the design belongs to another design.
    _, wrong = dataclasses.replace(hand, macros=placed_macros | {"m2": "RAM"}).write(tmp_path / "wrong")
    with pytest.raises(DesignError, match="1 macros that are not in the design: m2"):
        read_clustered_def(wrong, found.folder, found.design)


def test_lef_files_that_were_joined_are_read_whole(tmp_path: Path) -> None:
    chip = Chip()
    lef, text = chip.write(tmp_path)
    lef.write_text(chip.lef.replace("MACRO RAM", "END LIBRARY\nVERSION 5.8 ;\nMACRO RAM"))
    assert len(import_design(lef=[lef], def_=text).netlist.hard) == 2


def test_a_pin_of_two_blocks_is_one_pin(tmp_path: Path) -> None:
    again = "  PIN D DIRECTION INPUT ; PORT LAYER M2 ; RECT 0 20 0.2 20.2 ; END END D\n"
    again += "  PIN VDD DIRECTION INOUT ; USE POWER ; PORT LAYER M2 ; RECT 0 29 20 30 ; END END VDD\n"
    found = imported(Chip(masters=RAM.replace("  OBS", f"{again}  OBS")), tmp_path)
    assert found.counts == (2, 2, 4, 8)
    assert [note for note in found.notices if "twice" in note] == [
        "chip.lef: macro 'RAM' has pin 'D' twice: its shapes are merged"
    ]
    netlist = found.flat.netlist
    pin = int(np.flatnonzero(netlist.pin_node == 0)[0])
    # The bounding box of (0, 12) to (0.1, 12.1) and (0, 20) to (0.2, 20.2), relative to the centre (10, 15).
    assert (netlist.pin_dx[pin], netlist.pin_dy[pin]) == (pytest.approx(-9.9), pytest.approx(1.1))


def test_a_macro_larger_than_the_core_is_named(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match=r"macro 'm0' \(RAM\) of 20 × 30 µm is larger than the core of 18 × 100 µm"):
        imported(Chip(core=(18, 100)), tmp_path)


def test_paths_are_taken_as_the_shell_passes_them(tmp_path: Path) -> None:
    folder = tmp_path / "José (1), [a]#~'&{b}"
    lef, text = Chip().write(folder)
    out = f"{folder.name}/d,e"
    words = [
        ("import", "--lef", str(lef), "--def", str(text), "--out", out),
        ("evaluate", f"design={out}", f"out={folder.name}/results"),
        ("evaluate", f"design={out}", f"placement={folder.name}/results/placement.plc"),
        ("export", out, "--placement", f"{folder.name}/results/placement.plc", "--out", f"{folder.name}/o.csv",
         "--format", "csv"),
    ]  # fmt: skip
    for command in words:
        completed = run_here("macro-placement", *command, folder=tmp_path)
        assert completed.returncode == 0, completed.stderr
    assert (folder / "o.csv").is_file()


def test_a_port_joins_the_net_that_it_names(tmp_path: Path) -> None:
    chain = Chip().chain()
    found = imported(Chip(nets=chain | {"n0": "( m0 D )"}), tmp_path)
    assert found.counts == (2, 2, 4, 8)
    # A net that only pins name, and further positions of a pin.
    ports = dict(Chip().ports) | {"b": "+ NET n0", "a.extra1": "+ NET n0", "c": "+ NET x", "d": "+ NET x"}
    del chain["n0"]
    found = imported(Chip(nets=chain | {"n0": "( m0 D )"}, ports=ports), tmp_path / "more")
    assert found.counts == (2, 2, 5, 11) and len(found.flat.netlist.ports) == 4
    # A port that only NETS names.
    found = imported(Chip(nets=chain | {"n0": "( m0 D ) ( PIN z )"}, ports={}), tmp_path / "nets")
    assert len(found.flat.netlist.ports) == 1
    assert found.has_note("1 ports in NETS that PINS does not declare are added: z")


def test_search_ends_at_once_where_nothing_moves(tmp_path: Path) -> None:
    found = imported(Chip(macros=FIXED, cells={}), tmp_path)
    result = search(found.design, seconds=60)
    assert result.finished and result.moves == 0
    np.testing.assert_array_equal(result.placement.x, found.design.initial.x)
    completed = run_here("macro-placement", "search", f"design={found.folder}", "time=60", "out=p", folder=tmp_path)
    assert completed.returncode == 0 and "0 moves and" in completed.stdout and "nothing can move" in completed.stdout


def test_training_where_nothing_moves_ends_in_a_message(tmp_path: Path) -> None:
    found = imported(Chip(macros=FIXED, cells={}), tmp_path)
    completed = run_here(
        "macro-placement", "train", f"design={found.folder}", "preset=test", "run_dir=r", folder=tmp_path
    )
    assert completed.returncode == 2 and "no movable hard macro: there is nothing to place" in completed.stderr
    assert "Traceback" not in completed.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_search_without_nets_ends_in_a_legal_placement(tmp_path: Path, threads: int) -> None:
    ports = {"a": "+ NET p + DIRECTION INPUT + LAYER M2 ( 0 0 ) ( 100 100 ) + FIXED ( 0 50000 ) N"}
    found = imported(Chip(cells={}, nets={"p": "( PIN a )", "w": "( m0 Q )"}, ports=ports), tmp_path)
    assert found.has_note("no net has two pins") and not found.has_note("nan")
    result = search(found.design, seconds=1, threads=threads)
    assert result.finished and tuple(legality(found.design, result.placement)) == (0, 0)


def test_a_die_with_a_slanted_corner_is_cut_inside(tmp_path: Path) -> None:
    corners = "( 0 0 ) ( 0 100000 ) ( 90000 100000 ) ( 100000 80000 ) ( 100000 0 )"
    clockwise = imported(Chip(die=corners), tmp_path / "one")
    other = imported(Chip(die=" ".join(f"{corner})" for corner in corners.split(")")[-2::-1])), tmp_path / "two")
    for found in (clockwise, other):
        assert found.design.constraints.blockages.tolist() == [[90, 80, 100, 100]]
        assert found.has_note("slanted edges of DIEAREA are replaced by corners inside the die")


def test_a_fixed_macro_over_the_whole_core_is_not_an_obstacle(tmp_path: Path) -> None:
    ring = master("RING", 110, 110, "CLASS RING ;")
    macros = Chip().macros | {"ring": "RING + FIXED ( -5000 -5000 ) N"}
    found = imported(Chip(masters=RAM + ring, macros=macros, nets=Chip().chain()), tmp_path)
    assert found.counts == (2, 2, 4, 8)
    assert found.has_note("^1 fixed macros that cover the whole core, the first being 'ring', are not obstacles$")
    placed(found.design)


def test_names_that_differ_in_their_escapes_are_exported_and_read(tmp_path: Path) -> None:
    found = imported(Chip(macros={r"a\/b": "RAM", "a/b": "RAM"}), tmp_path)
    result = placed(found.design)
    (tmp_path / "out.def").write_bytes(export_placement(found.design, result, found.folder, form="def").data)
    again = read_clustered_def(tmp_path / "out.def", found.folder, found.design).placement
    hard = found.design.netlist.hard
    np.testing.assert_allclose([again.x[hard], again.y[hard]], [result.x[hard], result.y[hard]])


def test_signals_in_specialnets_are_nets(tmp_path: Path) -> None:
    chain = Chip().chain()
    special = section("SPECIALNETS", [f"n3 {chain.pop('n3')} + USE SIGNAL", "VDD ( * VDD ) + USE POWER"])
    found = imported(Chip(nets=chain, sections=special), tmp_path)
    assert found.counts == (2, 2, 4, 8)
    assert not found.has_note("are ignored")


def test_an_entry_that_is_unplaced_with_a_point_is_exported_whole(tmp_path: Path) -> None:
    macros = {"m0": "RAM + UNPLACED ( 10000 20000 ) N", "m1": "RAM"}
    found = imported(Chip(macros=macros), tmp_path)
    assert not found.flat.placement.placed[found.flat.netlist.hard].any()
    text = export_placement(found.design, placed(found.design), found.folder, form="def").data.decode()
    assert re.search(r"^- m0 RAM \+ FIXED \( \d+ \d+ \) \w+ ;$", text, re.MULTILINE)


def test_a_library_with_masters_of_no_size_serves_designs_that_do_not_use_them(tmp_path: Path) -> None:
    logo = "MACRO LOGO CLASS BLOCK ;\nEND LOGO\n"
    assert len(imported(Chip(masters=RAM + logo), tmp_path).flat.netlist.hard) == 2


@pytest.mark.parametrize("options", ["+ PLACED ( 10000 20000 )", "+ placed ( 10000 20000 ) n", "+ cover ( 0 0 )"])
def test_entries_in_other_spellings_are_exported_whole(tmp_path: Path, options: str) -> None:
    macros = {"m0": f"RAM {options} + SOURCE DIST", "m1": "RAM"}
    found = imported(Chip(macros=macros), tmp_path, free_macros=True)
    text = export_placement(found.design, placed(found.design), found.folder, form="def").data.decode()
    assert re.search(r"^- m0 RAM \+ FIXED \( \d+ \d+ \) \w+ \+ SOURCE DIST ;$", text, re.MULTILINE)
