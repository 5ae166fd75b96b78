"""Built-in placers by name, and placers given as `package.module:callable`; each runs in its own process."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from placement.annealing.search import Watch, search
from placement.annealing.starts import grid_starts
from placement.config import ConfigError, CostConfig
from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs
from placement.evaluation.placements import has_macro_places
from placement.evaluation.settings import DEFAULT_ANNEAL
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.netlist.load import load

REQUEST_NAME, CURVE_NAME, PLACEMENT_NAME = "request.json", "curve.json", "placement.plc"  # files of a run
LEAST_SHARE = 0.1  # minimum share of the CPU time that a placer is given, even if loading took longer
SAVING_SHARE = 0.15  # share of a training's time that is reserved for its end
WATCH_SECONDS = 0.1
SEEDS = 2**31


@dataclasses.dataclass(frozen=True)
class Request:
    """Request for a run."""

    design: str  # the design's folder
    placer: str  # a name of `placement.benchmark.built_in`, or package.module:callable
    seed: int  # seed of all random numbers
    seconds: float  # CPU seconds since the start of the process
    checkpoint: str = "base"  # checkpoint for placers that use a policy

    def left(self) -> float:
        """Remaining CPU seconds; at least `LEAST_SHARE` of all."""
        return max(self.seconds - time.process_time(), LEAST_SHARE * self.seconds)


class Found(NamedTuple):
    """A placer's placement of a design, and its curve of (CPU seconds of the process, best chip cost)."""

    design: Design
    placement: Placement
    curve: tuple[tuple[float, float], ...] = ()


def place(request: Request, folder: Path) -> Found:
    """Runs the placer of a request; raises DesignError or ConfigError if it cannot be used or finds nothing."""
    if ":" in request.placer:
        return _own(request)
    return BUILT_IN[request.placer](request, folder)


def _own(request: Request) -> Found:
    """Runs a user-defined callable: (design, seed, seconds) → a placement."""
    function = import_placer(request.placer)
    design = ready(load(request.design))
    placement = function(design, request.seed, request.left())
    if not isinstance(placement, Placement):
        raise DesignError(f"{request.placer}: returned {type(placement).__name__}, instead of a placement.Placement")
    return Found(design, placement)


def import_placer(path: str) -> Callable[[Design, int, float], Placement]:
    """Imports the callable `package.module:callable`, also from the current folder; raises ConfigError."""
    module, _, name = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"placers: {path}: cannot be imported: {error}") from None
    if not callable(found):
        raise ConfigError(f"placers: {path}: is {type(found).__name__}, instead of a callable")
    return found


def _repeated(kind: str) -> Callable[[Request, Path], Found]:
    """Returns a placer that takes the best of all placements of one kind made within its time."""

    def run(request: Request, folder: Path) -> Found:
        design = ready(load(request.design))
        end, generator = time.process_time() + request.left(), np.random.default_rng(request.seed)
        best: tuple[float, Placement] | None = None
        curve: list[tuple[float, float]] = []
        while best is None or time.process_time() < end:
            # There is none at a dead end; the next one may succeed.
            for start in grid_starts(kind, design, DEFAULT_ANNEAL, int(generator.integers(SEEDS))):
                cost = compute_costs(design, start.placement).total
                if best is None or cost < best[0]:
                    best = cost, start.placement
            if best is not None:
                curve.append((time.process_time(), best[0]))
            elif time.process_time() >= end:
                raise DesignError(f"{design.name}: {kind} found no legal placement in {request.seconds:g} s")
        return Found(design, best[1], tuple(curve))

    return run


def _search(request: Request, folder: Path, *, cost: str = "chip") -> Found:
    """Anneals from the search's own starts."""
    design = ready(load(request.design))
    begin, weights = time.process_time(), CostConfig(name=cost).weights()
    result = search(design, [], config=DEFAULT_ANNEAL, seconds=request.left(), weights=weights, seed=request.seed)
    curve = tuple((begin + point.seconds, point.cost) for point in result.history)
    return Found(design, result.placement, curve if cost == "chip" else ())


