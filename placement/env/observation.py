"""The Gymnasium spaces of one environment's observations and actions.

Axis legend: K maps, R grid rows, C grid columns, T macros to place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from placement.engine.pool import EnvironmentPool


def observation_space(pool: EnvironmentPool) -> spaces.Dict:
    """What `PlacementEnv` shows of the one design of its pool.

    - ``step``: Discrete(T + 1), macros placed so far; the current macro is ``design.placing_order[step]``.
    - ``mask``: uint8 [R, C], 1 where the current macro may be centred; all 0 when the episode has ended.
    - ``maps``: float32 [K, R, C], see `placement.engine.observation.MAPS`: occupancy in [0, 1], density from 0 to the
      number of nodes, wire mask in [0, 1].
    - ``x``, ``y``: float32 [T] in [0, 1], centres of the macros in placing order in fractions of the canvas; 0 while
      unplaced.
    """
    shown = {name: pool.observation_space[name] for name in ("mask", "maps", "x", "y")}
    return spaces.Dict({"step": spaces.Discrete(pool.spec.steps + 1), **shown})


def observation_of(observation: dict[str, np.ndarray], index: int) -> dict[str, Any]:
    """A copy of one environment's part of a batch, as an element of `observation_space`."""
    shown = {name: observation[name][index].copy() for name in ("mask", "maps", "x", "y")}
    return {"step": np.int64(observation["step"][index]), **shown}


class GridCells(spaces.Discrete):
    """The gcells as actions, row · C + column. Sampling without a mask of one's own draws a legal gcell.

    The sample right after `seed` can be an episode's first action: callers that seed, sample, reset and then step, as
    Gymnasium's checker does, take a legal one.
    """

    def __init__(self, mask: np.ndarray) -> None:
        """Takes the legal mask, uint8 [R, C], as an episode begins; the array is looked at again at every sample."""
        self._legal = mask
        self._legal_first = mask.copy()
        self._seeded = False
        super().__init__(int(mask.size))

    def seed(self, seed: int | None = None) -> Any:
        """Seeds the samples."""
        self._seeded = True
        return super().seed(seed)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """One action: among those that `mask` (int8 [R·C]) or `probability` allows, else among the legal ones."""
        seeded, self._seeded = self._seeded, False
        if mask is not None or probability is not None:
            return super().sample(mask=mask, probability=probability)
        choices = [self._legal & self._legal_first, self._legal_first] if seeded else [self._legal]
        legal = next((choice for choice in choices if choice.any()), self._legal_first)
        return super().sample(mask=legal.reshape(-1).astype(np.int8))
