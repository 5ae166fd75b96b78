"""The data set of a judge: made, resumed, read, refused where it is damaged."""

import dataclasses
import io
import multiprocessing
import os
import re
import shutil
import threading

import numpy as np
import pytest
from rich.console import Console

from placement.annealing import legaliser
from placement.annealing.settle import settle_for_check
from placement.config import ConfigError
from placement.engine.costs import legality
from placement.judge import dataset, generation
from placement.judge.dataset import SAMPLES_NAME, TABLE_NAME, design_folders, read_sample, read_samples
from placement.judge.generation import make_data, tasks, work
from placement.judge.made_designs import make_design
from placement.judge.recipes import make_placement, recipes
from placement.judge.settings import DataConfig
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import write_placement

SMALL = {"count": 1, "placements": 3, "moves": 1000, "least_cells": 300, "most_cells": 400} | {
    "least_macros": 4,
    "most_macros": 6,
}


def small(out, **changed):
    return DataConfig(out=str(out), **(SMALL | changed))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("data")
    make_data(small(out), Console(quiet=True))
    return out


def bytes_of(out):
    return {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def test_a_design_has_its_samples_and_a_table(made):
    (folder,) = design_folders(made)
    design, samples = read_samples(folder)
    assert [sample.name[:3] for sample in samples] == ["000", "001", "002"]
    lines = (folder / TABLE_NAME).read_text().splitlines()
    assert len(lines) == 4 and lines[1].startswith(samples[0].name)
    for sample in samples:
        assert legality(design, sample.placement) == (0, 0)
        truth = sample.truth
        assert 0 < truth.flat_wirelength <= truth.spread_wirelength * 1.05
        assert truth.routed_wirelength > 0.9 * truth.flat_wirelength
        assert truth.horizontal.shape == truth.vertical.shape
        assert (truth.horizontal > 0).any()
    assert len({sample.truth.routed_wirelength for sample in samples}) == 3


def test_soft_macros_are_kept_as_the_check_annealed_them(made):
    (folder,) = design_folders(made)
    design, samples = read_samples(folder)
    for sample in samples:
        annealed = settle_for_check(design, sample.placement)
        assert np.array_equal(sample.placement.x, annealed.x) and np.array_equal(sample.placement.y, annealed.y)


def test_a_sample_of_another_form_is_refused(made, tmp_path, monkeypatch):
    (folder,) = design_folders(made)
    design, samples = read_samples(folder)
    with monkeypatch.context() as before:
        before.setattr(dataset, "FORM", 1)
        dataset.write_sample(tmp_path, samples[0])
    path = tmp_path / SAMPLES_NAME / f"{samples[0].name}.npz"
    with pytest.raises(
        DesignError, match=r"npz: is of form 1; this version reads form 2: remove .*samples, and judge data"
    ):
        read_sample(path, design)


def test_what_is_missing_is_made_again_and_the_same(made):
    before = bytes_of(made)
    (folder,) = design_folders(made)
    gone = sorted((folder / SAMPLES_NAME).iterdir())[1]
    old = read_sample(gone, read_samples(folder)[0])
    gone.unlink()
    console = Console(record=True, file=io.StringIO())
    make_data(small(made), console)
    assert "1 samples made" in console.export_text()
    new = read_sample(gone, read_samples(folder)[0])
    assert new.placement == old.placement
    assert new.truth[:6] == old.truth[:6]
    others = {path: data for path, data in bytes_of(made).items() if path != gone and path.name != TABLE_NAME}
    assert all(before[path] == data for path, data in others.items())


def test_once_stopped_it_writes_nothing_more(made, tmp_path):
    (task,) = tasks(small(tmp_path))
    stopped = threading.Event()
    shown = []

    def show(line):
        shown.append(line)
        stopped.set()

    assert work(task, stopped.is_set, show) == 1
    assert len(list((task.folder / SAMPLES_NAME).iterdir())) == 1
    assert not (task.folder / TABLE_NAME).exists()
    assert work(task, lambda: True, show) == 0


def test_a_placement_that_was_checked_is_not_checked_again(made, tmp_path, monkeypatch):
    """Two recipes that come to the same macros, in one run and in one that goes on."""
    (folder,) = design_folders(made)
    one = read_samples(folder)[1][0].placement
    monkeypatch.setattr(generation, "make_placement", lambda *_, **__: one)
    (task,) = tasks(small(tmp_path, designs=(str(folder),)))
    shown = []
    for expected in (1, 0):
        assert work(task, lambda: False, shown.append) == expected
        (sample,) = read_samples(task.folder)[1]
        assert sum(f"its macros are placed as those of {sample.name}" in line for line in shown) == 2
        shown.clear()


def test_a_sample_that_is_cut_is_refused(made):
    (folder,) = design_folders(made)
    design, _ = read_samples(folder)
    path = folder / SAMPLES_NAME / "cut.npz"
    whole = sorted((folder / SAMPLES_NAME).iterdir())[0].read_bytes()
    try:
        for length in (0, 100, len(whole) - 10):
            path.write_bytes(whole[:length])
            with pytest.raises(DesignError, match=r"cut\.npz: no sample, or a damaged one"):
                read_sample(path, design)
    finally:
        path.unlink()


def test_a_sample_of_another_design_is_refused(made):
    (folder,) = design_folders(made)
    other = make_design("other", seed=5, cells=(300, 400), macros=(4, 6)).design
    with pytest.raises(DesignError, match=r"npz: .*; is it of another design"):
        read_sample(sorted((folder / SAMPLES_NAME).iterdir())[0], other)


def test_given_designs_are_copied(made, tmp_path):
    (folder,) = design_folders(made)
    make_data(small(tmp_path / "copied", designs=(str(folder),), placements=1), Console(quiet=True))
    (copied,) = design_folders(tmp_path / "copied")
    assert copied.name == folder.name
    assert len(read_samples(copied)[1]) == 1  # its own samples, not those of the folder it came from


def test_given_placements_are_checked_beside_the_made_ones(made, tmp_path, capfd):
    (folder,) = design_folders(made)
    design, samples = read_samples(folder)
    first, second = samples[0].placement, samples[1].placement
    coarse = dataclasses.replace(design, canvas=dataclasses.replace(design.canvas, columns=7))
    for name, of, placement in (
        ("theirs", design, first),
        ("mine", coarse, second.moved(design.netlist.soft, 0.0, 0.0)),
    ):
        write_placement(tmp_path / f"{name}.plc", of, placement)
    files = (str(tmp_path / "theirs.plc"), str(tmp_path / "mine.plc"))
    make_data(small(tmp_path / "out", designs=(str(folder),), given=files), Console(quiet=True))
    found = {sample.name: sample for sample in read_samples(tmp_path / "out" / folder.name)[1]}
    # What the first two recipes make is what was given, so it is not checked again.
    assert sorted(found) == [samples[2].name, "given-mine", "given-theirs"]
    assert found["given-theirs"].truth.routed_wirelength == pytest.approx(samples[0].truth.routed_wirelength, rel=0.01)
    hard = design.netlist.hard
    np.testing.assert_allclose(found["given-mine"].placement.x[hard], second.x[hard], atol=1e-3)
    (note,) = (line for line in capfd.readouterr().err.splitlines() if line.startswith("note: "))
    assert re.search(r"mine\.plc was made for .*, 7 × .* gcells.*; checked on ", note)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (["gone.plc"], r"given=.*gone\.plc: there is no such file"),
        (["a/one.plc", "b/one.plc"], "2 files are called one"),
        (["a/one.plc"], r"one\.plc:1: .*'Width'"),
    ],
)
def test_given_placements_that_cannot_be_read_are_refused(made, tmp_path, files, told):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.plc").write_text("# nothing\n")
    paths = tuple(str(tmp_path / file) for file in files)
    config = small(tmp_path / "out", designs=(str(design_folders(made)[0]),), given=paths)
    with pytest.raises(DesignError, match=told):
        make_data(config, Console(quiet=True))
    assert list(tmp_path.glob("out/*")) == []


