"""Chip macro placement by reinforcement learning. See README.md and docs/architecture.md.

The public face: `load` a design, its `proxy_cost`, the cost while macros move (`IncrementalCost`), and environments
to place it in, one (`PlacementEnv`) or many (`make_pool`). What needs the native engine or Gymnasium is imported when
it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from placement.netlist.errors import DesignError
from placement.netlist.load import load

if TYPE_CHECKING:
    from placement.engine.costs import proxy_cost
    from placement.engine.incremental import IncrementalCost
    from placement.engine.pool import make_pool
    from placement.env.gym_env import PlacementEnv

__all__ = ["DesignError", "IncrementalCost", "PlacementEnv", "load", "make_pool", "proxy_cost"]
__version__ = "0.1.0"

_LATER = {
    "IncrementalCost": "placement.engine.incremental",
    "make_pool": "placement.engine.pool",
    "PlacementEnv": "placement.env.gym_env",
    "proxy_cost": "placement.engine.costs",
}


def __getattr__(name: str) -> Any:
    """Imports a public name from its module at first use (PEP 562)."""
    if name not in _LATER:
        raise AttributeError(f"module 'placement' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
