"""The process that partitions: `python -m placement.netlist.clustering.partition_worker IN.npz OUT.npz`.

Mt-KaHyPar keeps Python's lock until it has finished, so that a process that calls it hears no Ctrl-C meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

FAILED = 3
"""The exit status where Mt-KaHyPar is absent or finds no partition; standard error then says so in a line."""


class PartitionFailed(Exception):
    """Mt-KaHyPar is not installed or finds no partition."""


def main(arguments: Sequence[str]) -> int:
    """Reads the hypergraph in a file, writes `part` (int32 [V]) and `cost`; returns the exit status."""
    given, wanted = arguments
    with np.load(given, allow_pickle=False) as file:
        values = {name: file[name] for name in file.files}
    try:
        part, cost = split(values)
    except PartitionFailed as error:
        print(error, file=sys.stderr)
        return FAILED
    np.savez(wanted, part=part, cost=cost)
    return 0


def split(values: dict[str, np.ndarray]) -> tuple[np.ndarray, int]:
    """The parts of the vertices and the connectivity; `values` are the arguments of `partition`, and `threads`."""
    try:
        import mtkahypar
    except ImportError:
        raise PartitionFailed("clustering needs the package mtkahypar (pip install mtkahypar)") from None
    library = mtkahypar.initialize(int(values["threads"]), False)
    # The seed is taken over by contexts made after it.
    mtkahypar.set_seed(int(values["seed"]))
    context = library.context_from_preset(mtkahypar.PresetType.DETERMINISTIC_QUALITY)
    parts, weight = int(values["parts"]), values["vertex_weight"]
    context.set_partitioning_parameters(parts, float(values["imbalance"]), mtkahypar.Objective.KM1)
    context.logging = False
    edge_weight, fixed = values["edge_weight"], values["fixed"]
    ends = np.cumsum(np.bincount(values["edge"], minlength=len(edge_weight)))
    edges = [pins.tolist() for pins in np.split(values["vertex"], ends[:-1])]
    try:
        graph = library.create_hypergraph(
            context, len(weight), len(edges), edges, weight.tolist(), edge_weight.tolist()
        )
        del edges
        if (fixed >= 0).any():
            graph.add_fixed_vertices(fixed.tolist(), parts)
        found = graph.partition(context)
    except RuntimeError as error:
        text = " ".join(str(error).split())
        raise PartitionFailed(f"Mt-KaHyPar cannot split {len(weight)} vertices into {parts} parts: {text}") from None
    return np.array(found.get_partition(), dtype=np.int32), int(found.km1())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
