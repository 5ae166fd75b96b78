"""Partitions a hypergraph with Mt-KaHyPar, reproducibly, in a separate process.

Its deterministic presets give the same partition for a seed on any number of threads. (Its preset for many blocks is
six times as fast, but supports no fixed vertices and cuts a tenth more hyperedges.) It holds Python's global
interpreter lock until it has finished, so that the calling process does not react to Ctrl-C until then; therefore this
module also runs as `python -m placement.netlist.clustering.partition IN.npz OUT.npz`.

Axis legend: V vertices, M pins (pairs of a hyperedge and a vertex).
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from placement.netlist.errors import DesignError
from placement.utils.worker_threads import usable_cores

DEADLINE = 6 * 3600.0  # timeout of a partition in seconds; a million cells take a quarter of an hour


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
) -> np.ndarray:
    """Partitions the vertices into blocks of about the same weight that few hyperedges connect; returns int32 [V].

    It runs on all processors.

    `edge` and `vertex` are int64 [M], the pins' hyperedges, rising from 0, and vertices; `edge_weight` int64, one per
    hyperedge; `vertex_weight` int64 [V], above 0; `fixed` int32 [V], the block that a vertex must be in, -1 for any. A
    block may exceed the mean weight by the fraction `imbalance`. The same `seed` gives the same blocks. Raises
    DesignError if Mt-KaHyPar is not installed, finds no such partition, or takes longer than `DEADLINE`.
    """
    count = len(vertex_weight)
    if parts < 2 or count <= 1 or (fixed >= 0).all():
        return np.maximum(fixed, 0).astype(np.int32)
    if not len(edge_weight):
        return _even(fixed, parts)
    with tempfile.TemporaryDirectory(prefix="partition-") as folder:
        given, wanted = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(
            given, edge=edge, vertex=vertex, edge_weight=edge_weight, vertex_weight=vertex_weight, fixed=fixed,
            parts=parts, imbalance=imbalance, seed=seed, threads=usable_cores(),
        )  # fmt: skip
        _run([str(given), str(wanted)], what=f"{count} vertices into {parts} parts")
        with np.load(wanted, allow_pickle=False) as file:
            return file["part"]


def _even(fixed: np.ndarray, parts: int) -> np.ndarray:
    """The blocks if no hyperedges exist, int32 [V]; the free vertices, in order, fill up the blocks."""
    found, free = fixed.astype(np.int32), np.flatnonzero(fixed < 0)
    left = np.setdiff1d(np.arange(parts, dtype=np.int32), fixed)
    left = left if len(left) else np.arange(parts, dtype=np.int32)
    found[free] = left[np.arange(len(free)) * len(left) // max(len(free), 1)]
    return found


def _run(files: list[str], *, what: str) -> None:
    """Runs the partitioning process; raises DesignError if it fails."""
    command = [sys.executable, "-m", "placement.netlist.clustering.partition", *files]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    except subprocess.TimeoutExpired:
        raise DesignError(f"splitting {what} took longer than {DEADLINE / 3600:g} hours") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it wrote nothing"])[-1]
        raise DesignError(f"splitting {what}: the process ended with status {done.returncode}: {last}")


def _split(values: dict[str, np.ndarray]) -> np.ndarray:
    """Returns the blocks of the vertices; `values` are the arguments of `partition`, and `threads`."""
    try:
        import mtkahypar
    except ImportError:
        sys.exit("clustering needs the package mtkahypar (pip install mtkahypar)")
    library = mtkahypar.initialize(int(values["threads"]), False)
    # The seed applies only to contexts made after it is set.
    mtkahypar.set_seed(int(values["seed"]))
    context = library.context_from_preset(mtkahypar.PresetType.DETERMINISTIC_QUALITY)
    parts, weight = int(values["parts"]), values["vertex_weight"]
    context.set_partitioning_parameters(parts, float(values["imbalance"]), mtkahypar.Objective.KM1)
    context.logging = False
    edge_weight, fixed = values["edge_weight"], values["fixed"]
    ends = np.cumsum(np.bincount(values["edge"], minlength=len(edge_weight)))
    edges = [pins.tolist() for pins in np.split(values["vertex"], ends[:-1])]
    graph = library.create_hypergraph(context, len(weight), len(edges), edges, weight.tolist(), edge_weight.tolist())
    del edges
    if (fixed >= 0).any():
        graph.add_fixed_vertices(fixed.tolist(), parts)
    return np.array(graph.partition(context).get_partition(), dtype=np.int32)


if __name__ == "__main__":
    with np.load(sys.argv[1], allow_pickle=False) as given_file:
        arguments = {key: given_file[key] for key in given_file.files}
    try:
        np.savez(sys.argv[2], part=_split(arguments))
    except RuntimeError as error:
        sys.exit(f"Mt-KaHyPar cannot split it: {' '.join(str(error).split())}")
