"""`macro-placement sample`: a trained policy places a design: greedy, best of many samples, flips."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from placement.config import ConfigError, EnvConfig, TrainConfig
from placement.engine.costs import Costs
from placement.evaluation.placement_evaluation import Found, check_out, write_results
from placement.evaluation.policy_results import (
    cheapest,
    finished,
    flipped_result,
    no_placement,
    policy_results,
    results_table,
    settled_result,
    write_results_of,
)
from placement.evaluation.settings import CheckpointSettings, SampleConfig, SampledCost
from placement.netlist.design import Design
from placement.netlist.feasibility import ready
from placement.netlist.files import csv_text, write_whole
from placement.netlist.load import load
from placement.policy.agent import Agent
from placement.report import curves, style
from placement.report.metrics import Metrics, measure, metrics_table
from placement.report.run_folder import METRICS_NAME, read_metrics
from placement.training.rollout import Evaluation, Evaluator
from placement.training.run_folder import read_settings
from placement.training.trained_policy import policy_folder, read_newest


@dataclasses.dataclass(frozen=True)
class TrainedPolicy:
    """The policy of a run folder, ready to place a design.

    Attributes:
        run: its folder.
        design: the design that it places.
        iteration: of the run, at which its parameters were saved.
        agent: the network, made for the design.
        env: the environment's settings.
        evaluator: plays its episodes.
        parameters: of the network.
    """

    run: Path
    design: Design
    iteration: int
    agent: Agent
    env: EnvConfig
    evaluator: Evaluator
    parameters: Any

    def evaluate(self, seed: int, *, stopped: Callable[[], bool] = lambda: False) -> list[Evaluation]:
        """The greedy placement and as many drawn ones as the settings say; nothing once `stopped()` is true."""
        return self.evaluator.evaluate(self.parameters, jax.random.key(seed), stopped=stopped)


def load_policy(config: CheckpointSettings, design: Design | None = None) -> TrainedPolicy:
    """The policy with a run's newest parameters.

    Args:
        config: `checkpoint` is the run folder; `design` may be another than the run's.
        design: to be placed, its fixed macros staying; None: loaded as `config` says.

    Raises:
        ConfigError: the folder holds no run, or its checkpoint is damaged or of another network.
        DesignError: the design cannot be used.
    """
    assert config.checkpoint is not None
    logging.getLogger("absl").setLevel(logging.ERROR)  # Orbax comments on how it is called
    run = policy_folder(config.checkpoint, key="checkpoint")
    trained = read_settings(run, key="checkpoint")
    given = load(config.design or _only_design(run, trained), config.initial) if design is None else design
    design = ready(given).with_actions(trained.env.action_scale, off_grid=trained.env.off_grid)
    agent = Agent(trained.policy, [design])
    parameters, iteration, _ = read_newest(run, trained.policy, key="checkpoint")
    cost = config.cost.of(trained.env.cost) if isinstance(config.cost, SampledCost) else config.cost
    env = dataclasses.replace(trained.env, cost=cost, soft_placer=config.soft_placer or trained.env.soft_placer)
    evaluator = Evaluator(agent, [design], env=env, samples=config.samples)
    return TrainedPolicy(run, design, iteration, agent, env, evaluator, parameters)


def evaluate_policy(config: SampleConfig, console: Console) -> Metrics:
    """Places a design with a run's newest parameters; prints, writes and returns the metrics of the best placement.

    Args:
        config: `checkpoint` is the run folder; `design` may be another than the run's.
        console: where tables go.

    Raises:
        ConfigError: the folder holds no run, or its checkpoint is damaged or of another network.
        DesignError: the design cannot be used, or every episode ended without a legal cell for a macro.
        OSError: a file cannot be written.
    """
    check_out(config)
    policy = load_policy(config)
    run, design, iteration, weights = policy.run, policy.design, policy.iteration, policy.env.cost.weights()
    evaluations = policy.evaluate(config.seed)
    found = f"{run.name}, iteration {iteration}"
    lines = policy_results(evaluations)
    settled = settled_result(evaluations, config.settled, design, weights)
    if settled is not None:
        lines.append(settled)
    best = cheapest(lines, design)
    if config.flips:
        lines.append(flipped_result(lines, design, weights))
        best = cheapest(lines, design)
    console.print(results_table(lines, f"{design.name}: policy of {found}", weights.name))
    assert best.placement is not None
    metrics = measure(design, best.placement, weights=weights)
    title = f"{design.name}: {best.name}, {found}"
    console.print(metrics_table(metrics, title))
    folder = config.folder(design, run.name)
    folder.mkdir(parents=True, exist_ok=True)
    write_evaluations(folder / "samples.csv", evaluations)
    write_results_of(folder, lines, design, weights)
    if config.draws_plots and (run / "metrics.csv").is_file():
        _draw_training(run, folder / "training.png", design.name, metrics)
    origin = {"run": str(run), "iteration": iteration, "found_by": best.name, "seed": config.seed}
    write_results(folder, Found(design, best.placement, metrics, title, origin), config, console)
    return metrics


def _only_design(run: Path, trained: TrainConfig) -> str:
    if len(trained.design) > 1:
        raise ConfigError(f"design: is required, for {run} was trained on several: {', '.join(trained.design)}")
    return trained.design[0]


def complete(evaluations: Sequence[Evaluation], design: Design) -> list[Evaluation]:
    """Those that placed every macro, the cheapest first; raises DesignError if there is none."""
    found = finished(evaluations)
    if not found:
        raise no_placement(design, len(evaluations))
    return found


def _draw_training(run: Path, path: Path, design: str, metrics: Metrics) -> None:
    """The run's training curves, with the cost of the placement found as a line."""
    columns = read_metrics(run / METRICS_NAME)
    found = {f"found on {design}": metrics.costs.total}
    title, cost = f"training of {run.name}", metrics.weights.name
    style.save_figure(curves.plot_training(columns, title=title, baselines=found, cost=cost), path)


def write_evaluations(path: Path, evaluations: Sequence[Evaluation]) -> None:
    """Writes a CSV file with a row for each episode; costs are empty where it came to a dead end."""
    nothing = [""] * len(Costs._fields)
    rows = [[int(one.greedy), int(one.dead_end), *(one.costs or nothing)] for one in evaluations]
    write_whole(path, csv_text([["greedy", "dead_end", *Costs._fields[:-1], "cost"], *rows]))
