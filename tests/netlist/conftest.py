"""Real files from PLACEMENT_PATH, for tests that skip, saying so, where they are absent."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real() -> Callable[[str], Path]:
    """Finds a file `folder/name` below a folder of PLACEMENT_PATH; skips where there is none."""

    def find(name: str) -> Path:
        for folder in os.environ.get("PLACEMENT_PATH", "").split(os.pathsep):
            if folder and (Path(folder) / name).exists():
                return Path(folder) / name
        pytest.skip(f"{name} is not on PLACEMENT_PATH")

    return find
