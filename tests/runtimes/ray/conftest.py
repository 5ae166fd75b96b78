"""One run on Ray for all tests that inspect it or kill its processes, because starting these is slow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ray_run import LONG, RayRun, endless


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of the run."""
    return tmp_path_factory.mktemp("ray-run")


@pytest.fixture(scope="session")
def _runs() -> Iterator[list[RayRun]]:
    """Yields the runs started so far, of which at most the last one is running."""
    with contextlib.ExitStack() as ending:
        runs: list[RayRun] = []
        ending.callback(lambda: [run.__exit__() for run in runs])
        yield runs


@pytest.fixture
def run(folder: Path, _runs: list[RayRun]) -> RayRun:
    """Returns the run, which is training; if a test has ended it, the same command resumes it."""
    if not _runs or _runs[-1].process.poll() is not None:
        _runs.append(endless(folder))
    run = _runs[-1]
    run.until(lambda: run.iteration() > 20, "training has begun", timeout=LONG)
    return run
