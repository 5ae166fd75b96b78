"""Shards that require the run's token: without it nothing is written, taken or learned."""

from __future__ import annotations

import contextlib
import socket
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from placement.replay.replay import ReplayTimeout
from placement.transport.addresses import fixed, split
from placement.transport.gate import Tunnels, direct, new_token
from tests.support.episodes import STEPS, episode
from tests.support.waiting import wait_until

pytest.importorskip("placement.replay.shard_items", reason="Reverb is not installed", exc_type=ImportError)
from placement.replay import shard_items
from placement.replay.shard import ReplayShard
from placement.replay.shard_reader import ShardedReplay
from placement.replay.shard_writer import ShardWriter
from placement.transport import reverb_server

LONG = 60.0
TOKEN = new_token()


def _shard(**options: Any) -> ReplayShard:
    return ReplayShard(**{"number": 0, "capacity": 16, "steps": STEPS, "token": TOKEN} | options)


@pytest.fixture
def shard() -> Iterator[ReplayShard]:
    made = _shard()
    yield made
    made.close()


def _write(shard: ReplayShard, count: int, *, dial: Any, timeout: float = LONG) -> None:
    with contextlib.closing(ShardWriter(fixed(shard.address), home=0, steps=STEPS, dial=dial)) as writer:
        for number in range(count):
            writer.write(episode(number), timeout=timeout)


def test_with_the_token_episodes_are_written_and_read(shard: ReplayShard) -> None:
    tunnels = Tunnels(TOKEN)
    _write(shard, 5, dial=tunnels.dial)
    with contextlib.closing(ShardedReplay(fixed(shard.address), steps=STEPS, dial=tunnels.dial)) as replay:
        read = replay.read(5, timeout=LONG)
    assert [int(each.identity[1]) for each in read] == [int(episode(number).identity[1]) for number in range(5)]
    assert shard.statistics().unauthenticated == 0
    tunnels.close()


@pytest.mark.parametrize("dial", [direct, Tunnels(new_token()).dial], ids=["no token", "another token"])
def test_without_the_token_nothing_is_written_or_learned(shard: ReplayShard, dial: Any) -> None:
    _write(shard, 1, dial=Tunnels(TOKEN).dial)
    assert shard_items.probe(shard.address, timeout=0.5, dial=dial) is None
    with pytest.raises(ReplayTimeout, match="no replay shard answers"):
        _write(shard, 1, dial=dial, timeout=0.5)
    # Bypasses all checks of this project with Reverb's own client.
    client = shard_items.reverb.Client(dial(shard.address))
    with pytest.raises((shard_items.reverb.errors.ReverbError, RuntimeError)):
        client.server_info(timeout=1)
    with contextlib.closing(shard_items.ItemWriter(shard.address, dial=dial)) as writer:
        writer.begin(episode(7))
        assert not _flushed(writer)
    wait_until(lambda: shard.statistics().unauthenticated > 0, timeout=LONG)
    held = shard.statistics()
    assert (held.size, held.written, held.taken) == (1, 1, 0)


def _flushed(writer: shard_items.ItemWriter) -> bool:
    try:
        return writer.flush(0.5)
    except RuntimeError:  # raised by Reverb's client if nothing listens at the address
        return False


def _own_address() -> str:
    """Returns an address of this machine other than loopback; found without sending anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has only loopback addresses")
        return str(probe.getsockname()[0])


def test_only_the_gate_listens_where_others_reach_it() -> None:
    own = _own_address()
    shard = _shard(bind=own)
    try:
        assert split(shard.address) == (own, shard.port)
        behind = shard._server.port
        assert behind != shard.port
        (listener,) = reverb_server.own_listeners(behind)
        with listener:
            assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0") == b"lo"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", shard.port), timeout=LONG)  # it listens only at its own address
        _write(shard, 1, dial=Tunnels(TOKEN).dial)
    finally:
        shard.close()


def test_a_shard_that_cannot_be_kept_off_the_network_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(port: int) -> bool:
        warnings.warn(f"port {port} is reachable", RuntimeWarning, stacklevel=2)
        return False

    monkeypatch.setattr(reverb_server, "restrict_to_loopback", reject)
    with pytest.warns(RuntimeWarning), pytest.raises(reverb_server.NotPrivate, match=r"Linux 5\.7 or root"):
        _shard()


def test_a_shard_that_another_machine_reached_as_it_started_does_not_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reverb_server, "remote_peers", lambda port: ["192.0.2.7"])
    with pytest.raises(reverb_server.NotPrivate, match=r"192\.0\.2\.7 connected"):
        _shard()


def test_connections_from_other_machines_are_seen() -> None:
    own = _own_address()
    with socket.create_server((own, 0)) as listener, socket.create_connection(listener.getsockname()[:2]):
        connection, _ = listener.accept()
        with connection:
            assert own in reverb_server.remote_peers(listener.getsockname()[1])
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()[:2]):
        assert reverb_server.remote_peers(listener.getsockname()[1]) == []
