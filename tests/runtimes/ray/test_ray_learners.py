"""Two learner hosts on Ray: processes that read their own shards, learn as one, and resume after one is killed."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("reverb")

from placement.config import ConfigError, TrainConfig, build
from placement.runtimes.ray import driver, ray_connection
from placement.training.rollout import INCARNATION_BITS
from tests.support.ray_run import EPISODES, FAKES, LONG, RayRun, recorded, toy, unreadable_lines
from tests.support.recording import RECORD, UPDATE_SECONDS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
ACTORS = 3
RUNTIME = {"learners": 2, "shards": 2, "caches": 1, "actors": ACTORS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("learners")


@pytest.fixture(scope="module")
def run(folder: Path) -> Iterator[RayRun]:
    config = toy(folder / "run", iterations=10**6, runtime={**RUNTIME, "bind": "node"})  # so they require the token
    variables = {RECORD: str(folder / "record"), UPDATE_SECONDS: "0.05", "XLA_FLAGS": ""}
    with RayRun(config, factories=FAKES, environment=variables) as run:
        run.until(lambda: run.iteration() > 20, "training has begun", timeout=LONG)
        yield run


def _check(folder: Path) -> None:
    """Checks that every host contributes its half of every iteration, from its own actors, without duplicates."""
    lines = recorded(folder / "record")
    actors = [[episode["identity"][0] >> INCARNATION_BITS for episode in line["episodes"]] for line in lines]
    assert all([actor % 2 for actor in line] == [0] * 4 + [1] * 4 for line in actors)
    assert {actor for line in actors for actor in line} == set(range(ACTORS))
    identities = [tuple(episode["identity"]) for line in lines for episode in line["episodes"]]
    assert len(set(identities)) == len(identities), "an episode was counted twice"
    assert all(episode["drawn_with"] == [episode["version"]] for line in lines for episode in line["episodes"])
    best = json.loads((folder / "run" / "best.json").read_text())["toy6"]["cost"]
    written = [line for line in lines if line["iteration"] < lines[-1]["iteration"]]
    cheapest = min(episode["cost"] for line in written for episode in line["episodes"] if not episode["dead_end"])
    assert best <= cheapest * (1 + 1e-12), "a better placement was lost"


@pytest.mark.slow
def test_every_host_brings_its_share(run: RayRun, folder: Path) -> None:
    assert run.pid("learner") and run.pid("learner 1")
    _check(folder)
    with (folder / "run" / "metrics.csv").open(newline="") as stream:
        row = list(csv.DictReader(stream))[-1]
    assert int(row["episodes"]) == EPISODES * int(row["iteration"])
    assert int(row["learners"]) == 2 and int(row["learner_rejected"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["learner 1", "learner"])
def test_one_is_killed_and_both_go_on_from_the_checkpoint(run: RayRun, folder: Path, name: str) -> None:
    run.until(lambda: (folder / "run" / "checkpoints" / "20").is_dir(), "there is a checkpoint", timeout=LONG)
    before = {each: run.pid(each) for each in ("learner", "learner 1")}
    assert run.kill(name, timeout=LONG) == before[name]
    for each, pid in before.items():
        run.until(lambda each=each, pid=pid: run.pid(each) not in (0, pid), f"{each} is restarted", timeout=LONG)
    times = {"learner 1": 1, "learner": 2}[name]
    # The learner that lost the other one ends itself; which of them Ray reports first is random.
    assert len(re.findall(r"learner(?: 1)? died and is restarted", run.output())) == times, run.output()
    assert len(re.findall(r"learner(?: 1)? is restarted with the others", run.output())) == times, run.output()
    assert run.output().count("resumes after iteration") == times
    reached = run.iteration()
    run.until(lambda: run.iteration() > reached + 5, "training continues", timeout=LONG)
    _check(folder)


@pytest.mark.slow
def test_a_shard_is_killed_and_its_host_waits_for_it(run: RayRun, folder: Path) -> None:
    killed = run.kill("shard 1", timeout=LONG)
    run.until(lambda: run.pid("shard 1") not in (0, killed), "it is restarted", timeout=LONG)
    reached = run.iteration()
    run.until(lambda: run.iteration() > reached + 5, "training continues", timeout=LONG)
    _check(folder)


@pytest.mark.slow
def test_they_stop_together(run: RayRun, folder: Path) -> None:
    below = run.below()
    run.send(signal.SIGINT)
    assert run.end(timeout=LONG) == 0, run.output()
    assert not [process for process in below if ray_connection.alive(process)]
    done = int(run.lines[-1].split()[1])
    assert run.lines[-1].startswith("interrupted") and str(done) in os.listdir(folder / "run" / "checkpoints")


@pytest.mark.slow
def test_the_real_network_learns_on_two_hosts(tmp_path: Path) -> None:
    config = toy(tmp_path / "run", iterations=4, runtime={**RUNTIME, "checkpoint_every": 2, "actors": 2, "caches": 0})
    config["policy"] = {"node_width": 4, "rounds": 1, "grid_width": 4}
    config["ppo"] |= {"minibatch_size": 16, "epochs": 2}
    with RayRun(config, environment={"XLA_FLAGS": "--xla_backend_optimization_level=0"}) as run:
        run.until(lambda: "run folder:" in run.output(), "it is done", timeout=2 * LONG)
        run.send(signal.SIGTERM)  # while it ends, or a moment after
        assert run.end(timeout=LONG) in (0, -signal.SIGTERM), run.output()
        assert unreadable_lines(run.lines) == []
    with (tmp_path / "run" / "metrics.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["iteration"]) for row in rows] == [1, 2, 3, 4]
    # Two hosts with one device each share every minibatch of sixteen; each iteration has eight episodes of six steps.
    # Half of the steps of each iteration are sampled.
    assert all(
        float(row["learner_samples"]) == math.ceil((float(row["steps"]) - before) / 2)
        for row, before in _with_before(rows)
    )
    assert {name.split(".")[0] for name in os.listdir(tmp_path / "run" / "checkpoints")} == {"2", "4"}


def _with_before(rows: list[dict[str, str]]) -> list[tuple[dict[str, str], float]]:
    return [(row, float(rows[at - 1]["steps"]) if at else 0.0) for at, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("ppo", "runtime", "says"),
    [
        ({"episodes_per_iteration": 9}, {}, r"ppo.episodes_per_iteration=9: must be divisible by the 2 learner hosts"),
        ({"minibatch_size": 15}, {}, r"ppo.minibatch_size=15: must be divisible by the 2 learner hosts .* 14 or 16"),
        ({}, {"shards": 3}, r"runtime.shards=3: must be divisible by the 2 learner hosts"),
        ({}, {"actors": 1}, r"runtime.actors=1: must be at least one for each of the 2 learner hosts"),
        ({}, {"name": "local"}, r"runtime.learners=2: must be left at 1 without runtime=ray"),
    ],
)
def test_what_cannot_be_shared_is_rejected(tmp_path: Path, ppo: dict, runtime: dict, says: str) -> None:
    config = toy(tmp_path, iterations=1, runtime={**RUNTIME, **runtime})
    config["ppo"] |= ppo
    with pytest.raises(ConfigError, match=says):
        driver.run(build(TrainConfig, config))
