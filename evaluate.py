"""Evaluates a placement or a trained policy: `python evaluate.py design=ariane133_ng45 placement=file.plc json=true`.

With `checkpoint=RUN`, the folder of a training run, it draws placements from the trained policy and keeps the best.
Every setting is in configs/evaluate.yaml.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, NoReturn

import hydra
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from placement.config import ConfigError, build
from placement.netlist.errors import DesignError
from placement.report.evaluation import EvaluateConfig, evaluate_placement, print_json

FULL_ERROR = "HYDRA_FULL_ERROR"


@hydra.main(version_base="1.3", config_path="configs", config_name="evaluate")
def main(settings: DictConfig) -> float:
    """Evaluates what the settings name; returns the proxy cost."""
    try:
        values: dict[str, Any] = OmegaConf.to_container(settings, resolve=True)  # type: ignore[assignment]
        config = build(EvaluateConfig, values)
        if config.checkpoint is None:
            metrics = evaluate_placement(config, Console())
        else:
            logging.getLogger("absl").setLevel(logging.ERROR)  # Orbax comments on how it is called
            # late: JAX takes seconds to import, and a placement does not need it
            from placement.distributed.policy_evaluation import evaluate_policy

            metrics = evaluate_policy(config, Console())
        if config.json:
            print_json(metrics)
        return metrics.costs.proxy_cost
    except (ConfigError, DesignError, OSError, OmegaConfBaseException) as error:
        refuse(str(error).removeprefix("env."))  # cost.* stands under env only for train.py


def refuse(message: str) -> NoReturn:
    """Ends the program with one line for a user's mistake."""
    print(f"evaluate.py: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


def run() -> None:
    """`main`, with what Hydra refuses told in one line; a traceback only for HYDRA_FULL_ERROR=1."""
    wants_traceback = os.environ.get(FULL_ERROR) == "1"
    os.environ[FULL_ERROR] = "1"  # else Hydra prints such errors itself, in several lines
    try:
        main()
    except OverrideParseException as error:
        if wants_traceback:
            raise
        refuse(f"cannot read {error.override!r}; special characters need quotes: 'placement=\"a=b.plc\"'")
    except (HydraException, OmegaConfBaseException) as error:
        if wants_traceback:
            raise
        refuse(f"{str(error).splitlines()[0]} (configs/evaluate.yaml lists the settings)")


if __name__ == "__main__":
    run()
