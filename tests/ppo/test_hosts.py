"""Two learner hosts in separate processes compute the same as one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from placement.ppo.learner import Hosts
from placement.training.checkpoint import Checkpoints
from tests.support.episodes import episode

WORKER = Path(__file__).with_name("host_worker.py")
SECONDS = 480


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _run(count: int, folder: Path) -> list[dict]:
    """Returns the output of each of `count` hosts; they have two devices together. The first saves in `folder`."""
    port, environment = str(_free_port()), os.environ | {"PYTHONPATH": str(WORKER.parents[2])}
    started = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(index), str(count), port, str(folder)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for index in range(count)
    ]  # fmt: skip
    try:
        ended = [process.communicate(timeout=SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait(10)
    for process, (_, errors) in zip(started, ended, strict=True):
        assert process.returncode == 0, errors[-3000:]
    return [json.loads(output.splitlines()[-1]) for output, _ in ended]


@pytest.mark.cluster
@pytest.mark.timeout(600)
@pytest.mark.slow
def test_two_hosts_learn_what_one_learns(tmp_path: Path) -> None:
    """Each host learns from the episodes of its shard; there is one checkpoint."""
    pytest.importorskip("reverb")
    (alone,) = _run(1, tmp_path / "alone")
    first, second = _run(2, tmp_path / "together")
    assert first["devices"] == second["devices"] == alone["devices"] == 2
    assert first["samples"] == alone["samples"] > 8
    assert first["digest"] == second["digest"]  # bit-identical parameters on every host
    parameters = [np.load(tmp_path / f"{name}-0.npy") for name in ("together", "alone")]
    np.testing.assert_allclose(*parameters, rtol=1e-4, atol=1e-5)
    assert first["policy_loss"] == pytest.approx(alone["policy_loss"], rel=1e-3, abs=1e-5)
    checkpoints = Checkpoints(tmp_path / "together", read_only=True)
    assert checkpoints.steps() == [2]
    checkpoints.close()


def test_one_host_keeps_its_episodes() -> None:
    episodes = [episode(0), episode(1)]
    assert Hosts().exchange(episodes) is episodes
