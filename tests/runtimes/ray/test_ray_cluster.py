"""A run on an existing Ray cluster: it joins with the token, trains, and leaves the cluster unchanged."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("reverb")

from placement.runtimes.ray import ray_connection
from tests.support.ray_head import VARIABLES, named, ray_head
from tests.support.ray_run import FAKES, LONG, RayRun, toy

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Yields the address of a head node of ten processors, and its process."""
    with ray_head(tmp_path_factory.mktemp("ray") / "said", cpus=10) as head:
        yield head


def test_a_run_joins_trains_and_leaves(cluster: tuple[str, int], tmp_path: Path) -> None:
    address, head = cluster
    config = toy(tmp_path, iterations=10**6, runtime={"address": address, "bind": "node", "actors": 1})
    with RayRun(config, factories=FAKES, environment=VARIABLES) as run:
        run.until(lambda: run.iteration() > 20, "training has begun", timeout=LONG)
        below = named(head, b"Process")
        assert {one["pid"] for one in run.seen.values()} <= {process.pid for process in below}
        run.send(signal.SIGINT)
        assert run.end(timeout=LONG) == 0, run.output()
        assert not ray_connection.wait_for_end(below, timeout=LONG), "processes of the run live on"
    assert not named(head, b"Process")


def test_without_the_token_the_error_is_one_line(cluster: tuple[str, int], tmp_path: Path) -> None:
    config = toy(tmp_path, iterations=30, runtime={"address": cluster[0]})
    with RayRun(config, factories=FAKES, environment={**VARIABLES, "RAY_AUTH_TOKEN": "0" * 32}) as run:
        assert run.end(timeout=LONG) != 0
        assert "no usable Ray cluster at this address" in run.output()
