"""Checkpoints with Orbax, and the state of a run in them.

A checkpoint is a pytree of arrays and a JSON record, written whole or not at all; nothing is unpickled. The record
contains every leaf's path in the tree, dtype, shape and checksum, so that a checkpoint of another network is
distinguished from a damaged one before anything is used.

A run's tree has three entries: `learner` (its whole state: parameters, optimiser, step, random state, statistics),
`parameters` (the part that actors and evaluators need) and `best` (the best placement of each design, with its costs).
Its record contains counters, elapsed seconds, settings, the designs' fingerprints and the episodes that were learned
from.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import logging
import threading
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import orbax.checkpoint as ocp

from placement.config import TrainConfig
from placement.ppo.learner import Learner
from placement.training import run_folder
from placement.training.best import BestTracker
from placement.utils.disk import checked_space

_log = logging.getLogger(__name__)
FORMAT = 2  # format version; it rises when older checkpoints can no longer be read
LEAF_BYTES = 1000  # overhead of a leaf on disk, in bytes


class CheckpointError(RuntimeError):
    """A checkpoint cannot be used; the message names its folder and the fault."""


class CheckpointMismatch(CheckpointError):
    """The checkpoint contains another tree (another network, another design) than the requested one."""


class CheckpointDamaged(CheckpointError):
    """The checkpoint's files are incomplete or changed."""


