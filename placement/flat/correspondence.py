"""Mapping of placements between the clustered design and the flat netlist: macros by name, cells by their clusters.

Axis legend: N nodes of the flat netlist. Lengths in µm; the origin of the clustered design is the core's lower left
corner.
"""

import numpy as np

from placement.flat.problem import Core
from placement.netlist.clustering.soft_macros import SOFT_PREFIX
from placement.netlist.design import Design, Netlist, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign


def core_of(flat: FlatDesign, design: Design) -> Core:
    """Returns the area for cells: the rows' core without the blockages and halos of the design's constraints.

    Args:
        flat: the design before clustering.
        design: the clustered design, with the constraints.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one.
    """
    core, hard = flat.floorplan.core, flat.netlist.hard
    halo = np.zeros((flat.netlist.num_nodes, 4))  # left, bottom, right, top in orientation N
    halo[hard] = design.constraints.halo[clustered_nodes(flat, design.netlist)]
    blockages = design.constraints.blockages + np.tile([core.x_low, core.y_low], 2)
    return Core(
        width=core.width,
        height=core.height,
        x=core.x_low,
        y=core.y_low,
        blockages=tuple(map(tuple, blockages.tolist())),
        halo=halo,
    )


def clustered_nodes(flat: FlatDesign, netlist: Netlist) -> np.ndarray:
    """Returns the clustered netlist's node of each hard macro of the flat one, int64 [hard macros]."""
    index = {netlist.names[node]: int(node) for node in netlist.hard}
    names = [flat.netlist.names[node] for node in flat.netlist.hard.tolist()]
    missing = [name for name in names if name not in index]
    if missing:
        raise DesignError(f"macro {missing[0]!r} of the flat netlist is not in the clustered netlist")
    return np.array([index[name] for name in names], dtype=np.int64)


def macros_on_flat(flat: FlatDesign, netlist: Netlist, placement: Placement) -> Placement:
    """Returns the flat netlist's ports, fixed nodes, and hard macros; these from a placement of the clustered one.

    Args:
        flat: the design before clustering.
        netlist: the clustered netlist.
        placement: a placement of `netlist`.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one, or has no position.
    """
    hard, there = flat.netlist.hard, clustered_nodes(flat, netlist)
    unplaced = hard[~placement.placed[there]]
    if len(unplaced):
        raise DesignError(f"macro {flat.netlist.names[unplaced[0]]!r} has no position")
    own, core = flat.placement, flat.floorplan.core
    x, y, placed = own.x.copy(), own.y.copy(), own.placed.copy()
    orientation = own.orientation.copy()
    x[hard], y[hard] = placement.x[there] + core.x_low, placement.y[there] + core.y_low
    orientation[hard], placed[hard] = placement.orientation[there], True
    return Placement(x=x, y=y, orientation=orientation, placed=placed, fixed=own.fixed)


def macros_from_flat(flat: FlatDesign, design: Design, placement: Placement) -> Placement:
    """Returns the clustered design's initial placement with the movable hard macros of a flat placement.

    Args:
        flat: the design before clustering.
        design: the clustered design.
        placement: a placement of the flat netlist; orientations are not read.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one.
    """
    there = clustered_nodes(flat, design.netlist)
    movable = ~design.initial.fixed[there]
    hard, there = flat.netlist.hard[movable], there[movable]
    core = flat.floorplan.core
    return design.initial.moved(there, placement.x[hard] - core.x_low, placement.y[hard] - core.y_low)


def cells_in_clusters(flat: FlatDesign, cluster: np.ndarray, netlist: Netlist, placement: Placement) -> Placement:
    """Returns `macros_on_flat` with all cells placed, too, each at a random position in its cluster's soft macro.

    Args:
        flat: the design before clustering.
        cluster: int [N], number n of each cell's soft macro `Grp_<n>`; -1: none, the cell is placed in the middle of
            the core.
        netlist: the clustered netlist.
        placement: a placement of `netlist`.

    Raises:
        DesignError: as for `macros_on_flat`; a cluster is not in the clustered netlist or has no position.
    """
    result = macros_on_flat(flat, netlist, placement)
    core = flat.floorplan.core
    index = {netlist.names[node]: int(node) for node in netlist.soft}
    names = [f"{SOFT_PREFIX}{number}" for number in range(int(cluster.max(initial=-1)) + 1)]
    missing = [name for name in names if name not in index]
    if missing:
        raise DesignError(f"cluster {missing[0]} is not in the clustered netlist")
    soft = np.array([index[name] for name in names], dtype=np.int64)
    unplaced = soft[~placement.placed[soft]]
    if len(unplaced):
        raise DesignError(f"soft macro {netlist.names[unplaced[0]]!r} has no position")
    cells = flat.cells[~flat.placement.fixed[flat.cells]]
    inside = np.random.default_rng(0).random((2, len(cells))) - 0.5
    known = cluster[cells] >= 0
    home = soft[cluster[cells[known]]]
    x, y = np.full(len(cells), core.width / 2), np.full(len(cells), core.height / 2)
    x[known] = placement.x[home] + inside[0, known] * netlist.width[home]
    y[known] = placement.y[home] + inside[1, known] * netlist.height[home]
    half = flat.netlist.width[cells] / 2, flat.netlist.height[cells] / 2
    x = np.clip(x, half[0], core.width - half[0]) + core.x_low
    y = np.clip(y, half[1], core.height - half[1]) + core.y_low
    return result.moved(cells, x, y)
