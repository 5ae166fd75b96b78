"""Exact cost of a placement (full and incremental), its cost maps, its legality, and its constraint violations.

Axis legend: N nodes, R grid rows, C grid columns. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np

from placement.config import CostConfig, CostWeights
from placement.engine import _native
from placement.engine.native_design import native_design
from placement.netlist.design import LARGEST, Design, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError


class Costs(NamedTuple):
    """The cost of a placement.

    Attributes:
        wirelength: sum of the weighted half-perimeters of all nets, in µm.
        wirelength_cost: wirelength / ((canvas width + height) · summed net weights).
        density_cost: half the mean density of the densest tenth of the gcells. Chip cost: µm of wire that displaced
            cells add, with the denominator of wirelength_cost.
        congestion_cost: mean of the busiest twentieth of both congestion maps together. Chip cost: µm of wire beyond
            70% of the tracks that macros leave, with the same denominator (docs/explanation/chip-cost.md).
        total: the weighted sum of the three and, if its weight is not 0, of tidiness (docs/explanation/tidiness.md);
            this is the quantity that is minimised.

    Example:
        >>> costs = placement.cost(placement.load("toy6"), cost="proxy")
        >>> costs.wirelength, costs.density_cost
        (2940.0, 0.5)
    """

    wirelength: float
    wirelength_cost: float
    density_cost: float
    congestion_cost: float
    total: float


DEFAULT_WEIGHTS = CostConfig().weights()  # weights of the chip cost, the default wherever a cost is computed
PROXY_WEIGHTS = CostConfig(name="proxy").weights()  # weights of the published proxy cost


class CostMaps(NamedTuple):
    """Maps behind the cost, float64 [R, C] each: area of hard and soft macros over the gcell's area, and routing demand
    over capacity in each direction, macro blockage included.

    Of the chip cost, values above 1 are the overflow that it charges: `density` is the area of cells and of hard macros
    with the clearance around them (at most 1) over that of a bin, several bins per gcell; `horizontal` and `vertical`
    are the wire and the tracks that macros take, over 70% of the tracks.
    """

    density: np.ndarray
    horizontal: np.ndarray
    vertical: np.ndarray


class Legality(NamedTuple):
    """Violations of legality in a placement."""

    overlaps: int  # pairs of hard macros that overlap by more than the canvas's threshold in both directions
    outside: int  # hard macros that extend beyond the canvas edge


class Violations(NamedTuple):
    """Numbers of violations of the design's constraints; fixed macros count, too."""

    halos: int = 0  # pairs of hard macros that are closer than their halos allow, without overlapping
    blockages: int = 0  # hard macros on a placement blockage
    regions: int = 0  # hard macros that are not entirely inside their region, or are in an exclusive region of others
    orientations: int = 0  # hard macros in an orientation that is not allowed
    grid: int = 0  # hard macros whose lower left corner is not on the snapping grid
    port_keepout: int = 0  # hard macros too close to a port
    channels: int = 0  # pairs of hard macros, and hard macros at an edge, with a gap narrower than a channel


_THREAD = threading.local()


def _evaluator(design: Design) -> _native.CostEvaluator:
    """Returns this thread's evaluator of `design`, cached during the lifetime of `design`."""
    if not hasattr(_THREAD, "evaluators"):
        _THREAD.evaluators = weakref.WeakKeyDictionary()
    evaluator = _THREAD.evaluators.get(design)
    if evaluator is None:
        evaluator = _THREAD.evaluators.setdefault(design, _native.CostEvaluator(native_design(design)))
    return evaluator


def compute_costs(
    design: Design, placement: Placement | None = None, *, weights: CostWeights = DEFAULT_WEIGHTS
) -> Costs:
    """Returns the exact cost of `placement` (None: the design's own); `weights.name` is the name of the cost.

    Raises:
        DesignError: a node has no position, or the number of nodes differs.
    """
    placement = checked_placement(design, placement)
    return Costs(*_evaluator(design).evaluate(placement.x, placement.y, placement.orientation, tuple(weights)))


