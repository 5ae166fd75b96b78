"""The learner on small designs: it learns, resumes exactly, survives NaN, and computes the same on eight devices."""

from __future__ import annotations

import copy
import dataclasses
import math

import jax
import numpy as np
import pytest

from placement.config import ConfigError, EnvConfig, PolicyConfig, PPOConfig
from placement.episode import Episode
from placement.netlist.design import Design
from placement.policy.agent import Agent
from placement.ppo import ppo
from placement.ppo.learner import Learner, LearnerState, make_mesh
from placement.ppo.ppo import Minibatch
from tests.support.designs import four_macros, random_design, square_canvas
from tests.support.episodes import chances_of, played_episodes

POLICY = PolicyConfig(node_width=4, rounds=1, grid_width=4)
PPO = PPOConfig(iterations=10, epochs=2, sample_fraction=1.0, minibatch_size=40, learning_rate=3e-3)
ENV = EnvConfig(soft_placer="none")


@pytest.fixture(scope="module")
def designs() -> list[Design]:
    return [four_macros(), random_design(2, hard=6, soft=3, ports=3, nets=20, canvas=square_canvas(6, 5))]


@pytest.fixture(scope="module")
def learner(designs: list[Design]) -> Learner:
    """Returns one learner for all tests here, so that it compiles once; each test sets its state."""
    return Learner(POLICY, PPO, ENV, designs, seed=0)


@pytest.fixture(scope="module")
def agent(designs: list[Design]) -> Agent:
    return Agent(POLICY, designs)


@pytest.fixture(scope="module")
def initial(learner: Learner) -> LearnerState:
    return jax.device_get(learner.state)


def _flat(state: LearnerState) -> np.ndarray:
    return np.concatenate([np.ravel(leaf).astype(np.float64) for leaf in jax.tree.leaves(state.trained.params)])


def _goals(learner: Learner, before: LearnerState, episodes: list[Episode]) -> ppo.Targets:
    """Returns the targets of the learner's last update from the episodes, given its previous state."""
    after, learner = learner.state, copy.copy(learner)
    learner.state = before
    prepared = learner.prepare(episodes)
    rewards = ppo.normalised_rewards(after.reward_statistics, prepared.batch)
    energy = learner._energies(prepared.designs.inputs, prepared.observation, prepared.batch.length)
    values, _ = learner._baseline(prepared, energy, rewards, after.reward_statistics)
    return ppo.targets(prepared.batch, rewards, values, decay=PPO.gae_lambda)


def test_it_learns_what_pays(learner: Learner, initial: LearnerState, agent: Agent, designs: list[Design]) -> None:
    """Probability shifts to the rewarded columns, for both designs at once."""
    learner.state = initial
    paid = []
    for iteration in range(12):
        episodes = played_episodes(designs, 32, iteration, env=ENV, played_by=(agent, learner.parameters()), bonus=2)
        metrics = learner.update(episodes, iteration=iteration)
        paid.append([np.mean([one.reward / one.length for one in episodes[which::2]]) for which in range(2)])
    assert min(paid[-1]) > 0.75, paid
    assert max(paid[0]) < 0.6, paid
    assert set(metrics) >= {
        "policy_loss",
        "entropy",
        "approx_kl",
        "clip_fraction",
        "gradient_norm",
        "explained_variance",
        "learning_rate",
        "skipped_steps",
    }
    assert all(np.isfinite(value) for value in metrics.values())
    assert metrics["skipped_steps"] == 0


def test_the_first_step_sees_the_actors_distribution(
    learner: Learner, initial: LearnerState, agent: Agent, designs: list[Design]
) -> None:
    """Replayed episodes reproduce exactly the log-probabilities with which the actor drew: the ratio is 1."""
    learner.state = initial
    episodes = played_episodes(designs, 32, 3, env=ENV, played_by=(agent, learner.parameters()))
    still = copy.copy(learner)
    still._config = dataclasses.replace(PPO, learning_rate=1e-12)
    metrics = still.update(episodes, iteration=0)
    assert abs(metrics["approx_kl"]) < 1e-9
    assert metrics["clip_fraction"] == 0


