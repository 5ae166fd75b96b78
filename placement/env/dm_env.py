"""The engine's pool as a dm_env environment: `DmEnvPool`. Needs the package `dm-env`.

Axis legend: B environments, K maps, R grid rows, C grid columns, T macros to place (each of the largest design).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placement.engine.observation import Result
from placement.engine.pool import EnvironmentPool

try:
    import dm_env
    from dm_env import specs
except ImportError as error:
    raise ImportError("the pool's dm_env interface needs the package dm-env (pip install dm-env)") from error


class DmEnvPool(dm_env.Environment):
    """A pool whose timesteps are batches: step types int32 [B], rewards and discounts float32 [B].

    The step that ends an episode has type LAST and discount 0. The next action for that environment is ignored and
    returns a FIRST step, whose reward and discount (0 and 1) are meaningless. Observations are the pool's and include
    the environments' numbers, costs and true sizes (``env_id``, ``costs``, ``rows``, ``columns``, ``macros``,
    ``dead_end``).

    Example:
        >>> env = placement.DmEnvPool(placement.make_pool("toy6", num_envs=4))
        >>> timestep = env.step(env.reset().observation["mask"].reshape(4, -1).argmax(axis=1))
        >>> timestep.reward.tolist()
        [0.0, 0.0, 0.0, 0.0]
        >>> env.close()
    """

    def __init__(self, pool: EnvironmentPool) -> None:
        """Takes ownership of the pool; `close` closes it."""
        self.pool = pool

    def reset(self) -> dm_env.TimeStep:
        """Begins an episode in every environment; the batch is of type FIRST."""
        self.pool.async_reset()
        return self.recv()

    def step(self, action: np.ndarray, env_id: np.ndarray | None = None) -> dm_env.TimeStep:
        """Takes one action (int32 [B]) in each environment; raises the errors of `EnvironmentPool.step`."""
        return _timestep(self.pool.step(action, env_id))

    def send(self, action: np.ndarray, env_id: np.ndarray | None = None) -> None:
        """Takes one action in each environment without waiting; raises the errors of `EnvironmentPool.send`."""
        self.pool.send(action, env_id)

    def recv(self, timeout: float | None = None) -> dm_env.TimeStep:
        """Returns the next batch; raises the errors of `EnvironmentPool.recv`."""
        return _timestep(self.pool.recv(timeout))

    def observation_spec(self) -> dict[str, specs.Array]:
        """Returns the arrays of one environment's observation, without the batch axis."""
        spec = self.pool.spec
        counts = {"env_id": self.pool.num_envs - 1, "rows": spec.rows, "columns": spec.columns, "macros": spec.steps}
        shown = {
            name: specs.BoundedArray(array.shape, array.dtype, array.low, array.high, name)
            for name, array in spec.observation.items()
        }
        shown |= {name: specs.BoundedArray((), np.int32, 0, most, name) for name, most in counts.items()}
        return {
            **shown,
            "costs": specs.Array((5,), np.float64, "costs"),
            "dead_end": specs.Array((), np.bool_, "dead_end"),
        }

    def action_spec(self) -> specs.DiscreteArray:
        """Returns the spec of one environment's action, row · C + column."""
        return specs.DiscreteArray(self.pool.spec.num_actions, np.int32, "action")

    def reward_spec(self) -> specs.Array:
        """Returns the spec of one environment's reward."""
        return specs.Array((), np.float32, "reward")

    def discount_spec(self) -> specs.BoundedArray:
        """Returns the spec of one environment's discount."""
        return specs.BoundedArray((), np.float32, 0, 1, "discount")

    def close(self) -> None:
        """Ends the pool's threads."""
        self.pool.close()


def _timestep(result: Result) -> dm_env.TimeStep:
    observation, reward, terminated, _, info = result
    first = info["elapsed_step"] == 0
    kind = np.where(first, int(dm_env.StepType.FIRST), int(dm_env.StepType.MID))
    shown: dict[str, Any] = {**observation, **info}
    del shown["elapsed_step"]
    return dm_env.TimeStep(
        step_type=np.where(terminated, int(dm_env.StepType.LAST), kind).astype(np.int32),
        reward=reward,
        discount=np.where(terminated, 0, 1).astype(np.float32),
        observation=shown,
    )
