"""`macro-placement train` and `train.py`: one training run, or a sweep of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from placement.cli import sweep
from placement.cli.command import INTERRUPTED
from placement.cli.refusal import Refusal
from placement.config import TrainConfig, build
from placement.netlist.load import find, load
from placement.training import run_folder

if TYPE_CHECKING:
    from placement.training.run_result import RunResult


def main(values: dict[str, Any]) -> float:
    """One training run, or one job of a sweep in a process of its own; returns the best proxy cost.

    Args:
        values: all settings, nested.

    Raises:
        ConfigError, DesignError, OSError: a setting or a file is wrong.
        Refusal: training cannot go on.
    """
    config = build(TrainConfig, {**values, "run_dir": values.get("run_dir") or run_folder.default(values)})
    return sweep.run_job(config) if sweep.in_sweep() else train(config)


def train(config: TrainConfig) -> float:
    """Trains, draws the result and says where it is; returns the best proxy cost. Raises Refusal."""
    for name in config.design:
        find(name)
    # late: JAX takes seconds to import, and a wrong setting or name should not wait for it
    from placement.training.object_storage.store import StorageError
    from placement.training.stored_run import stored
    from placement.training.trackers import TrackingError
    from placement.training.tracking import tracked

    try:
        with stored(config), tracked(config):
            return _trained(config)
    except StorageError as error:
        raise Refusal(f"run_dir: {error}", status=1) from None
    except TrackingError as error:
        raise Refusal(f"tracking={config.tracking.name}: {error}") from None


def _trained(config: TrainConfig) -> float:
    """The run and its report; returns the best proxy cost."""
    from placement.replay.base import ReplayTimeout
    from placement.report.run_report import write_report
    from placement.training.checkpoint import CheckpointError
    from placement.training.divergence import Diverged
    from placement.utils.disk import DiskFull
    from placement.utils.supervisor import WorkerFailed

    try:
        result = _run(config)
    except CheckpointError as error:
        raise Refusal(str(error)) from None
    except (DiskFull, Diverged) as error:
        raise Refusal(str(error), status=1) from None
    except (WorkerFailed, ReplayTimeout) as error:
        message = f"{error} (the last good state is saved: the same command goes on from it)"
        raise Refusal(message, status=1) from None
    if result.interrupted:
        raise SystemExit(INTERRUPTED)
    weights = config.env.cost.weights()
    page = write_report(result.run_dir, [load(name) for name in config.design], weights=weights)
    print(f"plots: {result.run_dir / 'plots'}\nreport: {page}")
    return result.best_cost


def _run(config: TrainConfig) -> RunResult:
    """Trains on the runtime that the configuration names."""
    if config.runtime.name == "ray":
        from placement.runtimes.ray import driver
        from placement.training.stored_run import refresh

        result = driver.run(config)
        refresh(config)  # of a learner on another node
        return dataclasses.replace(result, run_dir=run_folder.working_folder(config.run_dir))
    from placement.runtimes import local

    return local.run(config)
