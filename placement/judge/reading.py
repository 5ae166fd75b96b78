"""Designs of a data set, read and shown to the judge, by one process or by several.

What takes the time is to spread and to route the clusters of each placement.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import jax
import numpy as np

from placement.engine.costs import compute_costs
from placement.judge.dataset import read_samples
from placement.judge.examples import Example, Targets
from placement.judge.geometry import Viewer, resized
from placement.judge.processes import process_lost, submit_all
from placement.netlist.errors import DesignError
from placement.utils.compilation import keep_compilations

_DOES = "reads the data"
DEADLINE = 3600.0
"""Seconds that the next design in order is waited for."""


def read_examples(folders: Sequence[Path], workers: int = 1) -> Iterator[Example]:
    """The examples of designs that have at least two samples whose cells spread as they should, in their order.

    Args:
        folders: of the designs.
        workers: processes that share them, on the CPU; they end with the iteration, however that ends.

    Raises:
        DesignError: a file cannot be used, or a process died.
    """
    if workers == 1:
        found: Iterator[Example | None] = map(read_example, folders)
    else:
        found = _shared(folders, workers)
    yield from (example for example in found if example is not None)


def read_example(folder: Path) -> Example | None:
    """One of them; raises DesignError."""
    design, samples = read_samples(folder)
    samples = [sample for sample in samples if sample.truth.converged]
    if len(samples) < 2:
        return None
    viewer = Viewer(design)
    placements = [sample.placement for sample in samples]
    begun = time.process_time()
    geometry = viewer.see(placements)
    seconds = (time.process_time() - begun) / len(placements)
    scale = viewer.scale * float(design.netlist.net_weight.sum())
    truth = [sample.truth for sample in samples]
    maps = np.stack([np.stack([resized(one.horizontal), resized(one.vertical)], axis=-1) for one in truth])
    return Example(
        name=folder.name,
        viewer=viewer,
        geometry=geometry,
        targets=Targets(
            wirelength=np.log([one.routed_wirelength / scale for one in truth]).astype(np.float32),
            overflow=np.sqrt([one.overflow for one in truth]).astype(np.float32),
            maps=np.log1p(maps).astype(np.float32),
        ),
        chip=np.array([compute_costs(design, one, weights=viewer.CHIP).total for one in placements]),
        proxy=np.array([compute_costs(design, one, weights=viewer.PROXY).total for one in placements]),
        flat=np.array([one.flat_wirelength for one in truth]),
        seconds=seconds,
    )


def _shared(folders: Sequence[Path], workers: int) -> Iterator[Example | None]:
    """The same by processes; whatever ends it ends them at once."""
    others = set(multiprocessing.active_children())
    pool = concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_begin)
    finished = False
    try:
        waiting = submit_all(pool, read_example, folders, process_lost(workers, _DOES))
        for folder, future in zip(folders, waiting, strict=True):
            yield _result(folder, future, workers)
        finished = True
    finally:
        if not finished:
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _result(folder: Path, future: concurrent.futures.Future[Example | None], workers: int) -> Example | None:
    try:
        return future.result(DEADLINE)
    except BrokenProcessPool:
        raise process_lost(workers, _DOES) from None
    except TimeoutError:
        message = f"was not read in {DEADLINE:,.0f} s; are there processors for workers={workers}?"
        raise DesignError(f"{folder}: {message}") from None


def _begin() -> None:
    """Of a process that reads: Ctrl-C is the parent's, and so is an accelerator."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jax.config.update("jax_platforms", "cpu")
    keep_compilations()
