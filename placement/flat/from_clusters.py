"""A placement of the clustered design as one of the flat netlist: macros by name, cells where their clusters are.

Axis legend: N nodes of the flat netlist. Lengths in µm; the clustered design counts from the core's lower left corner.
"""

from __future__ import annotations

import numpy as np

from placement.flat.core import Core
from placement.netlist.clustering.clustered import SOFT_PREFIX
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign


def core_of(flat: FlatDesign) -> Core:
    """Where cells may stand: the rows' core without the blockages; macros keep the mean of the floorplan's halos."""
    plan = flat.floorplan
    blockages = tuple(
        tuple(box)
        for blockage in plan.blockages
        if blockage.layer == "" and not blockage.is_soft and blockage.density is None and blockage.node < 0
        for box in blockage.rectangles.tolist()
    )
    return Core(
        width=plan.core.width,
        height=plan.core.height,
        x=plan.core.x_low,
        y=plan.core.y_low,
        blockages=blockages,
        halo=float(plan.halo.mean()) if plan.halo.size else 0.0,
    )


def macros_on_flat(flat: FlatDesign, netlist: Netlist, placement: Placement) -> Placement:
    """The flat netlist's ports, fixed nodes, and hard macros as a placement of the clustered netlist has them.

    Args:
        flat: the design before clustering.
        netlist: the clustered one.
        placement: of `netlist`'s nodes.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one, or has no position.
    """
    index = {netlist.names[node]: int(node) for node in netlist.hard}
    own = flat.placement
    x, y, placed = own.x.copy(), own.y.copy(), own.placed.copy()
    orientation = own.orientation.copy()
    core = flat.floorplan.core
    for node in flat.netlist.hard.tolist():
        name = flat.netlist.names[node]
        if name not in index:
            raise DesignError(f"macro {name!r} of the flat netlist is not in the clustered netlist")
        there = index[name]
        if not placement.placed[there]:
            raise DesignError(f"macro {name!r} has no position")
        x[node], y[node] = placement.x[there] + core.x_low, placement.y[there] + core.y_low
        orientation[node], placed[node] = placement.orientation[there], True
    return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=own.fixed)


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
