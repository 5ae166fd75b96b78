"""What the judge learns from, in memory: a design's placements as the network takes them, and what the check said.

Axis legend: B placements of one design, E nets (padded), G cells of a map across and up, Q parts.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from placement.engine.costs import proxy_cost
from placement.judge.dataset import read_samples
from placement.judge.geometry import Geometry, Viewer, resized
from placement.judge.network import View
from placement.netlist.load import load

NET_BUCKET = 1024
"""E is rounded up to a multiple of this, so that compilations stay few."""


class Scaling(NamedTuple):
    """How the parts are standardised: float32 [Q] each."""

    mean: np.ndarray
    deviation: np.ndarray


class Targets(NamedTuple):
    """What the flat check said of a design's placements.

    Attributes:
        wirelength: float32 [B], log of the routed wirelength over the canvas's half perimeter times the nets' weight.
        overflow: float32 [B], square root of the share of the demand above capacity.
        maps: float32 [B, G, G, 2], log(1 + demand over capacity).
    """

    wirelength: np.ndarray
    overflow: np.ndarray
    maps: np.ndarray


class Example(NamedTuple):
    """A design's placements.

    Attributes:
        name: of the design.
        viewer: who saw them.
        geometry: what was seen.
        targets: what is to be predicted.
        chip, proxy: float64 [B], the costs, soft macros as they are: annealed for the chip cost.
        flat: float64 [B], µm, the flat wirelength.
    """

    name: str
    viewer: Viewer
    geometry: Geometry
    targets: Targets
    chip: np.ndarray
    proxy: np.ndarray
    flat: np.ndarray


def read_examples(folders: Sequence[Path], workers: int = 1) -> list[Example]:
    """The examples of designs that have at least two samples whose cells spread as they should.

    Args:
        folders: of the designs.
        workers: processes that share them, on the CPU.

    Raises:
        DesignError: a file cannot be used.
    """
    if workers == 1:
        found = [_read(folder) for folder in folders]
    else:
        context = multiprocessing.get_context("spawn")
        pool = concurrent.futures.ProcessPoolExecutor(workers, context, initializer=_begin)
        try:
            found = list(pool.map(_read, folders))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return [
        Example(folder.name, Viewer(load(str(folder))), *one)
        for folder, one in zip(folders, found, strict=True)
        if one is not None
    ]


def _begin() -> None:
    """Of a process that reads: Ctrl-C is the parent's, and so is an accelerator."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jax.config.update("jax_platforms", "cpu")


def _read(folder: Path) -> tuple[Geometry, Targets, np.ndarray, np.ndarray, np.ndarray] | None:
    """An `Example` without its name and viewer; None where there are fewer than two samples."""
    design, samples = read_samples(folder)
    samples = [sample for sample in samples if sample.truth.converged]
    if len(samples) < 2:
        return None
    viewer = Viewer(design)
    placements = [sample.placement for sample in samples]
    scale = viewer.scale * float(design.netlist.net_weight.sum())
    truth = [sample.truth for sample in samples]
    maps = np.stack([np.stack([resized(one.horizontal), resized(one.vertical)], axis=-1) for one in truth])
    return (
        viewer.see(placements),
        Targets(
            wirelength=np.log([one.routed_wirelength / scale for one in truth]).astype(np.float32),
            overflow=np.sqrt([one.overflow for one in truth]).astype(np.float32),
            maps=np.log1p(maps).astype(np.float32),
        ),
        np.array([proxy_cost(design, one, weights=viewer.CHIP).proxy_cost for one in placements]),
        np.array([proxy_cost(design, one, weights=viewer.PROXY).proxy_cost for one in placements]),
        np.array([one.flat_wirelength for one in truth]),
    )


def scaling_of(examples: list[Example]) -> Scaling:
    """Of the parts of all placements."""
    parts = np.concatenate([example.geometry.parts for example in examples])
    return Scaling(parts.mean(0), np.maximum(parts.std(0), 1e-6))


def view_of(viewer: Viewer, geometry: Geometry, scaling: Scaling) -> View:
    """Placements as the network takes them, the nets padded."""
    nets = len(viewer.weight)
    padding = -nets % NET_BUCKET

    def padded(array: np.ndarray, axis: int, value: float = 0.0) -> np.ndarray:
        widths = [(0, padding if number == axis else 0) for number in range(array.ndim)]
        return np.pad(array, widths, constant_values=value).astype(np.float32)

    return View(
        maps=geometry.maps,
        boxes=padded(geometry.boxes, 1),
        lengths=padded(geometry.lengths, 1),
        parts=((geometry.parts - scaling.mean) / scaling.deviation).astype(np.float32),
        weight=padded(viewer.weight, 0),
        degree=padded(viewer.degree, 0, 1.0),
        aspect=(viewer.size / viewer.scale).astype(np.float32),
    )
