"""What a run's checkpoints hold, and how a run goes on from one.

The tree has three entries: `learner` (its whole state: parameters, optimiser, step, random state, statistics),
`parameters` (what actors and evaluators need, alone) and `best` (the best placement of each design, with its costs).
The record holds counters, elapsed seconds, settings, the designs' fingerprints and which episodes were learned from.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from placement.ppo.learner import Learner
from placement.training import run_record
from placement.training.best import BestTracker
from placement.training.checkpoint import Checkpoints

FOLDER_NAME = "checkpoints"


@dataclasses.dataclass(frozen=True)
class Counters:
    """How far a run has come.

    Attributes:
        iteration: iterations done; the version of the newest parameters.
        episodes, steps: learned from so far.
        seconds: spent so far.
    """

    iteration: int = 0
    episodes: int = 0
    steps: int = 0
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class TrainingState:
    """A consistent state of a run on the host, to be saved whenever the run ends.

    Attributes:
        counters: how far it has come.
        learner, parameters: pytrees of host arrays.
    """

    counters: Counters
    learner: Any
    parameters: Any


class Saver:
    """Saves and restores a run; a context manager, whose end closes Orbax.

    Args:
        folder: the run folder.
        identity: what must stay the same for the run to be resumed, as `run_record.identity` gives it.

    Attributes:
        learned: gives the episodes learned from, int64 [N, 3] as `EpisodeIntervalSet.rows` gives them; may be replaced.
        learned_before: what `learned` gave when the checkpoint that `restore` found was saved.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self._folder, self._identity = folder, identity
        self._checkpoints = Checkpoints(folder / FOLDER_NAME)
        self.learned_before = np.zeros((0, 3), np.int64)
        self.learned: Callable[[], np.ndarray] = lambda: self.learned_before
        self._lock = threading.Lock()
        self._saved = -1  # the iteration that is known to be on disk, whole

    def __enter__(self) -> Saver:
        return self

    def __exit__(self, *error: object) -> None:
        self._checkpoints.close()

    def save(self, state: TrainingState, best: BestTracker) -> None:
        """Saves a checkpoint, unless that of this iteration is on disk already. Any thread may call this.

        Raises:
            DiskFull: there is no room for it.
        """
        iteration = state.counters.iteration
        with self._lock:
            if self._saved == iteration:
                return
            tree = {"learner": state.learner, "parameters": state.parameters, "best": best.arrays()}
            record = {"counters": dataclasses.asdict(state.counters), "origins": best.origins(), **self._identity}
            self._checkpoints.save(iteration, tree, {**record, "learned": self.learned().tolist()})
            self._saved = iteration

    def restore(self, learner: Learner, best: BestTracker) -> Counters:
        """Puts the newest checkpoint into `learner` and `best`, if there is one.

        Raises:
            CheckpointError: it is of another network, or damaged.
        """
        if not self._checkpoints.steps():
            return Counters()
        restored = self._checkpoints.restore({"learner": learner.state, "best": best.arrays()})
        learner.state = jax.tree.map(_like, restored.tree["learner"], learner.state)
        best.restore(restored.tree["best"], restored.record["origins"])
        self.learned_before = np.array(restored.record["learned"], np.int64).reshape(-1, 3)
        self._saved = restored.step
        return Counters(**restored.record["counters"])

    def refuse_if_other(self) -> None:
        """Raises ConfigError if the folder holds a run with other settings or designs."""
        if self._checkpoints.steps():
            run_record.refuse_if_other(self._folder, self._checkpoints.record(), json.loads(json.dumps(self._identity)))


def on_host(tree: Any) -> Any:
    """A copy of a pytree's arrays on the host, which donation cannot touch."""
    return jax.tree.map(np.array, tree)


def _like(new: Any, old: Any) -> Any:
    """`new` where and how `old` is held."""
    if isinstance(old, jax.Array):
        # On devices of other processes it can only be put by all of them together: the learner does that.
        return jax.device_put(new, old.sharding) if old.is_fully_addressable else new
    return np.asarray(new)


def has_checkpoint(run: Path) -> bool:
    """Whether a run folder holds a checkpoint to go on from."""
    with contextlib.closing(Checkpoints(run / FOLDER_NAME, read_only=True)) as checkpoints:
        return bool(checkpoints.steps())


def read_parameters(run: str | Path, like: Any) -> tuple[Any, int]:
    """The newest parameters of a run, in the structure of `like` (as `agent.init(0)` gives it), and their iteration.

    Raises:
        CheckpointError: there is none, it is damaged or of another network.
    """
    with contextlib.closing(Checkpoints(Path(run) / FOLDER_NAME, read_only=True)) as checkpoints:
        restored = checkpoints.restore({"parameters": like})
        return restored.tree["parameters"], restored.step
