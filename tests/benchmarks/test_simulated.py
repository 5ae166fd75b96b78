"""Simulated writers and readers compared with results computed by hand."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from placement.capacity.plan import Fleet
from placement.capacity.simulation import TransferCosts

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
simulated = importlib.import_module("simulated")
Pace, simulate_reads, simulate_writes = simulated.Pace, simulated.simulate_reads, simulated.simulate_writes


def test_writers_of_a_process_keep_each_other_awake() -> None:
    pace = Pace(writers=4, shards=1, megabytes=0.0, megabits=8.0, making=0.8, processes=4)
    apart = simulate_writes(pace, TransferCosts(write_seconds=0.002), seconds=400)
    assert apart.max() > 0.09 and np.median(apart) == pytest.approx(0.002)  # some gaps are longer than a second
    together = simulate_writes(pace._replace(processes=1), TransferCosts(write_seconds=0.002), seconds=400)
    assert np.percentile(together, 99) == pytest.approx(0.002)


def test_a_saturated_shard_makes_each_writer_wait_for_all_others() -> None:
    """Closed queue: 64 writers; each write occupies the link for 1 s after 20 s of preparation: 64 · 1 s - 20 s."""
    pace = Pace(writers=64, shards=1, megabytes=1.0, megabits=8.0, making=20.0)
    assert simulate_writes(pace, TransferCosts(), seconds=4000).mean() == pytest.approx(44.0, rel=0.02)
    alone = simulate_writes(
        pace._replace(writers=1), TransferCosts(write_seconds=0.1, write_seconds_per_mb=0.2), seconds=400
    )
    assert alone == pytest.approx(1.3)


def test_reads_straight_from_the_learner_and_through_caches() -> None:
    straight = Fleet(actors=64, model_mb=1.0, megabits=8.0, caches=0)
    assert simulate_reads(straight, TransferCosts(), period=1.0, reads=2) == pytest.approx(64.0)
    tree = Fleet(actors=64, model_mb=1.0, megabits=8.0, caches=8, fan_out=8)
    assert simulate_reads(tree, TransferCosts(), period=1.0, reads=2) == pytest.approx(8.0)


def test_every_writer_counts_one_write_however_short_the_time() -> None:
    assert len(simulate_writes(Pace(3, 1, 1.0, 8.0, 10.0), TransferCosts(), seconds=0.1)) == 3
