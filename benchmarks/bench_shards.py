"""Latency of writing episodes to one, two and four shards. Bar: growth from 4 to 64 writers k → at most k/3.

    python benchmarks/bench_shards.py [--payloads 0.1 1 16] [--megabits 20 100 200] [--shards 1 2 4] [--json FILE]
                                      [--seconds 12] [--writes 0] [--most 200] [--unread]
    python benchmarks/bench_shards.py --no-netns        without root: no limits, so the shards' CPU is measured

Each shard, each group of writers and the learner is a separate host (benchmarks/links.py). Only the shards' links are
limited, to `--megabits`, one figure for each payload.

A writer is a thread that repeatedly makes an episode, writes it to its shard, and waits for the confirmation. Making an
episode takes `--making` times as long as a payload takes on a link, ± 50% (so 64 writers demand 64/21 of the capacity
of one link, and 16/21 of that of each of four). The learner reads from all shards meanwhile; with `--unread` it does
not, which shows what its reading costs the writers. Payloads are episodes of random numbers, which do not compress,
with as many steps as fit. Each writer's first write connects; it happens before the time begins and does not count.

A link lets 128 kB pass at once, so small payloads arrive faster than its rate while it is idle. "±" is the standard
error of the mean, from the differences between writers. A point takes `--seconds`, or the time of `--writes` writes
without waiting (few writers make few), at most `--most`, and at least the time of four writes per writer. Points that
are already in FILE are not measured again. "Stolen" is CPU time that the machine's host gave to others: if it is more
than some hundredths of a core, the latencies are the host's and not the shards'.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from links import Network, NetworkError, make_network

from placement.episode import Episode, signature

BYTES_PER_STEP = 8
GROUPS = 4
CAPACITY = 64
UNREAD_CAPACITY = 5000
BAR = 3.0
ROUNDS = 4.0
"""Number of writes for which each writer's time suffices even on a busy link, because the first writes find it
empty.
"""
ANSWER_SECONDS = 900.0
SILENCE_SECONDS = 120.0
"""Timeout of a shard's answers in seconds; behind a busy link they take longer than a run allows."""


def steps_of(megabytes: float) -> int:
    return round(megabytes * 1e6 / BYTES_PER_STEP)


def make_episode(steps: int, actor: int) -> Episode:
    random = np.random.default_rng(actor)
    return signature(steps)._replace(
        identity=np.array([actor, 0], np.int64),
        length=np.array(steps, np.int32),
        actions=random.integers(0, 2**31, steps, dtype=np.int32),
        log_probabilities=-random.random(steps, dtype=np.float32),
    )


# Code of the hosts: each reads commands as lines of JSON from standard input, and answers each with one line.


def serve(roles: dict[str, Callable[..., object]]) -> None:
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(roles[asked.pop("do")](**asked)), flush=True)


def shard_role() -> None:
    from placement.replay.shard import ReplayShard

    held: list[ReplayShard] = []

    def open_shard(number: int, steps: int, bind: str, capacity: int) -> str:
        held.append(ReplayShard(number=number, capacity=capacity, steps=steps, bind=bind))
        return held[-1].address

    def close() -> int:
        written = held[-1].statistics().written
        held.pop().close()
        return written

    serve({"open": open_shard, "close": close})


def learner_role() -> None:
    from placement.replay import shard_items
    from placement.replay.replay import ReplayClosed
    from placement.replay.shard_reader import ShardedReplay
    from placement.transport.addresses import fixed

    shard_items.SILENCE_SECONDS = SILENCE_SECONDS
    held: list[tuple[ShardedReplay, threading.Thread]] = []

    def drain(replay: ShardedReplay) -> None:
        try:
            while True:
                replay.read(1, timeout=3600)
        except ReplayClosed:
            return

    def open_reader(addresses: list[str], steps: int) -> None:
        replay = ShardedReplay(fixed(*addresses), steps=steps, ahead=2)
        replay.wait_until_connected(timeout=60)
        thread = threading.Thread(target=drain, args=(replay,))
        thread.start()
        held.append((replay, thread))

    def close() -> list[int]:
        replay, thread = held.pop()
        taken = [shard.taken for shard in replay.statistics()]
        replay.close()
        thread.join(60)
        return taken

    serve({"open": open_reader, "close": close})


