"""The first learner host keeps the best placements and the identities of the other hosts' episodes."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from placement.episode import Episode, EpisodeIntervalSet
from placement.runtimes.ray import host_assignment
from placement.training.episode_identity import EVALUATOR, INCARNATION_BITS
from placement.training.episode_verifier import EpisodeVerifier


class PeerEpisodes:
    """Looks at every iteration's episodes.

    Args:
        learners: how many hosts there are.
        verifier: keeps the best placements; for the thread that learns.
        learned: int64 [N, 3], all hosts' episodes that were learned from before.
    """

    def __init__(self, learners: int, verifier: EpisodeVerifier, learned: np.ndarray) -> None:
        self._learners, self._verifier, self._learned = learners, verifier, EpisodeIntervalSet(learned)
        self._lock = threading.Lock()  # a checkpoint may be asked for by another thread

    def received(self, episodes: Sequence[Episode]) -> None:
        """Takes note of an iteration's episodes."""
        for episode in episodes:
            actor, count = episode.identity.tolist()
            if self._host(actor):
                with self._lock:
                    self._learned.add(actor, count)
                self._verifier.keep(episode, int(episode.version))

    def learned(self, mine: np.ndarray) -> np.ndarray:
        """int64 [N, 3]: all hosts' episodes learned from; `mine` are those that this host has read."""
        with self._lock:
            others = self._learned.rows()
        both = [(mine, True), (others, False)]
        return np.concatenate([rows[[(not self._host(int(row[0]))) is own for row in rows]] for rows, own in both])

    def _host(self, identity: int) -> int:
        """Whose shards the actor of that identity writes to."""
        actor = identity >> INCARNATION_BITS
        return 0 if actor == EVALUATOR else host_assignment.host_of(actor, self._learners)
