"""Evaluating the trained policy of a run folder on a design: the greedy placement, and the best of many drawn."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import yaml  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from placement.checkpoint import CheckpointError
from placement.config import ConfigError, TrainConfig, build
from placement.distributed.evaluator import Evaluation, Evaluator
from placement.distributed.saving import read_parameters
from placement.engine.costs import Costs
from placement.engine.soft import SOFT_PLACERS
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.load import load
from placement.policy.agent import Agent
from placement.report import curves, style
from placement.report.evaluation import DEFAULT_OUT, EvaluateConfig, Found, write_results
from placement.report.metrics import Metrics, measure, metrics_table

COSTS = ("proxy_cost", "wirelength_cost", "density_cost", "congestion_cost")


@dataclasses.dataclass(frozen=True)
class TrainedPolicy:
    """The policy of a run folder, ready to place a design.

    Attributes:
        run: its folder.
        design: what it places.
        iteration: of the run, that its parameters are of.
        evaluator: plays its episodes.
        parameters: of the network.
    """

    run: Path
    design: Design
    iteration: int
    evaluator: Evaluator
    parameters: Any

    def evaluate(self, seed: int) -> list[Evaluation]:
        """The greedy placement and as many drawn ones as the settings say."""
        return self.evaluator.evaluate(self.parameters, jax.random.key(seed))


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
    trained = read_run(run)
    design = load(config.design or _only_design(run, trained), config.initial)
    agent = Agent(trained.policy, [design])
    # Shapes are enough to read into, and save compiling the initialisation.
    shapes = jax.eval_shape(agent.init, 0)
    try:
        parameters, iteration = read_parameters(
            run, jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
        )
    except CheckpointError as error:
        raise ConfigError(f"checkpoint={str(run)!r}: {error}") from None
    env = dataclasses.replace(trained.env, cost=config.cost, soft_placer=_soft_placer(config, trained))
    evaluator = Evaluator(agent, [design], env=env, samples=config.samples)
    return TrainedPolicy(run, design, iteration, evaluator, parameters)


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
    console.print(evaluations_table(evaluations, f"{design.name}: policy of {found}"))
    best = complete(evaluations, design)[0]
    assert best.placement is not None
    metrics = measure(design, best.placement, weights=config.weights)
    kind = "greedy" if best.greedy else f"best of {config.samples} samples"
    title = f"{design.name}: {kind}, {found}"
    console.print(metrics_table(metrics, title))
    folder = Path(config.out) if config.out is not None else DEFAULT_OUT / design.name / run.name
    origin = {"run": str(run), "iteration": iteration, "found_by": kind, "seed": config.seed}
    write_results(folder, Found(design, best.placement, metrics, title, origin), config)
    write_evaluations(folder / "samples.csv", evaluations)
    if config.draws_plots and (run / "metrics.csv").is_file():
        _draw_training(run, folder / "training.png", design.name, metrics)
    console.print(f"written to {folder}", soft_wrap=True)
    return metrics


def read_run(run: Path) -> TrainConfig:
    """The settings that a run folder was trained with; raises ConfigError where it holds none."""
    path = run / "config.yaml"
    if not path.is_file():
        what = "it has no config.yaml" if run.is_dir() else "there is no such folder"
        raise ConfigError(f"checkpoint={str(run)!r}: must be the folder of a training run: {what}")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: must be a mapping of settings")
    try:
        return build(TrainConfig, values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


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
    found = [evaluation for evaluation in evaluations if evaluation.costs is not None]
    if not found:
        raise DesignError(
            f"{design.name}: none of the {len(evaluations)} episodes placed every macro, for each came to a macro "
            "without a legal cell; draw more with samples=N, or train the policy on this design"
        )
    return sorted(found, key=_proxy_cost)


def _proxy_cost(evaluation: Evaluation) -> float:
    assert evaluation.costs is not None
    return evaluation.costs.proxy_cost


def evaluations_table(evaluations: Sequence[Evaluation], title: str) -> Table:
    """A line for the greedy placement, the best and the mean of the samples, with the dead ends of each."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("placements", no_wrap=True)
    for name in ("proxy", "wirelength", "density", "congestion", "dead ends"):
        table.add_column(name, justify="right")
    greedy = [evaluation for evaluation in evaluations if evaluation.greedy]
    samples = [evaluation for evaluation in evaluations if not evaluation.greedy]
    costs = [evaluation.costs for evaluation in samples if evaluation.costs is not None]
    deviation = np.std([one.proxy_cost for one in costs]) if costs else 0.0
    table.add_row("greedy", *_cells(greedy[0].costs), str(int(greedy[0].dead_end)))
    best = min(costs, key=lambda one: one.proxy_cost) if costs else None
    table.add_row(f"best of {len(samples)}", *_cells(best), str(len(samples) - len(costs)))
    mean = Costs(*np.mean(costs, axis=0).tolist()) if costs else None
    table.add_row(f"mean of {len(costs)}", *_cells(mean), "")
    table.caption = f"standard deviation of the samples' proxy cost {deviation:.6f}" if costs else None
    table.caption_justify = "left"
    return table


def _cells(costs: Costs | None) -> list[str]:
    return ["–" if costs is None else f"{getattr(costs, name):.6f}" for name in COSTS]


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
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["greedy", "dead_end", *Costs._fields])
    for evaluation in evaluations:
        costs: Sequence[object] = evaluation.costs or [""] * len(Costs._fields)
        writer.writerow([int(evaluation.greedy), int(evaluation.dead_end), *costs])
    write_whole(path, buffer.getvalue())
