"""The recorder of latencies."""

from __future__ import annotations

import math
import threading

import pytest

from placement.transport.latencies import WINDOW, Latencies


def test_the_summary_of_known_latencies() -> None:
    latencies = Latencies()
    for milliseconds in range(101):
        latencies.record(milliseconds / 1000)
    summary = latencies.summary()
    assert summary.operations == 101
    assert tuple(summary[1:]) == pytest.approx((0.05, 0.05, 0.099, 0.1))


def test_without_operations_there_is_nothing_to_sum_up() -> None:
    summary = Latencies().summary()
    assert summary.operations == 0 and all(math.isnan(value) for value in summary[1:])


def test_memory_is_bounded_and_threads_may_share_it() -> None:
    latencies = Latencies()
    threads = [
        threading.Thread(target=lambda: [latencies.record(1.0) for _ in range(WINDOW)])  # type: ignore[func-returns-value]
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert latencies.summary().operations == 3 * WINDOW
    assert len(latencies.values()) == WINDOW
