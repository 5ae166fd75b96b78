"""`macro-placement evaluate flat=true`: a placement with all its standard cells, and what their routing needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from placement.evaluation.progress_bar import progress_bars
from placement.flat.electrostatic import PlacerSettings, Progress
from placement.flat.full_evaluation import MOST_STARTS, FullEvaluator
from placement.flat.global_placement import CellPlacement
from placement.flat.problem import MOST_PINS
from placement.flat.routing import RoutingEstimate
from placement.netlist.design import Design, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.importing import clusters_or_none
from placement.netlist.load import find
from placement.netlist.user_placement import read_imported_flat
from placement.report.metrics import FlatMetrics
from placement.search.settle import settle_for_check

SETTINGS = PlacerSettings()


class FlatPlaced(NamedTuple):
    """A placement with all its standard cells.

    Attributes:
        flat: the design before clustering.
        cluster: int32 [nodes of the flat netlist], each cell's cluster, -1: none.
        result: of placing the cells; its placement is of the flat netlist, µm from the user's origin.
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
        """Of the standard cells: x and y, µm from the canvas's lower left corner, and cluster, [cells] each."""
        core, cells = self.flat.floorplan.core, self.flat.cells
        return self.placement.x[cells] - core.x_low, self.placement.y[cells] - core.y_low, self.cluster[cells]

    @property
    def drawn_members(self) -> np.ndarray:
        """float64 [K, 4, 2]: the corners of the macros that arrays are made of, from the canvas's lower left corner."""
        core, there = self.flat.floorplan.core, self.placement
        corners = [
            array.corners_at(float(there.x[array.node]), float(there.y[array.node]), int(there.orientation[array.node]))
            for array in self.flat.arrays
        ]
        return np.concatenate((np.zeros((0, 4, 2)), *corners)) - [core.x_low, core.y_low]


class FlatFound(NamedTuple):
    """What the flat check of a placement found.

    Attributes:
        metrics: its figures.
        placed: the cells as near to each other as they may be, whose half perimeters are the flat wirelength.
        route: the routing estimate, with the cells spread as a flow leaves them.
    """

    metrics: FlatMetrics
    placed: FlatPlaced
    route: RoutingEstimate


def read_flat_of(design: str) -> tuple[FlatDesign, np.ndarray]:
    """The flat netlist in a design's folder, and each node's cluster.

    Args:
        design: the name or path of the clustered design.

    Raises:
        DesignError: the folder has no flat netlist, or it cannot be read.
    """
    folder = find(design).parent
    flat = read_imported_flat(folder)
    return flat, clusters_or_none(folder, flat)


