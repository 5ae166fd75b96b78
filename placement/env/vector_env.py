"""The engine's pool as a Gymnasium vector environment: `gymnasium.make_vec("MacroPlacement-v0", …)`.

Axis legend: B environments, K maps, R grid rows, C grid columns, T macros to place (each of the largest design).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from placement.config import EnvConfig
from placement.engine.costs import Costs
from placement.engine.pool import EnvironmentPool, make_pool, with_short_bounds
from placement.netlist.design import Design
from placement.netlist.distribution import DesignDistribution


class LegalCells(spaces.MultiDiscrete):
    """The actions of all environments, int64 [B]. Sampling without an explicit mask draws legal gcells."""

    def __init__(self, pool: EnvironmentPool) -> None:
        """Takes the pool, whose state is read whenever actions are sampled."""
        self._pool = pool
        super().__init__([pool.spec.num_actions] * pool.num_envs)

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Samples one action per environment; 0, which is ignored, if its episode has ended."""
        if mask is None and probability is None:
            legal = self._pool.observe()[0]["mask"].reshape(self._pool.num_envs, -1)
            scores = self.np_random.random(legal.shape) * legal
            return scores.argmax(axis=1).astype(self.dtype)
        return super().sample(mask=mask, probability=probability)

    def __deepcopy__(self, memo: dict[int, Any]) -> spaces.MultiDiscrete:
        return spaces.MultiDiscrete(self.nvec.copy(), dtype=self.dtype.type)

    def __reduce__(self) -> tuple[Any, ...]:
        return spaces.MultiDiscrete, (self.nvec.copy(),)


class PlacementVectorEnv(VectorEnv[dict[str, np.ndarray], np.ndarray, np.ndarray]):
    """Environments of one or more designs, stepped together by the engine's threads.

    Actions are ints [B], row · C + column of the padded grid. Environments are reset automatically in the next step. In
    addition to the pool's entries, `info` holds ``costs`` by name with Gymnasium's mask ``_costs``, and ``action_mask``
    int8 [B, R·C]. Results are copies owned by the caller.

    Example:
        >>> envs = gymnasium.make_vec("MacroPlacement-v0", num_envs=4, design="toy6")
        >>> observation, info = envs.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
        >>> envs.close()
    """

    def __init__(
        self,
        design: Design | str | Sequence[Design | str] | DesignDistribution,
        num_envs: int = 1,
        *,
        config: EnvConfig | None = None,
        num_threads: int = 0,
        seed: int = 0,
    ) -> None:
        """Creates the pool; arguments and errors are those of `placement.make_pool`."""
        self.pool = make_pool(design, num_envs, config=config, num_threads=num_threads, seed=seed)
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}
        self.single_observation_space = self.pool.observation_space
        self.single_action_space = self.pool.action_space
        self.observation_space = spaces.Dict(
            {name: batch_space(space, num_envs) for name, space in self.single_observation_space.items()}
        )
        for space in self.observation_space.values():
            if isinstance(space, spaces.Box):
                with_short_bounds(space)
        self.action_space = LegalCells(self.pool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in every environment, or in those of `options["reset_mask"]` (bool [B]).

        Args:
            seed: an int, or one per environment; only `pool.sample_actions` uses it.
            options: only ``reset_mask`` is used.

        Raises:
            ValueError: `reset_mask` is not a bool [B] with at least one True.
        """
        super().reset(seed=seed if isinstance(seed, int) else None)
        mask = (options or {}).get("reset_mask")
        if mask is None:
            observation, info = self.pool.reset(seed=seed)
            return _copied(observation), self._info(observation, info)
        if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ValueError(f"reset_mask: must be a bool array of shape [{self.num_envs}]")
        if not mask.any():
            raise ValueError("reset_mask: selects no environment")
        self.pool.reset(np.flatnonzero(mask).astype(np.int32))
        observation, _, _, _, info = self.pool.observe()
        return _copied(observation), self._info(observation, info)

    def step(self, actions: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Takes one action in each environment.

        Raises:
            IllegalAction: (a ValueError) an action is out of range or not legal; nothing has changed.
            ValueError, TypeError: another shape, or not integers.
        """
        observation, reward, terminated, truncated, info = self.pool.step(actions)
        result = _copied(observation), reward.copy(), terminated.copy(), truncated.copy()
        return *result, self._info(observation, info)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads."""
        self.pool.close()

    def _info(self, observation: dict[str, np.ndarray], info: dict[str, np.ndarray]) -> dict[str, Any]:
        copied: dict[str, Any] = _copied(info)
        costs = copied.pop("costs")
        placed = ~np.isnan(costs[:, 0])
        if placed.any():
            copied["costs"] = {name: np.where(placed, costs[:, i], 0.0) for i, name in enumerate(Costs._fields)}
            copied["costs"] |= {f"_{name}": placed.copy() for name in Costs._fields}
            copied["_costs"] = placed
        copied["action_mask"] = observation["mask"].reshape(self.num_envs, -1).astype(np.int8)
        return copied


def _copied(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in arrays.items()}
