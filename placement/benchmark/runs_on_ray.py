"""Runs on a cluster: one Ray task per run, which receives the design's files and returns the result's."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from placement.benchmark.benchmark_config import BenchmarkConfig
from placement.benchmark.running import Job, Result, run
from placement.benchmark.scoring import Judge
from placement.config import ConfigError, RuntimeConfig
from placement.netlist.feasibility import ready
from placement.netlist.files import write_whole
from placement.netlist.load import load
from placement.runtimes.ray.ray_connection import opened

POLL_SECONDS = 0.5
START_SECONDS = 900.0
"""Wall-clock seconds in which the cluster must start a run while no run of this command takes its processors; a growing
cluster gets its machines in this time.
"""
CPUS = 1.0  # number of processors that a run takes
Files = dict[str, bytes]  # name → content of the files of one folder
Runner = Callable[[Job, threading.Event], Result | None]


@contextlib.contextmanager
def ray_runner(config: BenchmarkConfig, folder: Path) -> Iterator[Runner]:
    """Yields a function that runs a job somewhere on the cluster at `config.address` and stores its result here.

    It returns None if it was stopped; the placer's process then ends by its CPU limit. The machines of the cluster need
    this project and the files that `config.checkpoint` and `config.lef` name. `folder` is for notes on a Ray started by
    this command, which runs `config.parallel` jobs at once.

    Raises ConfigError if Ray is not installed, there is no cluster at the address, or it starts no run.
    """
    assert config.address is not None
    settings = RuntimeConfig(name="ray", address=config.address)
    folder.mkdir(parents=True, exist_ok=True)
    with opened(settings, folder, cpus=config.parallel, with_reverb=False) as ray:
        task = ray.remote(num_cpus=CPUS, max_retries=0, num_returns="streaming")(run_there)
        designs: dict[Path, Any] = {}
        processors = _Processors()

        def run_on_ray(job: Job, stopped: threading.Event) -> Result | None:
            if job.path not in designs:
                designs[job.path] = ray.put(_files(job.path, "*"))
            running = task.remote(job, config, designs[job.path], _files(job.result.parent, f"{job.result.stem}.*"))
            given, found = time.monotonic(), Files()
            with contextlib.ExitStack() as taken:
                while not found:  # the first item is empty, sent when the run begins; the last holds its files
                    while not ray.wait([running], timeout=POLL_SECONDS)[0]:
                        has_no_place = processors.idle_seconds(since=given) > START_SECONDS
                        if has_no_place or stopped.is_set():
                            ray.cancel(running, force=True)
                        if stopped.is_set():
                            return None
                        if has_no_place:
                            raise ConfigError(_not_started(ray, config.address))
                    found = ray.get(next(running))
                    if not found:
                        taken.enter_context(processors.taken())
            _write(job.result.parent, found)
            result: Result = json.loads(job.result.read_text(encoding="utf-8"))
            return result

        yield run_on_ray


class _Processors:
    """Counts the running runs of this command and measures the time since the last one ended."""

    def __init__(self) -> None:
        self._lock, self._runs, self._free = threading.Lock(), 0, time.monotonic()

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Counts a run while it takes its processor."""
        with self._lock:
            self._runs += 1
        try:
            yield
        finally:
            with self._lock:
                self._runs, self._free = self._runs - 1, time.monotonic()

    def idle_seconds(self, *, since: float) -> float:
        """Returns the wall-clock seconds since the last run ended, or since a later time; 0 while one runs."""
        with self._lock:
            return 0.0 if self._runs else time.monotonic() - max(self._free, since)


def _not_started(ray: Any, address: str | None) -> str:
    """Describes what a run needs and what the cluster has."""
    there, free = (found().get("CPU", 0.0) for found in (ray.cluster_resources, ray.available_resources))
    return (
        f"address={address!r}: the cluster started no run in {START_SECONDS:g} s: a run takes {CPUS:g} CPU, and the "
        f"cluster has {there:g}, {free:g} of them free; add machines, end other work there, or give another address"
    )


def run_there(job: Job, config: BenchmarkConfig, design: Files, kept: Files) -> Iterator[Files]:
    """Runs a job in its own folders, with the design's files and those of an earlier run.

    Yields no files once it has begun, and those of its result at the end.
    """
    yield {}
    with tempfile.TemporaryDirectory() as folder:
        here = dataclasses.replace(job, path=Path(folder) / "designs" / job.path.name, out=Path(folder) / "out")
        _write(here.path, design)
        _write(here.result.parent, kept)
        loaded = ready(load(here.path))
        run(here, config, loaded, Judge(here.path, loaded, full=config.full), threading.Event())
        found = _files(here.result.parent, "*")
    yield found


def _files(folder: Path, pattern: str) -> Files:
    return {path.name: path.read_bytes() for path in folder.glob(pattern) if path.is_file()}


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files, a result after the files that it names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(files, key=lambda name: name.endswith(".json")):
        write_whole(folder / name, files[name])
