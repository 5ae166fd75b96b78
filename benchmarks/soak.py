"""A long run on Ray whose processes are killed at random every 20 to 40 seconds, compared with undisturbed runs.

    python benchmarks/soak.py [--minutes 20] [--design planted20] [--seed 0] [--references 5] [--folder FOLDER]

Kills (SIGKILL) an actor, a replay shard, a model cache, the learner or, now and then, the whole run, which the same
command then resumes. The run is stopped when the time is over. Then undisturbed runs with the same settings and other
seeds train until they have learned from the same number of episodes. Several are needed because runs differ by their
seeds alone.

Prints the quality of all policies over time (mean proxy cost of the sampled episodes of `LAST` iterations), the killed
processes, and the memory of each role's processes: the largest of a role in the first, second and last third of the
time. Exit code 1 if the disturbed policy is worse than the mean of the undisturbed ones by more than 2 %, if they
differ among themselves so much that 2 % would not be significant, or if memory grew by more than a fifth.
"""

from __future__ import annotations

import argparse
import collections
import csv
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy.stats import t as student

from tests.support.ray_run import RayRun

START_SECONDS = 240.0
EVERYTHING = "everything"
LAST = 30  # iterations over which a policy is judged
GROWTH = 1.2
WORSE = 1.02
CONFIDENCE = 0.95  # that one more undisturbed run would cost less than the reported limit
MOMENTS = 10  # number of comparisons of the policies; the last is at the end


