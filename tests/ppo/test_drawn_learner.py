"""The learner on drawn designs: weights of episodes, and designs made again from their numbers."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from placement.config import EnvConfig, PolicyConfig, PPOConfig
from placement.engine.drawn_designs import DrawnDesigns
from placement.engine.pool import make_pool
from placement.engine.state import EpisodeRenderer
from placement.episode import Episode, stack_episodes
from placement.netlist.generators.synthetic import SyntheticDesigns
from placement.ppo.drawn_learner import DrawnLearner
from tests.support.episodes import played_episodes

POLICY = PolicyConfig(node_width=4, rounds=1, grid_width=4)
PPO = PPOConfig(iterations=10, sample_fraction=1.0, minibatch_size=16)
ENV = EnvConfig(soft_placer="none")
DISTRIBUTION = SyntheticDesigns(macros=(3, 5), soft_macros=(1.0, 2.0))


def _drawn(kept: int = 100) -> DrawnDesigns:
    return DrawnDesigns(DISTRIBUTION, ENV, kept=kept)


def _episodes(designs: DrawnDesigns, numbers: list[int], *, each: int = 4) -> list[Episode]:
    """Returns random episodes, `each` of every design, that name their designs by number, on the drawn grid."""
    _, columns, steps = designs.shape
    found = []
    for number in numbers:
        design = designs[number]
        own = design.action_canvas
        for episode in played_episodes([design], each, number, env=ENV):
            row, column = np.divmod(np.maximum(episode.actions, 0), own.columns)
            actions, chances = np.full(steps, -1, np.int32), np.zeros(steps, np.float32)
            actions[: episode.length] = (row * columns + column)[: episode.length]
            chances[: episode.length] = episode.log_probabilities[: episode.length]
            named = np.array(number, np.int32)
            found.append(episode._replace(design=named, actions=actions, log_probabilities=chances))
    return found


@pytest.fixture(scope="module")
def learner() -> DrawnLearner:
    return DrawnLearner(POLICY, PPO, ENV, _drawn(), seed=0)


def test_rewards_count_by_the_difference_to_their_design_s_mean(learner: DrawnLearner) -> None:
    batch = stack_episodes(_episodes(_drawn(), [0, 1]))
    reward = np.array([-1.0, -2.0, -3.0, -4.0, -10.0, -10.0, -13.0, -5.0], np.float32)
    dead_end = np.arange(8) == 3
    credited = learner._credited(batch._replace(design=np.repeat([0, 1], 4), reward=reward, dead_end=dead_end))
    assert credited.reward.tolist() == [1.0, 0.0, -1.0, -2.0, -0.5, -0.5, -3.5, 4.5]
    assert not credited.design.any()


def test_a_replay_shows_each_design_in_the_corner_of_the_largest(learner: DrawnLearner) -> None:
    designs, numbers = _drawn(), [7, 2]
    episodes = _episodes(designs, numbers, each=2)
    buffer = learner.buffer(len(episodes))
    learner.render(episodes[:1], buffer)
    learner.render(episodes[1:], buffer, at=1)
    prepared = learner.load(episodes, buffer)
    assert prepared.batch.design.tolist() == [1, 1, 0, 0]
    assert np.asarray(prepared.observation.design).reshape(4, -1)[:, 0].tolist() == [1, 1, 0, 0]
    for index, episode in enumerate(episodes):
        design, length = designs[int(episode.design)], int(episode.length)
        own = design.action_canvas
        row, column = np.divmod(episode.actions[:length], designs.shape[1])
        alone = EpisodeRenderer([design]).render([0], [(row * own.columns + column).tolist()], [length])
        maps = buffer.maps[index, :length]
        assert np.array_equal(maps[:, :, : own.rows, : own.columns], alone.maps[0, :length])
        assert not maps[:, :, own.rows :].any()
        assert not maps[:, :, :, own.columns :].any()
        inputs = prepared.designs.inputs
        assert int(inputs.macros[prepared.batch.design[index]]) == len(design.placing_order)


def test_other_designs_need_no_new_compilation_and_none_has_to_be_kept(learner: DrawnLearner) -> None:
    """A learner that caches one design makes the others again, and learns the same."""
    initial, learned = jax.device_get(learner.state), []
    for kept in (100, 1):
        learner.state, learner._drawn = initial, _drawn(kept)
        batches = [_episodes(_drawn(), numbers) for numbers in ([0, 1], [2, 3])]
        learned.append([learner.update(episodes, iteration=number) for number, episodes in enumerate(batches)])
    assert learned[0] == learned[1]
    assert learned[0][0]["gradient_steps"] > 0
    assert learner.trace_count == 1
    before, after = jax.tree.leaves(initial.trained.params), jax.tree.leaves(learner.parameters())
    assert any(not np.array_equal(old, new) for old, new in zip(before, after, strict=True))


def test_a_pool_of_a_given_shape_shows_what_the_design_s_own_does() -> None:
    designs = _drawn()
    rows, columns, _ = designs.shape
    with (
        make_pool(designs[3], 1, config=ENV, num_threads=1) as own,
        make_pool(designs[3], 1, config=ENV, num_threads=1, shape=designs.shape) as padded,
    ):
        small, large = own.reset()[0]["mask"][0], padded.reset()[0]["mask"][0]
        assert large.shape == (rows, columns)
        assert np.array_equal(large[: small.shape[0], : small.shape[1]], small)
        assert large.sum() == small.sum()
    with pytest.raises(
        ValueError, match=r"a design of .* was drawn, which exceeds the bounds of 1 rows, 1 columns and 1 macros"
    ):
        make_pool(designs[3], 1, config=ENV, shape=(1, 1, 1))
