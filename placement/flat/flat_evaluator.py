"""The full evaluation of a macro placement: all standard cells placed around the macros, legalised and routed.

Where cells begin decides on which side of the macros they end. So they begin twice, in clusters that are annealed
around the macros and in the middle of the core, and the shorter result counts: on some placements either is longer by a
tenth. The dense cells begin where the spread ones ended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from placement.flat.cell_blockages import without_cell_blockages
from placement.flat.correspondence import cells_in_clusters, core_of, macros_on_flat
from placement.flat.critical_wires import CriticalWires
from placement.flat.electrostatic import PlacerSettings, Progress
from placement.flat.global_placement import CellPlacement, cell_utilization, place_cells, spread_cells
from placement.flat.legalisation import LegalCells, legalise_cells
from placement.flat.problem import half_perimeter
from placement.flat.routing import RoutingEstimate, RoutingResources, route_estimate
from placement.flat.row_area import within_rows
from placement.flat.timing import TimingEvaluator
from placement.netlist.design import Design, Netlist, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign

STAGES = 3
"""In which cells are placed: spread from the clusters, spread from the middle, dense."""
CLUSTER_GROWTH, CLUSTER_BALANCE = 1.015, 0.03
"""Of `PlacerSettings`: cells keep to the clusters that they begin in, and have time to find their order."""
COMPACT_BALANCE = 1e-3
"""Of `PlacerSettings`: spread cells move together in the order that they have."""

TIMING_ROUNDS = 2
"""In which the wires of critical paths are weighed and the cells spread again, at most."""
MOST_LONGER = 1.02
"""Times the wirelength of the cells that wires alone place: rounds that are longer do not count."""
Again = Callable[[Netlist], CellPlacement]
"""Spreads the cells from the same start for a netlist with other weights."""


class FlatEvaluation(NamedTuple):
    """The figures of a macro placement.

    Attributes:
        dense: the cells as near to each other as they may be.
        spread: the cells as a flow leaves them (`spread_cells`); with timing those of `timing_driven`.
        legal: the spread cells on sites of rows; None if the floorplan has no rows.
        route: the routing estimate of the legal cells; of the spread ones where there are no rows.
        global_route: that of the spread cells.
        cell_utilization: the cells' area over the whitespace clear of macros and PDN channels.
    """

    dense: CellPlacement
    spread: CellPlacement
    legal: LegalCells | None
    route: RoutingEstimate
    global_route: RoutingEstimate
    cell_utilization: float


class FlatEvaluator:
    """Evaluates placements of one design.

    Args:
        flat: the design before clustering.
        cluster: int32 [nodes of the flat netlist], each cell's cluster, -1: none.
        design: the clustered one.
        anneal: anneals its soft macros around the hard ones, for cells to begin there; it may raise DesignError. None:
            they begin in the middle of the core.
        settings: of the placer.
        timing: of the flat design; spread cells are then timing-driven. None: wires alone count.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one, or the clusters are of another
            netlist.
    """

    def __init__(
        self,
        flat: FlatDesign,
        cluster: np.ndarray,
        design: Design,
        *,
        anneal: Callable[[Design, Placement], Placement] | None = None,
        settings: PlacerSettings | None = None,
        timing: TimingEvaluator | None = None,
    ) -> None:
        self._timing = timing
        self.flat, self.cluster, self._design, self._anneal = flat, cluster, design, anneal
        self._core = without_cell_blockages(within_rows(core_of(flat, design), flat.floorplan.rows), flat)
        self._settings = settings or PlacerSettings()
        if len(cluster) != flat.netlist.num_nodes:
            raise DesignError(f"clusters of {len(cluster)} nodes for a flat netlist of {flat.netlist.num_nodes}")

    def evaluate(
        self,
        placement: Placement,
        *,
        report: Callable[[int, Progress], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> FlatEvaluation:
        """The full evaluation of a placement.

        Args:
            placement: of the clustered design; its hard macros are read.
            report: is called after every ten iterations with the number of the stage, less than `STAGES`, and its
                progress.
            stopped: is called as often, but not while clusters are annealed, which takes seconds; once it returns True,
                the result is what was reached.

        Raises:
            DesignError: a macro has no position, the cells do not fit around the macros, or they diverged.
        """
        netlist, channel = self.flat.netlist, self._design.own_pdn_channel
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        spread, again = self.shorter_spread(placement, report=report, stopped=stopped)
        dense = self._dense(macros, report, stopped, spread.placement)
        spread = self.timing_driven(spread, again, stopped=stopped)
        legal = self.legalised(spread)
        resources = RoutingResources.of(self._design.canvas)
        routes = [
            route_estimate(netlist, one.placement, self._core, resources) for one in (spread, legal) if one is not None
        ]
        return FlatEvaluation(
            dense,
            spread,
            legal,
            routes[-1],
            routes[0],
            cell_utilization(netlist, spread.placement, self._core, channel=channel),
        )

    def legalised(self, cells: CellPlacement) -> LegalCells | None:
        """A global placement's cells on sites of rows; None if the floorplan has no rows."""
        return legalise_cells(self.flat.netlist, cells.placement, self._core, self.flat.floorplan.rows)

    def dense(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> CellPlacement:
        """The cells as near to each other as they may be, from the middle of the core; arguments as of `evaluate`."""
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        return self._dense(macros, None, stopped, None)

    def spread(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> CellPlacement:
        """The cells at `DENSITY`, without PDN channels, from the middle of the core; arguments as of `evaluate`."""
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        return spread_cells(
            self.flat.netlist, macros, self._core, channel=0.0, attempts=[self._settings], stopped=stopped
        )

    def shorter_spread(
        self,
        placement: Placement,
        *,
        report: Callable[[int, Progress], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> tuple[CellPlacement, Again]:
        """The spread cells of `evaluate` without timing, whose arguments and errors it has: the shorter of both starts.

        Their seconds are those of both, with the clusters'.
        """
        netlist, macros = self.flat.netlist, macros_on_flat(self.flat, self._design.netlist, placement)
        spread = functools.partial(
            spread_cells, placement=macros, core=self._core, channel=self._design.own_pdn_channel, stopped=stopped
        )
        start, seconds = self._in_clusters(placement)
        again: Again
        found: list[tuple[CellPlacement, Again]] = []
        if start is not None:
            with contextlib.suppress(DesignError):  # they diverge, or do not fit: then the middle says so
                settings = [dataclasses.replace(self._settings, growth=CLUSTER_GROWTH, balance=CLUSTER_BALANCE)]
                again = functools.partial(spread, attempts=settings, start=start, report=_numbered(report, 0))
                found.append((again(netlist), again))
        if not (found and stopped and stopped()):
            settings = [self._settings, dataclasses.replace(self._settings, growth=1 + (self._settings.growth - 1) / 2)]
            again = functools.partial(spread, attempts=settings, report=_numbered(report, 1))
            try:
                found.append((again(netlist), again))
            except DesignError:
                if not found:
                    raise
        best, again = min(found, key=lambda one: (not one[0].converged, one[0].wirelength))
        return best._replace(seconds=seconds + sum(one.seconds for one, _ in found)), again

    def timing_driven(
        self, cells: CellPlacement, again: Again, *, stopped: Callable[[], bool] | None = None
    ) -> CellPlacement:
        """Spread cells, spread again with the wires of their critical paths as further nets, until no path fails.

        Of the rounds that are hardly longer, the one with the least negative slack; the cells themselves where there is
        none with less, or no timing. Raises DesignError where a node has no position.
        """
        if self._timing is None:
            return cells
        critical = CriticalWires(self._timing)
        found = [(critical.add(cells.placement), cells)]
        while len(found) <= TIMING_ROUNDS and found[-1][0] < 0 and not (stopped and stopped()):
            try:
                last = again(critical.netlist())
            except DesignError:  # they diverge
                break
            last = last._replace(wirelength=half_perimeter(self.flat.netlist, last.placement))
            found.append((critical.add(last.placement), last))
        _, best = max(
            found, key=lambda one: (one[1].converged, one[1].wirelength <= MOST_LONGER * cells.wirelength, one[0])
        )
        return best._replace(seconds=cells.seconds + sum(one.seconds for _, one in found[1:]))

    def _dense(
        self,
        macros: Placement,
        report: Callable[[int, Progress], None] | None,
        stopped: Callable[[], bool] | None,
        start: Placement | None,
    ) -> CellPlacement:
        """`place_cells` from where spread cells are, or from the middle where there are none or they diverge."""
        place = functools.partial(
            place_cells, self.flat.netlist, macros, self._core, report=_numbered(report, 2), stopped=stopped
        )
        if start is not None:
            with contextlib.suppress(DesignError):
                return place(settings=dataclasses.replace(self._settings, balance=COMPACT_BALANCE), start=start)
        return place(settings=self._settings)

    def _in_clusters(self, placement: Placement) -> tuple[Placement | None, float]:
        """The cells in their clusters, these annealed around the macros, and the seconds that took.

        None where there are no clusters or they cannot be annealed: they may not fit, or macros overlap.
        """
        if self._anneal is None or not (self.cluster >= 0).any():
            return None, 0.0
        begun, found = time.process_time(), None
        with contextlib.suppress(DesignError):
            clusters = self._anneal(self._design, placement)
            found = cells_in_clusters(self.flat, self.cluster, self._design.netlist, clusters)
        return found, time.process_time() - begun


def _numbered(report: Callable[[int, Progress], None] | None, number: int) -> Callable[[Progress], None] | None:
    return functools.partial(report, number) if report else None
