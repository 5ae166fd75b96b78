"""The baseline that is regressed on the episodes so far."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

from placement.config import CostConfig, EnvConfig, PolicyConfig, PPOConfig
from placement.engine.observation import MAPS
from placement.engine.pool import make_pool
from placement.episode import Episode, signature
from placement.netlist.design import Design
from placement.ppo import baseline as module
from placement.ppo.baseline import FEATURES, SEGMENTS, Regression, no_episodes, predicted, wire_shares
from placement.ppo.learner import Learner
from placement.ppo.ppo import explained_variance
from tests.support.designs import random_design, square_canvas
from tests.support.episodes import played_episodes

POLICY = PolicyConfig(node_width=4, rounds=1, grid_width=4)
ENV = EnvConfig(soft_placer="none")
ONE = np.ones(1)


def _drawn(generator: np.random.Generator, *, drift: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns 48 episodes of 16 steps: three features that sum up the future; only the first two affect the reward."""
    each = generator.normal(size=(48, 16, 3)).astype(np.float32)
    before = np.cumsum(each, axis=1) - each + drift
    reward = (each[:, :, 0] - 0.5 * each[:, :, 1]).sum(axis=1) + drift
    return before, reward / np.float32(np.sqrt(20)), np.full(48, 16)


def _of(design: np.ndarray, lengths: np.ndarray) -> Episode:
    """Returns episodes of these designs and lengths."""
    return signature(0)._replace(design=design, length=lengths)


def _taught(iterations: int, *, seed: int = 0, drift: float = 0.0) -> tuple[Regression, list[float]]:
    generator, state, explained = np.random.default_rng(seed), no_episodes(1, 3), []
    for index in range(iterations):
        features, rewards, lengths = _drawn(generator, drift=drift * index)
        batch = _of(np.zeros(48, int), lengths)
        values, state = predicted(state, features, rewards, batch, macros=np.array([16]), unit=ONE)
        explained.append(explained_variance(values, np.repeat(rewards[:, None], 16, axis=1), lengths))
    return state, explained


def test_it_explains_what_can_be_known() -> None:
    """On average over the steps, half of an episode's reward is decided; the ridge removes some of it."""
    _, explained = _taught(8)
    assert explained[0] == pytest.approx(0, abs=1e-6)
    assert 0.25 < np.mean(explained[4:]) < 0.6


def test_the_progress_of_the_policy_is_not_mistaken_for_what_pays() -> None:
    _, explained = _taught(8, drift=3.0)
    assert 0.25 < np.mean(explained[4:]) < 0.6


def test_a_new_unit_of_the_rewards_changes_the_weights_with_it() -> None:
    state, _ = _taught(6)
    features, rewards, lengths = _drawn(np.random.default_rng(9))
    batch = _of(np.zeros(48, int), lengths)
    predict = functools.partial(predicted, state, features, batch=batch, macros=np.array([16]))
    old, _ = predict(rewards, unit=ONE)
    new, _ = predict(rewards / 2, unit=ONE * 2)
    spread = [values.std(axis=0)[4:].mean() for values in (old, new)]
    assert spread[1] == pytest.approx(spread[0] / 2, rel=0.1)


def test_episodes_of_other_lengths_and_designs_stay_apart() -> None:
    features, rewards, lengths = _drawn(np.random.default_rng(1))
    lengths = np.where(np.arange(48) < 4, 5, lengths)
    design = np.arange(48) % 2
    batch, macros = _of(design, lengths), np.array([16, 16, 16])
    values, state = predicted(no_episodes(3, 3), features, rewards, batch, macros=macros, unit=np.ones(3))
    assert not values[:4, 5:].any()
    assert state.steps.sum(axis=1).tolist() == [2 * 5 + 22 * 16, 2 * 5 + 22 * 16, 0]
    assert not state.gram[2].any()
    assert state.gram.shape == (3, SEGMENTS, 3, 3)


def test_designs_may_share_their_weights() -> None:
    """The regression over all designs is the sum of those of each design, about its own means."""
    features, rewards, lengths = _drawn(np.random.default_rng(1))
    batch, macros = _of(np.arange(48) % 2, lengths), np.array([16, 16])
    _, apart = predicted(no_episodes(2, 3), features, rewards, batch, macros=macros, unit=np.ones(2))
    _, together = predicted(no_episodes(1, 3), features, rewards, batch, macros=macros, unit=np.ones(1))
    for shared, own in zip(together, apart, strict=True):
        np.testing.assert_allclose(shared[0], own.sum(axis=0), rtol=1e-5)