def settings(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    runtime = {
        "name": "ray",
        "actors": 2,
        "envs_per_actor": options.envs,
        "max_staleness": 1,
        "shards": 2,
        "caches": 2,
        "fan_out": 2,
        "checkpoint_every": 10,
        "evaluate_every": 0,
    }
    ppo = {
        "iterations": options.iterations,
        "episodes_per_iteration": options.episodes,
        "minibatch_size": options.minibatch,
        "learning_rate": options.learning_rate,
        "entropy_target": options.entropy,
        "final_fraction": 1.0,
    }
    return {
        "design": [options.design],
        "run_dir": str(folder),
        "seed": options.seed,
        "policy": {"node_width": options.width, "grid_width": options.width, "rounds": 1},
        "ppo": ppo,
        "replay": {"timeout": START_SECONDS},
        "runtime": runtime,
    }


class Soak:
    """The disturbed run."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._settings = settings(options, folder)
        self._random = random.Random(options.seed)
        self._seconds = options.minutes * 60
        self._run = RayRun(self._settings, timing={"shard_checkpoint": 10.0})
        self.killed: collections.Counter[str] = collections.Counter()
        self.memory: list[tuple[float, str, float]] = []

    def go(self) -> None:
        """Kills processes until the time is over, then stops the run."""
        begin = time.monotonic()
        self._wait_for_training()
        due = self._next()
        while time.monotonic() - begin < self._seconds:
            time.sleep(1.0)
            self._note_memory(time.monotonic() - begin)
            if time.monotonic() > due:
                self._disturb(time.monotonic() - begin)
                due = self._next()
        self._wait_for_training()
        self._run.send(signal.SIGINT)
        if self._run.end(timeout=60) != 0:
            raise SystemExit(f"the run ended badly:\n{self._run.output()}")
        print(f"{time.monotonic() - begin:6.0f} s  stopped: {self._run.lines[-1].strip()}", flush=True)

    def close(self) -> None:
        self._run.__exit__()

    def _next(self) -> float:
        return time.monotonic() + self._random.uniform(20, 40)

    def _disturb(self, seconds: float) -> None:
        names = sorted(name for name in self._run.seen if self._run.pid(name))
        name = EVERYTHING if self._random.random() < 0.05 else self._random.choice(names)
        print(f"{seconds:6.0f} s  iteration {self._run.iteration():5}  kills {name}", flush=True)
        self.killed[name] += 1
        if name == EVERYTHING:
            below = self._run.below()
            self._run.process.kill()
            self._run.end(timeout=60)
            del below
            self._run.__exit__()
            self._run = RayRun(self._settings, timing={"shard_checkpoint": 10.0})
            self._wait_for_training()
        else:
            self._run.kill(name, timeout=START_SECONDS)

    def _wait_for_training(self) -> None:
        before = self._run.iteration()
        self._run.until(lambda: self._run.iteration() > before, "training continues", timeout=START_SECONDS)

    def _note_memory(self, seconds: float) -> None:
        for name, one in list(self._run.seen.items()):
            self.memory.append((seconds, name.split()[0], float(one.get("resident_mb", 0.0))))


def undisturbed(options: argparse.Namespace, folder: Path, iterations: int, *, seed: int) -> None:
    """Trains for this many iterations."""
    with RayRun({**settings(options, folder), "seed": seed}) as run:
        run.until(lambda: run.iteration() >= iterations, f"{iterations} iterations", timeout=options.minutes * 60 * 3)
        run.send(signal.SIGINT)
        run.end(timeout=60)


def costs(folder: Path, iterations: int) -> list[float]:
    """Returns the mean costs of `LAST` iterations at each of `MOMENTS` moments up to `iterations`."""
    with (folder / "metrics.csv").open(newline="") as stream:
        rows = [float(row["cost_mean"]) for row in csv.DictReader(stream) if row["cost_mean"]]
    ends = [iterations * moment // MOMENTS for moment in range(1, MOMENTS + 1)]
    return [statistics.fmean(rows[max(0, end - LAST) : end]) for end in ends]


def thirds(memory: Sequence[tuple[float, str, float]]) -> dict[str, list[float]]:
    """Returns the largest memory of each role in each third of the time, in MB."""
    end = max(seconds for seconds, _, _ in memory)
    found: dict[str, list[float]] = {}
    for seconds, role, taken in memory:
        third = min(int(3 * seconds / end), 2)
        largest = found.setdefault(role, [0.0, 0.0, 0.0])
        largest[third] = max(largest[third], taken)
    return found


def judge(disturbed: Path, references: Sequence[Path], iterations: int) -> bool:
    """Prints all results; returns whether the disturbed run is as good as the others, with a significant test."""
    found = costs(disturbed, iterations)
    undisturbed_costs = [costs(folder, iterations) for folder in references]
    print(f"mean proxy cost of {LAST} iterations")
    print(" iteration  disturbed  undisturbed: each, mean, standard deviation; ratio")
    for moment, (one, *others) in enumerate(zip(found, *undisturbed_costs, strict=True), start=1):
        mean, spread = statistics.fmean(others), statistics.stdev(others)
        each = " ".join(f"{cost:.4f}" for cost in others)
        end = iterations * moment // MOMENTS
        print(f"{end:10}  {one:9.4f}  {each}, {mean:.4f}, {spread:.4f}; {one / mean:.4f}")
    # The values after the loop are those of the last moment, the end.
    count = len(others)
    reach = float(student.ppf(CONFIDENCE, count - 1)) * spread * (1 + 1 / count) ** 0.5 / mean
    print(f"one more undisturbed run would end at most {reach:.1%} above the mean ({CONFIDENCE:.0%} sure)")
    if reach > WORSE - 1:
        print("CANNOT TELL: the undisturbed runs differ too much")
    good = one <= mean * WORSE
    print(f"the disturbed one ended {one / mean - 1:+.2%} from it: {'as good' if good else 'WORSE'}")
    return good and reach <= WORSE - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--design", default="planted20")
    parser.add_argument("--iterations", type=int, default=4000, help="of the schedules; more than are done in the time")
    parser.add_argument("--episodes", type=int, default=48, help="per iteration")
    parser.add_argument("--envs", type=int, default=24, help="per actor")
    parser.add_argument("--minibatch", type=int, default=240)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--entropy", type=float, default=0.5, help="ppo.entropy_target in nats")
    parser.add_argument("--width", type=int, default=8, help="of the network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--references", type=int, default=5, help="undisturbed runs, of the seeds after --seed; >= 2")
    parser.add_argument("--folder", type=Path, help="for the runs' folders, which then stay; it must not exist yet")
    options = parser.parse_args()
    if options.references < 2:
        parser.error("--references must be at least 2: how far runs differ by themselves is the measure")
    if options.folder and options.folder.exists():
        parser.error(f"--folder {options.folder} exists; name one that does not")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    soak = Soak(options, folder / "disturbed")
    try:
        soak.go()
    finally:
        soak.close()
    with (folder / "disturbed" / "metrics.csv").open(newline="") as stream:
        iterations = [int(row["iteration"]) for row in csv.DictReader(stream)]
    if iterations != list(range(1, len(iterations) + 1)):
        raise SystemExit("metrics.csv does not have every iteration once")
    killed = ", ".join(f"{name} {count}" for name, count in sorted(soak.killed.items()))
    print(f"{len(iterations)} iterations of {options.episodes} episodes; killed: {killed}")
    good = True
    for role, largest in sorted(thirds(soak.memory).items()):
        flat = not largest[0] or largest[2] <= GROWTH * largest[0]
        good &= flat
        print(f"{role:>10}: at most {largest[0]:.0f}, {largest[1]:.0f}, {largest[2]:.0f} MB {'' if flat else 'GROWS'}")
    references = [folder / f"undisturbed{number}" for number in range(options.references)]
    for number, reference in enumerate(references):
        undisturbed(options, reference, len(iterations), seed=options.seed + 1 + number)
    good &= judge(folder / "disturbed", references, len(iterations))
    if not options.folder:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
