"""What the judge learns from, in memory: a design's placements as the network takes them, and what the check said.

Axis legend: B placements of one design, E nets (padded), G cells of a map across and up, Q parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placement.judge.geometry import Geometry, Viewer
from placement.judge.network import View

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
        seconds: of the processor, that showing a placement took.
    """

    name: str
    viewer: Viewer
    geometry: Geometry
    targets: Targets
    chip: np.ndarray
    proxy: np.ndarray
    flat: np.ndarray
    seconds: float


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