@pytest.fixture(scope="module")
def designs() -> list[Design]:
    return [random_design(2, hard=6, soft=3, ports=3, nets=20, canvas=square_canvas(6, 5))]


def _learner(designs: list[Design]) -> Learner:
    return Learner(POLICY, PPOConfig(minibatch_size=40), ENV, designs, seed=0)


@pytest.fixture(scope="module")
def learner(designs: list[Design]) -> Learner:
    """Returns one learner for the tests that do not change its state, so that it compiles once."""
    return _learner(designs)


def _features(learner: Learner, episodes: list[Episode]) -> np.ndarray:
    prepared = learner.prepare(episodes)
    lengths, actions = prepared.batch.length, np.maximum(prepared.batch.actions, 0)
    energy = learner._energies(prepared.designs.inputs, prepared.observation, lengths)
    given = (*prepared.designs[:2], prepared.observation, energy, actions, lengths)
    return np.asarray(learner._history(*given))


def test_features_know_nothing_of_what_comes(learner: Learner, designs: list[Design]) -> None:
    """A baseline that depended on the step's own action would bias the gradient."""
    whole = played_episodes(designs, 32, 0, env=ENV)
    other = [first for first in whole if not first.dead_end][:2]
    cut = [
        one._replace(length=np.int32(3), actions=np.where(np.arange(len(one.actions)) < 3, one.actions, -1))
        for one in other
    ]
    seen, before = _features(learner, other), _features(learner, cut)
    assert seen.shape[2] == FEATURES
    np.testing.assert_allclose(before[:, :3], seen[:, :3], rtol=1e-5, atol=1e-5)
    assert np.abs(seen[:, 1:4]).max() > 0.1


def test_features_do_not_depend_on_how_many_episodes_are_looked_at_at_once(
    learner: Learner, designs: list[Design], monkeypatch: pytest.MonkeyPatch
) -> None:
    episodes = played_episodes(designs, 7, 0, env=ENV)
    one_by_one = _features(learner, episodes)
    monkeypatch.setattr(module, "_episodes_at_once", lambda: 3)  # and one more
    np.testing.assert_allclose(_features(_learner(designs), episodes), one_by_one, rtol=1e-5, atol=1e-5)


def test_the_cost_of_random_episodes_is_explained() -> None:
    """Over all steps, including the first, before which nothing is decided; the last macros complete most nets."""
    wired = [random_design(4, hard=14, soft=0, ports=8, nets=60, canvas=square_canvas(8, 8))]
    env = EnvConfig(soft_placer="none", cost=CostConfig(density=0.0, congestion=0.0))
    learner = _learner(wired)
    explained = [
        learner.update(played_episodes(wired, 48, seed, env=env), iteration=0)["explained_variance"]
        for seed in range(9)
    ]
    assert np.mean(explained[4:]) >= 0.15, explained


def test_it_travels_with_the_state(learner: Learner, designs: list[Design]) -> None:
    learner.update(played_episodes(designs, 16, 0, env=ENV), iteration=0)
    state = jax.device_get(learner.state)
    assert state.baseline.steps.sum() > 0


def test_wire_mask_times_shares_adds_up_to_the_wirelength_cost() -> None:
    """Without soft macros, the steps' added wirelengths differ between episodes by as much as the total cost."""
    design = random_design(3, hard=5, soft=0, ports=4, nets=12, canvas=square_canvas(8, 6))
    pool = make_pool(design, 6, config=EnvConfig(soft_placer="none"))
    shares = wire_shares([design], pool.spec.steps)
    generator = np.random.default_rng(0)
    (observation, _), added = pool.reset(), np.zeros(6)
    for step in range(pool.spec.steps):
        legal = observation["mask"].reshape(6, -1)
        actions = (generator.random(legal.shape) * legal).argmax(axis=1).astype(np.int32)
        wire = observation["maps"][:, MAPS.index("wire_mask")].reshape(6, -1)
        added += wire[np.arange(6), actions] * shares[0, step]
        observation, _, _, _, info = pool.step(actions)
    placed = ~info["dead_end"]
    cost = info["costs"][placed, 1]
    assert len(cost) >= 3 and np.ptp(cost) > 0.01
    np.testing.assert_allclose(added[placed] - added[placed][0], cost - cost[0], atol=1e-5)
