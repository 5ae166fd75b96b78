"""The readers on the public Ariane design, with its published statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import placement
from placement.netlist.design import Design, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import load


@pytest.fixture(scope="module")
def ariane(ariane_folder: Path):
    return load(ariane_folder)


def test_counts(ariane) -> None:
    netlist = ariane.netlist
    assert (len(netlist.hard), len(netlist.soft), len(netlist.ports)) == (133, 782, 495)
    assert netlist.num_nets == 12_422
    assert netlist.net_weight.sum() == 22_584
    macro_pins = np.bincount(netlist.kind[netlist.pin_node])
    assert macro_pins.tolist() == [7847, 10630, 495]
    assert ariane.name == "ariane133_ng45"
    assert ariane.canvas.columns == 24
    assert ariane.canvas.rows == 21


def test_found_by_name_and_by_path(ariane_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACEMENT_PATH", str(ariane_folder.parent))
    by_name = placement.load("ariane133_ng45")
    by_path = placement.load(ariane_folder / "netlist.pb.txt.gz", ariane_folder / "legalized.plc")
    assert by_name.netlist.names == by_path.netlist.names
    assert by_name.initial != by_path.initial


def test_every_dialect_reads_and_writes_back_equal(ariane, ariane_folder: Path, tmp_path: Path) -> None:
    files = [ariane_folder / "initial.plc", ariane_folder / "legalized.plc", *ariane_folder.glob("golden/*.plc")]
    assert len(files) >= 4
    for file in files:
        canvas, placed = read_placement(file, ariane.netlist)
        design = Design(name="ariane", netlist=ariane.netlist, canvas=canvas, initial=placed)
        write_placement(tmp_path / "out.plc", design, placed)
        assert read_placement(tmp_path / "out.plc", ariane.netlist) == (canvas, placed), file


def test_orientations_are_read(ariane) -> None:
    turned = np.bincount(ariane.initial.orientation, minlength=8)
    assert turned[Orientation.S] == 19
    assert ariane.initial.fixed.sum() == 495


def test_flat_design_without_placement_file_says_what_is_needed(ariane_folder: Path) -> None:
    flat = ariane_folder.parent / "ariane133_ng45_flat"
    if not flat.is_dir():
        pytest.skip("design ariane133_ng45_flat is not on PLACEMENT_PATH")
    with pytest.raises(DesignError, match="initial="):
        load(flat)
