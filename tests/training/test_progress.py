"""The progress display of a run."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from placement.training.metrics import LiveProgress, PlainProgress, Remaining, clock, make_progress


def _row(iteration: int) -> dict[str, float]:
    costs = {"cost": 0.75, "wirelength_cost": 0.05, "density_cost": 0.5, "congestion_cost": 0.9}
    return {
        "iteration": iteration,
        "episodes": iteration * 32,
        "seconds": 10.0 * iteration,
        "steps_per_second": 1234.5,
        "best_so_far": 0.6789,
        **{f"{name}_mean": value for name, value in costs.items()},
        **{f"{name}_best": value - 0.01 for name, value in costs.items()},
    }


def _shown(kind: type, *, terminal: bool) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=150)
    with kind(10, console=console) as progress:
        progress.note("a [note]")
        for iteration in (1, 2):
            progress.iteration(_row(iteration))
    return stream.getvalue()


def test_plain_lines_say_everything() -> None:
    lines = _shown(PlainProgress, terminal=False).splitlines()
    assert lines[0] == "a [note]"
    assert lines[2] == (
        "iteration 2/10 · 64 episodes · proxy cost 0.7500, best 0.6789 (wirelength 0.0500, density 0.5000, "
        "congestion 0.9000) · 1,234 steps/s · 00:20, 01:20 left"
    )


@pytest.mark.parametrize("part", ["a [note]", "2/10", "0.7500", "0.7400", "congestion", "1,234 steps/s", "01:20 left"])
def test_the_live_table_says_everything(part: str) -> None:
    assert part in _shown(LiveProgress, terminal=True)


def test_lines_where_there_is_no_terminal() -> None:
    assert isinstance(make_progress(3), PlainProgress)


def test_remaining_time_by_iterations_and_by_the_clock() -> None:
    remaining = Remaining(10, 0)
    assert math.isnan(remaining.seconds(_row(1)))
    assert remaining.seconds(_row(2)) == 80
    assert math.isnan(remaining.seconds({"iteration": 1.0, "seconds": 3.0})), "the learner began again"
    assert remaining.seconds({"iteration": 2.0, "seconds": 5.0}) == 16
    limited = Remaining(10, 1.0)
    assert limited.seconds(_row(1)) == 50
    assert limited.seconds(_row(2)) == 40


def test_clock() -> None:
    assert [clock(value) for value in (0, 61, 3661, math.nan, math.inf)] == ["00:00", "01:01", "1:01:01"] + [
        "--:--"
    ] * 2
