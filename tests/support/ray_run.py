"""A real run on Ray in its own process, monitored line by line, for tests and for the soak."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load
from placement.runtimes.ray import ray_connection
from tests.support.recording import RECORD, UPDATE_SECONDS

WATCH = "WATCH "
LAST_WORDS = 30
LONG = 400.0
"""Timeout of all waits in seconds: a new process of a role imports for up to a minute on shared processors."""
EPISODES = 8
TIMING = {"start": 600.0, "heartbeat": 0.5, "shard_checkpoint": 2.0}
"""Other tests may run at the same time."""
ROOT = Path(__file__).resolve().parents[2]
SCRIPT = r"""
import json, os, sys
from placement.config import TrainConfig, build
from placement.runtimes.ray import driver
from placement.runtimes.ray.messages import Timing
from placement.runtimes.ray.role_process import Factories

def watch(view):
    seen = {str(one.who): {"pid": one.pid, "ready": one.ready, "address": one.address, "host": one.host,
                           **one.measures}
            for one in view.heartbeats}
    sys.stdout.write("WATCH " + json.dumps({"coordinator": view.coordinator, "seen": seen}) + "\n")
    sys.stdout.flush()

values = json.loads(sys.argv[1])
settings = build(TrainConfig, values["config"])
factories, timing = Factories(**values["factories"]), Timing(**values["timing"])
result = driver.run(settings, factories=factories, timing=timing, watch=watch)
print(("interrupted" if result.interrupted else "complete"), result.iterations, flush=True)
"""
FAKES = {"agent": "tests.support.fakes:FakeAgent", "learner": "tests.support.recording:RecordingLearner"}


class RayRun:
    """Starts the run; use it in a `with` statement, which leaves no process behind.

    Args:
        config: as `build(TrainConfig, …)` takes it.
        factories: fields of `Factories`; default: the real network.
        timing: fields of `Timing`; default: those of `TIMING`.
        environment: variables beside those of this process.
        prefix: of the command, such as one that runs it on another host.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        factories: Mapping[str, str] | None = None,
        timing: Mapping[str, float] | None = None,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        self._run_dir = Path(config["run_dir"])
        values = json.dumps({"config": config, "factories": factories or {}, "timing": {**TIMING, **(timing or {})}})
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", SCRIPT, values],
            cwd=ROOT,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.seen: dict[str, dict[str, Any]] = {}
        self.coordinator = 0
        self._below: dict[int, psutil.Process] = {}
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, name="reads the run", daemon=True)
        self._reader.start()

    def __enter__(self) -> RayRun:
        return self

    def __exit__(self, *error: object) -> None:
        below = self.below()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        ray_connection.end_all(below, timeout=0.0)
        self._reader.join(30)
        ray_connection.remove_files(self._run_dir / ray_connection.FOLDER_FILE)

    def below(self) -> list[psutil.Process]:
        """Returns the processes of the run now and at all earlier calls, without its first one."""
        self._below |= {process.pid: process for process in ray_connection.descendants(self.process.pid)}
        return list(self._below.values())

    def until(self, happened: Callable[[], Any], what: str, *, timeout: float) -> Any:
        """Waits until `happened()` is true, checking at every line; returns its result.

        Raises:
            AssertionError: it did not within `timeout` seconds, or the run ended before.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                found = happened()
                if found:
                    return found
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    raise AssertionError(f"{what}: did not happen; {self._last_words()}")
                self._changed.wait(left)

    def pid(self, name: str) -> int:
        """Returns the process id of a role that has started; 0 if there is none."""
        one = self.seen.get(name, {})
        return int(one["pid"]) if one.get("ready") else 0

    def iteration(self) -> int:
        """The last iteration reported by the learner."""
        return int(self.seen.get("learner", {}).get("iteration", -1))

    def kill(self, name: str, *, timeout: float) -> int:
        """Kills a role's process as soon as it has started; returns its id."""
        while True:
            pid = int(self.until(lambda: self.pid(name), f"{name} has started", timeout=timeout))
            self.below()
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:  # it has just died by itself
                self.until(partial(self._anew, name, pid), f"{name} is restarted", timeout=timeout)
            else:
                return pid

    def _anew(self, name: str, pid: int) -> bool:
        return self.pid(name) != pid

    def send(self, number: signal.Signals) -> None:
        """Signals the whole process group, as a terminal does."""
        os.killpg(self.process.pid, number)

    def end(self, *, timeout: float) -> int:
        """Waits for the end; returns the exit code.

        Raises:
            AssertionError: it did not end within `timeout` seconds.
        """
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the run did not end within {timeout:g} s; {self._last_words()}") from None
        self._reader.join(timeout)
        return code

    def output(self) -> str:
        """The output of the run without the monitoring."""
        return "".join(line for line in self.lines if not line.startswith(WATCH))

    def _last_words(self) -> str:
        """Returns text for an error message, short enough that a truncated log still names the test."""
        seen = {name: (one["ready"], one["host"], one["address"]) for name, one in self.seen.items()}
        return f"seen: {seen}; the run's last words:\n" + "".join(self.output().splitlines(keepends=True)[-LAST_WORDS:])

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                watched = _watched(line)
                if watched:
                    self.seen, self.coordinator = watched["seen"], watched["coordinator"]
                else:
                    self.lines.append(line)
                self._changed.notify_all()
        self.process.stdout.close()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


