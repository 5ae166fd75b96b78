"""Cost of an episode in replay: as its actions, which the learner replays, and with all its observations.

    python benchmarks/bench_observations.py [--design ariane133_ng45] [--episodes 32] [--rounds 3]

In this project an episode is sent as its actions, and the learner's engine renders the observations
(`EpisodeRenderer`). This script compares that with sending all observations. Both use a Reverb server in this process,
without a network: write, confirm, take. CPU time is that of the whole process with the server's threads; medians over
rounds in which both alternate. Episodes are random legal ones.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import NamedTuple

import numpy as np

from placement.config import EnvConfig
from placement.engine.observation import Observation
from placement.engine.state import EpisodeRenderer
from placement.episode import Episode, stack_episodes
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from placement.transport.reverb_server import reverb, start_server, tf
from tests.support.episodes import played_episodes

DEADLINE = 60_000  # ms


class Way(NamedTuple):
    """Arrays of an episode, by name, and the size of one of them."""

    name: str
    arrays: list[dict[str, np.ndarray]]

    @property
    def kilobytes(self) -> float:
        return sum(array.nbytes for array in self.arrays[0].values()) / 1e3


def ways(episodes: list[Episode], seen: Observation) -> tuple[Way, Way]:
    """Returns the same episodes as actions alone, and with their observations."""
    actions = [dict(episode._asdict()) for episode in episodes]
    rows = [Observation(*(array[index] for array in seen)) for index in range(len(episodes))]
    whole = [
        plain | {f"seen_{name}": value for name, value in row._asdict().items()}
        for plain, row in zip(actions, rows, strict=True)
    ]
    return Way("actions", actions), Way("observations", whole)


def through_reverb(way: Way) -> float:
    """Returns the CPU seconds per episode written, confirmed and taken."""
    specs = {name: tf.TensorSpec(array.shape, array.dtype) for name, array in way.arrays[0].items()}
    server = start_server([reverb.Table.queue(way.name, len(way.arrays), signature=specs)])
    try:
        with server.client.trajectory_writer(num_keep_alive_refs=1) as writer:
            used = time.process_time()
            for arrays in way.arrays:
                writer.append(arrays)
                trajectory = {name: column[-1] for name, column in writer.history.items()}
                writer.create_item(way.name, 1.0, trajectory)
                writer.flush(timeout_ms=DEADLINE)
            dataset = reverb.TrajectoryDataset.from_table_signature(
                server.client.server_address, way.name, 4, rate_limiter_timeout_ms=DEADLINE
            )
            for count, _ in enumerate(dataset, 1):
                if count == len(way.arrays):
                    break
            return (time.process_time() - used) / len(way.arrays)
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="ariane133_ng45")
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    try:
        design = load(options.design)
    except DesignError as error:
        sys.exit(str(error))
    env = EnvConfig()
    episodes = played_episodes([design], options.episodes, 0, env=env)
    renderer = EpisodeRenderer([design])
    steps = renderer.spec.steps
    seen = renderer.arrays(options.episodes, steps)
    batch = stack_episodes(episodes)

    def played_again() -> float:
        used = time.process_time()
        renderer.render(batch.design, batch.actions, batch.length, out=seen)
        return (time.process_time() - used) / options.episodes

    again = [played_again() for _ in range(options.rounds)]
    both = ways(episodes, seen)
    taken: dict[str, list[float]] = {way.name: [] for way in both}
    for _ in range(options.rounds + 1):  # the first one warms up
        for way in both:
            taken[way.name].append(through_reverb(way))
    cpu = {name: statistics.median(found[1:]) for name, found in taken.items()}
    print(f"{design.name}, {options.episodes} episodes of {steps} steps, medians of {options.rounds}; per episode:")
    for way in both:
        print(
            f"  {way.name:<12}  {way.kilobytes:10,.1f} kB  Reverb {1e3 * cpu[way.name]:7.2f} ms CPU,"
            f" 1 Gbit/s carries {125_000 / way.kilobytes:10,.0f} episodes/s"
        )
    replayed, saved = statistics.median(again), cpu["observations"] - cpu["actions"]
    print(f"  playing again: {1e3 * replayed:.2f} ms CPU")
    print(
        f"observations that travel are {both[1].kilobytes / both[0].kilobytes:,.0f} times the bytes, and"
        f" {saved / replayed:.2f} times the CPU of playing again beside it"
    )


if __name__ == "__main__":
    main()
