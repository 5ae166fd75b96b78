"""`macro-placement plan`: how many model caches and replay shards a run needs, from a simulation of it."""

from __future__ import annotations

from rich.console import Console

from placement.capacity.plan import ITERATIONS, MEASURED, PlanConfig, recommend, simulate
from placement.report.metrics import make_table

COLUMNS = ("", "caches", "shards", "model read", "p99", "episodes' write", "p99", "iteration", "learner idle")


def plan(config: PlanConfig, console: Console) -> None:
    """Prints the smallest fleet that is enough, beside one without caches and with one shard."""
    bare = config.fleet(caches=0, shards=1)
    fleet, found = recommend(config)
    console.print(
        f"{config.actors} actors, a model of {config.model_mb:g} MB, rounds of {config.episodes} episodes of "
        f"{config.episode_mb:g} MB in {config.round_seconds:g} s, links of {config.megabits:g} Mbit/s (simulated)"
    )
    outcomes = {"without": (bare, simulate(bare, MEASURED, iterations=ITERATIONS)), "with": (fleet, found)}
    rows = []
    for name, (shown, outcome) in outcomes.items():
        seconds = (f"{value:,.2f} s" for value in outcome[:5])
        rows.append([name, str(shown.caches), str(shown.shards), *seconds, f"{outcome.idle:.1%}"])
    console.print(make_table(COLUMNS, rows))
    console.print(
        f"runtime=ray runtime.actors={fleet.actors} runtime.caches={fleet.caches} runtime.fan_out={fleet.fan_out} "
        f"runtime.shards={fleet.shards}"
    )
