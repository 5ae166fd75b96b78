"""One run on Ray for all tests that look at it or kill its processes: starting these is what costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ray_run import LONG, RayRun, endless


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the run."""
    return tmp_path_factory.mktemp("ray-run")


@pytest.fixture(scope="session")
def run(folder: Path) -> Iterator[RayRun]:
    """The run, which is training. The last test to use it ends it."""
    with endless(folder) as run:
        run.until(lambda: run.iteration() > 20, "training has begun", timeout=LONG)
        yield run
