"""Trains a macro placement policy: `python train.py design=clustered40 seed=1`; every setting is in configs/.

The same command goes on where an interrupted run stopped. `python train.py -m design=a,b seed=1,2` sweeps.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import hydra
from omegaconf import DictConfig, OmegaConf

from placement.cli import sweep
from placement.cli.entry import INTERRUPTED, MISTAKES, refuse, run
from placement.config import TrainConfig, build
from placement.training import run_folder

if TYPE_CHECKING:
    from placement.runtimes.local import RunResult


@hydra.main(version_base="1.3", config_path="configs", config_name="config")
def main(settings: DictConfig) -> float:
    """One training run, or, in a sweep, one job of it in a process of its own; returns the best proxy cost found."""
    try:
        values: dict[str, Any] = OmegaConf.to_container(settings, resolve=True)  # type: ignore[assignment]
        values["run_dir"] = values.get("run_dir") or run_folder.default(values)
        config = build(TrainConfig, values)
        return sweep.run_job(config) if sweep.in_sweep() else train(config)
    except MISTAKES as error:
        refuse(str(error))


def train(config: TrainConfig) -> float:
    """Trains, draws the result and says where it is; returns the best proxy cost."""
    # late: JAX takes seconds to import, and a wrong setting should not wait for it
    from placement.netlist.load import load
    from placement.replay.base import ReplayTimeout
    from placement.report.run_report import write_report
    from placement.training.checkpoint import CheckpointError
    from placement.training.divergence import Diverged
    from placement.training.supervisor import WorkerFailed

    try:
        result = _run(config)
    except CheckpointError as error:
        refuse(str(error))
    except Diverged as error:
        refuse(str(error), code=1)
    except (WorkerFailed, ReplayTimeout) as error:
        refuse(f"{error} (the last good state is saved: the same command goes on from it)", code=1)
    if result.interrupted:
        sys.exit(INTERRUPTED)
    designs = [load(name) for name in config.design]
    report = write_report(result.run_dir, designs, weights=config.env.cost.weights())
    print(f"plots: {result.run_dir / 'plots'}\nreport: {report.page}")
    return result.best_cost


def _run(config: TrainConfig) -> RunResult:
    """Trains on the runtime that the configuration names."""
    if config.runtime.name == "ray":
        from placement.runtimes.ray import driver

        return driver.run(config)
    from placement.runtimes import local

    return local.run(config)


if __name__ == "__main__":
    run(main, settings="configs/config.yaml")
