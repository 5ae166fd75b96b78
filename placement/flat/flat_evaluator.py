"""Full evaluation of a macro placement: all standard cells are placed around the macros, legalised and routed.

The starting positions of the cells decide on which side of the macros they end. The cells are therefore placed twice,
from annealed clusters around the macros and from the middle of the core, and the shorter result counts; on some
placements one or the other is longer by a tenth. The dense cells start from the spread ones.
"""

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
from placement.flat.row_area import with_slivers, within_rows
from placement.flat.timing import TimingEvaluator
from placement.netlist.design import Design, Netlist, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign

FULL_EVALUATION = 2
"""Version of the full evaluation. Results of an earlier one are computed again. Before version 2, cells were also
spread into slivers of row area, and rounds with timing were compared before legalisation.
"""
STAGES = 3  # number of cell placement stages: spread from the clusters, spread from the middle, dense
CLUSTER_GROWTH, CLUSTER_BALANCE = 1.015, 0.03
"""`PlacerSettings` for a start from clusters: cells stay with their clusters and have time to find their order."""
COMPACT_BALANCE = 1e-3  # `PlacerSettings.balance` for the dense stage: spread cells move together in their order

TIMING_ROUNDS = 2  # maximum number of rounds that weigh the wires of critical paths and spread the cells again
MOST_LONGER = 1.02
"""Maximum legal wirelength of a timing-driven round, relative to placement by wirelength alone; longer rounds do not
count.
"""
Again = Callable[[Netlist], CellPlacement]  # spreads the cells from the same start for a netlist with other weights


class FlatEvaluation(NamedTuple):
    """Results for a macro placement."""

    dense: CellPlacement  # the cells placed as densely as possible
    # the cells as a flow leaves them (`spread_cells`); with timing, the result of `legal_rounds`
    spread: CellPlacement
    legal: LegalCells | None  # the spread cells on the sites of rows; None if the floorplan has no rows
    route: RoutingEstimate  # the routing estimate of the legal cells, or of the spread cells if there are no rows
    global_route: RoutingEstimate  # the routing estimate of the spread cells
    cell_utilization: float  # area of the cells over the whitespace clear of macros and PDN channels


class _Round(NamedTuple):
    """Spread cells, their legal positions (None without rows), and the total negative slack in ps, at most 0.

    The slack is that of the legal cells, or of the spread cells without rows.
    """

    spread: CellPlacement
    legal: LegalCells | None
    slack: float

    def rank(self, first: "_Round") -> tuple[bool, bool, bool, float]:
        """Key that sorts rounds, best last; `first` is placed by wirelength alone."""
        wirelength, most = (one.legal.wirelength if one.legal else one.spread.wirelength for one in (self, first))
        without_place, places = (one.legal.without_place if one.legal else 0 for one in (self, first))
        return self.spread.converged, without_place <= places, wirelength <= MOST_LONGER * most, self.slack


