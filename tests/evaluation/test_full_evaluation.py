"""`evaluate full=true` and `cost=chip`, by the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from placement.cli.main import main
from placement.config import CostConfig
from placement.engine.costs import compute_costs
from placement.evaluation import full_evaluation
from placement.flat.electrostatic import PlacerSettings
from placement.netlist.flat_design import FLAT_NAME, read_flat
from placement.netlist.load import load


def test_the_full_evaluation_is_in_table_json_and_pictures(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"design={made}", "cost=chip", "full=true", "json=true", "plots=true"]
    assert main(["evaluate", *words, f"out={tmp_path}"]) == 0
    out = capsys.readouterr().out
    found = json.loads(out.splitlines()[-1])
    assert "flat wirelength" in out
    assert 0 < found["flat_wirelength"] <= found["routed_wirelength"]
    assert 0 <= found["overflow"] < 1
    assert found["density_overflow"] < 0.1
    assert found["flat_converged"] is True
    assert found["cells_without_place"] == 0
    assert 0 < found["mean_displacement"] < found["most_displacement"]
    assert 0 < found["spread_wirelength"] < 1.2 * found["legal_wirelength"] < 1.2 * found["routed_wirelength"]
    assert found["global_routed_wirelength"] != found["routed_wirelength"]
    assert found["row_pieces"] >= 1 and 0 < found["largest_piece"] <= 1
    assert 0 <= found["sliver_sites"] < found["free_sites"]
    assert "pieces of row area" in out and "cells without a place" in out
    assert "did not spread" not in out
    measured = compute_costs(load(made, tmp_path / "placement.plc"), weights=CostConfig(name="chip").weights())
    assert found["cost"] == pytest.approx(measured.total, rel=1e-5)  # the file rounds positions
    assert {"cells.png", "routing.png", "placement.png", "rows.png"} <= {path.name for path in tmp_path.iterdir()}
    assert json.loads((tmp_path / "metrics.json").read_text())["flat_wirelength"] == found["flat_wirelength"]


def test_a_design_without_its_flat_netlist_says_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "design=toy6", "full=true"]) == 2
    message = capsys.readouterr().err
    assert "has no flat netlist" in message
    assert "import" in message


def test_an_unknown_cost_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "design=toy6", "cost=silicon"]) == 2
    assert "cost.name='silicon': must be proxy or chip" in capsys.readouterr().err


def test_a_search_lowers_the_cost_that_is_requested(made: Path, tmp_path: Path) -> None:
    chip = {}
    for cost in ("chip", "proxy"):
        out = tmp_path / cost
        words = [f"design={made}", f"cost={cost}", "method=anneal", "moves=20000", f"out={out}", "plots=false"]
        assert main(["search", *words]) == 0
        found = json.loads((out / "metrics.json").read_text())
        assert found["weights"]["name"] == cost
        placed = load(made, out / "placement.plc")
        chip[cost] = compute_costs(placed, weights=CostConfig(name="chip").weights()).total
    assert chip["chip"] < chip["proxy"]


def test_nets_of_too_many_pins_are_reported(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    large = int((np.diff(read_flat(made / FLAT_NAME).netlist.net_start) > 5).sum())
    assert large > 0
    monkeypatch.setattr(full_evaluation, "MOST_PINS", 5)
    monkeypatch.setattr(full_evaluation, "SETTINGS", PlacerSettings(iterations=1))
    assert main(["evaluate", f"design={made}", "full=true", "plots=false", f"out={tmp_path}"]) == 0
    assert f"note: {large} nets have more than 5 pins" in capsys.readouterr().out


def test_cells_that_do_not_spread_are_reported(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_evaluation, "SETTINGS", PlacerSettings(iterations=20))
    assert main(["evaluate", f"design={made}", "full=true", "json=true"]) == 0
    out = capsys.readouterr().out
    assert "note: the cells did not spread: after 20 iterations" in out
    assert "not converged" in out
    assert json.loads(out.splitlines()[-1])["flat_converged"] is False
