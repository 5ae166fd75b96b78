"""The configuration: presets and runtimes set the documented values, and wrong settings are rejected by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from placement.config import EPISODE_SOFT_PLACERS, ConfigError, TrainConfig, build
from placement.engine.soft import ANNEALED, SOFT_PLACERS
from placement.runtimes.public import store_defaults

CONFIGS = Path(__file__).parents[1] / "configs"


def composed(*overrides: str) -> dict:
    store_defaults()
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        values = OmegaConf.to_container(compose("config", overrides=list(overrides)), resolve=True)
    assert isinstance(values, dict)
    return {**values, "run_dir": values["run_dir"] or "runs/test"}


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONFIGS / "preset").glob("*.yaml")))
def test_every_preset_builds(name):
    config = build(TrainConfig, composed(f"preset={name}"))
    assert config != build(TrainConfig, composed())
    assert (config.ppo.clip, config.run_dir) == (0.2, "runs/test")


def test_presets_can_be_joined_and_the_command_line_comes_last():
    config = build(TrainConfig, composed("preset=[ariane,test]", "runtime=ray", "seed=3"))
    assert (config.design, config.env.cost.name, config.seed) == (("toy6",), "proxy", 3)
    assert config.runtime.max_staleness == 1


DIFFERENT = {
    # The values in the files.
    "runtime=accelerator": {
        "runtime.envs_per_actor": 1024,
        "runtime.evaluate_every": 20,
    },
    "runtime=ray": {
        "runtime.name": "ray",
        "runtime.actors": 2,
        "runtime.max_staleness": 1,
        "runtime.evaluator": True,
        **{f"runtime.roles.{role}.memory_mb": 4096 for role in ("actor", "shard", "cache", "evaluator")},
    },
}


def flat(values: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """Returns nested settings by their dotted keys."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        result |= flat(value, f"{at}{key}.") if isinstance(value, Mapping) else {f"{at}{key}": value}
    return result


DEFAULTS = flat(dataclasses.asdict(TrainConfig(design=("clustered40",), run_dir="runs/test")))


@pytest.mark.parametrize("choice", ["", *DIFFERENT])
def test_defaults_are_the_dataclasses_and_a_runtime_sets_little(choice):
    shown = flat(composed(*choice.split()))
    shown["design"] = (shown["design"],)
    shown["env.cost_terms"] = tuple(shown["env.cost_terms"])
    expected = {**DEFAULTS, **DIFFERENT.get(choice, {})}
    assert shown == {key: expected[key] for key in shown}


@pytest.mark.parametrize("runtime", ["local", "ray"])
def test_each_runtime_builds(runtime):
    assert build(TrainConfig, composed(f"runtime={runtime}")).runtime.name == runtime


def test_several_designs():
    assert build(TrainConfig, composed("design=[toy6,planted20]")).design == ("toy6", "planted20")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("ppo.clip=0", "ppo.clip=0"),
        ("ppo.minibatch_size=many", "ppo.minibatch_size='many': must be of type int"),
        ("ppo.epochs=1.5", "ppo.epochs=1.5: must be of type int"),
        ("ppo.epochs=true", "ppo.epochs=True: must be of type int"),
        ("ppo.learning_rate=nan", "ppo.learning_rate=nan"),
        ("+ppo.epoch=1", "ppo.epoch: unknown setting; the settings are"),
        ("seed=-1", "seed=-1"),
        ("design=[]", "design"),
        (
            "design=synthetic:20",
            "design='synthetic:20': must be synthetic:MIN-MAX, numbers of macros, such as",
        ),
        ("design=synthetic:9-8", "synthetic:MIN-MAX"),
        ("design=[toy6,synthetic:6-8]", "one distribution alone, or names of designs"),
        ("design=synthetic:6-8 runtime=ray", "runtime='ray': must be local with design=synthetic:6-8"),
        ("design=synthetic:6-8 runtime.inference=central", "runtime.inference='central': must be local"),
        ("design=synthetic:6-8 runtime.envs_per_actor=6", "runtime.envs_per_actor=6: must be divisible by 4, the epis"),
        ("env.dead_end_penalty=1", "below 0"),
        ("env.soft_placer=foo", "env.soft_placer='foo': must be one of force_directed, analytic, analytic_fast, annea"),
        ("replay.name=disk", "auto, reverb or memory"),
        ("runtime.name=slurm", "local or ray"),
        ("runtime=ray replay.name=memory", "auto or reverb with runtime=ray"),
        ("runtime=ray runtime.staleness=never", "wait or drop"),
        ("runtime.shards=0", "runtime.shards=0: must be at least 1"),
        ("runtime.fan_out=1", "runtime.fan_out=1: must be at least 2"),
        ("runtime.roles.actor.memory_mb=-1", "runtime.roles.actor.memory_mb=-1: must be at least 0"),
        ("runtime=ray runtime.inference=central", "local with runtime=ray, because sending every observation"),
        ("runtime.inference=shared", "local or central"),
        ("runtime.env_threads=-1", "runtime.env_threads=-1"),
    ],
)
def test_wrong_settings_are_rejected_by_name(override, message):
    with pytest.raises(ConfigError) as caught:
        build(TrainConfig, composed(*override.split()))
    assert message in str(caught.value)


def test_an_episode_may_end_with_every_soft_placer_of_the_engine():
    assert (*SOFT_PLACERS, ANNEALED, "none") == EPISODE_SOFT_PLACERS


def test_a_missing_setting_is_named():
    with pytest.raises(ConfigError, match="run_dir: is required"):
        build(TrainConfig, {"design": "toy6"})
