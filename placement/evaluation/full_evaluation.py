"""The full evaluation: all standard cells placed around a placement's macros, and their routing estimated.

Axis legend: M standard cells, X gcells across, Y gcells up, K macros that arrays consist of. Lengths in µm.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from placement.annealing.finishing import anneal_for_full_evaluation
from placement.flat.electrostatic import PlacerSettings, Progress
from placement.flat.flat_evaluator import STAGES, FlatEvaluator
from placement.flat.global_placement import CellPlacement
from placement.flat.legalisation import LegalCells
from placement.flat.problem import MOST_PINS
from placement.flat.routing import RoutingEstimate
from placement.flat.timing import TimingEvaluator
from placement.netlist.design import Design, Placement
from placement.netlist.files import write_npz
from placement.netlist.flat_design import FlatDesign, read_flat
from placement.netlist.load import clusters_or_none, find
from placement.report.placement_metrics import FullMetrics
from placement.report.progress_bar import progress_bars

SETTINGS = PlacerSettings()


class PlacedCells(NamedTuple):
    """A placement of the flat netlist with all its standard cells, µm from the user's origin.

    `cluster` (int32 [nodes of the flat netlist]) is each cell's cluster, -1: none.
    """

    flat: FlatDesign
    cluster: np.ndarray
    result: CellPlacement

    @property
    def placement(self) -> Placement:
        """Of the flat netlist, cells included."""
        return self.result.placement

    @property
    def drawn_cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the standard cells: x and y, µm from the canvas's lower left corner, and cluster, [M] each."""
        core, cells = self.flat.floorplan.core, self.flat.cells
        return self.placement.x[cells] - core.x_low, self.placement.y[cells] - core.y_low, self.cluster[cells]

    @property
    def drawn_members(self) -> np.ndarray:
        """float64 [K, 4, 2]: the corners of the macros in arrays, from the canvas's lower left corner."""
        core, there = self.flat.floorplan.core, self.placement
        corners = [
            array.corners_at(float(there.x[array.node]), float(there.y[array.node]), int(there.orientation[array.node]))
            for array in self.flat.arrays
        ]
        return np.concatenate((np.zeros((0, 4, 2)), *corners)) - [core.x_low, core.y_low]


class LegalisedCells(NamedTuple):
    """A placement with all its standard cells on sites of rows, and how many of them have no place."""

    cells: PlacedCells
    without_place: int


class KeptCells(NamedTuple):
    """What a picture of a full evaluation shows: the cells (float32 [M] µm, clusters int32 [M]) as in `drawn_cells`,
    and the routing demand over capacity, float32 [X, Y] in each direction.
    """

    x: np.ndarray
    y: np.ndarray
    cluster: np.ndarray
    horizontal: np.ndarray
    vertical: np.ndarray


class FullEvaluation(NamedTuple):
    """What the full evaluation of a placement found.

    In `placed` the cells are as near to each other as they may be, which gives the flat wirelength; in `legal` they are
    spread as a flow leaves them, and legalised, which gives `route`.
    """

    metrics: FullMetrics
    placed: PlacedCells
    legal: PlacedCells
    route: RoutingEstimate

    def keep_drawn(self, path: Path) -> None:
        """Writes a file for `read_drawn`: what a picture of the evaluation shows."""
        x, y, cluster = self.placed.drawn_cells
        maps = self.route.horizontal.astype(np.float32), self.route.vertical.astype(np.float32)
        drawn = KeptCells(x.astype(np.float32), y.astype(np.float32), cluster.astype(np.int32), *maps)
        write_npz(path, drawn._asdict())


def read_flat_of(design: str) -> tuple[FlatDesign, np.ndarray]:
    """The flat netlist in the folder of a clustered design, and each node's cluster; raises DesignError."""
    folder = find(design).parent
    flat = read_flat(folder)
    return flat, clusters_or_none(folder, flat)


