"""What a placement scores, once it is legal: costs, the full evaluation, and coloquinte where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from placement.benchmark.coloquinte_judge import coloquinte_wirelength, is_installed
from placement.config import CostConfig
from placement.engine.costs import compute_costs, legality, violations
from placement.netlist.design import Design, Placement
from placement.netlist.flat_design import FLAT_NAME

MOVED = 1e-3
"""µm by which a fixed node may differ from its place, for files round."""


def broken_rules(design: Design, placement: Placement) -> dict[str, int]:
    """How often each rule is broken, exactly, by all hard macros; only rules that are. Raises DesignError.

    `fixed` counts ports and macros that may not move and did.
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
    """The chip cost, the proxy cost, and the wirelength in µm."""
    chip, proxy = (
        compute_costs(design, placement, weights=CostConfig(name=name).weights()) for name in ("chip", "proxy")
    )
    return {"chip_cost": chip.total, "proxy_cost": proxy.total, "wirelength": proxy.wirelength}


class Judge:
    """Scores placements of a design, whose folder is given; `full` asks for the full evaluation where it has cells."""

    def __init__(self, folder: Path, design: Design, *, full: bool) -> None:
        self._folder, self._design = folder, design
        self._cells = full and (folder / FLAT_NAME).is_file()
        self._evaluator: Any = None

    def scores(self, placement: Placement) -> dict[str, float]:
        """The scores by name; less is better. Raises DesignError where a placement cannot be evaluated."""
        found = costs_of(self._design, placement)
        if not self._cells:
            return found
        if self._evaluator is None:
            from placement.evaluation.full_evaluation import FullEvaluator  # JAX takes seconds to import

            self._evaluator = FullEvaluator(str(self._folder), self._design)
        metrics = self._evaluator.evaluate(placement).metrics
        found |= {"routed_wirelength": metrics.routed_wirelength, "overflow": metrics.overflow}
        found |= {"flat_wirelength": metrics.flat_wirelength, "cells_without_place": metrics.cells_without_place}
        if is_installed():
            found["coloquinte_wirelength"] = coloquinte_wirelength(self._folder, self._design, placement)
        return found
