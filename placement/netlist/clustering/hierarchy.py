"""Modules of a design's hierarchy, read from its cells' names, as hints for a partition.

Axis legend: M pairs of a module and a cell in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_DIVIDER = "/"


def module_edges(names: Sequence[str], cells: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """The modules that are no larger than two parts, each as a hyperedge of its cells.

    Args:
        names: of all nodes, `/` between levels.
        cells: int64 [·], the nodes that count.
        parts: of the partition to come.

    Returns:
        int64 [M] each: modules, numbered from 0, and the nodes in them, by module.
    """
    most = max(2, 2 * len(cells) // max(parts, 1))
    members: dict[str, list[int]] = {}
    for cell in cells.tolist():
        path = names[cell]
        while (at := path.rfind(_DIVIDER)) > 0:
            path = path[:at]
            inside = members.setdefault(path, [])
            # One more than may be in it: enough to see that it is too large.
            if len(inside) <= most:
                inside.append(cell)
    kept = [inside for inside in members.values() if 2 <= len(inside) <= most]
    if not kept:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    module = np.repeat(np.arange(len(kept)), [len(inside) for inside in kept])
    return module, np.concatenate([np.array(inside, dtype=np.int64) for inside in kept])
