"""`macro-placement train`: one training run, or a sweep of them; and `plan`, the resources of a large run.

Hydra composes the settings: the defaults of the dataclasses, a runtime and presets from configs/, and the command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from placement.capacity.plan import ITERATIONS, MEASURED, PlanConfig, recommend, simulate
from placement.cli.help import lines, listed
from placement.cli.options import MISTAKES, UsageError, hydra_words
from placement.config import TrainConfig, build
from placement.netlist.load import data_folder
from placement.report.placement_metrics import make_table
from placement.runtimes import public
from placement.training import run_folder

if TYPE_CHECKING:
    from omegaconf import DictConfig

FULL_ERROR = "HYDRA_FULL_ERROR"
FIRST = (  # the first settings of `--help`, beside `preset`
    *("design", "run_dir", "seed", "initial_policy", "env.cost", "ppo.iterations", "ppo.learning_rate", "runtime"),
    "runtime.minutes",
)
COLUMNS = ("", "caches", "shards", "model read", "p99", "episodes' write", "p99", "iteration", "learner idle")
USAGE = """usage: macro-placement train [DESIGN] [key=value | --key value …]

Train a policy on one or more designs. The same command resumes an interrupted run; `-m` with design=a,b seed=1,2
sweeps.
"""


def main(arguments: Sequence[str]) -> None:
    """Runs `train` with the arguments of its command line; raises UsageError, or one of `MISTAKES`."""
    if {"--help", "-h"} & set(arguments):
        print(_help(is_whole="all" in arguments), flush=True)
        return
    _run_hydra(hydra_words(arguments, TrainConfig, groups(), ("design",)))


def groups() -> dict[str, list[str]]:
    """The groups that have files in configs/, and their options."""
    folder = data_folder("configs")
    return {
        path.name: sorted(file.stem for file in path.glob("*.yaml"))
        for path in sorted(folder.iterdir())
        if path.is_dir()
    }


def _help(*, is_whole: bool) -> str:
    found = listed(TrainConfig, defaults=public.DEFAULTS)
    if is_whole:
        return "\n".join([USAGE, "All settings, their defaults and meanings:", *lines(found)])
    presets = []
    for name in groups()["preset"]:
        text = (data_folder("configs") / "preset" / f"{name}.yaml").read_text(encoding="utf-8")
        presets.append(f"        {name}: {text.splitlines()[1].removeprefix('# ')}")
    first = [setting for setting in found if setting.key in FIRST]
    return "\n".join(
        [
            USAGE,
            "The settings that matter most:",
            "  --preset null",
            "        settings for a purpose; several: preset=[a,b]",
            *presets,
            *lines(first),
            f"\nmacro-placement train --help all lists all {len(found)} settings.",
        ]
    )


def _run_hydra(words: list[str]) -> None:
    """Composes the settings with Hydra and trains, once or for each job of a sweep."""
    import hydra  # Imported late, since other commands do without it.
    from hydra.errors import HydraException, OverrideParseException
    from omegaconf.errors import OmegaConfBaseException

    public.store_defaults()
    before, is_full = sys.argv, os.environ.get(FULL_ERROR)
    sys.argv, os.environ[FULL_ERROR] = ["macro-placement train", *words], "1"  # otherwise Hydra prints errors itself
    try:
        hydra.main(version_base="1.3", config_path=str(data_folder("configs")), config_name="config")(_task)()
    except _Failed as failed:
        raise failed.args[0] from None
    except OverrideParseException as error:
        raise UsageError(f"cannot read {error.override!r}; special characters need quotes: 'run_dir=\"a=b\"'") from None
    except (HydraException, OmegaConfBaseException) as error:
        if is_full == "1":
            raise
        raise UsageError(str(error).splitlines()[0]) from None
    finally:
        sys.argv = before
        if is_full is None:
            del os.environ[FULL_ERROR]


class _Failed(BaseException):
    """Carries an exception past Hydra, which would print it in several lines."""


def _task(settings: DictConfig) -> float:
    """One training run, or one job of a sweep in its own process; returns the best cost."""
    from omegaconf import OmegaConf

    from placement.cli import sweep

    values: dict[str, Any] = OmegaConf.to_container(settings, resolve=True)  # type: ignore[assignment]
    try:
        config = build(TrainConfig, {**values, "run_dir": values.get("run_dir") or run_folder.default_run_dir(values)})
        return sweep.run_job(config) if sweep.in_sweep() else train(config)
    except (UsageError, *MISTAKES) as error:
        raise _Failed(error) from None


def train(config: TrainConfig) -> float:
    """Trains, draws the result and prints its folder; returns the best cost. Raises UsageError."""
    run_folder.check_designs(config)
    # Imported late, since JAX takes seconds, and a wrong setting or name should not wait for it.
    from placement.replay.replay import ReplayTimeout
    from placement.training.checkpoint import CheckpointError
    from placement.training.learner_loop import Diverged
    from placement.training.object_storage import StorageError
    from placement.training.tracking import TrackingError
    from placement.utils.disk import DiskFull
    from placement.utils.worker_threads import WorkerFailed

    try:
        run = public.run(config)
    except CheckpointError as error:
        raise UsageError(str(error)) from None
    except (DiskFull, Diverged) as error:
        raise UsageError(str(error), status=1) from None
    except (WorkerFailed, ReplayTimeout) as error:
        raise UsageError(
            f"{error} (the last good state is saved: the same command resumes from it)", status=1
        ) from None
    except StorageError as error:
        raise UsageError(f"run_dir: {error}", status=1) from None
    except TrackingError as error:
        raise UsageError(f"tracking={config.tracking.name}: {error}") from None
    if run.interrupted:
        raise KeyboardInterrupt
    print(f"plots: {run.folder / 'plots'}\nreport: {run.folder / public.REPORT_NAME}")
    return run.best_cost


def plan(config: PlanConfig, console: Console) -> None:
    """Prints the smallest sufficient fleet, next to one without caches and with one shard."""
    bare = config.fleet(caches=0, shards=1)
    fleet, found = recommend(config)
    console.print(
        f"{config.actors} actors, a model of {config.model_mb:g} MB, rounds of {config.episodes} episodes of "
        f"{config.episode_mb:g} MB in {config.round_seconds:g} s, links of {config.megabits:g} Mbit/s (simulated)"
    )
    outcomes = {"without": (bare, simulate(bare, MEASURED, iterations=ITERATIONS)), "with": (fleet, found)}
    rows = []
    for name, (one, outcome) in outcomes.items():
        seconds = (f"{value:,.2f} s" for value in outcome[:5])
        rows.append([name, str(one.caches), str(one.shards), *seconds, f"{outcome.idle:.1%}"])
    console.print(make_table(COLUMNS, rows))
    console.print(
        f"runtime=ray runtime.actors={fleet.actors} runtime.caches={fleet.caches} runtime.fan_out={fleet.fan_out} "
        f"runtime.shards={fleet.shards}"
    )
