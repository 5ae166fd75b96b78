"""From nothing to ranks: `judge data`, `judge train`, `judge rank` on small designs."""

import multiprocessing
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from flax import nnx

from placement.cli.main import main
from placement.judge import reading, training
from placement.judge.dataset import SAMPLES_NAME, design_folders
from placement.judge.ensemble import Member, centred, read
from placement.judge.examples import Scaling, view_of
from placement.judge.geometry import PARTS
from placement.judge.losses import judge_loss
from placement.judge.network import JudgeNetwork, parameters_of, with_parameters
from placement.judge.reading import read_examples
from placement.judge.ridge import fit_ridge, ridge_level
from placement.netlist.errors import DesignError

SMALL = "--count 3 --placements 3 --moves 1000 --least_cells 200 --most_cells 250 --least_macros 3 --most_macros 4"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    out = tmp_path_factory.mktemp("judge") / "data"
    assert main(["judge", "data", str(out), *SMALL.split()]) == 0
    return out


def test_the_commands_work_one_after_the_other(data, tmp_path, capsys):
    judge = tmp_path / "judge.npz"
    words = ["--out", str(judge), "--members", "2", "--epochs", "12", "--width", "4", "--holdout", "0.34"]
    assert main(["judge", "train", str(data), *words]) == 0
    said_in_training = capsys.readouterr().out
    assert "2 designs, 6 placements; 1 designs held out" in said_in_training
    ensemble = read(judge)
    folders = design_folders(data)
    assert list(ensemble.designs) == [folder.name for folder in folders[:2]]
    (example,) = read_examples(folders[1:2])
    view, targets = view_of(example.viewer, example.geometry, ensemble.scaling), example.targets
    first = JudgeNetwork(4, rngs=nnx.Rngs(0))
    trained = with_parameters(4, ensemble.members[0].parameters)
    before, after = (float(judge_loss(network(view), *targets)) for network in (first, trained))
    assert after < 0.9 * before
    assert main(["judge", "rank", str(data), "--judge", str(judge)]) == 0
    said = capsys.readouterr().out
    assert "within designs that were kept from it" in said_in_training
    assert f"{folders[2].name}: judge" in said and f"{folders[0].name}: judge" not in said
    assert "mean τ of 1 designs" in said
    assert main(["judge", "rank", str(data), "--judge", str(judge), "--all", "true"]) == 0
    assert f"{folders[0].name}: judge" in capsys.readouterr().out


def test_a_training_that_was_stopped_goes_on_after_the_members_that_it_had(data, tmp_path, capsys, monkeypatch):
    def words(name, seed=0):
        size = f"--members 2 --epochs 2 --width 2 --holdout 0 --seed {seed}"
        return f"judge train {data} --out {tmp_path / name} {size}".split()

    trained, train_member = [], training._train_member

    def stopped(number, *rest):
        if number:
            raise KeyboardInterrupt
        return train_member(number, *rest)

    def noted(number, *rest):
        trained.append(number)
        return train_member(number, *rest)

    assert main(words("once.npz")) == 0
    monkeypatch.setattr(training, "_train_member", stopped)
    assert main(words("twice.npz")) == 130
    part = tmp_path / "twice.npz.part"
    assert part.is_file() and not (tmp_path / "twice.npz").exists()
    monkeypatch.setattr(training, "_train_member", noted)
    capsys.readouterr()

    kept = part.read_bytes()
    assert main(words("twice.npz", seed=1)) == 0  # another training
    assert "twice.npz.part is damaged or of another training: begun anew" in capsys.readouterr().out
    assert trained == [0, 1]
    assert not part.exists()

    for damaged in (kept[:-50], b"", kept):
        part.write_bytes(damaged)
        trained.clear()
        assert main(words("twice.npz")) == 0
        assert ("1 of 2 members were trained before" in capsys.readouterr().out) == (damaged == kept)
        assert trained == ([1] if damaged == kept else [0, 1])
    assert read(tmp_path / "twice.npz").digest == read(tmp_path / "once.npz").digest
    assert not part.exists()


def test_processes_read_what_one_reads(data):
    folders = design_folders(data)
    for one, other in zip(read_examples(folders), read_examples(folders, workers=2), strict=True):
        assert one.name == other.name
        for own, theirs in zip((*one.geometry, *one.targets), (*other.geometry, *other.targets), strict=True):
            np.testing.assert_allclose(own, theirs, atol=1e-5)
        assert np.array_equal(one.chip, other.chip) and np.array_equal(one.flat, other.flat)
        assert one.viewer.design.name == other.viewer.design.name


