"""Steps per second of the engine's pool and of other methods to step environments, and the cost of a step.

    PLACEMENT_PATH=… python benchmarks/bench_pool.py [--designs …] [--seconds 2] [--rounds 3] [--threads 1 2 4 …]
    python benchmarks/bench_pool.py --drawn 20 60 [--count 1000]

64 environments, 2 threads, random legal actions (the same for all, drawn beforehand), with and without placing soft
macros; environments are out of phase in (a), (d) and (e).

    (a) a Python loop over `PlacementEnv`       (d) the pool in synchronous mode
    (b) Gymnasium's `SyncVectorEnv`             (e) the pool in asynchronous mode
    (c) its `AsyncVectorEnv`                    (f) the engine's step in a plain loop on as many threads

With `--drawn MACROS` it measures instead how steps per second and memory change if a synchronous pool plays N different
designs of up to MACROS macros: a list of them, or as many drawn one by one.

If the package `envpool` is installed, its CartPole shows the overhead of a pool. All are measured in turn for some
rounds; medians are printed. Compare ratios, not absolute figures. CPU time is that of the process without children.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

from placement.config import EnvConfig
from placement.engine import _native
from placement.engine.native_design import native_design
from placement.engine.pool import EnvironmentPool, make_pool
from placement.engine.state import PlacementState
from placement.env.gym_env import PlacementEnv
from placement.netlist.design import Design
from placement.netlist.distribution import DesignDistribution
from placement.netlist.generators.synthetic import SyntheticDesigns
from placement.netlist.load import load

ENVS = 64
THREADS = 2
BATCH = ENVS // 2  # batch size of the asynchronous pools


class Script:
    """Legal episodes, one per environment, played repeatedly from different starting points."""

    def __init__(self, design: Design, envs: int) -> None:
        self.actions = np.stack([self._episode(design, env % 16) for env in range(envs)])
        length = self.actions.shape[1]
        self.at = np.zeros(envs, int)
        self.start = (np.arange(envs) * length) // envs  # out of phase

    @staticmethod
    def _episode(design: Design, seed: int) -> np.ndarray:
        generator = np.random.default_rng(seed)
        while True:
            state, actions = PlacementState(design), []
            while state.legal_cells:
                cell = int(generator.choice(np.flatnonzero(state.mask())))
                state.place(*divmod(cell, design.canvas.columns))
                actions.append(cell)
            if len(actions) == len(design.placing_order):
                return np.array([*actions, 0], np.int32)  # the last is ignored: it begins the next episode

    def next(self, envs: np.ndarray) -> np.ndarray:
        """Returns the next action of each of `envs`, int32 [B]."""
        actions = self.actions[envs, self.at[envs]]
        self.at[envs] = (self.at[envs] + 1) % self.actions.shape[1]
        return actions


def measured(turn: Callable[[], int], seconds: float) -> tuple[float, float]:
    """Returns steps per second of wall-clock time and CPU µs per step of `turn`, which returns its number of steps."""
    turn()
    steps, wall, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        steps += turn()
    return steps / (time.perf_counter() - wall), (time.process_time() - cpu) / steps * 1e6


def python_loop(design: Design, config: EnvConfig, envs: int) -> Iterator[Callable[[], int]]:
    script, all_envs = Script(design, envs), np.arange(envs)
    made = [PlacementEnv(design, config=config) for _ in range(envs)]
    ended = [False] * envs
    for env in made:
        env.reset()

    def turn_of(chosen: np.ndarray) -> int:
        for index, action in zip(chosen, script.next(chosen), strict=True):
            if ended[index]:
                made[index].reset()
                ended[index] = False
            else:
                ended[index] = made[index].step(action)[2]
        return len(chosen)

    for turn in range(int(script.start.max())):
        turn_of(np.flatnonzero(script.start > turn))
    yield lambda: turn_of(all_envs)


def gymnasium_vector(kind: type, design: Design, config: EnvConfig, envs: int) -> Iterator[Callable[[], int]]:
    script, all_envs = Script(design, envs), np.arange(envs)
    vector = kind([lambda: PlacementEnv(design, config=config)] * envs)
    vector.reset()

    def turn() -> int:
        vector.step(script.next(all_envs))
        return envs

    yield turn
    vector.close()


def put_out_of_phase(pool: EnvironmentPool, script: Script) -> None:
    """Steps each environment of a synchronous pool to its starting point."""
    pool.reset()
    for turn in range(int(script.start.max())):
        ids = np.flatnonzero(script.start > turn).astype(np.int32)
        pool.step(script.next(ids), ids)


def pool_synchronous(
    design: Design, config: EnvConfig, envs: int, threads: int = THREADS
) -> Iterator[Callable[[], int]]:
    script, all_envs = Script(design, envs), np.arange(envs, dtype=np.int32)
    with make_pool(design, envs, num_threads=threads, config=config) as pool:
        put_out_of_phase(pool, script)

        def turn() -> int:
            pool.step(script.next(all_envs))
            return envs

        yield turn


def pool_asynchronous(
    design: Design, config: EnvConfig, envs: int, threads: int = THREADS
) -> Iterator[Callable[[], int]]:
    script, batch = Script(design, envs), max(1, envs // 2)
    with make_pool(design, envs, num_threads=threads, config=config) as pool:
        put_out_of_phase(pool, script)
        states = [pool.snapshot(env) for env in range(envs)]
    with make_pool(design, envs, batch_size=batch, num_threads=threads, config=config) as pool:
        for env, state in enumerate(states):
            pool.restore(env, state)
        pool.send(script.next(np.arange(envs)))

        def turn() -> int:
            ids = pool.recv()[4]["env_id"]
            pool.send(script.next(ids), ids)
            return batch

        yield turn


def raw_engine(design: Design, config: EnvConfig, threads: int = THREADS) -> Iterator[Callable[[], int]]:
    weights = tuple(config.cost.weights())
    steps = len(design.placing_order) + 1

    def alone(seed: int) -> None:
        _native.play_alone(
            design=native_design(design), weights=weights, soft_placer=config.soft_placer, steps=steps, seed=seed
        )

    def turn() -> int:
        workers = [threading.Thread(target=alone, args=(seed,)) for seed in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return steps * threads

    took = 0.0
    while took < 0.7:  # long enough for the set-up of a turn to be negligible
        steps *= 2
        start = time.process_time()
        turn()
        took = time.process_time() - start
    yield turn


Maker = Iterator[Callable[[], int]]


def run(makers: dict[str, Maker], seconds: float, rounds: int) -> dict[str, float]:
    """Measures in turn and prints a row for each; returns the median steps per second of each."""
    turns = {name: next(maker) for name, maker in makers.items()}
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in makers}
    for _ in range(rounds):
        for name, turn in turns.items():
            seen[name].append(measured(turn, seconds))
    rates = {}
    for name, found in seen.items():
        rates[name], cpu = (float(value) for value in np.median(found, axis=0))
        print(
            f"    {name:44s} {rates[name]:12,.0f} steps/s  {1e6 / rates[name]:9.2f} µs a step  {cpu:9.2f} µs CPU",
            flush=True,
        )
        next(makers[name], None)
    return rates


def compare(design: Design, soft_placer: str, seconds: float, rounds: int) -> None:
    config = EnvConfig(soft_placer=soft_placer)
    macros = len(design.placing_order)
    print(f"  {design.name}, {macros} macros, soft macros: {soft_placer}; {ENVS} environments, {THREADS} threads")
    makers = {
        "(c) gymnasium AsyncVectorEnv": gymnasium_vector(AsyncVectorEnv, design, config, ENVS),
        "(a) Python loop": python_loop(design, config, ENVS),
        "(b) gymnasium SyncVectorEnv": gymnasium_vector(SyncVectorEnv, design, config, ENVS),
        "(d) pool, synchronous": pool_synchronous(design, config, ENVS),
        f"(e) pool, asynchronous, batch {BATCH}": pool_asynchronous(design, config, ENVS),
        "(f) the engine's step in a plain loop": raw_engine(design, config),
    }
    rate_c, _, _, rate_d, rate_e, rate_f = run(makers, seconds, rounds).values()
    print(f"    (d)/(c) {rate_d / rate_c:.1f}×   (e)/(d) {rate_e / rate_d:.2f}×   (e)/(f) {rate_e / rate_f:.2f}")
    makers = {
        "one environment: Python loop": python_loop(design, config, 1),
        "one environment: pool": pool_synchronous(design, config, 1, 1),
    }
    loop, pool = run(makers, seconds, rounds).values()
    print(f"    pool of one / Python loop {pool / loop:.2f}×")


def yardstick(seconds: float, rounds: int) -> None:
    """Measures EnvPool's CartPole if it is installed."""
    if importlib.util.find_spec("envpool") is None:
        print("  envpool is not installed: no yardstick")
        return
    import envpool

    print(f"  what a pool itself costs: {ENVS} environments, {THREADS} threads")
    actions = np.zeros(ENVS, np.int32)
    pool = envpool.make_gymnasium("CartPole-v1", num_envs=ENVS, num_threads=THREADS)
    pool.reset()

    def synchronous() -> int:
        pool.step(actions)
        return ENVS

    later = envpool.make_gymnasium("CartPole-v1", num_envs=ENVS, batch_size=BATCH, num_threads=THREADS)
    later.async_reset()

    def asynchronous() -> int:
        ids = later.recv()[4]["env_id"]
        later.send(actions[: len(ids)], ids)
        return len(ids)

    toy, config = load("toy6"), EnvConfig(soft_placer="none")
    makers = {
        "EnvPool, CartPole, synchronous": iter([synchronous]),
        f"EnvPool, CartPole, asynchronous, batch {BATCH}": iter([asynchronous]),
        "ours, toy6, synchronous": pool_synchronous(toy, config, ENVS),
        f"ours, toy6, asynchronous, batch {BATCH}": pool_asynchronous(toy, config, ENVS),
    }
    theirs, theirs_later, ours, ours_later = run(makers, seconds, rounds).values()
    print(f"    ours / EnvPool: synchronous {ours / theirs:.2f}×, asynchronous {ours_later / theirs_later:.2f}×")


