"""`benchmark design=`: placers on one design, and placements from files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from placement.benchmark import command, running, scoring
from placement.benchmark.benchmark_config import BenchmarkConfig
from placement.benchmark.running import Usage
from placement.cli.main import main
from placement.engine.costs import cost
from placement.evaluation import full_evaluation
from placement.flat.flat_evaluator import FULL_EVALUATION
from placement.netlist.formats.plc import write_placement
from placement.netlist.load import data_folder, load
from tests.support.flat_designs import write_generated

TOY = data_folder("netlists") / "toy6"
OF_CELLS = {"flat_wirelength", "routed_wirelength", "overflow", "density_overflow", "hot_spots", "cells_without_place"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a small design with standard cells."""
    folder = tmp_path_factory.mktemp("flat") / "made"
    write_generated(folder, cells=120, macros=3, ports=6, macro_pins=8, seed=3)
    return folder


def shifted(design: Path, path: Path, way: float) -> Path:
    """Writes the design's own placement with one macro moved along x by `way` µm."""
    loaded = load(str(design))
    macro, own = loaded.placing_order[:1], loaded.initial
    write_placement(path, loaded, own.moved(macro, own.x[macro] + way, own.y[macro]))
    return path


def call(design: Path | str, out: Path, *words: str) -> int:
    return main(["benchmark", f"design={design}", f"out={out}", "plots=false", *words])


def result_of(out: Path, placer: str, design: str = "toy6", seed: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / placer / design / f"seed{seed}.json").read_text())
    return found


def test_placers_and_placements_in_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["placers=supplied", "seeds=2", "plots=true", "--commands", "copy=cp {design}/initial.plc placement.plc"]
    optimum = f"the best={TOY / 'optimum.plc'}"
    assert call("toy6", tmp_path, *words, "--placements", optimum, str(TOY / "initial.plc")) == 0
    output = capsys.readouterr().out
    heading, _, *lines = (line for line in output[output.index(" placer") :].splitlines())
    assert heading.split()[1:] == ["copy@60", "initial", "supplied", "the", "best"]
    scores = [line.strip().partition("  ")[0] for line in lines]
    assert scores[3:8] == ["best", "chip cost", "proxy cost", "wirelength, µm", "above the minimum"]
    design, best = load("toy6"), load("toy6", TOY / "optimum.plc")
    found = result_of(tmp_path, "the-best")
    assert found["scores"]["chip_cost"] == cost(design, best.initial).total
    assert (found["scores"]["wirelength_gap"], found["cpu_seconds"], found["seconds"]) == (0.0, 0.0, 0.0)
    assert found["command"].startswith("macro-placement benchmark design=toy6 placements=the best=optimum.plc")
    assert result_of(tmp_path, "initial")["scores"] == result_of(tmp_path, "supplied")["scores"]
    assert [path.parts[-3] for path in sorted(tmp_path.glob("*/toy6/seed1.json"))] == ["copy@60"]
    page = (tmp_path / "benchmark.md").read_text()
    assert page.startswith("## toy6\n") and "| the best | 1 | 0 | 0.0 | 0.1488 | 0.1488 |" in page
    assert [path.name for path in tmp_path.glob("*.png")] == ["placements.png"], "no program says how its cost fell"
    assert not (tmp_path / "leaderboard.json").exists(), "a score is not divided by another placer's"


def test_a_file_that_changed_is_scored_again(tmp_path: Path) -> None:
    file = tmp_path / "mine.plc"
    shutil.copy(TOY / "initial.plc", file)
    assert call("toy6", tmp_path / "out", f"placements={file}") == 0
    before = result_of(tmp_path / "out", "mine")
    assert call("toy6", tmp_path / "out", f"placements={file}") == 0
    assert result_of(tmp_path / "out", "mine") == before
    shutil.copy(TOY / "optimum.plc", file)
    assert call("toy6", tmp_path / "out", f"placements={file}") == 0
    assert result_of(tmp_path / "out", "mine")["scores"]["wirelength"] < before["scores"]["wirelength"]


def test_what_is_not_legal_does_not_count(made: Path, tmp_path: Path) -> None:
    file = shifted(made, tmp_path / "away.plc", 1e5)
    (tmp_path / "cut.plc").write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    assert call(made, tmp_path / "out", f"placements=[{file},{tmp_path / 'cut.plc'}]") == 0
    assert result_of(tmp_path / "out", "away", "made")["reason"].startswith("outside: 1")
    assert "the file ends without lines for" in result_of(tmp_path / "out", "cut", "made")["reason"]


