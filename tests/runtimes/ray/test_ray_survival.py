"""A real run on Ray whose processes are killed one after the other; training continues, and nothing is counted
twice.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("reverb")

from placement.runtimes.ray import ray_connection
from tests.support.ray_run import LONG, RayRun, check_record, endless, unreadable_lines

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("name", ["actor 0", "shard 1", "cache 0", "learner"])
def test_a_killed_process_is_restarted_and_training_continues(run: RayRun, folder: Path, name: str) -> None:
    killed = run.kill(name, timeout=LONG)
    assert killed
    run.until(lambda: run.pid(name) not in (0, killed), f"{name} is restarted", timeout=LONG)
    assert f"{name} died and is restarted" in run.output()
    reached = run.iteration()
    run.until(lambda: run.iteration() > reached + 5, "training continues", timeout=LONG)
    check_record(folder)


@pytest.mark.slow
def test_the_coordinator_is_killed_and_filled_again(run: RayRun, folder: Path) -> None:
    killed = run.coordinator
    assert killed in {process.pid for process in run.below()}
    os.kill(killed, signal.SIGKILL)
    run.until(lambda: run.coordinator not in (0, killed), "there is a new one", timeout=LONG)
    run.until(
        lambda: len(run.seen) == 7 and all(one["ready"] for one in run.seen.values()),
        "all send heartbeats",
        timeout=LONG,
    )
    reached = run.iteration()
    run.until(lambda: run.iteration() > reached + 5, "training continues", timeout=LONG)
    killed = run.kill("actor 0", timeout=LONG)  # a restarted process finds it, too
    run.until(lambda: run.pid("actor 0") not in (0, killed), "actor 0 is restarted", timeout=LONG)
    check_record(folder)


@pytest.mark.slow
def test_several_die_at_once(run: RayRun, folder: Path) -> None:
    names = ("actor 1", "shard 0", "cache 1", "learner")
    killed = {name: run.kill(name, timeout=LONG) for name in names}
    for name in names:
        run.until(lambda name=name: run.pid(name) not in (0, killed[name]), f"{name} is back", timeout=LONG)
    reached = run.iteration()
    run.until(lambda: run.iteration() > reached + 5, "training continues", timeout=LONG)
    check_record(folder)


@pytest.mark.slow
def test_the_whole_run_is_killed_and_the_same_command_resumes(run: RayRun, folder: Path) -> None:
    below = run.below()
    run.process.kill()
    assert run.end(timeout=LONG) == -signal.SIGKILL
    with endless(folder) as again:
        again.until(lambda: "resumes after iteration" in again.output(), "the message is printed", timeout=LONG)
        before = again.iteration()
        again.until(lambda: again.iteration() > before + 5, "training continues", timeout=LONG)
        assert not ray_connection.wait_for_end(below, timeout=LONG), "processes of the killed run live on"
        check_record(folder)
        _stop(again, folder)


def _stop(run: RayRun, folder: Path) -> None:
    """SIGTERM, sent to the whole group as by `timeout` and Slurm, ends everything with a checkpoint and one line."""
    below = run.below()
    assert len(below) > 8
    run.send(signal.SIGTERM)
    assert run.end(timeout=LONG) == 0, run.output()
    assert not [process for process in below if ray_connection.alive(process)]
    assert unreadable_lines(run.lines) == [], "the output contains tracebacks or log messages of libraries"
    assert "the same command resumes from there" in run.output()
    assert run.lines[-1].startswith("interrupted")
    done = int(run.lines[-1].split()[1])
    assert str(done) in os.listdir(folder / "run" / "checkpoints")
    assert not (folder / "run" / ".ray-session").exists()
