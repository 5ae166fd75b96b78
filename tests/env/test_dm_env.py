"""The pool as a dm_env environment."""

from __future__ import annotations

import builtins
import importlib
import sys

import numpy as np
import pytest

from placement.engine.pool import make_pool
from tests.support.designs import four_macros


def test_without_dm_env_it_says_what_is_missing(monkeypatch) -> None:
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "dm_env":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "placement.env.dm_env", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="needs the package dm-env"):
        importlib.import_module("placement.env.dm_env")


def test_timesteps_are_batches_that_fit_their_specs() -> None:
    pytest.importorskip("dm_env", reason="dm-env is not installed")
    from placement.env.dm_env import DmEnvPool

    env = DmEnvPool(make_pool(four_macros(), 3, num_threads=2))
    timestep = env.reset()
    kinds = [timestep.step_type.tolist()]
    for _ in range(5):
        for index in range(3):
            for name, spec in env.observation_spec().items():
                spec.validate(timestep.observation[name][index])
            env.reward_spec().validate(timestep.reward[index])
            env.discount_spec().validate(timestep.discount[index])
        actions = np.maximum(env.pool.sample_actions(), 0)
        env.action_spec().validate(actions[0])
        timestep = env.step(actions)
        kinds.append(timestep.step_type.tolist())
        assert np.array_equal(timestep.discount == 0, timestep.step_type == 2)
        assert np.array_equal(timestep.reward != 0, timestep.step_type == 2)
    assert kinds == [[0] * 3, [1] * 3, [1] * 3, [2] * 3, [0] * 3, [1] * 3]
    env.close()
