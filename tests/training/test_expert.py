"""Search improves episodes, and they stay on the grid."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from placement.config import ConfigError, EnvConfig, ExpertConfig, PolicyConfig, PPOConfig, RuntimeConfig, TrainConfig
from placement.engine.pool import make_pool
from placement.netlist.design import Design
from placement.netlist.load import load
from placement.ppo.elites import no_elites, updated_elites
from placement.ppo.trajectory import stack_episodes
from placement.report.run_folder import read_metrics
from placement.runtimes.local import run
from placement.training.expert import Expert, onto_grid
from tests.support.episodes import played_episodes

ENV = EnvConfig()


@pytest.fixture(scope="module")
def design() -> Design:
    return load("planted20")


def test_lessons_are_better_than_what_they_came_from(design: Design) -> None:
    episodes = [one for one in played_episodes([design], 12, 0, env=ENV) if not one.dead_end]
    elites = updated_elites(no_elites(1, 2, len(design.placing_order)), stack_episodes(episodes))
    expert = Expert([design], ENV, ExpertConfig(every=5, placements=2, moves=20_000), seed=0)
    lessons = expert.lessons(elites, 5)
    assert lessons
    assert max(float(one.reward) for one in lessons) > elites.reward[0, 0] + 0.01
    again = make_pool(design, 1, config=ENV)
    again.reset()
    for action in lessons[0].actions:
        _, reward, terminated, _, _ = again.step([action])
    assert terminated[0] and reward[0] == pytest.approx(float(lessons[0].reward))
    assert [expert.due(iteration) for iteration in (4, 5, 10)] == [False, True, True]


def test_a_placement_on_the_grid_is_played_as_it_is(design: Design) -> None:
    pool = make_pool(design, 1, config=ENV)
    episode = next(one for one in played_episodes([design], 12, 1, env=ENV) if not one.dead_end)
    pool.reset()
    for action in episode.actions:
        pool.step(np.array([action], np.int32))
    found = onto_grid(pool, pool.placement(0))
    assert found is not None
    np.testing.assert_array_equal(found.actions, episode.actions)
    assert float(found.reward) == pytest.approx(float(episode.reward))


def test_a_run_with_an_expert_counts_lessons(tmp_path: Path) -> None:
    config = TrainConfig(
        design=("toy6",),
        run_dir=str(tmp_path / "run"),
        policy=PolicyConfig(node_width=4, rounds=1, grid_width=4),
        ppo=PPOConfig(iterations=4, episodes_per_iteration=8, minibatch_size=16, self_imitation=0.5),
        runtime=RuntimeConfig(envs_per_actor=4, evaluate_every=0),
        expert=ExpertConfig(every=2, placements=2, moves=20_000),
    )
    run(config)
    lessons = read_metrics(tmp_path / "run" / "metrics.csv")["learner_lessons"]
    assert len(lessons) == 4
    assert lessons[0] == lessons[2] == 0
    assert lessons[1] + lessons[3] > 0


def test_an_expert_without_imitation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ppo\.self_imitation=0\.0"):
        TrainConfig(design=("toy6",), run_dir=str(tmp_path), expert=dataclasses.replace(ExpertConfig(), every=3))
