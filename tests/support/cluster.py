"""A Ray cluster whose nodes are emulated hosts: network namespaces with an address and a cable each.

Needs root and iproute2. What all nodes share is this machine's disk, processors and process numbers.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from placement.runtimes.ray import ray_connection
from tests.support.ray_run import LONG, ROOT, RayRun

HEAD = "head"
PORT = 6379
OBJECT_STORE = 80_000_000  # bytes, the minimum that Ray accepts
WALL_CLOCK = Path(__file__).with_name("wall_clock.c")


def _links() -> ModuleType:
    """Imports benchmarks/links.py, which creates the hosts and is not in a package."""
    spec = importlib.util.spec_from_file_location("links", ROOT / "benchmarks" / "links.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["links"] = module  # its dataclasses look up their own module
    spec.loader.exec_module(module)
    return module


links = _links()


def missing() -> str:
    """Returns why hosts cannot be created here; empty if they can."""
    absent = [program for program in ("ip", "tc") if shutil.which(program) is None]
    if absent or os.geteuid():
        return "needs root and iproute2"
    tried = subprocess.run(["ip", "netns", "add", name := f"probe-{os.getpid()}"], capture_output=True, check=False)
    if tried.returncode == 0:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "the kernel makes no network namespaces"


def missing_clocks() -> str:
    """Returns why hosts cannot have their own clocks here; empty if they can."""
    return "" if shutil.which("cc") else "needs a C compiler"


def _build_clock(folder: Path) -> Path:
    """Builds the library that shifts a process's wall clock forward or back."""
    library = folder / "wall_clock.so"
    command = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library), str(WALL_CLOCK), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stderr
    return library


class Cluster:
    """Nodes on hosts; created by `make_cluster`.

    Attributes:
        network: of the hosts.
        address: of the head, `host:port`.
        token: that Ray asks for.
        variables: environment of processes on the hosts.
    """

    def __init__(self, network: Any, folder: Path, variables: Mapping[str, str]) -> None:
        self.network = network
        self.address = f"{network.hosts[HEAD].address}:{PORT}"
        self._folder, self.token = Path("/tmp") / f"hosts-{secrets.token_hex(4)}", secrets.token_hex(16)
        self._outputs = folder
        self.variables = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_health_check_failure_threshold": "20",  # otherwise a node that is disconnected for 30 s is given up
            "XLA_FLAGS": "",
            **variables,
        }
        self._nodes: dict[str, psutil.Process] = {}
        for host in network.hosts.values():  # Ray determines a machine's address from its route to the internet
            way = ["ip", "-n", host.namespace, "route", "add", "default", "dev", "eth0"]
            subprocess.run(way, check=True, capture_output=True, timeout=LONG)

    def start(self, host: str, *, cpus: int, gpus: int = 0, own: Path | None = None, minutes: float = 0.0) -> None:
        """Starts a node, the head first; returns once it has joined.

        Args:
            host: its name.
            cpus, gpus: processors that it offers.
            own: a folder that is mounted empty on this host, as on a separate disk; the node works in it.
            minutes: by which its clock is ahead.
        """
        where = self.network.hosts[host].address
        options = ["--block", f"--node-ip-address={where}", f"--num-cpus={cpus}", f"--num-gpus={gpus}"]
        options += [f"--object-store-memory={OBJECT_STORE}", "--disable-usage-stats"]
        if host == HEAD:
            options += ["--head", f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={self._folder}"]
        else:
            options += [f"--address={self.address}"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *options]
        if own is not None:
            own.mkdir(parents=True, exist_ok=True)
            mount = 'mount -t tmpfs -o size=100m own "$0" && cd "$0" && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", mount, str(own), *command]
        variables = dict(self.variables)
        if minutes:
            library = str(_build_clock(self._outputs))
            variables |= {"LD_PRELOAD": library, "WALL_CLOCK_AHEAD": f"{60 * minutes:.0f}"}
        with (self._outputs / f"{host}.txt").open("a") as output:
            begin = len(self.output(host))  # after the output of earlier starts
            started = self.network.start(
                host,
                command,
                env=variables,
                stdout=output,
                stderr=output,
            )
        self._nodes[host] = psutil.Process(started.pid)
        before = time.monotonic()
        while not any(sign in self.output(host)[begin:] for sign in ("Ray runtime started", "joined")):
            assert started.poll() is None and time.monotonic() < before + LONG, self.output(host)
            time.sleep(0.1)

    def output(self, host: str) -> str:
        """Returns the output of a node's command, including earlier starts."""
        return (self._outputs / f"{host}.txt").read_text(encoding="utf-8", errors="replace")

    def processes(self, host: str) -> list[psutil.Process]:
        """Returns all processes of a node."""
        node = self._nodes[host]
        return [node, *ray_connection.descendants(node.pid)]

    def lives(self, host: str) -> bool:
        """Returns whether a node is running."""
        return ray_connection.alive(self._nodes[host])

    def kill(self, host: str) -> None:
        """Kills all processes of a node at once."""
        all_of_it = self.processes(host)
        for process in all_of_it:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
        ray_connection.end_all(all_of_it, timeout=0.0)

    def run(self, config: Mapping[str, Any], *, factories: Mapping[str, str] | None = None) -> RayRun:
        """Returns a run whose command is started on the head."""
        return RayRun(config, factories=factories, environment=self.variables, prefix=self.on(HEAD))

    def program(self, host: str, text: str, *arguments: str, token: str | None = None, timeout: float = LONG) -> str:
        """Returns the output of a Python program on a host; `token`: the cluster's token, as the program assumes."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        variables |= {"PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled" if token is None else "token"}
        variables |= {"RAY_AUTH_TOKEN": token or "", "HOME": str(self._outputs)}
        done = subprocess.run(
            [*self.on(host), sys.executable, "-c", text, *arguments],
            env=variables,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def listeners(self, host: str) -> list[tuple[str, int]]:
        """Returns (address, port) of every TCP socket that listens on a host."""
        output = subprocess.run(
            [*self.on(host), "ss", "-H", "-l", "-t", "-n"], capture_output=True, text=True, timeout=LONG, check=True
        ).stdout
        found = [line.split()[3].rpartition(":") for line in output.splitlines()]
        return [(address, int(port)) for address, _, port in found]

    def on(self, host: str) -> Sequence[str]:
        """Returns the prefix of a command that runs on a host."""
        return ["ip", "netns", "exec", self.network.hosts[host].namespace]

    def stop(self) -> None:
        """Kills all nodes."""
        for host in self._nodes:
            self.kill(host)
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def make_cluster(hosts: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Creates a cluster without nodes.

    Args:
        hosts: by name, the head's among them.
        folder: for what the nodes print.
        variables: environment of the nodes' processes, beside this process's.
    """
    with links.make_network(dict.fromkeys(hosts)) as network, contextlib.ExitStack() as ending:
        cluster = Cluster(network, folder, variables or {})
        ending.callback(cluster.stop)
        yield cluster
