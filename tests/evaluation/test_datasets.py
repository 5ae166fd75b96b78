"""`macro-placement dataset`: written files, reading, and learning from them."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from placement.cli.main import main
from placement.config import EnvConfig
from placement.engine.costs import compute_costs
from placement.engine.pool import make_pool
from placement.evaluation import datasets
from placement.evaluation.datasets import imitated
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load
from placement.training.episode_dataset import EpisodeDataset, read_episodes
from tests.support.planted import planted

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ENV = EnvConfig(soft_placer="none")


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def played() -> tuple[Design, list]:
    """Returns a design and three placements of random episodes."""
    design = planted(seed=1, block_columns=2, block_rows=2, columns=4, rows=4, multi_pin_nets=2).design
    with make_pool(design, 3, config=ENV, num_threads=1) as pool:
        pool.reset(seed=1)
        for _ in design.placing_order:
            pool.step(pool.sample_actions())
        return design, [pool.placement(env) for env in range(3)]


@pytest.fixture(scope="module")
def written(played, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("episodes")
    design, placements = played
    EpisodeDataset(design, ENV, imitated(design, placements, ENV), {"from": "a test"}).write(folder)
    return folder


def test_an_imitated_placement_is_the_placement(played, written: Path) -> None:
    """These placements come from cells, so the nearest legal cell is their own."""
    design, placements = played
    data = read_episodes(written)
    totals = [compute_costs(design, one, weights=ENV.cost.weights()).total for one in placements]
    assert data.episodes.costs[:, 4] == pytest.approx(totals)
    assert data.episodes.reward == pytest.approx([-total for total in totals])


def test_what_is_read_is_what_was_written(played, written: Path) -> None:
    design, placements = played
    data = read_episodes(written)
    assert (data.env, data.origin, len(data)) == (ENV, {"from": "a test"}, 3)
    for field, expected in zip(data.episodes, imitated(design, placements, ENV), strict=True):
        assert field.dtype == expected.dtype and np.array_equal(field, expected)
    seen = data.observations(np.array([2]))
    with make_pool(design, 1, config=ENV, num_threads=1) as pool:
        shown = pool.reset()[0]
        for step, action in enumerate(data.episodes.actions[2]):
            for name, values in seen._asdict().items():
                assert np.array_equal(values[0, step], shown[name][0]), name
            shown = pool.step([action])[0]


@pytest.mark.parametrize("damage", ["missing", "cut", "version", "action"])
def test_a_damaged_folder_is_named(written: Path, tmp_path: Path, damage: str) -> None:
    data = read_episodes(written)
    if damage == "action":
        actions = data.episodes.actions.copy()
        actions[1, 0] = -1
        data = EpisodeDataset(data.design, data.env, data.episodes._replace(actions=actions), {})
    data.write(tmp_path)
    if damage == "missing":
        (tmp_path / "episodes.npz").unlink()
    elif damage == "cut":
        (tmp_path / "episodes.npz").write_bytes((tmp_path / "episodes.npz").read_bytes()[:99])
    elif damage == "version":
        (tmp_path / "dataset.json").write_text(json.dumps({"version": 2}))
    with pytest.raises(DesignError, match=str(tmp_path)):
        read_episodes(tmp_path)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["dataset", "toy6", "samples=2", "time=0.05", f"out={tmp_path / 'searched'}"]) == 0
    assert "2 episodes of toy6" in capsys.readouterr().out
    data = read_episodes(tmp_path / "searched")
    assert data.episodes.length.tolist() == [6, 6] and data.origin["seconds"] == 0.05
    assert main(["dataset", f"out={tmp_path}"]) == 2
    assert "design: is required, or a checkpoint" in capsys.readouterr().err


def test_a_stopped_command_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """After Ctrl-C in the second of three searches, the first one is not repeated, and its placement is the same."""
    words = ["dataset", "toy6", "samples=3", "time=0.03", f"out={tmp_path}"]
    own, seeds, stopping = datasets.search, list[int](), [1]

    def recorded(design, *, seed, watch, **settings):
        seeds.append(seed)
        if seed in stopping:
            os.kill(os.getpid(), signal.SIGINT)
        return dataclasses.replace(own(design, seed=seed, watch=watch, **settings), finished=not watch.stopped())

    monkeypatch.setattr(datasets, "search", recorded)
    assert main(words) == 130
    out = capsys.readouterr().out
    assert "search 1/3: chip cost 0." in out and "1 of 3 searches: stopped; the same command resumes" in out
    assert not (tmp_path / "dataset.json").exists()
    design = ready(load("toy6")).with_actions(0, off_grid=True)
    kept = read_placement(tmp_path / "searches/0/placement.plc", design.netlist, located=design.initial)[1]
    stopping.clear()
    assert main(words) == 0
    assert seeds == [0, 1, 1, 2]
    data = read_episodes(tmp_path)
    assert len(data) == 3 and not (tmp_path / "searches").exists()
    assert data.episodes.actions[0].tolist() == imitated(design, [kept], data.env).actions[0].tolist()


def test_behaviour_cloning_learns_the_actions(written: Path) -> None:
    likelihood, cost = example("behaviour_cloning").train(read_episodes(written), steps=25)
    assert np.mean(likelihood[-5:]) > np.mean(likelihood[:5]) + 0.2
    assert cost > 0


def test_minari_holds_the_same_steps(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minari", reason="examples/minari_dataset.py needs minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    data = read_episodes(written)
    made = example("minari_dataset").convert(data, "macro-placement/four-v0")
    for index, episode in enumerate(made):
        assert np.array_equal(episode.actions, data.episodes.actions[index])
        assert episode.rewards[-1] == pytest.approx(data.episodes.reward[index])
        assert np.array_equal(episode.observations["mask"][:-1], data.observations(np.array([index])).mask[0])
