"""Run folders: their location and contents, one process at a time, no resumption with other settings."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from placement.config import ConfigError, PolicyConfig, PPOConfig, RuntimeConfig, TrainConfig, build
from placement.netlist.load import data_folder
from placement.training import run_folder
from tests.support.designs import four_macros

CONFIG = TrainConfig(design=("toy",), run_dir="somewhere", seed=3)
VALUES = {"design": "toy6", "seed": 1, "run_dir": None, "ppo": {"iterations": 3}}


def test_same_settings_same_folder_other_settings_another() -> None:
    folder = run_folder.default_run_dir(VALUES)
    assert folder.startswith("runs/toy6/seed1-")
    assert run_folder.default_run_dir(dict(VALUES)) == folder
    assert run_folder.default_run_dir({**VALUES, "run_dir": "elsewhere"}) == folder
    assert run_folder.default_run_dir({**VALUES, "ppo": {"iterations": 4}}) != folder


def test_labels_of_names_paths_and_lists() -> None:
    assert run_folder.design_label("a/b/netlist.pb.txt.gz") == "b"
    assert run_folder.design_label("a/chip.pb.txt") == "chip"
    assert run_folder.design_label(["toy6", "x/planted20"]) == "toy6+planted20"


def test_the_settings_read_back_equal(tmp_path: Path) -> None:
    run_folder.write_record(tmp_path, CONFIG)
    assert build(TrainConfig, yaml.safe_load((tmp_path / "config.yaml").read_text())) == CONFIG


def test_versions_of_every_start_are_kept(tmp_path: Path) -> None:
    for _ in range(2):
        run_folder.write_record(tmp_path, CONFIG)
    content = json.loads((tmp_path / "versions.json").read_text())
    assert content["seed"] == 3 and len(content["starts"]) == 2
    start = content["starts"][1]
    assert start["packages"]["jax"] == __import__("jax").__version__
    assert start["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}")
    assert start["command"] == sys.argv


def test_a_folder_in_use_is_rejected(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from placement.training.run_folder import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match="another process"), run_folder.locked(tmp_path):
            pass
        other.stdin.close()
        assert other.wait(20) == 0
    with run_folder.locked(tmp_path):
        pass


@pytest.mark.parametrize(
    "other",
    [
        dataclasses.replace(CONFIG, run_dir="elsewhere"),
        dataclasses.replace(CONFIG, ppo=PPOConfig(iterations=999)),
        dataclasses.replace(CONFIG, runtime=RuntimeConfig(actors=2, minutes=1.0)),
    ],
)
def test_length_and_speed_may_change(other: TrainConfig) -> None:
    designs = [four_macros()]
    run_folder.require_same(Path("run"), run_folder.identity(CONFIG, designs), run_folder.identity(other, designs))


def test_other_settings_are_rejected_by_name() -> None:
    designs = [four_macros()]
    other = dataclasses.replace(CONFIG, seed=4, policy=PolicyConfig(node_width=7))
    with pytest.raises(ConfigError, match=r"policy\.node_width=7 \(was 32\); seed=4 \(was 3\)"):
        run_folder.require_same(Path("run"), run_folder.identity(CONFIG, designs), run_folder.identity(other, designs))


def test_a_setting_that_is_new_since_the_run_began_had_its_default() -> None:
    designs = [four_macros()]
    begun = run_folder.identity(CONFIG, designs)
    del begun["settings"]["policy"]["graph"]
    run_folder.require_same(Path("run"), begun, run_folder.identity(CONFIG, designs))
    other = dataclasses.replace(CONFIG, policy=dataclasses.replace(CONFIG.policy, graph=False))
    with pytest.raises(ConfigError, match=r"settings: policy\.graph=False \(was True\)\."):
        run_folder.require_same(Path("run"), begun, run_folder.identity(other, designs))


def test_settings_that_no_longer_exist_are_named_with_the_version_that_wrote_them(tmp_path: Path) -> None:
    """They are not read under another name nor ignored silently, whether the run is resumed or its policy is used."""
    run_folder.write_record(tmp_path, CONFIG)
    versions = json.loads((tmp_path / "versions.json").read_text())
    versions["starts"][0] |= {"git_commit": "0123456789abcdef+changes"}
    versions["starts"][0]["packages"]["macro-placement"] = "0.0.9"
    (tmp_path / "versions.json").write_text(json.dumps(versions))
    file = tmp_path / "config.yaml"
    file.write_text(file.read_text().replace("whitespace_bias", "room_bias"))
    message = (
        r"the settings policy\.room_bias=0\.0 no longer exist: .* was written by macro-placement 0\.0\.9 "
        r"\(commit 0123456789ab\), and this is macro-placement .*; start a new run, or use that version"
    )
    with pytest.raises(ConfigError, match=message):
        run_folder.read_settings(tmp_path, key="run")
    begun = run_folder.identity(CONFIG, [four_macros()])
    begun["settings"]["policy"]["room_bias"] = begun["settings"]["policy"].pop("whitespace_bias")
    with pytest.raises(ConfigError, match=message):
        run_folder.require_same(tmp_path, begun, run_folder.identity(CONFIG, [four_macros()]))
    with pytest.raises(ConfigError, match="written by another version"):
        run_folder.require_same(tmp_path / "elsewhere", begun, run_folder.identity(CONFIG, [four_macros()]))


def test_a_policy_is_used_without_the_training_settings_that_no_longer_exist(tmp_path: Path) -> None:
    run_folder.write_record(tmp_path, CONFIG)
    file = tmp_path / "config.yaml"
    file.write_text(file.read_text().replace("entropy_target: ", "entropy_coefficient: 0.01\n  entropy_target: "))
    assert run_folder.read_settings(tmp_path, key="checkpoint") == CONFIG


def test_the_shipped_policy_has_settings_that_exist() -> None:
    assert run_folder.read_settings(data_folder("policies") / "base", key="checkpoint").policy.whitespace_bias == 6


def test_a_changed_design_file_is_rejected() -> None:
    design = four_macros()
    netlist = dataclasses.replace(design.netlist, net_weight=design.netlist.net_weight * 2)
    changed = dataclasses.replace(design, netlist=netlist)
    assert run_folder.fingerprint(design) == run_folder.fingerprint(four_macros()) != run_folder.fingerprint(changed)
    with pytest.raises(ConfigError, match=f"files of design '{design.name}' have changed"):
        run_folder.require_same(
            Path("run"), run_folder.identity(CONFIG, [design]), run_folder.identity(CONFIG, [changed])
        )


def test_the_fingerprint_sees_the_placement() -> None:
    design = four_macros()
    initial = dataclasses.replace(design.initial, x=design.initial.x + np.float64(1e-9))
    assert run_folder.fingerprint(design) != run_folder.fingerprint(dataclasses.replace(design, initial=initial))
