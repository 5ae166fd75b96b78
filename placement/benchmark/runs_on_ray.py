"""Runs on a cluster: a Ray task for each, which gets the design's files and returns the result's."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from placement.benchmark.benchmark_config import BenchmarkConfig
from placement.benchmark.running import Job, Result, run
from placement.benchmark.scoring import Judge
from placement.config import RuntimeConfig
from placement.netlist.feasibility import ready
from placement.netlist.files import write_whole
from placement.netlist.load import load
from placement.runtimes.ray.ray_connection import opened

POLL_SECONDS = 0.5
Files = dict[str, bytes]
"""Name → content of the files of one folder."""
Runner = Callable[[Job, threading.Event], Result | None]


@contextlib.contextmanager
def ray_runner(config: BenchmarkConfig, folder: Path) -> Iterator[Runner]:
    """A function that runs a job somewhere on the cluster at `config.address`, and keeps its result here.

    It returns None if it was stopped; the placer's own process then ends with its CPU time at the latest. Machines of
    the cluster need this project, and the files that `config.checkpoint` and `config.lef` name. `folder` is for notes
    on a Ray of this command's own, which runs `config.parallel` jobs at once.

    Raises ConfigError where there is no Ray, or no cluster at the address.
    """
    assert config.address is not None
    settings = RuntimeConfig(name="ray", address=config.address)
    folder.mkdir(parents=True, exist_ok=True)
    with opened(settings, folder, cpus=config.parallel, with_reverb=False) as ray:
        task = ray.remote(num_cpus=1, max_retries=0)(run_there)
        designs: dict[Path, Any] = {}

        def run_on_ray(job: Job, stopped: threading.Event) -> Result | None:
            if job.path not in designs:
                designs[job.path] = ray.put(_files(job.path, "*"))
            running = task.remote(job, config, designs[job.path], _files(job.result.parent, f"{job.result.stem}.*"))
            while not ray.wait([running], timeout=POLL_SECONDS)[0]:
                if stopped.is_set():
                    ray.cancel(running, force=True)
                    return None
            _write(job.result.parent, ray.get(running))
            result: Result = json.loads(job.result.read_text(encoding="utf-8"))
            return result

        yield run_on_ray


def run_there(job: Job, config: BenchmarkConfig, design: Files, kept: Files) -> Files:
    """Runs a job in folders of its own, with the design's files and those that an earlier run left; its result's."""
    with tempfile.TemporaryDirectory() as folder:
        here = dataclasses.replace(job, path=Path(folder) / "designs" / job.path.name, out=Path(folder) / "out")
        _write(here.path, design)
        _write(here.result.parent, kept)
        loaded = ready(load(here.path))
        run(here, config, loaded, Judge(here.path, loaded, full=config.full), threading.Event())
        return _files(here.result.parent, "*")


def _files(folder: Path, pattern: str) -> Files:
    return {path.name: path.read_bytes() for path in folder.glob(pattern) if path.is_file()}


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files, a result after what it names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(files, key=lambda name: name.endswith(".json")):
        write_whole(folder / name, files[name])
