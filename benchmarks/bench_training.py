"""The training loop and its stages: episodes and samples per second, each compared with its own limit.

    python benchmarks/bench_training.py [DESIGN] [--envs 16] [--actors 2] [--rounds 3] [--iterations 12]

DESIGN is a name or a path; default: ariane133_ng45 if it is on PLACEMENT_PATH, else clustered120. Default settings,
untrained parameters, all cores of the machine, which must be quiet.

- Collection: actors in threads play whole episodes with local inference. Limits: the same environments with random
  actions, and the same batches decided without environments.
- The learner: whole updates on collected episodes. Limit: the gradient step alone, repeated.
- The loop: what `train.py` reports after the first iterations. Also the size of an episode in replay.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from bench_cost import default_design

from placement.config import EnvConfig, PolicyConfig, PPOConfig
from placement.engine.observation import Observation
from placement.engine.pool import make_pool
from placement.episode import Episode, signature
from placement.netlist.design import Design
from placement.netlist.load import load
from placement.policy.agent import Agent, EmbeddedParameters
from placement.ppo.learner import Learner
from placement.training.rollout import play
from placement.utils.compilation import keep_compilations

ROOT = Path(__file__).resolve().parents[1]
BAR_EPISODES, BAR_SAMPLES, BAR_SHARE, BAR_BYTES = 15.0, 1000.0, 0.5, 200_000
SKIPPED = 3  # initial iterations, which compile


class Rate(NamedTuple):
    """Rate of repeated work: units per wall-clock second, and CPU seconds per unit."""

    rate: float
    cpu: float


def measured(work: Callable[[], int], rounds: int) -> Rate:
    """Returns medians over rounds of `work`, which returns its number of units; one more round before compiles."""
    work()
    rates, cpu = [], []
    for _ in range(rounds):
        wall, used = time.perf_counter(), time.process_time()
        done = work()
        rates.append(done / (time.perf_counter() - wall))
        cpu.append((time.process_time() - used) / done)
    return Rate(statistics.median(rates), statistics.median(cpu))


def in_threads(count: int, work: Callable[[int], int]) -> int:
    """Runs `work(number)` in threads; returns the sum of their results."""
    done = [0] * count

    def run(number: int) -> None:
        done[number] = work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done)


def collection(design: Design, options: argparse.Namespace) -> tuple[Rate, Rate, Rate, list[Episode]]:
    """Measures episodes by actors and by environments alone, decisions by the network alone; returns some episodes."""
    agent = Agent(PolicyConfig(), [design])
    params = agent.init(0)
    network = EmbeddedParameters(params, agent.embed(params))
    pools = [make_pool(design, options.envs, num_threads=1) for _ in range(options.actors)]
    observations = [Observation(**pool.reset()[0]) for pool in pools]
    kept: list[Episode] = []

    def actors(number: int) -> int:
        played = play(agent, pools[number], network, jax.random.key(len(kept) + number))
        assert played is not None
        blank = signature(pools[number].spec.steps)
        kept.extend(
            blank._replace(
                identity=np.array([number, len(kept)], np.int64),
                length=played.length[env],
                actions=played.actions[env].copy(),
                log_probabilities=played.log_probabilities[env].copy(),
                reward=played.reward[env],
                costs=played.costs[env].copy(),
            )
            for env in range(options.envs)
        )
        return options.envs

    def environments(number: int) -> int:
        generator, pool = np.random.default_rng(number), pools[number]
        observation, _ = pool.reset()
        for _ in range(pool.spec.steps):
            legal = observation["mask"].reshape(options.envs, -1)
            score = generator.random(legal.shape, np.float32) * (legal != 0)
            observation = pool.step(score.argmax(axis=1))[0]
        return options.envs

    def decisions(number: int) -> int:
        energy: Any = np.zeros((options.envs, 2), np.float32)
        for _ in range(50):
            energy = agent.act(*network, observations[number], np.zeros(2, np.uint32), energy=energy).energy
        return 50 * options.envs

    rates = [
        measured(lambda work=work: in_threads(options.actors, work), options.rounds)  # type: ignore[misc]
        for work in (actors, environments, decisions)
    ]
    return rates[0], rates[1], rates[2], kept


def learning(design: Design, episodes: list[Episode], rounds: int) -> tuple[Rate, Rate]:
    """Measures samples by whole updates, and by gradient steps alone: the cost of more epochs over the same samples."""
    count = PPOConfig().episodes_per_iteration
    given = [episodes[number % len(episodes)] for number in range(count)]
    rates = []
    for epochs in (1, 3):
        learner = Learner(PolicyConfig(), PPOConfig(epochs=epochs), EnvConfig(), [design], seed=0)

        def update(learner: Learner = learner) -> int:
            fresh = [episode._replace(version=learner.state.version) for episode in given]
            return int(learner.update(fresh, iteration=0)["samples"])

        rates.append(measured(update, rounds))
    more = (1 / rates[1].rate - 1 / rates[0].rate) / 2
    return rates[0], Rate(1 / more, (rates[1].cpu - rates[0].cpu) / 2)


def loop(design: str, options: argparse.Namespace) -> dict[str, float]:
    """Returns medians of the figures reported by train.py, after the first iterations."""
    with tempfile.TemporaryDirectory() as folder:
        settings = [f"design={design}", f"run_dir={folder}/run", f"ppo.iterations={options.iterations}"]
        settings += ["runtime.evaluate_every=0", "runtime.checkpoint_every=1000000", "env.cost=proxy"]
        subprocess.run([sys.executable, str(ROOT / "train.py"), *settings], check=True, cwd=ROOT, capture_output=True)
        with (Path(folder) / "run" / "metrics.csv").open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))[SKIPPED:]

    def median(value: Callable[[dict[str, str]], float]) -> float:
        return statistics.median(value(row) for row in rows)

    seconds = median(lambda row: PPOConfig().episodes_per_iteration / float(row["episodes_per_second"]))
    return {
        "episodes": median(lambda row: float(row["episodes_per_second"])),
        "gradient_steps": median(lambda row: float(row["learner_gradient_steps"])) / seconds,
        "samples": median(lambda row: float(row["learner_samples"])) / seconds,
        "learner_share": median(lambda row: float(row["learner_seconds"])) / seconds,
    }


def verdict(value: float, bar: float, *, least: bool = True) -> str:
    return "met" if (value >= bar if least else value <= bar) else "NOT met"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="?", default=None)
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=12)
    options = parser.parse_args()
    keep_compilations()
    name = options.design or default_design()
    design = load(name)
    steps = len(design.placing_order)
    print(f"{design.name}: {steps} macros; {options.actors} actors of {options.envs} environments; {jax.devices()}")
    actors, environments, decisions, episodes = collection(design, options)
    print(
        f"collection: {actors.rate:.1f} episodes/s, {actors.cpu * 1e3:.1f} ms of CPU each; bar of {BAR_EPISODES:g}: "
        f"{verdict(actors.rate, BAR_EPISODES)}"
    )
    print(f"  limit, environments alone: {environments.rate:.1f} episodes/s, {environments.cpu * 1e3:.1f} ms")
    print(f"  limit, inference alone: {decisions.rate / steps:.1f} episodes/s, {decisions.cpu * steps * 1e3:.1f} ms")
    parts = environments.cpu + decisions.cpu * steps
    print(f"  collection takes {actors.cpu / parts:.2f} times the CPU of its two parts")
    updates, gradient = learning(design, episodes, options.rounds)
    print(
        f"learner: {updates.rate:,.0f} samples/s, {updates.cpu * 1e3:.3f} ms of CPU each; bar of {BAR_SAMPLES:,.0f}: "
        f"{verdict(updates.rate, BAR_SAMPLES)}"
    )
    print(f"  limit, gradient steps alone: {gradient.rate:,.0f} samples/s, {gradient.cpu * 1e3:.3f} ms")
    size = sum(np.asarray(field).nbytes for field in episodes[0])
    print(f"an episode in the replay: {size:,} bytes; bar of {BAR_BYTES:,}: {verdict(size, BAR_BYTES, least=False)}")
    found = loop(name, options)
    print(
        f"loop (train.py, defaults): {found['episodes']:.1f} episodes/s, {found['samples']:,.0f} samples/s, "
        f"{found['gradient_steps']:.2f} gradient steps/s"
    )
    print(
        f"  the learner takes {found['learner_share']:.0%} of the loop's time; bar of half: "
        f"{verdict(found['learner_share'], BAR_SHARE, least=False)}"
    )


if __name__ == "__main__":
    main()