class Restored(NamedTuple):
    """The content of a checkpoint: its number, a pytree of host arrays, and the JSON record passed to `save`."""

    step: int
    tree: Any
    record: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run in a folder, of which the newest `keep` are kept.

    With `read_only` nothing is written or cleaned up, for a reader beside a run in progress.
    """

    def __init__(self, folder: str | Path, *, keep: int = 3, read_only: bool = False) -> None:
        self._folder = Path(folder).absolute()
        self._keep, self._read_only = keep, read_only

    def steps(self) -> list[int]:
        """The numbers of the complete checkpoints, oldest first."""
        if not self._folder.is_dir():
            return []
        self._manager.reload()  # Another process may have saved.
        return sorted(self._manager.all_steps())

    def save(self, step: int, tree: Any, record: Mapping[str, Any]) -> None:
        """Saves a pytree of plain arrays and a JSON-compatible record under the number `step`; returns once they are on
        disk.

        Replaces a checkpoint of the same number. Raises DiskFull if there is not enough space.
        """
        tree = jax.tree.map(np.asarray, tree)
        leaves = _leaves(tree)
        manifest = {path: [_kind(leaf), _checksum(leaf)] for path, leaf in leaves.items()}
        content = {"format": FORMAT, "leaves": manifest, "record": dict(record)}
        items = ocp.args.Composite(tree=ocp.args.PyTreeSave(tree), record=ocp.args.JsonSave(content))
        self._folder.mkdir(parents=True, exist_ok=True)
        with checked_space(self._folder / str(step), sum(leaf.nbytes + LEAF_BYTES for leaf in leaves.values())):
            if step in self._manager.all_steps():
                self._manager.delete(step)
            self._manager.save(step, args=items, force=True)
            self._manager.wait_until_finished()

    def record(self, step: int | None = None) -> dict[str, Any]:
        """The JSON record of a checkpoint (the newest by default); raises CheckpointError."""
        return self._read_record(self._step(step))["record"]

    def restore(self, like: Mapping[str, Any], *, step: int | None = None) -> Restored:
        """Restores the entries of a saved tree that `like` has, as host arrays in the structure, shapes and dtypes of
        `like`.

        Without `step`, the newest undamaged checkpoint is used; a warning names the damaged ones. Raises
        CheckpointMismatch for another tree, CheckpointDamaged if all are damaged, and CheckpointError if there are
        none.
        """
        newest = self._step(step)
        older = [] if step is not None else [each for each in self.steps() if each < newest]
        while older:
            try:
                return self._restore(like, newest)
            except CheckpointDamaged as error:
                _log.warning("%s; trying the previous checkpoint", error)
                newest = older.pop()
        return self._restore(like, newest)

    def close(self) -> None:
        if (manager := vars(self).pop("_manager", None)) is not None:
            manager.close()

    @functools.cached_property
    def _manager(self) -> ocp.CheckpointManager:
        alone = _this_process_alone()
        handlers = {
            "tree": ocp.PyTreeCheckpointHandler(multiprocessing_options=alone),
            "record": ocp.JsonCheckpointHandler(multiprocessing_options=alone),
        }
        absl = logging.getLogger("absl")
        level = absl.level
        absl.setLevel(logging.ERROR)  # `read_only` alone causes two warnings.
        try:
            options = ocp.CheckpointManagerOptions(
                max_to_keep=None if self._read_only else self._keep,
                create=False,
                cleanup_tmp_directories=not self._read_only,
                read_only=self._read_only,
                enable_async_checkpointing=False,
                multiprocessing_options=alone,
            )
            return ocp.CheckpointManager(self._folder, options=options, item_handlers=handlers)
        finally:
            absl.setLevel(level)

    def _step(self, step: int | None) -> int:
        steps = self.steps()
        if not steps or (step is not None and step not in steps):
            wanted = "no checkpoint" if step is None else f"no checkpoint {step}"
            raise CheckpointError(f"{self._folder}: {wanted}; there are {steps or 'none'}")
        return steps[-1] if step is None else step

    def _read_record(self, step: int) -> dict[str, Any]:
        content = self._read(step, "record", ocp.args.JsonRestore())
        if not isinstance(content, dict) or not {"format", "leaves", "record"} <= content.keys():
            raise CheckpointDamaged(f"{self._folder}/{step}: its record is incomplete")
        if content["format"] != FORMAT:
            raise CheckpointMismatch(
                f"{self._folder}/{step}: has format version {content['format']}; this program reads {FORMAT}: finish "
                "the run with the version that started it, or give another run_dir"
            )
        return content

    def _read(self, step: int, item: str, how: Any) -> Any:
        """One item of a checkpoint. Any exception of Orbax or TensorStore means damage."""
        try:
            return self._manager.restore(step, args=ocp.args.Composite(**{item: how}))[item]
        except Exception as error:  # Their exceptions have no common base.
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise CheckpointDamaged(f"{self._folder}/{step}: cannot be read ({reason[:300]})") from error

    def _restore(self, like: Mapping[str, Any], step: int) -> Restored:
        content, wanted = self._read_record(step), jax.tree.map(np.asarray, dict(like))
        entries = tuple(f"[{key!r}]" for key in like)
        saved = {path: leaf for path, leaf in content["leaves"].items() if path.startswith(entries)}
        self._require_same({path: kind for path, (kind, _) in saved.items()}, wanted, step)
        how = ocp.args.PyTreeRestore(
            wanted, restore_args=ocp.checkpoint_utils.construct_restore_args(wanted), partial_restore=True
        )
        tree = self._read(step, "tree", how)
        for path, leaf in _leaves(tree).items():
            if _checksum(leaf) != saved[path][1]:
                raise CheckpointDamaged(f"{self._folder}/{step}: {path} does not match its checksum")
        return Restored(step, tree, content["record"])

    def _require_same(self, saved: Mapping[str, str], wanted: Any, step: int) -> None:
        """Raises CheckpointMismatch naming the first few leaves that differ."""
        expected = {path: _kind(leaf) for path, leaf in _leaves(wanted).items()}
        differences = [f"does not have {path}" for path in expected if path not in saved]
        differences += [f"also has {path}" for path in sorted(saved.keys() - expected.keys())]
        differences += [
            f"{path} is {saved[path]}, expected {expected[path]}"
            for path in sorted(saved.keys() & expected.keys())
            if saved[path] != expected[path]
        ]
        if differences:
            more = f" and {len(differences) - 3} more differences" if len(differences) > 3 else ""
            raise CheckpointMismatch(
                f"{self._folder}/{step}: belongs to another network, design or version of macro-placement: "
                f"{'; '.join(differences[:3])}{more}"
            )


def _this_process_alone() -> ocp.options.MultiprocessingOptions:
    """Options with which one of several learner hosts saves without waiting for the others."""
    if jax.process_count() == 1:
        return ocp.options.MultiprocessingOptions()
    index = jax.process_index()
    return ocp.options.MultiprocessingOptions(
        primary_host=index, active_processes={index}, barrier_sync_key_prefix=f"host{index}"
    )


def _leaves(tree: Any) -> dict[str, np.ndarray]:
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _checksum(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


@dataclasses.dataclass(frozen=True)
class Counters:
    """The progress of a run: iterations done, episodes and steps learned from, seconds spent."""

    iteration: int = 0
    episodes: int = 0
    steps: int = 0
    seconds: float = 0.0

    def done(self, config: TrainConfig) -> bool:
        minutes = config.runtime.minutes
        return self.iteration >= config.ppo.iterations or bool(minutes and self.seconds >= 60 * minutes)


@dataclasses.dataclass(frozen=True)
class TrainingState:
    """A consistent state of a run, in pytrees of host arrays, to be saved whenever the run ends."""

    counters: Counters
    learner: Any
    parameters: Any


class Saver:
    """Saves and restores a run; a context manager, whose end closes Orbax. `identity` is that of `run_folder.identity`.

    Attributes:
        learned: returns the episodes learned from, int64 [N, 3], in the format of `EpisodeIntervalSet.rows`;
            replaceable.
        learned_before: the value of `learned` when the restored checkpoint was saved.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self._folder, self._identity = folder, identity
        self._checkpoints = Checkpoints(folder / run_folder.CHECKPOINTS_NAME)
        self.learned_before = np.zeros((0, 3), np.int64)
        self.learned: Callable[[], np.ndarray] = lambda: self.learned_before
        self._lock = threading.Lock()
        self._saved = -1  # the iteration whose checkpoint is known to be on disk

    def __enter__(self) -> Saver:
        return self

    def __exit__(self, *error: object) -> None:
        self._checkpoints.close()

    def save(self, state: TrainingState, best: BestTracker) -> None:
        """Saves a checkpoint, unless that of this iteration is on disk already; thread-safe. Raises DiskFull."""
        iteration = state.counters.iteration
        with self._lock:
            if self._saved == iteration:
                return
            tree = {"learner": state.learner, "parameters": state.parameters, "best": best.arrays()}
            record = {"counters": dataclasses.asdict(state.counters), "origins": best.origins(), **self._identity}
            self._checkpoints.save(iteration, tree, {**record, "learned": self.learned().tolist()})
            self._saved = iteration

    def restore(self, learner: Learner, best: BestTracker) -> Counters:
        """Restores the newest checkpoint, if any, into `learner` and `best`; raises CheckpointError."""
        if not self._checkpoints.steps():
            return Counters()
        restored = self._checkpoints.restore({"learner": learner.state, "best": best.arrays()})
        learner.state = jax.tree.map(_like, restored.tree["learner"], learner.state)
        best.restore(restored.tree["best"], restored.record["origins"])
        self.learned_before = np.array(restored.record["learned"], np.int64).reshape(-1, 3)
        self._saved = restored.step
        return Counters(**restored.record["counters"])

    def finished(self, config: TrainConfig, best: BestTracker) -> Counters | None:
        """Returns the counters of a complete run, and adds its best placements to `best`; returns None for other runs.

        Builds no learner and compiles nothing. Raises CheckpointError if the checkpoint is damaged.
        """
        if not self._checkpoints.steps():
            return None
        counters = Counters(**self._checkpoints.record()["counters"])
        if not counters.done(config):
            return None
        restored = self._checkpoints.restore({"best": best.arrays()})
        best.restore(restored.tree["best"], restored.record["origins"])
        return counters

    def require_same_run(self) -> None:
        """Raises ConfigError if the folder contains a run with other settings or designs."""
        if self._checkpoints.steps():
            run_folder.require_same(self._folder, self._checkpoints.record(), json.loads(json.dumps(self._identity)))


def on_host(tree: Any) -> Any:
    """Copies a pytree's arrays to the host, safe from donation."""
    return jax.tree.map(np.array, tree)


def _like(new: Any, old: Any) -> Any:
    """The values of `new` with the type and the sharding of `old`."""
    if isinstance(old, jax.Array):
        # Only all processes together can put it on devices of other processes; the learner does that.
        return jax.device_put(new, old.sharding) if old.is_fully_addressable else new
    return np.asarray(new)


def has_checkpoint(run: Path) -> bool:
    """Whether a run folder contains a checkpoint to resume from."""
    with contextlib.closing(Checkpoints(run / run_folder.CHECKPOINTS_NAME, read_only=True)) as checkpoints:
        return bool(checkpoints.steps())


def read_parameters(run: str | Path, like: Any) -> tuple[Any, int]:
    """The newest parameters of a run, in the structure of `like`, and their iteration; raises CheckpointError."""
    with contextlib.closing(Checkpoints(Path(run) / run_folder.CHECKPOINTS_NAME, read_only=True)) as checkpoints:
        restored = checkpoints.restore({"parameters": like})
        return restored.tree["parameters"], restored.step
