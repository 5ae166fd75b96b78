"""Scores of a legal placement: costs, full evaluation, coloquinte, and timing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placement.benchmark.coloquinte_judge import coloquinte_scores, is_installed
from placement.config import CostConfig
from placement.engine.costs import compute_costs, legality, proxy_cost, violations
from placement.flat.flat_evaluator import FULL_EVALUATION
from placement.flat.placement_timer import timer_or_none
from placement.netlist.design import Design, Placement
from placement.netlist.flat_design import FLAT_NAME
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import OPTIMUM_NAME

if TYPE_CHECKING:
    from placement.evaluation.full_evaluation import FullEvaluator

MOVED = 1e-3  # tolerance in µm for the position of a fixed node, because files round


def broken_rules(design: Design, placement: Placement) -> dict[str, int]:
    """Counts violations of each rule by all hard macros; omits rules without violations. Raises DesignError.

    `fixed` counts fixed ports and macros that moved.
    """
    fixed = design.initial.fixed
    off = np.abs(placement.x - design.initial.x) + np.abs(placement.y - design.initial.y) > MOVED
    off |= placement.orientation != design.initial.orientation
    counts = {
        **legality(design, placement)._asdict(),
        **violations(design, placement)._asdict(),
        "fixed": int((off & fixed).sum()),
    }
    return {rule: count for rule, count in counts.items() if count}


def costs_of(design: Design, placement: Placement) -> dict[str, float]:
    """Returns the chip cost, the proxy cost, and the wirelength in µm."""
    chip, proxy = (
        compute_costs(design, placement, weights=CostConfig(name=name).weights()) for name in ("chip", "proxy")
    )
    return {"chip_cost": chip.total, "proxy_cost": proxy.total, "wirelength": proxy.wirelength}


COSTS = ("chip_cost", "proxy_cost", "wirelength")
OF_CELLS = ("flat_wirelength", "routed_wirelength", "overflow", "density_overflow", "hot_spots", "cells_without_place")
OF_COLOQUINTE = ("coloquinte_wirelength", "coloquinte_overflow")
OF_TIMING = ("wns", "tns")


class Judge:
    """Scores placements of the design in a folder; `full` requests the full evaluation if it has cells.

    Attributes:
        names: names of the scores: costs always; with the full evaluation `OF_CELLS`, `OF_COLOQUINTE` if it is
            installed, and `OF_TIMING` (ps) if the design was imported with Liberty and has a clock; `wirelength_gap`,
            the relative excess over the least possible wirelength, if the design has that.
        full_evaluation: `FULL_EVALUATION` if the cells are placed, otherwise 0.

    Raises:
        DesignError: the timing constraints cannot be used, for example because clocks reach no register.
    """

    def __init__(self, folder: Path, design: Design, *, full: bool) -> None:
        self._folder, self._design = folder, design
        self._cells = full and (folder / FLAT_NAME).is_file()
        self._timer = timer_or_none(str(folder), design) if self._cells else None
        self.full_evaluation = FULL_EVALUATION if self._cells else 0
        self._least = _least_wirelength(folder, design)
        found = {COSTS: True, ("wirelength_gap",): self._least is not None, OF_CELLS: self._cells}
        found |= {OF_COLOQUINTE: self._cells and is_installed(), OF_TIMING: self._timer is not None}
        self.names = frozenset(name for names, there in found.items() if there for name in names)

    @functools.cached_property
    def _evaluator(self) -> FullEvaluator:
        from placement.evaluation.full_evaluation import FullEvaluator  # JAX takes seconds to import

        return FullEvaluator(str(self._folder), self._design, self._timer.evaluator if self._timer else None)

    def scores(
        self, placement: Placement, *, drawn: Path | None = None, stopped: Callable[[], bool] | None = None
    ) -> dict[str, float]:
        """Returns the scores by name; lower is better, except for those of timing.

        `drawn` is a file for the picture of the full evaluation; once `stopped()` is true, the scores are meaningless.
        Raises DesignError if a placement cannot be evaluated.
        """
        found = costs_of(self._design, placement)
        if self._least is not None:
            found["wirelength_gap"] = found["wirelength"] / self._least - 1
        if self._cells:
            evaluation = self._evaluator.evaluate(placement, stopped=stopped)
            metrics = evaluation.metrics._asdict()
            found |= {name: float(metrics[name]) for name in OF_CELLS}
            if self._timer is not None:
                timing = self._timer.evaluate(placement, cells=evaluation.legal.placement)
                found |= {"wns": timing.wns, "tns": timing.tns}
            if drawn is not None:
                evaluation.keep_drawn(drawn)
            if OF_COLOQUINTE[0] in self.names and not (stopped and stopped()):
                found |= coloquinte_scores(self._folder, self._design, placement)
        return found


def _least_wirelength(folder: Path, design: Design) -> float | None:
    """Returns the least wirelength of a planted design in µm; None if no file of the design holds it."""
    path = folder / OPTIMUM_NAME
    if not path.is_file():
        return None
    canvas, placement = read_placement(path, design.netlist, located=design.initial)
    return proxy_cost(design, placement).wirelength if canvas == design.canvas else None
