"""Emulated hosts on one machine: network namespaces connected by a switch, each behind a link of limited rate.

    python benchmarks/links.py [--megabits 100]      measures what a link carries, beside its limit

For the other benchmarks (`from links import make_network`). Each host is a namespace with one veth pair to a bridge in
a further namespace; `tc tbf` limits both directions of each link. No traffic leaves these namespaces. They are removed
at the end, also after Ctrl-C or SIGTERM; the next start removes those left by a SIGKILL. Needs root and iproute2.
Without them `make_network(…, namespaces=False)` gives hosts that share this machine's loopback, and forwarders
(benchmarks/forward.py) emulate their links.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

PREFIX = "links"
BURST = 128 * 1024  # bytes that may pass at once
SEGMENT = 16 * 1024  # maximum number of bytes that the kernel passes on at once
QUEUE = 16 * 1024 * 1024  # maximum number of bytes queued for a link
STOP_SECONDS = 5.0
COMMAND_SECONDS = 60.0


class NetworkError(RuntimeError):
    """The namespaces could not be created; the message says what is missing."""


@dataclasses.dataclass(frozen=True)
class Host:
    """One host.

    Attributes:
        name: as given.
        address: its IPv4 address.
        megabits: limit of its link in each direction, Mbit/s; None = unlimited.
        namespace: name of its network namespace; "" = this machine's own.
    """

    name: str
    address: str
    megabits: float | None
    namespace: str


class Network:
    """Hosts and the processes on them. Created and removed by `make_network`."""

    def __init__(self, hosts: Sequence[Host], switch: str = "") -> None:
        self.hosts = {host.name: host for host in hosts}
        self._switch = switch
        self._processes: list[subprocess.Popen] = []

    def start(self, host: str, command: Sequence[str], **options: object) -> subprocess.Popen:
        """Starts a command on a host; it is killed with the network, or (with util-linux) when this process dies.

        Args:
            host: its name.
            command: program and arguments; "python" = this interpreter.
            options: options of `subprocess.Popen`.
        """
        program = [sys.executable if part == "python" else part for part in command]
        namespace = self.hosts[host].namespace
        prefix = ["ip", "netns", "exec", namespace] if namespace else []
        if shutil.which("setpriv"):
            prefix = ["setpriv", "--pdeathsig", "KILL", *prefix]
        # Its own process group: Ctrl-C in the terminal reaches only this process, which stops all.
        process = subprocess.Popen([*prefix, *program], process_group=0, **options)  # type: ignore[call-overload]
        self._processes.append(process)
        return process

    def reach(self, host: str, address: str) -> str:
        """Returns the `host:port` at which others reach a server of a host that reported `address`.

        With namespaces it is the same. Without them it is that of a forwarder, which limits what the server sends to
        the rate of the host's link; data sent to the server is not limited.
        """
        target = self.hosts[host]
        if target.namespace or target.megabits is None:
            return address
        forward = [str(Path(__file__).with_name("forward.py")), address, str(target.megabits)]
        process = self.start(host, ["python", *forward], stdout=subprocess.PIPE, text=True)
        return process.stdout.readline().strip()  # type: ignore[union-attr]

    def sent(self, host: str) -> float:
        """Returns the bytes that a host has sent over its link so far, headers included; NaN without namespaces."""
        namespace = self.hosts[host].namespace
        if not namespace:
            return math.nan
        command = ["ip", "netns", "exec", namespace, "cat", "/sys/class/net/eth0/statistics/tx_bytes"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=True)
        return float(done.stdout)

    def cut(self, host: str) -> None:
        """Disconnects a host silently: no more data arrives. With namespaces only."""
        _ip([f"link set dev {self._port(host)} down"], namespace=self._switch)

    def mend(self, host: str) -> None:
        """Reconnects a host."""
        _ip([f"link set dev {self._port(host)} up"], namespace=self._switch)

    def limit(self, host: str, megabits: float) -> None:
        """Changes the limit of a host's link in both directions, or limits an unlimited one. With namespaces only."""
        _limit(self.hosts[host].namespace, "eth0", megabits)
        _limit(self._switch, self._port(host), megabits)

    def _port(self, host: str) -> str:
        return f"port{list(self.hosts).index(host)}"

    def stop(self) -> None:
        """Ends all started processes and their children: signals, waits a few seconds, kills."""
        for process in self._processes:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0.01))
        for process in self._processes:
            _signal(process, signal.SIGKILL)  # also kills children left by an ended process
            process.wait(STOP_SECONDS)
        for process in self._processes:
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # unsent data to an ended process
                        pipe.close()
        self._processes.clear()


@contextlib.contextmanager
def make_network(megabits: Mapping[str, float | None], *, namespaces: bool = True) -> Iterator[Network]:
    """Creates hosts and removes them at the end in any case.

    Args:
        megabits: limit of each host's link, Mbit/s in each direction, by the host's name; None = unlimited.
        namespaces: False = every host is 127.0.0.1 of this machine; limits apply where `Network.reach` is used.

    Raises:
        NetworkError: no root, no iproute2, or the kernel refuses; the message says which.
    """
    if not namespaces:
        network = Network([Host(name, "127.0.0.1", rate, "") for name, rate in megabits.items()])
        with _stopped_by_signals():
            try:
                yield network
            finally:
                network.stop()
        return
    _check_means()
    _remove_left_behind()
    hosts = [
        Host(name, f"10.77.{number // 250}.{number % 250 + 1}", rate, f"{PREFIX}-{os.getpid()}-{number}")
        for number, (name, rate) in enumerate(megabits.items())
    ]
    switch = f"{PREFIX}-{os.getpid()}-switch"
    network = Network(hosts, switch)
    with _stopped_by_signals():
        try:
            _make(switch, hosts)
            yield network
        finally:
            network.stop()
            _remove([switch, *(host.namespace for host in hosts)])


