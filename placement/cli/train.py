"""`macro-placement train` and `train.py`: one training run, or a sweep of them."""

from __future__ import annotations

from typing import Any

from placement.cli import sweep
from placement.cli.command import INTERRUPTED
from placement.cli.refusal import Refusal
from placement.config import TrainConfig, build
from placement.netlist.load import find
from placement.training import run_folder


def main(values: dict[str, Any]) -> float:
    """One training run, or one job of a sweep in a process of its own; returns the best proxy cost.

    Args:
        values: all settings, nested.

    Raises:
        ConfigError, DesignError, OSError: a setting or a file is wrong.
        Refusal: training cannot go on.
    """
    config = build(TrainConfig, {**values, "run_dir": values.get("run_dir") or run_folder.default_run_dir(values)})
    return sweep.run_job(config) if sweep.in_sweep() else train(config)


def train(config: TrainConfig) -> float:
    """Trains, draws the result and says where it is; returns the best cost. Raises Refusal."""
    for name in config.design:
        find(name)
    # late: JAX takes seconds to import, and a wrong setting or name should not wait for it
    from placement.replay.base import ReplayTimeout
    from placement.runtimes import public
    from placement.training.checkpoint import CheckpointError
    from placement.training.learner_loop import Diverged
    from placement.training.object_storage import StorageError
    from placement.training.tracking import TrackingError
    from placement.utils.disk import DiskFull
    from placement.utils.supervisor import WorkerFailed

    try:
        run = public.run(config)
    except CheckpointError as error:
        raise Refusal(str(error)) from None
    except (DiskFull, Diverged) as error:
        raise Refusal(str(error), status=1) from None
    except (WorkerFailed, ReplayTimeout) as error:
        message = f"{error} (the last good state is saved: the same command resumes from it)"
        raise Refusal(message, status=1) from None
    except StorageError as error:
        raise Refusal(f"run_dir: {error}", status=1) from None
    except TrackingError as error:
        raise Refusal(f"tracking={config.tracking.name}: {error}") from None
    if run.interrupted:
        raise SystemExit(INTERRUPTED)
    print(f"plots: {run.folder / 'plots'}\nreport: {run.folder / public.REPORT_NAME}")
    return run.best_cost
