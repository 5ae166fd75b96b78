"""The engine's pool under Stable-Baselines3: `PoolVecEnv`. Needs the extra `sb3`.

Axis legend: B environments, R grid rows, C grid columns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from placement.engine.costs import Costs
from placement.engine.pool import EnvironmentPool

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError("the pool under Stable-Baselines3 needs the extra sb3 (pip install '.[sb3]')") from error


class PoolVecEnv(VecEnv):
    """A pool as a vectorised environment for Stable-Baselines3 learners, including `MaskablePPO` of sb3-contrib.

    Observations are the pool's dicts, without `design` if designs are drawn; actions are cells, row · C + column.
    Stable-Baselines3 resets an ended environment in the same step: the first observation of the next episode is
    returned with the reward of the last action, and the last observation of the ended episode is in
    ``info["terminal_observation"]``. ``info["episode"]`` holds its reward ``r``, its length ``l`` and the seconds ``t``
    since this object was created, which the learners average. ``info["costs"]`` holds the components of the cost by
    name if all macros were placed.

    Example:
        >>> envs = PoolVecEnv(placement.make_pool("toy6", num_envs=4))
        >>> envs.reset()["step"].tolist()
        [0, 0, 0, 0]
        >>> envs.close()
    """

    def __init__(self, pool: EnvironmentPool) -> None:
        """Takes ownership of the pool; `close` closes it.

        Raises:
            ValueError: the pool's batches do not hold all its environments.
        """
        if not pool.synchronous:
            raise ValueError(f"batch_size={pool.batch_size}: must be {pool.num_envs}, all environments of the pool")
        self.pool, self.render_mode = pool, None
        self._began, self._rewards = time.monotonic(), np.zeros(pool.num_envs)
        self._masks = np.zeros((pool.num_envs, pool.spec.num_actions), bool)
        # Policies of Stable-Baselines3 have one input per design; a distribution has no fixed number of designs.
        self._names = [name for name in pool.spec.observation if name != "design" or not pool.draws_designs]
        shown = spaces.Dict({name: pool.observation_space[name] for name in self._names})
        super().__init__(pool.num_envs, shown, pool.action_space)

    def reset(self) -> dict[str, np.ndarray]:
        """Begins an episode in every environment."""
        observation = self._copied(self.pool.reset()[0])
        self._rewards[:] = 0
        self._note_masks(observation)
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        """Takes one action (integers [B]) in each environment; raises the errors of `EnvironmentPool.send`."""
        self.pool.send(actions)

    def step_wait(self) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Returns observation, reward (float32 [B]), ended (bool [B]) and one info per environment."""
        found, reward, terminated, _, brought = self.pool.recv()
        observation, rewards, ended = self._copied(found), reward.copy(), terminated.copy()
        self._rewards += rewards
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        which = np.flatnonzero(ended)
        for index in which:
            infos[index] = self._last_info(index, observation, brought)
        if len(which):
            begun = self.pool.reset(which)[0]
            for name in self._names:
                observation[name][which] = begun[name]
            self._rewards[which] = 0
        self._note_masks(observation)
        return observation, rewards, ended, infos

    def action_masks(self) -> np.ndarray:
        """Returns the legal actions, bool [B, R·C]; sb3-contrib looks for this name."""
        return self._masks

    def close(self) -> None:
        """Ends the pool's threads."""
        self.pool.close()

    def has_attr(self, attr_name: str) -> bool:
        """Returns whether `get_attr` or `env_method` knows the name."""
        return hasattr(self, attr_name)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Returns the pool's attribute, once per environment; raises AttributeError if there is none."""
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raises AttributeError: the environments of a pool have no attributes of their own."""
        raise AttributeError(f"{attr_name}: the environments of a pool have no attributes")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Returns `action_masks` of each environment; raises AttributeError for any other name."""
        if method_name != "action_masks":
            raise AttributeError(f"{method_name}: the environments of a pool have only the method action_masks")
        return [self._masks[index] for index in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> Sequence[bool]:
        """Returns False for each environment, except for `Monitor`, whose ``info["episode"]`` is provided."""
        from stable_baselines3.common.monitor import Monitor

        return [issubclass(Monitor, wrapper_class)] * len(list(self._get_indices(indices)))

    def _last_info(self, index: int, observation: dict[str, np.ndarray], info: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the info of the step that ended the episode of environment `index`."""
        taken = time.monotonic() - self._began
        episode = {"r": float(self._rewards[index]), "l": int(info["elapsed_step"][index]), "t": taken}
        last = {name: values[index].copy() for name, values in observation.items()}
        info_of_end: dict[str, Any] = {"episode": episode, "terminal_observation": last, "TimeLimit.truncated": False}
        if not info["dead_end"][index]:
            info_of_end["costs"] = dict(zip(Costs._fields, info["costs"][index].tolist(), strict=True))
        return info_of_end

    def _note_masks(self, observation: dict[str, np.ndarray]) -> None:
        self._masks = observation["mask"].reshape(self.num_envs, -1).astype(bool)

    def _copied(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: arrays[name].copy() for name in self._names}
