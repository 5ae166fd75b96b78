"""`benchmark address=`: a task for each run, on a stand-in for Ray and on a Ray of this machine."""

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
from typing import Any

import pytest

from placement.benchmark import running, runs_on_ray
from placement.benchmark.benchmark_config import BenchmarkConfig
from placement.benchmark.placers_to_run import Placer
from placement.benchmark.running import Job
from placement.benchmark.suites import read_suite
from placement.cli.main import main
from placement.netlist.load import data_folder

ROOT = Path(__file__).resolve().parents[2]
TOY = data_folder("netlists") / "toy6"
COPY = Placer("copy", 2.0, command="cp {design}/initial.plc placement.plc")


class StandIn:
    """Runs a task once it is waited for, its arguments and result copied as between machines; or never."""

    def __init__(self, *, ends: bool = True) -> None:
        self.ends, self.cancelled = ends, 0

    def remote(self, **options: Any) -> Callable[[Callable[..., Any]], Any]:
        assert options == {"num_cpus": 1, "max_retries": 0}

        def wrapped(function: Callable[..., Any]) -> Any:
            class Task:
                @staticmethod
                def remote(*arguments: Any) -> bytes:
                    return pickle.dumps((function, arguments))

            return Task

        return wrapped

    def put(self, value: Any) -> Any:
        return value

    def wait(self, tasks: list[bytes], *, timeout: float) -> tuple[list[bytes], list[bytes]]:
        return (tasks, []) if self.ends else ([], tasks)

    def get(self, task: bytes) -> Any:
        function, arguments = pickle.loads(task)  # noqa: S301
        return pickle.loads(pickle.dumps(function(*arguments)))  # noqa: S301

    def cancel(self, task: bytes, *, force: bool) -> None:
        self.cancelled += force


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
    with runner(StandIn(), tmp_path, monkeypatch) as run:  # judged again there, not run: no process can be started
        again = run(own, threading.Event())
    assert again is not None and again["scores"] == result["scores"]


def test_a_stopped_run_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped, ray = threading.Event(), StandIn(ends=False)
    stopped.set()
    with runner(ray, tmp_path, monkeypatch) as run:
        assert run(job(tmp_path), stopped) is None
    assert ray.cancelled == 1 and not job(tmp_path).result.exists()


@pytest.mark.cluster
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_runs_on_a_ray_of_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["benchmark", "smoke", "designs=toy6", "seeds=2", f"out={tmp_path}", "plots=false", "address=local"]
    words += ["placers=greedy@0.5", "parallel=2", "--commands", f"copy={COPY.command}"]
    ended = subprocess.run(  # in a process of its own, for Ray reads its token once
        [sys.executable, "-m", "placement", *words], cwd=ROOT, capture_output=True, text=True, timeout=500, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*/toy6/seed*.json"))]
    assert [(one["placer"], one["seed"], one["status"]) for one in found] == [
        (placer, seed, "ok") for placer in ("copy@2", "greedy@0.5") for seed in (0, 1)
    ]
    assert main(["benchmark", "smoke", f"out={tmp_path}", "address=127.0.0.1:9"]) == 2
    assert "address='127.0.0.1:9': no Ray cluster can be used there" in capsys.readouterr().err
