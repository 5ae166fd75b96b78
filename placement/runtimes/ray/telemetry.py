"""What servers and their users measured, as numbers by name, for reports, tables and `metrics.csv`.

Latencies are in milliseconds: `<what>_ms_mean`, `_p50` (median) and `_p99`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placement.modelcache.cache import CacheStatistics
    from placement.modelcache.source import SourceStatistics
    from placement.replay.shard import ShardLoad
    from placement.replay.shard_reader import ShardStatistics
    from placement.replay.shard_writer import WriterStatistics
    from placement.runtimes.ray.episode_collector import EpisodeCollector
    from placement.transport.latencies import Summary


def latency(what: str, summary: Summary) -> dict[str, float]:
    """Mean, median and 99th percentile in milliseconds."""
    return {f"{what}_ms_{name}": 1e3 * float(getattr(summary, name)) for name in ("mean", "p50", "p99")}


def reader(statistics: SourceStatistics) -> dict[str, float]:
    """Of who reads parameters from a cache."""
    return {**latency("read", statistics.reads), "failures": float(statistics.failures)}


def writer(statistics: WriterStatistics) -> dict[str, float]:
    """Of who writes episodes to a shard."""
    return {**latency("write", statistics.latency), "moves": float(statistics.moves)}


def cache(statistics: CacheStatistics) -> dict[str, float]:
    """Of a model cache."""
    own = {"served": float(statistics.served), "published": float(statistics.published)}
    return own if statistics.source is None else {**own, **reader(statistics.source)}


def collected(replay: EpisodeCollector, shards: Sequence[ShardStatistics]) -> dict[str, float]:
    """Of a learner host that does not write `metrics.csv`: what it threw away."""
    lost = {name: float(getattr(replay, name)) for name in ("refused", "stale", "orphaned")}
    return {**lost, "duplicates": float(sum(one.duplicates for one in shards))}


def shard(load: ShardLoad) -> dict[str, float]:
    """Of a replay shard."""
    return {name: float(getattr(load, name)) for name in ("size", "capacity", "written", "taken", "checkpoints")}


def replay(shards: Sequence[ShardStatistics]) -> Mapping[str, float]:
    """What the learner knows of the shards: each one's, and the sums of what was lost."""
    numbers: dict[str, float] = {}
    for one in shards:
        for name in ("rate", "wait", "skew", "waiting", "taken"):
            numbers[f"replay{one.number}_{name}"] = float(getattr(one, name))
    for name in ("refused", "duplicates", "failures"):
        numbers[f"replay_{name}"] = float(sum(getattr(one, name) for one in shards))
    return numbers
