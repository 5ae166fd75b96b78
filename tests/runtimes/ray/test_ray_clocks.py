"""Hosts whose clocks differ by minutes, and a run that they store in object storage instead of on a disk."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("reverb")

from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load
from tests.support import cluster as hosts
from tests.support.cluster import HEAD, Cluster, make_cluster
from tests.support.object_server import object_server
from tests.support.ray_run import FAKES, LONG, ROOT, RayRun, check_record, toy
from tests.support.recording import RECORD
from tests.support.waiting import wait_until

reason = hosts.missing() or hosts.missing_clocks()
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.hosts,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(reason), reason=reason or "hosts can be made"),
]
MINUTE = 60.0
AHEAD, BEHIND = 5.0, -5.0
NODE_CPUS = 7  # all processes of the run
STORE = "store"
ITERATIONS = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clocks")


@pytest.fixture(scope="module")
def machine(folder: Path) -> Path:
    """Returns the working folder of commands and nodes; each host has its own."""
    made = folder / "machine"
    made.mkdir()
    return made


@pytest.fixture(scope="module")
def cluster(folder: Path, machine: Path) -> Iterator[Cluster]:
    """The head offers no resources; either node can run all processes; the learner's GPU is on one of them."""
    # No node is disconnected here, so Ray may give up an unresponsive one soon.
    variables = {RECORD: str(folder / "record"), "RAY_health_check_failure_threshold": "4"}
    with make_cluster([HEAD, "one", "two", STORE], folder, variables) as cluster:
        at = {"host": cluster.network.hosts[STORE].address, "prefix": cluster.on(STORE)}
        with object_server(folder, **at) as server:
            cluster.variables |= server.environment
            cluster.start(HEAD, cpus=0)
            cluster.start("one", cpus=NODE_CPUS, own=machine, minutes=AHEAD)
            cluster.start("two", cpus=NODE_CPUS, gpus=1, own=machine, minutes=BEHIND)
            yield cluster


CLOCKS = """
import json, sys, time
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="CRITICAL")
clock = ray.remote(num_cpus=0)(lambda: (time.time(), time.monotonic()))
clocks = {}
for node in ray.nodes():
    here = time.time(), time.monotonic()
    there = ray.get(clock.options(scheduling_strategy=On(node["NodeID"], soft=False)).remote(), timeout=120)
    clocks[node["NodeManagerAddress"]] = [there[at] - here[at] for at in (0, 1)]
print(json.dumps(clocks))
"""


def test_the_clocks_differ(cluster: Cluster) -> None:
    clocks = json.loads(cluster.program(HEAD, CLOCKS, cluster.address, token=cluster.token))
    for host, minutes in ((HEAD, 0.0), ("one", AHEAD), ("two", BEHIND)):
        wall, monotonic = clocks[cluster.network.hosts[host].address]
        assert wall == pytest.approx(60 * minutes, abs=MINUTE)
        assert monotonic == pytest.approx(0.0, abs=MINUTE)


def _goes_on(run: RayRun, *, within: float = MINUTE, iterations: int = 5) -> None:
    reached = run.iteration()
    run.until(lambda: run.iteration() > reached + iterations, "training continues", timeout=within)


def _newest(folder: Path, number: int) -> int:
    """Returns the newest checkpoint of a shard."""
    found = (folder / "run" / "shards" / str(number)).glob("[0-9]*")
    return max((int(path.name) for path in found), default=0)


def _taken_back(run: RayRun, number: int) -> list[int]:
    """Returns the checkpoints that a shard has restored so far."""
    found = re.findall(rf"shard {number} restores \d+ episodes of its checkpoint (\d+)", run.output())
    return [int(checkpoint) for checkpoint in found]


