"""Input of the electrostatic placer: a core, movable cells, their nets with fixed pins, and rectangles without cells.

Axis legend: N nodes of the netlist, M movable cells, E counted nets, L their net-pin incidences, F fixed rectangles.
Lengths in µm; positions are relative to the core's lower left corner.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from placement.netlist.constraints import turned_sides
from placement.netlist.design import TURN, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.geometry import union_area

MOST_PINS = 3000  # maximum number of pins of a counted net; larger nets (clock, reset) get trees of their own
MOST_UTILIZATION = 0.9
"""Maximum share of the available whitespace that cells cover; beyond it the density rises, then the PDN channels
shrink.
"""


@dataclasses.dataclass(frozen=True, eq=False)
class Core:
    """The area of the standard-cell rows.

    Raises DesignError if a side is not above 0, a blockage is inverted, a halo is negative or has another shape, or a
    number is not finite.
    """

    width: float  # width, height: sides in µm
    height: float
    x: float = 0.0  # x, y: lower left corner in µm, in the coordinates of the placement
    y: float = 0.0
    # rectangles without cells, (x low, y low, x high, y high), µm, in the same coordinates
    blockages: tuple[tuple[float, float, float, float], ...] = ()
    # clearance in µm between cells and a hard macro: one number for all sides of all macros, or float64 [N, 4], left,
    # bottom, right and top of each node in orientation N. Only hard macros have halos.
    halo: float | np.ndarray = 0.0
    # rectangles as in `blockages` that a legaliser cannot use well; `spread_cells` avoids them if it can
    slivers: tuple[tuple[float, float, float, float], ...] = ()

    def __post_init__(self) -> None:
        numbers = [self.width, self.height, self.x, self.y, *np.ravel(self.halo), *np.ravel(self.blockages)]
        if not np.isfinite(numbers).all():
            raise DesignError("core: every number must be finite")
        if self.width <= 0 or self.height <= 0:
            raise DesignError(f"core of {self.width} × {self.height} µm: both sides must be above 0")
        if np.ndim(self.halo) and (np.ndim(self.halo) != 2 or np.shape(self.halo)[1] != 4):
            raise DesignError(f"halo: shape {np.shape(self.halo)}, expected one number or [nodes, 4]")
        if np.min(self.halo, initial=0.0) < 0:
            raise DesignError(f"halo: {np.min(self.halo)} µm must be at least 0")
        for low_x, low_y, high_x, high_y in self.blockages:
            if low_x > high_x or low_y > high_y:
                raise DesignError(
                    f"blockage ({low_x}, {low_y}, {high_x}, {high_y}) must be "
                    "x low, y low, x high, y high in µm, each low value at most the high one"
                )


class Nets(NamedTuple):
    """The counted nets as seen from the cells."""

    start: np.ndarray  # int32 [E+1]; net e has the incidences from start[e] to start[e+1]
    pin_cell: np.ndarray  # int32 [L], the cell of each incidence; M for a fixed pin
    pin_x: np.ndarray  # pin_x, pin_y: float32 [L], offset from the cell's centre in µm; for a fixed pin, its position
    pin_y: np.ndarray
    weight: np.ndarray  # float32 [E]


@dataclasses.dataclass(frozen=True, eq=False)
class FlatProblem:
    """The nodes to place and their surroundings."""

    core: Core  # the area
    cells: np.ndarray  # int32 [M], node indices of the movable cells
    width: np.ndarray  # width, height: float32 [M], sides in µm, including the halo of a macro
    height: np.ndarray
    # float64 [M, 2], offset of a cell's box with its halo from the cell's centre in µm; 0 for standard cells
    shift: np.ndarray
    nets: Nets  # the counted nets
    fixed: np.ndarray  # float64 [F, 4], rectangles without cells (x low, y low, x high, y high), within the core

    @property
    def cell_area(self) -> float:
        """Total area of the cells in µm²."""
        return float((self.width.astype(np.float64) * self.height).sum())

    def only(self, chosen: np.ndarray) -> FlatProblem:
        """Returns the problem with some of the cells (bool [M]), for sizing a grid; the nets are still those of all."""
        own = {name: getattr(self, name)[chosen] for name in ("cells", "width", "height", "shift")}
        return dataclasses.replace(self, **own)

    def moved(self, placement: Placement, x: np.ndarray, y: np.ndarray) -> Placement:
        """Returns `placement` with the cells' boxes at x, y (float [M], µm from the core's corner)."""
        return placement.moved(self.cells, x - self.shift[:, 0] + self.core.x, y - self.shift[:, 1] + self.core.y)


def flat_problem(netlist: Netlist, placement: Placement, core: Core, *, mixed_size: bool = False) -> FlatProblem:
    """Returns the problem of placing all cells of `netlist` that are not fixed, in `core`, around fixed nodes.

    Args:
        netlist: a netlist with nodes of kind CELL.
        placement: positions of hard macros, ports and fixed cells; positions of other cells are not read.
        core: the area.
        mixed_size: also place hard macros that are not fixed, in their orientations and with their halos.

    Raises:
        DesignError: there are no cells to place, a soft macro is in the netlist, a macro or port has no position, a
            cell has no area or is larger than the core, or the cells need more area than is free.
    """
    movable = (netlist.kind == NodeKind.CELL) & ~placement.fixed
    orientation = np.full(netlist.num_nodes, Orientation.N)
    if mixed_size:
        macros = (netlist.kind == NodeKind.HARD) & ~placement.fixed
        movable |= macros
        orientation[macros] = placement.orientation[macros]
        netlist = as_turned(netlist, orientation)
    _check(netlist, placement, core, movable)
    cells = np.flatnonzero(movable).astype(np.int32)
    halo = turned_sides(_halos(netlist, core), orientation)
    shift = np.where(movable[:, None], halo[:, 2:] - halo[:, :2], 0.0) / 2
    of_pin, halo = shift[netlist.pin_node], halo[cells]
    boxed = dataclasses.replace(netlist, pin_dx=netlist.pin_dx - of_pin[:, 0], pin_dy=netlist.pin_dy - of_pin[:, 1])
    problem = FlatProblem(
        core=core,
        cells=cells,
        width=(netlist.width[cells] + halo[:, 0] + halo[:, 2]).astype(np.float32),
        height=(netlist.height[cells] + halo[:, 1] + halo[:, 3]).astype(np.float32),
        shift=shift[cells],
        nets=_nets(boxed, placement, core, movable),
        fixed=fixed_rectangles(netlist, placement, core, movable=movable),
    )
    free = core.width * core.height - union_area(problem.fixed)
    if problem.cell_area > free:
        raise DesignError(
            f"the {len(cells)} cells cover {problem.cell_area:.1f} µm², more than the {free:.1f} µm² that macros, "
            f"halos and blockages leave of the core of {core.width} × {core.height} µm"
        )
    return problem


def as_turned(netlist: Netlist, orientation: np.ndarray) -> Netlist:
    """Returns the netlist with the sides and pins of its nodes in `orientation` (int [N])."""
    width, height = netlist.sides(orientation)
    dx, dy = pin_offsets(netlist, orientation)
    return dataclasses.replace(netlist, width=width, height=height, pin_dx=dx, pin_dy=dy)


def inflated(problem: FlatProblem, cells: np.ndarray, density: float) -> FlatProblem:
    """Enlarges the standard cells (bool [M]) of a problem until they fill `density` of the whitespace.

    Macros are not enlarged because they fill their bins. If the enlarged cells do not fit, they are enlarged less.
    """
    area = problem.width.astype(np.float64) * problem.height
    free = problem.core.width * problem.core.height - union_area(problem.fixed) - float(area[~cells].sum())
    density = max(density, float(area[cells].sum()) / (MOST_UTILIZATION * free)) if free > 0 else 1.0
    side = np.where(cells, 1 / np.sqrt(min(density, 1.0)), 1.0).astype(np.float32)
    return dataclasses.replace(problem, width=problem.width * side, height=problem.height * side)


def counted_nets(netlist: Netlist) -> np.ndarray:
    """Returns which nets are counted, bool [nets]: those of 2 to `MOST_PINS` pins."""
    degree = np.diff(netlist.net_start)
    return (degree >= 2) & (degree <= MOST_PINS)


def pin_offsets(netlist: Netlist, orientation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the pins' offsets from the centres of their oriented nodes, float64 [pins] each, in µm."""
    turn = TURN[orientation[netlist.pin_node]]
    dx, dy = netlist.pin_dx, netlist.pin_dy
    return turn[:, 0] * dx + turn[:, 1] * dy, turn[:, 2] * dx + turn[:, 3] * dy


