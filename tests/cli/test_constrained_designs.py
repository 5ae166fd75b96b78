"""A constrained design passes from its folder through every command: no result violates a constraint."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from placement.cli.main import main
from placement.engine.costs import legality, violations
from placement.env.gym_env import PlacementEnv
from placement.netlist.constraints import SnapGrid
from placement.netlist.constraints_file import CONSTRAINTS_NAME
from placement.netlist.design import Design, Orientation
from placement.netlist.floorplan import Region
from placement.netlist.formats.plc import read_placement
from placement.netlist.generators.clustered import clustered
from placement.netlist.load import load, save
from tests.support.constrained_designs import constrained


def constrained_design() -> Design:
    """Twelve macros with constraints of each kind, two of them in forbidden orientations."""
    design = clustered(seed=5, hard=12, soft=40, ports=20, name="chip")
    canvas, netlist = design.canvas, design.netlist
    # with ample whitespace, so that an untrained policy sometimes places all macros
    canvas = dataclasses.replace(
        canvas, width=1.6 * canvas.width, height=1.6 * canvas.height, columns=2 * canvas.columns, rows=2 * canvas.rows
    )
    design = dataclasses.replace(design, canvas=canvas)
    halo = np.zeros((netlist.num_nodes, 2))
    halo[netlist.hard] = 0.004 * canvas.width
    allowed = np.full(netlist.num_nodes, 0xFF)
    allowed[netlist.hard[:2]] = 1 << Orientation.S
    left = Region("left", np.array([[0.0, 0, 0.7 * canvas.width, canvas.height]]), netlist.hard[:2])
    return constrained(
        design,
        halo=halo,
        orientations=allowed,
        regions=(left,),
        blockages=np.array([[0.92 * canvas.width, 0.92 * canvas.height, canvas.width, canvas.height]]),
        grid=SnapGrid(0.2, 0.1, 0.05, 0.0),
        port_keepout=0.005 * canvas.width,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("designs") / "chip"
    save(path, constrained_design())
    return path


def clean(folder: Path, file: Path) -> bool:
    design = load(folder)
    _, placement = read_placement(file, design.netlist, located=design.initial)
    return legality(design, placement) == (0, 0) and not any(violations(design, placement))


def last_json(captured: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(captured.readouterr().out.splitlines()[-1])
    return found


SMALL = ["preset=test", "replay=memory", "ppo.iterations=1", "ppo.episodes_per_iteration=16"]


def test_training_and_what_comes_after(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", f"design={folder}", "run_dir=run", *SMALL]) == 0
    assert clean(folder, tmp_path / "run" / "best.plc")
    capsys.readouterr()
    assert main(["evaluate", f"design={folder}", "placement=run/best.plc", "json=true"]) == 0
    values = last_json(capsys)
    broken = {key: count for key, count in values.items() if key.endswith("_violations")}
    assert len(broken) == 7 and not any(broken.values()) and values["overlaps"] == values["outside"] == 0
    assert main(["sample", "checkpoint=run", f"design={folder}", "samples=2", "plots=false", "out=sampled"]) == 0
    assert clean(folder, tmp_path / "sampled" / "placement.plc")


def test_search_and_legalise(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", f"design={folder}", "json=true"]) == 0
    assert last_json(capsys)["orientation_violations"] == 2, "the design's own placement breaks constraints"
    assert main(["legalise", f"design={folder}", "out=legal"]) == 0
    assert clean(folder, tmp_path / "legal" / "placement.plc")
    assert main(["search", f"design={folder}", "placement=legal/placement.plc", "moves=20000", "out=searched"]) == 0
    assert clean(folder, tmp_path / "searched" / "placement.plc")


@pytest.mark.parametrize(
    "command", [["train"], ["search", "method=anneal"], ["legalise"], ["benchmark", "placers=search"]]
)
def test_what_cannot_be_met_is_rejected_before_anything_starts(
    command: list[str],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    design = constrained_design()
    tiny = Region("tiny", np.array([[0.0, 0, 1, 1]]), design.netlist.hard[:1])
    save(tmp_path / "bad", constrained(design, regions=(tiny,)))
    monkeypatch.chdir(tmp_path)
    assert main([*command, "design=bad"]) != 0
    name = design.netlist.names[design.netlist.hard[0]]
    printed = capsys.readouterr()
    assert "region 'tiny' has space for" in printed.err + printed.out and repr(name) in printed.err + printed.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad"], "nothing was written"


def test_rules_that_fixed_macros_break_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    design = constrained_design()
    held = design.netlist.hard[0]
    fixed = design.initial.fixed.copy()
    fixed[held] = True
    save(tmp_path / "held", dataclasses.replace(design, initial=dataclasses.replace(design.initial, fixed=fixed)))
    monkeypatch.chdir(tmp_path)
    assert main(["legalise", "design=held", "out=legal"]) == 0
    assert f"note: fixed macro {design.netlist.names[held]!r}: is " in capsys.readouterr().out
    kept = load("held")
    _, placement = read_placement(tmp_path / "legal" / "placement.plc", kept.netlist, located=kept.initial)
    assert placement.x[held] == kept.initial.x[held] and placement.orientation[held] == kept.initial.orientation[held]
    assert violations(kept, placement).orientations == 1, "fixed macros count"


def test_a_partial_placement_is_that_of_the_finished_one(folder: Path) -> None:
    env = PlacementEnv(load(folder))  # two macros are in forbidden orientations and are turned
    design = env.design
    _, info = env.reset(seed=1)
    partial, done = [], False
    while not done:
        legal = np.flatnonzero(info["action_mask"])
        if not len(legal):
            pytest.skip("this episode came to a dead end")
        _, _, done, _, info = env.step(int(legal[len(legal) // 3]))
        partial.append(env.placement)
    for step, before in enumerate(partial, start=1):
        nodes = design.placing_order[:step]
        np.testing.assert_allclose(before.x[nodes], env.placement.x[nodes], atol=1e-9)
        np.testing.assert_allclose(before.y[nodes], env.placement.y[nodes], atol=1e-9)
    if "costs" in info:
        assert legality(design, env.placement) == (0, 0) and not any(violations(design, env.placement))


def test_a_wrong_file_in_the_folder_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "chip", constrained_design())
    file = tmp_path / "chip" / CONSTRAINTS_NAME
    file.write_text('{"halos": {"nobody": [1, 1]}}')
    assert main(["describe", str(tmp_path / "chip")]) != 0
    assert f"{file}:1: halos: the netlist has no hard macro 'nobody'" in capsys.readouterr().err


def test_a_description_tells_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", str(folder)]) == 0
    printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for words in (
        "halos of 12 macros",
        "placement blockages: 1",
        "regions left",
        "orientations of 2 macros",
        "grid of 0.2 × 0.1",
    ):
        assert words in printed
