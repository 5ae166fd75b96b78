"""`benchmark address=`: one task per run, on a fake Ray and on a local Ray."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from placement.benchmark import running, runs_on_ray
from placement.benchmark.benchmark_config import BenchmarkConfig
from placement.benchmark.placers_to_run import Placer
from placement.benchmark.running import Job
from placement.benchmark.suites import read_suite
from placement.cli.main import main
from placement.config import ConfigError
from placement.netlist.load import data_folder

ROOT = Path(__file__).resolve().parents[2]
TOY = data_folder("netlists") / "toy6"
COPY = Placer("copy", 2.0, command="cp {design}/initial.plc placement.plc")


class StandIn:
    """Runs a task when its results are fetched, copied as between machines; a task may never begin or never end."""

    def __init__(self, *, begins: bool = True, ends: bool = True) -> None:
        self.begins, self.ends, self.cancelled = begins, ends, 0

    def remote(self, **options: Any) -> Callable[[Callable[..., Any]], Any]:
        assert options == {"num_cpus": 1, "max_retries": 0, "num_returns": "streaming"}

        def wrapped(function: Callable[..., Any]) -> Any:
            class Task:
                @staticmethod
                def remote(*arguments: Any) -> Iterator[bytes]:
                    given = pickle.loads(pickle.dumps(arguments))  # noqa: S301
                    return map(pickle.dumps, function(*given))

            return Task

        return wrapped

    def put(self, value: Any) -> Any:
        return value

    def wait(self, tasks: list[Iterator[bytes]], *, timeout: float) -> tuple[list[Any], list[Any]]:
        if self.begins:
            self.begins = self.ends
            return tasks, []
        return [], tasks

    def get(self, reference: bytes) -> Any:
        return pickle.loads(reference)  # noqa: S301

    def cancel(self, task: Any, *, force: bool) -> None:
        self.cancelled += force

    def cluster_resources(self) -> dict[str, float]:
        return {"memory": 8e9, "CPU": 4.0}

    def available_resources(self) -> dict[str, float]:
        return {"memory": 8e9}


@contextlib.contextmanager
def runner(ray: StandIn, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[runs_on_ray.Runner]:
    patch.setattr(runs_on_ray, "opened", lambda *_, **__: contextlib.nullcontext(ray))
    with runs_on_ray.ray_runner(BenchmarkConfig(address="local"), folder) as found:
        yield found


def job(folder: Path) -> Job:
    suite = read_suite("smoke")
    return Job(suite, suite.designs[0], TOY, COPY, 3, folder)


def test_a_run_leaves_here_what_it_leaves_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = job(tmp_path)
    with runner(StandIn(), tmp_path, monkeypatch) as run:
        result = run(own, threading.Event())
    assert result is not None and (result["status"], result["seed"]) == ("ok", 3)
    assert own.known() == result, "with the placement that it names"
    text = own.result.read_text()
    own.result.write_text(text.replace('"scores": {', '"scores": {}, "more": {'))
    assert own.known()["scores"] == {}  # type: ignore[index]
    monkeypatch.setattr(running, "run_process", None)
    with runner(StandIn(), tmp_path, monkeypatch) as run:  # scored again there, not run: no process can be started
        again = run(own, threading.Event())
    assert again is not None and again["scores"] == result["scores"]


def test_a_stopped_run_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()
    stopped.set()
    for ray in StandIn(begins=False), StandIn(ends=False):
        with runner(ray, tmp_path, monkeypatch) as run:
            assert run(job(tmp_path), stopped) is None
        assert ray.cancelled == 1 and not job(tmp_path).result.exists()


def test_a_run_that_the_cluster_does_not_start_ends_with_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_on_ray, "START_SECONDS", 0.0)
    ray = StandIn(begins=False)
    message_text = (
        r"address='local': the cluster started no run in 0 s: a run takes 1 CPU, and the cluster has 4, 0 of them"
    )
    with runner(ray, tmp_path, monkeypatch) as run, pytest.raises(ConfigError, match=message_text):
        run(job(tmp_path), threading.Event())
    assert ray.cancelled == 1


def test_a_run_that_waits_for_others_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time counts from the end of this command's last run, or from the submission of this one."""
    now = [100.0]
    monkeypatch.setattr(runs_on_ray, "time", SimpleNamespace(monotonic=lambda: now[0]))
    processors = runs_on_ray._Processors()
    with processors.taken():
        now[0] = 5000.0
        assert processors.idle_seconds(since=200.0) == 0
    now[0] = 5007.0
    assert processors.idle_seconds(since=200.0) == 7
    assert processors.idle_seconds(since=5004.0) == 3


@pytest.mark.cluster
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_runs_on_a_ray_of_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["benchmark", "smoke", "designs=toy6", "seeds=2", f"out={tmp_path}", "plots=false", "address=local"]
    words += ["placers=greedy@0.5", "parallel=2", "--commands", f"copy={COPY.command}"]
    ended = subprocess.run(  # in a separate process, because Ray reads its token once
        [sys.executable, "-m", "placement", *words], cwd=ROOT, capture_output=True, text=True, timeout=500, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*/toy6/seed*.json"))]
    assert [(one["placer"], one["seed"], one["status"]) for one in found] == [
        (placer, seed, "ok") for placer in ("copy@2", "greedy@0.5") for seed in (0, 1)
    ]
    assert main(["benchmark", "smoke", f"out={tmp_path}", "address=127.0.0.1:9"]) == 2
    assert "address='127.0.0.1:9': no usable Ray cluster at this address" in capsys.readouterr().err