def _make(switch: str, hosts: Sequence[Host]) -> None:
    """Creates namespaces, bridge, cables and limits."""
    _ip([f"netns add {switch}", *(f"netns add {host.namespace}" for host in hosts)])
    _ip(["link add name bridge type bridge", "link set dev bridge up"], namespace=switch)
    for number, host in enumerate(hosts):
        port = f"port{number}"
        _ip([f"link add name {port} type veth peer name eth0 netns {host.namespace}"], namespace=switch)
        _ip([f"link set dev {port} master bridge", f"link set dev {port} up"], namespace=switch)
        inside = ["link set dev lo up", f"address add {host.address}/16 dev eth0", "link set dev eth0 up"]
        _ip(inside, namespace=host.namespace)
        if host.megabits is not None:
            _limit(host.namespace, "eth0", host.megabits)
            _limit(switch, port, host.megabits)


def _limit(namespace: str, device: str, megabits: float) -> None:
    """Limits a device by a token bucket in front of a deep queue.

    The sender's kernel keeps little of each connection in the queue (TCP small queues), so connections alternate and
    nothing is dropped. In front of a short queue, many connections would starve each other.
    """
    _ip([f"link set dev {device} gso_max_size {SEGMENT}"], namespace=namespace)
    rule = f"tc -n {namespace} qdisc replace dev {device} root tbf rate {megabits:.3f}mbit burst {BURST} limit {QUEUE}"
    _run(rule.split())


def _ip(commands: Sequence[str], *, namespace: str = "") -> None:
    prefix = ["ip", "-n", namespace] if namespace else ["ip"]
    _run([*prefix, "-batch", "-"], text="\n".join(commands) + "\n")


def _run(command: Sequence[str], *, text: str = "") -> None:
    done = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
        start_new_session=True,
    )
    if done.returncode:
        raise NetworkError(f"`{' '.join(command)}` {text.strip()!r} failed: {done.stderr.strip() or done.returncode}")


def _check_means() -> None:
    missing = [program for program in ("ip", "tc") if shutil.which(program) is None]
    if missing:
        raise NetworkError(f"{' and '.join(missing)} not found: install iproute2, or use --no-netns")
    if os.geteuid() != 0:
        raise NetworkError("network namespaces need root; run as root, or use --no-netns")


def _remove(namespaces: Sequence[str]) -> None:
    """Removes namespaces, and with them their devices; a missing one is not an error."""
    for name in namespaces:
        if Path("/run/netns", name).exists():
            with contextlib.suppress(NetworkError):
                _run(["ip", "netns", "delete", name])


def _remove_left_behind() -> None:
    """Removes the namespaces of earlier processes of this script that no longer exist."""
    for path in Path("/run/netns").glob(f"{PREFIX}-*-*"):
        owner = path.name.split("-")[1]
        if owner.isdigit() and not _runs(int(owner)):
            _remove([path.name])


def _runs(process: int) -> bool:
    """Returns whether a process exists and is not a zombie."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _signal(process: subprocess.Popen, number: signal.Signals) -> None:
    """Signals a process started here and its children; it is not an error if none is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def die_with_parent() -> None:
    """Called in a child: the child gets SIGKILL when its parent dies."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Lets the first SIGTERM or SIGINT raise KeyboardInterrupt, even if they were ignored; the rest are ignored."""
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stop(number: int, frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


RECEIVE = """
import socket, sys
listener = socket.create_server((sys.argv[1], 7000)); listener.settimeout(30); print("ready", flush=True)
with listener.accept()[0] as connection:
    connection.settimeout(30)
    while connection.recv(1 << 16): pass
    connection.sendall(b"done")
"""
SEND = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 7000), timeout=30) as connection:
    start = time.perf_counter(); connection.sendall(bytes(int(sys.argv[2]))); connection.shutdown(socket.SHUT_WR)
    connection.recv(4); print(time.perf_counter() - start)
"""


def measure(network: Network, sender: str, receiver: str, *, size: int) -> float:
    """Returns the throughput of one TCP connection between two hosts over `size` bytes, Mbit/s."""
    address = network.hosts[receiver].address
    listener = network.start(receiver, ["python", "-c", RECEIVE, address], stdout=subprocess.PIPE)
    listener.stdout.readline()
    done = network.start(sender, ["python", "-c", SEND, address, str(size)], stdout=subprocess.PIPE, text=True)
    seconds = float(done.communicate(timeout=60)[0])
    return size * 8e-6 / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabits", type=float, default=100.0)
    rate = parser.parse_args().megabits
    try:
        with make_network({"a": rate, "b": rate, "free": None}) as network:
            for sender, receiver in (("a", "b"), ("a", "free"), ("free", "b")):
                carried = measure(network, sender, receiver, size=int(rate * 1e6 / 8 * 2))
                print(f"{sender} → {receiver}: {carried:.1f} Mbit/s of {rate:g} ({carried / rate:.2f} ×)")
    except NetworkError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped; nothing is left behind")


if __name__ == "__main__":
    main()
