"""Chip macro placement by reinforcement learning. See README.md and docs/.

The public face: `load` or `import_design`, `cost`, `search`, `train`, `load_policy`, `evaluate`, `export`; the cost
while macros move (`IncrementalCost`), environments (`PlacementEnv`, `PlacementVectorEnv`, `DmEnvPool`, `make_pool`),
`legalise`, and reading and writing placements. What needs the native engine is imported when it is first used.
Gymnasium knows the environment as `MacroPlacement-v0` once this package is imported;
`gymnasium.make("placement:MacroPlacement-v0", …)` imports it.
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
    from placement.annealing.anneal_config import AnnealConfig
    from placement.annealing.legaliser import legalise
    from placement.annealing.search import search
    from placement.api import Policy, evaluate, export, import_design, load_policy
    from placement.engine.costs import Costs, IncrementalCost, cost
    from placement.engine.pool import make_pool
    from placement.engine.tidiness import Tidiness, tidiness
    from placement.env.dm_env import DmEnvPool
    from placement.env.gym_env import PlacementEnv
    from placement.env.vector_env import PlacementVectorEnv
    from placement.netlist.generators.synthetic import SyntheticDesigns
    from placement.netlist.graph import to_networkx
    from placement.netlist.importing import ImportSettings
    from placement.runtimes.public import train

__all__ = [
    "AnnealConfig",
    "Canvas",
    "CostConfig",
    "CostWeights",
    "Costs",
    "Design",
    "DesignError",
    "DmEnvPool",
    "EnvConfig",
    "ImportSettings",
    "IncrementalCost",
    "Netlist",
    "Placement",
    "PlacementEnv",
    "PlacementVectorEnv",
    "Policy",
    "SyntheticDesigns",
    "Tidiness",
    "cost",
    "evaluate",
    "export",
    "import_design",
    "legalise",
    "load",
    "load_policy",
    "make_pool",
    "read_placement",
    "search",
    "tidiness",
    "to_networkx",
    "train",
    "write_placement",
]
__version__ = "0.4.0"

_LATER = {
    "AnnealConfig": "placement.annealing.anneal_config",
    "Costs": "placement.engine.costs",
    "DmEnvPool": "placement.env.dm_env",
    "ImportSettings": "placement.netlist.importing",
    "IncrementalCost": "placement.engine.costs",
    "PlacementEnv": "placement.env.gym_env",
    "PlacementVectorEnv": "placement.env.vector_env",
    "Policy": "placement.api",
    "SyntheticDesigns": "placement.netlist.generators.synthetic",
    "Tidiness": "placement.engine.tidiness",
    "cost": "placement.engine.costs",
    "evaluate": "placement.api",
    "export": "placement.api",
    "import_design": "placement.api",
    "legalise": "placement.annealing.legaliser",
    "load_policy": "placement.api",
    "make_pool": "placement.engine.pool",
    "search": "placement.annealing.search",
    "tidiness": "placement.engine.tidiness",
    "to_networkx": "placement.netlist.graph",
    "train": "placement.runtimes.public",
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
