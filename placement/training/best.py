"""The best placement in a run for each design, and the check of episodes that claim to have found one."""

import json
import logging
import math
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from placement.annealing.finishing import Flipped, flip_macros
from placement.config import EnvConfig
from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, compute_costs, costs_object
from placement.engine.observation import Observation
from placement.engine.pool import EnvironmentPool, make_pool
from placement.engine.state import EpisodeRenderer, IllegalAction
from placement.episode import Episode
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.report.run_watch import next_best_path
from placement.training.rollout import actor_of, is_evaluation
from placement.training.run_folder import BEST_NAME

_log = logging.getLogger(__name__)
FIELDS = ("x", "y", "orientation", "placed")  # fields of a placement that a checkpoint keeps
COST_TOLERANCE = 1e-6  # maximum relative error of an episode's claimed cost
MOST_DRAWN = 8  # maximum number of designs whose best placements are drawn for TensorBoard


class Best(NamedTuple):
    """A placement with its exact costs and, for people, its origin."""

    costs: Costs
    placement: Placement
    origin: str


class BestTracker:
    """Keeps the cheapest placement of each of the run's designs, by the cost of `weights`; thread-safe."""

    def __init__(self, designs: Sequence[Design], weights: CostWeights = DEFAULT_WEIGHTS) -> None:
        self._designs, self.weights = designs, weights
        self._lock = threading.Lock()
        self._best: dict[int, Best] = {}
        self._unwritten: set[int] = set()
        self._drawn: dict[int, float] = {}  # cost at the last picture

    def limit(self, design: int) -> float:
        """The cost below which a placement should be reported; infinite while there is none."""
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
        """The mean best cost over the designs that have one; NaN while there is none."""
        costs = self.costs()
        return sum(costs) / len(costs) if costs else math.nan

    def costs(self) -> list[float]:
        """The best costs of the designs that have one, in the designs' order."""
        with self._lock:
            return [self._best[design].costs.total for design in sorted(self._best)]

    def write(self, folder: Path, *, iteration: int) -> None:
        """Writes the improvements since the last call: `best.json`, and `best.plc` (`best-<design>.plc` for several
        designs).

        Each placement is also written to `best_history/` under this iteration.
        """
        with self._lock:
            unwritten, self._unwritten = sorted(self._unwritten), set()
            best = dict(self._best)
        for index in unwritten:
            design, found = self._designs[index], best[index]
            name = self.file_name(index)
            _write(folder / name, design, found, self.weights)
            _write(next_best_path(folder, name, iteration), design, found, self.weights)
        if unwritten:
            content = {}
            for index, found in sorted(best.items()):
                about = {"file": self.file_name(index), "origin": found.origin}
                content[self._designs[index].name] = {**about, **costs_object(found.costs, self.weights)}
            write_whole(folder / BEST_NAME, json.dumps(content, indent=2) + "\n")

    def files(self, folder: Path) -> tuple[Path, ...]:
        return tuple(folder / self.file_name(index) for index in range(len(self._designs)) if self.best(index))

    def file_name(self, design: int) -> str:
        return "best.plc" if len(self._designs) == 1 else f"best-{design}-{self._designs[design].name}.plc"

    def pictures(self) -> dict[str, bytes]:
        """PNG pictures, by the designs' names, of best placements that have improved since the last call."""
        from placement.report import plots, style  # imported late, since Matplotlib takes a second

        drawn = {}
        for index, design in enumerate(self._designs[:MOST_DRAWN]):
            found = self.best(index)
            if found is not None and found.costs.total < self._drawn.get(index, math.inf):
                self._drawn[index] = found.costs.total
                figure = plots.plot_placement(design, found.placement, weights=self.weights)
                drawn[design.name] = style.png_bytes(figure, dots_per_inch=90)
        return drawn

    def write_flipped(self, folder: Path) -> list[tuple[Path, Flipped]]:
        """Mirrors the best placements' macros if that is cheaper, and writes each to a file like `best_flipped.plc`.

        The best placements themselves are unchanged.
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
        """The origins of the best placements, for a checkpoint's record."""
        with self._lock:
            return {str(index): found.origin for index, found in self._best.items()}

    def restore(self, arrays: Mapping[str, Mapping[str, np.ndarray]], origins: Mapping[str, str]) -> None:
        """Restores the values of `arrays` and `origins`."""
        for index, design in enumerate(self._designs):
            held = arrays[str(index)]
            if not np.isfinite(held["costs"]).all():
                continue
            placement = Placement(**{field: held[field] for field in FIELDS}, fixed=design.initial.fixed)
            costs = Costs(*(float(cost) for cost in held["costs"]))
            self.report(index, costs, placement, origin=origins.get(str(index), "a checkpoint"))

    def recover(self, folder: Path) -> None:
        """Restores placements that were written to `folder` after the last checkpoint, with their exact cost."""
        for index, design in enumerate(self._designs):
            path = folder / self.file_name(index)
            if not path.is_file():
                continue
            try:
                _, placement = read_placement(path, design.netlist)
                costs = compute_costs(design, placement, weights=self.weights)
            except DesignError as error:
                _log.warning("%s is not accepted as the best placement so far: %s", path, error)
                continue
            self.report(index, costs, placement, origin=f"{path.name} of the interrupted run")