class FlatJudge:
    """Places all cells of a design around its macros, and estimates their routing; for several placements.

    Attributes:
        uncounted_nets: nets of the flat netlist that have too many pins to count.

    Raises:
        DesignError: the design has no flat netlist, it cannot be read, or it is of other macros.
    """

    def __init__(self, name: str, design: Design) -> None:
        self._design = design
        flat, cluster = read_flat_of(name)
        self._evaluator = FullEvaluator(flat, cluster, design, anneal=settle_for_check, settings=SETTINGS)
        self.uncounted_nets = int((np.diff(flat.netlist.net_start) > MOST_PINS).sum())

    def place(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> FlatPlaced:
        """All cells around the macros, without what their routing needs.

        Args:
            placement: of the clustered design; its hard macros are read.
            stopped: is asked meanwhile; once it says True, the result is what was reached.

        Raises:
            DesignError: the flat netlist does not fit the placement, the cells do not fit, or they flew apart.
            KeyboardInterrupt: on Ctrl-C.
        """
        return self._placed(self._evaluator.dense(placement, stopped=stopped))

    def spread(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> FlatPlaced:
        """As `place`, with the room that cells need to be routed: at `DENSITY`, straps aside.

        Args:
            placement: of the clustered design; its hard macros are read.
            stopped: as of `place`.
        """
        return self._placed(self._evaluator.spread(placement, stopped=stopped))

    def check(
        self,
        placement: Placement,
        *,
        middle: bool = True,
        report: Callable[[float, float], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> FlatFound:
        """What a placement of the clustered design is worth.

        Args:
            placement: its hard macros are read.
            middle: as of `FullEvaluator.evaluate`.
            report: is called with the cells' density overflow, and how much of the check is done, in [0, 1].
            stopped: is asked as often; once it says True, the result is what was reached.

        Raises:
            DesignError: as `place`.
            KeyboardInterrupt: on Ctrl-C.
        """
        found = self._evaluator.evaluate(
            placement, middle=middle, report=_shares(report) if report else None, stopped=stopped
        )
        dense, spread, route = found.dense, found.spread, found.route
        metrics = FlatMetrics(
            flat_wirelength=dense.wirelength,
            density_overflow=max(dense.density_overflow, spread.density_overflow),
            routed_wirelength=route.routed_wirelength,
            overflow=route.overflow,
            hot_spots=int(((route.horizontal > 1) | (route.vertical > 1)).sum()),
            flat_seconds=dense.seconds + spread.seconds + route.seconds,
            flat_converged=dense.converged and spread.converged,
            cell_utilization=found.cell_utilization,
        )
        return FlatFound(metrics, self._placed(dense), route)

    def _placed(self, result: CellPlacement) -> FlatPlaced:
        return FlatPlaced(self._evaluator.flat, self._evaluator.cluster, result)


def check_placement(name: str, design: Design, placement: Placement, console: Console) -> FlatFound:
    """As `FlatJudge`, of one placement, with a bar on a terminal."""
    judge = FlatJudge(name, design)
    if judge.uncounted_nets:
        console.print(
            f"note: {judge.uncounted_nets} of the flat netlist's nets have more than {MOST_PINS:,} pins (as clocks and "
            "resets have) and count neither in wirelength nor in routing",
            soft_wrap=True,
        )
    with progress_bars(console, "placing cells") as (bar,):
        found = judge.check(placement, report=lambda overflow, share: bar(share, f"overflow {overflow:.0%}"))
    tell_spread(found.metrics, console)
    return found


def tell_spread(flat: FlatMetrics, console: Console, whose: str = "") -> None:
    """A note where the cells, those around the macros of `whose` where that is said, did not spread as they should."""
    if not flat.flat_converged:
        console.print(
            f"note: {whose}{': ' if whose else ''}the cells did not spread: after {SETTINGS.iterations} iterations "
            f"{flat.density_overflow:.1%} of their area stand beyond their bins' room, more than "
            f"{SETTINGS.overflow:.0%}; the flat check's figures count for less",
            soft_wrap=True,
        )


def draw(found: FlatFound, design: Design, placement: Placement, folder: Path, title: str) -> None:
    """Writes `cells.png` and `routing.png` to a folder."""
    from placement.report import flat_plots, style  # Matplotlib takes a second to import

    folder.mkdir(parents=True, exist_ok=True)
    cells = flat_plots.Cells(*found.placed.drawn_cells, members=found.placed.drawn_members)
    figure = flat_plots.plot_cells(design, placement, cells, title=title)
    style.save_figure(figure, folder / "cells.png")
    figure = flat_plots.plot_routing(design, placement, found.route.horizontal, found.route.vertical, title=title)
    style.save_figure(figure, folder / "routing.png")


def _shares(report: Callable[[float, float], None]) -> Callable[[int, Progress], None]:
    """Reports how much of the check is done; a beginning counts for its share of all."""
    most = 0.0

    def show(number: int, progress: Progress) -> None:
        nonlocal most
        done = min(1.0, (1 - progress.overflow) / (1 - SETTINGS.overflow))
        most = max(most, (number + done) / MOST_STARTS)
        report(progress.overflow, most)

    return show
