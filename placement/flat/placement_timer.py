"""Estimates the timing of placements of a clustered design, with placed cells or with each cell in its cluster."""

import dataclasses

import numpy as np

from placement.flat.correspondence import cells_in_clusters, clustered_nodes
from placement.flat.opensta import OpenSta
from placement.flat.timing import LISTED_PATHS, TimingEstimate, TimingEvaluator, TimingPath
from placement.netlist.design import Design, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import read_flat
from placement.netlist.load import clusters_or_none, find
from placement.netlist.timing_netlist import TIMING_NAME, read_timing


class PlacementTimer:
    """Times placements of the clustered design called `name`.

    Attributes:
        evaluator: the timing evaluator of the flat design.

    Raises:
        DesignError: the design was imported without Liberty files, or has no clock.
    """

    def __init__(self, name: str, design: Design) -> None:
        folder = find(name).parent
        self._name, self._design, self._flat = name, design, read_flat(folder)
        self._cluster = clusters_or_none(folder, self._flat)
        self.evaluator = TimingEvaluator(read_timing(folder), self._flat)

    def evaluate(
        self, placement: Placement, *, cells: Placement | None = None, paths: int = LISTED_PATHS
    ) -> TimingEstimate:
        """The timing of a placement of the clustered design, with its worst paths.

        Positions on paths are in µm from the canvas's lower left corner.

        Args:
            placement: the placement of the hard macros, and of the soft macros if there are no `cells`.
            cells: a placement of the flat netlist with all cells; None: each cell is in its cluster.
            paths: number of worst paths.

        Raises:
            DesignError: the cells are in no clusters.
        """
        found = self.evaluator.evaluate(self.cells(placement) if cells is None else cells, paths=paths)
        return dataclasses.replace(found, paths=tuple(map(self._on_canvas, found.paths)))

    def update(self, placement: Placement, *, paths: int = LISTED_PATHS) -> TimingEstimate:
        """Evaluates with cells in their clusters, recomputing only what has changed since the last call."""
        found = self.evaluator.update(self.cells(placement), paths=paths)
        return dataclasses.replace(found, paths=tuple(map(self._on_canvas, found.paths)))

    def macro_slack(self, found: TimingEstimate) -> dict[int, float]:
        """Worst slack in ps at the pins of each hard macro with a constrained path, by its node."""
        worst = np.full(self._flat.netlist.num_nodes, np.inf)
        node = self.evaluator.timing.node
        pins = np.flatnonzero(self._flat.netlist.kind[node] == NodeKind.HARD)
        np.minimum.at(worst, node[pins], found.slack[pins])
        hard, nodes = worst[self._flat.netlist.hard], clustered_nodes(self._flat, self._design.netlist)
        has_slack = np.isfinite(hard)
        return dict(zip(nodes[has_slack].tolist(), hard[has_slack].tolist(), strict=True))

    def _on_canvas(self, path: TimingPath) -> TimingPath:
        core = self._flat.floorplan.core
        x, y = (value - core.x_low for value in path.x), (value - core.y_low for value in path.y)
        return dataclasses.replace(path, x=tuple(x), y=tuple(y))

    def opensta(self, program: str) -> OpenSta:
        """OpenSTA for these placements; raises the errors of `OpenSta`."""
        return OpenSta(program, self.evaluator.timing, self._flat)

    def cells(self, placement: Placement) -> Placement:
        """A placement of the flat netlist with each cell in its cluster; raises DesignError if they are in none."""
        if not (self._cluster >= 0).any():
            raise DesignError(
                f"{self._name}: the cells are not clustered; give full=true to evaluate, which places them"
            )
        return cells_in_clusters(self._flat, self._cluster, self._design.netlist, placement)

    def notes(self, found: TimingEstimate, *, in_clusters: bool) -> list[str]:
        """Returns unusual facts about an estimate, and the model of its wires."""
        wires = self.evaluator.timing.wires
        notes = ["cells are timed in their clusters; full=true places them first"] if in_clusters else []
        notes += found.notices
        return [
            *notes,
            f"wires are assumed to be repeated by {wires.repeater}: {wires.delay_per_um:.3g} ps/µm (resistance and "
            f"capacitance: {wires.source})",
        ]


def timer_or_none(name: str, design: Design) -> PlacementTimer | None:
    """The timer of a design that was imported with Liberty files and with an SDC file that defines a clock.

    Raises DesignError if its files are damaged.
    """
    folder = find(name).parent
    has_clock = (folder / TIMING_NAME).is_file() and bool(read_timing(folder).constraints.clocks)
    return PlacementTimer(name, design) if has_clock else None
