"""Processes on the hosts of bench_caches.py: the learner with the root cache, a cache, a group of readers.

    python benchmarks/cache_roles.py learner|cache|readers ARGUMENTS      started by bench_caches.py

Each reports events as lines of JSON, and runs until its standard input ends.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from functools import partial

import numpy as np
from links import die_with_parent

READ_SECONDS = 1200.0
POLL_SECONDS = 1.0  # seconds between two polls of a reader for the version: about an episode
LEAVES = 8


def _say(**message: object) -> None:
    os.write(1, (json.dumps(message) + "\n").encode())  # one write, so that lines of several processes do not mix


def _parameters(megabytes: float) -> dict[str, np.ndarray]:
    """Returns a model of random float32, which does not compress."""
    size = int(megabytes * 1e6 / 4 / LEAVES)
    random = np.random.default_rng(0)
    return {f"layer{number}": random.random(size, dtype=np.float32) for number in range(LEAVES)}


def run_learner(bind: str, megabytes: float, period: float) -> None:
    """Runs the root: publishes every `period` seconds from the first line of standard input until its end."""
    from placement.modelcache.cache import ModelCache
    from placement.modelcache.store import Layout

    parameters = _parameters(megabytes)
    cache = ModelCache(bind=bind)
    layout = Layout(parameters)
    _say(address=cache.address)
    sys.stdin.readline()
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    start, version = time.monotonic(), 0
    while not ended.wait(max(start + version * period - time.monotonic(), 0.0)):
        began = time.monotonic()
        for leaf in parameters.values():
            leaf += np.float32(0.001)
        cache.publish(layout.pack(version, parameters))
        at = time.monotonic()
        _say(version=version, at=at, seconds=at - began)
        version += 1
    cache.close()


def run_cache(bind: str, parent: str) -> None:
    """Runs one cache until standard input ends."""
    from placement.modelcache.cache import ModelCache
    from placement.modelcache.reader import Timeouts

    cache = ModelCache(bind=bind, parents=lambda: (parent,), timeouts=Timeouts(call=60.0, read=READ_SECONDS))
    _say(address=cache.address)
    sys.stdin.read()
    cache.close()


def run_readers(megabytes: float, addresses: list[str]) -> None:
    """Runs one process per address, forked before gRPC starts; they read until standard input ends."""
    from placement.modelcache import reader
    from placement.modelcache.reader import CacheReader, Timeouts
    from placement.modelcache.store import Layout

    reader.POLL_SECONDS = POLL_SECONDS
    layout = Layout(_parameters(megabytes))
    gc.collect()
    gc.freeze()
    children = []
    for number, address in enumerate(addresses):
        child = os.fork()
        if child == 0:
            die_with_parent()
            timeouts = Timeouts(call=60.0, read=READ_SECONDS)
            _read(CacheReader(partial(tuple, [address]), layout, timeouts=timeouts), number)
            os._exit(0)
        children.append(child)
    _say(ready=len(children))
    sys.stdin.read()
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)


def _read(reader: object, number: int) -> None:
    version = -1
    while True:
        version = reader.wait_for(version + 1, timeout=READ_SECONDS).version  # type: ignore[attr-defined]
        _say(
            reader=number,
            version=version,
            at=time.monotonic(),
            seconds=reader.source.latencies.values()[-1],
            failures=reader.source.failures,
        )  # type: ignore[attr-defined]


ROLES = {
    "learner": lambda bind, megabytes, period: run_learner(bind, float(megabytes), float(period)),
    "cache": run_cache,
    "readers": lambda megabytes, *addresses: run_readers(float(megabytes), list(addresses)),
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](*sys.argv[2:])
