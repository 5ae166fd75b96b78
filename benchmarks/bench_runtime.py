"""Overhead of distribution: episodes and gradient steps per second of `runtime=ray` and of `runtime=local`.

    python benchmarks/bench_runtime.py [--design clustered40] [--actors 2] [--envs 16] [--seconds 60] [--rounds 3]

Both have the same settings and number of actors: threads of one process (local), or separate processes with one replay
shard and one model cache (ray). Each round trains a new run on each runtime in turn and measures a window of
`--seconds` after the first iterations, which compile. Medians over the rounds. Two ratios are printed: episodes per
wall-clock second, for which the machine must be idle (its load is printed), and CPU seconds per episode over all
processes, which depend less on other work.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from placement.runtimes.ray.ray_connection import descendants

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = 5  # initial iterations, which compile
START_SECONDS = 600.0
BAR = 0.15


class Speed(NamedTuple):
    """Speed of one run: per second; `infeed` is a share of the window, CPU seconds are per episode."""

    episodes: float
    steps: float
    gradient_steps: float
    infeed: float
    cpu: float


def train(runtime: str, options: argparse.Namespace, folder: Path) -> Speed:
    """Runs until the window has passed, then stops the run as Ctrl-C does."""
    settings = {
        "design": options.design,
        "run_dir": folder,
        "runtime.actors": options.actors,
        "runtime.envs_per_actor": options.envs,
        "runtime.max_staleness": 1,
        "runtime.evaluate_every": 0,
        "env.cost": "proxy",
        "runtime.checkpoint_every": 1000,
        "ppo.iterations": 100_000,
        "ppo.episodes_per_iteration": options.episodes,
        "replay.timeout": START_SECONDS,
    }
    command = [sys.executable, "train.py", f"runtime={runtime}", *(f"{key}={value}" for key, value in settings.items())]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=subprocess.STDOUT)
        try:
            speed = watch(process, folder / "metrics.csv", options.seconds)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
            said.seek(0)
            output = said.read()
    if speed is None:
        raise SystemExit(f"{' '.join(command)} did not train:\n{output[-2000:]}")
    return speed


def watch(process: subprocess.Popen[bytes], path: Path, seconds: float) -> Speed | None:
    """Returns the speed from the end of the first iterations to `seconds` later; None if the run ended."""
    deadline = time.monotonic() + START_SECONDS
    while len(rows(path)) < SKIPPED:
        if process.poll() is not None or time.monotonic() > deadline:
            return None
        time.sleep(0.2)
    before, cpu = rows(path), cpu_seconds(process.pid)
    time.sleep(seconds)
    after, used = rows(path), cpu_seconds(process.pid) - cpu
    new = after[len(before) :]
    if len(new) < 2:
        raise SystemExit(f"{len(new)} iterations in {seconds:g} s; give more --seconds")
    elapsed = float(new[-1]["seconds"]) - float(before[-1]["seconds"])

    def gained(name: str) -> float:
        return float(new[-1][name]) - float(before[-1][name])

    return Speed(
        episodes=gained("episodes") / elapsed,
        steps=gained("steps") / elapsed,
        gradient_steps=sum(float(row["learner_gradient_steps"]) for row in new) / elapsed,
        infeed=sum(float(row["infeed_wait_seconds"]) for row in new) / elapsed,
        cpu=used / seconds * elapsed / gained("episodes"),
    )


def rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    text = path.read_text()
    return list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))


def cpu_seconds(pid: int) -> float:
    """Returns the CPU seconds of a process and its descendants since each began."""
    ticks = 0
    for number in (pid, *(process.pid for process in descendants(pid))):
        try:
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="clustered40")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--episodes", type=int, default=48, help="per iteration")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the window in each run")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    speeds: dict[str, list[Speed]] = {"local": [], "ray": []}
    print(f"{options.design}, {options.actors} actors of {options.envs} environments, {os.cpu_count()} processors")
    print("runtime  round  episodes/s   steps/s  gradient steps/s  infeed wait  CPU s/episode  load")
    for number in range(options.rounds):
        for runtime, found in speeds.items():
            folder = Path(tempfile.mkdtemp(prefix="bench-runtime-"))
            try:
                speed = train(runtime, options, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            found.append(speed)
            print(
                f"{runtime:<7}  {number:5}  {speed.episodes:10.2f}  {speed.steps:8.1f}  {speed.gradient_steps:16.2f}"
                f"  {speed.infeed:10.1%}  {speed.cpu:13.4f}  {os.getloadavg()[0]:5.1f}",
                flush=True,
            )
    local, ray = (
        Speed(*(statistics.median(column) for column in zip(*found, strict=True))) for found in speeds.values()
    )
    for name in Speed._fields:
        one, other = getattr(local, name), getattr(ray, name)
        print(f"{name:>15}: local {one:.4g}, ray {other:.4g}, ray / local {other / one if one else float('nan'):.3f}")
    price = 1 - ray.episodes / local.episodes
    print(
        f"price of distribution: {price:.1%} of the episodes per second (bar: under {BAR:.0%}); "
        f"{ray.cpu / local.cpu - 1:+.1%} processor time an episode: {'met' if price < BAR else 'MISSED'}"
    )


if __name__ == "__main__":
    main()
