"""The example that plots a sweep, from the rows of the sweep."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/plot_sweep.py"
ROWS = [
    (0.8, ["design=toy6", "ppo.epochs=1", "ppo.learning_rate=0.01"]),
    (None, ["design=toy6", "ppo.epochs=3", "ppo.learning_rate=0.01"]),
    (0.7, ["design=toy6", "ppo.epochs=2", "ppo.learning_rate=0.01"]),
]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch):
    spec = importlib.util.spec_from_file_location("plot_sweep", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "plot_sweep", module)
    monkeypatch.setenv("MPLBACKEND", "agg")
    spec.loader.exec_module(module)
    return module


def test_the_best_job_comes_first_and_what_varied_is_drawn(example, tmp_path, monkeypatch, capsys) -> None:
    for number, (best, overrides) in enumerate(ROWS):
        (tmp_path / f"job-{number}.json").write_text(json.dumps({"best": best, "overrides": overrides}))
    monkeypatch.setattr(sys, "argv", ["plot_sweep.py", str(tmp_path), "--out", str(tmp_path / "sweep.png")])
    example.main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [["job", "best", "ppo.epochs"], ["2", "0.7000", "2"], ["0", "0.8000", "1"]]
    with Image.open(tmp_path / "sweep.png") as picture:
        assert picture.width > 300


def test_a_sweep_with_nothing_to_compare_is_rejected(example, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "job-0.json").write_text(json.dumps({"best": 0.8, "overrides": ["seed=1"]}))
    monkeypatch.setattr(sys, "argv", ["plot_sweep.py", str(tmp_path)])
    with pytest.raises(SystemExit):
        example.main()
    assert "no two jobs that ended well" in capsys.readouterr().err
