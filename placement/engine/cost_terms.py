"""User-defined cost terms, built as libraries separate from the engine, and user-defined rewards in Python.

`python -m placement.engine.cost_terms` prints the include folder of the header that cost terms need. See
docs/how-to/own-cost-term.md and docs/how-to/own-reward.md.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import NamedTuple, Protocol

from placement.config import ConfigError, import_object
from placement.engine.costs import Costs
from placement.netlist.design import Design, Placement

VERSION = 1  # version of the interface between library and engine, as defined in the header
_EXPORTED = "placement_cost_term_exported"


class CostTerm(NamedTuple):
    """A term of a loaded library: its name, the address of its `placement_cost_term`, and its weight in the reward.

    The library stays loaded until the process ends.
    """

    name: str
    address: int
    weight: float


class _Exported(ctypes.Structure):
    _fields_ = (("version", ctypes.c_int32), ("name", ctypes.c_char_p))


def include_folder() -> Path:
    """Returns the folder that contains `placement_cost_term.hpp`."""
    return Path(__file__).parent / "include"


def load_cost_term(given: str) -> CostTerm:
    """Loads the term given as ``path:weight``, the path of a library and the term's weight; raises ConfigError."""
    path, _, weight = given.rpartition(":")
    library = Path(path).resolve()
    try:
        function = getattr(ctypes.CDLL(str(library)), _EXPORTED)
    except OSError as error:
        raise ConfigError(f"env.cost_terms: {path!r}: must be a shared library: {error}") from None
    except AttributeError:
        raise ConfigError(f"env.cost_terms: {path!r}: has no cost term (PLACEMENT_COST_TERM in its source)") from None
    function.restype = ctypes.POINTER(_Exported)
    exported = function()
    version = exported.contents.version
    if version != VERSION:
        raise ConfigError(f"env.cost_terms: {path!r}: has version {version}; rebuild it for version {VERSION}")
    name = exported.contents.name.decode()
    return CostTerm(name, ctypes.cast(exported, ctypes.c_void_p).value or 0, float(weight))


class Reward(Protocol):
    """A user-defined reward in the style of Jumanji's `RewardFn`; the setting `env.reward` names it."""

    def __call__(self, costs: Costs, design: Design, placement: Placement) -> float:
        """Returns the reward of an episode that placed every macro; higher is better. Must be deterministic.

        Args:
            costs: exact costs of the placement.
            design: the design that was played.
            placement: positions of all nodes, soft macros included, in µm.
        """


def load_reward(name: str) -> Reward | None:
    """Returns the function that `env.reward` names, or None for `cost`. Raises ConfigError if none exists."""
    if name == "cost":
        return None
    reward = import_object(name, key="env.reward")
    if not callable(reward):
        raise ConfigError(f"env.reward={name!r}: must be a function (costs, design, placement) -> float")
    return reward


if __name__ == "__main__":
    print(include_folder())
