"""The first learner host's handling of the other hosts' episodes."""

from __future__ import annotations

import numpy as np
import pytest

from placement.episode import Episode
from placement.training.rollout import EVALUATOR, INCARNATION_BITS
from tests.support.episodes import episode

PeerEpisodes = pytest.importorskip(
    "placement.runtimes.ray.learner_host", reason="gRPC is not installed", exc_type=ImportError
).PeerEpisodes

INCARNATION = 5


class Kept:
    def __init__(self) -> None:
        self.counts: list[int] = []

    def keep(self, one: Episode, iteration: int) -> str | None:
        self.counts.append(int(one.identity[1]))
        return None


def _identity(actor: int) -> int:
    return (actor << INCARNATION_BITS) | INCARNATION


def _episode(actor: int, count: int) -> Episode:
    return episode(count)._replace(identity=np.array([_identity(actor), count], np.int64))


def test_only_the_others_episodes_are_checked_and_all_that_were_seen_are_sent() -> None:
    before = np.array([[_identity(1), 0, 1], [_identity(2), 0, 9]], np.int64)
    kept = Kept()
    peers = PeerEpisodes(2, kept, before)  # type: ignore[arg-type]
    peers.received([_episode(2, 10), _episode(1, 2), _episode(1, 5)])
    assert kept.counts == [2, 5]
    # Known to this host: its own actors, the evaluator, and everything that was restored.
    mine = np.array([*before.tolist(), [_identity(2), 10, 10], [_identity(EVALUATOR), 0, 3]], np.int64)
    rows = sorted(map(tuple, peers.learned(mine).tolist()))
    assert rows == [
        (_identity(1), 0, 2), (_identity(1), 5, 5), (_identity(2), 0, 9), (_identity(2), 10, 10),
        (_identity(EVALUATOR), 0, 3),
    ]  # fmt: skip
    assert peers.learned(np.zeros((0, 3), np.int64)).shape == (2, 3)


def test_of_one_host_all_is_its_own() -> None:
    peers = PeerEpisodes(1, Kept(), np.zeros((0, 3), np.int64))  # type: ignore[arg-type]
    peers.received([_episode(1, 2)])
    mine = np.array([[_identity(3), 0, 1]], np.int64)
    assert peers.learned(mine).tolist() == mine.tolist()
