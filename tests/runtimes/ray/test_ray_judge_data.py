"""A judge's data made by processes of a Ray cluster: the same as by this process, whatever dies."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ray")

import ray

from placement.config import ConfigError
from placement.judge.dataset import SAMPLES_NAME, TABLE_NAME, design_folders, read_samples
from placement.judge.generation import Task, tasks
from placement.judge.settings import DataConfig
from placement.netlist.errors import DesignError
from placement.runtimes.ray import judge_data, processes
from placement.runtimes.ray.judge_data import RETRIES, _as_hosts_see, _Died, _Sharing, _work_there
from tests.support.ray_head import VARIABLES, named, ray_head
from tests.support.ray_run import LONG, ROOT

SMALL = ["moves=1000", "least_cells=300", "most_cells=400", "least_macros=4", "most_macros=6", "seed=7"]

TASK = b"_work_there"
"""In the title of a process that does a task."""
SOON = 5.0
"""Seconds in which 30 samples cannot be made."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The address of a head node of two processors, and its process."""
    with ray_head(tmp_path_factory.mktemp("ray") / "said", cpus=2) as head:
        yield head


@contextlib.contextmanager
def begun(folder: Path, words: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """The command, given in `folder`; it ends with the block, however that ends."""
    command = [sys.executable, "-m", "placement.cli.main", "judge", "data", "out", *SMALL, *words]
    variables = {**os.environ, **VARIABLES, "PYTHONPATH": str(ROOT)}
    run = subprocess.Popen(
        command, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield run
    finally:
        run.kill()
        run.communicate()


def samples(folder: Path) -> dict[Path, int]:
    """When each of the command's samples was written."""
    return {path: path.stat().st_mtime_ns for path in (folder / "out").glob(f"*/{SAMPLES_NAME}/*.npz")}


def until_a_sample(folder: Path, run: subprocess.Popen[str]) -> dict[Path, int]:
    """The first samples."""
    deadline = time.monotonic() + LONG
    while not (found := samples(folder)):
        assert run.poll() is None and time.monotonic() < deadline, "no sample was made"
        time.sleep(0.02)
    return found


@pytest.mark.cluster
@pytest.mark.timeout(1200)
def test_hosts_make_what_this_process_makes_though_one_dies(cluster: tuple[str, int], tmp_path: Path) -> None:
    address, head = cluster
    with begun(tmp_path, [f"address={address}", "count=2", "placements=3", "workers=2"]) as run:
        first = until_a_sample(tmp_path, run)
        named(head, TASK)[0].kill()
        said, _ = run.communicate(timeout=LONG)
    assert run.returncode == 0, said
    assert re.findall(r"^(design \d of 2|\d designs at once)", said, re.M) == [
        "2 designs at once",
        "design 1 of 2",
        "design 2 of 2",
    ]
    assert first.items() <= samples(tmp_path).items()
    assert not list((tmp_path / "out").glob(".judge-data-*"))
    (tmp_path / "here").mkdir()
    with begun(tmp_path / "here", ["count=2", "placements=3"]) as run:
        said, _ = run.communicate(timeout=LONG)
    assert run.returncode == 0, said
    for mine, made in zip(design_folders(tmp_path / "here" / "out"), design_folders(tmp_path / "out"), strict=True):
        assert (made / TABLE_NAME).is_file()
        (design, here), (same, there) = read_samples(mine), read_samples(made)
        assert np.array_equal(design.netlist.width, same.netlist.width)
        assert [one.name for one in here] == [one.name for one in there]
        for one, other in zip(here, there, strict=True):
            assert one.placement == other.placement
            assert one.truth[:6] == other.truth[:6]


@pytest.mark.cluster
@pytest.mark.timeout(1200)
def test_ctrl_c_ends_all_and_the_same_command_goes_on(cluster: tuple[str, int], tmp_path: Path) -> None:
    address, head = cluster
    words = [f"address={address}", "count=1", "placements=30"]
    with begun(tmp_path, words) as run:
        until_a_sample(tmp_path, run)
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=LONG)
    assert run.returncode == 130, said
    assert "stopped; the same command goes on from here" in said.splitlines(), said
    assert not processes.wait_for_end(named(head, TASK), timeout=SOON), "a task goes on"
    before = samples(tmp_path)
    with begun(tmp_path, words) as run:
        said, _ = run.communicate(timeout=LONG)
    assert run.returncode == 0, said
    (made,) = re.findall(r"(\d+) samples made", said)
    after = samples(tmp_path)
    assert before.items() <= after.items() and len(after) == len(before) + int(made) > len(before)


@pytest.mark.cluster
@pytest.mark.timeout(1200)
def test_no_cluster_at_the_address_is_told_in_one_line(tmp_path: Path) -> None:
    with begun(tmp_path, ["address=127.0.0.1:1"]) as run:
        said, _ = run.communicate(timeout=LONG)
    assert run.returncode == 2
    told = "address='127.0.0.1:1': no Ray cluster can be used there (nothing takes connections)"
    assert told in said and said.count("\n") == 1, said


@pytest.mark.parametrize("content", [None, "of another run"])
def test_a_host_with_another_folder_of_that_name_makes_nothing(content: str | None, tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    if content is not None:
        sign.write_text(content, encoding="utf-8")
    (task,) = tasks(DataConfig(out=str(tmp_path), count=1))
    done = _work_there(task, str(sign), "of this one")
    assert done.made == 0 and "is not the same folder there; it must be one that all hosts share" in done.error
    assert not task.folder.exists()


class FakeRay:
    """The exceptions of Ray, one of which every result is."""

    exceptions = ray.exceptions

    def __init__(self, error: Exception) -> None:
        self._error = error

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(gcs_address="127.0.0.1:1")

    def get(self, reference: object) -> None:
        raise self._error


def results(error: Exception, out: Path) -> tuple[_Sharing, Task]:
    """What takes the results of a task that ends with `error`, and the task."""
    config = DataConfig(out=str(out), count=1, address="head:1")
    (task,) = tasks(config)
    return _Sharing(FakeRay(error), config), task


def test_a_task_that_dies_again_and_again_is_given_up(tmp_path: Path) -> None:
    sharing, task = results(ray.exceptions.WorkerCrashedError(), tmp_path)
    for _ in range(RETRIES):
        with pytest.raises(_Died):
            sharing._result(None, task)
    with pytest.raises(DesignError, match=r"address='head:1': made00000: the process that makes it died 4 times"):
        sharing._result(None, task)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ray.exceptions.TaskUnschedulableError("no such node"), r"made00000: Ray did not have it made: .*no such node"),
        (ray.exceptions.RayError(), "made00000: Ray did not have it made: RayError"),
    ],
)
def test_what_ray_says_is_told_in_a_line(error: Exception, told: str, tmp_path: Path) -> None:
    sharing, task = results(error, tmp_path)
    with pytest.raises(DesignError, match=told) as raised:
        sharing._result(None, task)
    assert "\n" not in str(raised.value)


def test_a_cluster_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_data, "LOOK_SECONDS", 0.0)
    sharing, _ = results(ray.exceptions.RayError(), tmp_path)
    sharing._look()  # not yet for so long
    monkeypatch.setattr(judge_data, "LOST_SECONDS", -1.0)
    with pytest.raises(ConfigError, match=r"address='head:1': the cluster is gone; once it is back, the same command"):
        sharing._look()


def test_links_keep_their_names(tmp_path: Path) -> None:
    config = DataConfig(out=str(tmp_path / "link" / "out"), address="head:1", count=1)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert _as_hosts_see(config).out == str(tmp_path / "link" / "out")
