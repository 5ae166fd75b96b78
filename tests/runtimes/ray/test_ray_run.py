"""The monitoring of a run continues when another process writes into its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import ray_run

SPOILT = """
print('WATCH {"coordinator": 1, "seen": {}}[another process]', flush=True)
print('WATCH {"coordinator": 2, "seen": {"learner": {"iteration": 7}}}', flush=True)
print("complete 7", flush=True)
"""


def test_a_damaged_line_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_run, "SCRIPT", SPOILT)
    with ray_run.RayRun({"run_dir": str(tmp_path)}) as run:
        assert run.end(timeout=60) == 0
    assert (run.coordinator, run.iteration()) == (2, 7)
    assert run.output() == "complete 7\n"
