"""TorchRL's collector, advantages and PPO loss on the engine's pool. Needs torchrl.

    python examples/torchrl_ppo.py [--design clustered40] [--envs 32] [--seconds 60]

`PoolEnv` is a batched TorchRL environment, one for the whole pool. Prints the mean cost of each batch's episodes.
Seconds are CPU seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from tensordict import TensorDict, TensorDictBase
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import Binary, Categorical, Composite, Unbounded
from torchrl.envs import EnvBase
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import placement
from placement.engine.pool import EnvironmentPool

HIDDEN, LEARNING_RATE, EPOCHS, MINIBATCHES = 32, 1e-3, 4, 4
SHOWN = ["maps", "step"]


class PoolEnv(EnvBase):
    """A synchronous pool of B environments: batch size [B], actions int64 [B], the mask flat, bool [B, R·C].

    The collector resets ended environments before their next step, so the pool's automatic reset is never used.
    """

    def __init__(self, pool: EnvironmentPool) -> None:
        super().__init__(device="cpu", batch_size=torch.Size([pool.num_envs]))
        self.pool, envs = pool, pool.num_envs
        spec = {
            "maps": Unbounded((envs, *pool.spec.observation["maps"].shape), dtype=torch.float32),
            "step": Unbounded((envs,), dtype=torch.int64),
            "mask": Binary(shape=(envs, pool.spec.num_actions), dtype=torch.bool),
            "cost": Unbounded((envs,), dtype=torch.float32),
        }
        self.observation_spec = Composite(spec, shape=(envs,))
        self.action_spec = Categorical(pool.spec.num_actions, shape=(envs,))
        self.reward_spec = Unbounded((envs, 1))
        ended = Binary(shape=(envs, 1), dtype=torch.bool)
        self.full_done_spec = Composite({"done": ended, "terminated": ended.clone()}, shape=(envs,))

    def _reset(self, tensordict: TensorDictBase | None = None, **_: object) -> TensorDict:
        which = None if tensordict is None else tensordict.get("_reset", None)
        if which is None:
            self.pool.reset()
        elif which.any():
            self.pool.reset(np.flatnonzero(which.numpy()))
        return self._shown(*self.pool.observe())

    def _step(self, tensordict: TensorDictBase) -> TensorDict:
        observation, reward, ended, truncated, info = self.pool.step(tensordict["action"].numpy())
        result = self._shown(observation, reward, ended, truncated, info)
        result["reward"] = torch.tensor(reward)[:, None]
        return result

    def _shown(self, observation: dict, reward: np.ndarray, ended: np.ndarray, _: np.ndarray, info: dict) -> TensorDict:
        done = torch.tensor(ended)[:, None]
        shown = {
            "maps": torch.tensor(observation["maps"]),
            "step": torch.tensor(observation["step"]).long(),
            "mask": torch.tensor(observation["mask"]).flatten(1).bool(),
            "cost": torch.tensor(info["costs"][:, 4]).float(),
        }
        return TensorDict({**shown, "done": done, "terminated": done.clone()}, self.batch_size)

    def _set_seed(self, seed: int | None) -> None:
        torch.manual_seed(seed or 0)


class Trunk(nn.Module):
    """Float32 [B, HIDDEN, R, C] from maps [B, 3, R, C] and step [B]."""

    def __init__(self, pool: EnvironmentPool) -> None:
        super().__init__()
        self.maps = nn.Sequential(nn.Conv2d(3, HIDDEN, 3, padding=1), nn.ReLU(), nn.Conv2d(HIDDEN, HIDDEN, 1))
        self.macro = nn.Embedding(pool.spec.steps + 1, HIDDEN)
        self.cell = nn.Parameter(0.1 * torch.randn(HIDDEN, pool.spec.rows, pool.spec.columns))

    def forward(self, maps: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        batch = maps.shape[:-3]
        macro = self.macro(step.reshape(-1))[:, :, None, None]
        hidden = torch.tanh(self.maps(maps.reshape(-1, *maps.shape[-3:])) + self.cell * macro)
        return hidden.reshape(*batch, *hidden.shape[1:])


class Score(Trunk):
    """Logits [B, R·C]."""

    def __init__(self, pool: EnvironmentPool) -> None:
        super().__init__(pool)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, maps: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        return self.out(super().forward(maps, step).movedim(-3, -1)).flatten(-3)


class Value(Trunk):
    """The state's value, [B, 1]."""

    def __init__(self, pool: EnvironmentPool) -> None:
        super().__init__(pool)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, maps: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        return self.out(super().forward(maps, step).mean(dim=(-2, -1)))


def train(design: str, *, envs: int = 32, seconds: float = 60.0, seed: int = 0) -> list[tuple[int, float]]:
    """Trains for `seconds` of CPU time; returns the environment steps taken and the mean cost after each batch."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    pool = placement.make_pool(design, envs)
    score = TensorDictModule(Score(pool), in_keys=SHOWN, out_keys=["logits"])
    actor = ProbabilisticActor(
        score, in_keys=["logits", "mask"], distribution_class=MaskedCategorical, return_log_prob=True
    )
    critic = ValueOperator(Value(pool), in_keys=SHOWN)
    advantage = GAE(gamma=1.0, lmbda=1.0, value_network=critic, average_gae=True)
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    optimizer = torch.optim.Adam(loss.parameters(), LEARNING_RATE)
    batch = 2 * pool.spec.steps * envs
    collector = Collector(PoolEnv(pool), actor, frames_per_batch=batch, total_frames=-1)
    found, steps, began = [], 0, time.process_time()
    for data in collector:
        for _ in range(EPOCHS):
            with torch.no_grad():
                advantage(data)
            flat = data.reshape(-1)
            for rows in torch.randperm(len(flat)).chunk(MINIBATCHES):
                losses = loss(flat[rows])
                optimizer.zero_grad()
                sum(losses[name] for name in ("loss_objective", "loss_critic", "loss_entropy")).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimizer.step()
        steps += batch
        found.append((steps, float(data["next", "cost"].nanmean())))
        spent = time.process_time() - began
        print(f"{steps:9d} steps  mean cost {found[-1][1]:.4f}  {steps / spent:8,.0f} steps per CPU second", flush=True)
        if spent > seconds:
            break
    collector.shutdown()
    pool.close()
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