def test_the_full_evaluation_is_added_without_another_run(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(made, tmp_path, "placers=random@0.3", "seeds=1") == 0
    before = result_of(tmp_path, "random@0.3", "made")
    before["scores"]["coloquinte_wirelength"] = 7.0  # from a machine where it is installed
    (tmp_path / "random@0.3/made/seed0.json").write_text(json.dumps(before))
    monkeypatch.setattr(running, "run_process", lambda *_, **__: pytest.fail("a placer ran again"))
    monkeypatch.setattr(scoring, "is_installed", lambda: False)
    assert call(made, tmp_path, "placers=random@0.3", "seeds=1", "full=true", "plots=true") == 0
    after = result_of(tmp_path, "random@0.3", "made")
    assert after == {**before, "scores": after["scores"], "full_evaluation": FULL_EVALUATION}
    assert set(after["scores"]) == set(before["scores"]) | OF_CELLS
    assert after["scores"]["coloquinte_wirelength"] == 7.0
    assert {path.name for path in tmp_path.glob("*.png")} == {"cost_over_time.png", "full.png", "placements.png"}
    drawn = full_evaluation.read_drawn(tmp_path / "random@0.3/made/seed0.npz")
    assert len(drawn.x) == len(drawn.y) == len(drawn.cluster) > 100
    capsys.readouterr()
    file = tmp_path / "random@0.3/made/seed0.plc.gz"
    assert main(["evaluate", f"design={made}", f"placement={file}", "full=true", "json=true"]) == 0
    alone = json.loads(capsys.readouterr().out.splitlines()[-1])
    for key in OF_CELLS:
        assert after["scores"][key] == pytest.approx(alone[key], rel=1e-6), key


def test_scores_of_an_earlier_full_evaluation_are_incomplete(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "is_installed", lambda: False)
    design, scores = load(str(made)), dict.fromkeys([*scoring.COSTS, *OF_CELLS], 1.0)
    cells, costs = (scoring.Judge(made, design, full=full) for full in (True, False))
    old: dict[str, Any] = {"status": "ok", "scores": scores}
    for result in (old, {**old, "full_evaluation": FULL_EVALUATION - 1}):
        assert not running.is_complete(result, cells) and running.is_complete(result, costs)
    assert running.is_complete({**old, "full_evaluation": FULL_EVALUATION}, cells)


def test_a_stopped_evaluation_keeps_the_run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopping(command.Interruption):
        def __enter__(self) -> command.Interruption:
            events.append(self.requested)
            return super().__enter__()

    def stopped_during_scoring(*_: Any, **__: Any) -> dict[str, float]:
        events[0].set()
        return {}

    events: list[Any] = []
    runs: list[Sequence[str]] = []

    def copied(words: Sequence[str], folder: Path, *_: Any, **__: Any) -> Usage:
        runs.append(words)
        shutil.copy(made / "initial.plc", folder / "placement.plc")
        return Usage(0, 0.1, 0.1, 1.0, hung=False)

    monkeypatch.setattr(running, "run_process", copied)
    config = BenchmarkConfig(design=str(made), placers=("random@1", "greedy@1"), seeds=1, out=str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(command, "Interruption", Stopping)
        patched.setattr(scoring.Judge, "scores", stopped_during_scoring)
        with pytest.raises(KeyboardInterrupt):  # exit status 130, for scripts
            command.benchmark(config, Console(quiet=True))
    assert (tmp_path / "benchmark.md").is_file()
    assert result_of(tmp_path, "random@1", "made")["scores"] == {} and len(runs) == 1
    command.benchmark(config, Console(quiet=True))
    assert result_of(tmp_path, "random@1", "made")["scores"]["chip_cost"] > 0
    assert len(runs) == 2, "the second placer, not the first again"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["suite=smoke", "placements=a.plc"], "placements: need the design that they belong to; give design="),
        (["design=toy6", "placements=a.plc"], "placements=a.plc: no such file"),
        (["design=toy6", f"placements=[{TOY / 'initial.plc'},{TOY / 'initial.plc'}]"], "is given 2 times"),
        (
            ["design=toy6", "placers=supplied", f"placements=[supplied={TOY / 'initial.plc'}]"],
            "supplied is listed twice",
        ),
    ],
)
def test_what_cannot_be_compared_is_rejected_before_anything_starts(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmark", *words, f"out={tmp_path / 'out'}"]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()