def half_perimeter(netlist: Netlist, placement: Placement) -> float:
    """Returns the weighted half-perimeter wirelength of the counted nets in µm; every node must have a position."""
    dx, dy = pin_offsets(netlist, placement.orientation)
    chosen = counted_nets(netlist)
    if not chosen.any():
        return 0.0
    total = 0.0
    for at, offset in ((placement.x, dx), (placement.y, dy)):
        pins = (at[netlist.pin_node] + offset)[netlist.net_pins]
        extent = np.maximum.reduceat(pins, netlist.net_start[:-1]) - np.minimum.reduceat(pins, netlist.net_start[:-1])
        total += float((extent * netlist.net_weight)[chosen].sum())
    return total


def fixed_rectangles(netlist: Netlist, placement: Placement, core: Core, *, movable: np.ndarray) -> np.ndarray:
    """Returns hard macros with halos, fixed cells and blockages, float64 [F, 4], relative to and clipped to the core.

    Raises DesignError if the core has halos of another number of nodes.
    """
    obstacle = ~movable & (netlist.kind != NodeKind.PORT) & (netlist.width > 0) & (netlist.height > 0)
    nodes = np.flatnonzero(obstacle)
    halo = _halos(netlist, core)[nodes]
    half = np.stack([netlist.width[nodes], netlist.height[nodes]], axis=1) / 2
    turn = TURN[placement.orientation[nodes]].reshape(-1, 2, 2)
    corners = [np.einsum("fab,fb->fa", turn, corner) for corner in (-half - halo[:, :2], half + halo[:, 2:])]
    at = np.stack([placement.x[nodes], placement.y[nodes]], axis=1)
    boxes = np.concatenate([at + np.minimum(*corners), at + np.maximum(*corners)], axis=1)
    boxes = np.concatenate([boxes, np.reshape(core.blockages, (-1, 4))]) - [core.x, core.y, core.x, core.y]
    boxes = np.clip(boxes, 0.0, [core.width, core.height, core.width, core.height])
    return boxes[(boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])]


