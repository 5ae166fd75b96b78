"""Trains Stable-Baselines3's unmodified MaskablePPO on the engine's pool. Needs the extra `sb3`.

    python examples/sb3_maskable_ppo.py [--design toy6] [--envs 64] [--steps 30000] [--plot curve.png]

Prints the mean cost of each rollout's episodes, the steps per second, and finally the greedy policy's placement. On
`toy6` the cost is the wirelength alone, whose optimum is known (`netlists/toy6/optimum.plc`).
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

import placement
from placement.env.sb3_env import PoolVecEnv
from placement.netlist.load import find

WIRELENGTH = placement.EnvConfig(cost=placement.CostConfig(wirelength=1.0, density=0.0, congestion=0.0))


@dataclasses.dataclass(frozen=True)
class Training:
    """Result of a training.

    Attributes:
        steps: int [I], environment steps after each rollout.
        costs: float [I], mean proxy cost of each rollout's episodes that placed every macro.
        greedy: proxy cost of the greedy policy's episode; NaN at a dead end.
    """

    steps: np.ndarray
    costs: np.ndarray
    greedy: float


class Curve(BaseCallback):
    """Records the mean cost of each rollout's episodes."""

    def __init__(self) -> None:
        super().__init__()
        self.points: list[tuple[int, float]] = []
        self._costs: list[float] = []

    def _on_step(self) -> bool:
        self._costs += [info["costs"]["total"] for info in self.locals["infos"] if "costs" in info]
        return True

    def _on_rollout_end(self) -> None:
        if self._costs:
            self.points.append((self.num_timesteps, float(np.mean(self._costs))))
            print(f"{self.num_timesteps:9d} steps  mean cost {self.points[-1][1]:.4f}", flush=True)
        self._costs.clear()


def learner(envs: PoolVecEnv, *, episode: int, seed: int = 0) -> MaskablePPO:
    """Returns MaskablePPO with settings for episodes of `episode` steps with a final reward."""
    return MaskablePPO(
        "MultiInputPolicy",
        envs,
        n_steps=2 * episode,
        batch_size=128,
        n_epochs=4,
        learning_rate=1e-3,
        gamma=1.0,
        gae_lambda=1.0,
        ent_coef=0.05,
        seed=seed,
        device="cpu",
    )


def greedy_cost(model: MaskablePPO, envs: PoolVecEnv) -> float:
    """Returns the proxy cost of the episode of the most probable actions; NaN at a dead end."""
    observation, ended, infos = envs.reset(), np.zeros(envs.num_envs, bool), []
    while not ended[0]:
        actions, _ = model.predict(observation, action_masks=envs.action_masks(), deterministic=True)
        observation, _, ended, infos = envs.step(actions)
    return infos[0].get("costs", {}).get("total", float("nan"))


def train(design: str, *, envs: int = 64, steps: int = 30_000, seed: int = 0, threads: int = 0) -> Training:
    """Trains on `design` for about `steps` environment steps; `threads` is for the pool, 0: one per core."""
    torch.set_num_threads(1)  # faster for such a small network
    pool = placement.make_pool(design, envs, config=WIRELENGTH, num_threads=threads, seed=seed)
    vector, curve = PoolVecEnv(pool), Curve()
    model = learner(vector, episode=pool.spec.steps, seed=seed)
    model.learn(steps, callback=curve)
    found = Training(*map(np.array, zip(*curve.points, strict=True)), greedy=greedy_cost(model, vector))
    vector.close()
    return found


def draw(found: Training, least: float | None, path: Path) -> None:
    """Plots the curve, and the optimum if it is known."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.plot(found.steps, found.costs, label="mean cost of a rollout's episodes")
    axes.axhline(found.greedy, color="tab:green", linestyle=":", label="greedy policy at the end")
    if least is not None:
        axes.axhline(least, color="black", linestyle="--", linewidth=1, label="optimum")
    axes.set(xlabel="environment steps", ylabel="wirelength cost", title="Stable-Baselines3's MaskablePPO on the pool")
    axes.legend()
    figure.savefig(path, dpi=120)


def optimum(design: str) -> float | None:
    """Returns the least cost if the design comes with its optimum."""
    loaded, file = placement.load(design), find(design).parent / "optimum.plc"
    if not file.exists():
        return None
    _, best = placement.read_placement(file, loaded.netlist)
    return placement.cost(loaded, best, cost=WIRELENGTH.cost.weights()).total


def main() -> None:
    """Trains, prints and plots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="toy6")
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, help="where the curve is drawn")
    arguments = parser.parse_args()
    found = train(arguments.design, envs=arguments.envs, steps=arguments.steps, seed=arguments.seed)
    least = optimum(arguments.design)
    print(f"greedy policy: {found.greedy:.6f}" + ("" if least is None else f"; optimum: {least:.6f}"))
    if arguments.plot:
        draw(found, least, arguments.plot)


if __name__ == "__main__":
    main()