def test_a_file_that_one_process_cannot_read_is_told(data, tmp_path):
    copied = tmp_path / "data"
    shutil.copytree(data, copied)
    (bad, *_) = sorted((design_folders(copied)[1] / SAMPLES_NAME).glob("*.npz"))
    bad.write_bytes(bad.read_bytes()[:100])
    with pytest.raises(DesignError, match=rf"{bad.name}: no sample, or a damaged one"):
        list(read_examples(design_folders(copied), workers=2))
    assert not multiprocessing.active_children()


def test_a_process_that_dies_is_told(data, monkeypatch):
    monkeypatch.setattr(reading, "_begin", os.abort)
    with pytest.raises(DesignError, match=r"workers=2: a process that reads the data died.*try fewer"):
        list(read_examples(design_folders(data), workers=2))
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("error", [BrokenProcessPool("died"), OSError("handle is closed")])
def test_a_process_that_dies_while_others_are_started_is_told(data, monkeypatch, error):
    def submit(*_):
        raise error

    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit)
    with pytest.raises(DesignError, match=r"workers=2: a process that reads the data died.*try fewer"):
        list(read_examples(design_folders(data), workers=2))
    assert not multiprocessing.active_children()


def test_a_design_that_is_not_read_in_time_is_named(data, monkeypatch):
    monkeypatch.setattr(reading, "DEADLINE", 0.0)
    first = design_folders(data)[0]
    with pytest.raises(DesignError, match=rf"{first}: was not read in 0 s.*workers=2"):
        list(read_examples(design_folders(data), workers=2))
    assert not multiprocessing.active_children()


def test_whoever_stops_reading_ends_the_processes(data):
    found = read_examples(design_folders(data), workers=2)
    next(found)
    assert multiprocessing.active_children()
    found.close()
    assert not multiprocessing.active_children()


def test_the_error_is_of_what_was_kept_from_a_design(data):
    """By hand: two members, two ridges, each of the other design."""
    examples = list(read_examples(design_folders(data)))[:2]
    scaling = Scaling(np.zeros(len(PARTS), np.float32), np.ones(len(PARTS), np.float32))
    members = [Member(parameters_of(JudgeNetwork(2, rngs=nnx.Rngs(seed))), 2) for seed in (0, 1)]
    error, _ = training._errors(members, examples, scaling)
    missed = []
    for at, example in enumerate(examples):
        network = members[at].predict(view_of(example.viewer, example.geometry, scaling)).wirelength
        linear = example.geometry.parts @ fit_ridge([examples[1 - at]])
        truth = example.targets.wirelength
        missed.append(centred(network) / 2 + centred(linear) / 2 - centred(truth))
    assert error == pytest.approx(np.sqrt((np.concatenate(missed) ** 2).mean()), rel=1e-5)


def test_too_few_designs_are_refused(data, capsys):
    assert main(["judge", "train", str(data), "--members", "5"]) == 2
    assert "3 designs to train on, fewer than members=5" in capsys.readouterr().err


def test_nothing_left_to_rank_is_said(data, tmp_path, capsys):
    judge = tmp_path / "judge.npz"
    assert main(f"judge train {data} --out {judge} --members 2 --epochs 1 --width 2 --holdout 0".split()) == 0
    assert main(f"judge rank {data} --judge {judge}".split()) == 2
    assert "trained on all of its designs" in capsys.readouterr().err


def test_the_judge_that_comes_with_the_project_ranks_and_one_that_is_not_there_is_told(data, capsys):
    assert main(f"judge rank {data} --judge base --all true".split()) == 0
    assert "mean τ of 3 designs" in capsys.readouterr().out
    assert main(f"judge rank {data} --judge gone.npz".split()) == 2
    assert "judge='gone.npz': must be a file of `judge train`, or base: there" in capsys.readouterr().err


def test_a_ridge_finds_the_weights_of_a_linear_truth(data):
    examples = list(read_examples(design_folders(data)))
    made = []
    for number, example in enumerate(examples):
        level = number  # of its own
        wirelength = example.geometry.parts @ np.array([0.5, 0, 0, 0, 0, 0, 0, 0, 1.0, 0]) + level
        made.append(example._replace(targets=example.targets._replace(wirelength=wirelength)))
    for example in made:
        said = example.geometry.parts @ fit_ridge(made)
        truth = example.targets.wirelength
        assert np.corrcoef(said, truth)[0, 1] > 0.98
    weights = fit_ridge(made)
    missed = np.mean([(one.targets.wirelength - one.geometry.parts @ weights).mean() for one in made])
    assert ridge_level(made, weights) == pytest.approx(missed)  # as many placements of each design
