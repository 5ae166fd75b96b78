"""The measurements of processes as numbers by name, for heartbeats, the table of processes and `metrics.csv`.

Latencies are in milliseconds: `<what>_ms_mean`, `_p50` (median) and `_p99`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import psutil

from placement.runtimes.ray.messages import Heartbeat, RoleName

if TYPE_CHECKING:
    from rich.table import Table

    from placement.modelcache.cache import ModelCache
    from placement.modelcache.reader import Source
    from placement.replay.shard import ShardLoad
    from placement.replay.shard_reader import ShardStatistics
    from placement.replay.shard_writer import ShardWriter
    from placement.runtimes.ray.episode_collector import EpisodeCollector
    from placement.transport.latencies import Summary

COLUMNS = {  # titles of the table of processes, and their measures, of which a role shows those that it has
    "episodes/s": ("episodes_per_second",),
    "waiting": ("size",),
    "read ms": ("read_ms_mean", "read_ms_p50", "read_ms_p99"),
    "write ms": ("write_ms_mean", "write_ms_p50", "write_ms_p99"),
    "memory MB": ("resident_mb",),
}


def resident_mb() -> float:
    """This process's resident memory in megabytes."""
    return float(psutil.Process().memory_info().rss) / 1e6


def latency(what: str, summary: Summary) -> dict[str, float]:
    """Mean, median and 99th percentile in milliseconds."""
    return {f"{what}_ms_{name}": 1e3 * float(getattr(summary, name)) for name in ("mean", "p50", "p99")}


def reader(source: Source) -> dict[str, float]:
    """Measures of a process that reads parameters from a cache."""
    return {**latency("read", source.latencies.summary()), "failures": float(source.failures)}


class WriterMeasures:
    """Measures of a process that writes episodes to a shard; rates cover the time since the last call."""

    def __init__(self, writer: ShardWriter) -> None:
        self._writer, self._at, self._before = writer, time.monotonic(), (0, 0)

    def __call__(self) -> dict[str, float]:
        writer, now = self._writer, time.monotonic()
        counts, seconds = (writer.written, writer.steps), max(now - self._at, 1e-9)
        rates = [(count - before) / seconds for count, before in zip(counts, self._before, strict=True)]
        self._at, self._before = now, counts
        return {
            "episodes_per_second": rates[0],
            "steps_per_second": rates[1],
            "episodes": float(writer.written),
            **latency("write", writer.latencies.summary()),
            "moves": float(writer.moves),
        }


def _numbers(measured: object, *names: str) -> dict[str, float]:
    return {name: float(getattr(measured, name)) for name in names}


def cache(served: ModelCache) -> dict[str, float]:
    """Measures of a model cache."""
    own = _numbers(served, "served", "published", "unauthenticated")
    return own if served.source is None else {**own, **reader(served.source)}


def shard(load: ShardLoad) -> dict[str, float]:
    """Measures of a replay shard."""
    return _numbers(load, "size", "capacity", "written", "taken", "checkpoints", "unauthenticated")


def collected(replay: EpisodeCollector, shards: Sequence[ShardStatistics]) -> dict[str, float]:
    """The numbers of episodes dropped by a learner host that does not write `metrics.csv`."""
    lost = {"rejected": float(replay.rejected), **_numbers(replay, "stale", "orphaned")}
    return {**lost, "duplicates": float(sum(one.duplicates for one in shards))}


def replay(shards: Sequence[ShardStatistics]) -> dict[str, float]:
    """The learner's data on the shards: each one's measures, and the sums of losses."""
    numbers: dict[str, float] = {}
    for one in shards:
        measured = _numbers(one, "rate", "wait", "skew", "waiting", "taken")
        numbers |= {f"replay{one.number}_{name}": value for name, value in measured.items()}
    for name in ("rejected", "duplicates", "failures"):
        numbers[f"replay_{name}"] = float(sum(getattr(one, name) for one in shards))
    return numbers


def summarise(heartbeats: Sequence[Heartbeat]) -> dict[str, float]:
    """Each role's `<role>_<measure>` over its processes, and the number of these, `<role>s`.

    Rates and counts are added, others averaged; for a p99, the worst is used.
    """
    gathered: dict[str, list[float]] = {}
    counts: dict[str, float] = {}
    for one in heartbeats:
        role = one.who.role.value
        counts[f"{role}s"] = counts.get(f"{role}s", 0.0) + 1
        for name, value in one.measures.items():
            gathered.setdefault(f"{role}_{name}", []).append(float(value))
    return counts | {name: _combine(name, values) for name, values in sorted(gathered.items())}


def _combine(name: str, values: list[float]) -> float:
    finite = [value for value in values if not math.isnan(value)]
    if not finite:
        return math.nan
    if name.endswith(("_p99", "_max")):
        return max(finite)
    if name.endswith(("_mean", "_p50", "_fraction", "_mb")):
        return sum(finite) / len(finite)
    return sum(finite)


def processes_table(heartbeats: Sequence[Heartbeat], restarts: Mapping[str, int]) -> Table:
    """A table of the run's processes, one line per role; `restarts` are counts by the processes' names."""
    from placement.report.placement_metrics import make_table  # Only the driver draws.

    rows: list[list[str]] = []
    numbers = summarise(heartbeats)
    for role in RoleName:
        members = {name: count for name, count in restarts.items() if name.split()[0] == role}
        if members:
            ready = sum(one.ready for one in heartbeats if one.who.role is role)
            cells = [" / ".join(_texts(numbers, role, names)) for names in COLUMNS.values()]
            rows.append([role.value, f"{ready} of {len(members)}", *cells, str(sum(members.values()))])
    columns = ("processes", "live", *COLUMNS, "restarts")
    return make_table(columns, rows, caption="latencies: mean / median / 99th percentile")


def _texts(numbers: Mapping[str, float], role: RoleName, names: Sequence[str]) -> list[str]:
    values = [numbers.get(f"{role}_{name}", math.nan) for name in names]
    if all(math.isnan(value) for value in values):
        return []
    return ["–" if math.isnan(value) else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}" for value in values]