def proxy_cost(design: Design, placement: Placement | None = None) -> Costs:
    """Returns the published proxy cost with its published weights; see `compute_costs`."""
    return compute_costs(design, placement, weights=PROXY_WEIGHTS)


def cost(design: Design, placement: Placement | None = None, *, cost: str | CostWeights = "chip") -> Costs:
    """Returns the exact cost of a placement.

    Args:
        design: a design as returned by `load`.
        placement: the placement; None: the design's own.
        cost: "chip" (the default of every command), "proxy" (the published cost), or custom weights.

    Example:
        >>> round(placement.cost(placement.load("toy6"), cost="proxy").total, 6)
        0.866667

    Raises:
        DesignError: a node has no position, or the number of nodes differs.
        ConfigError: there is no such cost.
    """
    weights = CostConfig(name=cost).weights() if isinstance(cost, str) else cost
    return compute_costs(design, placement, weights=weights)


def costs_object(costs: Costs, weights: CostWeights) -> dict[str, Any]:
    """Returns the cost as in JSON files: its name, its total as `cost`, wirelength (µm) and the three components."""
    described = costs._asdict()
    return {"cost_name": weights.name, "cost": described.pop("total"), **described}


def cost_maps(design: Design, placement: Placement | None = None, *, weights: CostWeights = PROXY_WEIGHTS) -> CostMaps:
    """Returns density and congestion maps of the cost `weights.name`; arguments and errors as for `compute_costs`."""
    placement = checked_placement(design, placement)
    evaluator = _evaluator(design)
    evaluator.evaluate(placement.x, placement.y, placement.orientation, tuple(weights))
    if weights.name == "chip":
        canvas = design.canvas
        cells, horizontal, vertical = evaluator.chip_overflow()
        per_track = _native.USABLE_TRACKS * canvas.cell_width * canvas.cell_height  # µm of wire per gcell
        across, up = per_track * canvas.routes_horizontal, per_track * canvas.routes_vertical
        return CostMaps(1 + cells, 1 + horizontal.T / across, 1 + vertical / up)
    maps = CostMaps(*(np.empty((design.canvas.rows, design.canvas.columns)) for _ in CostMaps._fields))
    evaluator.write_maps(*maps)
    return maps


def legality(design: Design, placement: Placement | None = None) -> Legality:
    """Counts overlapping and outside hard macros (None: of the design's own placement); raises DesignError."""
    placement = checked_placement(design, placement)
    return Legality(*_native.check_legality(native_design(design), placement.x, placement.y, placement.orientation))


def violations(design: Design, placement: Placement | None = None) -> Violations:
    """Counts the violations of the design's constraints (None: by its own placement); raises DesignError."""
    placement = checked_placement(design, placement)
    return Violations(
        *_native.check_constraints(native_design(design), placement.x, placement.y, placement.orientation)
    )


def checked_placement(design: Design, placement: Placement | None) -> Placement:
    """Returns `placement` or the design's own; raises DesignError unless it is a whole placement of `design`."""
    placement = design.initial if placement is None else placement
    if len(placement.x) != design.netlist.num_nodes:
        raise DesignError(
            f"a placement of {len(placement.x)} nodes for design {design.name!r} of {design.netlist.num_nodes} nodes"
        )
    if not placement.placed.all():
        node = int(np.flatnonzero(~placement.placed)[0])
        raise DesignError(f"node {design.netlist.names[node]!r} (number {node}) is not placed; all must be")
    return placement