def writer_role() -> None:
    from placement.replay import shard_items
    from placement.replay.shard_writer import ShardWriter
    from placement.transport.addresses import fixed

    shard_items.SILENCE_SECONDS = SILENCE_SECONDS
    count = {"": 0}
    lock = threading.Lock()
    writers: dict[int, ShardWriter] = {}

    def write_one(actor: int, episode: Episode) -> float:
        with lock:
            count[""] += 1
            episode = episode._replace(identity=np.array([actor, count[""]]))
        start = time.monotonic()
        writers[actor].write(episode, timeout=ANSWER_SECONDS)
        return time.monotonic() - start

    def connect(addresses: list[str], actors: list[int], steps: int) -> None:
        """Opens this host's writers, each of which writes an episode to its shard."""
        for actor in actors:
            home = actor % len(addresses)
            writers[actor] = ShardWriter(fixed(*addresses), home=home, steps=steps, key=actor)
            write_one(actor, make_episode(steps, actor))

    def run(actor: int, steps: int, making: float, until: float) -> list[float]:
        episode, random = make_episode(steps, actor), np.random.default_rng(actor)
        latencies: list[float] = []
        time.sleep(making * random.random())
        while time.monotonic() < until or not latencies:
            latencies.append(write_one(actor, episode))
            time.sleep(making * random.uniform(0.5, 1.5))
        moves = writers[actor].moves
        writers.pop(actor).close()
        if moves:
            print(f"writer {actor} left its shard {moves} times", file=sys.stderr)
        return latencies

    def write(actors: list[int], steps: int, making: float, seconds: float) -> list[list[float]]:
        until = time.monotonic() + seconds
        found: list[list[float]] = []
        threads = [
            threading.Thread(target=lambda actor=actor: found.append(run(actor, steps, making, until)))
            for actor in actors
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(ANSWER_SECONDS)
        return found

    serve({"connect": connect, "write": write})


ROLES = {"shard": shard_role, "learner": learner_role, "writer": writer_role}


# Code of the benchmark's own process.


class Process:
    """A process on a host."""

    def __init__(self, network: Network, host: str, role: str) -> None:
        command = ["python", str(Path(__file__).resolve()), "--role", role]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = network.start(host, command, **pipes, text=True, bufsize=1)

    def ask(self, **what: object) -> None:
        print(json.dumps(what), file=self._process.stdin)

    def answer(self) -> Any:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a host's process ended; its message is above")
        return json.loads(line)

    def do(self, **what: object) -> Any:
        self.ask(**what)
        return self.answer()


def measure(
    processes: dict[str, Process],
    network: Network,
    shards: int,
    writers: int,
    point: dict[str, float],
    *,
    read: bool,
) -> dict:
    """Measures one point: `shards` shards, `writers` writers, payload and rate of `point`; `read`: a learner reads."""
    steps, link_seconds = steps_of(point["megabytes"]), point["megabytes"] * 8 / point["megabits"]
    making = point["making"] * link_seconds
    shape = {"steps": steps, "capacity": CAPACITY if read else UNREAD_CAPACITY}
    addresses = [
        processes[f"shard{number}"].do(do="open", number=number, bind=network.hosts[f"shard{number}"].address, **shape)
        for number in range(shards)
    ]
    if read:
        processes["learner"].do(do="open", addresses=addresses, steps=steps)
    wanted = min(max(point["seconds"], point["asked"] * (making + link_seconds) / writers), point["most"])
    seconds = max(wanted, ROUNDS * max(making + link_seconds, writers / shards * link_seconds))
    groups: dict[str, list[int]] = {}
    for actor in range(writers):  # the writers of a host use all shards and share a connection to each
        groups.setdefault(f"writers{actor // shards % GROUPS}", []).append(actor)
    for host, actors in groups.items():
        processes[host].do(do="connect", addresses=addresses, actors=actors, steps=steps)
    before = cpu_seconds()
    for host, actors in groups.items():
        processes[host].ask(do="write", actors=actors, steps=steps, making=making, seconds=seconds)
    of_writers = [np.array(found) for host in groups for found in processes[host].answer()]
    busy, stolen = (after - at_first for after, at_first in zip(cpu_seconds(), before, strict=True))
    latencies = np.concatenate(of_writers)
    taken = processes["learner"].do(do="close") if read else []
    for number in range(shards):
        processes[f"shard{number}"].do(do="close")
    return {
        "shards": shards,
        "writers": writers,
        **{name: point[name] for name in ("megabytes", "megabits", "making")},
        "seconds": seconds,
        "writes": len(latencies),
        "warm": True,
        "mean": float(latencies.mean()),
        "error": standard_error(of_writers),
        "p50": float(np.percentile(latencies, 50)),
        "p99": float(np.percentile(latencies, 99)),
        "taken": taken,
        "cpu": busy / seconds,
        "stolen": stolen / seconds,
    }


def standard_error(of_writers: list[np.ndarray]) -> float:
    """Returns the standard error of the mean over all writes, one observation per writer: writes are correlated."""
    counts = np.array([len(found) for found in of_writers], float)
    mean = np.concatenate(of_writers).mean()
    residuals = np.array([found.sum() for found in of_writers]) - mean * counts
    return float(np.sqrt((residuals**2).sum() / max(len(counts) - 1, 1) * len(counts)) / counts.sum())


def cpu_seconds() -> tuple[float, float]:
    """Returns the CPU seconds of the whole machine since it started: used, and stolen by its host."""
    ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return sum(int(ticks[place]) for place in (0, 1, 2, 5, 6)) / 100, int(ticks[7]) / 100


def run(arguments: argparse.Namespace) -> list[dict]:
    points = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else []
    most = max(arguments.shards)
    for megabytes, megabits in zip(arguments.payloads, arguments.megabits, strict=True):
        hosts = {f"shard{number}": megabits for number in range(most)}
        others = ["learner", *(f"writers{group}" for group in range(GROUPS))]
        with make_network({**hosts, **dict.fromkeys(others)}, namespaces=not arguments.no_netns) as network:
            processes = {host: Process(network, host, host.rstrip("0123456789").rstrip("s")) for host in network.hosts}
            for process in processes.values():
                process.answer()
            point = {
                "megabytes": megabytes,
                "megabits": megabits,
                "making": arguments.making,
                "seconds": arguments.seconds,
                "asked": arguments.writes,
                "most": arguments.most,
            }
            for shards in arguments.shards:
                for writers in arguments.writers:
                    if any(
                        (one["megabytes"], one["shards"], one["writers"]) == (megabytes, shards, writers)
                        for one in points
                    ):
                        continue
                    found = measure(processes, network, shards, writers, point, read=not arguments.unread)
                    print(
                        f"{megabytes:g} MB, {shards} shards, {writers} writers: mean {found['mean'] * 1e3:,.1f} "
                        f"± {found['error'] * 1e3:,.1f} ms, "
                        f"p50 {found['p50'] * 1e3:,.1f}, p99 {found['p99'] * 1e3:,.1f} ({found['writes']} writes; "
                        f"{found['cpu']:.2f} cores busy in all, {found['stolen']:.2f} stolen)",
                        flush=True,
                    )
                    points.append(found)
                    if arguments.json:
                        arguments.json.write_text(json.dumps(points, indent=1) + "\n")
            report(points, megabytes, arguments)
    return points


def report(points: list[dict], megabytes: float, arguments: argparse.Namespace) -> None:
    """Prints the growth from the fewest to the most writers for each number of shards, and the bar."""
    low, high = min(arguments.writers), max(arguments.writers)
    mean = {(one["shards"], one["writers"]): one["mean"] for one in points if one["megabytes"] == megabytes}
    growth = {shards: mean[shards, high] / mean[shards, low] for shards in arguments.shards}
    for shards, value in growth.items():
        print(f"{megabytes:g} MB, {shards} shards: {low} → {high} writers, latency grows {value:.2f}-fold")
    one, four = growth.get(1), growth.get(4)
    if one and four:
        verdict = "met" if four <= one / BAR else "NOT met"
        print(f"{megabytes:g} MB: one shard's growth over four shards': {one / four:.2f} (bar {BAR:g}: {verdict})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--payloads", type=float, nargs="+", default=[0.1, 1.0, 16.0], metavar="MB")
    parser.add_argument("--megabits", type=float, nargs="+", default=[20.0, 100.0, 200.0], help="one for each payload")
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--writers", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--making", type=float, default=20.0, help="link times that an episode takes to be made")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each point, at least")
    parser.add_argument("--writes", type=int, default=0, help="of each point, about")
    parser.add_argument("--most", type=float, default=200.0, help="seconds that --writes may make of a point")
    parser.add_argument("--unread", action="store_true", help="no learner takes the episodes (they stay in memory)")
    parser.add_argument("--json", type=Path, help="file for the points")
    parser.add_argument("--no-netns", action="store_true")
    parser.add_argument("--role", choices=ROLES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role:
        ROLES[arguments.role]()
        return
    if len(arguments.payloads) != len(arguments.megabits):
        parser.error("--megabits: one figure for each payload")
    try:
        run(arguments)
    except NetworkError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped; nothing is left behind")


if __name__ == "__main__":
    main()
