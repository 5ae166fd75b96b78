"""`macro-placement plan`: its settings, and what it prints."""

from __future__ import annotations

import numpy as np
import pytest

from placement.capacity.plan import Fleet, simulate
from placement.capacity.simulation import TransferCosts
from placement.cli.main import main


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("actors", "'actors' is not a setting; give key=value"),
        ("actors=many", "actors='many': must be of type int"),
        ("model_mb=big", "model_mb='big': must be of type float"),
        ("actors=0", "actors=0: must be at least 1"),
        ("megabits=0", "megabits=0.0: must be above 0"),
        ("colour=3", "unknown setting 'colour'"),
    ],
)
def test_wrong_settings_are_rejected(argument: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", argument]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_the_command_prints_a_recommendation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "actors=4", "model_mb=1", "round_seconds=5"]) == 0
    printed = capsys.readouterr().out
    assert "4 actors, a model of 1 MB" in printed and "learner idle" in printed
    assert "runtime=ray runtime.actors=4 runtime.caches=0 runtime.fan_out=8 runtime.shards=1" in printed
    assert np.isfinite(simulate(Fleet(actors=1), TransferCosts()).idle)
