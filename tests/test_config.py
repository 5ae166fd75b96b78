"""The configuration: the files set what the dataclasses do, and wrong settings are refused by name."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from placement.config import EPISODE_SOFT_PLACERS, ConfigError, TrainConfig, build
from placement.engine.soft import ANNEALED, SOFT_PLACERS

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


DIFFERENT = {
    # What the files set otherwise than the dataclasses, and why.
    "replay=reverb": {"replay.name": "reverb"},
    "replay=memory": {"replay.name": "memory"},
    "runtime=accelerator": {
        "runtime.envs_per_actor": 1024,
        "runtime.env_threads": 0,
        "runtime.env_parts": 2,
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
    """Nested settings by their dotted keys."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        result |= flat(value, f"{at}{key}.") if isinstance(value, Mapping) else {f"{at}{key}": value}
    return result


DEFAULTS = flat(dataclasses.asdict(TrainConfig(design=("clustered40",), run_dir="runs/test")))


@pytest.mark.parametrize("choice", ["", *DIFFERENT])
def test_the_files_set_what_the_dataclasses_do(choice):
    shown = flat(composed(*choice.split()))
    shown["design"] = (shown["design"],)
    shown["env.cost_terms"] = tuple(shown["env.cost_terms"])
    expected = {**DEFAULTS, **DIFFERENT.get(choice, {})}
    assert shown == {key: expected[key] for key in shown}


def test_every_setting_is_shown_in_a_file():
    shown = flat(composed()).keys() | flat(composed("runtime=ray")).keys()
    assert shown == DEFAULTS.keys()
    local = set(composed()["runtime"])
    assert not local & {"shards", "caches", "bind", "roles"}, "a setting without effect is not offered"


@pytest.mark.parametrize(
    "path",
    sorted(path for path in CONFIGS.glob("*/*.yaml") if path.parent.name != "shared"),
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_the_file_says_what_each_setting_means(path):
    for above, line in itertools.pairwise(["", *path.read_text().splitlines()]):
        assert "#" in line or above.startswith("#") or line.startswith(" "), f"{path.name}: {line}"


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
        ("env.soft_placer=foo", "env.soft_placer='foo': must be one of force_directed, analytic, analytic_fast, annea"),
        ("replay.name=disk", "auto, reverb or memory"),
        ("runtime.name=slurm", "local or ray"),
        ("runtime=ray replay=memory", "auto or reverb with runtime=ray"),
        ("+runtime.staleness=never", "wait or drop"),
        ("+runtime.shards=0", "runtime.shards=0: must be at least 1"),
        ("+runtime.fan_out=1", "runtime.fan_out=1: must be at least 2"),
        ("+runtime.roles.actor.memory_mb=-1", "runtime.roles.actor.memory_mb=-1: must be at least 0"),
        ("+runtime.wire_dtype=float16", "float32 or bfloat16"),
        ("runtime=ray runtime.inference=central", "local with runtime=ray: its actors are processes"),
        ("runtime.inference=shared", "local or central"),
        ("runtime.env_parts=3", "runtime.env_parts=3: must be a divisor of runtime.envs_per_actor=16"),
        ("runtime.env_threads=-1", "runtime.env_threads=-1"),
    ],
)
def test_wrong_settings_are_refused_by_name(override, message):
    with pytest.raises(ConfigError) as caught:
        build(TrainConfig, composed(*override.split()))
    assert message in str(caught.value)


def test_an_episode_may_end_with_every_soft_placer_of_the_engine():
    assert (*SOFT_PLACERS, ANNEALED, "none") == EPISODE_SOFT_PLACERS


def test_a_missing_setting_is_named():
    with pytest.raises(ConfigError, match="run_dir: is required"):
        build(TrainConfig, {"design": "toy6"})
