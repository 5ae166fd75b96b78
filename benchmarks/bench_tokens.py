"""Cost of the run's token: episodes through a replay shard, directly and through gate and tunnel.

    python benchmarks/bench_tokens.py [--seconds 3] [--rounds 5]

Both alternate, round by round; the shards are in another process. For each size of an episode: confirmed episodes and
megabytes per second of one writer, one at a time as an actor writes, and of one reader, and the CPU time of both
processes per megabyte written. Then the throughput of a bare stream of bytes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import numpy as np
import psutil

from placement.episode import Episode, Schema, signature
from placement.replay.shard import ReplayShard
from placement.replay.shard_items import ItemReader, ItemWriter
from placement.transport.gate import Dial, Gate, Tunnels, direct, new_token

STEPS = (133, 50_000)
"""Steps of Ariane's episode, and of one as large as if observations were sent."""
CAPACITY = 10_000
HELD = 300e6
"""Maximum bytes that a shard holds."""
LEFT = 20
"""Episodes that are not read: a reader of the previous round may have prefetched some."""
PIECE = 1 << 18
LONG = 60.0


def serve(pipe: Connection, token: str) -> None:
    """Serves both variants until the pipe closes: a pair of shards per size, and a pair of sinks."""
    shards = [
        [ReplayShard(number=0, capacity=CAPACITY, steps=steps, token=each) for each in (None, token)] for steps in STEPS
    ]
    sink = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_swallow, args=(sink,), daemon=True).start()
    gate = Gate(sink.getsockname()[1], bind="127.0.0.1", token=token)
    bare = [f"127.0.0.1:{sink.getsockname()[1]}", gate.address]
    pipe.send([*([shard.address for shard in pair] for pair in shards), bare])
    pipe.poll(None)


def _swallow(listener: socket.socket) -> None:
    """Discards received data and confirms the end of each stream with a byte."""
    while True:
        connection, _ = listener.accept()
        with connection:
            while connection.recv(PIECE):
                pass


def stream(target: str, seconds: float) -> float:
    """Returns bytes per second into a sink, over a TCP connection or a tunnel."""
    if target.startswith("unix-abstract:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect("\0" + target.removeprefix("unix-abstract:"))
    else:
        host, _, port = target.rpartition(":")
        connection = socket.create_connection((host, int(port)))
    piece, sent, start = bytes(PIECE), 0, time.perf_counter()
    with connection:
        while time.perf_counter() - start < seconds:
            connection.sendall(piece)
            sent += PIECE
    return sent / (time.perf_counter() - start)


def write(
    address: str, dial: Dial, episode: Episode, seconds: float, cpu: Callable[[], float]
) -> tuple[float, float, int]:
    """Returns episodes per second, CPU seconds per episode, and the number written."""
    writer, count = ItemWriter(address, dial=dial), 0
    writer.begin(episode)
    writer.flush(LONG)  # establishes the connection
    used, start = cpu(), time.perf_counter()
    most = min(CAPACITY // 2, int(HELD / sum(field.nbytes for field in episode)))
    while time.perf_counter() - start < seconds and count < most:
        writer.begin(episode)
        if not writer.flush(LONG):
            raise TimeoutError("the shard did not confirm an episode")
        count += 1
    taken = time.perf_counter() - start
    writer.close()
    return count / taken, (cpu() - used) / count, count + 1


def read(address: str, dial: Dial, steps: int, count: int) -> float:
    """Returns the episodes per second of reading `count` waiting episodes."""
    reader = ItemReader(address, Schema(steps), dial=dial)
    deadline = threading.Timer(LONG, reader.cancel)
    deadline.start()
    reader.next()
    start = time.perf_counter()
    for _ in range(count - 1):
        reader.next()
    taken = time.perf_counter() - start
    deadline.cancel()
    reader.cancel()
    return (count - 1) / taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    token, rng = new_token(), np.random.default_rng(1)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there, token), daemon=True)
    server.start()
    if not here.poll(LONG):
        raise TimeoutError("the shards did not start")
    *shards, sinks = here.recv()
    processes = [psutil.Process(), psutil.Process(server.pid)]
    cpu = lambda: sum(sum(each.cpu_times()[:2]) for each in processes)  # noqa: E731
    dials = {"direct": direct, "token": Tunnels(token).dial}
    for steps, addresses in zip(STEPS, shards, strict=True):
        episode = signature(steps)._replace(
            length=np.array(steps, np.int32),
            actions=rng.integers(0, 2048, steps, dtype=np.int32),  # random because Reverb compresses
            log_probabilities=-rng.random(steps, np.float32),
        )
        size = sum(field.nbytes for field in episode) / 1e6
        found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in dials}
        for _ in range(options.rounds):
            for (way, dial), address in zip(dials.items(), addresses, strict=True):
                written, spent, count = write(address, dial, episode, options.seconds, cpu)
                found[way].append((written, read(address, dial, steps, count - LEFT), 1e3 * spent / size))
        print(f"episodes of {1e3 * size:.1f} kB")
        for way, rows in found.items():
            written, taken, spent = np.median(rows, axis=0)
            print(
                f"  {way:7} written {written:8.0f}/s {written * size:7.1f} MB/s   read {taken:8.0f}/s "
                f"{taken * size:7.1f} MB/s   {spent:7.2f} ms of processors per MB written"
            )
    rates: dict[str, list[float]] = {way: [] for way in dials}
    for _ in range(options.rounds):
        for (way, dial), address in zip(dials.items(), sinks, strict=True):
            rates[way].append(stream(dial(address), options.seconds) / 1e6)
    print("bare stream: " + ", ".join(f"{way} {np.median(each):.0f} MB/s" for way, each in rates.items()))
    here.close()
    server.join(LONG)


if __name__ == "__main__":
    main()
