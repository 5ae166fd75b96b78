"""The designs that a run trains on. Imports nothing heavy: every process of a run uses this."""

from __future__ import annotations

from collections.abc import Sequence

from placement.config import ConfigError, TrainConfig
from placement.netlist.design import Design
from placement.netlist.load import load
from placement.policy.order import ordered


def load_designs(config: TrainConfig) -> list[Design]:
    """The run's designs with their placing order; raises DesignError, or ConfigError where two have one name."""
    designs = [ordered(load(name), config.env.order) for name in config.design]
    if len({design.name for design in designs}) < len(designs):
        raise ConfigError(f"design={list(config.design)}: every design must have another name")
    return designs


def steps(designs: Sequence[Design]) -> int:
    """Actions of the longest design's episode."""
    return max(len(design.placing_order) for design in designs)
