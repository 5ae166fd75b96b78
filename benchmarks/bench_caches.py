"""Mean latency of reading parameters, directly from the learner and through a tree of caches. Bar: 4.0 times lower.

    python benchmarks/bench_caches.py [--readers 64] [--caches 8] [--fan-out 8] [--megabits 50] [--period 21]
    python benchmarks/bench_caches.py --no-netns        without root: forwarders on loopback imitate the links

The learner, each cache and each group of readers is a separate host (benchmarks/links.py) behind a link of
`--megabits` in each direction. Every reader is a process that polls its cache for the version, reads the bytes when the
version has changed, and verifies the checksum. The learner publishes a new model of `--megabytes` every `--period`
seconds; the default is the rate of a run on Ariane on two cores (80 iterations in 28 minutes).

Compared are the first `--reads` reads of each reader, from the request for the bytes to the verified checksum. "Age" is
the time from publication to reception of the model, including the caches' own reads. Choose links so slow that they,
and not the CPU, are the bottleneck: the utilisation of the machine's CPU (including other processes) is printed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from links import Network, NetworkError, make_network

BAR = 4.0
START_SECONDS = 300.0


@dataclasses.dataclass(frozen=True)
class Measured:
    """Results of one arrangement; in seconds unless stated otherwise.

    Attributes:
        latencies: latencies of the first reads of each reader.
        ages: ages of the models that those reads returned.
        published: seconds that the learner spent in each publication.
        link: mean utilisation of the learner's link; NaN without a limit.
        cpu: mean utilisation of the machine's CPU.
        failures: failures of caches as seen by readers; any would invalidate the results.
        seconds: duration of the run.
    """

    latencies: np.ndarray
    ages: np.ndarray
    published: np.ndarray
    link: float
    cpu: float
    failures: int
    seconds: float


class Role:
    """A process on a host, and its reports."""

    def __init__(self, network: Network, host: str, arguments: list[str], reports: queue.Queue) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "OPENBLAS_NUM_THREADS": "1",
            "MALLOC_MMAP_THRESHOLD_": "1048576",  # freed snapshots are returned to the system
            "PYTHONPATH": str(Path(__file__).parents[1]),
        }
        command = ["python", str(Path(__file__).with_name("cache_roles.py")), *arguments]
        self.host = host
        self._process = network.start(host, command, env=environment, **pipes)
        threading.Thread(target=self._listen, args=(reports,), daemon=True).start()

    def _listen(self, reports: queue.Queue) -> None:
        for line in self._process.stdout:
            reports.put((self, json.loads(line)))
        reports.put((self, None))

    def go(self) -> None:
        """Sends the line that starts it."""
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """Closes its standard input."""
        self._process.stdin.close()


def _listen_to(reports: queue.Queue, seconds: float) -> Iterator[tuple[Role, dict]]:
    """Yields the reports of the roles until `seconds` have passed or one of them ends by itself."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            role, message = reports.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            sys.exit(f"waited {seconds:.0f} s for a report of readers, caches and learner: slower links need more")
        if message is None:
            sys.exit(f"the process on {role.host} ended")
        yield role, message


def _start(network: Network, reports: queue.Queue, roles: dict[str, list[str]]) -> dict[str, str]:
    """Starts roles by host; returns the addresses that they reported, as reachable from others."""
    started = [Role(network, host, arguments, reports) for host, arguments in roles.items()]
    found: dict[str, str] = {}
    for role, message in _listen_to(reports, START_SECONDS):
        found[role.host] = network.reach(role.host, message["address"]) if "address" in message else ""
        if len(found) == len(started):
            break
    _roles.extend(started)
    return found


_roles: list[Role] = []


def measure(options: argparse.Namespace, *, caches: int) -> Measured:
    """Runs one arrangement until every reader has done its reads; no caches: directly from the learner."""
    from placement.modelcache.tree import ROOT, plan_tree

    groups = math.ceil(options.readers / options.readers_per_host)
    tree = plan_tree([f"cache{number}" for number in range(caches)], options.fan_out)
    hosts = ["learner", *tree.hosts, *(f"readers{number}" for number in range(groups))]
    _roles.clear()
    reports: queue.Queue = queue.Queue()
    with make_network(dict.fromkeys(hosts, options.megabits), namespaces=not options.no_netns) as network:
        bind: Callable[[str], str] = lambda host: network.hosts[host].address  # noqa: E731
        learner = ["learner", bind("learner"), str(options.megabytes), str(options.period)]
        reachable = {ROOT: _start(network, reports, {"learner": learner})["learner"]}
        level: dict[str, list[str]] = {}

        def start_level() -> None:
            started = _start(network, reports, level) if level else {}
            reachable.update({int(host.removeprefix("cache")): address for host, address in started.items()})
            level.clear()

        for number, host in enumerate(tree.hosts):
            if tree.parents[number] not in reachable:  # the level above is not ready yet
                start_level()
            level[host] = ["cache", bind(host), reachable[tree.parents[number]]]
        start_level()
        used = [reachable[tree.readable("", reader)[0]] for reader in range(options.readers)]
        readers = {
            f"readers{group}": ["readers", str(options.megabytes), *used[group::groups]] for group in range(groups)
        }
        _start(network, reports, readers)
        return _collect(network, reports, options)


