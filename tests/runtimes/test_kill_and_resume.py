"""Real training processes that are killed, stopped and restarted with the same command."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load
from placement.training.checkpoint import Checkpoints
from tests.support.object_server import object_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.cluster
LONG = 400.0
REPOSITORY = Path(__file__).resolve().parents[2]

# The local runtime with a network that needs no compilation, so that many starts take seconds.
FAKE = """
import sys
from placement.config import PPOConfig, ReplayConfig, RuntimeConfig, TrainConfig
from placement.runtimes import local
from tests.support.fakes import FakeAgent, FakeLearner
local.Agent, local.Learner = FakeAgent, FakeLearner
result = local.run(TrainConfig(
    design=("toy6",), run_dir=sys.argv[1], seed=3,
    ppo=PPOConfig(iterations=int(sys.argv[2]), episodes_per_iteration=8),
    replay=ReplayConfig(name=sys.argv[3]),
    runtime=RuntimeConfig(envs_per_actor=4, max_staleness=0, checkpoint_every=3, evaluate_every=0),
))
print("interrupted" if result.interrupted else "complete", result.iterations, flush=True)
"""


class Process:
    """A training process whose lines are read one by one, with a deadline."""

    def __init__(self, *command: str, folder: Path = REPOSITORY, environment: Mapping[str, str] | None = None) -> None:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), **(environment or {})}
        self.process = subprocess.Popen([sys.executable, *command], cwd=folder, env=variables, **pipes)
        self._deadline = threading.Timer(LONG, self.process.kill)  # also ends the reading of lines
        self._deadline.start()
        self.output: list[str] = []

    def until(self, text: str) -> None:
        """Reads lines until one contains `text`."""
        for line in self._lines():
            if text in line:
                return
        pytest.fail(f"no line contains {text!r}:\n{''.join(self.output)}")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Reads to the end; returns the exit code."""
        for _ in self._lines():
            pass
        code = self.process.wait(LONG)
        self._deadline.cancel()
        self.process.stdout.close()
        return code

    def _lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)
            yield line


def _rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def _check_whole(folder: Path, iterations: int) -> None:
    """Checks that every iteration occurs once, and that the best placement has its reported cost."""
    assert [int(row["iteration"]) for row in _rows(folder)] == list(range(1, iterations + 1))
    design = load("toy6")
    _, placement = read_placement(folder / "best.plc", design.netlist)
    reported = json.loads((folder / "best.json").read_text())["toy6"]["cost"]
    assert compute_costs(design, placement, weights=DEFAULT_WEIGHTS).total == pytest.approx(reported, rel=1e-12)
    assert reported <= min(float(row["cost_best"]) for row in _rows(folder)) + 1e-8


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_gets_done(tmp_path: Path) -> None:
    command = ("-c", FAKE, str(tmp_path), "40", "memory")
    for line in ("iteration 5/", "iteration 14/"):
        process = Process(*command)
        process.until(line)
        process.send(signal.SIGKILL)
        assert process.end() == -signal.SIGKILL
    process = Process(*command)
    process.until("resumes after iteration")
    assert process.end() == 0
    assert "complete 40\n" in process.output
    _check_whole(tmp_path, 40)
    # In lock-step, a run that was killed ends like one that was not.
    undisturbed = Process("-c", FAKE, str(tmp_path / "undisturbed"), "40", "memory")
    assert undisturbed.end() == 0
    columns = ("cost_mean", "cost_best", "learner_loss")
    one, other = ([[row[key] for key in columns] for row in _rows(run)] for run in (tmp_path, tmp_path / "undisturbed"))
    assert one == other


@pytest.mark.parametrize(("number", "replay"), [(signal.SIGINT, "auto"), (signal.SIGTERM, "memory")])
def test_a_run_that_is_stopped_saves_and_says_how_to_resume(
    tmp_path: Path, number: signal.Signals, replay: str
) -> None:
    command = ("-c", FAKE, str(tmp_path), "100000", replay)
    process = Process(*command)
    process.until("iteration 4/")
    process.send(number)
    assert process.end() == 0, "".join(process.output)
    done = len(_rows(tmp_path))
    assert f"interrupted {done}\n" in process.output
    assert any("the same command resumes" in line for line in process.output)
    checkpoints = Checkpoints(tmp_path / "checkpoints", read_only=True)
    assert checkpoints.steps()[-1] == done
    checkpoints.close()
    _check_whole(tmp_path, done)


@pytest.mark.slow
def test_real_training_is_killed_and_resumes(tmp_path: Path) -> None:
    settings = ["ppo.iterations=6", "replay.name=memory", f"run_dir={tmp_path}"]
    command = ("train.py", "preset=test", *settings)
    process = Process(*command)
    process.until("iteration 3/")
    process.send(signal.SIGKILL)
    assert process.end() == -signal.SIGKILL
    process = Process(*command)
    process.until("resumes after iteration")
    assert process.end() == 0, "".join(process.output)
    _check_whole(tmp_path, 6)
    assert float(_rows(tmp_path)[-1]["learner_samples"]) > 0


@pytest.mark.slow
def test_a_run_in_object_storage_is_killed_and_resumes_on_another_machine(tmp_path: Path) -> None:
    with object_server(tmp_path) as server:
        settings = ["ppo.iterations=60", "replay.name=memory", "runtime.checkpoint_every=5", "run_dir=s3://bucket/mine"]
        command = (str(REPOSITORY / "train.py"), "preset=test", *settings)
        folders = [tmp_path / name for name in ("one", "other", "third")]
        for folder in folders:
            folder.mkdir()
        first = Process(*command, folder=folders[0], environment=server.environment)
        first.until("iteration 20/")
        wait_until(lambda: "PUT /bucket/mine/.manifest.json" in (tmp_path / "s3.log").read_text())
        first.send(signal.SIGSTOP)  # otherwise it might finish before the second one checks, on a busy machine
        # A second one waits to see whether the first one is alive.
        second = Process(*command, folder=folders[2], environment=server.environment)
        second.until("to see whether process")
        first.send(signal.SIGKILL)
        assert first.end() == -signal.SIGKILL
        assert second.end() == 0, "".join(second.output)
        text = "".join(second.output)
        assert "files fetched into runs/remote/s3/bucket/mine" in text and "resumes after iteration" in text
        _check_whole(folders[2] / "runs/remote/s3/bucket/mine", 60)
        # A complete run is downloaded completely, too.
        last = Process(*command, folder=folders[1], environment=server.environment)
        assert last.end() == 0, "".join(last.output)
        assert "iteration" not in "".join(line for line in last.output if line.startswith("iteration"))
        _check_whole(folders[1] / "runs/remote/s3/bucket/mine", 60)
        assert (folders[1] / "runs/remote/s3/bucket/mine/report.html").is_file()
