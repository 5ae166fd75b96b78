"""Behaviour cloning: the project's graph network learns the actions of a data set of episodes offline.

    macro-placement dataset clustered40 samples=16 time=10 out=episodes
    python examples/behaviour_cloning.py episodes [--steps 300]

Prints the log-likelihood of the actions and finally the cost of the greedy policy and that of the episodes.
"""

from __future__ import annotations

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.policy.agent import Agent
from placement.training.episode_dataset import EpisodeDataset, read_episodes
from placement.training.rollout import Evaluator

LEARNING_RATE, BATCH = 1e-3, 64


def samples(data: EpisodeDataset) -> tuple[Observation, np.ndarray]:
    """Returns observations [N, …] and actions int32 [N] of all steps of the episodes that placed every macro."""
    whole = np.flatnonzero(~data.episodes.dead_end)
    seen, actions = data.observations(whole), data.episodes.actions[whole]
    return Observation(*(array.reshape(-1, *array.shape[2:]) for array in seen)), actions.reshape(-1)


def train(data: EpisodeDataset, *, steps: int = 300, seed: int = 0) -> tuple[list[float], float]:
    """Trains; returns the mean log-likelihood of each step's actions, and the greedy policy's cost (NaN: dead end)."""
    agent = Agent(PolicyConfig(), [data.design])
    network, inputs, params = agent.network, agent.network.inputs, agent.init(seed)
    optimizer = optax.adam(LEARNING_RATE)
    seen, actions = samples(data)

    def loss(params, observation, wanted):
        logits = network.decide(params, network.embed(params, inputs), inputs, observation)
        log = jax.nn.log_softmax(logits.reshape(len(wanted), -1))
        return -jnp.take_along_axis(log, wanted[:, None], axis=1).mean()

    @jax.jit
    def step(params, moments, observation, wanted):
        value, gradient = jax.value_and_grad(loss)(params, observation, wanted)
        updates, moments = optimizer.update(gradient, moments)
        return optax.apply_updates(params, updates), moments, value

    moments, generator, found = optimizer.init(params), np.random.default_rng(seed), []
    for number in range(steps):
        rows = generator.integers(0, len(actions), BATCH)
        params, moments, value = step(params, moments, Observation(*(array[rows] for array in seen)), actions[rows])
        found.append(-float(value))
        if number % 50 == 0:
            print(f"{number:5d} steps  log-likelihood {found[-1]:.3f}", flush=True)
    (greedy,) = Evaluator(agent, [data.design], env=data.env).evaluate(params, jax.random.key(seed))
    return found, greedy.costs.total if greedy.costs else float("nan")


def main() -> None:
    """Trains and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="of `macro-placement dataset`")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    data = read_episodes(arguments.folder)
    _, cost = train(data, steps=arguments.steps, seed=arguments.seed)
    print(f"greedy policy {cost:.4f}; episodes' mean {np.nanmean(data.episodes.costs[:, 4]):.4f}")


if __name__ == "__main__":
    main()
