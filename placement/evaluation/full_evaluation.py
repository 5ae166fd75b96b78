"""The full evaluation, which places all standard cells around a placement's macros and estimates their routing.

Axis legend: M standard cells, X gcells across, Y gcells up, K macros that arrays consist of. Lengths in µm.
"""

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
        """The placement of the flat netlist, including cells."""
        return self.result.placement

    @property
    def drawn_cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coordinates x and y (µm from the canvas's lower left corner) and cluster of the standard cells, [M] each."""
        core, cells = self.flat.floorplan.core, self.flat.cells
        return self.placement.x[cells] - core.x_low, self.placement.y[cells] - core.y_low, self.cluster[cells]

    @property
    def drawn_members(self) -> np.ndarray:
        """Corners of the macros in arrays, from the canvas's lower left corner, float64 [K, 4, 2]."""
        core, there = self.flat.floorplan.core, self.placement
        corners = [
            array.corners_at(float(there.x[array.node]), float(there.y[array.node]), int(there.orientation[array.node]))
            for array in self.flat.arrays
        ]
        return np.concatenate((np.zeros((0, 4, 2)), *corners)) - [core.x_low, core.y_low]


class KeptCells(NamedTuple):
    """The data of a full evaluation's picture: the cells (float32 [M] µm, clusters int32 [M]) as in `drawn_cells`, and
    the routing demand over capacity, float32 [X, Y] in each direction.
    """

    x: np.ndarray
    y: np.ndarray
    cluster: np.ndarray
    horizontal: np.ndarray
    vertical: np.ndarray


class FullEvaluation(NamedTuple):
    """The results of a full evaluation.

    In `placed` the cells are as close together as possible, which gives the flat wirelength; in `legal` they are spread
    as in a flow and legalised, which gives `route`.
    """

    metrics: FullMetrics
    placed: PlacedCells
    legal: PlacedCells
    route: RoutingEstimate

    def keep_drawn(self, path: Path) -> None:
        """Writes the data of the evaluation's picture to a file for `read_drawn`."""
        x, y, cluster = self.placed.drawn_cells
        maps = self.route.horizontal.astype(np.float32), self.route.vertical.astype(np.float32)
        drawn = KeptCells(x.astype(np.float32), y.astype(np.float32), cluster.astype(np.int32), *maps)
        write_npz(path, drawn._asdict())


def read_flat_of(design: str) -> tuple[FlatDesign, np.ndarray]:
    """Reads the flat netlist in the folder of a clustered design, and each node's cluster; raises DesignError."""
    folder = find(design).parent
    flat = read_flat(folder)
    return flat, clusters_or_none(folder, flat)


class FullEvaluator:
    """Places all cells of a design around its macros, and estimates their routing, for several placements.

    With `timing`, critical paths pull the legal cells together. Raises DesignError if the design has no flat netlist,
    or one that cannot be read or has other macros.
    """

    def __init__(self, name: str, design: Design, timing: TimingEvaluator | None = None) -> None:
        self._design = design
        flat, cluster = read_flat_of(name)
        self._evaluator = FlatEvaluator(
            flat, cluster, design, anneal=anneal_for_full_evaluation, settings=SETTINGS, timing=timing
        )
        self.uncounted_nets = int((np.diff(flat.netlist.net_start) > MOST_PINS).sum())

    def place(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> PlacedCells:
        """Places all cells around the hard macros of a placement of the clustered design, without whitespace for
        routing.

        Once `stopped()` is true, the current cells are returned. Raises DesignError if the flat netlist does not fit
        the placement, the cells do not fit, or they diverge.
        """
        return self._placed(self._evaluator.dense(placement, stopped=stopped))

    def spread(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> PlacedCells:
        """Does the same as `place`, with the whitespace that routing needs: at `DENSITY`, apart from PDN channels."""
        return self._placed(self._evaluator.spread(placement, stopped=stopped))

    def legal(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> tuple[PlacedCells, int]:
        """Returns the cells of `FullEvaluation.legal` and the number without a place; see `place` for the rest."""
        spread, again = self._evaluator.shorter_spread(placement, stopped=stopped)
        spread, legal = self._evaluator.legal_rounds(spread, again, stopped=stopped)
        return self._legalised(spread, legal), 0 if legal is None else legal.without_place

    def evaluate(
        self,
        placement: Placement,
        *,
        report: Callable[[float, float], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> FullEvaluation:
        """Evaluates a placement of the clustered design; takes the arguments and raises the errors of `place`.

        `report` is called with the cells' density overflow, and the completed fraction of the evaluation, in [0, 1].
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
        return FullEvaluation(metrics, self._placed(dense), self._legalised(spread, legal), route)

    def _legalised(self, spread: CellPlacement, legal: LegalCells | None) -> PlacedCells:
        """Spread cells on sites of rows, or unchanged if the floorplan has no rows."""
        if legal is not None:
            spread = spread._replace(placement=legal.placement, wirelength=legal.wirelength)
        return self._placed(spread)

    def _placed(self, result: CellPlacement) -> PlacedCells:
        return PlacedCells(self._evaluator.flat, self._evaluator.cluster, result)


def evaluate_fully(
    name: str, design: Design, placement: Placement, console: Console, timing: TimingEvaluator | None = None
) -> FullEvaluation:
    """Runs `FullEvaluator` for one placement, with a progress bar on a terminal."""
    evaluator = FullEvaluator(name, design, timing)
    if evaluator.uncounted_nets:
        console.print(
            f"note: {evaluator.uncounted_nets} nets have more than {MOST_PINS:,} pins (such as clocks and resets): "
            "they are excluded from wirelength and routing",
            soft_wrap=True,
        )
    with progress_bars(console, "placing cells") as (bar,):
        found = evaluator.evaluate(placement, report=lambda overflow, share: bar(share, f"overflow {overflow:.0%}"))
    warn_unless_spread(found.metrics, console)
    return found


def warn_unless_spread(flat: FullMetrics, console: Console) -> None:
    """Prints a note if the cells did not spread to the target density."""
    if not flat.flat_converged:
        console.print(
            f"note: the cells did not spread: after {SETTINGS.iterations} iterations "
            f"{flat.density_overflow:.1%} of their area overflows its bins, more than {SETTINGS.overflow:.0%}; the "
            "figures of the full evaluation are less reliable",
            soft_wrap=True,
        )


def draw(found: FullEvaluation, design: Design, placement: Placement, folder: Path, title: str) -> None:
    """Writes `cells.png` and `routing.png` to a folder."""
    from placement.report import plots, style  # imported late, since Matplotlib takes a second

    folder.mkdir(parents=True, exist_ok=True)
    cells = plots.DrawnCells(*found.placed.drawn_cells, members=found.placed.drawn_members)
    figure = plots.plot_cells(design, placement, cells, title=title)
    style.save_figure(figure, folder / "cells.png")
    figure = plots.plot_routing(design, placement, found.route.horizontal, found.route.vertical, title=title)
    style.save_figure(figure, folder / "routing.png")


def _shares(report: Callable[[float, float], None]) -> Callable[[int, Progress], None]:
    """Reports the completed fraction of the evaluation, in which all initial placements of the cells count alike."""
    most = 0.0

    def show(number: int, progress: Progress) -> None:
        nonlocal most
        done = min(1.0, (1 - progress.overflow) / (1 - SETTINGS.overflow))
        most = max(most, (number + done) / STAGES)
        report(progress.overflow, most)

    return show


def read_drawn(path: Path) -> KeptCells:
    """Reads the file that `FullEvaluation.keep_drawn` wrote; raises OSError or ValueError if there is none."""
    with io.BytesIO(path.read_bytes()) as file, np.load(file, allow_pickle=False) as arrays:
        return KeptCells(**{name: arrays[name] for name in KeptCells._fields})