def scaling(design: Design, threads: list[int], seconds: float, rounds: int) -> None:
    config = EnvConfig()
    print(f"  {design.name}: threads, asynchronous, with soft macros")
    rates: dict[int, float] = {}
    for count in threads:
        maker = pool_asynchronous(design, config, max(ENVS, 8 * count), count)
        (rates[count],) = run({f"{count} threads": maker}, seconds, rounds).values()
        first = threads[0]
        print(f"      efficiency {rates[count] / rates[first] * first / count:.2f}")


def resident() -> float:
    """Returns the resident memory of this process in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def drawn(macros: tuple[int, int], count: int, episodes: int) -> None:
    """Prints a row for one design, a list of `count`, as many drawn ones, and the same with four episodes of each."""
    distribution = SyntheticDesigns(macros=macros, count=count)
    kinds: dict[str, Callable[[], DesignDistribution | list[Design]]] = {
        "one design": lambda: [distribution[0]],
        "drawn": lambda: distribution,
        "drawn, four episodes of each": lambda: dataclasses.replace(distribution, episodes_per_design=4),
        f"a list of {count}": lambda: list(distribution),
    }
    print(f"  {macros[0]} to {macros[1]} macros, {ENVS} environments, {THREADS} threads, random legal actions")
    for name, designs in kinds.items():
        before, wall, cpu = resident(), time.perf_counter(), time.process_time()
        with make_pool(designs(), ENVS, num_threads=THREADS) as pool:
            pool.reset()
            made = time.process_time() - cpu
            steps, ended, wall, cpu = 0, 0, time.perf_counter(), time.process_time()
            while ended < episodes:
                ended += int(pool.step(pool.sample_actions())[2].sum())
                steps += ENVS
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            rates = f"{steps / wall:9,.0f} steps/s  {1e3 * cpu / ended:7.2f} ms CPU an episode"
            held = resident() - before
            print(f"    {name:30s} made in {made:6.1f} s CPU  {held:7.0f} MiB  {rates}", flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="*", default=["toy6", "ariane133_ng45"])
    parser.add_argument("--soft", nargs="*", default=["none", "force_directed"])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3, help="of which the medians are given")
    parser.add_argument("--drawn", nargs=2, type=int, help="least and greatest number of macros")
    parser.add_argument("--count", type=int, default=1000, help="different designs")
    parser.add_argument("--threads", nargs="*", type=int, default=[], help="a scaling curve over these")
    arguments = parser.parse_args()
    if arguments.drawn:
        return drawn(tuple(arguments.drawn), arguments.count, arguments.count)
    designs = [load(name) for name in arguments.designs]
    for design in designs:
        for soft_placer in arguments.soft:
            compare(design, soft_placer, arguments.seconds, arguments.rounds)
        if arguments.threads:
            scaling(design, arguments.threads, arguments.seconds, arguments.rounds)
    yardstick(arguments.seconds, arguments.rounds)


if __name__ == "__main__":
    main()
