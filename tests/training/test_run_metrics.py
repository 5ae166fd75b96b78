"""`metrics.csv` and TensorBoard files: whole rows, stable columns, resumption without duplicates."""

from __future__ import annotations

import csv
import io
import math
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from placement.engine.costs import compute_costs
from placement.training.best import BestTracker
from placement.training.metrics import MetricsWriter, episode_metrics, tag
from tests.support.designs import four_macros
from tests.support.episodes import episode


def _rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def _write(folder: Path, iterations: range, *, resumed_at: int = 0, **extra: float) -> None:
    with MetricsWriter(folder, iteration=resumed_at) as writer:
        for iteration in iterations:
            writer.write({"iteration": iteration, "cost": iteration / 10 + resumed_at, **extra})


def test_rows_are_readable_at_once(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        for iteration in (1, 2):
            writer.write({"iteration": iteration, "cost": 0.123456789012, "gone": math.nan, "episodes": 3.0})
            assert len(_rows(tmp_path)) == iteration
    assert _rows(tmp_path)[0] == {"iteration": "1", "cost": "0.123456789", "gone": "", "episodes": "3"}


def test_a_resumed_run_has_no_iteration_twice(tmp_path: Path) -> None:
    _write(tmp_path, range(1, 6))
    _write(tmp_path, range(4, 7), resumed_at=3)
    rows = _rows(tmp_path)
    assert [int(row["iteration"]) for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [float(row["cost"]) for row in rows] == pytest.approx([0.1, 0.2, 0.3, 3.4, 3.5, 3.6])


def test_a_torn_last_line_is_dropped(tmp_path: Path) -> None:
    _write(tmp_path, range(1, 4))
    path = tmp_path / "metrics.csv"
    path.write_text(path.read_text()[:-3])
    _write(tmp_path, range(3, 5), resumed_at=2)
    assert [int(row["iteration"]) for row in _rows(tmp_path)] == [1, 2, 3, 4]


def test_new_columns_are_added_and_old_ones_stay_in_place(tmp_path: Path) -> None:
    _write(tmp_path, range(1, 3))
    _write(tmp_path, range(3, 4), resumed_at=2, greedy=0.5)
    assert (tmp_path / "metrics.csv").read_text().splitlines() == [
        "iteration,cost,greedy",
        "1,0.1,",
        "2,0.2,",
        "3,2.3,0.5",
    ]


def _events(folder: Path) -> Any:
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = event_accumulator.EventAccumulator(str(folder / "tensorboard"))
    return events.Reload()


def test_tensorboard_files_hold_the_scalars(tmp_path: Path) -> None:
    _write(tmp_path, range(1, 4))
    costs = _events(tmp_path).Scalars("cost/cost")
    assert [(event.step, round(event.value, 6)) for event in costs] == [(1, 0.1), (2, 0.2), (3, 0.3)]


def test_tensorboard_has_the_settings_and_the_placement(tmp_path: Path) -> None:
    plugin_data_pb2 = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    best = BestTracker([four_macros()])
    assert best.pictures() == {}
    with MetricsWriter(tmp_path, hyperparameters={"seed": 3, "flips": True, "design": ["toy6"]}) as writer:
        for iteration in (1, 2):  # the second time, the best placement is the same
            best.report(0, compute_costs(four_macros()), four_macros().initial, origin="test")
            writer.add_pictures(iteration, best.pictures())
    events = _events(tmp_path)
    (image,) = events.Images("placement/four_macros")
    with Image.open(io.BytesIO(image.encoded_image_string)) as picture:
        assert picture.size == (image.width, image.height)
    content = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    started = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
    shown = {name: value.WhichOneof("kind") for name, value in started.items()}
    assert shown == {"seed": "number_value", "flips": "bool_value", "design": "string_value"}
    assert started["seed"].number_value == 3 and started["design"].string_value == "['toy6']"


def test_every_documented_column_has_a_section() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text(encoding="utf-8")
    columns = re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)
    found = {column: tag(column) for column in columns}
    assert found["learner_entropy"] == "ppo/entropy" and found["learner_seconds"] == "speed/learner_seconds"
    assert found["cost_mean"] == "cost/cost_mean" and found["wirelength_best"] == "cost/wirelength_best"
    assert found["staleness_max"] == "data/staleness_max" and found["steps"] == "progress/steps"
    assert tag("design1_cost_mean") == "cost/design1_cost_mean"
    assert tag("actor_read_ms_p99") == "processes/actor_read_ms_p99"
    assert len(set(found.values())) == len(columns) > 40, "no two columns have one tag"


def test_tensorboard_files_are_named_in_the_order_of_starts_though_the_clock_was_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path, range(1, 4))
    (first,) = (tmp_path / "tensorboard").iterdir()
    minutes_ago = time.time() - 300
    monkeypatch.setattr(time, "time", lambda: minutes_ago)
    _write(tmp_path, range(3, 6), resumed_at=2)
    files = sorted((tmp_path / "tensorboard").iterdir())
    assert len(files) == 2 and files[0] == first


def test_metrics_of_episodes_by_hand() -> None:
    cheap = episode(0, version=4)._replace(costs=np.array([10.0, 0.1, 0.4, 0.6, 0.6]), reward=np.float32(-0.6))
    expensive = episode(1, version=5)._replace(costs=np.array([30.0, 0.3, 0.6, 1.0, 1.1]), reward=np.float32(-1.1))
    dead = episode(2, version=5)._replace(costs=np.full(5, np.nan), dead_end=np.array(True), reward=np.float32(-4))
    row = episode_metrics([cheap, expensive, dead], version=5)
    assert row["cost_mean"] == pytest.approx(0.85)
    assert row["cost_std"] == pytest.approx(0.25)
    assert row["cost_best"] == pytest.approx(0.6)
    assert row["wirelength_mean"] == pytest.approx(20)
    assert row["density_cost_mean"] == pytest.approx(0.5)
    assert row["congestion_cost_std"] == pytest.approx(0.2)
    assert row["reward_mean"] == pytest.approx(-1.9)
    assert row["dead_ends"] == 1
    assert (row["staleness_mean"], row["staleness_max"]) == (pytest.approx(1 / 3), 1)


def test_dead_ends_alone_have_no_cost() -> None:
    dead = episode(0)._replace(costs=np.full(5, np.nan), dead_end=np.array(True))
    row = episode_metrics([dead], version=0)
    assert math.isnan(row["cost_mean"]) and math.isnan(row["cost_best"])
