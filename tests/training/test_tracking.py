"""A tracker's view of a run: everything once, later after an outage; MLflow's server confirms it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from placement.config import ConfigError, TrackingConfig, TrainConfig, build
from placement.training import tracking
from placement.training.metrics import MetricsWriter
from placement.training.run_folder import default_run_dir
from placement.training.tracking import TrackingError, make_tracker, tracked
from tests.support.waiting import wait_until


class FakeTracker:
    """A tracker that records, and can be unavailable."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.files: list[str] = []
        self.ended: list[bool] = []
        self.runs: list[str | None] = []
        self.parameters: Mapping[str, Any] = {}
        self.away, self.called, self.run = threading.Event(), threading.Event(), "run-7"

    def make(self, config: TrackingConfig, name: str, parameters: Mapping[str, Any], run: str | None, *, folder: Path):
        self.parameters = parameters
        self.runs.append(run)
        return self

    def metrics(self, row: Mapping[str, float], *, step: int) -> None:
        self.called.set()
        if self.away.is_set():
            raise TrackingError("nobody there")
        assert row["iteration"] == step and "gone" not in row
        self.steps.append(step)

    def artefacts(self, files: Sequence[Path]) -> None:
        self.files += [file.name for file in files]

    def end(self, *, finished: bool) -> None:
        self.ended.append(finished)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainConfig:
    monkeypatch.setattr(tracking, "INTERVAL", 0.01)
    return TrainConfig(("toy6",), str(tmp_path / "run"), tracking=TrackingConfig("mlflow"))


def learn(config: TrainConfig, iterations: range) -> None:
    with MetricsWriter(config.run_dir, iteration=iterations.start - 1) as writer:
        for iteration in iterations:
            writer.write({"iteration": iteration, "cost": 1 / iteration, "gone": float("nan")})


def test_nothing_is_sent_by_default(config: TrainConfig) -> None:
    tracker = FakeTracker()
    with tracked(dataclasses.replace(config, tracking=TrackingConfig()), make=tracker.make):
        pass
    assert not tracker.runs and not Path(config.run_dir).exists()


def test_everything_is_sent_once_and_a_resumed_run_continues(config: TrainConfig) -> None:
    tracker = FakeTracker()
    with tracked(config, make=tracker.make):
        learn(config, range(1, 4))
        wait_until(lambda: tracker.steps == [1, 2, 3])
        (Path(config.run_dir) / "best.plc").write_text("")
        (Path(config.run_dir) / "other.txt").write_text("")
    with pytest.raises(SystemExit), tracked(config, make=tracker.make):
        learn(config, range(3, 6))  # from a checkpoint of iteration 2
        raise SystemExit(130)
    assert tracker.steps == [1, 2, 3, 4, 5]
    assert tracker.runs == [None, "run-7"]
    assert tracker.files == ["best.plc"] and tracker.ended == [True, False]
    assert tracker.parameters["ppo.iterations"] == config.ppo.iterations
    elsewhere = dataclasses.replace(config, tracking=dataclasses.replace(config.tracking, uri="http://elsewhere"))
    with tracked(elsewhere, make=tracker.make):
        pass
    assert tracker.runs[-1] is None and tracker.steps[5:] == [1, 2, 3, 4, 5]


def test_rows_wait_for_a_tracker_that_is_away(config: TrainConfig, caplog: pytest.LogCaptureFixture) -> None:
    tracker = FakeTracker()
    tracker.away.set()
    with tracked(config, make=tracker.make):
        learn(config, range(1, 3))
        assert tracker.called.wait(30)
        wait_until(lambda: "rows will be sent later: nobody there" in caplog.text)
        tracker.away.clear()
    assert tracker.steps == [1, 2]
    caplog.clear()
    tracker.away.set()
    with tracked(config, make=tracker.make):
        learn(config, range(3, 4))
    assert "not everything was sent (iterations up to 2 were): nobody there" in caplog.text


def test_a_tracker_that_hangs_does_not_hold_the_end(config: TrainConfig, monkeypatch, caplog) -> None:
    tracker, released = FakeTracker(), threading.Event()
    monkeypatch.setattr(tracking, "STOP_SECONDS", 0.05)
    monkeypatch.setattr(tracker, "metrics", lambda row, *, step: (tracker.called.set(), released.wait(30)))
    with tracked(config, make=tracker.make):
        learn(config, range(1, 2))
        assert tracker.called.wait(30)
    assert "no answer in 0.05 s; iterations after 0, or the results, were not sent" in caplog.text
    released.set()


