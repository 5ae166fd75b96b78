"""Run folders: the same settings give the same folder, other settings another."""

from __future__ import annotations

from placement.training import run_folder

VALUES = {"design": "toy6", "seed": 1, "run_dir": None, "ppo": {"iterations": 3}}


def test_same_settings_same_folder_other_settings_another():
    folder = run_folder.default(VALUES)
    assert folder.startswith("runs/toy6/seed1-")
    assert run_folder.default(dict(VALUES)) == folder
    assert run_folder.default({**VALUES, "run_dir": "elsewhere"}) == folder
    assert run_folder.default({**VALUES, "ppo": {"iterations": 4}}) != folder


def test_labels_of_names_paths_and_lists():
    assert run_folder.design_label("a/b/netlist.pb.txt.gz") == "b"
    assert run_folder.design_label("a/chip.pb.txt") == "chip"
    assert run_folder.design_label(["toy6", "x/planted20"]) == "toy6+planted20"
