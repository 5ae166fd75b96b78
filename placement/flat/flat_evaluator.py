"""The full evaluation of a macro placement: all standard cells placed around the macros, legalised and routed.

Where macros divide the core, cells that begin in its middle may end in an order that costs 14% more than necessary. So
clusters are placed around the macros first; dense cells begin there, and spread cells from the dense ones. Around other
macros it is the other way round, by as much. So both are placed from the middle, too, and the shorter counts. Where
macros wall in almost as much area as the cells need, both push the cells that do not fit through the walls one by one.
So spread cells also begin in clusters that were annealed around the macros, which lie where there is whitespace.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from placement.flat.cell_blockages import without_cell_blockages
from placement.flat.clusters import spread_clusters
from placement.flat.correspondence import cells_in_clusters, core_of, macros_on_flat
from placement.flat.electrostatic import PlacerSettings, Progress
from placement.flat.global_placement import (
    SCATTERED,
    WARM_BALANCE,
    CellPlacement,
    cell_utilization,
    place_cells,
    spread_cells,
)
from placement.flat.legalisation import LegalCells, legalise_cells
from placement.flat.routing import RoutingEstimate, RoutingResources, route_estimate
from placement.flat.row_area import within_rows
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign

MOST_STARTS = 5
"""Of the cells in one evaluation."""


class FlatEvaluation(NamedTuple):
    """The figures of a macro placement.

    Attributes:
        dense: the cells as near to each other as they may be; the shorter of two starts.
        spread: the cells as a flow leaves them (`spread_cells`); the shortest of up to three starts.
        legal: the spread cells on sites of rows; None if the floorplan has no rows.
        from_middle: as `legal`, of the start in the middle of the core alone; None if that failed, too.
        route: the routing estimate of the legal cells; of the spread ones where there are no rows.
        global_route: that of the spread cells.
        cell_utilization: the cells' area over the whitespace clear of macros and PDN channels.
    """

    dense: CellPlacement
    spread: CellPlacement
    legal: LegalCells | None
    from_middle: LegalCells | None
    route: RoutingEstimate
    global_route: RoutingEstimate
    cell_utilization: float


class FlatEvaluator:
    """Evaluates placements of one design.

    Args:
        flat: the design before clustering.
        cluster: int32 [nodes of the flat netlist], each cell's cluster, -1: none.
        design: the clustered one.
        anneal: anneals its soft macros around the hard ones, for spread cells to begin there, too; it may raise
            DesignError. None: they do not.
        settings: of the placer.

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
    ) -> None:
        self.flat, self.cluster, self._design, self._anneal = flat, cluster, design, anneal
        self._core = without_cell_blockages(within_rows(core_of(flat, design), flat.floorplan.rows), flat)
        self._settings = settings or PlacerSettings()
        self._warm = dataclasses.replace(self._settings, balance=WARM_BALANCE)
        if len(cluster) != flat.netlist.num_nodes:
            raise DesignError(f"clusters of {len(cluster)} nodes for a flat netlist of {flat.netlist.num_nodes}")

    def evaluate(
        self,
        placement: Placement,
        *,
        middle: bool = True,
        report: Callable[[int, Progress], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> FlatEvaluation:
        """The full evaluation of a placement.

        Args:
            placement: of the clustered design; its hard macros are read.
            middle: whether dense cells begin in the middle, too, where there are clusters; that is a fifth of the time,
                and matters to `dense` alone.
            report: is called after every ten iterations with the number of the start, less than `MOST_STARTS`, and its
                progress.
            stopped: is called as often, but not while clusters are annealed, which takes seconds; once it returns True,
                the result is what was reached.

        Raises:
            DesignError: a macro has no position, the cells do not fit around the macros, or they diverged.
        """
        netlist, channel = self.flat.netlist, self._design.own_pdn_channel
        dense = self._dense(placement, middle, report, stopped)
        annealed, seconds = (None, 0.0) if stopped and stopped() else self._annealed(placement)
        slower = dataclasses.replace(self._settings, growth=1 + (self._settings.growth - 1) / 2)
        starts: list[tuple[CellPlacement | None, list[PlacerSettings]]]
        starts = [(dense[0], [self._warm, slower]), (None, [self._settings])]
        if annealed is not None:
            # Strong enough to hold the cells in their clusters, and slow, for them to find their order.
            held = dataclasses.replace(self._settings, growth=1.01, balance=0.1)
            starts.insert(1, (dense[0]._replace(placement=annealed), [held, slower]))
        attempts = [
            functools.partial(
                spread_cells, netlist, dense[0].placement, self._core,
                channel=channel, attempts=settings, dense=start,
                report=_numbered(report, number), stopped=stopped,
            )
            for number, (start, settings) in enumerate(starts, start=2)
        ]  # fmt: skip
        found = _successes(attempts, most=len(attempts))
        # From the middle nothing else holds the cells to `dense`.
        limit = SCATTERED * dense[0].wirelength
        spread = _shortest([one._replace(converged=one.converged and one.wirelength <= limit) for one in found])
        legal = self.legalised(spread)
        resources = RoutingResources.of(self._design.canvas)
        routes = [
            route_estimate(netlist, one.placement, self._core, resources) for one in (spread, legal) if one is not None
        ]
        return FlatEvaluation(
            _shortest(dense),
            spread._replace(seconds=spread.seconds + seconds),
            legal,
            self.legalised(found[-1]) if len(found) == len(attempts) else None,
            routes[-1],
            routes[0],
            cell_utilization(netlist, spread.placement, self._core, channel=channel),
        )

    def legalised(self, cells: CellPlacement) -> LegalCells | None:
        """A global placement's cells on sites of rows; None if the floorplan has no rows."""
        return legalise_cells(self.flat.netlist, cells.placement, self._core, self.flat.floorplan.rows)

    def dense(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> CellPlacement:
        """The cells as near to each other as they may be; arguments as of `evaluate`."""
        return _shortest(self._dense(placement, True, None, stopped))

    def spread(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> CellPlacement:
        """The cells at `DENSITY`, without PDN channels, from the middle of the core; arguments as of `evaluate`."""
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        return spread_cells(
            self.flat.netlist, macros, self._core, channel=0.0, attempts=[self._settings], stopped=stopped
        )

    def _dense(
        self,
        placement: Placement,
        middle: bool,
        report: Callable[[int, Progress], None] | None,
        stopped: Callable[[], bool] | None,
    ) -> list[CellPlacement]:
        """Dense cells from the clusters, if there are any; from the middle if requested, or if nothing else works."""
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        clusters, seconds = self._in_clusters(placement, spread_clusters)
        starts = [(None, self._settings)] if clusters is None else [(clusters, self._warm), (None, self._settings)]
        attempts = [
            functools.partial(
                place_cells, self.flat.netlist, macros, self._core,
                settings=settings, start=start, report=_numbered(report, number), stopped=stopped,
            )
            for number, (start, settings) in enumerate(starts)
        ]  # fmt: skip
        first, *others = _successes(attempts, most=2 if middle else 1)
        return [first._replace(seconds=first.seconds + seconds), *others]

    def _annealed(self, placement: Placement) -> tuple[Placement | None, float]:
        return self._in_clusters(placement, self._anneal) if self._anneal else (None, 0.0)

    def _in_clusters(
        self, placement: Placement, place: Callable[[Design, Placement], Placement]
    ) -> tuple[Placement | None, float]:
        """The cells in their clusters, these placed by `place` around the macros, and the seconds that took.

        None where there are no clusters or `place` fails: they may not fit, or macros overlap, which the annealer
        rejects. The cells then have other starts alone.
        """
        if not (self.cluster >= 0).any():
            return None, 0.0
        begun, cells = time.process_time(), None
        try:
            clusters = place(self._design, placement)
        except DesignError:
            pass
        else:
            cells = cells_in_clusters(self.flat, self.cluster, self._design.netlist, clusters)
        return cells, time.process_time() - begun


def _successes(attempts: Iterable[Callable[[], CellPlacement]], *, most: int) -> list[CellPlacement]:
    """The first `most` results of attempts that do not diverge: other starts may succeed.

    Raises:
        DesignError: as the last attempt, where all failed.
    """
    found: list[CellPlacement] = []
    failed: DesignError | None = None
    for attempt in attempts:
        if len(found) == most:
            break
        try:
            found.append(attempt())
        except DesignError as error:
            failed = error
    if not found:
        assert failed is not None
        raise failed
    return found


def _shortest(found: list[CellPlacement]) -> CellPlacement:
    """The shortest of the placements that converged, if any did; with the seconds of all."""
    best = min(found, key=lambda one: (not one.converged, one.wirelength))
    return best._replace(seconds=sum(one.seconds for one in found))


def _numbered(report: Callable[[int, Progress], None] | None, number: int) -> Callable[[Progress], None] | None:
    return functools.partial(report, number) if report else None
