"""Makes the replay that the configuration asks for."""

from __future__ import annotations

import functools
import logging

from placement.config import ConfigError, ReplayConfig
from placement.replay.base import Replay
from placement.replay.memory import MemoryReplay

_log = logging.getLogger(__name__)


def make_replay(config: ReplayConfig, *, steps: int, designs: int | None = None) -> Replay:
    """The replay named by `config.name`; `auto` takes Reverb where it can be imported, else memory, and says so once.

    Args:
        config: which kind, and how large.
        steps: T, the longest design's number of macros to place.
        designs: the number of the run's designs; episodes of others are refused. None = not checked.

    Raises:
        ConfigError: Reverb is asked for by name and cannot be imported.
    """
    if config.name != "memory":
        try:
            from placement.replay.reverb import ReverbReplay  # late: TensorFlow takes seconds to import
        except ImportError as error:
            if config.name == "reverb":
                raise ConfigError(
                    f"replay.name='reverb': Reverb cannot be imported ({error}); use replay.name=memory, or install "
                    "the `reverb` extra on Python 3.11"
                ) from error
            _tell_once(str(error))
        else:
            return ReverbReplay(capacity=config.capacity, steps=steps, designs=designs)
    return MemoryReplay(capacity=config.capacity, steps=steps, designs=designs)


@functools.cache
def _tell_once(reason: str) -> None:
    _log.warning(
        "Reverb is not installed (%s): episodes stay in this process's memory; Reverb (the `reverb` extra, Python "
        "3.11) would let actors in other processes and machines feed the learner.",
        reason,
    )
