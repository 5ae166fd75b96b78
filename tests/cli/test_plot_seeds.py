"""The example that plots a sweep's curves over seeds."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/plot_seeds.py"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("plot_seeds", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "plot_seeds", module)
    monkeypatch.setenv("MPLBACKEND", "agg")
    spec.loader.exec_module(module)
    return module


def _job(folder: Path, number: int, overrides: list[str], costs: list[str], *, code: int = 0) -> None:
    run = folder / f"run{number}"
    run.mkdir()
    rows = [f"{index + 1},{10 * index},{cost}" for index, cost in enumerate(costs)]
    (run / "metrics.csv").write_text("\n".join(["iteration,seconds,greedy_cost", *rows]) + "\n")
    job = {"overrides": overrides, "run_dir": str(run), "code": code}
    (folder / f"job-{number}.json").write_text(json.dumps(job))


def test_seeds_are_averaged_where_all_have_a_value(
    tmp_path: Path, example: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _job(tmp_path, 0, ["design=a", "seed=0"], ["", "3.0", "1.0"])
    _job(tmp_path, 1, ["design=a", "seed=1"], ["9.0", "5.0", "1.0"])
    _job(tmp_path, 2, ["design=b", "seed=0"], ["2.0", "2.0", "2.0"])
    _job(tmp_path, 3, ["design=b", "seed=1"], ["7.0"], code=1)
    _job(tmp_path, 4, ["design=c", "seed=0", "~env.order"], ["1.0"])
    _job(tmp_path, 5, ["design=c", "seed=1", "~env.order"], ["", "1.0"])  # no common iteration
    monkeypatch.setattr(sys, "argv", ["plot_seeds.py", str(tmp_path), "--out", str(tmp_path / "seeds.png")])
    example.main()
    assert (tmp_path / "seeds.png").stat().st_size > 1000
    assert "design=c ~env.order=: no iteration in which all seeds have a value" in capsys.readouterr().out
    written = json.loads((tmp_path / "seeds.json").read_text())
    assert [(job["settings"]["design"], job["seed"], job["curve"]) for job in written] == [
        ("a", 0, [[10.0, 3.0], [20.0, 1.0]]),
        ("a", 1, [[0.0, 9.0], [10.0, 5.0], [20.0, 1.0]]),
        ("b", 0, [[0.0, 2.0], [10.0, 2.0], [20.0, 2.0]]),
        ("c", 0, [[0.0, 1.0]]),
        ("c", 1, [[10.0, 1.0]]),
    ]
    apart = example.groups(written)
    assert list(apart) == ["design=a", "design=b", "design=c ~env.order="]
    assert example.intervals(apart["design=a"]) == {2: (4.0, 3.0, 5.0), 3: (1.0, 1.0, 1.0)}


def test_a_folder_without_values_is_rejected(
    tmp_path: Path, example: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["plot_seeds.py", str(tmp_path)])
    with pytest.raises(SystemExit):
        example.main()
    assert "no job that ended well has a value of greedy_cost" in capsys.readouterr().err
