"""Settings of `benchmark`."""

from __future__ import annotations

import dataclasses
from typing import Literal

from placement.config import ConfigError, Count, Seconds, Seed, Settings, Text

DEFAULT_PLACERS = ("random", "greedy", "search")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BenchmarkConfig(Settings):
    """Settings of `benchmark`.

    Attributes:
        suite: smoke, synthetic, public, or the path of a suite's .json file
        design: one design instead of a suite, a name or a folder
        split: train, validation or test
        designs: only these designs of the suite; empty: all of the split
        placers: names, or package.module:callable; NAME@SECONDS sets the CPU seconds of one; null: random, greedy and
            search, or none with placements
        placements: .plc or .def files of the design, or NAME=FILE, scored with the placers
        commands: additional placers as NAME=COMMAND with {design}, {def}, {out}, {seed} and {seconds}
        time: CPU seconds of a run, counted from the start of its process; null: the suite's
        seeds: number of runs of each placer on each design, with consecutive seeds
        seed: the first seed
        checkpoint: run folder of the policy, or base
        lef: LEF files for the placers openroad and dreamplace
        full: full evaluation of designs with cells
        parallel: number of concurrent runs
        address: run on Ray: HOST:PORT of a cluster, or local; null: without Ray
        out: folder of the results; null: runs/benchmark/<suite>-<version>, or <design>
        plots: draw the profiles and the time to quality, or the best placements of a single design
    """

    suite: str = "smoke"
    design: str | None = None
    split: Literal["train", "validation", "test"] = "test"
    designs: tuple[str, ...] = ()
    placers: tuple[str, ...] | None = None
    placements: tuple[Text, ...] = ()
    commands: tuple[Text, ...] = ()
    time: Seconds | None = None
    seeds: Count = 3
    seed: Seed = 0
    checkpoint: str = "base"
    lef: tuple[str, ...] = ()
    full: bool = False
    parallel: Count = 1
    address: str | None = None
    out: str | None = None
    plots: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.placements and self.design is None:
            raise ConfigError("placements: need the design that they belong to; give design=")

    @property
    def chosen(self) -> tuple[str, ...]:
        """Returns the placers to run; by default the usual ones, or none if placements are given."""
        if self.placers is not None:
            return self.placers
        return () if self.placements else DEFAULT_PLACERS