class IncrementalCost:
    """A placement whose macros are moved, and its cost after each move. Not thread-safe.

    A move takes microseconds, and after any number of moves the result is bit-identical to that of the full evaluation.
    Hard macros may be moved, swapped and turned, soft macros moved and swapped; fixed nodes, ports and standard cells
    cannot move. Macros may overlap or leave the canvas; `legality` counts that.

    Example:
        >>> design = placement.load("toy6")
        >>> cost = placement.IncrementalCost(design)
        >>> after = cost.move(int(design.placing_order[0]), x=90.0, y=30.0)
        >>> after == placement.cost(design, cost.placement)
        True
    """

    def __init__(
        self, design: Design, placement: Placement | None = None, *, weights: CostWeights = DEFAULT_WEIGHTS
    ) -> None:
        """Starts from `placement` (None: the design's own); raises DesignError unless it is a whole placement."""
        self._design = design
        self._start = checked_placement(design, placement)
        start = self._start
        self._native = _native.IncrementalCost(
            native_design(design), start.x, start.y, start.orientation, tuple(weights)
        )
        movable = np.isin(design.netlist.kind, (NodeKind.HARD, NodeKind.SOFT)) & ~start.fixed
        self._movable: list[bool] = movable.tolist()
        # Previous positions of the moved nodes, for each move since the last commit.
        self._history: list[tuple[tuple[int, float, float, int], ...]] = []

    @property
    def costs(self) -> Costs:
        return Costs(*self._native.costs())

    @property
    def placement(self) -> Placement:
        x, y = np.empty_like(self._start.x), np.empty_like(self._start.y)
        orientation = np.empty_like(self._start.orientation)
        self._native.write_placement(x, y, orientation)
        return dataclasses.replace(self._start, x=x, y=y, orientation=orientation)

    def orientation(self, node: int) -> int:
        """Returns a macro's current orientation; raises DesignError if the node cannot move."""
        self._check(node)
        return int(self._native.at(node)[3])

    def move(self, node: int, x: float, y: float) -> Costs:
        """Centres a macro at (x, y) µm and returns the new cost; raises DesignError if the node cannot move."""
        self._check(node)
        if not (abs(x) <= LARGEST and abs(y) <= LARGEST):  # also rejects NaN
            raise DesignError(f"{self._name(node)}: cannot be moved to ({x}, {y}); both must be in ±{LARGEST:g} µm")
        before = self._native.at(node)
        costs = self._native.move(node, x, y, before[3])
        self._history.append((before,))
        return Costs(*costs)

    def swap(self, first: int, second: int) -> Costs:
        """Exchanges two macros, each keeping its orientation, and returns the new cost; raises DesignError."""
        self._check(first)
        self._check(second)
        if first == second:
            raise DesignError(f"{self._name(first)}: cannot be swapped with itself")
        before = (self._native.at(first), self._native.at(second))
        costs = self._native.swap(first, second)
        self._history.append(before)
        return Costs(*costs)

    def orient(self, node: int, orientation: Orientation | int) -> Costs:
        """Gives a hard macro an absolute orientation and returns the new cost; raises DesignError."""
        self._check(node)
        if self._design.netlist.kind[node] != NodeKind.HARD:
            raise DesignError(f"{self._name(node)}: is a soft macro; only hard macros have an orientation")
        if orientation not in Orientation.__members__.values():
            raise DesignError(f"{self._name(node)}: orientation {orientation} must be in [0, {len(Orientation)})")
        before = self._native.at(node)
        costs = self._native.move(node, before[1], before[2], int(orientation))
        self._history.append((before,))
        return Costs(*costs)

    def undo(self) -> Costs:
        """Undoes the last move since the last commit and returns the cost; raises IndexError if there is none."""
        if not self._history:
            raise IndexError("nothing to undo: no move since the last commit")
        before = self._history.pop()
        if self._native.pending:  # the last move: the engine still holds its previous state
            self._native.undo()
            return self.costs
        for node in before:
            self._native.move(*node)
            self._native.accept()
        return self.costs

    def commit(self) -> None:
        """Makes all moves so far permanent; they can no longer be undone."""
        self._native.accept()
        self._history.clear()

    def _name(self, node: int) -> str:
        return f"node {self._design.netlist.names[node]!r} (number {node})"

    def _check(self, node: int) -> None:
        if not 0 <= node < len(self._movable):
            raise DesignError(f"node {node}: design {self._design.name!r} has nodes 0 to {len(self._movable) - 1}")
        if not self._movable[node]:
            kind = NodeKind(int(self._design.netlist.kind[node]))
            what = "fixed" if kind in (NodeKind.HARD, NodeKind.SOFT) else f"a {kind.name.lower()}, not a macro"
            raise DesignError(f"{self._name(node)}: cannot move, it is {what}")