class EpisodeVerifier:
    """Replays episodes on the learner's engine to verify their costs and find their placements; not thread-safe.

    New best placements are added to `best`.
    """

    def __init__(self, designs: Sequence[Design], env: EnvConfig, best: BestTracker) -> None:
        self._designs, self._env, self._best = tuple(designs), env, best
        self._pools: dict[int, EnvironmentPool] = {}
        self._renderer: EpisodeRenderer | None = None
        self._rendered: Observation | None = None

    def placement(self, episode: Episode) -> tuple[Costs, Placement] | None:
        """The episode's placement with its exact costs; None if it did not place every macro; raises IllegalAction."""
        design = int(episode.design)
        pool = self._pools.get(design)
        if pool is None:
            pool = make_pool(self._designs, 1, config=self._env, design_of_env=[design])
            self._pools[design] = pool
        pool.reset()
        for action in episode.actions[: int(episode.length)]:
            pool.step([action])
        _, _, terminated, _, info = pool.observe()
        if not terminated[0] or info["dead_end"][0]:
            return None
        return Costs(*info["costs"][0].tolist()), pool.placement(0)

    def require_legal(self, episode: Episode) -> None:
        """Raises IllegalAction unless every action is legal; faster than `placement`."""
        if self._renderer is None:
            self._renderer = EpisodeRenderer(self._designs)
            self._rendered = self._renderer.arrays(1, self._renderer.spec.steps)
        self._renderer.render(episode.design[None], episode.actions[None], episode.length[None], out=self._rendered)

    def keep(self, episode: Episode, iteration: int) -> str | None:
        """Keeps the episode's placement if it is the best so far; returns the reason if the episode is rejected as
        false.

        Only an episode that claims to be cheaper than any before is replayed. `iteration` drew it.
        """
        claimed = float(episode.costs[4])
        if episode.dead_end or claimed >= self._best.limit(int(episode.design)):
            return None
        try:
            found = self.placement(episode)
        except IllegalAction as error:
            return str(error)
        if found is None or not math.isclose(found[0].total, claimed, rel_tol=COST_TOLERANCE):
            return f"claims to cost {claimed:.9g}, but costs {'nothing' if found is None else found[0].total}"
        actor, count = episode.identity.tolist()
        who = "greedy evaluation" if is_evaluation(episode) else f"actor {actor_of(actor)}, episode {count}"
        self._best.report(int(episode.design), *found, origin=f"{who}, parameters of iteration {iteration}")
        return None


def _to_arrays(design: Design, best: Best | None) -> dict[str, np.ndarray]:
    """A placement as x, y float64 [N] µm, orientation int8 [N], placed bool [N], and costs float64 [5]."""
    placement = design.initial if best is None else best.placement
    costs = np.full(len(Costs._fields), np.inf) if best is None else np.array(best.costs, np.float64)
    return {"costs": costs, **{field: getattr(placement, field) for field in FIELDS}}


def _write(path: Path, design: Design, best: Best, weights: CostWeights) -> None:
    comments = (f"{weights.name.capitalize()} cost : {best.costs.total:.9f}", f"Found by : {best.origin}")
    write_placement(path, design, best.placement, comments=comments)