class FlatEvaluator:
    """Evaluates placements of one design.

    Args:
        flat: the design before clustering.
        cluster: int32 [nodes of the flat netlist], cluster of each cell; -1: none.
        design: the clustered design.
        anneal: anneals the soft macros of the clustered design around the hard ones as starting positions of the cells;
            may raise DesignError. None: the cells start in the middle of the core.
        settings: settings of the placer.
        timing: timing of the flat design, which makes the spread stage timing-driven. None: only wirelength counts.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one, or the clusters belong to another
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
        """Returns the full evaluation of a placement.

        Args:
            placement: a placement of the clustered design, whose hard macros are read.
            report: called after every ten iterations with the number of the stage, less than `STAGES`, and its
                progress.
            stopped: called as often, but not during the seconds in which clusters are annealed; once it returns True,
                the result so far is returned.

        Raises:
            DesignError: a macro has no position, the cells do not fit around the macros, or they diverged.
        """
        netlist, channel = self.flat.netlist, self._design.own_pdn_channel
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        spread, again = self.shorter_spread(placement, report=report, stopped=stopped)
        dense = self._dense(macros, report, stopped, spread.placement)
        spread, legal = self.legal_rounds(spread, again, stopped=stopped)
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
        """Puts a global placement's cells on the sites of rows; returns None if the floorplan has no rows."""
        return legalise_cells(self.flat.netlist, cells.placement, self._core, self.flat.floorplan.rows)

    def dense(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> CellPlacement:
        """Places the cells as densely as possible, from the middle of the core; arguments as for `evaluate`."""
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        return self._dense(macros, None, stopped, None)

    def spread(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> CellPlacement:
        """Places the cells at `DENSITY` without PDN channels, from the core's middle; arguments as for `evaluate`."""
        macros = macros_on_flat(self.flat, self._design.netlist, placement)
        core = with_slivers(self._core, self.flat, macros)
        return spread_cells(self.flat.netlist, macros, core, channel=0.0, attempts=[self._settings], stopped=stopped)

    def shorter_spread(
        self,
        placement: Placement,
        *,
        report: Callable[[int, Progress], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> tuple[CellPlacement, Again]:
        """Returns the shorter of both spread placements, without timing; arguments and errors as for `evaluate`.

        Its seconds cover both starts and the clusters.
        """
        netlist, macros = self.flat.netlist, macros_on_flat(self.flat, self._design.netlist, placement)
        core, channel = with_slivers(self._core, self.flat, macros), self._design.own_pdn_channel
        spread = functools.partial(spread_cells, placement=macros, core=core, channel=channel, stopped=stopped)
        start, seconds = self._in_clusters(placement)
        again: Again
        found: list[tuple[CellPlacement, Again]] = []
        if start is not None:
            with contextlib.suppress(DesignError):  # they diverge or do not fit; the start from the middle reports it
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

    def legal_rounds(
        self, cells: CellPlacement, again: Again, *, stopped: Callable[[], bool] | None = None
    ) -> tuple[CellPlacement, LegalCells | None]:
        """Legalises spread cells; with timing, spreads and legalises them again, up to `TIMING_ROUNDS` times.

        Each round has the wires of critical paths as additional nets. Returns the spread and the legal cells of one
        round, which may be the given one: of the rounds within `MOST_LONGER` that leave no more cells without a place,
        the one with the least negative slack after legalisation. Without rows, there are no legal cells, and the rounds
        are compared by their spread cells. The seconds of the returned cells cover all rounds. Raises DesignError if a
        node has no position.
        """
        if self._timing is None:
            return cells, self.legalised(cells)
        critical = CriticalWires(self._timing)
        rounds: list[_Round] = []
        spread = cells
        while True:
            legal = self.legalised(spread)
            rounds.append(_Round(spread, legal, critical.add((legal or spread).placement)))
            if len(rounds) > TIMING_ROUNDS or rounds[-1].slack == 0 or (stopped and stopped()):
                break
            try:
                spread = again(critical.netlist())
            except DesignError:  # they diverge
                break
            spread = spread._replace(wirelength=half_perimeter(self.flat.netlist, spread.placement))
        best = max(rounds, key=lambda one: one.rank(rounds[0]))
        spread = best.spread._replace(seconds=sum(one.spread.seconds for one in rounds))
        if best.legal is None:
            return spread, None
        return spread, best.legal._replace(seconds=sum(one.legal.seconds for one in rounds if one.legal))

    def _dense(
        self,
        macros: Placement,
        report: Callable[[int, Progress], None] | None,
        stopped: Callable[[], bool] | None,
        start: Placement | None,
    ) -> CellPlacement:
        """Runs `place_cells` from the spread cells, or from the middle if there are none or they diverge."""
        place = functools.partial(
            place_cells, self.flat.netlist, macros, self._core, report=_numbered(report, 2), stopped=stopped
        )
        if start is not None:
            with contextlib.suppress(DesignError):
                return place(settings=dataclasses.replace(self._settings, balance=COMPACT_BALANCE), start=start)
        return place(settings=self._settings)

    def _in_clusters(self, placement: Placement) -> tuple[Placement | None, float]:
        """Returns the cells in their clusters, annealed around the macros, and the seconds that took.

        Returns None if there are no clusters or they cannot be annealed because they do not fit or macros overlap.
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
