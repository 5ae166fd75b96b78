"""Built-in placers by name, and placers given as `package.module:callable`; each runs in its own process."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from placement.benchmark.anytime_placers import ANYTIME_PLACERS, Found, Task
from placement.benchmark.run_request import Request
from placement.config import ConfigError, CostConfig
from placement.evaluation.placements import has_macro_places
from placement.evaluation.settings import AnnealSettings
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.netlist.load import load

SAVING_SHARE = 0.15  # share of a training's time that is reserved for its end
WATCH_SECONDS = 0.1


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


def _anytime(name: str, *, cost: str = "chip") -> Callable[[Request, Path], Found]:
    """Returns a placer that works until the time ends."""

    def run(request: Request, folder: Path) -> Found:
        design = ready(load(request.design))
        before = time.process_time()
        config = AnnealSettings(
            design=request.design,
            checkpoint=request.checkpoint if name.startswith("policy") else None,
            time=request.left(),
            cost=CostConfig(name=cost),
        )
        found = ANYTIME_PLACERS[name](Task(design, config, request.seed))
        # Chip cost over CPU seconds since the start of the process.
        curve = tuple((before + seconds, value) for seconds, value in found.curve) if cost == "chip" else ()
        return found._replace(curve=curve)

    return run


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
    "random": _anytime("random"),
    "greedy": _anytime("greedy"),
    "search": _anytime("search"),
    "search_proxy": _anytime("search", cost="proxy"),
    "mixed_size": _anytime("mixed_size"),
    "zero_shot": _one_shot(annealed=False),
    "sample": _one_shot(annealed=True),
    "policy": _anytime("policy"),
    "policy+refine": _anytime("policy+refine"),
    "fine_tuned": _trained("base"),
    "ppo": _trained(None),
}
