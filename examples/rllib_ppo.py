"""PPO of RLlib's new API stack on Gymnasium's `VectorEnv`. Needs `ray[rllib]` and PyTorch.

    python examples/rllib_ppo.py [--design clustered40] [--envs 32] [--seconds 60]

RLlib steps the whole pool in this process, through the environment's vector entry point, and its own connectors pass
the observations on. Prints the mean cost of each iteration's episodes. Seconds are CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray reads it at import: with 0 it listens on loopback only
import numpy as np
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import nn

import placement

HIDDEN, LEARNING_RATE, EPOCHS, MINIBATCHES = 32, 1e-3, 4, 4


class MaskedPolicy(TorchRLModule, ValueFunctionAPI):
    """Logits of the legal cells and the state's value, from maps [B, 3, R, C], step [B] and mask [B, R, C]."""

    def setup(self) -> None:
        spaces = self.observation_space
        (rows, columns), (macros,) = spaces["mask"].shape, spaces["x"].shape
        self.maps = nn.Sequential(nn.Conv2d(3, HIDDEN, 3, padding=1), nn.ReLU(), nn.Conv2d(HIDDEN, HIDDEN, 1))
        self.macro = nn.Embedding(macros + 1, HIDDEN)
        self.cell = nn.Parameter(0.1 * torch.randn(HIDDEN, rows, columns))
        self.score, self.value = nn.Conv2d(HIDDEN, 1, 1), nn.Linear(HIDDEN, 1)

    def _forward(self, batch: dict[str, Any], **_: object) -> dict[str, torch.Tensor]:
        """Also used in training, where `compute_values` reuses the embeddings."""
        seen = batch[Columns.OBS]
        macro = self.macro(seen["step"].long())[:, :, None, None]
        hidden = torch.tanh(self.maps(seen["maps"]) + self.cell * macro)
        logits = self.score(hidden).flatten(1).masked_fill(seen["mask"].flatten(1) == 0, -1e9)
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: hidden.mean(dim=(2, 3))}

    def compute_values(self, batch: dict[str, Any], embeddings: torch.Tensor | None = None) -> torch.Tensor:
        if embeddings is None:
            embeddings = self._forward(batch)[Columns.EMBEDDINGS]
        return self.value(embeddings)[:, 0]


def record_cost(*, episode: Any, metrics_logger: Any, **_: object) -> None:
    """Logs the cost of an episode that placed every macro."""
    if "costs" in (info := episode.get_infos(-1)):
        metrics_logger.log_value("cost", info["costs"]["total"], reduce="item_series")


def configuration(design: str, envs: int, seed: int) -> PPOConfig:
    """Returns PPO in one process: iterations of two episodes of each environment, the reward at the episode's end."""
    batch = 2 * envs * len(placement.load(design).placing_order)
    config = PPOConfig().environment("MacroPlacement-v0", env_config={"design": design}).debugging(seed=seed)
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=envs, gym_env_vectorize_mode="vector_entry_point")
    config.rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedPolicy)).callbacks(on_episode_end=record_cost)
    config.training(gamma=1.0, lambda_=1.0, lr=LEARNING_RATE, clip_param=0.2, entropy_coeff=0.01, use_kl_loss=False)
    config.training(grad_clip=0.5, num_epochs=EPOCHS, train_batch_size_per_learner=batch)
    return config.training(minibatch_size=batch // MINIBATCHES, vf_loss_coeff=0.5)


def train(design: str, *, envs: int = 32, seconds: float = 60.0, seed: int = 0) -> list[tuple[int, float]]:
    """Trains for `seconds` of CPU time; returns the environment steps taken and the mean cost after each iteration."""
    torch.set_num_threads(1)
    ray.init("local", num_cpus=1, include_dashboard=False, logging_level="ERROR", _node_ip_address="127.0.0.1")
    algorithm = configuration(design, envs, seed).build_algo()
    found, began = [], time.process_time()
    while time.process_time() - began < seconds:
        measured = algorithm.train()["env_runners"]
        found.append((int(measured["num_env_steps_sampled_lifetime"]), float(np.mean(measured["cost"]))))
        rate = found[-1][0] / (time.process_time() - began)
        print(f"{found[-1][0]:9d} steps  mean cost {found[-1][1]:.4f}  {rate:8,.0f} steps per CPU second", flush=True)
    algorithm.stop()
    ray.shutdown()
    return found


def main() -> None:
    """Trains and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="clustered40")
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    train(arguments.design, envs=arguments.envs, seconds=arguments.seconds, seed=arguments.seed)


if __name__ == "__main__":
    main()
