"""Latencies of the last few thousand operations, and their summary."""

import collections
import threading
from typing import NamedTuple

import numpy as np

WINDOW = 4096


class Summary(NamedTuple):
    """A summary of latencies in seconds, NaN if there were none."""

    operations: int  # number since the start, including those that left the window
    mean: float  # mean, p50, p99, worst: statistics of the window
    p50: float
    p99: float
    worst: float


class Latencies:
    """A thread-safe recorder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._window: collections.deque[float] = collections.deque(maxlen=WINDOW)
        self._count = 0

    def record(self, seconds: float) -> None:
        """Adds one operation's latency."""
        with self._lock:
            self._window.append(seconds)
            self._count += 1

    def values(self) -> list[float]:
        """The window's latencies in seconds, oldest first."""
        with self._lock:
            return list(self._window)

    def summary(self) -> Summary:
        """The number, mean and quantiles of latencies."""
        with self._lock:
            count, window = self._count, np.array(self._window)
        if not window.size:
            return Summary(count, *(float("nan"),) * 4)
        p50, p99 = np.quantile(window, (0.5, 0.99))
        return Summary(count, float(window.mean()), float(p50), float(p99), float(window.max()))
