"""Evaluating the trained policy of a run folder on a design: greedy, best of many drawn, beam search, flipped."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from placement.config import ConfigError, TrainConfig
from placement.engine.costs import Costs
from placement.engine.soft import SOFT_PLACERS
from placement.evaluation.beam import BeamSearch
from placement.evaluation.placement_evaluation import DEFAULT_OUT, EvaluateConfig, Found, write_results
from placement.evaluation.policy_results import (
    cheapest,
    finished,
    flipped_result,
    no_placement,
    policy_results,
    results_table,
    write_results_of,
)
from placement.netlist.design import Design
from placement.netlist.files import csv_text, write_whole
from placement.netlist.load import load
from placement.policy.agent import Agent
from placement.policy.order import ordered
from placement.report import curves, style
from placement.report.metrics import Metrics, measure, metrics_table
from placement.training.evaluator import Evaluation, Evaluator
from placement.training.run_record import read_settings
from placement.training.trained_run import read_newest


@dataclasses.dataclass(frozen=True)
class TrainedPolicy:
    """The policy of a run folder, ready to place a design.

    Attributes:
        run: its folder.
        design: what it places.
        iteration: of the run, that its parameters are of.
        evaluator: plays its episodes.
        parameters: of the network.
        beam: searches with it; None where nobody asked for that.
    """

    run: Path
    design: Design
    iteration: int
    evaluator: Evaluator
    parameters: Any
    beam: BeamSearch | None = None

    def evaluate(self, seed: int) -> list[Evaluation]:
        """The greedy placement and as many drawn ones as the settings say."""
        return self.evaluator.evaluate(self.parameters, jax.random.key(seed))

    def search(self) -> list[Evaluation]:
        """What a beam search ends with; nothing where there is none."""
        return [] if self.beam is None else self.beam.search(self.parameters)


def load_policy(config: EvaluateConfig) -> TrainedPolicy:
    """The policy with a run's newest parameters.

    Args:
        config: `checkpoint` is the run folder; `design` may be another than the run's.

    Raises:
        ConfigError: the folder holds no run, or its checkpoint is damaged or of another network.
        DesignError: the design cannot be used.
    """
    assert config.checkpoint is not None
    run = Path(config.checkpoint)
    trained = read_settings(run, key="checkpoint")
    design = ordered(load(config.design or _only_design(run, trained), config.initial), trained.env.order)
    agent = Agent(trained.policy, [design])
    parameters, iteration = read_newest(run, trained.policy, key="checkpoint")
    env = dataclasses.replace(trained.env, cost=config.cost, soft_placer=_soft_placer(config, trained))
    evaluator = Evaluator(agent, [design], env=env, samples=config.samples)
    beam = BeamSearch(agent, design, env=env, width=config.beam, value_weight=config.beam_value_weight)
    return TrainedPolicy(run, design, iteration, evaluator, parameters, beam if config.beam else None)


def evaluate_policy(config: EvaluateConfig, console: Console) -> Metrics:
    """Places a design with a run's newest parameters; prints, writes and returns the metrics of the best placement.

    Args:
        config: `checkpoint` is the run folder; `design` may be another than the run's.
        console: where tables go.

    Raises:
        ConfigError: the folder holds no run, or its checkpoint is damaged or of another network.
        DesignError: the design cannot be used, or every episode ended without a legal cell for a macro.
        OSError: a file cannot be written.
    """
    policy = load_policy(config)
    run, design, iteration = policy.run, policy.design, policy.iteration
    evaluations = policy.evaluate(config.seed)
    found = f"{run.name}, iteration {iteration}"
    lines = policy_results(evaluations, policy.search())
    best = cheapest(lines, design)
    if config.flips_macros:
        lines.append(flipped_result(lines, design, config))
        best = cheapest(lines, design)
    console.print(results_table(lines, f"{design.name}: policy of {found}"))
    assert best.placement is not None
    metrics = measure(design, best.placement, weights=config.weights)
    title = f"{design.name}: {best.name}, {found}"
    console.print(metrics_table(metrics, title))
    folder = Path(config.out) if config.out is not None else DEFAULT_OUT / design.name / run.name
    origin = {"run": str(run), "iteration": iteration, "found_by": best.name, "seed": config.seed}
    write_results(folder, Found(design, best.placement, metrics, title, origin), config)
    write_evaluations(folder / "samples.csv", evaluations)
    write_results_of(folder, lines, design)
    if config.draws_plots and (run / "metrics.csv").is_file():
        _draw_training(run, folder / "training.png", design.name, metrics)
    console.print(f"written to {folder}", soft_wrap=True)
    return metrics


def _only_design(run: Path, trained: TrainConfig) -> str:
    if len(trained.design) > 1:
        raise ConfigError(f"design: is required, for {run} was trained on several: {', '.join(trained.design)}")
    return trained.design[0]


def _soft_placer(config: EvaluateConfig, trained: TrainConfig) -> str:
    """The run's, unless another is asked for."""
    if config.soft_placer is None:
        return trained.env.soft_placer
    if config.soft_placer not in SOFT_PLACERS:
        raise ConfigError(f"soft_placer={config.soft_placer!r}: must be one of {', '.join(SOFT_PLACERS)}")
    return config.soft_placer


def complete(evaluations: Sequence[Evaluation], design: Design) -> list[Evaluation]:
    """Those that placed every macro, the cheapest first; raises DesignError if there is none."""
    found = finished(evaluations)
    if not found:
        raise no_placement(design, len(evaluations))
    return found


def _draw_training(run: Path, path: Path, design: str, metrics: Metrics) -> None:
    """The run's training curves, with the cost of the placement found as a line."""
    try:
        columns = curves.read_metrics(run / "metrics.csv")
    except curves.CurvesError as error:
        raise ConfigError(str(error)) from None
    found = {f"found on {design}": metrics.costs.proxy_cost}
    style.save_figure(curves.plot_training(columns, title=f"training of {run.name}", baselines=found), path)


def write_evaluations(path: Path, evaluations: Sequence[Evaluation]) -> None:
    """Writes a CSV file with a row for each episode; costs are empty where it came to a dead end."""
    nothing = [""] * len(Costs._fields)
    rows = [[int(one.greedy), int(one.dead_end), *(one.costs or nothing)] for one in evaluations]
    write_whole(path, csv_text([["greedy", "dead_end", *Costs._fields], *rows]))
