"""A learner that records what it learns from, so that a test can trace every episode."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placement.episode import Episode
from tests.support.fakes import FakeLearner

RECORD = "PLACEMENT_TEST_RECORD"
"""Environment variable that names the file."""
UPDATE_SECONDS = "PLACEMENT_TEST_UPDATE_SECONDS"
"""The environment variable that says how long an update takes; default: no time, but then an endless run takes all
cores from the tests beside it."""


class RecordingLearner(FakeLearner):
    """A `FakeLearner` that adds a line of JSON to a file for every update: process, iteration, episodes."""

    def learn(self, episodes: Sequence[Episode], *, iteration: int, elapsed: float = 0.0) -> dict[str, float]:
        """Records the episodes, then counts."""
        time.sleep(float(os.environ.get(UPDATE_SECONDS, "0")))
        path = os.environ.get(RECORD)
        if path and not self.hosts.index:  # all hosts learn from the same
            line = {
                "pid": os.getpid(),
                "iteration": iteration,
                "episodes": [_record_of(episode) for episode in episodes],
            }
            with Path(path).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
        return super().learn(episodes, iteration=iteration, elapsed=elapsed)


class LearnerWithoutRoom(FakeLearner):
    """A learner in whose process every disk is full."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)

        def full(*arguments: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        os.posix_fallocate = full  # type: ignore[assignment]


def _record_of(episode: Episode) -> dict[str, Any]:
    """Returns the data that a test checks."""
    return {
        "identity": [int(part) for part in episode.identity],
        "version": int(episode.version),
        "length": int(episode.length),
        "taken": int((episode.actions >= 0).sum()),
        "dead_end": bool(episode.dead_end),
        "cost": float(episode.costs[4]),
        # The log-probabilities of a fake agent are minus the iteration of its parameters: one value for the whole
        # episode.
        "drawn_with": sorted({-int(value) for value in episode.log_probabilities[: int(episode.length)]}),
    }
