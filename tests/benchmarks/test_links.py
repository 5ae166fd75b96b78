"""The benchmarks' network of namespaces: created, limited, and always removed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "links.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("links", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["links"] = module
    spec.loader.exec_module(module)
    return module


links = _load()


def _can_make_namespaces() -> bool:
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("tc")):
        return False
    name = f"links-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return made


needs_namespaces = pytest.mark.skipif(not _can_make_namespaces(), reason="needs root, iproute2 and namespaces")


def _names() -> set[str]:
    return {path.name for path in Path("/run/netns").glob("links-*")}


@needs_namespaces
def test_hosts_reach_each_other_within_their_limits_and_are_gone_afterwards() -> None:
    with links.make_network({"a": 200.0, "b": None}) as network:
        namespaces = {host.namespace for host in network.hosts.values()}
        assert namespaces < _names()
        shown = subprocess.run(
            ["tc", "-n", network.hosts["a"].namespace, "qdisc", "show"], capture_output=True, text=True, check=True
        )
        assert "tbf" in shown.stdout and "rate 200Mbit" in shown.stdout
        assert links.measure(network, "a", "b", size=1000) > 0
        sleeper = network.start("a", ["sleep", "100"])
    assert sleeper.poll() is not None
    assert not namespaces & _names()


@needs_namespaces
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_after_a_signal(number: signal.Signals) -> None:
    script = (
        "from links import make_network\n"
        "with make_network({'a': None}) as network:\n"
        "    print(network.start('a', ['sleep', '100']).pid, flush=True)\n"
        "    import time; time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=SCRIPT.parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.send_signal(number)
    process.communicate(timeout=30)
    assert not any(name.startswith(f"links-{process.pid}-") for name in _names())
    assert not links._runs(child)


@needs_namespaces
def test_what_a_killed_script_left_behind_goes_with_the_next_start() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait(10)
    stale = f"links-{gone.pid}-0"
    subprocess.run(["ip", "netns", "add", stale], check=True)
    with links.make_network({"a": None}):
        assert stale not in _names()


def test_without_namespaces_every_host_is_this_machine() -> None:
    with links.make_network({"a": 10.0, "b": None}, namespaces=False) as network:
        assert {host.address for host in network.hosts.values()} == {"127.0.0.1"}
        process = network.start("a", ["python", "-c", "print('here')"], stdout=subprocess.PIPE, text=True)
        assert process.communicate(timeout=30)[0] == "here\n"


def test_a_hosts_processes_take_their_own_children_with_them() -> None:
    script = "import subprocess, time; print(subprocess.Popen(['sleep', '100']).pid, flush=True); time.sleep(100)"
    with links.make_network({"a": None}, namespaces=False) as network:
        parent = network.start("a", ["python", "-c", script], stdout=subprocess.PIPE, text=True)
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert links._runs(child)
    pause = threading.Event()
    for _ in range(500):
        if not links._runs(child):
            break
        pause.wait(0.02)
    assert not links._runs(child)


def test_a_forwarder_passes_all_bytes_both_ways() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        links.make_network({"a": 400.0}, namespaces=False) as network,
    ):
        listener.settimeout(30)
        own = f"127.0.0.1:{listener.getsockname()[1]}"
        address = network.reach("a", own)
        assert address != own
        host, port = address.split(":")
        payload = bytes(range(256)) * 4096
        with socket.create_connection((host, int(port)), timeout=30) as client:
            server, _ = listener.accept()
            with server:
                client.sendall(b"question")
                assert server.recv(100) == b"question"
                sender = threading.Thread(target=lambda: (server.sendall(payload), server.shutdown(socket.SHUT_WR)))
                sender.start()
                received = b"".join(iter(lambda: client.recv(1 << 16), b""))
                sender.join(30)
    assert received == payload


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links.shutil, "which", lambda program: None)
    with pytest.raises(links.NetworkError, match="ip and tc not found: install iproute2, or use --no-netns"):
        links._check_means()
