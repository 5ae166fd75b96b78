"""Publication numbers increase across every restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from placement.runtimes.ray.episode_collector import BLOCK, Publications

RootStore = pytest.importorskip(
    "placement.runtimes.ray.learner_host", reason="gRPC is not installed", exc_type=ImportError
).RootStore


class Kept:
    """A root cache, and a layout, that store only versions."""

    def __init__(self) -> None:
        self.versions: list[int] = []

    def pack(self, version: int, parameters: Any) -> int:
        return version

    def publish(self, buffer: int) -> None:
        self.versions.append(buffer)


def test_numbers_rise_through_a_fall_back_and_tell_whose_they_are(tmp_path: Path) -> None:
    kept: Any = Kept()
    first = Publications(tmp_path, iteration=0)
    store = RootStore(kept, kept, first)
    for iteration in range(3):
        store.publish(iteration, None)
    assert first.newest == 2
    second = Publications(tmp_path, iteration=1)  # it died and fell back to iteration 1
    assert second.newest == -1
    store = RootStore(kept, kept, second)
    for iteration in range(1, 4):
        store.publish(iteration, None)
    assert kept.versions == sorted(set(kept.versions))
    assert [first.iteration(version) for version in kept.versions[:3]] == [0, 1, 2]
    assert [second.iteration(version) for version in kept.versions] == [None, None, None, 1, 2, 3]


def test_no_number_is_used_before_it_is_reserved_on_disk(tmp_path: Path) -> None:
    publications = Publications(tmp_path, iteration=0)
    used = [publications.number(iteration) for iteration in range(2 * BLOCK + 1)]
    assert Publications(tmp_path, iteration=0).number(0) > max(used)