def _watched(line: str) -> dict[str, Any] | None:
    """Parses a line of the monitoring; None if it is another one, or another process wrote into it."""
    if not line.startswith(WATCH):
        return None
    try:
        found: dict[str, Any] = json.loads(line.removeprefix(WATCH))
    except ValueError:
        return None
    return found


def toy(run_dir: Path, *, iterations: int, runtime: Mapping[str, Any], episodes: int = EPISODES) -> dict[str, Any]:
    """Returns settings of a run on the toy design that exercises its processes."""
    return {
        "design": ["toy6"],
        "run_dir": str(run_dir),
        "seed": 3,
        "ppo": {"iterations": iterations, "episodes_per_iteration": episodes},
        "runtime": {
            "name": "ray",
            "actors": 2,
            "envs_per_actor": 4,
            "max_staleness": 1,
            "checkpoint_every": 20,
            "evaluate_every": 0,
            **runtime,
        },
    }


def endless(folder: Path) -> RayRun:
    """Returns a run of seven processes, in `folder/run`; its learner's data are recorded in `folder/record`."""
    config = toy(folder / "run", iterations=10**6, runtime={"shards": 2, "caches": 2, "fan_out": 2})
    variables = {RECORD: str(folder / "record"), UPDATE_SECONDS: "0.05", "XLA_FLAGS": ""}
    return RayRun(config, factories=FAKES, environment=variables)


def unreadable_lines(lines: Sequence[str]) -> list[str]:
    """Returns unreadable lines: tracebacks, native stacks, leaks, log messages of libraries."""
    return [line for line in lines if re.search(r"Traceback|\*\*\*|^ +@ |leaked|logging\.cc|[EWF]\d{4} ", line)]


def recorded(path: Path) -> Sequence[dict[str, Any]]:
    """Returns the records of a `RecordingLearner` without a truncated line."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def check_record(folder: Path) -> None:
    """Checks that no episode is partial or duplicated, each has one version, and the best placement has its cost."""
    lines = recorded(folder / "record")
    episodes = [episode for line in lines for episode in line["episodes"]]
    assert all(len(line["episodes"]) == EPISODES for line in lines)
    identities = [tuple(episode["identity"]) for episode in episodes]
    assert len(set(identities)) == len(identities), "an episode was counted twice"
    steps = len(load("toy6").placing_order)
    assert all(episode["taken"] == episode["length"] for episode in episodes)
    assert all(episode["length"] == steps or episode["dead_end"] for episode in episodes), "half an episode"
    assert all(episode["drawn_with"] == [episode["version"]] for episode in episodes), (
        "parameters changed within an episode"
    )
    best = _best(folder / "run")
    written = [line for line in lines if line["iteration"] < lines[-1]["iteration"]]
    cheapest = min(episode["cost"] for line in written for episode in line["episodes"] if not episode["dead_end"])
    assert best <= cheapest * (1 + 1e-12), "a better placement was lost"


def _best(folder: Path) -> float:
    """Returns the cost of the best placement, in its file and as reported: the run writes one after the other."""
    for _ in range(20):
        best = json.loads((folder / "best.json").read_text())["toy6"]["cost"]
        _, placement = read_placement(folder / "best.plc", load("toy6").netlist)
        cost = compute_costs(load("toy6"), placement, weights=DEFAULT_WEIGHTS).total
        if cost == pytest.approx(best, rel=1e-12):
            return float(best)
        time.sleep(0.1)
    raise AssertionError(f"{folder}: the best placement costs {cost}, and the run says {best}")
