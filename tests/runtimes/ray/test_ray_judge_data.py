"""A judge's data made by processes of a Ray cluster: the same as by this process, whatever dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import psutil
import pytest

pytest.importorskip("ray")

from placement.judge.dataset import SAMPLES_NAME, TABLE_NAME, design_folders, read_samples
from placement.judge.generation import tasks
from placement.judge.settings import DataConfig
from placement.runtimes.ray import processes
from placement.runtimes.ray.judge_data import _work_there
from tests.support.ray_head import VARIABLES, ray_head
from tests.support.ray_run import LONG, ROOT

SMALL = ["moves=1000", "least_cells=300", "most_cells=400", "least_macros=4", "most_macros=6", "seed=7"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The address of a head node of two processors, and its process."""
    with ray_head(tmp_path_factory.mktemp("ray") / "said", cpus=2) as head:
        yield head


def begun(folder: Path, words: Sequence[str]) -> subprocess.Popen[str]:
    """The command, given in `folder`."""
    command = [sys.executable, "-m", "placement.cli.main", "judge", "data", "out", *SMALL, *words]
    variables = {**os.environ, **VARIABLES, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def working(head: int) -> list[psutil.Process]:
    """Processes of the node that do a task; Ray names them after what they run."""
    found = []
    for process in processes.descendants(head):
        try:
            if b"_work_there" in Path(f"/proc/{process.pid}/cmdline").read_bytes():
                found.append(process)
        except OSError:
            continue  # it has just ended
    return found


def until_works(head: int, run: subprocess.Popen[str]) -> psutil.Process:
    """A process that does a task."""
    deadline = time.monotonic() + LONG
    while not (found := working(head)):
        assert run.poll() is None and time.monotonic() < deadline, "no task has begun"
        time.sleep(0.02)
    return found[0]


@pytest.mark.cluster
@pytest.mark.timeout(1200)
def test_hosts_make_what_this_process_makes_though_one_dies(cluster: tuple[str, int], tmp_path: Path) -> None:
    address, head = cluster
    with begun(tmp_path, [f"address={address}", "count=2", "placements=2", "workers=2"]) as run:
        until_works(head, run).kill()
        said, _ = run.communicate(timeout=LONG)
    assert run.returncode == 0, said
    told = [line.partition(":")[0] for line in said.splitlines() if "(raylet)" not in line]  # who tells of the death
    assert [line for line in told if line] == ["design 1 of 2", "design 2 of 2"]
    assert not list((tmp_path / "out").glob(".judge-data-*"))
    (tmp_path / "here").mkdir()
    with begun(tmp_path / "here", ["count=2", "placements=2"]) as run:
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
    words = [f"address={address}", "count=1", "placements=12"]

    def samples() -> dict[Path, int]:
        """When each was written."""
        return {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob(f"*/{SAMPLES_NAME}/*.npz")}

    with begun(tmp_path, words) as run:
        until_works(head, run)
        deadline = time.monotonic() + LONG
        while not samples():
            assert run.poll() is None and time.monotonic() < deadline, "no sample was made"
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=LONG)
    assert run.returncode == 130, said
    assert "stopped; the same command goes on from here" in said.splitlines(), said
    assert not processes.wait_for_end(working(head), timeout=LONG), "a task goes on"
    before = samples()
    with begun(tmp_path, words) as run:
        said, _ = run.communicate(timeout=LONG)
    assert run.returncode == 0, said
    (made,) = re.findall(r"(\d+) samples made", said)
    after = samples()
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