def test_shards_take_back_their_newest_checkpoints_where_the_clock_is_behind(cluster: Cluster, folder: Path) -> None:
    """All nodes see the run folder here, so that a shard finds checkpoints that it saved on another one."""
    runtime = {"bind": "node", "shards": 2, "caches": 2, "actors": 2, "roles": {"learner": {"gpus": 1}}}
    config = toy(folder / "run", iterations=10**6, runtime={**runtime, "address": cluster.address})
    behind = cluster.network.hosts["two"].address
    with cluster.run(config, factories=FAKES) as run:

        def back(pids: dict[str, int]) -> bool:
            """Returns whether all shards are new processes, on the node whose clock is behind."""
            return all(run.pid(name) not in (0, pid) and run.seen[name]["host"] == behind for name, pid in pids.items())

        run.until(lambda: run.iteration() > 20, "training has begun", timeout=LONG)
        run.until(lambda: all(_newest(folder, number) > 1 for number in range(2)), "all have saved", timeout=LONG)
        moved = [number for number in range(2) if run.seen[f"shard {number}"]["host"] != behind]
        assert moved, "no shard is on the node whose clock is ahead"
        pids = {f"shard {number}": run.pid(f"shard {number}") for number in moved}
        cluster.kill("one")
        saved = {number: _newest(folder, number) for number in moved}
        run.until(lambda: back(pids), "they are on the other node", timeout=2 * MINUTE)
        _goes_on(run)
        for number in moved:
            run.until(lambda number=number: _newest(folder, number) > saved[number] + 1, "it saves", timeout=MINUTE)
        assert {number: _taken_back(run, number) for number in moved} == {n: [last] for n, last in saved.items()}
        for number in moved:
            pids[f"shard {number}"] = run.kill(f"shard {number}", timeout=MINUTE)
            saved[number] = _newest(folder, number)
        run.until(lambda: back(pids), "they are there again", timeout=2 * MINUTE)
        _goes_on(run)
        assert {number: _taken_back(run, number)[1:] for number in moved} == {n: [last] for n, last in saved.items()}
        run.send(signal.SIGINT)
        assert run.end(timeout=LONG) == 0, run.output()
    check_record(folder)


class Command:
    """`train.py`, started on the head in the head's own folder."""

    def __init__(self, cluster: Cluster, machine: Path, *settings: str) -> None:
        words = [*cluster.on(HEAD), sys.executable, str(ROOT / "train.py"), "preset=test", *settings]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.process = subprocess.Popen(words, cwd=machine, env=cluster.variables, **pipes)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            self.lines.extend(lines)

    def until(self, happened: Callable[[], bool]) -> None:
        wait_until(lambda: happened() or self.process.poll() is not None, timeout=LONG)
        assert happened(), "".join(self.lines)

    def end(self) -> int:
        code = self.process.wait(LONG)
        self._reader.join(MINUTE)
        return code


def _learner_on(cluster: Cluster, host: str) -> bool:
    if not cluster.lives(host):
        return False
    return any("LearnerProcess" in " ".join(process.cmdline()) for process in cluster.processes(host))


def _has_a_checkpoint(log: Path) -> bool:
    """Returns whether the store's log reports a published state with a checkpoint."""
    printed = log.read_text(encoding="utf-8")
    return 0 < printed.find("PUT /bucket/first/checkpoints/") < printed.rfind("PUT /bucket/first/.manifest.json")


def test_a_learner_on_another_host_than_the_command_keeps_its_run_in_object_storage(
    cluster: Cluster, folder: Path, machine: Path
) -> None:
    if cluster.lives("one"):
        cluster.kill("one")
    cluster.start("one", cpus=NODE_CPUS, gpus=1, own=machine, minutes=AHEAD)  # the learner fits on either node now
    settings = [f"ppo.iterations={ITERATIONS}", "runtime.checkpoint_every=10", "run_dir=s3://bucket/first"]
    settings += ["runtime=ray", f"runtime.address={cluster.address}", "runtime.bind=node"]
    settings += ["runtime.roles.learner.gpus=1", "runtime.actors=1"]
    command = Command(cluster, machine, *settings)
    command.until(lambda: _has_a_checkpoint(folder / "s3.log"))
    (at,) = [host for host in ("one", "two") if _learner_on(cluster, host)]
    cluster.kill(at)
    assert command.end() == 0, "".join(command.lines)
    printed = "".join(command.lines)
    assert "learner died and is restarted" in printed
    assert "files fetched into runs/remote/s3/bucket/first, checkpoints [10" in printed, "the other node had the run"
    assert "resumes after iteration" in printed
    result = machine / "runs/remote/s3/bucket/first"
    with (result / "metrics.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["iteration"]) for row in rows] == list(range(1, ITERATIONS + 1))
    _, placement = read_placement(result / "best.plc", load("toy6").netlist)
    best = json.loads((result / "best.json").read_text())["toy6"]["cost"]
    cost = compute_costs(load("toy6"), placement, weights=DEFAULT_WEIGHTS).total
    assert cost == pytest.approx(best, rel=1e-12)
    assert best <= min(float(row["cost_best"]) for row in rows) + 1e-8
    assert (result / "report.html").is_file()
