"""`macro-placement`: its list of commands, their help, their settings, and how mistakes end."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from placement.cli.command import _settings, overrides
from placement.cli.composition import nearest
from placement.cli.help import setting_keys
from placement.cli.main import COMMANDS, main
from placement.config import TrainConfig, build
from placement.netlist.load import data_folder

REQUIRED = {
    "design": "toy6",
    "bookshelf": "chip.aux",
    "checkpoint": "run",
    "axis": "x",
    "out": "here",
}


def settings_of(name: str):
    return TrainConfig if name == "train" else _settings(COMMANDS[name].function)


def test_the_overview_has_a_line_for_each_command(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in COMMANDS:
        assert re.search(rf"^  {name} +[A-Z].*\.$", text, flags=re.MULTILINE), name


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["search", "--help"], ["generate", "flat", "--help"]])
@pytest.mark.parametrize("buffered", [True, False])
def test_a_reader_that_leaves_early_is_no_error(words, buffered):
    """`macro-placement --help | head -1`, at its worst: the reader is gone before anything is written."""
    reads, writes = os.pipe()
    os.close(reads)
    options = [] if buffered else ["-u"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with os.fdopen(writes, "wb") as output:
        command = [sys.executable, *options, "-m", "placement", *words]
        done = subprocess.run(
            command, stdout=output, stderr=subprocess.PIPE, text=True, timeout=60, check=False, env=environment
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_every_setting(name, capsys):
    assert main([*name.split(), "--help"]) == 0
    text = capsys.readouterr().out
    for field in dataclasses.fields(settings_of(name)):
        assert re.search(rf"^{field.name}:", text, flags=re.MULTILINE), field.name
    assert "defaults:" not in text and "hydra:" not in text


@pytest.mark.parametrize("name", COMMANDS)
def test_the_keys_that_may_be_suggested_are_the_settings(name):
    keys = setting_keys(COMMANDS[name].config)
    assert {key for key in keys if "." not in key} == {field.name for field in dataclasses.fields(settings_of(name))}


def test_help_shows_the_chosen_option_of_a_group(capsys):
    assert main(["train", "--help", "runtime=ray"]) == 0
    assert "  fan_out: 16  # " in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "train"])
def test_the_defaults_in_configs_are_those_of_the_dataclass(name):
    with initialize_config_dir(str(data_folder("configs")), version_base="1.3"):
        shown = OmegaConf.to_container(compose(COMMANDS[name].config), resolve=True)
    cls = settings_of(name)
    names = {field.name for field in dataclasses.fields(cls)}
    assert set(shown) == names
    required = {key: value for key, value in REQUIRED.items() if key in names}
    given = {key: value for key, value in shown.items() if value is not None}
    for field in dataclasses.fields(cls):
        if field.default is dataclasses.MISSING and field.name in shown and shown[field.name] is not None:
            required[field.name] = shown[field.name]
    assert build(cls, {**given, **required}) == build(cls, required)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fly"], "no command 'fly'; there are train, evaluate"),
        (["evaluate"], "evaluate: design: is required"),
        (["legalise", "design=toy6", "blockages=[[0,0,5]]"], "legalise: blockages=[0.0, 0.0, 5.0]: must be [left, low"),
        (["legalise", "design=toy6", "samples=3"], "Could not override 'samples'. ("),
        (["evaluate", "design=toy6", "placment=x"], "Could not override 'placment'. Did you mean 'placement'?"),
        (["train", "design=toy6", "runtime.shards=3"], "runtime.shards: is a setting of runtime=ray alone"),
        (["describe", "toy6", "--plot", "x.doc"], "plot=x.doc: must end in one of ."),
        (["search", "design=toy6", "env.cost=proxy"], "Could not override 'env.cost'. Did you mean 'cost'?"),
        (["sample"], "sample: checkpoint: is required: a run folder, or base"),
        (["sample", "design=toy6"], "sample: checkpoint: is required: a run folder, or base"),
        (["sample", "checkpoint=base", "soft_placer=foo"], "soft_placer='foo': must be one of force_directed, analyti"),
        (["search", "design=toy6", "anneal.starts=[greedy]"], "anneal.starts='greedy': must be one of packed, electro"),
        (["search", "design=toy6", "method=fly"], "search: method='fly': must be one of refine, anneal, mixed_size"),
        (["generate", "planted"], "generate planted: out: is required"),
        (["mirror", "toy6", "axis=z", "out=x"], "mirror: axis='z': must be"),
    ],
)
def test_a_mistake_ends_in_one_line(words, message, capsys):
    assert main(words) == 2
    told = capsys.readouterr()
    assert message in told.err and told.err.count("\n") == 1
    assert told.out == ""


def test_the_nearest_key_goes_by_its_last_part():
    known = ["env", "env.cost", "env.cost.name", "policy", "policy.name", "runtime.actors", "seed"]
    assert nearest("sed", known) == "seed"
    assert nearest("env.seeds", known) == "seed"
    assert nearest("cost.name", known) == "env.cost.name"
    assert nearest("plicy.name", known) == "policy.name"
    assert nearest("runtime.shards", known) is None  # a group in common is no likeness


def test_arguments_as_hydra_takes_them():
    compare, mirror, train = COMMANDS["compare"], COMMANDS["mirror"], COMMANDS["train"]
    assert overrides(["placers=random,greedy", "seeds=1"], compare) == ["placers=[random,greedy]", "seeds=1"]
    assert overrides(["placers=[a,b]", "x='a,b'"], compare) == ["placers=[a,b]", "x='a,b'"]
    assert overrides(["-m", "seed=1,2"], compare) == ["-m", "seed=1,2"]
    assert overrides(["design=a,b"], train) == ["design=a,b"]
    assert overrides(["my design", "--axis", "x", "--out=o"], mirror) == ["design='my design'", "axis=x", "out=o"]