class FullEvaluator:
    """Places all cells of a design around its macros, and estimates their routing; for several placements.

    With `timing`, critical paths pull the legal cells together. Raises DesignError where the design has no flat
    netlist, or one that cannot be read or is of other macros.
    """

    def __init__(self, name: str, design: Design, timing: TimingEvaluator | None = None) -> None:
        self._design = design
        flat, cluster = read_flat_of(name)
        self._evaluator = FlatEvaluator(
            flat, cluster, design, anneal=anneal_for_full_evaluation, settings=SETTINGS, timing=timing
        )
        self.uncounted_nets = int((np.diff(flat.netlist.net_start) > MOST_PINS).sum())

    def place(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> PlacedCells:
        """All cells around the hard macros of a placement of the clustered design, without whitespace for routing.

        Once `stopped()` is true, the result is what was reached. Raises DesignError where the flat netlist does not fit
        the placement, the cells do not fit, or they flew apart.
        """
        return self._placed(self._evaluator.dense(placement, stopped=stopped))

    def spread(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> PlacedCells:
        """As `place`, with the whitespace that cells need to be routed: at `DENSITY`, PDN channels aside."""
        return self._placed(self._evaluator.spread(placement, stopped=stopped))

    def legal(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> LegalisedCells:
        """The cells of `FullEvaluation.legal`; arguments and errors as of `place`."""
        spread, again = self._evaluator.shorter_spread(placement, stopped=stopped)
        spread = self._evaluator.timing_driven(spread, again, stopped=stopped)
        return self._legalised(spread, self._evaluator.legalised(spread))

    def evaluate(
        self,
        placement: Placement,
        *,
        report: Callable[[float, float], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> FullEvaluation:
        """Evaluates a placement of the clustered design; arguments and errors as of `place`.

        `report` is called with the cells' density overflow, and the completed share of the evaluation, in [0, 1].
        """
        found = self._evaluator.evaluate(placement, report=_shares(report) if report else None, stopped=stopped)
        dense, spread, legal, route = found.dense, found.spread, found.legal, found.route
        metrics = FullMetrics(
            flat_wirelength=dense.wirelength,
            density_overflow=max(dense.density_overflow, spread.density_overflow),
            routed_wirelength=route.routed_wirelength,
            overflow=route.overflow,
            hot_spots=int(((route.horizontal > 1) | (route.vertical > 1)).sum()),
            flat_seconds=dense.seconds + spread.seconds + route.seconds + (legal.seconds if legal else 0.0),
            flat_converged=dense.converged and spread.converged,
            cell_utilization=found.cell_utilization,
            global_routed_wirelength=found.global_route.routed_wirelength,
            legal_wirelength=legal.wirelength if legal else spread.wirelength,
            spread_wirelength=spread.wirelength,
            cells_without_place=legal.without_place if legal else 0,
            mean_displacement=legal.mean_displacement if legal else 0.0,
            most_displacement=legal.most_displacement if legal else 0.0,
        )
        return FullEvaluation(metrics, self._placed(dense), self._legalised(spread, legal).cells, route)

    def _legalised(self, spread: CellPlacement, legal: LegalCells | None) -> LegalisedCells:
        """Spread cells on sites of rows; as they are if the floorplan has no rows."""
        if legal is None:
            return LegalisedCells(self._placed(spread), 0)
        result = spread._replace(placement=legal.placement, wirelength=legal.wirelength)
        return LegalisedCells(self._placed(result), legal.without_place)

    def _placed(self, result: CellPlacement) -> PlacedCells:
        return PlacedCells(self._evaluator.flat, self._evaluator.cluster, result)


def evaluate_fully(
    name: str, design: Design, placement: Placement, console: Console, timing: TimingEvaluator | None = None
) -> FullEvaluation:
    """As `FullEvaluator`, for one placement, with a bar on a terminal."""
    evaluator = FullEvaluator(name, design, timing)
    if evaluator.uncounted_nets:
        console.print(
            f"note: {evaluator.uncounted_nets} of the flat netlist's nets have more than {MOST_PINS:,} pins (as clocks "
            "and resets have) and count neither in wirelength nor in routing",
            soft_wrap=True,
        )
    with progress_bars(console, "placing cells") as (bar,):
        found = evaluator.evaluate(placement, report=lambda overflow, share: bar(share, f"overflow {overflow:.0%}"))
    warn_unless_spread(found.metrics, console)
    return found


def warn_unless_spread(flat: FullMetrics, console: Console, whose: str = "") -> None:
    """Prints a note if the cells, those around the macros of the placement `whose`, did not spread as they should."""
    if not flat.flat_converged:
        console.print(
            f"note: {whose}{': ' if whose else ''}the cells did not spread: after {SETTINGS.iterations} iterations "
            f"{flat.density_overflow:.1%} of their area overflow their bins, more than {SETTINGS.overflow:.0%}; the "
            "figures of the full evaluation are less reliable",
            soft_wrap=True,
        )


def draw(found: FullEvaluation, design: Design, placement: Placement, folder: Path, title: str) -> None:
    """Writes `cells.png` and `routing.png` to a folder."""
    from placement.report import plots, style  # Matplotlib takes a second to import

    folder.mkdir(parents=True, exist_ok=True)
    cells = plots.DrawnCells(*found.placed.drawn_cells, members=found.placed.drawn_members)
    figure = plots.plot_cells(design, placement, cells, title=title)
    style.save_figure(figure, folder / "cells.png")
    figure = plots.plot_routing(design, placement, found.route.horizontal, found.route.vertical, title=title)
    style.save_figure(figure, folder / "routing.png")


def _shares(report: Callable[[float, float], None]) -> Callable[[int, Progress], None]:
    """Reports the completed share of the evaluation, in which every initial placement of the cells counts alike."""
    most = 0.0

    def show(number: int, progress: Progress) -> None:
        nonlocal most
        done = min(1.0, (1 - progress.overflow) / (1 - SETTINGS.overflow))
        most = max(most, (number + done) / STAGES)
        report(progress.overflow, most)

    return show


def read_drawn(path: Path) -> KeptCells:
    """What `FullEvaluation.keep_drawn` wrote to a file; raises OSError or ValueError where there is none."""
    with io.BytesIO(path.read_bytes()) as file, np.load(file, allow_pickle=False) as arrays:
        return KeptCells(**{name: arrays[name] for name in KeptCells._fields})
