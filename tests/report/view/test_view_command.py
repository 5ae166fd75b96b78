"""`macro-placement view` before it serves: rejections in one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from placement.annealing.search import Watch, search
from placement.cli.main import main
from placement.cli.options import settings
from placement.cli.viewing import ViewConfig, open_sessions
from placement.config import CostConfig, EnvConfig, TrainConfig, build
from placement.engine.costs import compute_costs
from placement.netlist.load import load
from placement.training.run_folder import write_record

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["clustered40", "toy6.plc"], "toy6.plc:"),
        (["toy6", "toy6.plc", "none.plc"], "placement=none.plc: no such file"),
        (["gone"], "gone"),
        (["toy6", "--port", "70000"], "port=70000"),
        (["toy6", "one", "two"], "only one run folder can be opened"),
    ],
)
def test_what_cannot_be_opened_ends_in_one_line(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "netlists" / "toy6" / "initial.plc", "toy6.plc")
    for run in ("one", "two"):
        Path(run).mkdir()
        shutil.copy("toy6.plc", f"{run}/best.plc")
    assert main(["view", *words, "--browser", "false"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("kind", ["run", "search", "neither", "asked"])
def test_the_cost_is_that_of_the_folder_that_is_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("found")
    folder.mkdir()
    shutil.copy(ROOT / "netlists" / "toy6" / "initial.plc", folder / "best.plc")
    cost = CostConfig(name="chip", congestion=0.25)
    if kind == "search":
        cost = CostConfig(name="chip")
        search(
            load("toy6"),
            weights=cost.weights(),
            moves=1000,
            round_moves=200,
            watch=Watch(folder),
        )
    elif kind != "neither":
        write_record(folder, TrainConfig(design=("toy6",), run_dir="found", env=EnvConfig(cost=cost)))
    words = {"neither": [], "asked": ["cost.name=proxy", "cost.congestion=0.75"]}.get(kind, [])
    expected = {"neither": CostConfig(), "asked": CostConfig(name="proxy", congestion=0.75)}.get(kind, cost)
    values = settings(["toy6", "found", *words], ViewConfig, ("design", "placement"))
    _, (session,) = open_sessions(build(ViewConfig, values))
    assert session.costs.total == pytest.approx(compute_costs(load("toy6"), weights=expected.weights()).total)
