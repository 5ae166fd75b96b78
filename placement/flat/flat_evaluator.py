"""The full evaluation of a macro placement: all standard cells placed around the macros, legalised and routed.

Where cells begin decides on which side of the macros they end. So clusters are annealed around the macros first, and
cells begin in these. The dense cells begin where the spread ones ended.
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
from placement.flat.electrostatic import PlacerSettings, Progress
from placement.flat.global_placement import CellPlacement, cell_utilization, place_cells, spread_cells
from placement.flat.legalisation import LegalCells, legalise_cells
from placement.flat.routing import RoutingEstimate, RoutingResources, route_estimate
from placement.flat.row_area import within_rows
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign

STAGES = 2
"""In which cells are placed: spread, then dense."""
IN_CLUSTERS = {"growth": 1.015, "balance": 0.03}
"""Of `PlacerSettings`: cells keep to the clusters that they begin in, and have time to find their order."""
COMPACTED = {"balance": 1e-3}
"""Of `PlacerSettings`: spread cells move together in the order that they have."""
NEIGHBOURING = {"growth": 1.04, "balance": 0.1}
"""Of `PlacerSettings`: cells begin around nearly the same macros."""


class FlatEvaluation(NamedTuple):
    """The figures of a macro placement.

    Attributes:
        dense: the cells as near to each other as they may be.
        spread: the cells as a flow leaves them (`spread_cells`).
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
        if len(cluster) != flat.netlist.num_nodes:
            raise DesignError(f"clusters of {len(cluster)} nodes for a flat netlist of {flat.netlist.num_nodes}")

    def evaluate(
        self,
        placement: Placement,
        *,
        near: FlatEvaluation | None = None,
        report: Callable[[int, Progress], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> FlatEvaluation:
        """The full evaluation of a placement.

        Args:
            placement: of the clustered design; its hard macros are read.
            near: the evaluation of a placement whose macros are little moved; its cells are where these begin, which is
                quick. Cells then stay on the sides of the macros where they are.
            report: is called after every ten iterations with the number of the stage, less than `STAGES`, and its
                progress.
            stopped: is called as often, but not while clusters are annealed, which takes seconds; once it returns True,
                the result is what was reached.

        Raises:
            DesignError: a macro has no position, the cells do not fit around the macros, or they diverged.
        """
        netlist, channel = self.flat.netlist, self._design.own_pdn_channel
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        if near is None:
            begin = spread = self.spread_in_clusters(placement, report=report, stopped=stopped)
            second = COMPACTED
        else:
            begin, second = near.dense, NEIGHBOURING
            place = functools.partial(self._spread, macros, NEIGHBOURING, report, stopped)
            spread = _or_from_the_middle(place, near.spread.placement)
        dense = _or_from_the_middle(functools.partial(self._dense, macros, second, report, stopped), begin.placement)
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
        return self._dense(macros, {}, None, stopped, None)

    def spread_in_clusters(
        self,
        placement: Placement,
        *,
        report: Callable[[int, Progress], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> CellPlacement:
        """The spread cells of `evaluate`, whose arguments and errors it has."""
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        start, seconds = self._in_clusters(placement)
        place = functools.partial(self._spread, macros, IN_CLUSTERS, report, stopped)
        found = _or_from_the_middle(place, start)
        return found._replace(seconds=found.seconds + seconds)

    def spread(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> CellPlacement:
        """The cells at `DENSITY`, without PDN channels, from the middle of the core; arguments as of `evaluate`."""
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        return spread_cells(
            self.flat.netlist, macros, self._core, channel=0.0, attempts=[self._settings], stopped=stopped
        )

    def _spread(
        self,
        macros: Placement,
        changes: dict[str, float],
        report: Callable[[int, Progress], None] | None,
        stopped: Callable[[], bool] | None,
        start: Placement | None,
    ) -> CellPlacement:
        """`spread_cells`; `changes` are to the settings with which cells begin at `start`."""
        attempts = [self._settings]
        if start is not None:
            attempts = [self._with(changes), self._with({"growth": 1 + (self._settings.growth - 1) / 2})]
        return spread_cells(
            self.flat.netlist, macros, self._core, channel=self._design.own_pdn_channel, attempts=attempts, start=start,
            report=_numbered(report, 0), stopped=stopped,
        )  # fmt: skip

    def _dense(
        self,
        macros: Placement,
        changes: dict[str, float],
        report: Callable[[int, Progress], None] | None,
        stopped: Callable[[], bool] | None,
        start: Placement | None,
    ) -> CellPlacement:
        """`place_cells`, as `_spread`."""
        settings = self._settings if start is None else self._with(changes)
        return place_cells(
            self.flat.netlist, macros, self._core, settings=settings, start=start,
            report=_numbered(report, 1), stopped=stopped,
        )  # fmt: skip

    def _with(self, changes: dict[str, float]) -> PlacerSettings:
        return dataclasses.replace(self._settings, **changes)  # type: ignore[arg-type]

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


def _or_from_the_middle(place: Callable[[Placement | None], CellPlacement], start: Placement | None) -> CellPlacement:
    """Cells placed from `start`, or from the middle of the core where there is none or they diverge from it."""
    if start is not None:
        with contextlib.suppress(DesignError):
            return place(start)
    return place(None)


def _numbered(report: Callable[[int, Progress], None] | None, number: int) -> Callable[[Progress], None] | None:
    return functools.partial(report, number) if report else None
