"""Evaluates a placement or a trained policy: `python evaluate.py design=ariane133_ng45 placement=file.plc json=true`.

With `checkpoint=RUN`, the folder of a training run, it draws placements from the trained policy and keeps the best.
With `search=refine` it improves either by annealing; `placers=random,greedy,anneal` compares placers at equal time.
Every setting is in configs/evaluate.yaml.
"""

from __future__ import annotations

import logging
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from placement.cli.entry import MISTAKES, refuse, run
from placement.config import build
from placement.evaluation.placement_evaluation import EvaluateConfig, evaluate_placement, print_json


@hydra.main(version_base="1.3", config_path="configs", config_name="evaluate")
def main(settings: DictConfig) -> float:
    """Evaluates what the settings name; returns the proxy cost."""
    try:
        values: dict[str, Any] = OmegaConf.to_container(settings, resolve=True)  # type: ignore[assignment]
        config = build(EvaluateConfig, values)
        logging.getLogger("absl").setLevel(logging.ERROR)  # Orbax comments on how it is called
        if config.placers:
            from placement.evaluation.comparison import compare

            metrics = compare(config, Console())
        elif config.search is not None:
            from placement.evaluation.search_evaluation import evaluate_search

            metrics = evaluate_search(config, Console())
        elif config.checkpoint is None:
            metrics = evaluate_placement(config, Console())
        else:
            # late: JAX takes seconds to import, and a placement does not need it
            from placement.evaluation.policy_evaluation import evaluate_policy

            metrics = evaluate_policy(config, Console())
        if config.json:
            print_json(metrics)
        return metrics.costs.proxy_cost
    except MISTAKES as error:
        refuse(str(error).removeprefix("env."))  # cost.* stands under env only for train.py


if __name__ == "__main__":
    run(main, settings="configs/evaluate.yaml", lists=("placers", "anneal.starts", "anneal.without"))
