"""PPO of RLlib's new API stack on `PlacementEnv`, illegal cells masked in the RLModule. Needs "ray[rllib]" and PyTorch.

    python examples/rllib_ppo.py [--design clustered40] [--envs 32] [--seconds 60]

Each of RLlib's environments is a Gymnasium environment of its own; the pool is for learners that take batches. Prints
the mean cost of each iteration's episodes. Seconds are of CPU time.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from torch import nn

import placement

HIDDEN, LEARNING_RATE = 32, 1e-3


class MaskedCells(TorchRLModule, ValueFunctionAPI):
    """Logits [B, R·C] and values [B] from `PlacementEnv`'s observations."""

    def setup(self) -> None:
        """Makes the layers; called by RLlib."""
        (rows, columns), (macros,) = self.observation_space["mask"].shape, self.observation_space["x"].shape
        self.maps = nn.Sequential(nn.Conv2d(3, HIDDEN, 3, padding=1), nn.ReLU(), nn.Conv2d(HIDDEN, HIDDEN, 1))
        self.macro = nn.Linear(macros + 1, HIDDEN)  # RLlib gives `step` as a one-hot vector
        self.cell = nn.Parameter(0.1 * torch.randn(HIDDEN, rows, columns))
        self.score, self.value = nn.Conv2d(HIDDEN, 1, 1), nn.Linear(HIDDEN, 1)

    def hidden(self, batch: dict[str, Any]) -> torch.Tensor:
        """Float32 [B, HIDDEN, R, C]."""
        observation = batch[Columns.OBS]
        step = observation["step"]
        if step.ndim == 1:
            step = nn.functional.one_hot(step.long(), self.macro.in_features).float()
        return torch.tanh(self.maps(observation["maps"].float()) + self.cell * self.macro(step)[:, :, None, None])

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        scores = self.score(self.hidden(batch)).flatten(1)
        return {Columns.ACTION_DIST_INPUTS: scores.masked_fill(batch[Columns.OBS]["mask"].flatten(1) == 0, -1e9)}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        """Float32 [B]."""
        return self.value(self.hidden(batch).mean(dim=(2, 3)))[:, 0]


def train(design: str, *, envs: int = 32, seconds: float = 60.0, seed: int = 0) -> list[tuple[int, float]]:
    """Trains for `seconds` of CPU time; returns the environment steps taken and the mean cost after each iteration."""
    episode = len(placement.load(design).placing_order)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    config = (
        PPOConfig()
        .environment(lambda _: placement.PlacementEnv(design))
        .env_runners(num_env_runners=0, num_envs_per_env_runner=envs, rollout_fragment_length=2 * episode)
        .learners(num_learners=0)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=MaskedCells))
        .training(lr=LEARNING_RATE, gamma=1.0, lambda_=1.0, entropy_coeff=0.01, clip_param=0.2, num_epochs=4)
        .training(train_batch_size=2 * episode * envs, minibatch_size=episode * envs // 2)
        .debugging(seed=seed, log_level="ERROR")
    )
    algorithm, found, began = config.build_algo(), [], time.process_time()
    while True:
        result = algorithm.train()["env_runners"]
        steps, spent = int(result["num_env_steps_sampled_lifetime"]), time.process_time() - began
        found.append((steps, -float(result["episode_return_mean"])))
        print(f"{steps:9d} steps  mean cost {found[-1][1]:.4f}  {steps / spent:8,.0f} steps per CPU second", flush=True)
        if spent > seconds:
            break
    algorithm.stop()
    ray.shutdown()
    return found


def main() -> None:
    """Trains and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="clustered40")
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    train(arguments.design, envs=arguments.envs, seconds=arguments.seconds, seed=arguments.seed)


if __name__ == "__main__":
    main()
