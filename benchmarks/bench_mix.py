"""Effect of the mix of moves of a search: annealing with several mixes, at equal CPU time.

    python benchmarks/bench_mix.py [DESIGN …] [--cost chip] [--seconds 2] [--seeds 3] [--arms default fixed]

DESIGN is of the suite `synthetic`, or a number of macros. Only the annealing is measured, from the cheapest start.
`default` is the adaptive mix; `half` is the same in half the time; `fixed` is not adapted; `per_second` sets shares by
a move's recent savings per CPU second, from 1/20 to 20 times the table's; `look_ahead` tries five mixes, four of them
random, in each of 15 steps, and only the cheapest continues and counts; `control` does so with the default mix five
times. Printed are costs relative to the first arm.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from placement.annealing.anneal_config import FINAL_TEMPERATURE, INITIAL_TEMPERATURE, MOVES, AnnealConfig
from placement.annealing.annealer import Annealer
from placement.annealing.search import FINAL_SHARE
from placement.annealing.starts import make_starts, with_spacing
from placement.benchmark.suites import generated, read_suite
from placement.config import CostConfig
from placement.engine.costs import compute_costs
from placement.netlist.generators.clustered import clustered

ADAPTED = 4096  # moves between two adaptations
STEPS, BRANCHES = 15, 5  # steps and branches of the look-ahead
SPREAD = {"look_ahead": 0.8, "control": 0.0}  # standard deviation of the logarithms of the random mixes
ARMS = ("default", "half", "fixed", "per_second", *SPREAD)
Mix = Callable[[Annealer], np.ndarray | None]  # shares of the next moves; None: those of the annealer
Case = tuple[Callable[[int], Annealer], Callable[[float], float], np.ndarray]  # temperature by progress; initial shares


def case(name: str, cost: str) -> Case:
    if n := int(name) if name.isdigit() else 0:
        design = clustered(seed=21000 + n, hard=n, soft=4 * n, ports=n + 40, rent_exponent=0.65)
    else:
        design = generated(next(one for one in read_suite("synthetic").designs if one.name == name))
    weights = CostConfig(name=cost).weights()
    starts = make_starts(design, with_spacing(design, AnnealConfig(), ()), 0, weights, electrostatic=1)
    costs = [compute_costs(design, one.placement, weights=weights).total for one in starts]
    start = starts[int(np.argmin(costs))].placement
    config = with_spacing(design, AnnealConfig(), [start])
    movable = len(design.placing_order) + int((~design.initial.fixed[design.netlist.soft]).sum())
    first, last = (share * min(costs) / movable for share in (INITIAL_TEMPERATURE[cost], FINAL_TEMPERATURE))
    temperature = lambda at: first * (last / first) ** at if at < 1 - FINAL_SHARE else 0.0  # noqa: E731
    make = lambda seed: Annealer(design, start, config=config, weights=weights, seed=seed)  # noqa: E731
    return make, temperature, make(0).state.values[1]


def anneal(one: Case, annealer: Annealer, seconds: float, mix: Mix, begin: float = 0.0, end: float = 1.0) -> None:
    begun = time.thread_time()
    while (done := (time.thread_time() - begun) / seconds) < 1:
        if (shares := mix(annealer)) is not None:
            state = annealer.state
            state.values[1], state.values[4] = shares, 0.0  # no adaptation while nothing was saved
            annealer.resume(state)
        annealer.run(ADAPTED, one[1](begin + (end - begin) * done))


def per_second(one: Case) -> Mix:
    seconds, trial, unit = np.ones(len(MOVES)), one[0](0), np.eye(len(MOVES))
    for move in np.flatnonzero(one[2]):
        begun = time.thread_time()  # the time of a proposal is measured first, halfway through the temperatures
        anneal(one, trial, 1e-3, lambda _, move=move: unit[move], 0.5, 0.5)
        seconds[move] = (time.thread_time() - begun) / trial.tallies[MOVES[move]].drawn
    recent, before = np.zeros((2, len(MOVES))), np.zeros((2, len(MOVES)))

    def mix(annealer: Annealer) -> np.ndarray:
        now = np.array([(tally.saved, tally.drawn) for tally in annealer.tallies.values()]).T
        recent[:], before[:] = 0.8 * recent + now - before, now
        saved, spent = recent[0] + 1e-30, recent[1] * seconds + 1e-30
        return one[2] * np.clip(saved / spent * spent.sum() / saved.sum(), 0.05, 20.0)

    return mix


def look_ahead(one: Case, annealer: Annealer, seconds: float, spread: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    for step in range(STEPS):
        begin, ends = (annealer.placement, annealer.state), []
        for branch in range(BRANCHES):
            annealer.restart(begin[0])
            annealer.resume(begin[1]._replace(random=int(generator.integers(2**62))))
            weights = one[2] * np.exp(spread * (branch > 0) * generator.standard_normal(len(MOVES)))
            annealer.set_mix(dict(zip(MOVES, weights.tolist(), strict=True)))
            anneal(one, annealer, seconds / STEPS, lambda _: None, step / STEPS, (step + 1) / STEPS)
            ends.append((annealer.costs.total, annealer.placement, annealer.state))
        _, *best = min(ends, key=lambda end: end[0])
        annealer.restart(best[0])
        annealer.resume(best[1])


def cost_of(arm: str, one: Case, seconds: float, seed: int) -> float:
    annealer = one[0](seed)
    if arm in SPREAD:
        look_ahead(one, annealer, seconds, SPREAD[arm], seed)
    else:
        mix: Mix = per_second(one) if arm == "per_second" else lambda _: one[2] if arm == "fixed" else None
        anneal(one, annealer, seconds / 2 if arm == "half" else seconds, mix)
    return annealer.best_cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    unseen = [*(one.name for one in read_suite("synthetic").chosen("validation")), "200", "500"]
    parser.add_argument("designs", nargs="*", default=unseen)
    parser.add_argument("--cost", choices=("chip", "proxy"), default="chip")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds of the annealing")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--arms", choices=ARMS, nargs="+", default=ARMS)
    options = parser.parse_args()
    arms, seconds, seeds = options.arms, options.seconds, range(options.seeds)
    cases = [case(name, options.cost) for name in options.designs]
    means = np.log([[[cost_of(arm, one, seconds, seed) for arm in arms] for seed in seeds] for one in cases]).mean(1)
    for arm, change in zip(arms, (means - means[:, :1]).T, strict=True):
        print(f"{arm}: {change.mean():+.2%} ± {change.std() / max(1, len(change) - 1) ** 0.5:.2%}")


if __name__ == "__main__":
    main()
