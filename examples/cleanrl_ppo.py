"""PPO in PyTorch in one file, in CleanRL's style, on Gymnasium's `VectorEnv`. Needs PyTorch.

    python examples/cleanrl_ppo.py [--design clustered40] [--envs 32] [--seconds 60]

Prints the mean cost of each rollout's episodes. Seconds are CPU seconds.
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import placement  # noqa: F401  registers the environment

HIDDEN, LEARNING_RATE = 32, 1e-3
CLIP, ENTROPY, EPOCHS, MINIBATCHES = 0.2, 0.01, 4, 4


class Policy(nn.Module):
    """Returns logits of the cells and the value of the state, from maps [B, 3, R, C], step [B] and mask [B, R, C]."""

    def __init__(self, spaces: gymnasium.spaces.Dict) -> None:
        super().__init__()
        (rows, columns), (macros,) = spaces["mask"].shape, spaces["x"].shape
        self.maps = nn.Sequential(nn.Conv2d(3, HIDDEN, 3, padding=1), nn.ReLU(), nn.Conv2d(HIDDEN, HIDDEN, 1))
        self.macro = nn.Embedding(macros + 1, HIDDEN)
        self.cell = nn.Parameter(0.1 * torch.randn(HIDDEN, rows, columns))
        self.score, self.value = nn.Conv2d(HIDDEN, 1, 1), nn.Linear(HIDDEN, 1)

    def forward(self, observation: dict[str, torch.Tensor]) -> tuple[Categorical, torch.Tensor]:
        macro = self.macro(observation["step"].long())[:, :, None, None]
        hidden = torch.tanh(self.maps(observation["maps"]) + self.cell * macro)
        logits = self.score(hidden).flatten(1).masked_fill(observation["mask"].flatten(1) == 0, -1e9)
        return Categorical(logits=logits), self.value(hidden.mean(dim=(2, 3)))[:, 0]


def shown(observation: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Returns the policy's inputs from an observation."""
    return {name: torch.from_numpy(observation[name]) for name in ("maps", "step", "mask")}


def returns(reward: torch.Tensor, ended: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the final reward of each step's episode, float32 [T, B], and if it ended in the rollout, bool [T, B]."""
    gained, known = torch.zeros_like(reward), torch.zeros_like(ended)
    last, seen = torch.zeros_like(reward[0]), torch.zeros_like(ended[0])
    for t in reversed(range(len(reward))):
        last, seen = torch.where(ended[t], reward[t], last), seen | ended[t]
        gained[t], known[t] = last, seen
    return gained, known


def learn(policy: Policy, optimizer: torch.optim.Optimizer, batch: dict[str, torch.Tensor]) -> None:
    """Runs PPO's epochs over a flat batch (Schulman et al. 2017, equation 7)."""
    gained = batch["return"]
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(gained)).chunk(MINIBATCHES):
            distribution, value = policy({name: batch[name][rows] for name in ("maps", "step", "mask")})
            advantage = gained[rows] - batch["value"][rows]
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
            ratio = (distribution.log_prob(batch["action"][rows]) - batch["log_probability"][rows]).exp()
            gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
            loss = -gain.mean() - ENTROPY * distribution.entropy().mean() + 0.5 * (value - gained[rows]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()


def train(design: str, *, envs: int = 32, seconds: float = 60.0, seed: int = 0) -> list[tuple[int, float]]:
    """Trains for `seconds` of CPU time; returns the environment steps taken and the mean cost after each rollout."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    vector = gymnasium.make_vec("MacroPlacement-v0", num_envs=envs, design=design)
    policy = Policy(vector.single_observation_space)
    optimizer = torch.optim.Adam(policy.parameters(), LEARNING_RATE)
    episode = vector.single_observation_space["x"].shape[0] + 1  # the last step begins the next episode
    observation, _ = vector.reset(seed=seed)
    begins, found, steps, began = np.zeros(envs, bool), [], 0, time.process_time()
    while time.process_time() - began < seconds:
        rollout: list[dict[str, torch.Tensor]] = []
        costs: list[float] = []
        for _ in range(2 * episode):
            seen = shown(observation)
            with torch.no_grad():
                distribution, value = policy(seen)
                action = distribution.sample()
            observation, reward, ended, _, info = vector.step(action.numpy())
            taken = {"action": action, "log_probability": distribution.log_prob(action), "value": value}
            brought = {"reward": torch.from_numpy(reward), "ended": torch.from_numpy(ended)}
            rollout.append({**seen, **taken, **brought, "ignored": torch.from_numpy(begins)})
            begins = ended  # the next action of an ended episode is ignored: it begins the next one
            if "costs" in info:
                costs += info["costs"]["total"][info["_costs"]].tolist()
        whole = {name: torch.stack([step[name] for step in rollout]) for name in rollout[0]}
        whole["return"], known = returns(whole["reward"], whole["ended"])
        learn(policy, optimizer, {name: values[known & ~whole["ignored"]] for name, values in whole.items()})
        steps += 2 * episode * envs
        found.append((steps, float(np.mean(costs))))
        rate = steps / (time.process_time() - began)
        print(f"{steps:9d} steps  mean cost {found[-1][1]:.4f}  {rate:8,.0f} steps per CPU second", flush=True)
    vector.close()
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