def test_given_placements_need_their_design(tmp_path):
    with pytest.raises(ConfigError, match=r"given: needs designs to be the one design .* not none"):
        small(tmp_path, given=("one.plc",))


@pytest.mark.parametrize("address", ["local", "here", "ray://head:10001", "head:0", ""])
def test_what_is_no_address_of_a_cluster_is_refused(tmp_path, address):
    with pytest.raises(ConfigError, match=rf"address='{address}': must be auto or host:port"):
        small(tmp_path, address=address)


def test_processes_share_the_designs(tmp_path):
    console = Console(record=True, file=io.StringIO())
    make_data(small(tmp_path, count=2, placements=1, workers=2, seed=7), console)
    assert [len(read_samples(folder)[1]) for folder in design_folders(tmp_path)] == [1, 1]
    assert console.export_text().count("1 samples made") == 2


def die(stop):
    """In place of what a process begins with."""
    os.abort()


def test_a_process_that_dies_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(generation, "_begin", die)
    with pytest.raises(DesignError, match=r"workers=2: a process that makes the data died.*try fewer"):
        make_data(small(tmp_path, count=2, placements=1, workers=2, seed=7), Console(file=io.StringIO()))
    assert not multiprocessing.active_children()


def test_a_folder_without_designs_is_refused(tmp_path):
    with pytest.raises(DesignError, match="no data set"):
        design_folders(tmp_path)
    with pytest.raises(DesignError, match="no data set"):
        design_folders(tmp_path / "nothing")


