"""PPO in one file of JAX over `pool.xla()`: whole rollouts, environments included, and their updates in one program.

    python examples/jax_ppo.py [--design clustered40] [--envs 32] [--iterations 60] [--seed 0]

A rollout has the length of an episode plus the step that begins the next one. An environment that reached a dead end is
out of phase with the others: steps whose episode does not end within the rollout are ignored. Axis legend: B
environments, T steps of an episode, R grid rows, C grid columns, D size of the hidden layer.
"""

from __future__ import annotations

import argparse
import functools
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

import placement
from placement.engine.pool import EnvironmentPool
from placement.engine.xla import PoolFunctions

HIDDEN, EPOCHS, MINIBATCHES = 64, 2, 4
CLIP, ENTROPY, LEARNING_RATE = 0.2, 0.01, 3e-3
IMPOSSIBLE = -1e9

Parameters = dict[str, jax.Array]


class Samples(NamedTuple):
    """Training data of the steps of a rollout, arrays [T, B, …].

    Attributes:
        maps: float32 [T, B, R·C, 3], the engine's maps.
        step: int32 [T, B], index of the current macro.
        mask: bool [T, B, R·C], the legal cells.
        action: int32 [T, B].
        log_probability: float32 [T, B], log-probability of the action when it was drawn.
    """

    maps: jax.Array
    step: jax.Array
    mask: jax.Array
    action: jax.Array
    log_probability: jax.Array


class Outcomes(NamedTuple):
    """Results of the steps of a rollout, [T, B].

    Attributes:
        ignored: bool, whether the episode had ended before: the step began the next one, whatever the action.
        reward: float32.
        terminated: bool.
        cost: float32, the proxy cost if this step placed the last macro, else NaN.
    """

    ignored: jax.Array
    reward: jax.Array
    terminated: jax.Array
    cost: jax.Array


class Training(NamedTuple):
    """State carried between iterations; `ended` is bool [B], whether an environment's episode has ended."""

    handle: jax.Array
    observation: dict[str, jax.Array]
    ended: jax.Array
    parameters: Parameters
    optimizer: optax.OptState
    key: jax.Array


def initial_parameters(key: jax.Array, *, cells: int, macros: int, maps: int) -> Parameters:
    """Initialises the network: a cell's score depends on its maps and on embeddings of current macro and cell."""
    names = {"maps": (maps, HIDDEN), "macro": (macros + 1, HIDDEN), "cell": (cells, HIDDEN), "out": (HIDDEN, 1)}
    keys = dict(zip(names, jax.random.split(key, len(names)), strict=True))
    return {name: 0.1 * jax.random.normal(keys[name], shape) for name, shape in names.items()}


def logits(parameters: Parameters, maps: jax.Array, step: jax.Array, mask: jax.Array) -> jax.Array:
    """Returns float32 [B, R·C] from maps [B, R·C, 3], step [B] and mask [B, R·C]."""
    hidden = maps @ parameters["maps"] + parameters["cell"] * parameters["macro"][step][:, None]
    return jnp.where(mask, (jnp.tanh(hidden) @ parameters["out"])[..., 0], IMPOSSIBLE)


def flat_maps(observation: dict[str, jax.Array]) -> jax.Array:
    """Returns the maps as float32 [B, R·C, 3]."""
    maps = observation["maps"]
    return maps.reshape(*maps.shape[:2], -1).transpose(0, 2, 1)


def play(pool: PoolFunctions, state: Training, keys: jax.Array) -> tuple[Training, Samples, Outcomes]:
    """Takes a step in each environment for each of `keys` [T]."""

    def turn(state: Training, key: jax.Array) -> tuple[Training, tuple[Samples, Outcomes]]:
        maps, step = flat_maps(state.observation), state.observation["step"]
        mask = state.observation["mask"].reshape(len(step), -1).astype(bool)
        scores = logits(state.parameters, maps, step, mask)
        action = jax.random.categorical(key, scores).astype(jnp.int32)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), action[:, None], axis=1)[:, 0]
        handle, (observation, reward, terminated, _, info) = pool.step(state.handle, action)
        brought = Outcomes(state.ended, reward, terminated, info["costs"][:, 4])
        after = state._replace(handle=handle, observation=observation, ended=terminated)
        return after, (Samples(maps, step, mask, action, chosen), brought)

    state, (samples, outcomes) = jax.lax.scan(turn, state, keys)
    return state, samples, outcomes


