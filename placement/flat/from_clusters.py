"""A placement of the clustered design as one of the flat netlist: macros by name, cells where their clusters are.

Axis legend: N nodes of the flat netlist. Lengths in µm; the clustered design counts from the core's lower left corner.
"""

from __future__ import annotations

import numpy as np

from placement.flat.core import Core
from placement.flat.electrostatic import spread_clusters
from placement.netlist.clustering.soft_macros import SOFT_PREFIX
from placement.netlist.design import Design, Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign

_SAME = 1e-6  # µm, between numbers that were written and read


def core_of(flat: FlatDesign, design: Design) -> Core:
    """Where cells may stand: the rows' core without what the design's constraints block and its macros' halos take.

    Where a halo of the constraints is the larger of the two that the files give on that axis, each side keeps its own.

    Args:
        flat: the design before clustering.
        design: the clustered one, with the constraints.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one.
    """
    core = flat.floorplan.core
    blockages = design.constraints.blockages + np.tile([core.x_low, core.y_low], 2)
    return Core(
        width=core.width,
        height=core.height,
        x=core.x_low,
        y=core.y_low,
        blockages=tuple(map(tuple, blockages.tolist())),
        halo=_halos(flat, design),
    )


def _halos(flat: FlatDesign, design: Design) -> np.ndarray:
    """float64 [N, 4]: left, bottom, right and top of each hard macro in orientation N; 0 of other nodes."""
    hard = flat.netlist.hard
    written, kept = np.zeros((2, flat.netlist.num_nodes, 4))
    written[flat.floorplan.halo_node] = flat.floorplan.halo
    kept[hard] = np.tile(design.constraints.halo[clustered_nodes(flat, design.netlist)], 2)
    larger = np.tile(np.maximum(written[:, :2], written[:, 2:]), 2)
    return np.where(np.isclose(kept, larger, rtol=0.0, atol=_SAME), written, kept)


def clustered_nodes(flat: FlatDesign, netlist: Netlist) -> np.ndarray:
    """int64 [hard macros of the flat netlist]: their nodes in the clustered one."""
    index = {netlist.names[node]: int(node) for node in netlist.hard}
    names = [flat.netlist.names[node] for node in flat.netlist.hard.tolist()]
    missing = [name for name in names if name not in index]
    if missing:
        raise DesignError(f"macro {missing[0]!r} of the flat netlist is not in the clustered netlist")
    return np.array([index[name] for name in names], dtype=np.int64)


def macros_on_flat(flat: FlatDesign, netlist: Netlist, placement: Placement) -> Placement:
    """The flat netlist's ports, fixed nodes, and hard macros as a placement of the clustered netlist has them.

    Args:
        flat: the design before clustering.
        netlist: the clustered one.
        placement: of `netlist`'s nodes.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one, or has no position.
    """
    hard, there = flat.netlist.hard, clustered_nodes(flat, netlist)
    lacking = hard[~placement.placed[there]]
    if len(lacking):
        raise DesignError(f"macro {flat.netlist.names[lacking[0]]!r} has no position")
    own, core = flat.placement, flat.floorplan.core
    x, y, placed = own.x.copy(), own.y.copy(), own.placed.copy()
    orientation = own.orientation.copy()
    x[hard], y[hard] = placement.x[there] + core.x_low, placement.y[there] + core.y_low
    orientation[hard], placed[hard] = placement.orientation[there], True
    return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=own.fixed)


def macros_from_flat(flat: FlatDesign, design: Design, placement: Placement) -> Placement:
    """The clustered design's own placement with its movable hard macros as a placement of the flat netlist has them.

    Args:
        flat: the design before clustering.
        design: the clustered one.
        placement: of the flat netlist; orientations are not read.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one.
    """
    there = clustered_nodes(flat, design.netlist)
    moves = ~design.initial.fixed[there]
    hard, there = flat.netlist.hard[moves], there[moves]
    core = flat.floorplan.core
    return design.initial.moved(there, placement.x[hard] - core.x_low, placement.y[hard] - core.y_low)


def clusters_clear_of_straps(design: Design, placement: Placement, *, standing: bool = False) -> Placement:
    """`placement` with its movable soft macros placed as the flat check spreads their cells (`spread_clusters`).

    Args:
        design: the clustered one.
        placement: its hard macros are read.
        standing: as of `spread_clusters`; then soft macros are, too.

    Raises:
        DesignError: there are no soft macros, or no room for them.
    """
    hard, canvas = design.netlist.hard, design.canvas
    halo = np.stack(design.constraints.sides(placement.orientation) * 2, axis=1)  # left, bottom, right, top
    halo[hard] = np.maximum(halo[hard], design.own_pdn_channel)
    blockages = tuple(map(tuple, design.constraints.blockages.tolist()))
    core = Core(canvas.width, canvas.height, blockages=blockages, halo=halo)
    return spread_clusters(design.netlist, placement, core, standing=standing)


def cells_in_clusters(
    flat: FlatDesign, cluster: np.ndarray, netlist: Netlist, placement: Placement, *, seed: int = 0
) -> Placement:
    """`macros_on_flat` with all cells placed, too: each anywhere in its cluster's soft macro.

    Args:
        flat: the design before clustering.
        cluster: int [N], the soft macro `Grp_<n>` of each cell; -1: none, the cell comes to the core's middle.
        netlist: the clustered one.
        placement: of `netlist`'s nodes.
        seed: of the places within the soft macros.

    Raises:
        DesignError: as `macros_on_flat`; a cluster is not in the clustered netlist or has no position.
    """
    result = macros_on_flat(flat, netlist, placement)
    core = flat.floorplan.core
    index = {netlist.names[node]: int(node) for node in netlist.soft}
    count = int(cluster.max(initial=-1)) + 1
    missing = [number for number in range(count) if f"{SOFT_PREFIX}{number}" not in index]
    if missing:
        raise DesignError(f"cluster {SOFT_PREFIX}{missing[0]} is not in the clustered netlist")
    soft = np.array([index[f"{SOFT_PREFIX}{number}"] for number in range(count)], dtype=np.int64)
    if not placement.placed[soft].all():
        raise DesignError(f"soft macro {netlist.names[soft[~placement.placed[soft]][0]]!r} has no position")
    cells = np.flatnonzero((flat.netlist.kind == NodeKind.CELL) & ~flat.placement.fixed)
    inside = np.random.default_rng(seed).random((2, len(cells))) - 0.5
    of = cluster[cells]
    known = of >= 0
    home = soft[of[known]]
    x = np.full(len(cells), core.width / 2)
    y = np.full(len(cells), core.height / 2)
    x[known] = placement.x[home] + inside[0, known] * netlist.width[home]
    y[known] = placement.y[home] + inside[1, known] * netlist.height[home]
    half = flat.netlist.width[cells] / 2, flat.netlist.height[cells] / 2
    x = np.clip(x, half[0], core.width - half[0]) + core.x_low
    y = np.clip(y, half[1], core.height - half[1]) + core.y_low
    return result.moved(cells, x, y)
