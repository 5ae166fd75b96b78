"""`macro-placement plan`: its settings, and what it prints."""

from __future__ import annotations

import numpy as np
import pytest

from placement.capacity.fleet import Fleet, simulate
from placement.capacity.simulation import TransferCosts
from placement.cli import plan
from placement.config import ConfigError


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("actors", r"'actors': must be key=value"),
        ("actors=many", r"actors=many: must be a whole number"),
        ("model_mb=big", r"model_mb=big: must be a number"),
        ("actors=0", r"actors=0: must be at least 1"),
        ("megabits=0", r"megabits=0\.0: must be above 0"),
        ("colour=3", r"colour: no such setting"),
    ],
)
def test_wrong_settings_are_refused(argument: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plan.read_settings([argument])


def test_the_command_prints_a_recommendation(capsys: pytest.CaptureFixture[str]) -> None:
    plan.main(["actors=4", "model_mb=1", "round_seconds=5"])
    printed = capsys.readouterr().out
    assert "4 actors, a model of 1 MB" in printed and "learner idle" in printed
    assert "runtime=ray runtime.actors=4 runtime.caches=0 runtime.fan_out=8 runtime.shards=1" in printed
    with pytest.raises(SystemExit):
        plan.main(["actors=none"])
    assert "Traceback" not in capsys.readouterr().err
    assert np.isfinite(simulate(Fleet(actors=1), TransferCosts()).idle)
