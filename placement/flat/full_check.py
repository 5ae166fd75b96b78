"""The whole flat check of a placement of a clustered design: its cells packed, spread, and their nets routed.

Where a macro placement divides the core, cells that begin in its middle may end in an order that costs 14% more than
need be. So the clusters are placed around the macros first, spread and clear of straps; the packed cells begin from
them, and the spread cells from these. Around other macros it is the other way round, by as much. So packed and spread
cells are placed from the middle, too, and the shorter count. Where macros wall in almost as much room as the cells
need, both push the cells that do not fit through the walls one by one. So spread cells begin in clusters that were
annealed around the macros, too: these stand where there is room for them.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from placement.flat.check import FlatResult, flat_check
from placement.flat.from_clusters import cells_in_clusters, clusters_clear_of_straps, core_of, macros_on_flat
from placement.flat.global_placement import PlacerSettings, Progress
from placement.flat.routable import SCATTERED, cell_utilization, spread_cells
from placement.flat.routing import RoutingEstimate, RoutingResources, route_estimate
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign

SETTINGS = PlacerSettings(warm_growth=1.03, warm_balance=1e-3)
"""Of the placer: weaker against the wires at the beginning than beside a neighbour's cells, for cells to find their
order."""
BEGINNINGS = 5
"""Of the cells in one check, at most."""


class FullCheck(NamedTuple):
    """What the flat check found.

    Attributes:
        dense: the cells as near to each other as they may be; the shorter of two beginnings.
        spread: the cells as a flow leaves them (`spread_cells`); the shortest of up to three beginnings.
        route: the routing estimate of the spread cells.
        cell_utilization: cells' area over the room clear of macros and straps.
        annealed: the clustered design's placement, soft macros annealed as the spread cells begin; None where they do
            not.
    """

    dense: FlatResult
    spread: FlatResult
    route: RoutingEstimate
    cell_utilization: float
    annealed: Placement | None


class FlatChecker:
    """Places all cells of a design around its macros, and estimates their routing; for several placements.

    Args:
        flat: the design before clustering.
        cluster: int32 [nodes of the flat netlist], each cell's cluster, -1: none.
        design: the clustered one.
        anneal: places its soft macros by their cost around the hard ones as these stand; spread cells begin there,
            too. None: they do not.

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
    ) -> None:
        self.flat, self.cluster, self._design, self._anneal = flat, cluster, design, anneal
        self._core = core_of(flat, design)
        if len(cluster) != flat.netlist.num_nodes:
            raise DesignError(f"clusters of {len(cluster)} nodes for a flat netlist of {flat.netlist.num_nodes}")

    def start(self, placement: Placement) -> Placement | None:
        """The cells in their clusters, these spread around the macros; None where there are none, or no room for them.

        Raises:
            DesignError: a macro has no position.
        """
        macros_on_flat(self.flat, self._design.netlist, placement)
        if not (self.cluster >= 0).any():
            return None
        try:
            spread = clusters_clear_of_straps(self._design, placement)
        except DesignError:  # no room for the clusters: the cells may still find some
            return None
        return cells_in_clusters(self.flat, self.cluster, self._design.netlist, spread)

    def spread(
        self, placement: Placement, *, settings: PlacerSettings = SETTINGS, stopped: Callable[[], bool] | None = None
    ) -> FlatResult:
        """The cells at `DENSITY`, straps aside, begun in the middle of the core; arguments as of `check`."""
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        return spread_cells(self.flat.netlist, macros, self._core, straps=0.0, settings=settings, stopped=stopped)

    def dense(
        self,
        placement: Placement,
        *,
        settings: PlacerSettings = SETTINGS,
        stopped: Callable[[], bool] | None = None,
    ) -> FlatResult:
        """The cells as near to each other as they may be; arguments as of `check`."""
        return _shorter(self._dense(placement, settings, True, _silent, stopped))

    def check(
        self,
        placement: Placement,
        *,
        settings: PlacerSettings = SETTINGS,
        middle: bool = True,
        report: Callable[[int, Progress], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> FullCheck:
        """What a placement is worth.

        Args:
            placement: of the clustered design; its hard macros are read.
            settings: of the placer.
            middle: whether the packed cells begin in the middle, too, where there are clusters; that is a fifth of
                the time, and matters to `dense` alone.
            report: is called after every ten iterations with the number of the beginning, less than `BEGINNINGS`, and
                its progress.
            stopped: is asked as often, but not while clusters are annealed, which takes seconds; once it says True,
                the result is what was reached.

        Raises:
            DesignError: a macro has no position, the cells do not fit around the macros, or they flew apart.
            KeyboardInterrupt: on Ctrl-C.
        """
        netlist, straps = self.flat.netlist, self._design.own_pdn_channel
        report = report or _silent
        dense = self._dense(placement, settings, middle, report, stopped)
        annealed, seconds = (None, 0.0) if stopped and stopped() else self._annealed(placement)
        held = []
        if annealed is not None:
            start = cells_in_clusters(self.flat, self.cluster, self._design.netlist, annealed)
            held.append((dense[0]._replace(placement=start), _holding(settings)))
        attempts = (
            functools.partial(
                spread_cells,
                netlist,
                dense[0].placement,
                self._core,
                dense=begin,
                straps=straps,
                settings=settings_of,
                report=functools.partial(report, number),
                stopped=stopped,
            )
            for number, (begin, settings_of) in enumerate([(dense[0], settings), *held, (None, settings)], start=2)
        )
        spread = _shorter([_unless_scattered(one, dense[0]) for one in _those_found(attempts, most=2 + len(held))])
        spread = spread._replace(seconds=spread.seconds + seconds)
        return FullCheck(
            _shorter(dense),
            spread,
            route_estimate(netlist, spread.placement, self._core, RoutingResources.of(self._design.canvas)),
            cell_utilization(netlist, spread.placement, self._core, straps=straps),
            annealed,
        )

    def _annealed(self, placement: Placement) -> tuple[Placement | None, float]:
        """The clustered placement with its soft macros annealed around the hard ones, and the seconds that took.

        None where nothing anneals them or the cost's annealer refuses, as it does where macros overlap: then the cells
        begin elsewhere alone.
        """
        if self._anneal is None or not (self.cluster >= 0).any():
            return None, 0.0
        begun = time.process_time()
        try:
            annealed = self._anneal(self._design, placement)
        except DesignError:
            annealed = None
        return annealed, time.process_time() - begun

    def _dense(
        self,
        placement: Placement,
        settings: PlacerSettings,
        middle: bool,
        report: Callable[[int, Progress], None],
        stopped: Callable[[], bool] | None,
    ) -> list[FlatResult]:
        """The cells begun from the clusters, if there are any; in the middle if they are to, or if nothing else did."""
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        begun = time.process_time()
        start = self.start(placement)
        seconds = time.process_time() - begun
        attempts = (
            functools.partial(
                flat_check,
                self.flat.netlist,
                macros,
                self._core,
                settings=settings,
                start=begin,
                report=functools.partial(report, number),
                stopped=stopped,
            )
            for number, begin in enumerate([None] if start is None else [start, None])
        )
        first, *others = _those_found(attempts, most=2 if middle else 1)
        return [first._replace(seconds=first.seconds + seconds), *others]


def _those_found(attempts: Iterable[Callable[[], FlatResult]], *, most: int = 2) -> list[FlatResult]:
    """The first `most` of those whose cells did not fly apart: from elsewhere they may not.

    Raises:
        DesignError: as the last attempt, where all did.
    """
    found: list[FlatResult] = []
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


def _unless_scattered(spread: FlatResult, dense: FlatResult) -> FlatResult:
    """`spread`, not converged where its cells scattered: from the middle nothing else holds them to `dense`."""
    return spread._replace(converged=spread.converged and spread.wirelength <= SCATTERED * dense.wirelength)


def _shorter(found: list[FlatResult]) -> FlatResult:
    """The shortest of those that converged, if any did; with the seconds of all."""
    best = min(found, key=lambda one: (not one.converged, one.wirelength))
    return best._replace(seconds=sum(one.seconds for one in found))


def _holding(settings: PlacerSettings) -> PlacerSettings:
    """From annealed clusters: strong enough to hold the cells there, and slow, for them to find their order."""
    return dataclasses.replace(settings, warm_growth=1.01, warm_balance=0.1)


def _silent(number: int, progress: Progress) -> None:
    """Tells nobody."""
