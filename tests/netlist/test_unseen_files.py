"""Files of other users: other technologies, ports without positions, Bookshelf with files missing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from benchmarks.made_chip import TECHNOLOGIES, Options, write_chip
from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.starts import make_starts
from placement.engine.costs import legality
from placement.netlist.clustering.cluster import ClusteringSettings
from placement.netlist.design import Design, NodeKind
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.bookshelf import read_bookshelf
from placement.netlist.formats.def_design import read_lef_def
from placement.netlist.importing import ImportSettings, import_flat, write_design
from placement.netlist.load import load

FEW = ClusteringSettings(clusters=12)


def whole_way(flat: FlatDesign, folder: Path, **options: int) -> Design:
    """Imports, writes and loads a design, and places its macros legally."""
    imported = import_flat(flat, ImportSettings(clustering=FEW, **options))  # type: ignore[arg-type]
    write_design(folder, imported)
    design = load(folder)
    for start in make_starts(design, AnnealConfig(), 0):
        assert tuple(legality(design, start.placement)) == (0, 0), start.name
    return design


@pytest.mark.parametrize("technology", sorted(TECHNOLOGIES))
@pytest.mark.parametrize("placed", [True, False])
def test_other_technologies(technology: str, placed: bool, tmp_path: Path) -> None:
    made = Options(cells=600, macros=8, ports=20, technology=technology, placed=placed)
    lef, chip = write_chip(tmp_path / "made", made)
    flat = read_lef_def([lef], chip)[0]
    netlist = flat.netlist
    assert [int((netlist.kind == kind).sum()) for kind in (NodeKind.HARD, NodeKind.CELL, NodeKind.PORT)] == [8, 600, 21]
    expected = TECHNOLOGIES[technology]
    assert flat.floorplan.units == expected.units and flat.floorplan.manufacturing_grid == expected.grid
    assert flat.floorplan.rows.row_height == pytest.approx(expected.height)
    design = whole_way(flat, tmp_path / "design")
    # From the tracks of each layer but the lowest, in its direction; the edges add or remove a track.
    for direction, capacity in (
        ("HORIZONTAL", design.canvas.routes_horizontal),
        ("VERTICAL", design.canvas.routes_vertical),
    ):
        tracks = sum(1 / pitch for _, turn, pitch in expected.layers[1:] if turn == direction)
        assert capacity == pytest.approx(tracks, rel=0.03)
    # The memories' OBS covers the four lowest layers.
    blocked = sum(1 / pitch for _, turn, pitch in expected.layers[1:4] if turn == "HORIZONTAL")
    assert design.canvas.macro_routes_horizontal == pytest.approx(blocked, rel=0.03)


def test_ports_without_places_stand_on_the_edges(tmp_path: Path) -> None:
    lef, chip = write_chip(tmp_path / "made", Options(cells=300, macros=4, ports=15, ports_placed=False))
    flat = read_lef_def([lef], chip)[0]
    assert any("16 of 16 ports have no position" in notice for notice in flat.notices)
    die, ports = flat.floorplan.die, flat.netlist.ports
    x, y = flat.placement.x[ports], flat.placement.y[ports]
    on_edge = (
        np.isclose(x, die.x_low) | np.isclose(x, die.x_high) | np.isclose(y, die.y_low) | np.isclose(y, die.y_high)
    )
    assert on_edge.all() and len(np.unique(np.stack((x, y)), axis=1).T) == 16
    whole_way(flat, tmp_path / "design")


def bookshelf(folder: Path, *, scl: bool, pl: bool) -> Path:
    """Writes 120 cells in a chain past 5 macros, and 8 pads, the first of which is on three nets."""
    rng = np.random.default_rng(0)
    nodes = [f"c{number} {4 + number % 5} 12" for number in range(120)]
    nodes += [f"m{number} {60 + 12 * number} {48 + 12 * number}" for number in range(5)]
    nodes += [f"p{number} 1 1 terminal" for number in range(8)]
    movable = [f"c{number}" for number in range(120)] + [f"m{number}" for number in range(5)]
    nets = [(f"c{number}", f"c{number + 1}") for number in range(119)]
    nets += [(f"m{number}", *rng.choice(movable[:120], 3, replace=False)) for number in range(5) for _ in range(4)]
    nets += [(f"p{number}", str(rng.choice(movable))) for number in range(8)] + [("p0", "c3", "m1"), ("p0", "c7")]
    pins = sum(len(net) for net in nets)
    files = {
        "nodes": f"UCLA nodes 1.0\nNumNodes : {len(nodes)}\nNumTerminals : 8\n" + "".join(f"{n}\n" for n in nodes),
        "nets": f"UCLA nets 1.0\nNumNets : {len(nets)}\nNumPins : {pins}\n"
        + "".join(
            f"NetDegree : {len(net)}\n" + "".join(f" {node} {'O' if at == 0 else 'I'}\n" for at, node in enumerate(net))
            for net in nets
        ),
    }
    if pl:
        pads = "".join(f"p{number} {-20 if number % 2 else 330} {20 + 30 * number} : N\n" for number in range(8))
        files["pl"] = "UCLA pl 1.0\n" + "".join(f"{name} 0 0 : N\n" for name in movable) + pads
    if scl:
        rows = "".join(
            f"CoreRow Horizontal\n Coordinate : {12 * row}\n Height : 12\n Sitewidth : 1\n Sitespacing : 1\n"
            " SubrowOrigin : 0 NumSites : 320\nEnd\n"
            for row in range(26)
        )
        files["scl"] = f"UCLA scl 1.0\nNumRows : 26\n{rows}"
    folder.mkdir()
    for suffix, text in files.items():
        (folder / f"d.{suffix}").write_text(text)
    (folder / "d.aux").write_text("RowBasedPlacement : d.nodes d.nets d.wts d.pl d.scl\n")
    return folder / "d.aux"


@pytest.mark.parametrize(("scl", "pl"), [(True, True), (False, True), (True, False), (False, False)])
def test_bookshelf_with_files_missing(scl: bool, pl: bool, tmp_path: Path) -> None:
    flat = read_bookshelf(bookshelf(tmp_path / "files", scl=scl, pl=pl))[0]
    notice_text = " ".join(flat.notices)
    assert ("no .scl file" in notice_text) == (not scl) and ("no .pl file" in notice_text) == (not pl)
    design = whole_way(flat, tmp_path / "design", columns=12, rows=12)
    assert len(design.netlist.hard) == 5 and len(design.netlist.ports) == 8
    # The pad on three nets is on the net of its cell in each: no net is lost between macros, pads and clusters.
    pad = design.netlist.names.index("p0")
    joined = {
        design.netlist.names[node]
        for net in range(design.netlist.num_nets)
        for node in _nodes(design, net)
        if pad in _nodes(design, net)
    }
    assert "m1" in joined and len(joined) >= 3


def _nodes(design: Design, net: int) -> list[int]:
    netlist = design.netlist
    return netlist.pin_node[netlist.net_pins[netlist.net_start[net] : netlist.net_start[net + 1]]].tolist()


def test_a_design_whose_macros_are_fixed_says_so(tmp_path: Path) -> None:
    lef, chip = write_chip(tmp_path / "made", Options(cells=200, macros=3, ports=6))
    text = chip.read_text()
    for number in range(3):
        before, name, after = text.partition(rf"mem\[{number}\] RAM")
        text = before + name + after.replace(" ;", f" + FIXED ( {40_000 * (1 + number)} 40000 ) N ;", 1)
    chip.write_text(text)
    flat = read_lef_def([lef], chip)[0]
    imported = import_flat(flat, ImportSettings(columns=10, rows=10, clustering=FEW))
    assert "all 3 macros are fixed: there is nothing to place, unless they are freed" in imported.notices
    freed = dataclasses.replace(flat.placement, fixed=flat.placement.fixed & (flat.netlist.kind != NodeKind.HARD))
    imported = import_flat(
        dataclasses.replace(flat, placement=freed), ImportSettings(columns=10, rows=10, clustering=FEW)
    )
    assert len(imported.design.placing_order) == 3
