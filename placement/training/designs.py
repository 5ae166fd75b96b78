"""The designs that a run trains on. Imports nothing heavy: every process of a run uses this."""

from __future__ import annotations

from collections.abc import Sequence

from placement.config import ConfigError, TrainConfig
from placement.netlist.design import Design
from placement.netlist.feasibility import ready
from placement.netlist.load import load


def load_designs(config: TrainConfig) -> list[Design]:
    """The run's designs with their grid of actions, their macros turned as they may be.

    Raises:
        DesignError: one cannot be read, or its constraints cannot be met.
        ConfigError: two have one name.
    """
    env = config.env
    designs = [ready(load(name)).with_actions(env.action_scale, off_grid=env.off_grid) for name in config.design]
    if len({design.name for design in designs}) < len(designs):
        raise ConfigError(f"design={list(config.design)}: every design must have another name")
    return designs


def steps(designs: Sequence[Design]) -> int:
    """Actions of the longest design's episode."""
    return max(len(design.placing_order) for design in designs)
