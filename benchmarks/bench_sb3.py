"""Steps per second under Stable-Baselines3's MaskablePPO: Gymnasium's `AsyncVectorEnv` and our pool, in one run.

    python benchmarks/bench_sb3.py [--designs toy6 clustered40] [--envs 64] [--seconds 3] [--rounds 3]
        [--width 64] [--epochs 2] [--batch 256]      of MaskablePPO's network and gradient steps

Two figures for each, medians of rounds in turn: the environments alone (a step and its action masks, actions legal at
random, the draw not counted), and MaskablePPO's whole `learn`, network and gradient steps included. Both go through
the same interface, Stable-Baselines3's `VecEnv`. No soft macros are placed. Needs the extra `sb3`.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env import VecEnv

from placement.config import EnvConfig
from placement.engine.pool import make_pool
from placement.env.gym_env import PlacementEnv
from placement.env.sb3_env import PoolVecEnv
from placement.netlist.design import Design
from placement.netlist.load import load

CONFIG = EnvConfig(soft_placer="none")


class AsyncVecEnv(VecEnv):
    """Gymnasium's `AsyncVectorEnv` of `PlacementEnv` as an environment for Stable-Baselines3."""

    def __init__(self, design: Design, count: int) -> None:
        make = functools.partial(PlacementEnv, design, config=CONFIG)
        self.envs = AsyncVectorEnv([make] * count, autoreset_mode=AutoresetMode.SAME_STEP)
        self.render_mode = None
        self._masks = np.zeros(0)
        super().__init__(count, self.envs.single_observation_space, self.envs.single_action_space)

    def reset(self) -> Any:
        observation, info = self.envs.reset()
        self._masks = info["action_mask"].astype(bool)
        return _copied(observation)

    def step_async(self, actions: np.ndarray) -> None:
        self.envs.step_async(actions)

    def step_wait(self) -> Any:
        observation, reward, terminated, _, info = self.envs.step_wait()
        self._masks = info["action_mask"].astype(bool)
        return _copied(observation), reward.astype(np.float32), terminated, [{} for _ in range(self.num_envs)]

    def close(self) -> None:
        self.envs.close()

    def has_attr(self, attr_name: str) -> bool:
        return attr_name == "action_masks"

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(attr_name)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        if method_name != "action_masks":
            raise AttributeError(method_name)
        return list(self._masks)

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> Sequence[bool]:
        return [True] * self.num_envs  # no episode statistics: the cheapest form


def _copied(observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values.copy() for name, values in observation.items()}


def alone(envs: VecEnv, seconds: float) -> float:
    """Returns the steps per second of the environments and their masks."""
    generator = np.random.default_rng(0)
    envs.reset()
    steps, spent = 0, 0.0
    while spent < seconds:
        masks = np.stack(envs.env_method("action_masks"))
        actions = (generator.random(masks.shape) * masks).argmax(axis=1)
        start = time.perf_counter()
        envs.step(actions)
        envs.env_method("action_masks")
        spent += time.perf_counter() - start
        steps += envs.num_envs
    return steps / spent


def learning(envs: VecEnv, seconds: float, *, model: MaskablePPO) -> float:
    """Returns the steps per second of MaskablePPO's loop."""
    start, before = time.perf_counter(), model.num_timesteps
    while time.perf_counter() - start < seconds:
        model.learn(envs.num_envs * model.n_steps, reset_num_timesteps=False)
    return (model.num_timesteps - before) / (time.perf_counter() - start)


def compare(design: Design, count: int, seconds: float, rounds: int, *, width: int, epochs: int, batch: int) -> None:
    """Measures in turn and prints; `width` of the network's two layers, `epochs` and `batch` of the gradient steps."""
    made: dict[str, VecEnv] = {
        "AsyncVectorEnv": AsyncVecEnv(design, count),
        "pool": PoolVecEnv(make_pool(design, count, config=CONFIG)),
    }
    steps = 2 * len(design.placing_order)
    settings: dict[str, Any] = {"n_steps": steps, "batch_size": batch, "n_epochs": epochs, "device": "cpu", "seed": 0}
    settings["policy_kwargs"] = {"net_arch": [width, width]}
    models = {name: MaskablePPO("MultiInputPolicy", envs, **settings) for name, envs in made.items()}
    print(f"  {design.name}, {count} environments")
    figures: dict[str, Callable[[str], float]] = {
        "environments alone": lambda name: alone(made[name], seconds),
        "MaskablePPO, whole loop": lambda name: learning(made[name], seconds, model=models[name]),
    }
    for title, figure in figures.items():
        seen: dict[str, list[float]] = {name: [] for name in made}
        for name in (name for _ in range(rounds) for name in made):
            seen[name].append(figure(name))
        rates = {name: float(np.median(values)) for name, values in seen.items()}
        shown = "  ".join(f"{name} {rate:10,.0f} steps/s" for name, rate in rates.items())
        print(f"    {title:26s} {shown}  {rates['pool'] / rates['AsyncVectorEnv']:5.1f}×", flush=True)
    for envs in made.values():
        envs.close()


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="*", default=["toy6", "clustered40"])
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--width", type=int, default=64)  # the default of Stable-Baselines3
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.designs:
        compare(
            load(name),
            arguments.envs,
            arguments.seconds,
            arguments.rounds,
            width=arguments.width,
            epochs=arguments.epochs,
            batch=arguments.batch,
        )


if __name__ == "__main__":
    main()
