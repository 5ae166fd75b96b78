"""What a run's checkpoints hold, and how a run goes on from one.

The tree has three entries: `learner` (its whole state: parameters, optimiser, step, random state, statistics),
`parameters` (what actors and evaluators need, alone) and `best` (the best placement of each design, with its costs).
The record holds counters, elapsed seconds, settings and the designs' fingerprints.
"""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from placement.config import TrainConfig
from placement.netlist.design import Design
from placement.training import run_record
from placement.training.best import BestTracker
from placement.training.checkpoint import Checkpoints

FOLDER_NAME = "checkpoints"


class HasState(Protocol):
    """A learner, as far as saving goes.

    Attributes:
        state: pytree of arrays, all that it needs to go on.
    """

    state: Any


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
class Progressed:
    """A consistent state of a run on the host, to be saved whenever the run ends.

    Attributes:
        counters: how far it has come.
        learner, parameters: pytrees of host arrays.
    """

    counters: Counters
    learner: Any
    parameters: Any


class Saver:
    """Saves and restores a run.

    Args:
        folder: the run folder.
        config: the run's settings.
        designs: that it trains on.

    Attributes:
        beside: gives what else checkpoints are to keep, as JSON has it.
        restored: what else the checkpoint kept that `restore` found.
    """

    def __init__(self, folder: Path, config: TrainConfig, designs: Sequence[Design]) -> None:
        self._folder = folder
        self._checkpoints = Checkpoints(folder / FOLDER_NAME)
        self._identity = run_record.identity(config, designs)
        self.beside: Callable[[], Mapping[str, Any]] = dict
        self.restored: Mapping[str, Any] = {}
        self._lock = threading.Lock()
        self._saved = -1  # the iteration that is known to be on disk, whole

    def save(self, state: Progressed, best: BestTracker) -> None:
        """Saves a checkpoint, unless that of this iteration is on disk already. Any thread may call this."""
        with self._lock:
            if self._saved != state.counters.iteration:
                self._save(state, best)

    def _save(self, state: Progressed, best: BestTracker) -> None:
        tree = {"learner": state.learner, "parameters": state.parameters, "best": best.arrays()}
        counters = dataclasses.asdict(state.counters)
        self._checkpoints.save(
            state.counters.iteration,
            tree,
            {"counters": counters, "origins": best.origins(), "beside": dict(self.beside()), **self._identity},
        )
        self._saved = state.counters.iteration

    def restore(self, learner: HasState, best: BestTracker) -> Counters:
        """Puts the newest checkpoint into `learner` and `best`, if there is one.

        Raises:
            ConfigError: the checkpoint is of a run with other settings or designs.
            CheckpointError: it is of another network, or damaged.
        """
        if not self._checkpoints.steps():
            return Counters()
        restored = self._checkpoints.restore({"learner": learner.state, "best": best.arrays()})
        learner.state = jax.tree.map(_like, restored.tree["learner"], learner.state)
        best.restore(restored.tree["best"], restored.record["origins"])
        self.restored = restored.record.get("beside", {})
        self._saved = restored.step
        return Counters(**restored.record["counters"])

    def refuse_if_other(self) -> None:
        """Raises ConfigError if the folder holds a run with other settings or designs."""
        if self._checkpoints.steps():
            run_record.refuse_if_other(self._folder, self._checkpoints.record(), json.loads(json.dumps(self._identity)))

    def close(self) -> None:
        """Ends Orbax's threads."""
        self._checkpoints.close()


def on_host(tree: Any) -> Any:
    """A copy of a pytree's arrays on the host, which donation cannot touch; random keys stay keys."""
    return jax.tree.map(_copy, tree)


def _copy(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.clone(leaf)
    return np.array(leaf, copy=True)


def _like(new: Any, old: Any) -> Any:
    """`new` where and how `old` is held."""
    if isinstance(old, jax.Array):
        # On devices of other processes it can only be put by all of them together: the learner does that.
        return jax.device_put(new, old.sharding) if old.is_fully_addressable else new
    return np.asarray(new)


def has_checkpoint(run: Path) -> bool:
    """Whether a run folder holds a checkpoint to go on from."""
    checkpoints = Checkpoints(run / FOLDER_NAME, read_only=True)
    try:
        return bool(checkpoints.steps())
    finally:
        checkpoints.close()


def read_parameters(run: str | Path, like: Any) -> tuple[Any, int]:
    """The newest parameters of a run, in the structure of `like` (as `agent.init(0)` gives it), and their iteration.

    Raises:
        CheckpointError: there is none, it is damaged or of another network.
    """
    checkpoints = Checkpoints(Path(run) / FOLDER_NAME, read_only=True)
    try:
        restored = checkpoints.restore({"parameters": like})
        return restored.tree["parameters"], restored.step
    finally:
        checkpoints.close()
