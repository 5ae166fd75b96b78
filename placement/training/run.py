"""What every runtime does around the learner's loop: restore, learn, save, say where everything is."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

from placement.training.best import BestTracker
from placement.training.learner_loop import LearnerLoop
from placement.training.progress import ProgressSink
from placement.training.run_result import STOPPING, RunResult
from placement.training.saving import Counters, Saver
from placement.training.trained_run import Parameters
from placement.utils.interruption import Interrupted
from placement.utils.supervisor import WorkerStuck

_log = logging.getLogger(__name__)
STOP_SECONDS = 30.0
"""That actors may take to end."""


def restore(
    saver: Saver, learner: Any, best: BestTracker, *, folder: Path, initial: Parameters | None, progress: ProgressSink
) -> Counters:
    """Puts the newest checkpoint into `learner` and `best`; a run without one begins with `initial`, if given.

    Raises:
        CheckpointError: the checkpoints cannot be used.
    """
    counters = saver.restore(learner, best)
    if counters.iteration:
        best.recover(folder)
        progress.note(f"goes on after iteration {counters.iteration} of the run in {folder}")
    if initial is not None:
        learner.begin_with(initial.values)
        progress.note(f"begins with the parameters of iteration {initial.iteration} of the run in {initial.run}")
    return counters


def complete(loop: LearnerLoop, *, flips: bool) -> RunResult:
    """Runs the loop; whatever ends it, the last good state is saved and the actors end.

    Args:
        loop: ready to run.
        flips: whether to mirror the best placements' macros at the end, where that is cheaper.
    """
    interrupted, note = False, loop.parts.progress.note
    with contextlib.ExitStack() as ending:
        ending.callback(_end_actors, loop)
        ending.callback(loop.save)
        try:
            loop.run()
        except Interrupted:
            interrupted = True
            note(STOPPING)
    ended = result(loop, interrupted=interrupted)
    if interrupted:
        note(f"stopped after iteration {ended.iterations} with a checkpoint: the same command goes on from there")
    name = loop.parts.best.weights.name
    for file, cost in zip(ended.best_files, loop.parts.best.costs(), strict=True):
        note(f"best placement: {file} ({name} cost {cost:.4f})")
    for path, flipped in loop.parts.best.write_flipped(ended.run_dir) if flips and not interrupted else ():
        cost = flipped.costs.total
        note(f"the same, {flipped.flipped} macros flipped: {path} ({name} cost {cost:.4f})")
    note(f"run folder: {ended.run_dir}")
    return ended


def result(loop: LearnerLoop, *, interrupted: bool) -> RunResult:
    """How far the run is; the best placements are on disk."""
    counters, best = loop.state.counters, loop.parts.best
    best.write(loop.folder, iteration=counters.iteration)
    return RunResult(
        run_dir=loop.folder,
        iterations=counters.iteration,
        episodes=counters.episodes,
        seconds=counters.seconds,
        best_cost=best.mean_cost(),
        mean_cost=loop.last.get("cost_mean", float("nan")),
        best_files=best.files(loop.folder),
        interrupted=interrupted,
    )


def _end_actors(loop: LearnerLoop) -> None:
    try:
        loop.parts.supervisor.shut_down(timeout=STOP_SECONDS)
    except WorkerStuck as error:
        _log.warning("%s", error)