def test_older_episodes_are_weighed_and_clipped_against_the_policy_of_now(
    learner: Learner, initial: LearnerState, agent: Agent, designs: list[Design]
) -> None:
    """The loss of the first step by hand: -min(1, π/μ)·A, with π and μ from an agent that replays the actions."""
    learner.state = initial
    drawn = played_episodes(designs, 32, 3, env=ENV, played_by=(agent, learner.parameters()), bonus=2, version=0)
    for _ in range(3):
        learner.update(drawn, iteration=0)
    late = copy.copy(learner)
    late._config = dataclasses.replace(PPO, learning_rate=1e-12, epochs=1, minibatch_size=1000)
    state = jax.device_get(late.state)
    metrics = late.update(drawn, iteration=0)
    assert abs(metrics["approx_kl"]) < 1e-9
    assert metrics["clip_fraction"] == 0
    goals = _goals(late, state, drawn)
    chances = [chances_of(agent, state.trained.params, designs, one, env=ENV) for one in drawn]
    ratio = [np.exp(now - one.log_probabilities[: one.length]) for now, one in zip(chances, drawn, strict=True)]
    losses = np.concatenate(
        [-np.minimum(1, one) * row[: len(one)] for one, row in zip(ratio, goals.advantages, strict=True)]
    )
    assert np.concatenate(ratio).max() > 1.05 > 0.95 > np.concatenate(ratio).min()
    assert metrics["policy_loss"] == pytest.approx(losses.mean(), rel=1e-3)
    late.state = state
    fresh = [one._replace(version=state.version) for one in drawn]
    assert late.update(fresh, iteration=0)["approx_kl"] > 1e-4


def test_resuming_is_exact(learner: Learner, initial: LearnerState, designs: list[Design]) -> None:
    learner.state = initial
    first, second = (played_episodes(designs, 32, seed, env=ENV) for seed in (1, 2))
    learner.update(first, iteration=0)
    middle = jax.device_get(learner.state)
    learner.update(second, iteration=1)
    straight = jax.device_get(learner.state)
    learner.state = jax.tree.map(np.array, middle)
    learner.update(second, iteration=1)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(learner.state), straight)
    assert int(straight.version) == 2


def test_nothing_is_compiled_after_the_first_iteration(
    learner: Learner, initial: LearnerState, designs: list[Design]
) -> None:
    learner.state = initial
    learner.update(played_episodes(designs, 32, 0, env=ENV), iteration=0)
    traces = learner.trace_count
    for iteration in range(1, 4):
        learner.update(played_episodes(designs, 32, iteration, env=ENV), iteration=iteration)
    assert learner.trace_count == traces


def test_steps_that_are_not_finite_are_skipped_and_counted(
    learner: Learner, initial: LearnerState, designs: list[Design]
) -> None:
    learner.state = initial
    episodes = played_episodes(designs, 32, 0, env=ENV)
    episodes[5].log_probabilities[0] = np.nan
    metrics = learner.update(episodes, iteration=0)
    assert metrics["skipped_steps"] == PPO.epochs  # the sample is in one minibatch of each epoch
    assert metrics["gradient_steps"] > 0
    assert int(learner.state.trained.skipped) == PPO.epochs
    assert np.isfinite(_flat(learner.state)).all()
    assert np.isfinite(metrics["policy_loss"])


def test_eight_devices_do_what_one_does(learner: Learner, initial: LearnerState, designs: list[Design]) -> None:
    usual = dataclasses.replace(PPO, learning_rate=1e-3)
    learner = copy.copy(learner)
    learner._config, learner.state = usual, initial
    eight = Learner(POLICY, usual, ENV, designs, seed=0, mesh=make_mesh(jax.devices()[:8]))
    np.testing.assert_array_equal(_flat(eight.state), _flat(initial))
    steps = 0.0
    for iteration in range(2):
        episodes = played_episodes(designs, 32, iteration, env=ENV, version=0)  # too old for the second learner
        for one in (learner, eight):
            metrics = one.update(episodes, iteration=iteration)
        steps += metrics["gradient_steps"]
    assert steps >= 10
    assert np.abs(_flat(learner.state) - _flat(initial)).max() > 1e-3
    np.testing.assert_allclose(_flat(eight.state), _flat(learner.state), rtol=0, atol=1e-5)
    for leaf in jax.tree.leaves(eight.state.trained.params):
        assert len(leaf.sharding.device_set) == 8


