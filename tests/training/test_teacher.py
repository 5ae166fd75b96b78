"""A placement of mixed size becomes a lesson, and a policy that imitates it places its design so."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import jax
import pytest

from placement.cli.main import main
from placement.config import (
    ConfigError,
    EnvConfig,
    ExpertConfig,
    PolicyConfig,
    PPOConfig,
    RuntimeConfig,
    TrainConfig,
)
from placement.engine.pool import make_pool
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from placement.policy.agent import Agent
from placement.policy.order import as_played
from placement.ppo.learner import Learner
from placement.report.run_folder import read_metrics
from placement.runtimes.local import run
from placement.runtimes.ray.host_assignment import require_shares
from placement.training.evaluator import Evaluator
from placement.training.teacher import ACTOR, Teacher

ENV = EnvConfig(off_grid=True, action_scale=2)
POLICY = PolicyConfig(node_width=8, rounds=1, grid_width=8)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("designs") / "made"
    words = ["cells=300", "macros=5", "ports=12", "macro_pins=8", "seed=3"]
    assert main(["generate", "flat", f"out={folder}", *words]) == 0
    return folder


def config_of(made: Path, folder: Path) -> TrainConfig:
    return TrainConfig(
        design=(str(made),),
        run_dir=str(folder),
        env=ENV,
        policy=POLICY,
        ppo=PPOConfig(iterations=1, episodes_per_iteration=8, minibatch_size=16, learning_rate=1e-3),
        runtime=RuntimeConfig(envs_per_actor=4, evaluate_every=0),
        expert=ExpertConfig(mixed_size=1, passes=30),
    )


def test_the_cheapest_lesson_is_imitated_until_the_policy_places_its_design_so(made: Path) -> None:
    design = as_played(load(str(made)), ENV)
    told: list[str] = []
    teacher = Teacher([str(made)], [design], ENV, count=2, seed=0)
    (lesson,) = teacher.lessons(stopped=lambda: False, note=told.append)
    assert int(lesson.identity[0]) == ACTOR
    assert len(told) == 1 and f"{-float(lesson.reward):.4f}" in told[0]
    pool = make_pool([design], 1, config=ENV)
    pool.reset()
    for action in lesson.actions:
        _, reward, terminated, _, _ = pool.step([action])
    assert terminated[0] and reward[0] == pytest.approx(float(lesson.reward))

    learner = Learner(POLICY, PPOConfig(minibatch_size=16), ENV, [design], seed=0)
    untaught = learner.parameters()
    assert 0 <= learner.imitate([lesson], passes=150, learning_rate=3e-3) < 1
    assert int(learner.state.version) == 0
    evaluator = Evaluator(Agent(POLICY, [design]), [design], env=ENV)
    actions = [evaluator.evaluate(one, jax.random.key(0))[0].actions for one in (untaught, learner.parameters())]
    assert actions[1] == tuple(lesson.actions.tolist()) != actions[0]


def test_a_run_begins_with_what_it_was_taught(made: Path, tmp_path: Path) -> None:
    config = config_of(made, tmp_path / "taught")
    alone = dataclasses.replace(config, run_dir=str(tmp_path / "alone"), expert=ExpertConfig())
    run(config)
    run(alone)
    first, other = (read_metrics(Path(one.run_dir) / "metrics.csv")["learner_entropy"] for one in (config, alone))
    assert first[0] < other[0]  # the first episodes are drawn by a policy that has imitated


def test_who_asks_to_stop_while_lessons_are_made_gets_none(made: Path) -> None:
    design, stopped = as_played(load(str(made)), ENV), threading.Event()
    stopped.set()
    teacher = Teacher([str(made)], [design], ENV, count=1, seed=0)
    with pytest.raises(KeyboardInterrupt):
        teacher.lessons(stopped=stopped.is_set, note=lambda text: None)


def test_a_design_without_its_flat_netlist_is_refused_before_anything_starts(tmp_path: Path) -> None:
    config = dataclasses.replace(config_of(Path("toy6"), tmp_path / "run"), env=EnvConfig())
    with pytest.raises(DesignError, match="no flat netlist"):
        run(config)
    assert not (tmp_path / "run").exists()


def test_several_learner_hosts_are_not_taught(made: Path, tmp_path: Path) -> None:
    config = config_of(made, tmp_path)
    several = dataclasses.replace(
        config, runtime=dataclasses.replace(config.runtime, name="ray", actors=2, shards=2, learners=2)
    )
    with pytest.raises(ConfigError, match=r"expert\.mixed_size=1: must be 0 with several learner hosts"):
        require_shares(several)
