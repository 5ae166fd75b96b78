"""Finding designs by name and path, and the imports of the public interface."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import placement
from placement.netlist.errors import DesignError
from placement.netlist.load import available, find, load
from tests.support.small_files import NETLIST, PLACEMENT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder of two designs on PLACEMENT_PATH, `mine` and `unplaced`."""
    for name in ("mine", "unplaced"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "netlist.pb.txt").write_text(NETLIST)
    (tmp_path / "mine" / "initial.plc").write_text(PLACEMENT)
    monkeypatch.setenv("PLACEMENT_PATH", os.pathsep.join(["", str(tmp_path / "absent"), str(tmp_path)]))
    return tmp_path


def test_by_name_folder_and_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("mine", folder / "mine", folder / "mine" / "netlist.pb.txt", str(folder / "mine") + "/"):
        design = load(given)
        assert design.name == "mine"
        assert design.netlist.names == ("clk", "ram", "Grp_1")
    monkeypatch.chdir(folder / "mine")
    assert load("netlist.pb.txt").name == "mine"
    assert load(".").name == "mine"
    monkeypatch.setenv("PLACEMENT_PATH", "")
    monkeypatch.chdir(folder)
    assert load("mine").name == "mine"


def test_built_in_designs_come_before_the_users(folder: Path) -> None:
    (folder / "toy6").mkdir()
    (folder / "toy6" / "netlist.pb.txt").write_text(NETLIST)
    assert find("toy6") != folder / "toy6" / "netlist.pb.txt"
    assert {"toy6", "clustered40", "mine", "unplaced"} <= set(available())


def test_a_file_of_another_name_names_the_design(folder: Path) -> None:
    (folder / "mine" / "chip.pb.txt").write_text(NETLIST)
    assert load(folder / "mine" / "chip.pb.txt").name == "chip"


def test_initial_gives_canvas_and_placement(folder: Path) -> None:
    (folder / "other.plc").write_text(PLACEMENT.replace("Columns : 5", "Columns : 7").replace("10.1", "9.9"))
    design = load("mine", folder / "other.plc")
    assert design.canvas.columns == 7
    assert design.initial.x[1] == 9.9
    assert load("unplaced", folder / "other.plc").canvas == design.canvas


def test_rejections_name_place_and_reason(folder: Path) -> None:
    with pytest.raises(DesignError, match=r"no design 'nothing'.*known there: .*mine.*PLACEMENT_PATH"):
        load("nothing")
    with pytest.raises(DesignError, match="no such file or folder"):
        load(folder / "nothing" / "netlist.pb.txt")
    (folder / "empty").mkdir()
    with pytest.raises(DesignError, match=r"the folder contains no netlist\.pb\.txt"):
        load(folder / "empty")
    with pytest.raises(DesignError, match=r"no initial\.plc in its folder.*add this placement file.*initial=PATH\.plc"):
        load("unplaced")
    with pytest.raises(DesignError, match=r"initial=.*absent\.plc: no such file"):
        load("mine", folder / "absent.plc")
    with pytest.raises(DesignError, match=r"initial=.*mine: is a folder; did you mean initial=.*mine/initial\.plc\?"):
        load("mine", folder / "mine")


def test_a_folder_of_designs_names_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DesignError, match=f"{folder}: is a folder of designs.*{folder}/mine, {folder}/unplaced$"):
        load(folder)
    monkeypatch.chdir(folder.parent)
    with pytest.raises(
        DesignError, match=f"^{folder.name}: is a folder of designs.*; it contains {folder.name}/mine, "
    ):
        load(folder.name)
    for number in range(9):
        (folder / f"a{number}").mkdir()
        (folder / f"a{number}" / "netlist.pb.txt").touch()
    with pytest.raises(DesignError, match=f"{folder.name}/a4, …$"):
        load(folder.name)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Width : 20.5", "Width : 3.5", "macro 'ram' of 4.0 × 6.0 µm is larger than the canvas of 3.5 × 16.25 µm"),
        ("Width : 20.5  Height : 16.25", "Width : 4  Height : 5.9", "is larger than the canvas"),
    ],
)
def test_canvas_too_small(old: str, new: str, words: str, folder: Path) -> None:
    (folder / "mine" / "initial.plc").write_text(PLACEMENT.replace(old, new))
    with pytest.raises(DesignError, match=rf"initial\.plc:3: .*{words}"):
        load("mine")


def test_canvas_smaller_than_all_macros_together(folder: Path) -> None:
    other = NETLIST.replace("node {\n  name: \"__metadata__\"\n", "node {\n  name: \"rom\"\n").replace(
        'attr { key: "soft_macro_area_bloating_ratio" value { f: 2.0 } }',
        'attr { key: "type" value { s: "macro" } } attr { key: "width" value { f: 4 } }'
        'attr { key: "height" value { f: 6 } }',
    )  # fmt: skip
    (folder / "mine" / "netlist.pb.txt").write_text(other)
    rows = "0 1 1 N 0\n1 0.5 2 - 1\n2 10.1 8.25 S 0\n4 4 4 N 0\n"
    text = PLACEMENT[: PLACEMENT.index("0 0.5 2")] + rows
    (folder / "mine" / "initial.plc").write_text(text.replace("20.5  Height : 16.25", "6  Height : 7"))
    with pytest.raises(
        DesignError, match=r"initial\.plc:3: the hard macros cover 48\.0 µm², more than the canvas's 42\.0"
    ):
        load("mine")


def test_importing_the_package_is_light() -> None:
    """JAX, the engine and Matplotlib are imported on first use; Gymnasium's environment is registered at once."""
    heavy = ["jax", "flax", "tensorflow", "matplotlib", "placement.engine", "scipy"]
    code = f"import sys, placement; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "[]"


def test_public_face() -> None:
    design = placement.load("toy6")
    assert placement.cost(design).wirelength == 2940.0
    assert set(placement.__all__) <= set(dir(placement))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        placement.nothing  # noqa: B018
