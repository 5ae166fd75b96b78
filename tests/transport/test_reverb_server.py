"""Starting Reverb servers: one per port, on this machine only, restored from a folder, with a deadline."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

server_module = pytest.importorskip(
    "placement.transport.reverb_server", reason="Reverb is not installed", exc_type=ImportError
)
reverb = server_module.reverb
count_listeners, own_listeners = server_module.count_listeners, server_module.own_listeners
quiet_standard_error, start_server = server_module.quiet_standard_error, server_module.start_server


def _table() -> object:
    return reverb.Table.queue("numbers", 4)


@pytest.fixture
def running() -> Iterator[object]:
    server = start_server([_table()])
    yield server
    server.stop()


def _device(port: int) -> bytes:
    """Returns the network device to which the listeners of `port` are bound; empty: any."""
    found = set()
    for listener in own_listeners(port):
        with listener:
            found.add(listener.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0"))
    (device,) = found
    return device


def test_it_serves_on_loopback_only_by_default(running: server_module.ReverbServer) -> None:
    assert running.address == f"127.0.0.1:{running.port}"
    assert _device(running.port) == b"lo"
    assert "numbers" in reverb.Client(running.address).server_info(timeout=5)
    public = start_server([_table()], bind="0.0.0.0")
    try:
        assert _device(public.port) == b""
        assert public.address == f"{socket.gethostname()}:{public.port}"
    finally:
        public.stop()


def test_a_taken_port_is_rejected_and_a_free_one_can_be_taken_again(running: server_module.ReverbServer) -> None:
    with pytest.raises(server_module.PortTaken, match=f"port {running.port} is taken"):
        start_server([_table()], port=running.port)
    running.stop()
    running.stop()
    assert count_listeners(running.port) == 0
    again = start_server([_table()], port=running.port)
    assert again.port == running.port
    again.stop()


def test_a_port_on_which_another_process_starts_a_server_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    first = start_server([_table()])
    port = first.port
    first.stop()
    calls = []

    def counted(one: int) -> int:
        calls.append(one)
        return 0

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(f"\0macro-placement-reverb-{port}")
        monkeypatch.setattr(server_module, "count_listeners", counted)
        with pytest.raises(server_module.PortTaken, match=f"port {port} is taken"):
            start_server([_table()], port=port)
    assert not calls
    again = start_server([_table()], port=port)
    assert again.port == port
    again.stop()


def test_a_listener_that_the_table_shows_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As may happen while others open and close sockets: 14 reads of 4,000 did beside two such threads."""
    read = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path: read(path) + "\n".join(read(path).splitlines()[1:]))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert count_listeners(listener.getsockname()[1]) == 1


def test_servers_started_at_once_get_ports_of_their_own() -> None:
    servers: list[server_module.ReverbServer] = []
    threads = [threading.Thread(target=lambda: servers.append(start_server([_table()]))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    try:
        assert len({server.port for server in servers}) == 6
    finally:
        for server in servers:
            server.stop()


def test_it_starts_from_the_checkpoint_in_its_folder(tmp_path: Path) -> None:
    first = start_server([_table()], checkpoint_folder=tmp_path)
    first.client.insert(np.arange(3), {"numbers": 1.0})
    first.client.checkpoint()
    first.stop()
    second = start_server([_table()], checkpoint_folder=tmp_path)
    assert second.client.server_info(timeout=5)["numbers"].current_size == 1
    second.stop()


def test_a_start_that_hangs_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    forever = threading.Event()
    monkeypatch.setattr(server_module, "START_SECONDS", 0.05)
    monkeypatch.setattr(server_module.reverb, "Server", lambda *args, **kwargs: forever.wait(60))
    with pytest.raises(server_module.ServerTimeout, match=r"did not start within 0\.05 s"):
        start_server([_table()])
    forever.set()


def test_standard_error_survives_threads_that_hold_it_back_at_once() -> None:
    before = os.fstat(2)

    def redirect() -> None:
        for _ in range(50):
            with quiet_standard_error():
                os.write(2, b"[reverb/] held back\n")

    threads = [threading.Thread(target=redirect) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert os.path.samestat(os.fstat(2), before)


def test_only_reverbs_own_lines_are_held_back_unless_something_fails(capfd: pytest.CaptureFixture[str]) -> None:
    lines = b"[reverb/cc/client.cc:1] chatter\nno space left\n"
    with quiet_standard_error():
        os.write(2, lines)
    assert capfd.readouterr().err == "no space left\n"
    with pytest.raises(OSError, match="disk"), quiet_standard_error():
        os.write(2, lines)
        raise OSError("disk")
    assert capfd.readouterr().err == lines.decode()
