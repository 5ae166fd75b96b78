"""`macro-placement plan`: how many caches and shards a run needs, from a simulation of it.

    macro-placement plan actors=2048 model_mb=16 [key=value …]

Settings (defaults): actors (64), model_mb (16), episode_mb (0.0022: actions of Ariane; observations would be
megabytes), episodes (16, of an actor's round), round_seconds (60, to play it), learn_seconds (as round_seconds, for an
iteration of all actors' rounds), max_staleness (1), fan_out (8), megabits (10000, of each host's link), slack (0.02).
With caches= and shards= those are simulated instead of being looked for.

It takes the fewest caches, then the fewest shards, with which an iteration takes at most `slack` longer than with more
of them than could ever help, and shows what that does beside no caches and one shard.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from placement.capacity.fleet import Fleet, FleetOutcome, simulate
from placement.capacity.plan import ITERATIONS, MEASURED, PlanConfig, recommend
from placement.cli.entry import refuse
from placement.config import ConfigError, build

_WHOLE = ("actors", "episodes", "max_staleness", "fan_out", "caches", "shards")


def read_settings(arguments: Sequence[str]) -> PlanConfig:
    """The settings from `key=value` arguments; raises ConfigError naming what is wrong."""
    values: dict[str, Any] = {}
    for argument in arguments:
        key, equals, text = argument.partition("=")
        if not equals:
            raise ConfigError(f"{argument!r}: must be key=value, such as actors=2048")
        try:
            values[key] = int(text) if key in _WHOLE else float(text)
        except ValueError:
            raise ConfigError(f"{argument}: must be {'a whole number' if key in _WHOLE else 'a number'}") from None
    return build(PlanConfig, values)


def table(outcomes: dict[str, tuple[Fleet, FleetOutcome]]) -> Table:
    """A line for each fleet."""
    result = Table(title_justify="left")
    for name in ("", "caches", "shards", "model read", "p99", "episodes' write", "p99", "iteration", "learner idle"):
        result.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name, (fleet, found) in outcomes.items():
        seconds = (f"{value:,.2f} s" for value in found[:5])
        result.add_row(name, str(fleet.caches), str(fleet.shards), *seconds, f"{found.idle:.1%}")
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if any(argument in ("-h", "--help") for argument in arguments):
        print(__doc__)
        return
    try:
        config = read_settings(arguments)
    except ConfigError as error:
        refuse(str(error))
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 120)
    bare = config.fleet(caches=0, shards=1)
    fleet, found = recommend(config)
    console.print(
        f"{config.actors} actors, a model of {config.model_mb:g} MB, rounds of {config.episodes} episodes of "
        f"{config.episode_mb:g} MB in {config.round_seconds:g} s, links of {config.megabits:g} Mbit/s (simulated)"
    )
    outcomes = {"without": (bare, simulate(bare, MEASURED, iterations=ITERATIONS)), "with": (fleet, found)}
    console.print(table(outcomes))
    console.print(
        f"runtime=ray runtime.actors={fleet.actors} runtime.caches={fleet.caches} runtime.fan_out={fleet.fan_out} "
        f"runtime.shards={fleet.shards}"
    )
