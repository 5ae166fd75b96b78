"""The input pipeline: bit-identical to the results without it; bad episodes; waits that end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from placement.config import EnvConfig, PolicyConfig, PPOConfig
from placement.episode import Episode
from placement.netlist.design import Design
from placement.ppo.learner import Learner
from placement.replay.in_process import MemoryReplay
from placement.replay.replay import ReplayClosed, ReplayTimeout
from placement.training.input_pipeline import InputPipeline
from tests.support.designs import four_macros, random_design, square_canvas
from tests.support.episodes import counts, played_episodes
from tests.support.waiting import wait_until

POLICY = PolicyConfig(node_width=4, rounds=1, grid_width=4)
PPO = PPOConfig(iterations=10, epochs=2, minibatch_size=40)
ENV = EnvConfig(soft_placer="none")
EPISODES, ITERATIONS = 12, 4
LONG = 60.0


@pytest.fixture(scope="module")
def designs() -> list[Design]:
    return [four_macros(), random_design(2, hard=6, soft=3, ports=3, nets=20, canvas=square_canvas(6, 5))]


@pytest.fixture(scope="module")
def learner(designs: list[Design]) -> Learner:
    return Learner(POLICY, PPO, ENV, designs, seed=0)


@pytest.fixture
def replay(designs: list[Design]) -> Iterator[MemoryReplay]:
    steps = max(len(design.placing_order) for design in designs)
    made = MemoryReplay(capacity=1000, steps=steps, designs=2)
    yield made
    made.close()


def episodes_of(designs: list[Design], count: int) -> list[Episode]:
    played = played_episodes(designs, count, 7, env=ENV)
    return [one._replace(identity=np.array([0, number])) for number, one in enumerate(played)]


def _pull(pipeline: InputPipeline) -> list[int]:
    return counts(pipeline.next(timeout=LONG).episodes)


def test_the_results_are_the_same_to_the_last_bit(
    learner: Learner, replay: MemoryReplay, designs: list[Design]
) -> None:
    initial = jax.device_get(learner.state)
    episodes = episodes_of(designs, EPISODES * ITERATIONS)
    plain = []
    for iteration in range(ITERATIONS):
        own = episodes[iteration * EPISODES : (iteration + 1) * EPISODES]
        plain.append(learner.update(own, iteration=iteration))
    expected = jax.device_get(learner.state)
    learner.state = initial
    for episode in episodes:
        replay.write(episode, timeout=LONG)
    piped = []
    with InputPipeline(replay, learner, episodes=EPISODES) as pipeline:
        for iteration in range(ITERATIONS):
            batch = pipeline.next(timeout=LONG)
            assert counts(batch.episodes) == list(range(iteration * EPISODES, (iteration + 1) * EPISODES))
            piped.append(learner.learn(batch.prepared, iteration=iteration))
    assert piped == plain
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(learner.state), expected)


def test_it_reads_one_batch_ahead_and_no_more(learner: Learner, replay: MemoryReplay, designs: list[Design]) -> None:
    for episode in episodes_of(designs, 5 * 6):
        replay.write(episode, timeout=LONG)
    with InputPipeline(replay, learner, episodes=6) as pipeline:
        assert _pull(pipeline) == list(range(6))
        wait_until(lambda: replay.size() == 3 * 6)
        assert _pull(pipeline) == list(range(6, 12))
        wait_until(lambda: replay.size() == 2 * 6)


def test_a_well_formed_episode_with_an_illegal_action_is_rejected_and_counted(
    learner: Learner, replay: MemoryReplay, designs: list[Design]
) -> None:
    episodes = episodes_of(designs, 8)
    actions = episodes[3].actions.copy()
    actions[1] = actions[0]  # a macro on top of another
    episodes[3] = episodes[3]._replace(actions=actions)
    for episode in episodes:
        replay.write(episode, timeout=LONG)
    with InputPipeline(replay, learner, episodes=7) as pipeline:
        batch = pipeline.next(timeout=LONG)
        assert counts(batch.episodes) == [0, 1, 2, 4, 5, 6, 7]
        assert pipeline.rejected == 1
        expected = learner.prepare([episode for episode in episodes if episode is not episodes[3]])
        jax.tree.map(np.testing.assert_array_equal, batch.prepared, expected)


def test_too_few_episodes_end_the_wait_and_stay_for_the_next(
    learner: Learner, replay: MemoryReplay, designs: list[Design]
) -> None:
    episodes = episodes_of(designs, 12)
    with InputPipeline(replay, learner, episodes=12) as pipeline:
        for episode in episodes[:9]:
            replay.write(episode, timeout=LONG)
        wait_until(lambda: replay.size() == 1)  # a chunk of eight was read
        with pytest.raises(ReplayTimeout, match=r"the learner waited 0\.05 s for 12 episodes and 8 arrived.*actors"):
            pipeline.next(timeout=0.05)
        for episode in episodes[9:]:
            replay.write(episode, timeout=LONG)
        assert _pull(pipeline) == list(range(12))


def test_a_closed_replay_ends_the_wait(learner: Learner, replay: MemoryReplay) -> None:
    with InputPipeline(replay, learner, episodes=3) as pipeline:
        replay.close()
        with pytest.raises(ReplayClosed):
            pipeline.next(timeout=LONG)


def test_an_error_of_the_thread_reaches_the_learner_and_the_thread_ends(
    learner: Learner, designs: list[Design]
) -> None:
    replay = MemoryReplay(capacity=9, steps=len(episodes_of(designs, 1)[0].actions) + 3)  # episodes of another run
    for episode in episodes_of(designs, 3):
        longer = {"actions": -1, "log_probabilities": 0}
        padded = {name: np.pad(getattr(episode, name), (0, 3), constant_values=by) for name, by in longer.items()}
        replay.write(episode._replace(**padded), timeout=LONG)
    with (
        InputPipeline(replay, learner, episodes=3) as pipeline,
        pytest.raises(ValueError, match=r"episode of \d steps"),
    ):
        pipeline.next(timeout=LONG)
    assert not any(thread.name.startswith("input pipeline") for thread in threading.enumerate())
