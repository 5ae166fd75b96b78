"""Trains a macro placement policy: `python train.py design=clustered40 seed=1`; every setting is in configs/.

The same command goes on where an interrupted run stopped. `python train.py -m design=a,b seed=1,2` sweeps.
"""

from __future__ import annotations

import sys
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from placement.config import ConfigError, TrainConfig, build
from placement.distributed import run_folder, sweep
from placement.netlist.errors import DesignError


@hydra.main(version_base="1.3", config_path="configs", config_name="config")
def main(settings: DictConfig) -> float | None:
    """One training run, or, in a sweep, one job of it in a process of its own; returns the best proxy cost found."""
    values: dict[str, Any] = OmegaConf.to_container(settings, resolve=True)  # type: ignore[assignment]
    try:
        values["run_dir"] = values.get("run_dir") or run_folder.default(values)
        config = build(TrainConfig, values)
        if sweep.in_sweep():
            return sweep.run_job(config)
        from placement.distributed import (
            local,
        )  # late: JAX takes a second to import, and a wrong setting should not wait

        return local.run(config).best_cost
    except (ConfigError, DesignError, FileNotFoundError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
