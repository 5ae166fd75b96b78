"""How many caches and shards a run needs, from a simulation of it.

    python -m placement.distributed.plan actors=2048 model_mb=16 [key=value …]

Settings (defaults): actors (64), model_mb (16), episode_mb (0.0022: actions of Ariane; observations would be
megabytes), episodes (16, of an actor's round), round_seconds (60, to play it), learn_seconds (as round_seconds, for an
iteration of all actors' rounds), max_staleness (1), fan_out (8), megabits (10000, of each host's link), slack (0.02).
With caches= and shards= those are simulated instead of being looked for.

It takes the fewest caches, then the fewest shards, with which an iteration takes at most `slack` longer than with more
of them than could ever help, and shows what that does beside no caches and one shard.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from placement.command_line import refuse
from placement.config import ConfigError, build
from placement.distributed.fleet import Fleet, Outcome, simulate
from placement.distributed.simulation import Costs

MEASURED = Costs(
    read_goodput=0.96,
    write_seconds=0.00163,
    write_seconds_per_mb=0.00565,
    write_goodput=0.973,
    write_parts=3,
    write_crowding=0.0013,
    ingest_seconds=0.0004,
)
"""What transfers take beside their share of a link; docs/scaling.md says how it was measured."""
ITERATIONS = 3
_WHOLE = ("actors", "episodes", "max_staleness", "fan_out", "caches", "shards")


@dataclasses.dataclass(frozen=True)
class PlanConfig:
    """The command's settings; see the module. None = to be found, or as another setting."""

    actors: int = 64
    model_mb: float = 16.0
    episode_mb: float = 0.0022
    episodes: int = 16
    round_seconds: float = 60.0
    learn_seconds: float | None = None
    max_staleness: int = 1
    caches: int | None = None
    shards: int | None = None
    fan_out: int = 8
    megabits: float = 10_000.0
    slack: float = 0.02

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            least = {"max_staleness": 0, "caches": 0, "fan_out": 2, "actors": 1, "episodes": 1, "shards": 1}
            if value is None:
                continue
            if field.name in least and value < least[field.name]:
                raise ConfigError(f"{field.name}={value}: must be at least {least[field.name]}")
            if field.name not in least and value <= 0:
                raise ConfigError(f"{field.name}={value}: must be above 0")

    def fleet(self, *, caches: int, shards: int) -> Fleet:
        """The run with so many caches and shards."""
        return Fleet(
            actors=self.actors,
            model_mb=self.model_mb,
            episode_mb=self.episode_mb,
            episodes=self.episodes,
            round_seconds=self.round_seconds,
            learn_seconds=self.round_seconds if self.learn_seconds is None else self.learn_seconds,
            max_staleness=self.max_staleness,
            caches=caches,
            fan_out=self.fan_out,
            shards=shards,
            megabits=self.megabits,
        )


def recommend(config: PlanConfig, *, costs: Costs = MEASURED) -> tuple[Fleet, Outcome]:
    """The smallest fleet of `config` that does as well as the largest, and what it does."""

    def outcome(caches: int, shards: int) -> Outcome:
        return simulate(config.fleet(caches=caches, shards=shards), costs, iterations=ITERATIONS)

    most_caches = config.actors if config.caches is None else config.caches
    most_shards = config.actors if config.shards is None else config.shards
    plenty = (_ample(most_caches, config.caches), _ample(most_shards, config.shards))
    bar = outcome(*plenty).iteration * (1 + config.slack)
    caches = _fewest(0, plenty[0], lambda caches: outcome(caches, plenty[1]).iteration <= bar, config.caches)
    shards = _fewest(1, plenty[1], lambda shards: outcome(caches, shards).iteration <= bar, config.shards)
    return config.fleet(caches=caches, shards=shards), outcome(caches, shards)


def _ample(most: int, given: int | None) -> int:
    """More than could help: one for every four actors."""
    return given if given is not None else max(most // 4, 1)


def _fewest(least: int, most: int, good: Callable[[int], bool], given: int | None) -> int:
    """The first of `least`, 1, 2, 4, … that is good; `most` if none below it is."""
    if given is not None:
        return given
    tried = least
    while tried < most and not good(tried):
        tried = max(2 * tried, 1)
    return min(tried, most)


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


def table(outcomes: dict[str, tuple[Fleet, Outcome]]) -> Table:
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


if __name__ == "__main__":
    main()
