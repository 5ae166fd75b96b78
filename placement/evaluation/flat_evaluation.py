"""`macro-placement evaluate flat=true`: a placement with all its standard cells, and what their routing needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from placement.evaluation.progress_bar import progress_bars
from placement.flat.check import flat_check
from placement.flat.from_clusters import core_of, macros_on_flat
from placement.flat.global_placement import PlacerSettings, Progress
from placement.flat.routing import RoutingEstimate, RoutingResources, route_estimate
from placement.netlist.design import Design, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.importing import CLUSTERS_NAME, read_clusters
from placement.netlist.load import find
from placement.netlist.user_placement import read_imported_flat
from placement.report.metrics import FlatMetrics
from placement.training.compilation import keep_compilations

SETTINGS = PlacerSettings()


class FlatFound(NamedTuple):
    """What the flat check of a placement found.

    Attributes:
        metrics: its figures.
        flat: the design before clustering.
        placement: of the flat netlist, cells included, µm from the user's origin.
        cluster: int32 [nodes of the flat netlist], each cell's cluster, -1: none.
        route: the routing estimate.
    """

    metrics: FlatMetrics
    flat: FlatDesign
    placement: Placement
    cluster: np.ndarray
    route: RoutingEstimate

    @property
    def drawn_cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the standard cells: x and y, µm from the canvas's lower left corner, and cluster, [cells] each."""
        core, cells = self.flat.floorplan.core, self.flat.cells
        return self.placement.x[cells] - core.x_low, self.placement.y[cells] - core.y_low, self.cluster[cells]


def read_flat_of(design: str) -> tuple[FlatDesign, np.ndarray]:
    """The flat netlist in a design's folder, and each node's cluster.

    Args:
        design: the name or path of the clustered design.

    Raises:
        DesignError: the folder has no flat netlist, or it cannot be read.
    """
    folder = find(design).parent
    flat = read_imported_flat(folder)
    has_clusters = (folder / CLUSTERS_NAME).is_file()
    return flat, read_clusters(folder) if has_clusters else np.full(flat.netlist.num_nodes, -1, dtype=np.int32)


class FlatJudge:
    """Places all cells of a design around its macros, and estimates their routing; for several placements.

    Raises:
        DesignError: the design has no flat netlist, it cannot be read, or it is of other macros.
    """

    def __init__(self, name: str, design: Design) -> None:
        keep_compilations()
        self._design = design
        self._flat, self._cluster = read_flat_of(name)
        self._core = core_of(self._flat, design)

    def check(
        self,
        placement: Placement,
        *,
        report: Callable[[Progress], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> FlatFound:
        """What a placement of the clustered design is worth.

        Args:
            placement: its hard macros are read.
            report: is called with the progress of placing the cells.
            stopped: is asked as often; once it says True, the result is what was reached.

        Raises:
            DesignError: the flat netlist does not fit the placement, the cells do not fit, or they flew apart.
            KeyboardInterrupt: on Ctrl-C.
        """
        flat, core = self._flat, self._core
        start = macros_on_flat(flat, self._design.netlist, placement)
        placed = flat_check(flat.netlist, start, core, settings=SETTINGS, report=report, stopped=stopped)
        route = route_estimate(flat.netlist, placed.placement, core, RoutingResources.of(self._design.canvas))
        metrics = FlatMetrics(
            flat_wirelength=placed.wirelength,
            density_overflow=placed.density_overflow,
            routed_wirelength=route.routed_wirelength,
            overflow=route.overflow,
            hot_spots=int(((route.horizontal > 1) | (route.vertical > 1)).sum()),
            flat_seconds=placed.seconds + route.seconds,
            flat_converged=placed.converged,
        )
        return FlatFound(metrics, flat, placed.placement, self._cluster, route)


def check_placement(name: str, design: Design, placement: Placement, console: Console) -> FlatFound:
    """As `FlatJudge`, of one placement, with a bar on a terminal."""
    judge = FlatJudge(name, design)
    with progress_bars(console, "placing cells") as (bar,):
        found = judge.check(
            placement, report=lambda progress: bar(share_done(progress), f"overflow {progress.overflow:.0%}")
        )
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
    figure = flat_plots.plot_cells(design, placement, flat_plots.Cells(*found.drawn_cells), title=title)
    style.save_figure(figure, folder / "cells.png")
    figure = flat_plots.plot_routing(design, placement, found.route.horizontal, found.route.vertical, title=title)
    style.save_figure(figure, folder / "routing.png")


def share_done(progress: Progress) -> float:
    """How much of placing the cells is done, in [0, 1]."""
    return max(0.0, min(1.0, (1 - progress.overflow) / (1 - SETTINGS.overflow)))
