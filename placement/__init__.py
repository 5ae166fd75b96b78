"""Chip macro placement by reinforcement learning. See README.md and docs/.

The public face: `load` a design, its `cost`, the cost while macros move (`IncrementalCost`), environments to
place it in (`PlacementEnv`, `PlacementVectorEnv`, `DmEnvPool`, `make_pool`), `search`, `legalise`, and reading and
writing placements. What needs the native engine is imported when it is first used. Gymnasium knows the environment as
`MacroPlacement-v0` once this package is imported; `gymnasium.make("placement:MacroPlacement-v0", …)` imports it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium

from placement.config import CostConfig, CostWeights, EnvConfig
from placement.netlist.design import Canvas, Design, Netlist, Placement
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import load

if TYPE_CHECKING:
    from placement.annealing.legaliser import legalise
    from placement.annealing.search import search
    from placement.engine.costs import Costs, IncrementalCost, cost
    from placement.engine.pool import make_pool
    from placement.env.dm_env import DmEnvPool
    from placement.env.gym_env import PlacementEnv
    from placement.env.vector_env import PlacementVectorEnv

# fmt: off
__all__ = [
    "Canvas",
    "CostConfig",
    "CostWeights",
    "Costs",
    "Design",
    "DesignError",
    "DmEnvPool",
    "EnvConfig",
    "IncrementalCost",
    "Netlist",
    "Placement",
    "PlacementEnv",
    "PlacementVectorEnv",
    "cost",
    "legalise",
    "load",
    "make_pool",
    "read_placement",
    "search",
    "write_placement",
]
# fmt: on
__version__ = "0.1.0"

_LATER = {
    "Costs": "placement.engine.costs",
    "DmEnvPool": "placement.env.dm_env",
    "IncrementalCost": "placement.engine.costs",
    "PlacementEnv": "placement.env.gym_env",
    "PlacementVectorEnv": "placement.env.vector_env",
    "legalise": "placement.annealing.legaliser",
    "make_pool": "placement.engine.pool",
    "search": "placement.annealing.search",
    "cost": "placement.engine.costs",
}

gymnasium.register(
    "MacroPlacement-v0",
    entry_point="placement.env.gym_env:PlacementEnv",
    vector_entry_point="placement.env.vector_env:PlacementVectorEnv",
)


def __getattr__(name: str) -> Any:
    """Imports a public name from its module at first use (PEP 562)."""
    if name not in _LATER:
        raise AttributeError(f"module 'placement' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
