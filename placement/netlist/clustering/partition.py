"""Partitioning a hypergraph with Mt-KaHyPar, the same way on every run.

Its deterministic presets give the same parts for a seed on any number of threads. (Its preset for many parts is six
times as fast, but takes no fixed vertices, and its parts are joined by a tenth more.)

Axis legend: V vertices, M pins (pairs of a hyperedge and a vertex).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from placement.netlist.clustering.partition_worker import FAILED
from placement.netlist.errors import DesignError

DEADLINE = 6 * 3600.0
"""Seconds that a partition may take; a million cells take a quarter of an hour."""


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

    It runs in a process of its own, on all processors that this one may use; Ctrl-C ends it.

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
        DesignError: Mt-KaHyPar is not installed, finds no such partition, or takes longer than `DEADLINE`.
    """
    count = len(vertex_weight)
    if parts < 2 or count <= 1:
        return np.maximum(fixed, 0).astype(np.int32), 0
    if not len(edge_weight):
        return _even(fixed, parts), 0
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="partition-") as folder:
        given, wanted = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(
            given, edge=edge, vertex=vertex, edge_weight=edge_weight, vertex_weight=vertex_weight, fixed=fixed,
            parts=parts, imbalance=imbalance, seed=seed, threads=usable,
        )  # fmt: skip
        _run([str(given), str(wanted)], what=f"{count} vertices into {parts} parts")
        with np.load(wanted, allow_pickle=False) as file:
            return file["part"], int(file["cost"])


def _even(fixed: np.ndarray, parts: int) -> np.ndarray:
    """int32 [V]: the parts where nothing joins vertices; the free ones, in their order, fill the parts left over."""
    found, free = fixed.astype(np.int32), np.flatnonzero(fixed < 0)
    left = np.setdiff1d(np.arange(parts, dtype=np.int32), fixed)
    left = left if len(left) else np.arange(parts, dtype=np.int32)
    found[free] = left[np.arange(len(free)) * len(left) // max(len(free), 1)]
    return found


def _run(files: list[str], *, what: str) -> None:
    """Runs the process that partitions; raises DesignError where it fails."""
    command = [sys.executable, "-m", "placement.netlist.clustering.partition_worker", *files]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    except subprocess.TimeoutExpired:
        raise DesignError(f"splitting {what} took longer than {DEADLINE / 3600:g} hours") from None
    said = done.stderr.strip().splitlines()
    if done.returncode == FAILED:
        raise DesignError(said[-1] if said else f"Mt-KaHyPar cannot split {what}")
    if done.returncode != 0:
        last = said[-1] if said else "it said nothing"
        raise DesignError(f"splitting {what}: the process ended with status {done.returncode}: {last}")
