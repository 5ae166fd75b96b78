"""A gate forwards only clients that prove the token; no wait is unbounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.transport import gate as gate_module
from placement.transport.addresses import PortTaken, split
from placement.transport.event_loop import run
from placement.transport.gate import DIGEST, MAGIC, RANDOM, Gate, TokenRejected, Tunnels, derived, new_token, prove
from tests.support.waiting import wait_until

LONG = 60.0
TOKEN = new_token()


@pytest.fixture
def echo() -> Iterator[int]:
    """Yields the port of an echo server on loopback."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1 << 16):
                connection.sendall(data)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@pytest.fixture
def gate(echo: int) -> Iterator[Gate]:
    made = Gate(echo, bind="127.0.0.1", token=TOKEN)
    yield made
    made.stop()


def _connect(target: str) -> socket.socket:
    """Connects to a tunnel."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(LONG)
    connection.connect("\0" + target.removeprefix("unix-abstract:"))
    return connection


def _read(connection: socket.socket, count: int) -> bytes:
    """Reads `count` bytes, or fewer if the other end closes."""
    found = b""
    while len(found) < count and (data := connection.recv(count - len(found))):
        found += data
    return found


def test_with_the_token_all_bytes_pass_both_ways(gate: Gate) -> None:
    sent = os.urandom(5_000_000)
    tunnels = Tunnels(TOKEN)
    assert tunnels.dial(gate.address) == tunnels.dial(gate.address)  # one tunnel to each gate
    with _connect(tunnels.dial(gate.address)) as connection:
        writer = threading.Thread(target=connection.sendall, args=(sent,))
        writer.start()
        assert _read(connection, len(sent)) == sent
        writer.join(LONG)
    tunnels.close()
    assert (gate.passed, gate.rejected) == (1, 0)


@pytest.mark.parametrize("token", [new_token(), TOKEN[:-1], TOKEN.upper()], ids=["another", "cut", "upper case"])
def test_with_another_token_nothing_passes(gate: Gate, token: str) -> None:
    with _connect(Tunnels(token).dial(gate.address)) as connection:
        assert _read(connection, 1) == b""
    wait_until(lambda: gate.rejected == 1, timeout=LONG)
    assert gate.passed == 0


@pytest.mark.parametrize(
    "messages",
    [
        bytes(RANDOM + DIGEST),
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" + bytes(RANDOM + DIGEST),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(range(256)) * 16,  # what gRPC sends without a tunnel
    ],
)
def test_garbage_is_rejected(gate: Gate, messages: bytes) -> None:
    with socket.create_connection(split(gate.address), timeout=LONG) as connection:
        assert _read(connection, len(MAGIC) + RANDOM)[: len(MAGIC)] == MAGIC
        connection.sendall(messages)
        with contextlib.suppress(ConnectionResetError):  # closed with bytes unread
            assert _read(connection, 1) == b""
    wait_until(lambda: gate.rejected == 1, timeout=LONG)
    assert gate.passed == 0


def test_an_overheard_proof_is_useless(gate: Gate) -> None:
    async def overhear() -> bytes:
        reader, writer = await asyncio.open_connection(*split(gate.address))
        messages = []
        write = writer.write
        writer.write = lambda data: (messages.append(bytes(data)), write(data))  # type: ignore[method-assign,return-value,func-returns-value]
        await prove(reader, writer, TOKEN)
        writer.close()
        return messages[0]

    proof = run(overhear(), timeout=LONG)
    assert gate.passed == 1
    with socket.create_connection(split(gate.address), timeout=LONG) as connection:
        _read(connection, len(MAGIC) + RANDOM)
        connection.sendall(proof)
        assert _read(connection, 1) == b""
    assert (gate.passed, gate.rejected) == (1, 1)


def test_a_server_without_the_token_is_not_a_gate() -> None:
    """It accepts everything, as a process that reuses a dead gate's port might."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(MAGIC + bytes(RANDOM))
        await reader.readexactly(RANDOM + DIGEST)
        writer.write(bytes(DIGEST))
        writer.close()

    async def ask() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            with contextlib.closing(writer):
                await prove(reader, writer, TOKEN)

    with pytest.raises(TokenRejected, match="the gate does not have this run's token"):
        run(ask(), timeout=LONG)


def test_a_silent_client_is_disconnected(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "PROOF_SECONDS", 0.2)
    with socket.create_connection(split(gate.address), timeout=LONG) as connection:
        assert len(_read(connection, 10_000)) == len(MAGIC) + RANDOM
    wait_until(lambda: gate.rejected == 1, timeout=LONG)


def test_many_silent_clients_keep_nobody_out(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "MAX_UNPROVED", 4)
    idle = [socket.create_connection(split(gate.address), timeout=LONG) for _ in range(20)]
    try:
        with _connect(Tunnels(TOKEN).dial(gate.address)) as connection:
            connection.sendall(b"still here")
            assert _read(connection, 10) == b"still here"
        assert len(_read(idle[0], 10_000)) == len(MAGIC) + RANDOM  # the oldest are closed
    finally:
        for each in idle:
            each.close()


def test_it_ends_with_all_connections(gate: Gate) -> None:
    with _connect(Tunnels(TOKEN).dial(gate.address)) as connection:
        connection.sendall(b"x")
        assert _read(connection, 1) == b"x"
        gate.stop()
        gate.stop()
        assert _read(connection, 1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(split(gate.address), timeout=LONG)


def test_a_port_that_is_taken_is_named(gate: Gate, echo: int) -> None:
    with pytest.raises(PortTaken, match=rf"cannot listen on 127.0.0.1 port {gate.port}"):
        Gate(echo, bind="127.0.0.1", token=TOKEN, port=gate.port)


def test_a_gate_and_tunnels_need_a_token(echo: int) -> None:
    with pytest.raises(ValueError, match="a gate needs the run"):
        Gate(echo, bind="127.0.0.1", token="")
    with pytest.raises(ValueError, match="need the run's token"):
        Tunnels("")


def test_what_is_derived_differs_by_purpose_and_does_not_hold_the_token() -> None:
    assert len({derived(TOKEN, "a"), derived(TOKEN, "b"), derived(new_token(), "a"), TOKEN}) == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_of_this_machine_cannot_use_a_tunnel(gate: Gate) -> None:
    name = Tunnels(TOKEN).dial(gate.address).removeprefix("unix-abstract:")
    program = (
        "import os, socket, sys; os.setuid(12345); s = socket.socket(socket.AF_UNIX); s.settimeout(60)\n"
        "s.connect(chr(0) + sys.argv[1]); print(s.recv(1))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, name],
        capture_output=True,
        text=True,
        timeout=LONG,
        cwd=Path("/"),
        check=False,
    )
    assert done.stdout.strip() == "b''", done.stderr
    assert gate.passed == 0
