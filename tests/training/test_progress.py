"""The progress display of a run."""

from __future__ import annotations

import io
import math

from rich.console import Console

from placement.training.metrics import Progress, Remaining, clock


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


def test_a_line_says_everything() -> None:
    stream = io.StringIO()
    progress = Progress(10, console=Console(file=stream, width=150))
    progress.note("a [note]")
    for iteration in (1, 2):
        progress.iteration(_row(iteration))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "a [note]"
    assert lines[2] == (
        "iteration 2/10 · 64 episodes · proxy cost 0.7500, best 0.6789 (wirelength 0.0500, density 0.5000, "
        "congestion 0.9000) · 1,234 steps/s · 00:20, 01:20 left"
    )


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