def test_a_minibatch_that_does_not_divide_is_rejected(designs: list[Design]) -> None:
    uneven = dataclasses.replace(PPO, minibatch_size=12)
    with pytest.raises(ConfigError, match=r"minibatch_size=12: must be divisible by the 8 devices, such as 8 or 16"):
        Learner(POLICY, uneven, ENV, designs, seed=0, mesh=make_mesh(jax.devices()[:8]))


def test_episodes_of_other_designs_are_rejected(learner: Learner, designs: list[Design]) -> None:
    good = played_episodes(designs, 2, 0, env=ENV)
    with pytest.raises(ValueError, match="at least one"):
        learner.update([], iteration=0)
    with pytest.raises(ValueError, match=r"must be in \[0, 2\)"):
        learner.update([good[0]._replace(design=np.int32(2))], iteration=0)
    with pytest.raises(ValueError, match="longest takes"):
        learner.update([good[0]._replace(actions=good[0].actions[:-1])], iteration=0)


def test_rates_decay_linearly(learner: Learner, initial: LearnerState, designs: list[Design]) -> None:
    learner.state = initial
    episodes = played_episodes(designs, 32, 0, env=ENV)
    rates = [learner.update(episodes, iteration=iteration)["learning_rate"] for iteration in (0, 9, 20)]
    np.testing.assert_allclose(rates, [PPO.learning_rate, PPO.learning_rate * 0.1, PPO.learning_rate * 0.1])


def test_the_entropy_target_decays_quadratically(
    learner: Learner, initial: LearnerState, designs: list[Design]
) -> None:
    learner.state = initial
    played = played_episodes(designs, 32, 0, env=ENV)
    episodes = [one._replace(log_probabilities=0 * one.log_probabilities) for one in played]  # their entropy is 0
    found = [learner.update(episodes, iteration=iteration)["entropy_coefficient"] for iteration in (0, 3, 9, 20)]
    assert found == pytest.approx([PPO.entropy_target, PPO.entropy_target * 4 / 9, 0.001, 0.001])


def test_the_learning_rate_decays_with_the_time_where_that_is_ahead(
    learner: Learner, initial: LearnerState, designs: list[Design]
) -> None:
    learner.state = initial
    episodes = played_episodes(designs, 32, 0, env=ENV)
    rates = [
        learner.learn(learner.prepare(episodes), iteration=iteration, elapsed=elapsed)["learning_rate"]
        for iteration, elapsed in ((0, 0.0), (0, 1.0), (9, 0.0))
    ]
    assert rates == pytest.approx([PPO.learning_rate, 0.1 * PPO.learning_rate, 0.1 * PPO.learning_rate])


def test_a_fraction_of_the_samples_is_drawn_anew_each_epoch(
    learner: Learner, initial: LearnerState, designs: list[Design]
) -> None:
    half = copy.copy(learner)
    half._config, half.state = dataclasses.replace(PPO, sample_fraction=0.5), initial
    seen: list[np.ndarray] = []
    shared = half._minibatches

    def watch(order: np.ndarray, episodes: int, *, whole: bool = False) -> list[Minibatch]:
        if not whole:
            seen.append(order)
        return shared(order, episodes, whole=whole)

    half._minibatches = watch  # type: ignore[method-assign]
    episodes = played_episodes(designs, 32, 0, env=ENV)
    metrics = half.update(episodes, iteration=0)
    assert [len(order) for order in seen] == [int(metrics["samples"])] * PPO.epochs
    assert metrics["samples"] == math.ceil(sum(int(one.length) for one in episodes) / 2)
    assert set(seen[0]) != set(seen[1])