def _halos(netlist: Netlist, core: Core) -> np.ndarray:
    """Returns the halo of each hard macro, float64 [N, 4]: left, bottom, right and top; 0 for other nodes."""
    halo = np.asarray(core.halo, np.float64)
    if halo.ndim and len(halo) != netlist.num_nodes:
        raise DesignError(f"halos of {len(halo)} nodes for a netlist of {netlist.num_nodes}")
    return np.broadcast_to(halo, (netlist.num_nodes, 4)) * (netlist.kind == NodeKind.HARD)[:, None]


def _check(netlist: Netlist, placement: Placement, core: Core, movable: np.ndarray) -> None:
    if len(placement.x) != netlist.num_nodes:
        raise DesignError(f"placement of {len(placement.x)} nodes for a netlist of {netlist.num_nodes}")
    if len(netlist.soft):
        raise DesignError(
            f"node {netlist.names[netlist.soft[0]]!r} is a soft macro, a cluster of cells; the full evaluation needs "
            "the netlist from before clustering, with its standard cells"
        )
    if not movable.any():
        raise DesignError(
            f"the netlist of {netlist.num_nodes} nodes has no standard cells to place; the full evaluation needs "
            "some, as a netlist from before clustering has them"
        )
    unplaced = np.flatnonzero(~movable & ~placement.placed)
    if len(unplaced):
        kind = NodeKind(netlist.kind[unplaced[0]]).name.lower()
        what = {"hard": "macro", "port": "port", "cell": "fixed cell"}[kind]
        raise DesignError(f"{what} {netlist.names[unplaced[0]]!r} has no position ({len(unplaced)} such nodes)")
    empty = np.flatnonzero(movable & ((netlist.width <= 0) | (netlist.height <= 0)))
    if len(empty):
        node = empty[0]
        raise DesignError(
            f"cell {netlist.names[node]!r}: {netlist.width[node]} × {netlist.height[node]} µm; its area must be above 0"
        )
    large = np.flatnonzero(movable & ((netlist.width > core.width) | (netlist.height > core.height)))
    if len(large):
        node = large[0]
        raise DesignError(
            f"cell {netlist.names[node]!r} of {netlist.width[node]} × {netlist.height[node]} µm is larger than the "
            f"core of {core.width} × {core.height} µm"
        )


def _nets(netlist: Netlist, placement: Placement, core: Core, movable: np.ndarray) -> Nets:
    """Returns the counted nets that have a movable cell."""
    cell_of = np.full(netlist.num_nodes, -1, np.int64)
    count = int(movable.sum())
    cell_of[movable] = np.arange(count)
    degree = np.diff(netlist.net_start)
    node = netlist.pin_node[netlist.net_pins]
    touched = np.logical_or.reduceat(movable[node], netlist.net_start[:-1]) if len(degree) else np.zeros(0, bool)
    keep = counted_nets(netlist) & touched & (netlist.net_weight > 0)
    pins = netlist.net_pins[np.repeat(keep, degree)]
    node = netlist.pin_node[pins]
    cell = np.where(movable[node], cell_of[node], count)
    dx, dy = pin_offsets(netlist, placement.orientation)
    x = np.where(cell == count, placement.x[node] + dx[pins] - core.x, netlist.pin_dx[pins])
    y = np.where(cell == count, placement.y[node] + dy[pins] - core.y, netlist.pin_dy[pins])
    return Nets(
        start=np.concatenate([[0], np.cumsum(degree[keep])]).astype(np.int32),
        pin_cell=cell.astype(np.int32),
        pin_x=x.astype(np.float32),
        pin_y=y.astype(np.float32),
        weight=netlist.net_weight[keep].astype(np.float32),
    )
