"""A small flat design for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.flat_designs import write_generated


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flat") / "made"
    write_generated(folder, cells=300, macros=4, ports=8, macro_pins=12, seed=3)
    return folder
