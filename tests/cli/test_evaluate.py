from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from placement.annealing.legaliser import fits
from placement.config import ConfigError, build
from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs, proxy_cost
from placement.evaluation.placements import load_placement
from placement.evaluation.settings import EvaluateConfig, SampleConfig, SearchConfig
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load
from tests.support.command import run_here

ROOT = Path(__file__).resolve().parents[2]
KEYS = [
    "cost_name",
    "cost",
    "wirelength",
    "wirelength_cost",
    "density_cost",
    "congestion_cost",
    "overlaps",
    "outside",
    "tidiness",
]
SECONDS = 300


def run(*arguments: str, folder: Path, command: str = "evaluate") -> subprocess.CompletedProcess[str]:
    return run_here("macro-placement", command, *arguments, folder=folder)


def run_alone(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command in its own process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("HYDRA_FULL_ERROR", None)
    command = [sys.executable, str(ROOT / "evaluate.py"), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS)


def last_json(result: subprocess.CompletedProcess[str]) -> dict:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_shipped_design_prints_the_exact_costs_and_writes_nothing(tmp_path):
    values = last_json(run_alone("design=toy6", "json=true", "cost=proxy", "cost.density=2", folder=tmp_path))
    costs = proxy_cost(load("toy6"))
    assert list(values) == KEYS
    assert [values[key] for key in KEYS[2:6]] == list(costs[:4]), "to the last bit"
    expected = costs.wirelength_cost + 2 * costs.density_cost + 0.5 * costs.congestion_cost
    assert values["cost"] == pytest.approx(expected, rel=1e-12)
    assert list(tmp_path.iterdir()) == []


def test_ariane_agrees_with_the_published_evaluator(ariane_folder, tmp_path):
    golden = json.loads((ariane_folder / "golden.json").read_text())["legalized.plc"]["open_evaluator"]
    result = run(
        "design=ariane133_ng45", f"placement={ariane_folder}/legalized.plc", "cost=proxy", "json=true", folder=tmp_path
    )
    values = last_json(result)
    for key in ("wirelength", "wirelength_cost", "density_cost", "congestion_cost"):
        assert values[key] == pytest.approx(golden[key], rel=1e-6), key
    assert round(values["cost"], 6) == 0.685935
    assert (values["overlaps"], values["outside"]) == (0, 0)


def test_the_canvas_comes_from_the_placement_unless_initial_is_given(ariane_folder, capsys):
    case = ariane_folder / "golden" / "case_102.plc"
    cases = json.loads((ariane_folder / "golden" / "costs.json").read_text())
    golden = next(row for row in cases if row["placement"] == case.name)
    settings = {"design": str(ariane_folder / "netlist.pb.txt.gz"), "placement": str(case)}
    design, placement, _, _ = load_placement(build(EvaluateConfig, settings))
    assert (design.canvas.columns, design.canvas.rows) == (golden["columns"], golden["rows"])
    assert proxy_cost(design, placement).congestion_cost == pytest.approx(golden["congestion_cost"], rel=1e-6)

    settings["initial"] = str(ariane_folder / "initial.plc")
    design, placement, _, _ = load_placement(build(EvaluateConfig, settings))
    assert (design.canvas.columns, design.canvas.rows) == (24, 21)
    assert proxy_cost(design, placement).wirelength == pytest.approx(golden["wirelength"], rel=1e-6)
    assert "35 × 33" in capsys.readouterr().err


def test_files_are_written_to_the_given_paths(tmp_path):
    result = run("design=toy6", "plots=true", "out=here", "soft_placer=force_directed", "json=true", folder=tmp_path)
    values = last_json(result)
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [
        "macros.csv",
        "maps.png",
        "metrics.json",
        "placement.plc",
        "placement.png",
    ]
    written = json.loads((tmp_path / "here" / "metrics.json").read_text())
    assert {key: written[key] for key in KEYS} == values
    again = last_json(run("design=toy6", "placement=here/placement.plc", "json=true", folder=tmp_path))
    assert again == values, "the placement that was written costs the same, to the last bit"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["design=no_such_design"], "no design 'no_such_design'"),
        (["design=toy6", "placement=missing.plc"], "placement=missing.plc: no such file"),
        (
            ["design=toy6", "placement=found"],
            "placement=found: is a folder; did you mean placement=found/placement.plc?",
        ),
        (["design=toy6", "placement=."], "placement=.: is a folder; give a placement file"),
        (["design=toy6", "placement=broken.plc"], "broken.plc:2:"),
        (["design=toy6", "cost.wirelength=-1"], "evaluate: cost.wirelength=-1"),
        (["desing=toy6"], "unknown setting 'desing'. Did you mean 'design'?"),
        (["design=toy6", "placement=a=b.plc"], "placement=a=b.plc: no such file"),
    ],
)
def test_mistakes_are_reported_in_one_line(tmp_path, arguments, message):
    (tmp_path / "broken.plc").write_text("# Columns : 4\nthis is no placement\n")
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "placement.plc").touch()
    result = run(*arguments, folder=tmp_path)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert result.stdout == ""


