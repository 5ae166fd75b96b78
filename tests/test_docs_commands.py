"""The commands on the pages: their settings are accepted, and those of the tutorial run in order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import hydra
import pytest
from omegaconf import OmegaConf

from placement.cli.main import COMMANDS, main
from placement.cli.options import hydra_words, settings
from placement.cli.train import groups
from placement.config import TrainConfig, build
from placement.runtimes.public import store_defaults

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "netlists/README.md"]
TUTORIAL = ROOT / "docs/tutorial.md"
NO_RUN = {"--help", "--version"}
SMALL = {
    "train": "policy.node_width=8 policy.grid_width=8 policy.rounds=1 ppo.episodes_per_iteration=8 "
    "ppo.minibatch_size=16 runtime.envs_per_actor=4",
    "search": "time=0.5",
}
"""Settings added to the tutorial's commands, which then take seconds; training compiles the same as
configs/test.yaml.
"""


def commands(page: Path) -> list[str]:
    """Returns the lines of a page that start with `macro-placement`, without comments."""
    found = re.findall(r"^ *(?:[A-Z_]+=\S+ )?(macro-placement .*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"\s+#.*", "", line) for line in found]


def parsed(line: str) -> tuple[str, list[str]]:
    """Returns the command's name and its arguments; for a sweep, those of its first job."""
    words = shlex.split(line.replace("…", "x"))[1:]
    length = 2 if " ".join(words[:2]) in COMMANDS else 1
    name, arguments = " ".join(words[:length]), words[length:]
    if "-m" in arguments:
        arguments = [re.sub(r"=([^,\[]+),.*", r"=\1", word) for word in arguments if word != "-m"]
        arguments = [word for word in arguments if not word.startswith(("hydra/launcher", "hydra.", "+hydra."))]
    return name, arguments


LINES = sorted({line for page in PAGES for line in commands(page) if not NO_RUN & set(line.split())})


@pytest.mark.parametrize("line", LINES)
def test_a_command_on_a_page_has_settings_that_are_accepted(line):
    name, arguments = parsed(line)
    assert name in COMMANDS
    command = COMMANDS[name]
    if name != "train":
        build(command.settings, settings(arguments, command.settings, command.words))
        return
    store_defaults()
    with hydra.initialize_config_dir(version_base="1.3", config_dir=str(ROOT / "configs")):
        composed = hydra.compose("config", hydra_words(arguments, TrainConfig, groups(), command.words))
    values = OmegaConf.to_container(composed, resolve=True)
    build(TrainConfig, {**values, "run_dir": values["run_dir"] or "run"})


def test_the_pages_show_every_command():
    assert {parsed(line)[0] for line in LINES} == set(COMMANDS)


@pytest.mark.slow
def test_the_commands_of_the_tutorial_run_in_their_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLACEMENT_PATH", raising=False)
    for line in commands(TUTORIAL):
        name, arguments = parsed(line)
        assert main([*name.split(), *arguments, *SMALL.get(name, "").split()]) == 0, line
    assert (tmp_path / "runs/first/best.plc").is_file()
    assert list((tmp_path / "runs/evaluate/mine").glob("*/placement.plc"))


def test_the_page_of_the_command_line_lists_the_commands_in_their_order():
    table = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z ]+)` \|", table, re.MULTILINE) == list(COMMANDS)
