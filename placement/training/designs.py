"""The designs that a run trains on. Imports nothing heavy: every process of a run uses this."""

from __future__ import annotations

from collections.abc import Sequence

from placement.config import ConfigError, TrainConfig
from placement.netlist.design import Design
from placement.netlist.feasibility import ready
from placement.netlist.flat_design import require_flat
from placement.netlist.load import find, load
from placement.policy.order import as_played


def load_designs(config: TrainConfig) -> list[Design]:
    """The run's designs with their placing order and grid of actions, their macros turned as they may be.

    Raises:
        DesignError: one cannot be read, its constraints cannot be met, or it has no flat netlist and needs one.
        ConfigError: two have one name.
    """
    designs = [as_played(ready(load(name)), config.env) for name in config.design]
    if config.expert.mixed_size:
        for name in config.design:
            require_flat(find(name).parent)
    if len({design.name for design in designs}) < len(designs):
        raise ConfigError(f"design={list(config.design)}: every design must have another name")
    return designs


def steps(designs: Sequence[Design]) -> int:
    """Actions of the longest design's episode."""
    return max(len(design.placing_order) for design in designs)
