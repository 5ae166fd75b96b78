"""Time accounting of placers: work before a policy's first sample counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from placement.annealing.anneal_config import AnnealConfig
from placement.benchmark import anytime_placers
from placement.benchmark.anytime_placers import ANYTIME_PLACERS, Task
from placement.engine.costs import DEFAULT_WEIGHTS
from placement.evaluation import policies
from placement.netlist.load import load

LOADING, COMPILING, SAMPLING, STARTING = 3.0, 4.0, 1.0, 2.0


class Clock:
    """A CPU clock that the test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def process_time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Returns the placers' clock and installs a policy whose loading, compilation and sampling take time."""
    made = Clock()
    sample = load("toy6").initial
    calls = iter([COMPILING])

    def evaluate(_: int) -> list[Any]:
        made.now += next(calls, SAMPLING)
        return [SimpleNamespace(placement=sample)]

    def load_policy(_: Any) -> SimpleNamespace:
        made.now += LOADING
        return SimpleNamespace(evaluate=evaluate)

    monkeypatch.setattr(anytime_placers, "time", made)
    monkeypatch.setattr(policies, "policy_from_settings", load_policy)
    return made


def task(seconds: float) -> Task:
    config: Any = SimpleNamespace(time=seconds, weights=DEFAULT_WEIGHTS, anneal=AnnealConfig(initial_temperature=0.1))
    return Task(load("toy6"), config, 0)


def test_a_policys_loading_and_compilation_count(clock: Clock) -> None:
    curve = ANYTIME_PLACERS["policy"](task(10.0)).curve
    assert [seconds for seconds, _ in curve] == [8.0, 9.0, 10.0]


def test_annealing_samples_gets_the_time_that_is_left(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def starts(design: Any, samples: list[Any], *_: Any) -> list[Any]:
        clock.now += STARTING
        return samples

    def search(_: Task, made: list[Any], seconds: float) -> SimpleNamespace:
        given.append(seconds)
        return SimpleNamespace(placement=made[0].placement, history=[])

    monkeypatch.setattr(anytime_placers, "refinement_starts", starts)
    monkeypatch.setattr(anytime_placers, "_search", search)
    for seconds in (70.0, 5.0):
        clock.now = 0.0
        ANYTIME_PLACERS["policy+refine"](task(seconds))
    # In the second case only the minimum share remains, a tenth.
    assert given == [70.0 - (LOADING + COMPILING + SAMPLING + STARTING), 0.5]
