"""The configuration: the shipped YAML equals the dataclasses' defaults, and wrong settings are refused by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from placement.config import (
    ConfigError,
    EnvConfig,
    PolicyConfig,
    PPOConfig,
    ReplayConfig,
    RoleConfig,
    RolesConfig,
    RuntimeConfig,
    TrainConfig,
    build,
)

CONFIGS = Path(__file__).parents[1] / "configs"


def composed(*overrides: str, name: str = "config") -> dict:
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        values = OmegaConf.to_container(compose(name, overrides=list(overrides)), resolve=True)
    assert isinstance(values, dict)
    return {**values, "run_dir": values["run_dir"] or "runs/test"}


@pytest.mark.parametrize("name", ["config", "test"])
def test_shipped_configurations_build(name):
    config = build(TrainConfig, composed(name=name))
    assert config.design and config.run_dir == "runs/test"


@pytest.mark.parametrize(
    ("group", "cls"),
    [
        ("env", EnvConfig),
        ("policy", PolicyConfig),
        ("ppo", PPOConfig),
        ("replay", ReplayConfig),
    ],
)
def test_every_setting_is_shown_in_yaml(group, cls):
    assert set(composed()[group]) == {field.name for field in dataclasses.fields(cls)}


def test_every_setting_of_the_runtimes_is_shown_in_yaml():
    shown = composed("runtime=ray")["runtime"]
    assert set(shown) == {field.name for field in dataclasses.fields(RuntimeConfig)}
    assert set(shown["roles"]) == {field.name for field in dataclasses.fields(RolesConfig)}
    for role in shown["roles"].values():
        assert set(role) == {field.name for field in dataclasses.fields(RoleConfig)}
    local = set(composed()["runtime"])
    assert local < set(shown), "what the local runtime has, the other one has too"
    assert not local & {"shards", "caches", "bind", "roles"}, "a setting without effect is not offered"


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
        ("+ppo.epoch=1", "ppo.epoch: no such setting; there are"),
        ("seed=-1", "seed=-1"),
        ("design=[]", "design"),
        ("env.dead_end_penalty=1", "below 0"),
        ("replay.name=disk", "auto, reverb or memory"),
        ("runtime.name=slurm", "local or ray"),
        ("runtime=ray replay=memory", "auto or reverb with runtime=ray"),
        ("+runtime.staleness=never", "wait or drop"),
        ("+runtime.shards=0", "runtime.shards=0: must be at least 1"),
        ("+runtime.fan_out=1", "runtime.fan_out=1: must be at least 2"),
        ("+runtime.roles.actor.memory_mb=-1", "runtime.roles.actor.memory_mb=-1: must be at least 0"),
        ("+runtime.wire_dtype=float16", "float32 or bfloat16"),
    ],
)
def test_wrong_settings_are_refused_by_name(override, message):
    with pytest.raises(ConfigError) as caught:
        build(TrainConfig, composed(*override.split()))
    assert message in str(caught.value)


def test_a_missing_setting_is_named():
    with pytest.raises(ConfigError, match="run_dir: is required"):
        build(TrainConfig, {"design": "toy6"})
