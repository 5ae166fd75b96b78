"""What servers and their users measured, as numbers by name, for reports, tables and `metrics.csv`.

Latencies are in milliseconds: `<what>_ms_mean`, `_p50` (median) and `_p99`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placement.modelcache.cache import ModelCache
    from placement.modelcache.reader import Source
    from placement.replay.shard import ShardLoad
    from placement.replay.shard_writer import ShardWriter
    from placement.replay.sharded import ShardStatistics
    from placement.runtimes.ray.episode_collector import EpisodeCollector
    from placement.transport.latencies import Summary


def latency(what: str, summary: Summary) -> dict[str, float]:
    """Mean, median and 99th percentile in milliseconds."""
    return {f"{what}_ms_{name}": 1e3 * float(getattr(summary, name)) for name in ("mean", "p50", "p99")}


def reader(source: Source) -> dict[str, float]:
    """Of who reads parameters from a cache."""
    return {**latency("read", source.latencies.summary()), "failures": float(source.failures)}


class WriterMeasures:
    """Of who writes episodes to a shard; rates are since the last call."""

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


def cache(served: ModelCache) -> dict[str, float]:
    """Of a model cache."""
    own = {"served": served.served, "published": served.published, "strangers": served.unauthenticated}
    counts = {name: float(value) for name, value in own.items()}
    return counts if served.source is None else {**counts, **reader(served.source)}


def collected(replay: EpisodeCollector, shards: Sequence[ShardStatistics]) -> dict[str, float]:
    """Of a learner host that does not write `metrics.csv`: what it threw away."""
    lost = {"refused": float(replay.rejected), "stale": float(replay.stale), "orphaned": float(replay.orphaned)}
    return {**lost, "duplicates": float(sum(one.duplicates for one in shards))}


def shard(load: ShardLoad) -> dict[str, float]:
    """Of a replay shard."""
    names = ("size", "capacity", "written", "taken", "checkpoints")
    return {**{name: float(getattr(load, name)) for name in names}, "strangers": float(load.unauthenticated)}


def replay(shards: Sequence[ShardStatistics]) -> Mapping[str, float]:
    """What the learner knows of the shards: each one's, and the sums of what was lost."""
    numbers: dict[str, float] = {}
    for one in shards:
        for name in ("rate", "wait", "skew", "waiting", "taken"):
            numbers[f"replay{one.number}_{name}"] = float(getattr(one, name))
    for name, attribute in (("refused", "rejected"), ("duplicates", "duplicates"), ("failures", "failures")):
        numbers[f"replay_{name}"] = float(sum(getattr(one, attribute) for one in shards))
    return numbers