def _collect(network: Network, reports: queue.Queue, options: argparse.Namespace) -> Measured:
    """Collects reports from the first publication to the last reader's last read."""
    learner, cpu, sent, start = _roles[0], _cpu(), network.sent("learner"), time.monotonic()
    learner.go()
    published: dict[int, dict] = {}
    reads: dict[tuple[str, int], list[dict]] = {}
    done = 0
    for role, message in _listen_to(reports, options.limit):
        if role is learner:
            published[message["version"]] = message
        else:
            mine = reads.setdefault((role.host, message["reader"]), [])
            mine.append(message)
            done += len(mine) == options.reads
        if done == options.readers:
            break
    seconds, busy = time.monotonic() - start, _cpu() - cpu
    first = [message for mine in reads.values() for message in mine[: options.reads]]
    sent = network.sent("learner") - sent
    return Measured(
        latencies=np.array([each["seconds"] for each in first]),
        ages=np.array(
            [each["at"] - published[each["version"]]["at"] for each in first if each["version"] in published]
        ),
        published=np.array([each["seconds"] for each in published.values()]),
        link=sent * 8e-6 / (options.megabits * seconds),
        cpu=float(busy[0] / busy[1]),
        failures=sum(max(each["failures"] for each in mine) for mine in reads.values()),
        seconds=seconds,
    )


def _cpu() -> np.ndarray:
    """Returns busy and total CPU time of the machine since it started, in ticks."""
    ticks = np.array(Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9], float)
    return np.array([ticks.sum() - ticks[3] - ticks[4], ticks.sum()])


def _show(name: str, measured: Measured) -> None:
    p50, p99 = np.quantile(measured.latencies, (0.5, 0.99))
    link = "?" if math.isnan(measured.link) else f"{measured.link:.0%}"
    print(
        f"{name:>8}: read mean {measured.latencies.mean():7.2f} s, p50 {p50:7.2f} s, p99 {p99:7.2f} s "
        f"({len(measured.latencies)} reads); age mean {measured.ages.mean():7.2f} s; publishing mean "
        f"{measured.published.mean():.2f} s ({len(measured.published)} ×); learner's link {link} full; "
        f"CPU {measured.cpu:4.0%} busy; {measured.failures} failures; {measured.seconds:.0f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readers", type=int, default=64)
    parser.add_argument("--readers-per-host", type=int, default=8)
    parser.add_argument("--caches", type=int, default=8)
    parser.add_argument("--fan-out", type=int, default=8)
    parser.add_argument("--megabytes", type=float, default=16.0, help="of the model")
    parser.add_argument("--megabits", type=float, default=50.0, help="Mbit/s of each host's link, each direction")
    parser.add_argument("--period", type=float, default=21.0, help="seconds between two publications")
    parser.add_argument("--reads", type=int, default=2, help="that count, of each reader")
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds that each arrangement may take")
    parser.add_argument("--no-netns", action="store_true", help="forwarders on loopback instead of namespaces")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    print(
        f"{options.readers} readers, a model of {options.megabytes:g} MB published every {options.period:g} s, "
        f"{options.megabits:g} Mbit/s for each host; tree: {options.caches} caches, fan-out {options.fan_out}",
        flush=True,
    )
    try:
        straight = measure(options, caches=0)
        _show("straight", straight)
        tree = measure(options, caches=options.caches)
        _show("tree", tree)
    except NetworkError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped; nothing is left behind")
    ratio = straight.latencies.mean() / tree.latencies.mean()
    ratio99 = np.quantile(straight.latencies, 0.99) / np.quantile(tree.latencies, 0.99)
    ages = straight.ages.mean() / tree.ages.mean()
    print(f"read latency {ratio:.1f} × lower with the tree (p99 {ratio99:.1f} ×), age {ages:.1f} × lower")
    print(f"bar of {BAR:.1f} ×: {'met' if ratio >= BAR else 'NOT met'}")
    if options.json:
        figures = {"straight": straight, "tree": tree}
        plain = {
            name: {key: np.asarray(value).tolist() for key, value in dataclasses.asdict(each).items()}
            for name, each in figures.items()
        }
        options.json.write_text(json.dumps({"options": {**vars(options), "json": str(options.json)}, **plain}))


if __name__ == "__main__":
    main()
