"""Partitioning a hypergraph with Mt-KaHyPar, the same way on every run.

Its deterministic presets give the same parts for a seed on any number of threads. (Its preset for many parts is six
times as fast, but takes no fixed vertices, and its parts are joined by a tenth more.)

Axis legend: V vertices, M pins (pairs of a hyperedge and a vertex).
"""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from placement.netlist.errors import DesignError


@functools.cache
def _mtkahypar() -> tuple[Any, Any]:
    """The module and its library, which a process starts once, on all processors that it may use."""
    try:
        import mtkahypar
    except ImportError:
        raise DesignError("clustering needs the package mtkahypar (pip install mtkahypar)") from None
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return mtkahypar, mtkahypar.initialize(usable, False)


def partition(
    edge: np.ndarray,
    vertex: np.ndarray,
    *,
    edge_weight: np.ndarray,
    vertex_weight: np.ndarray,
    fixed: np.ndarray,
    parts: int,
    imbalance: float,
    seed: int,
) -> tuple[np.ndarray, int]:
    """Splits vertices into parts of about the same weight so that hyperedges join few parts.

    Args:
        edge: int64 [M], hyperedges of the pins, rising from 0.
        vertex: int64 [M].
        edge_weight: int64, one per hyperedge.
        vertex_weight: int64 [V], above 0.
        fixed: int32 [V], the part that a vertex must be in, -1: any.
        parts: how many.
        imbalance: by which a part may be heavier than the mean.
        seed: repeats the result exactly.

    Returns:
        int32 [V], each vertex's part; and the connectivity (sum of weight × (parts joined - 1)).

    Raises:
        DesignError: Mt-KaHyPar is not installed or finds no such partition.
    """
    count = len(vertex_weight)
    if parts < 2 or count <= 1:
        return np.maximum(fixed, 0).astype(np.int32), 0
    module, library = _mtkahypar()
    # The seed is taken over by contexts made after it.
    module.set_seed(seed)
    context = library.context_from_preset(module.PresetType.DETERMINISTIC_QUALITY)
    context.set_partitioning_parameters(parts, imbalance, module.Objective.KM1)
    context.logging = False
    ends = np.cumsum(np.bincount(edge, minlength=len(edge_weight)))
    edges = [pins.tolist() for pins in np.split(vertex, ends[:-1])]
    try:
        graph = library.create_hypergraph(
            context, count, len(edges), edges, vertex_weight.tolist(), edge_weight.tolist()
        )
        del edges
        if (fixed >= 0).any():
            graph.add_fixed_vertices(fixed.tolist(), parts)
        found = graph.partition(context)
    except RuntimeError as error:
        raise DesignError(f"Mt-KaHyPar cannot split {count} vertices into {parts} parts: {error}") from None
    return np.array(found.get_partition(), dtype=np.int32), int(found.km1())