def _mixed_size(request: Request, folder: Path) -> Found:
    """Places cells and macros together once, then anneals the macros among the cells in the remaining time."""
    # imported late: JAX takes seconds to import
    from placement.evaluation.full_evaluation import FullEvaluator
    from placement.evaluation.mixed_size_start import mixed_size_start, refine_among_cells

    design = ready(load(request.design))
    begin, given = time.process_time(), request.left()
    start = mixed_size_start(request.design, design, DEFAULT_ANNEAL, weights=DEFAULT_WEIGHTS, seed=request.seed)
    placement = start.placement
    curve = [_point(design, placement)]
    if 2 * (curve[0][0] - begin) < given:  # placing the cells takes less time than cells and macros together did
        found = FullEvaluator(request.design, design).place(placement)
        left = begin + given - time.process_time()
        if left > 0:
            placement, _ = refine_among_cells(
                design, placement, found, DEFAULT_ANNEAL, seconds=left, seed=request.seed, watch=Watch()
            )
            curve.append(_point(design, placement))
    return Found(design, placement, tuple(curve))


def _point(design: Design, placement: Placement) -> tuple[float, float]:
    """Returns the CPU seconds of the process so far, and the placement's cost."""
    cost = compute_costs(design, placement).total
    return time.process_time(), cost


def _supplied(request: Request, folder: Path) -> Found:
    """Returns the placement that came with the design."""
    design = load(request.design)
    if not has_macro_places(design):
        raise DesignError(f"{design.name}: has no supplied placement of its macros")
    return Found(design, design.initial)


def _one_shot(*, annealed: bool) -> Callable[[Request, Path], Found]:
    """Returns a placer that takes the cheapest of the policy's greedy placement and 16 samples, or runs `sample`.

    `sample` anneals the soft macros of the cheapest ones, and flips macros.
    """

    def run(request: Request, folder: Path) -> Found:
        from placement.evaluation.policies import cheapest, policy_from_settings, policy_results
        from placement.evaluation.settings import SampleConfig

        config = SampleConfig(design=request.design, checkpoint=request.checkpoint, seed=request.seed)
        policy, weights = policy_from_settings(config), CostConfig().weights()
        finishing: dict[str, Any] = {"annealed": config.annealed, "flips": config.flips} if annealed else {}
        results = policy_results(policy.evaluate(request.seed), policy.design, weights, **finishing)
        best = cheapest(results, policy.design)
        assert best.placement is not None and best.costs is not None
        return Found(policy.design, best.placement, ((time.process_time(), best.costs.total),))

    return run


def _trained(preset: str | None) -> Callable[[Request, Path], Found]:
    """Returns a placer that trains PPO on the one design and takes the best placement of its episodes."""

    def run(request: Request, folder: Path) -> Found:
        from placement.runtimes.public import train

        settings: dict[str, object] = {
            "runtime.minutes": request.left() / 60,
            "runtime.env_threads": 1,  # more would use up the CPU time before the schedule ends
            "ppo.iterations": 100_000,
        }
        if preset is not None:
            settings["initial_policy"] = request.checkpoint
        with _interrupted_after((1 - SAVING_SHARE) * request.seconds):
            trained = train(
                request.design, run_dir=folder / "run", seed=request.seed, preset=preset, settings=settings, quiet=True
            )
        design = ready(load(request.design))
        placements = trained.placements()
        if not placements:
            raise DesignError(f"{design.name}: no episode placed every macro in {request.seconds:g} s")
        return Found(design, next(iter(placements.values())))

    return run


@contextlib.contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Interrupts this process, as Ctrl-C does, after so many CPU seconds, so that a training ends cleanly."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(WATCH_SECONDS):
            if time.process_time() > seconds:
                os.kill(os.getpid(), signal.SIGINT)
                return

    watcher = threading.Thread(target=watch, name="CPU time")
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join(timeout=60)


BUILT_IN: dict[str, Callable[[Request, Path], Found]] = {  # placers by name
    "supplied": _supplied,
    "random": _repeated("random"),
    "greedy": _repeated("greedy"),
    "search": _search,
    "search_proxy": functools.partial(_search, cost="proxy"),
    "mixed_size": _mixed_size,
    "zero_shot": _one_shot(annealed=False),
    "sample": _one_shot(annealed=True),
    "fine_tuned": _trained("base"),
    "ppo": _trained(None),
}
