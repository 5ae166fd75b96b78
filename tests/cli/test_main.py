"""`macro-placement`: its list of commands, their help, their settings, and error messages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import placement
from placement.benchmark.benchmark_config import BenchmarkConfig
from placement.cli.help import listed
from placement.cli.main import COMMANDS, main
from placement.cli.options import UsageError, hydra_words, nearest, setting_types, settings
from placement.config import TrainConfig
from placement.evaluation.settings import EvaluateConfig, LegaliseConfig

GROUPS = {"runtime": ["local", "ray"], "preset": ["base", "test"]}


def settings_of(name: str) -> type:
    return TrainConfig if name == "train" else COMMANDS[name].settings


def test_the_overview_has_a_line_for_each_command(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in COMMANDS:
        assert re.search(rf"^  {name} +[A-Z].*\.$", text, flags=re.MULTILINE), name


def test_the_version_is_the_packages_and_the_citations(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"macro-placement {placement.__version__}\n"
    citation = (Path(__file__).resolve().parents[2] / "CITATION.cff").read_text()
    assert f"\nversion: {placement.__version__}\n" in citation


@pytest.mark.parametrize(
    ("words", "buffered"),
    [
        (["--help"], True),
        (["--version"], False),
        (["search", "--help"], False),
        (["generate", "flat", "--help"], True),
    ],
)
def test_a_reader_that_leaves_early_is_no_error(words, buffered):
    """The worst case of `macro-placement --help | head -1`: the reader closes before anything is written."""
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
    assert main([*name.split(), "--help", *(["all"] if name == "train" else [])]) == 0
    text = capsys.readouterr().out
    for one in listed(settings_of(name)):
        assert re.search(rf"^  --{one.key.replace('_', '-')} \S", text, flags=re.MULTILINE), one.key
    assert "_ " not in re.sub(r"--\S+", "", text) and "#" not in text


def test_the_help_of_train_opens_with_what_matters(capsys):
    assert main(["train", "--help"]) == 0
    text = capsys.readouterr().out
    assert len(re.findall(r"^  --", text, flags=re.MULTILINE)) == 10
    assert "generalise: train one policy on many designs" in text
    assert f"train --help all lists all {len(listed(TrainConfig))} settings" in text


def test_the_help_of_a_group_of_commands_lists_that_group(capsys):
    assert main(["generate", "--help"]) == 0
    text = capsys.readouterr().out
    assert "generate flat" in text and "evaluate" not in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_setting_can_be_given_in_every_style(name):
    known = setting_types(settings_of(name))
    assert {one.key for one in listed(settings_of(name))} == {
        key.removesuffix("_").removesuffix(".name") for key in known if not any(k.startswith(f"{key}.") for k in known)
    }


def test_the_three_styles_mean_the_same():
    expected = {"design": "toy6", "json": True, "cost": {"name": "proxy", "density": 2.0}}
    for words in (
        ["design=toy6", "json=true", "cost=proxy", "cost.density=2"],
        ["--design", "toy6", "--json", "--cost", "proxy", "--cost.density", "2"],
        ["--design=toy6", "--json=true", "--cost=proxy", "--cost.density=2"],
        ["toy6", "--json", "cost=proxy", "--cost.density=2"],
    ):
        assert settings(words, EvaluateConfig, ("design", "placement")) == expected


def test_lists_and_values(tmp_path):
    assert settings(["placers=random,greedy", "seeds=1"], BenchmarkConfig) == {
        "placers": ["random", "greedy"],
        "seeds": 1,
    }
    assert settings(["--placements", "a.plc", "b.plc", "--placements", "c.plc"], BenchmarkConfig)["placements"] == [
        *("a.plc", "b.plc", "c.plc")
    ]
    assert settings(["spacing=1e-1"], LegaliseConfig) == {"spacing": 0.1}
    assert settings(["plots=null", "out=a=b"], EvaluateConfig) == {"plots": None, "out": "a=b"}
    path = tmp_path / "é,(1).plc"
    path.touch()
    assert settings([f"placements={path}", "out=é (1)"], BenchmarkConfig) == {"placements": [str(path)], "out": "é (1)"}
    assert settings(["seeds=many"], BenchmarkConfig) == {"seeds": "many"}, "which `build` rejects"


def test_arguments_of_train_as_hydra_takes_them():
    def words(*arguments: str) -> list[str]:
        return hydra_words(arguments, TrainConfig, GROUPS, ("design",))

    assert words("toy6", "seed=1") == ["design=toy6", "seed=1"]
    assert words("--design", "a,b", "--seed", "1") == ["design=[a,b]", "seed=1"]
    assert words("-m", "design=a,b", "--seed", "1,2") == ["-m", "design=a,b", "seed=1,2"]
    assert words("replay=memory", "--env.cost", "proxy") == ["replay.name=memory", "env.cost.name=proxy"]
    assert words("--run-dir", "a=b", "runtime=ray", "+hydra.x=1") == ["+hydra.x=1", "run_dir='a=b'", "runtime=ray"]
    # Paths arrive as the shell passes them.
    assert words("run_dir=José (1)", "initial_policy=a=b") == ["run_dir='José (1)'", "initial_policy='a=b'"]
    assert words("run_dir='quoted'", "design=[a,b]") == ["run_dir='quoted'", "design=[a,b]"]
    assert words("--flips", "--runtime.minutes=2") == ["flips=true", "runtime.minutes=2"]
    with pytest.raises(UsageError, match="preset='fly': must be one of base, test"):
        words("preset=fly")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fly"], "unknown command 'fly'; the commands are train, evaluate"),
        (["trian"], "unknown command 'trian'; did you mean 'train'?"),
        (["evaluate"], "evaluate: design: is required"),
        (
            ["legalise", "design=toy6", "spacing=-1"],
            "legalise: spacing=-1.0: must be at least 0",
        ),
        (["legalise", "design=toy6", "samples=3"], "unknown setting 'samples'. (--help"),
        (["evaluate", "design=toy6", "placment=x"], "unknown setting 'placment'. Did you mean 'placement'?"),
        (["train", "design=toy6", "runtime.shards=3"], "runtime.shards=3: must be left at 1 without"),
        (["search", "design=toy6", "env.cost=proxy"], "unknown setting 'env.cost'. Did you mean 'cost'?"),
        (["sample"], "sample: checkpoint: is required: a run folder, or base"),
        (["sample", "design=toy6"], "sample: checkpoint: is required: a run folder, or base"),
        (["sample", "checkpoint=base", "soft_placer=foo"], "soft_placer='foo': must be one of force_directed, analyti"),
        (["search", "design=toy6", "anneal.starts=[greedy]"], "anneal.starts='greedy': must be packed, electro"),
        (["search", "design=toy6", "method=fly"], "search: method='fly': must be refine, anneal or mixed_size"),
        (["search", "design=toy6", "time=0"], "time=0.0: must be above 0 seconds"),
        (["search", "design=toy6", "moves=0"], "moves=0: must be at least 1"),
        (["search", "design=toy6", "threads=0"], "threads=0: must be at least 1"),
        (["search", "design=toy6", "anneal.initial_temperature=0"], "anneal.initial_temperature=0.0: must be above 0"),
        (["search", "design=toy6", "method=anneal", "placement=a.plc"], "method=anneal has its own starts"),
        (["generate", "flat"], "generate flat: out: is required"),
        (["describe", "toy6", "other"], "'other' is not a setting; give key=value or --key value"),
        (["import", "--def"], "--def: needs a value"),
    ],
)
def test_a_mistake_ends_in_one_line(words, message, capsys):
    assert main(words) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.count("\n") == 1
    assert printed.out == ""


def test_the_nearest_key_goes_by_its_last_part():
    known = ["env", "env.cost", "env.cost.name", "policy", "policy.name", "runtime.actors", "seed"]
    assert nearest("sed", known) == "seed"
    assert nearest("env.seeds", known) == "seed"
    assert nearest("cost.name", known) == "env.cost.name"
    assert nearest("plicy.name", known) == "policy.name"
    assert nearest("runtime.shards", known) is None  # a common group does not make names similar
