"""The best placement that a run has seen, for each design, whoever found it."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from placement.annealing.finishing import Flipped, flip_macros
from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, compute_costs, costs_object
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.report import best_history

_log = logging.getLogger(__name__)
FIELDS = ("x", "y", "orientation", "placed")
"""Of a placement, that a checkpoint keeps."""


class Best(NamedTuple):
    """A placement with what it costs and where it came from.

    Attributes:
        costs: exact costs of `placement`.
        placement: all nodes.
        origin: for people: who found it, when.
    """

    costs: Costs
    placement: Placement
    origin: str


class BestTracker:
    """Keeps the cheapest placement of each of the run's designs. All methods may be called from several threads.

    Attributes:
        weights: of the cost that they are compared by.
    """

    def __init__(self, designs: Sequence[Design], weights: CostWeights = DEFAULT_WEIGHTS) -> None:
        self._designs, self.weights = designs, weights
        self._lock = threading.Lock()
        self._best: dict[int, Best] = {}
        self._unwritten: set[int] = set()

    def limit(self, design: int) -> float:
        """The proxy cost below which a placement is worth reporting; infinite while there is none."""
        with self._lock:
            return self._best[design].costs.total if design in self._best else math.inf

    def report(self, design: int, costs: Costs, placement: Placement, *, origin: str) -> bool:
        """Keeps the placement if it is cheaper than the best of design number `design`; returns whether it was."""
        with self._lock:
            known = self._best.get(design)
            if known is not None and costs.total >= known.costs.total:
                return False
            self._best[design] = Best(costs, placement, origin)
            self._unwritten.add(design)
            return True

    def best(self, design: int) -> Best | None:
        """The best placement of design number `design`; None while there is none."""
        with self._lock:
            return self._best.get(design)

    def mean_cost(self) -> float:
        """The designs' best proxy costs' mean (of the designs that have one); NaN while there is none."""
        costs = self.costs()
        return sum(costs) / len(costs) if costs else math.nan

    def costs(self) -> list[float]:
        """The best costs of the designs that have one, in the designs' order."""
        with self._lock:
            return [self._best[design].costs.total for design in sorted(self._best)]

    def write(self, folder: Path, *, iteration: int) -> None:
        """Writes what is better than at the last call: `best.plc` (`best-<design>.plc` of several) and `best.json`.

        The placement of this iteration also goes into `best_history/`.
        """
        with self._lock:
            unwritten, self._unwritten = sorted(self._unwritten), set()
            best = dict(self._best)
        for index in unwritten:
            design, found = self._designs[index], best[index]
            name = self.file_name(index)
            _write(folder / name, design, found, self.weights)
            _write(best_history.next_path(folder, name, iteration), design, found, self.weights)
        if unwritten:
            content = {self._designs[index].name: self._entry(index, found) for index, found in sorted(best.items())}
            write_whole(folder / "best.json", json.dumps(content, indent=2) + "\n")

    def files(self, folder: Path) -> tuple[Path, ...]:
        """The placement files of the designs that have one."""
        return tuple(folder / self.file_name(index) for index in range(len(self._designs)) if self.best(index))

    def file_name(self, design: int) -> str:
        """Of the placement file of design number `design`."""
        return "best.plc" if len(self._designs) == 1 else f"best-{design}-{self._designs[design].name}.plc"

    def _entry(self, index: int, found: Best) -> dict[str, Any]:
        return {"file": self.file_name(index), "origin": found.origin, **costs_object(found.costs, self.weights)}

    def write_flipped(self, folder: Path) -> list[tuple[Path, Flipped]]:
        """Mirrors the best placements' macros where that is cheaper, and writes that to files of its own.

        The best placements themselves stay what they are. Each goes to a file such as `best_flipped.plc`.
        """
        result = []
        for index, design in enumerate(self._designs):
            found = self.best(index)
            if found is None:
                continue
            flipped = flip_macros(design, found.placement, weights=self.weights)
            path = folder / self.file_name(index).replace("best", "best_flipped", 1)
            origin = f"{found.origin}, {flipped.flipped} macros flipped"
            _write(path, design, Best(flipped.costs, flipped.placement, origin), self.weights)
            result.append((path, flipped))
        return result

    def arrays(self) -> dict[str, Any]:
        """The best placements as arrays of fixed shapes for a checkpoint; a design without one has an infinite cost."""
        with self._lock:
            best = dict(self._best)
        return {str(index): _to_arrays(design, best.get(index)) for index, design in enumerate(self._designs)}

    def origins(self) -> dict[str, str]:
        """Where the best placements came from, for a checkpoint's record."""
        with self._lock:
            return {str(index): found.origin for index, found in self._best.items()}

    def restore(self, arrays: Mapping[str, Mapping[str, np.ndarray]], origins: Mapping[str, str]) -> None:
        """Takes back what `arrays` and `origins` gave."""
        for index, design in enumerate(self._designs):
            held = arrays[str(index)]
            if not np.isfinite(held["costs"]).all():
                continue
            placement = Placement(**{field: held[field] for field in FIELDS}, fixed=design.initial.fixed)
            costs = Costs(*(float(cost) for cost in held["costs"]))
            self.report(index, costs, placement, origin=origins.get(str(index), "a checkpoint"))

    def recover(self, folder: Path) -> None:
        """Takes back placements that were written to `folder` after the last checkpoint, at their exact cost."""
        for index, design in enumerate(self._designs):
            path = folder / self.file_name(index)
            if not path.is_file():
                continue
            try:
                _, placement = read_placement(path, design.netlist)
                costs = compute_costs(design, placement, weights=self.weights)
            except DesignError as error:
                _log.warning("%s is not taken as the best placement so far: %s", path, error)
                continue
            self.report(index, costs, placement, origin=f"{path.name} of the interrupted run")


def _to_arrays(design: Design, best: Best | None) -> dict[str, np.ndarray]:
    """x, y float64 [N] µm, orientation int8 [N], placed bool [N], costs float64 [5]."""
    placement = design.initial if best is None else best.placement
    costs = np.full(len(Costs._fields), np.inf) if best is None else np.array(best.costs, np.float64)
    return {"costs": costs, **{field: getattr(placement, field) for field in FIELDS}}


def _write(path: Path, design: Design, best: Best, weights: CostWeights) -> None:
    comments = (f"{weights.name.capitalize()} cost : {best.costs.total:.9f}", f"Found by : {best.origin}")
    write_placement(path, design, best.placement, comments=comments)
