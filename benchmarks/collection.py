"""Profile of collecting episodes: environments, inference, transfers, the rest.

CPU seconds of the engine's threads are read from their own clocks, so other work on the machine does not count.
"""

from __future__ import annotations

import concurrent.futures
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from placement.config import EnvConfig, PolicyConfig
from placement.engine import _native
from placement.engine.native_design import native_design
from placement.engine.observation import Observation
from placement.engine.pool import EnvironmentPool, make_pool
from placement.episode import Episode
from placement.modelcache.store import Snapshot
from placement.netlist.design import Design
from placement.policy.agent import Agent, Decision
from placement.policy.features import FLOAT32, product_dtype
from placement.training.inference import LocalInference
from placement.training.rollout import play

ENV = EnvConfig()


class Meter:
    """Wraps an object and sums the wall-clock and CPU seconds of calls of some of its methods."""

    def __init__(self, what: Any, *methods: str) -> None:
        self._what, self._methods = what, methods
        self.wall = self.cpu = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._what, name)
        return self._timed(found) if name in self._methods else found

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            wall, cpu = time.perf_counter(), time.thread_time()
            try:
                return method(*arguments, **options)
            finally:
                self.wall += time.perf_counter() - wall
                self.cpu += time.thread_time() - cpu

        return timed


class StandIn:
    """A simulated accelerator that answers after some time without using the CPU, with actions of recorded episodes.

    Args:
        played: recorded episodes, axis B over the pool's environments.
        parts: number of parts into which they were split.
        seconds: duration of an answer.
    """

    def __init__(self, played: Episode, parts: int, seconds: float) -> None:
        self._actions = played.actions.reshape(parts, -1, played.actions.shape[1])
        self._seconds, self._calls = seconds, 0

    def act(self, params: Any, embeddings: Any, observation: Observation, key: Any, **options: Any) -> Decision:
        step, part = divmod(self._calls, len(self._actions))
        self._calls += 1
        time.sleep(self._seconds)
        actions = np.maximum(self._actions[part, :, step], 0)
        return Decision(actions, np.zeros(len(actions), np.float32), options["energy"])


class Shares(NamedTuple):
    """Seconds per episode.

    Attributes:
        wall: total wall-clock time.
        total: CPU time of the process.
        environments: CPU time of the pool's threads, and of the calling thread inside the pool.
        inference: wall-clock time of the calls that decide.
        rest: CPU time of the calling thread outside both.
    """

    wall: float
    total: float
    environments: float
    inference: float
    rest: float


class Setting(NamedTuple):
    """Setting of a collection: environments, threads that step them, parts that overlap."""

    envs: int
    threads: int
    parts: int


def pool_for(design: Design, setting: Setting, policy: PolicyConfig) -> EnvironmentPool:
    compact = product_dtype(policy) != FLOAT32
    return make_pool([design], setting.envs, num_threads=setting.threads, config=ENV, compact_maps=compact)


def collected(pool: EnvironmentPool, acting: Any, network: Any, setting: Setting, seed: int) -> tuple[Shares, Episode]:
    """Collects one round and measures its time."""
    engine = Meter(pool, "send", "recv", "async_reset", "reset", "step")
    deciding = Meter(acting, "act")
    wall, process, thread = time.perf_counter(), time.process_time(), time.thread_time()
    threads = pool.thread_seconds()
    played = play(deciding, engine, network, jax.random.key(seed), batches=setting.parts)  # type: ignore[arg-type]
    assert played is not None
    seconds = [
        time.perf_counter() - wall,
        time.process_time() - process,
        pool.thread_seconds() - threads + engine.cpu,
        deciding.wall,
        time.thread_time() - thread - engine.cpu - deciding.cpu,
    ]
    return Shares(*(value / setting.envs for value in seconds)), played


def median(rows: list[Shares]) -> Shares:
    return Shares(*(statistics.median(column) for column in zip(*rows, strict=True)))


class Bare(NamedTuple):
    """CPU seconds per episode of the engine alone.

    Attributes:
        same: the same episodes on one thread.
        random: random episodes in a plain loop.
        together: the same loop on all threads at once, the capacity of the cores under full load.
    """

    same: float
    random: float
    together: float


