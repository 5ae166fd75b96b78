"""Artificial observations for tests and benchmarks of the policy: right shapes and ranges, without an engine.

Axis legend: B environments, K maps, R grid rows, C grid columns, T macros to place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement.engine.observation import MAPS, Observation
from placement.netlist.design import Design


def random_observation(
    designs: Sequence[Design], seed: int, batch: int, *, design: Sequence[int] | None = None, extra: int = 0
) -> Observation:
    """Returns a batch of artificial observations.

    Args:
        designs: as given to the pool and the agent.
        seed: of all that is random.
        batch: B.
        design: index of each environment's design; random ones when None.
        extra: rows and columns of padding beyond the largest grid.
    """
    generator = np.random.default_rng(seed)
    index = generator.integers(0, len(designs), batch) if design is None else np.asarray(design)
    rows = max(item.canvas.rows for item in designs) + extra
    columns = max(item.canvas.columns for item in designs) + extra
    macros = max(len(item.placing_order) for item in designs)
    mask = np.zeros((batch, rows, columns), np.uint8)
    maps = np.zeros((batch, len(MAPS), rows, columns), np.float32)
    step = np.zeros(batch, np.int32)
    x, y = np.zeros((2, batch, macros), np.float32)
    for row, which in enumerate(index):
        canvas, placeable = designs[which].canvas, len(designs[which].placing_order)
        grid = np.s_[row, ..., : canvas.rows, : canvas.columns]
        mask[grid] = generator.random((canvas.rows, canvas.columns)) < 0.7
        mask[row, 0, 0] = 1
        maps[grid] = generator.random((len(MAPS), canvas.rows, canvas.columns))
        step[row] = generator.integers(0, placeable)
        x[row, : step[row]], y[row, : step[row]] = generator.random((2, step[row]))
    return Observation(index.astype(np.int32), step, mask, maps, x, y)