def returns(outcomes: Outcomes) -> tuple[jax.Array, jax.Array]:
    """Returns the final reward of each step's episode, float32 [T, B], and if it ended in this rollout, bool [T, B]."""

    def back(later: Any, now: Outcomes) -> Any:
        gained = jnp.where(now.terminated, now.reward, later[0])
        known = (now.terminated | later[1]) & ~now.ignored
        return (gained, known), (gained, known)

    none = jnp.zeros_like(outcomes.reward[0]), jnp.zeros_like(outcomes.ignored[0])
    return jax.lax.scan(back, none, outcomes, reverse=True)[1]


def loss(parameters: Parameters, batch: Samples, advantage: jax.Array, weight: jax.Array) -> jax.Array:
    """Returns PPO's clipped loss with an entropy bonus (Schulman et al. 2017, eq. 7) of samples [N, …], weights [N]."""
    log = jax.nn.log_softmax(logits(parameters, batch.maps, batch.step, batch.mask))
    ratio = jnp.exp(jnp.take_along_axis(log, batch.action[:, None], axis=1)[:, 0] - batch.log_probability)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -jnp.sum(jnp.where(batch.mask, jnp.exp(log) * log, 0.0), axis=1)
    return -jnp.sum(weight * (gain + ENTROPY * entropy)) / jnp.maximum(weight.sum(), 1)


def iterate(state: Training, _: None, *, pool: PoolFunctions, optimizer: Any, steps: int) -> Any:
    """Plays `steps` steps and learns from the episodes that ended; also returns their mean proxy cost."""
    play_key, shuffle_key, key = jax.random.split(state.key, 3)
    state, samples, outcomes = play(pool, state, jax.random.split(play_key, steps))
    gained, known = returns(outcomes)
    mean, spread = jnp.mean(gained, where=known), jnp.std(gained, where=known)
    advantage = (gained - mean) / (spread + 1e-6)
    count = known.size
    flat = jax.tree.map(lambda values: values.reshape(count, *values.shape[2:]), (samples, advantage, known))

    def learn(carry: Any, rows: jax.Array) -> Any:
        parameters, moments = carry
        batch, wanted, weight = jax.tree.map(lambda values: values[rows], flat)
        gradient = jax.grad(loss)(parameters, batch, wanted, weight)
        updates, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(parameters, updates), moments), None

    order = [jax.random.permutation(one, count) for one in jax.random.split(shuffle_key, EPOCHS)]
    minibatches = jnp.concatenate(order).reshape(EPOCHS * MINIBATCHES, -1)
    (parameters, moments), _ = jax.lax.scan(learn, (state.parameters, state.optimizer), minibatches)
    return state._replace(parameters=parameters, optimizer=moments, key=key), jnp.nanmean(outcomes.cost)


def train(pool: EnvironmentPool, *, iterations: int, chunk: int = 10, seed: int = 0) -> list[tuple[float, float]]:
    """Trains; returns the mean proxy cost and the steps per second of each `chunk` of iterations.

    Raises:
        ValueError: the pool has several designs, or its batches do not hold all its environments.
    """
    if len(pool.designs) != 1 or not pool.synchronous:
        raise ValueError(f"{pool}: must have one design, and batches of all its environments")
    spec, envs = pool.spec, pool.num_envs
    if envs % MINIBATCHES:
        raise ValueError(f"num_envs={envs}: must be divisible by the {MINIBATCHES} minibatches")
    optimizer, functions = optax.adam(LEARNING_RATE), pool.xla()
    key, parameters_key = jax.random.split(jax.random.key(seed))
    parameters = initial_parameters(parameters_key, cells=spec.num_actions, macros=spec.steps, maps=3)
    # The length of an episode plus the step that begins the next one.
    turn = functools.partial(iterate, pool=functions, optimizer=optimizer, steps=spec.steps + 1)
    program = jax.jit(lambda state: jax.lax.scan(turn, state, None, length=chunk))
    observation = {name: jnp.array(values) for name, values in pool.reset()[0].items()}
    state = Training(functions.handle, observation, jnp.zeros(envs, bool), parameters, optimizer.init(parameters), key)
    found = []
    for first in range(0, iterations, chunk):
        start = time.perf_counter()
        state, costs = jax.block_until_ready(program(state))
        rate = chunk * envs * (spec.steps + 1) / (time.perf_counter() - start)
        found.append((float(costs.mean()), rate))
        print(f"{first + chunk:5d} iterations  mean cost {found[-1][0]:.4f}  {rate:10,.0f} steps/s", flush=True)
    return found


def main() -> None:
    """Trains and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="clustered40")
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with placement.make_pool(arguments.design, arguments.envs) as pool:
        train(pool, iterations=arguments.iterations, seed=arguments.seed)


if __name__ == "__main__":
    main()