@pytest.mark.parametrize("last", ["artefacts", "end"])
def test_a_tracker_that_hangs_with_the_results_does_not_hold_the_end(
    last: str, config: TrainConfig, monkeypatch, caplog
):
    tracker, released = FakeTracker(), threading.Event()
    monkeypatch.setattr(tracking, "STOP_SECONDS", 0.5)
    monkeypatch.setattr(tracker, last, lambda *_, **__: released.wait(30))
    with tracked(config, make=tracker.make):
        learn(config, range(1, 2))
    assert "no answer in 0.5 s; iterations after 1, or the results, were not sent" in caplog.text
    released.set()


@pytest.mark.parametrize("damaged", ["", "{", "[1]", '{"name": "mlflow"}', '{"run": "a", "iteration": "many"}'])
def test_a_damaged_record_is_reported_and_the_tracker_gets_a_new_run(damaged: str, config: TrainConfig, caplog) -> None:
    tracker = FakeTracker()
    with tracked(config, make=tracker.make):
        learn(config, range(1, 3))
    (Path(config.run_dir) / tracking.RECORD_NAME).write_text(damaged)
    with tracked(config, make=tracker.make):
        pass
    assert "tracking.json is damaged" in caplog.text
    assert tracker.runs == [None, None] and tracker.steps == [1, 2, 1, 2]


def test_the_run_folder_is_the_same_with_a_tracker() -> None:
    values = {"design": "toy6", "seed": 0, "tracking": {"name": "none"}}
    assert (
        default_run_dir(values)
        == default_run_dir({**values, "tracking": {"name": "mlflow"}})
        == default_run_dir({"design": "toy6", "seed": 0})
    )


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_library_that_is_missing_is_named(name: str, config: TrainConfig, monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=rf"tracking={name}: needs the extra {name}"):
        make_tracker(TrackingConfig(name), "toy6", {}, None, folder=tmp_path)
    with pytest.raises(ConfigError, match=r"tracking\.name='comet'"):
        build(TrackingConfig, {"name": "comet"}, "tracking.")


@contextlib.contextmanager
def mlflow_server(folder: Path) -> Iterator[str]:
    """Yields the address of MLflow's own server, run here."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", address.rpartition(":")[2]]
    command += ["--backend-store-uri", f"sqlite:///{folder}/runs.db", "--artifacts-destination", str(folder / "kept")]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*command, "--workers", "1"], stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until(lambda: process.poll() is not None or answers(f"{address}/health"))
        assert process.poll() is None, (folder / "log").read_text()
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # its workers, too
        process.wait(timeout=60)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


def response(url: str, **body: Any) -> dict[str, Any]:
    """Returns the server's answer to a request to its REST interface."""
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflows_own_server_has_parameters_metrics_and_files(config: TrainConfig, tmp_path: Path) -> None:
    pytest.importorskip("mlflow.server", reason="needs mlflow with its server")
    with mlflow_server(tmp_path) as address:
        settings = TrackingConfig("mlflow", uri=address, project="toys")
        config = dataclasses.replace(config, tracking=settings)
        with tracked(config):
            learn(config, range(1, 4))
            (Path(config.run_dir) / "best.plc").write_text("placement")
        with tracked(config):
            learn(config, range(4, 5))
        api = f"{address}/api/2.0/mlflow"
        experiment = response(f"{api}/experiments/get-by-name?experiment_name=toys")["experiment"]["experiment_id"]
        (run,) = response(f"{api}/runs/search", experiment_ids=[experiment])["runs"]
        number = run["info"]["run_id"]
        history = response(f"{api}/metrics/get-history?run_id={number}&metric_key=cost&max_results=9")["metrics"]
        files = response(f"{api}/artifacts/list?run_id={number}")["files"]
    assert run["info"]["status"] == "FINISHED"
    assert {"key": "ppo.iterations", "value": str(config.ppo.iterations)} in run["data"]["params"]
    assert [(one["step"], one["value"]) for one in history] == [(step, pytest.approx(1 / step)) for step in range(1, 5)]
    assert [file["path"] for file in files] == ["best.plc"]
