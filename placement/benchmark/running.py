"""Runs of placers, each in its own process and folder: timed, judged, and stored as one JSON file."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import gzip
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import placement
from placement.benchmark.benchmark_config import BenchmarkConfig
from placement.benchmark.built_in import CURVE_NAME, PLACEMENT_NAME
from placement.benchmark.placers_to_run import Placer, arguments, written_placement
from placement.benchmark.scoring import OF_COLOQUINTE, Judge, broken_rules
from placement.benchmark.suites import Suite, SuiteDesign
from placement.evaluation.placements import read_file
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import write_placement

Result = dict[str, Any]
SCHEMA = 1
LATE_SHARE, LATE_SECONDS = 0.1, 5.0
"""Excess over the CPU seconds that a run may use: a share, and seconds for loading an interpreter and a design."""
WAIT_SHARE, WAIT_SECONDS = 20.0, 120.0  # wall-clock limit of a run: seconds per CPU second, and additional seconds
POLL_SECONDS = 0.02
MOST_POINTS = 40  # maximum number of points of a stored curve
MOST_REASON = 300  # maximum length of a stored reason, in characters


class Usage(NamedTuple):
    """Exit status of a process and its resource usage, including the processes that it waited for.

    A negative status is the number of the signal that ended it.
    """

    status: int
    cpu_seconds: float
    wall_seconds: float
    memory_mb: float
    hung: bool


@dataclasses.dataclass(frozen=True)
class Job:
    """One run: a placer on a design with a seed."""

    suite: Suite
    one: SuiteDesign
    path: Path
    placer: Placer
    seed: int
    out: Path

    @property
    def result(self) -> Path:
        """The JSON file of the run."""
        return self.out / self.placer.folder / self.one.name / f"seed{self.seed}.json"

    @property
    def title(self) -> str:
        return f"{self.placer.name} on {self.one.name}, seed {self.seed}"

    def identity(self) -> dict[str, Any]:
        """What distinguishes this run from others."""
        return {
            "schema": SCHEMA,
            "suite": self.suite.name,
            "suite_version": self.suite.version,
            "design": self.one.name,
            "split": self.one.split,
            "checksum": self.one.checksum,
            "baseline": self.one.baseline,
            "placer": self.placer.name,
            "kind": self.placer.kind,
            "seconds": self.placer.seconds,
            "seed": self.seed,
            "template": self.placer.command,
            "file_sha256": hashlib.sha256(self.placer.file.read_bytes()).hexdigest() if self.placer.file else None,
        }

    @property
    def kept(self) -> Path:
        """File of the placement, as named in the result."""
        return self.result.with_suffix(".plc.gz")

    @property
    def drawn(self) -> Path | None:
        """File of the cells and routes to draw for a single design; None for a suite."""
        return None if self.suite.version else self.result.with_suffix(".npz")

    def known(self) -> dict[str, Any] | None:
        """Returns the result on disk; None if there is none of this run, or its placement differs."""
        try:
            result: dict[str, Any] = json.loads(self.result.read_text(encoding="utf-8"))
            same = all(result.get(key) == value for key, value in self.identity().items())
            if same and result["status"] == "ok":
                same = hashlib.sha256(self.kept.read_bytes()).hexdigest() == result["placement_sha256"]
        except (OSError, ValueError, KeyError):
            return None
        return result if same else None


def is_complete(result: Mapping[str, Any] | None, judge: Judge) -> bool:
    """Returns whether a result has all scores of the judge, from this version of the full evaluation."""
    if result is None or result["status"] != "ok":
        return result is not None
    return judge.names <= set(result["scores"]) and result.get("full_evaluation", 0) >= judge.full_evaluation


def run(job: Job, config: BenchmarkConfig, design: Design, judge: Judge, stopped: threading.Event) -> Result | None:
    """Runs a job and stores its result; None if it was stopped. A result with missing scores is only rescored."""
    result = job.known()
    if result is None:
        result = _placed(job, config, design, stopped)
        if result is None:
            return None
        write_whole(job.result, result_text(result))
    if result["status"] == "ok":
        found, _ = read_file(str(job.kept), str(job.path), design)  # as rounded in the file
        try:
            # Kept, because coloquinte may not be installed here.
            of_coloquinte = {name: score for name, score in result["scores"].items() if name in OF_COLOQUINTE}
            result["scores"] = of_coloquinte | judge.scores(found, drawn=job.drawn, stopped=stopped.is_set)
            result["full_evaluation"] = judge.full_evaluation
        except DesignError as error:
            result |= {"status": "failed", "reason": str(error)[:MOST_REASON]}
        if stopped.is_set():
            return None
        write_whole(job.result, result_text(result))
    return result


def _placed(job: Job, config: BenchmarkConfig, design: Design, stopped: threading.Event) -> Result | None:
    """Returns the result of a run before scoring, with a legal placement in `job.kept` if ok; None if stopped."""
    scratch = job.out / "work" / job.placer.folder / job.one.name / f"seed{job.seed}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    job.result.parent.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    result = {**job.identity(), "status": "ok", "reason": None, "scores": {}, "curve": []}
    try:
        if job.placer.file is not None:
            usage = Usage(0, 0.0, 0.0, 0.0, hung=False)
        else:
            words = arguments(job.placer, job.path.absolute(), job.seed, scratch.absolute(), config)
            ended = run_process(words, scratch, stopped, cpu_seconds=limit_of(job.placer))
            if ended is None:
                return None
            usage = ended
        result |= {"cpu_seconds": usage.cpu_seconds, "wall_seconds": usage.wall_seconds, "memory_mb": usage.memory_mb}
        result["status"], result["reason"] = _ended(usage, job.placer, scratch)
        if result["status"] == "ok":
            result["curve"] = _curve(scratch)
            result |= _kept(job, job.placer.file or written_placement(scratch), design)
    except DesignError as error:
        result["status"], result["reason"] = "failed", _short(str(error), scratch)
    if result["status"] == "ok":
        shutil.rmtree(scratch, ignore_errors=True)
    return result | {
        "machine": {**machine(), "load": round(load, 1)},
        "versions": versions(),
        "command": _command(job),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _kept(job: Job, file: Path, design: Design) -> Result:
    """Checks the placement in a file and stores it beside the result; returns its entries of the result."""
    found, _ = read_file(str(file), str(job.path), design)
    with tempfile.TemporaryDirectory() as folder:
        write_placement(Path(folder) / PLACEMENT_NAME, design, found)
        data = gzip.compress((Path(folder) / PLACEMENT_NAME).read_bytes(), 9, mtime=0)
    write_whole(job.kept, data)
    result: Result = {"placement": job.kept.name, "placement_sha256": hashlib.sha256(data).hexdigest()}
    if broken := broken_rules(design, found):
        reason = ", ".join(f"{rule.replace('_', ' ')}: {count}" for rule, count in broken.items())
        result |= {"status": "illegal", "reason": reason}
    return result


def result_text(result: Mapping[str, Any]) -> str:
    """Formats a result as JSON, one line per entry."""
    lines = (f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in result.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def limit_of(placer: Placer) -> float:
    """Returns the CPU seconds after which a run is late."""
    return (1 + LATE_SHARE) * placer.seconds + LATE_SECONDS


def run_process(words: list[str], folder: Path, stopped: threading.Event, *, cpu_seconds: float) -> Usage | None:
    """Runs a process to its end in a folder that receives its output.

    Each of its processes ends a second after `cpu_seconds`, and all of them at a wall-clock deadline. Returns None once
    `stopped` is set.
    """
    deadline = WAIT_SHARE * cpu_seconds + WAIT_SECONDS
    words = ["/bin/sh", "-c", 'ulimit -t "$0"; exec "$@"', str(math.ceil(cpu_seconds) + 1), *words]
    begun = time.monotonic()
    with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
        process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])},
        )  # fmt: skip
        hung, ended, usage = False, 0, None
        try:
            while not ended:
                ended, status, usage = os.wait4(process.pid, os.WNOHANG)
                hung = time.monotonic() - begun > deadline
                if not ended and (hung or stopped.wait(POLL_SECONDS)):
                    break
        finally:
            _kill(process.pid)
            if not ended:
                _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    if stopped.is_set() and not ended:
        return None
    assert usage is not None
    memory = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    seconds = usage.ru_utime + usage.ru_stime
    return Usage(process.returncode, seconds, time.monotonic() - begun, memory, hung and not ended)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all processes have ended
        os.killpg(group, signal.SIGKILL)


def _ended(usage: Usage, placer: Placer, folder: Path) -> tuple[str, str | None]:
    """Returns the status of a run whose process ended so, and the reason."""
    if usage.cpu_seconds > limit_of(placer) or usage.status == -signal.SIGXCPU:
        return "late", f"used {usage.cpu_seconds:.1f} CPU-s of {placer.seconds:g}"
    if usage.hung:
        return "failed", f"did not end within {usage.wall_seconds:.0f} s, and was killed"
    if usage.status != 0:
        lines = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return "failed", _short(f"exit status {usage.status}{': ' + lines[-1] if lines else ''}", folder)
    return "ok", None


def _curve(folder: Path) -> list[list[float]]:
    """Returns decreasing points of (CPU seconds, best chip cost), at most `MOST_POINTS`."""
    try:
        points = json.loads((folder / CURVE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    falling: list[list[float]] = []
    for seconds, cost in points:
        if not falling or cost < falling[-1][1]:
            falling.append([round(seconds, 3), cost])
    step = -(-len(falling) // MOST_POINTS) or 1
    return falling[:-1:step] + falling[-1:]


def _command(job: Job) -> str:
    """Returns the command that repeats the run."""
    placer = f"placers={job.placer.name}" if job.placer.command is None else "placers=[] commands=…"
    if job.placer.file is not None:
        placer = f"placements={job.placer.name}={job.placer.file.name}"
    design = f"suite={job.suite.name} designs={job.one.name}" if job.suite.version else f"design={job.one.name}"
    return f"macro-placement benchmark {design} {placer} time={job.placer.seconds:g} seeds=1 seed={job.seed}"


def _short(text: str, folder: Path) -> str:
    """Removes the paths of this machine from a reason."""
    for path in (folder.absolute(), Path.cwd(), Path.home()):
        text = text.replace(f"{path}{os.sep}", "")
    return text[:MOST_REASON]


def machine() -> dict[str, Any]:
    """Returns the processor, the number of processors, and the system."""
    processor = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"processor": processor, "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}


def versions() -> dict[str, str]:
    """Returns the versions of this project, Python, and the libraries that figures depend on."""
    found = {"macro-placement": placement.__version__, "python": platform.python_version()}
    return found | {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "jax")}
