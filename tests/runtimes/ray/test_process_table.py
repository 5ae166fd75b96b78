"""The table of processes."""

from __future__ import annotations

import io

from rich.console import Console

from placement.runtimes.ray.messages import Heartbeat, RoleName, Who
from placement.runtimes.ray.telemetry import processes_table


def test_a_line_for_each_role_with_the_living_and_the_restarted() -> None:
    reports = [
        Heartbeat(Who(RoleName.ACTOR, number), 1, "here", 7, ready=number < 2, measures={"episodes_per_second": 2.5})
        for number in range(3)
    ]
    restarts = {"actor 0": 1, "actor 1": 0, "actor 2": 2, "shard 0": 0}
    console = Console(file=io.StringIO(), width=120)
    console.print(processes_table(reports, restarts))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    (actors,) = [line for line in text.splitlines() if "actor" in line]
    assert "2 of 3" in actors and "7.5" in actors and actors.rstrip(" │").endswith("3")
    (shards,) = [line for line in text.splitlines() if "shard" in line]
    assert "0 of 1" in shards
    assert "learner" not in text