def test_what_a_killed_process_left_is_no_design(made, tmp_path):
    shutil.copytree(made, tmp_path / "data")
    (folder,) = design_folders(tmp_path / "data")
    shutil.copytree(folder, tmp_path / "data" / f".{folder.name}.x1y2", ignore=shutil.ignore_patterns("*.plc"))
    assert design_folders(tmp_path / "data") == [folder]


def test_designs_of_one_name_are_refused(made, tmp_path):
    (folder,) = design_folders(made)
    shutil.copytree(folder, tmp_path / "other" / folder.name)
    both = (str(folder), str(tmp_path / "other" / folder.name))
    with pytest.raises(DesignError, match=f"2 are in folders called {folder.name}; each needs its own name"):
        make_data(small(tmp_path / "out", designs=both), Console(quiet=True))


def test_recipes_are_drawn_from_the_seed():
    first, again, other = (list(recipes(12, seed=seed, spacings=(0.0, 3.0))) for seed in (1, 1, 2))
    assert first == again != other
    assert len({recipe.name for recipe in first}) == 12
    assert sum(recipe.weights is None for recipe in first) == 2
    assert {recipe.spacing for recipe in first} == {0.0, 3.0}


def test_spacing_that_leaves_no_room_is_left_out(monkeypatch):
    monkeypatch.setattr(legaliser, "COMPARISONS", 10**5)  # there is no room, however long it looks
    design = make_design("crowded", seed=5, cells=(300, 400), macros=(4, 6)).design
    recipe = next(recipes(5, seed=0))._replace(start="packed", spacing=1e4)
    assert legality(design, make_placement(design, recipe, moves=1000)) == (0, 0)


def test_designs_are_drawn_from_the_seed():
    one, same, other = (make_design("made", seed=seed, cells=(300, 400), macros=(4, 9)).design for seed in (3, 3, 4))
    assert np.array_equal(one.netlist.width, same.netlist.width)
    assert dataclasses.asdict(one.canvas) == dataclasses.asdict(same.canvas)
    assert one.canvas.width != other.canvas.width
    assert one.canvas.routes_horizontal != other.canvas.routes_horizontal


def test_ranges_the_wrong_way_round_are_refused():
    with pytest.raises(ConfigError, match="most_cells=10"):
        DataConfig(out="x", most_cells=10)
