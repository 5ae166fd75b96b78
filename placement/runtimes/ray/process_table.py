"""A table of the run's processes: a line for each role."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.table import Table

from placement.report.metrics import make_table
from placement.runtimes.ray.coordinator import summarise
from placement.runtimes.ray.messages import Heartbeat, RoleName

COLUMNS = {
    "episodes/s": ("episodes_per_second",),
    "waiting": ("size",),
    "read ms": ("read_ms_mean", "read_ms_p50", "read_ms_p99"),
    "write ms": ("write_ms_mean", "write_ms_p50", "write_ms_p99"),
    "memory MB": ("resident_mb",),
}
"""Titles, and the measures beneath them, of which a role shows those that it has."""


def processes_table(heartbeats: Sequence[Heartbeat], restarts: Mapping[str, int]) -> Table:
    """One line for each role.

    Args:
        heartbeats: the newest of each process that lives.
        restarts: how often each process (by its name) was restarted.
    """
    rows: list[list[str]] = []
    numbers = summarise(list(heartbeats))
    for role in RoleName:
        count = sum(one.ready for one in heartbeats if one.who.role is role)
        anew = sum(number for name, number in restarts.items() if name.split()[0] == role)
        members = sum(name.split()[0] == role for name in restarts)
        if members:
            cells = [" / ".join(_texts(numbers, role, names)) for names in COLUMNS.values()]
            rows.append([role.value, f"{count} of {members}", *cells, str(anew)])
    columns = ("processes", "live", *COLUMNS, "restarts")
    return make_table(columns, rows, caption="latencies: mean / median / 99th percentile")


def _texts(numbers: Mapping[str, float], role: RoleName, names: Sequence[str]) -> list[str]:
    values = [numbers.get(f"{role}_{name}", math.nan) for name in names]
    if all(math.isnan(value) for value in values):
        return []
    return ["–" if math.isnan(value) else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}" for value in values]
