"""What every episode must satisfy before it is learned from, whoever wrote it.

Axis legend: T macros to place (the longest design's, padded), as in placement/ppo/trajectory.py.
"""

from __future__ import annotations

import numpy as np

from placement.ppo.trajectory import Episode, signature


class MalformedEpisode(ValueError):
    """An episode breaks the rules of `Episode`; the message names the field, its value and what would be right."""


class Schema:
    """The rules for a run's episodes.

    Args:
        steps: T.
        designs: the number of the run's designs; None = any index of at least 0 is taken.

    Attributes:
        like: an all-zero episode of the right shapes and dtypes.
    """

    def __init__(self, steps: int, designs: int | None = None) -> None:
        self.like = signature(steps)
        self._designs = designs

    def check(self, episode: Episode) -> None:
        """Raises MalformedEpisode unless `episode` has the right shapes and dtypes, and sensible values."""
        if len(episode) != len(self.like):
            raise MalformedEpisode(f"{len(episode)} fields, expected {len(self.like)}")
        for name, expected in self.fields():
            array = getattr(episode, name)
            if not isinstance(array, (np.ndarray, np.generic)):
                raise MalformedEpisode(f"{name}: a {type(array).__name__}, expected an array")
            if array.dtype != expected.dtype or array.shape != expected.shape:
                raise MalformedEpisode(
                    f"{name}: {array.dtype} {list(array.shape)}, expected {expected.dtype} {list(expected.shape)}"
                )
        _check_scalars(episode, steps=len(self.like.actions), designs=self._designs)
        _check_steps(episode, length=int(episode.length))

    def fields(self) -> list[tuple[str, np.ndarray]]:
        """(name, array of the right shape and dtype) of each field."""
        return list(self.like._asdict().items())


def _require(ok: object, name: str, value: object, right: str) -> None:
    if not ok:
        raise MalformedEpisode(f"{name}: {value}, must be {right}")


def _check_scalars(episode: Episode, *, steps: int, designs: int | None) -> None:
    _require((episode.identity >= 0).all(), "identity", episode.identity, "at least 0")
    most = np.iinfo(np.int32).max if designs is None else designs - 1
    _require(0 <= episode.design <= most, "design", episode.design, f"in [0, {most}]")
    _require(episode.version >= 0, "version", episode.version, "at least 0")
    _require(0 <= episode.length <= steps, "length", episode.length, f"in [0, {steps}]")
    _require(np.isfinite(episode.reward), "reward", episode.reward, "finite")
    if episode.dead_end:
        _require(np.isnan(episode.costs).all(), "costs", episode.costs, "NaN at a dead end")
    else:
        _require(episode.length >= 1, "length", episode.length, "at least 1 unless at a dead end")
        good = np.isfinite(episode.costs).all() and (episode.costs >= 0).all()
        _require(good, "costs", episode.costs, "finite and at least 0")


def _check_steps(episode: Episode, *, length: int) -> None:
    taken, past = episode.actions[:length], episode.actions[length:]
    _require((taken >= 0).all(), "actions", taken, "at least 0 up to the length")
    _require((past == -1).all(), "actions", past, "-1 past the length")
    likely = np.isfinite(episode.log_probabilities).all() and (episode.log_probabilities <= 1e-3).all()
    _require(likely, "log_probabilities", episode.log_probabilities, "finite and at most 0")
    _require(np.isfinite(episode.values).all(), "values", episode.values, "finite")
    for name in ("log_probabilities", "values"):
        rest = getattr(episode, name)[length:]
        _require((rest == 0).all(), name, rest, "0 past the length")