def bare(design: Design, played: Episode, setting: Setting, seed: int) -> Bare:
    """Measures `Bare`."""
    count = len(played.length)
    with make_pool([design], count, num_threads=1, config=ENV) as pool:
        pool.reset()
        began = time.thread_time()
        for step in range(pool.spec.steps):
            pool.step(np.maximum(played.actions[:, step], 0))
        same = (time.thread_time() - began) / count
    threads = setting.threads or os.cpu_count() or 1
    episodes = max(1, count // threads)  # per thread
    settings = {"weights": tuple(ENV.cost.weights()), "soft_placer": ENV.soft_placer}
    settings |= {"design": native_design(design), "steps": episodes * (len(design.placing_order) + 1)}

    def random(number: int) -> float:
        began = time.thread_time()
        _native.play_alone(**settings, seed=seed + number)
        return (time.thread_time() - began) / episodes

    with concurrent.futures.ThreadPoolExecutor(threads) as executor:
        return Bare(same, random(0), statistics.fmean(executor.map(random, range(threads))))


def transfers(agent: Agent, pool: EnvironmentPool, batch: int, repeats: int = 50) -> tuple[int, float, float]:
    """Returns the bytes of a batch's observation, seconds to the device, and seconds back for the decisions."""
    seen = Observation(**pool.observe(np.arange(batch))[0])
    size = sum(np.asarray(array).nbytes for array in seen)
    there, back = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(jax.device_put(seen))
        there.append(time.perf_counter() - began)
        packed = jax.block_until_ready(jax.device_put(np.zeros((3, batch), np.int32)) + 1)
        began = time.perf_counter()
        np.asarray(packed)
        back.append(time.perf_counter() - began)
    return size, statistics.median(there), statistics.median(back)


def report(design: Design, setting: Setting, *, rounds: int, device_ms: float) -> None:
    """Prints all figures; rounds of the kinds of work alternate."""
    policy = PolicyConfig()
    agent, pool = Agent(policy, [design]), pool_for(design, setting, policy)
    inference = LocalInference(agent)
    network = inference.network(Snapshot(0, agent.init(0)))
    _, played = collected(pool, inference, network, setting, 0)  # compiles
    rows: dict[str, list[Shares]] = {"inference here": [], "stand-in": []}
    alone = []
    for number in range(rounds):
        found, played = collected(pool, inference, network, setting, number + 1)
        rows["inference here"].append(found)
        stand_in = StandIn(played, setting.parts, device_ms / 1e3)
        rows["stand-in"].append(collected(pool, stand_in, network, setting, 0)[0])
        alone.append(bare(design, played, setting, number))
    same, random, together = (statistics.median(column) for column in zip(*alone, strict=True))
    print(
        f"bare engine: {same * 1e3:.2f} CPU-ms an episode for the same ones, {random * 1e3:.2f} for random ones, "
        f"{together * 1e3:.2f} for those where all threads play at once"
    )
    crowded = same * together / random
    for name, found in rows.items():
        shares = median(found)
        print(
            f"{name}: environments {shares.environments * 1e3:.2f} CPU-ms an episode, inference "
            f"{shares.inference * 1e3:.2f} ms, rollout's own Python {shares.rest * 1e3:.2f} CPU-ms; all "
            f"{shares.total * 1e3:.2f} CPU-ms, {1 / shares.wall:.1f} episodes/s"
        )
        print(
            f"  episodes/s per core of the environments: {same / shares.environments:.0%} of the bare engine's, "
            f"{crowded / shares.environments:.0%} of what that is where all threads play at once"
        )
    shares = median(rows["stand-in"])
    print(
        f"with a device that answers after {device_ms:g} ms, everything on the CPU counted: "
        f"{same / shares.total:.0%} of the bare engine's episodes/s per core, {crowded / shares.total:.0%} where all "
        f"threads play at once; bar of 90% of the bare engine's: {'met' if same / shares.total >= 0.9 else 'NOT met'}"
    )
    batch, steps = setting.envs // setting.parts, pool.spec.steps
    size, there, back = transfers(agent, pool, batch)
    each = steps / batch * 1e3
    print(
        f"transfers, alone: {size / batch:,.0f} bytes an observation, {there * each:.2f} ms an episode to the device, "
        f"{back * each:.3f} ms back ({jax.devices()[0].device_kind})"
    )
    pool.close()
