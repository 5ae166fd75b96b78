"""Printed and drawn cost names match the requested cost; a search reads its design once."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from placement.cli.main import main
from placement.config import CostConfig
from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs
from placement.evaluation import placements, searching
from placement.evaluation.settings import SearchConfig
from placement.netlist.load import load
from placement.report.curves import plot_cost_over_time, plot_side_by_side


def test_flips_report_the_requested_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["design=toy6", "flips=true", "plots=false", f"out={tmp_path}"]
    assert main(["evaluate", *words, "cost=chip"]) == 0
    out = capsys.readouterr().out
    assert "sweeps: chip cost" in out
    assert "proxy cost" not in out


def test_every_command_has_the_same_default_cost(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("search", "evaluate", "legalise"):
        assert main([command, "--help"]) == 0
        assert f"  --cost {DEFAULT_WEIGHTS.name}\n" in capsys.readouterr().out


def test_a_cost_and_its_weights_are_given_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "design=toy6", "cost=chip", "cost.density=3", "json=true"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    weights = CostConfig(name="chip", density=3.0).weights()
    assert found["cost_name"] == "chip"
    assert found["cost"] == compute_costs(load("toy6"), weights=weights).total


def test_comparisons_name_the_cost() -> None:
    design = load("toy6")
    figure = plot_cost_over_time({"greedy": [[(0.0, 1.0), (1.0, 0.5)]]}, title="t", unit="s", cost="chip")
    assert figure.axes[0].get_ylabel() == "best chip cost so far"
    figure = plot_side_by_side(design, {"greedy": (design.initial, 0.5)}, title="t", cost="chip")
    words = [text.get_text() for text in figure.texts]
    assert any("chip cost" in one for one in words)


def test_a_search_without_a_placement_reads_its_design_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []

    def counted(*arguments: Any) -> Any:
        read.append(arguments)
        return load(*arguments)

    monkeypatch.setattr(placements, "load", counted)
    monkeypatch.setattr(searching, "load", counted)
    config = SearchConfig(design="toy6", method="refine")
    design, starts, name = searching._starts(config, Console(quiet=True))
    assert len(read) == 1
    assert (design.name, len(starts), name) == ("toy6", 1, "initial")


@pytest.mark.parametrize("settings", [{}, {"placement": "best.plc"}, {"checkpoint": "runs/one"}])
def test_what_is_given_is_refined_and_otherwise_the_search_has_its_own_starts(settings: dict[str, str]) -> None:
    assert SearchConfig(design="toy6", **settings).chosen_method == ("refine" if settings else "anneal")


def test_a_search_says_that_the_designs_placement_is_not_refined() -> None:
    console = Console(file=io.StringIO(), width=200)
    design, starts, name = searching._starts(SearchConfig(design="toy6"), console)
    assert (design.name, starts, name) == ("toy6", [], "own")
    assert "method=refine improves the design's placement" in console.file.getvalue()


def test_a_search_says_that_no_macro_can_move(monkeypatch: pytest.MonkeyPatch) -> None:
    design = load("toy6")
    still = dataclasses.replace(design.initial, fixed=np.ones_like(design.initial.fixed))
    monkeypatch.setattr(searching, "load", lambda *_: dataclasses.replace(design, initial=still))
    console = Console(file=io.StringIO(), width=200)
    searching._starts(SearchConfig(design="toy6", method="anneal"), console)
    assert "macros of toy6 are fixed: nothing can move" in console.file.getvalue()
    assert "import --free-macros" in console.file.getvalue()
