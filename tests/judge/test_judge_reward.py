"""A judge that pays episodes: what it says is the reward; what does not go with it is refused."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from placement.config import (
    ConfigError,
    CostConfig,
    EnvConfig,
    PPOConfig,
    RuntimeConfig,
    TrainConfig,
)
from placement.judge.estimate import read_judge
from placement.judge.geometry import Viewer
from placement.judge.reward import JudgedReward, make_reward
from placement.netlist.load import load
from placement.runtimes import local

ENV = EnvConfig(soft_placer="annealed")


def config(run_dir: Path, **changed: object) -> TrainConfig:
    settings = TrainConfig(
        design=("clustered40",),
        run_dir=str(run_dir),
        judge="base",
        env=ENV,
        ppo=PPOConfig(iterations=1, episodes_per_iteration=4, minibatch_size=40),
        runtime=RuntimeConfig(envs_per_actor=4, evaluate_every=0),
        flips=False,
    )
    return dataclasses.replace(settings, **changed)


def test_the_longer_the_routes_the_less_it_pays() -> None:
    design = load("clustered40")
    reward = make_reward("base", [load("toy6"), design])
    assert isinstance(reward, JudgedReward)
    ensemble, viewer = read_judge("base"), Viewer(design)
    hard = design.netlist.hard
    swapped = design.initial.moved(hard, design.initial.x[hard][::-1], design.initial.y[hard][::-1])
    for placement in (design.initial, swapped):
        assert reward(1, placement) == pytest.approx(-ensemble.levels(viewer, [placement])[0])
    assert reward(1, design.initial) > reward(1, swapped)


def test_without_a_judge_the_cost_pays() -> None:
    assert make_reward("none", [load("toy6")]) is None


def test_a_run_is_paid_by_the_judge(tmp_path: Path) -> None:
    result = local.run(config(tmp_path / "run"))
    assert result.iterations == 1
    (row,) = csv.DictReader((tmp_path / "run" / "metrics.csv").read_text(encoding="utf-8").splitlines())
    paid, cost = float(row["reward_mean"]), float(row["cost_mean"])
    assert np.isfinite(paid) and abs(paid + cost) > 0.5  # a log of a wirelength, no cost
    levels = read_judge("base").levels(Viewer(load("clustered40")), [load("clustered40").initial])
    assert paid == pytest.approx(-levels[0], abs=1.0)


def test_a_judge_that_is_not_there_is_refused_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"judge='gone\.npz': must be a file of `judge train`, or base, or none"):
        local.run(config(tmp_path / "run", judge="gone.npz"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"env": dataclasses.replace(ENV, soft_placer="analytic")}, r"env\.soft_placer='analytic': must be annealed"),
        ({"env": dataclasses.replace(ENV, cost=CostConfig())}, r"env\.cost='proxy': must be chip with judge"),
        ({"env": dataclasses.replace(ENV, cost_terms=("a.so:1",))}, r"env\.cost_terms=\['a\.so:1'\]: must be empty"),
    ],
)
def test_what_does_not_go_with_a_judge_is_refused(changed: dict[str, object], told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=told):
        config(tmp_path / "run", **changed)
