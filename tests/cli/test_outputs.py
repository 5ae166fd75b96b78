"""Output paths are checked first: designs are not replaced without --force, and unwritable paths are rejected with a
message.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from placement import load
from placement.cli import netlists
from placement.cli.help import listed
from placement.cli.main import main
from placement.netlist.errors import DesignError
from placement.netlist.files import check_output_file, check_output_folder

ROOT = Path(__file__).resolve().parents[2]
CLUSTERED = ("generate", "clustered", "--hard", "4", "--soft", "20", "--ports", "6")
FLAT = ("generate", "flat", "--cells", "200", "--macros", "3", "--ports", "8")
MAKERS = (CLUSTERED, FLAT)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def not_called(*arguments: object, **settings: object) -> None:
    raise AssertionError("begun before the place of its results was looked at")


@pytest.mark.parametrize("words", MAKERS, ids=" ".join)
def test_a_folder_with_something_in_it_is_kept_unless_forced(words, tmp_path, monkeypatch, capsys):
    """Files of an older design would be read as part of the new one."""
    for name in ("clustered", "flat_on_floorplan"):
        monkeypatch.setattr(netlists, name, not_called)
    out = tmp_path / "chip"
    shutil.copytree(ROOT / "netlists/planted20", out)
    for name in ("constraints.json", "source.def.gz", "flat.npz", "clusters.npz", "netlist.pb.txt", "notes.txt"):
        (out / name).write_text("of the user")
    before = contents(out)
    assert main([*words, "--out", str(out)]) == 2
    printed = capsys.readouterr().err
    assert f"out={out}: the folder exists and is not empty; --force" in printed and printed.count("\n") == 1
    assert contents(out) == before
    monkeypatch.undo()
    assert main([*words, "--out", str(out), "--force"]) == 0
    assert main([*words, "--out", str(tmp_path / "new" / "chip")]) == 0
    (tmp_path / "new" / "chip" / "notes.txt").write_text("of the user")
    assert contents(out).keys() == contents(tmp_path / "new" / "chip").keys()
    assert np.array_equal(load(out).initial.x, load(tmp_path / "new" / "chip").initial.x)


def test_an_empty_folder_takes_a_design(tmp_path):
    (tmp_path / "chip").mkdir()
    assert main([*CLUSTERED, "--out", str(tmp_path / "chip")]) == 0
    assert len(load(tmp_path / "chip").netlist.hard) == 4


@pytest.mark.parametrize(("key", "value"), [("macros", 40), ("ports", 120)])
def test_drawn_sizes_cannot_be_given_too(key, value, tmp_path, capsys):
    """Not even with the default values."""
    assert main(["generate", "flat", "--varied", f"--{key}", str(value), "--out", str(tmp_path / "chip")]) == 2
    printed = capsys.readouterr().err
    assert "varied=true: draws these settings from the seed" in printed and f"{key}={value}" in printed
    assert not (tmp_path / "chip").exists()


def test_sizes_that_are_not_given_are_those_of_the_settings_page():
    options, halo = netlists.FlatConfig(out="x").options
    drawn = {
        one.key: one.meaning.rpartition("null: ")[2] for one in listed(netlists.FlatConfig) if one.default == "null"
    }
    assert drawn == {key: str({**vars(options), "halo": halo}[key]) for key in drawn}


FOLDERS = (
    ("evaluate", "design=toy6"),
    ("search", "design=toy6", "time=600"),
    ("legalise", "design=toy6"),
    ("benchmark", "design=toy6", "time=600"),
    ("sample", "design=toy6", "checkpoint=base"),
    ("import", "--lef", "missing.lef", "--def", "missing.def"),
    *MAKERS,
)


@pytest.mark.parametrize("words", FOLDERS, ids=" ".join)
@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("/proc/none/x", "/proc is not writable (No such file or directory)"),
        ("file", "file is a file, but must be a folder"),
        ("file/x", "/file is a file, but must be a folder"),
    ],
)
def test_folders_that_cannot_be_written_are_rejected_first(words, out, reason, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("of the user")
    assert main([*words, f"out={out}"]) == 2
    printed = capsys.readouterr()
    assert f"out={out}: cannot be written: " in printed.err and printed.err.endswith(f"{reason}\n")
    assert printed.err.count("\n") == 1 and "Errno" not in printed.err
    assert printed.out == ""
    assert contents(tmp_path) == {"file": b"of the user"} and len(list(tmp_path.iterdir())) == 1


def test_the_folder_that_results_go_to_by_default_is_looked_at_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").write_text("of the user")
    assert main(["search", "design=toy6", "time=600"]) == 2
    assert "out=runs: cannot be written: runs is a file, but must be a folder" in capsys.readouterr().err
    assert main(["evaluate", "design=toy6"]) == 0  # writes nothing


def test_a_run_folder_that_cannot_be_written_is_rejected_in_words(capsys):
    assert main(["train", "preset=test", "run_dir=/proc/none/x"]) == 2
    printed = capsys.readouterr().err
    assert "run_dir=/proc/none/x: cannot be written: /proc is not writable" in printed and printed.count("\n") == 1


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("none/x.png", "there is no folder none"),
        ("/proc/x.png", "/proc is not writable (No such file or directory)"),
        ("folder", "is a folder, but must be a file"),
        ("file/x.png", "file is a file, but must be a folder"),
    ],
)
def test_files_that_cannot_be_written_are_rejected_first(file, reason, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("of the user")
    assert main(["export", "toy6", "--format", "plc", "--out", file]) == 2
    printed = capsys.readouterr()
    assert printed.err.endswith(f"out={file}: cannot be written: {reason}\n") and printed.err.count("\n") == 1
    assert printed.out == ""


def test_evaluation_leaves_no_files_behind(tmp_path):
    check_output_folder("out", tmp_path / "a" / "b")
    check_output_file("out", tmp_path / "c.npz")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DesignError, match=r"^run_dir=.*link: cannot be written: .*link"):
        check_output_folder("run_dir", tmp_path / "link")
