"""Circuit Training's entire budget on one machine with an accelerator: 200 iterations of 1,024 episodes of Ariane.

    python benchmarks/bench_accelerator.py [DESIGN] [--iterations 10] [--envs 1024] [--set KEY=VALUE …]

First profiles the collection per episode: the CPU seconds of the environments and of the bare engine for the same
episodes, inference, transfers; once with the policy on this machine's default device, once with a stand-in that answers
after `--device-ms` without using the CPU, as an accelerator does. `--iterations 0` ends there, `--rounds 0` skips it.

Then trains with `runtime=accelerator` for some iterations. Prints the episodes per second after the first iterations
(which compile), the learner's share of the time, the accelerator's utilisation (from nvidia-smi, where it exists), and
the time of the whole budget at that rate. Circuit Training took 14 hours on 8 GPUs with 500 collectors. Without an
accelerator it runs on the CPU's cores; with XLA_FLAGS=--xla_force_host_platform_device_count=8 on 8 virtual devices.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from bench_cost import default_design
from collection import Setting, report

from placement.netlist.load import load

# This process and the training share the accelerator: neither may reserve most of its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

ROOT = Path(__file__).resolve().parents[1]
BUDGET = 200 * 1024
THEIRS = 14 * 3600.0
BAR = 600.0
SKIPPED = 2
EACH = 2.0  # seconds between two samples of the utilisation


def utilisation(stop: threading.Event) -> list[float]:
    """Returns the utilisation samples of the first GPU until `stop` is set; empty without nvidia-smi."""
    found: list[float] = []
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    while shutil.which(command[0]) and not stop.wait(EACH):
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        if said.returncode == 0 and said.stdout.strip():
            found.append(float(said.stdout.split()[0]) / 100)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="?", default=None)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=1024)
    parser.add_argument("--envs", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--parts", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device-ms", type=float, default=2.0)
    parser.add_argument("--minibatch", type=int, default=8512)
    parser.add_argument("--run", metavar="FOLDER", help="keep the run there")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if options.rounds:
        setting = Setting(options.envs, options.threads, options.parts)
        design = load(options.design or default_design())
        report(design, setting, rounds=options.rounds, device_ms=options.device_ms)
    if options.iterations:
        train(options)


def train(options: argparse.Namespace) -> None:
    stop, shares = threading.Event(), []
    watcher = threading.Thread(target=lambda: shares.extend(utilisation(stop)))
    watcher.start()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(options.run or f"{folder}/run")
        settings = [
            f"design={options.design or default_design()}",
            f"run_dir={run}",
            "runtime=accelerator",
            "replay=memory",
            "env.cost=proxy",
            f"runtime.envs_per_actor={options.envs}",
            f"runtime.env_threads={options.threads}",
            f"ppo.iterations={options.iterations}",
            f"ppo.episodes_per_iteration={options.episodes}",
            f"ppo.minibatch_size={options.minibatch}",
            "runtime.evaluate_every=0",
            *options.set,
        ]
        try:
            subprocess.run([sys.executable, str(ROOT / "train.py"), *settings], check=True, cwd=ROOT)
        finally:
            stop.set()
            watcher.join()
        with (run / "metrics.csv").open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))[SKIPPED:]
    rate = statistics.median(float(row["episodes_per_second"]) for row in rows)
    learning = statistics.median(
        float(row["learner_seconds"]) * float(row["episodes_per_second"]) / options.episodes for row in rows
    )
    seconds = BUDGET / rate
    print(f"{rate:.1f} episodes/s; the learner takes {learning:.0%} of the time")
    if shares:
        print(f"the accelerator was busy for {statistics.fmean(shares):.0%} of the time (compilation included)")
    print(
        f"the whole budget of {BUDGET:,} episodes: {seconds / 60:.1f} minutes at that rate, {THEIRS / seconds:.0f} × "
        f"as fast as 8 GPUs with 500 collectors; bar of {BAR / 60:.0f} minutes: "
        f"{'met' if seconds <= BAR else 'NOT met'}"
    )


if __name__ == "__main__":
    main()
