"""Behaviour specific to the Reverb replay: it rejects malformed items and is isolated."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.episodes import STEPS, counts, episode

shard_items = pytest.importorskip(
    "placement.replay.shard_items", reason="Reverb is not installed", exc_type=ImportError
)
from placement.replay.in_process import ReverbReplay  # noqa: E402
from placement.transport.reverb_server import own_listeners  # noqa: E402
from tests.support.by_hand import write_item  # noqa: E402

LONG = 90.0


@pytest.fixture
def replay() -> Iterator[ReverbReplay]:
    result = ReverbReplay(capacity=8, steps=STEPS, designs=2)
    yield result
    result.close()


@pytest.mark.parametrize(
    "malformed",
    [
        [np.zeros(3)],
        {**episode(1)._asdict(), "log_probabilities": np.full(STEPS, np.nan, np.float32)},
        {**episode(1)._asdict(), "log_probabilities": np.zeros(STEPS + 1, np.float32)},
        {**episode(1)._asdict(), "actions": np.zeros(STEPS, np.float64)},
        {**episode(1)._asdict(), "design": np.array(7, np.int32)},
    ],
    ids=["another structure", "NaN", "shape", "dtype", "unknown design"],
)
def test_a_malformed_item_is_rejected_and_counted_and_reading_continues(
    replay: ReverbReplay, malformed: object
) -> None:
    replay.write(episode(0), timeout=LONG)
    write_item(f"localhost:{replay._shard.port}", malformed)
    replay.write(episode(2), timeout=LONG)
    assert counts(replay.read(2, timeout=LONG)) == [0, 2]
    assert replay.rejected == 1
    assert replay.size() == 0


def test_the_server_listens_on_loopback_only(replay: ReverbReplay) -> None:
    bound = set()
    for listener in own_listeners(replay._shard.port):
        with listener:
            bound.add(listener.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0"))
    assert bound == {b"lo"}
    assert shard_items.TABLE in shard_items.reverb.Client(f"localhost:{replay._shard.port}").server_info(timeout=5)


def test_no_folder_is_left(replay: ReverbReplay) -> None:
    assert replay._shard._server._temporary is not None
    folder = Path(replay._shard._server._temporary.name)
    assert folder.exists()
    replay.close()
    assert not folder.exists()


def test_a_process_that_writes_reads_and_ends_prints_nothing() -> None:
    # In a separate process, because Reverb and TensorFlow print some lines only once per process.
    script = (
        "from placement.replay.in_process import ReverbReplay\n"
        "from tests.support.episodes import STEPS, counts, episode\n"
        "replay = ReverbReplay(capacity=2, steps=STEPS)\n"
        f"replay.write(episode(0), timeout={LONG})\n"
        f"assert counts(replay.read(1, timeout={LONG})) == [0]\n"
        "replay.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_failure_of_the_reader_reaches_whoever_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise OSError("no memory left")

    monkeypatch.setattr(shard_items.ItemReader, "next", fail)
    replay = ReverbReplay(capacity=2, steps=STEPS)
    with pytest.raises(RuntimeError, match="reading from the replay shards failed: no memory left"):
        replay.read(1, timeout=LONG)
    replay.close()
