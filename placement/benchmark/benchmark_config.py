"""The settings of `benchmark`, `benchmark rescore` and `benchmark page`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

from placement.config import Count, Seconds, Seed, Settings, Text

DEFAULT_PLACERS = ("random", "greedy", "search")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BenchmarkConfig(Settings):
    """Settings of `benchmark`.

    Attributes:
        suite: smoke, synthetic or public, or the path of a suite's .json file
        split: train, validation or test
        designs: only these of the suite; empty: all of the split
        placers: names, or package.module:callable; NAME@SECONDS gives one its own CPU seconds
        commands: further placers as NAME=COMMAND with {design}, {def}, {out}, {seed} and {seconds}
        time: CPU seconds of a run, counted from the start of its process; null: the suite's
        seeds: runs of each placer on each design, counted from seed
        seed: the first seed
        checkpoint: run folder of the policy, or base
        lef: LEF files for the placers openroad and dreamplace
        full: full evaluation of designs with cells
        parallel: runs at the same time
        out: folder of the results; null: runs/benchmark/<suite>-<version>
        plots: draw the profiles and the time to quality
    """

    suite: str = "smoke"
    split: Literal["train", "validation", "test"] = "test"
    designs: tuple[str, ...] = ()
    placers: tuple[str, ...] = DEFAULT_PLACERS
    commands: tuple[Text, ...] = ()
    time: Seconds | None = None
    seeds: Count = 3
    seed: Seed = 0
    checkpoint: str = "base"
    lef: tuple[str, ...] = ()
    full: bool = False
    parallel: Count = 1
    out: str | None = None
    plots: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class RescoreConfig(Settings):
    """Settings of `benchmark rescore`.

    Attributes:
        results: folder of the results, with the placements beside them
    """

    results: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class PageConfig(Settings):
    """Settings of `benchmark page`.

    Attributes:
        results: folder of the results
        out: the Markdown page
    """

    results: str = str(Path("benchmarks") / "results")
    out: str = str(Path("docs") / "benchmark.md")
