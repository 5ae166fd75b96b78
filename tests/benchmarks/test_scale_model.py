"""The comparison of the model with measured points: what it reads, fits and prints."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from placement.capacity.plan import Fleet
from placement.capacity.simulation import TransferCosts

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
bench_shards, scale_model, simulated = map(importlib.import_module, ("bench_shards", "scale_model", "simulated"))


def _caches(goodput: float) -> dict:
    """Returns what bench_caches.py would write if the model were exact."""
    options = {"readers": 8, "megabytes": 4.0, "megabits": 50.0, "caches": 2, "fan_out": 2, "period": 3.0, "reads": 2}
    costs = TransferCosts(read_goodput=goodput)
    found: dict = {"options": options}
    for name, caches in (("straight", 0), ("tree", 2)):
        fleet = Fleet(actors=8, model_mb=4.0, megabits=50.0, caches=caches, fan_out=2)
        found[name] = {"latencies": simulated.simulate_reads(fleet, costs, period=3.0, reads=2).tolist()}
    return json.loads(json.dumps(found))


def test_reads_are_compared_as_soon_as_they_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    points = scale_model.read_points(_caches(0.8))
    assert [point.fitted for point in points] == [True, False]
    costs = scale_model.fit(points, {"read_goodput": (0.94, 1.0)})
    assert costs.read_goodput == pytest.approx(0.8, abs=0.01)
    scale_model.compare(points, costs)
    output = capsys.readouterr().out
    assert "read 4 MB, tree, 8 readers" in output and "all points within 20%: 2 of 2 (100%)" in output
    scale_model.compare(points, dataclasses.replace(costs, read_goodput=0.4))
    assert "all points within 20%: 0 of 2 (0%)" in capsys.readouterr().out


def test_the_error_of_a_mean_counts_writers_not_writes() -> None:
    alike = [np.array([1.0, 2.0]), np.array([2.0, 1.0])]
    assert bench_shards.standard_error(alike) == pytest.approx(0.0)
    apart = [np.full(100, 1.0), np.full(100, 2.0)]
    assert bench_shards.standard_error(apart) == pytest.approx(0.5)


def test_the_planned_constants_predict_all_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written, read = tmp_path / "shards.json", tmp_path / "caches.json"
    written.write_text("[]")
    read.write_text(json.dumps(_caches(scale_model.MEASURED_COSTS.read_goodput)))
    monkeypatch.setattr(sys, "argv", ["", "--shards", str(written), "--caches", str(read), "--planned"])
    scale_model.main()
    assert "predicted points within 20%: 2 of 2 (100%)" in capsys.readouterr().out


def test_a_payload_has_its_nominal_size() -> None:
    episode = bench_shards.make_episode(bench_shards.steps_of(0.01), 0)
    assert sum(field.nbytes for field in episode) == pytest.approx(10_000, rel=0.01)