def test_settings_are_checked():
    both = {"design": "toy6", "placement": "a.plc", "checkpoint": "b"}
    for cls, settings, message in (
        (EvaluateConfig, {}, "design: is required"),
        (SearchConfig, {}, "design: is required"),
        (SearchConfig, both, "give only one of them"),
        (SampleConfig, {"checkpoint": "b", "samples": 0}, "samples=0"),
        (SampleConfig, {"checkpoint": "b", "seed": -1}, "seed=-1"),
        (EvaluateConfig, {"design": "toy6", "sampels": 3}, "sampels: unknown setting"),
    ):
        with pytest.raises(ConfigError, match=message):
            build(cls, settings)


def test_a_placement_is_evaluated_without_jax_or_matplotlib(tmp_path):
    program = (
        "import sys, runpy; sys.argv = ['evaluate.py', 'design=toy6']; "
        f"runpy.run_path({str(ROOT / 'evaluate.py')!r}, run_name='__main__'); "
        "print([name for name in ('jax', 'tensorflow', 'matplotlib') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "[]"


def test_a_placement_is_made_legal_with_a_spacing(tmp_path):
    arguments = ("spacing=2", "json=true", "out=found")
    result = run("design=clustered40", *arguments, folder=tmp_path, command="legalise")
    values = last_json(result)
    assert (values["overlaps"], values["outside"]) == (0, 0)
    assert "macros were moved, by" in result.stdout
    design = load("clustered40")
    _, placement = read_placement(tmp_path / "found" / "placement.plc", design.netlist)
    assert fits(design, placement, spacing=2.0)


def test_search_refines_a_placement_and_writes_what_it_found(tmp_path):
    arguments = ("design=toy6", "method=refine", "moves=20000", "json=true", "out=found")
    values = last_json(run(*arguments, folder=tmp_path, command="search"))
    assert values["cost"] < compute_costs(load("toy6"), weights=DEFAULT_WEIGHTS).total
    assert (values["overlaps"], values["outside"]) == (0, 0)
    found = tmp_path / "found"
    again = last_json(run("design=toy6", f"placement={found}/placement.plc", "cost=chip", "json=true", folder=tmp_path))
    assert again == values
    rows = (found / "search.csv").read_text().splitlines()
    assert rows[0] == "seconds,moves,cost,cost_name"
    assert rows[-1].endswith(",chip")
    assert rows[-1].split(",")[1] == "20000"
    assert last_json(run(*arguments, folder=tmp_path, command="search")) == values, (
        "with moves=N the same settings find the same"
    )


def test_flips_of_a_placement_file_are_written_next_to_it(tmp_path):
    values = last_json(run("design=clustered40", "flips=true", "json=true", "out=flipped", folder=tmp_path))
    assert values["cost"] < proxy_cost(load("clustered40")).total
    again = last_json(run("design=clustered40", "placement=flipped/placement.plc", "json=true", folder=tmp_path))
    assert again == values
