"""`macro-placement sample`: a trained policy places a design: greedily, by many samples, and with flips."""

import dataclasses
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from placement.annealing.finishing import anneal_soft_macros, flip_macros
from placement.config import ConfigError, EnvConfig
from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, compute_costs, costs_object
from placement.evaluation.placements import Found, check_out, write_results
from placement.evaluation.settings import PolicySettings, SampleConfig, TrainedCost
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.netlist.files import csv_text, write_whole
from placement.netlist.formats.plc import write_placement
from placement.netlist.load import load
from placement.policy.agent import Agent
from placement.report import curves, style
from placement.report.placement_metrics import Metrics, make_table, measure, metrics_table
from placement.report.run_watch import METRICS_NAME, read_metrics
from placement.training.rollout import Evaluation, Evaluator
from placement.training.run_folder import read_settings
from placement.training.trained_policy import policy_folder, read_newest


@dataclasses.dataclass(frozen=True)
class TrainedPolicy:
    """The policy of the run folder `run`, with its parameters of `iteration`, ready to place `design`."""

    run: Path
    design: Design
    iteration: int
    env: EnvConfig
    evaluator: Evaluator
    parameters: Any

    def evaluate(self, seed: int, *, stopped: Callable[[], bool] = lambda: False) -> list[Evaluation]:
        """Returns the greedy placement and the sampled ones of the settings; an empty list once `stopped()` is true."""
        return self.evaluator.evaluate(self.parameters, jax.random.key(seed), stopped=stopped)


def policy_from_settings(config: PolicySettings, design: Design | None = None) -> TrainedPolicy:
    """Loads the policy with the newest parameters of the run in `config.checkpoint`.

    It places `design`, whose fixed macros stay; None: `config.design`, by default the run's only one. Raises
    DesignError, and ConfigError if the folder contains no run, or a checkpoint that is damaged or of another network.
    """
    assert config.checkpoint is not None
    logging.getLogger("absl").setLevel(logging.ERROR)  # Orbax logs comments on how it is called.
    run = policy_folder(config.checkpoint, key="checkpoint")
    trained = read_settings(run, key="checkpoint")
    if design is None:
        if config.design is None and (trained.drawn or len(trained.design) > 1):
            several = ", ".join(trained.design)
            raise ConfigError(f"design: is required, because {run} was trained on several: {several}")
        design = load(config.design or trained.design[0], config.initial)
    design = ready(design).with_actions(trained.env.action_scale, off_grid=trained.env.off_grid)
    agent = Agent(trained.policy, [design])
    parameters, iteration, _ = read_newest(run, trained.policy, key="checkpoint")
    cost = config.cost.of(trained.env.cost) if isinstance(config.cost, TrainedCost) else config.cost
    env = dataclasses.replace(trained.env, cost=cost, soft_placer=config.soft_placer or trained.env.soft_placer)
    evaluator = Evaluator(agent, [design], env=env, samples=config.samples)
    return TrainedPolicy(run, design, iteration, env, evaluator, parameters)


def evaluate_policy(config: SampleConfig, console: Console) -> Metrics:
    """Places a design with a run's newest parameters; prints, writes and returns the metrics of the best placement.

    Raises the errors of `policy_from_settings`, and DesignError if every episode ended without a legal cell for a
    macro.
    """
    check_out(config)
    policy = policy_from_settings(config)
    run, design, iteration, weights = policy.run, policy.design, policy.iteration, policy.env.cost.weights()
    evaluations = policy.evaluate(config.seed)
    source = f"{run.name}, iteration {iteration}"
    results = policy_results(evaluations, design, weights, annealed=config.annealed, flips=config.flips)
    best = cheapest(results, design)
    console.print(results_table(results, f"{design.name}: policy of {source}", weights.name))
    assert best.placement is not None
    metrics = measure(design, best.placement, weights=weights)
    title = f"{design.name}: {best.name}, {source}"
    console.print(metrics_table(metrics, title))
    folder = config.folder(design, run.name)
    folder.mkdir(parents=True, exist_ok=True)
    _write_results_of(folder, results, evaluations, design, weights)
    if config.draws_plots and (run / METRICS_NAME).is_file():
        _draw_training(run, folder / "training.png", design.name, metrics)
    origin = {"run": str(run), "iteration": iteration, "found_by": best.name, "seed": config.seed}
    write_results(folder, Found(design, best.placement, metrics, title, origin), config, console)
    return metrics


class PolicyResult(NamedTuple):
    """The result of one method of using the policy; `key` names the placement's file.

    Without a placement the costs are means over several, and `deviation` is their standard deviation; costs of None
    mean that all episodes were dead ends. `flipped` macros were mirrored.
    """

    name: str
    key: str
    costs: Costs | None
    dead_ends: int | None = None
    placement: Placement | None = None
    deviation: float | None = None
    flipped: int = 0


def policy_results(
    evaluations: Sequence[Evaluation], design: Design, weights: CostWeights, *, annealed: int = 0, flips: bool = False
) -> list[PolicyResult]:
    """Returns the greedy placement, and the best and the mean of the samples.

    Two more results are the best of the `annealed` cheapest placements after annealing their soft macros, and, with
    `flips`, the best result after mirroring its macros in place. Raises DesignError if no episode placed every macro.
    """
    greedy = [evaluation for evaluation in evaluations if evaluation.greedy]
    samples = [evaluation for evaluation in evaluations if not evaluation.greedy]
    costs = [evaluation.costs for evaluation in samples if evaluation.costs is not None]
    mean = Costs(*np.mean(costs, axis=0).tolist()) if costs else None
    deviation = float(np.std([one.total for one in costs])) if costs else None
    results = [
        _best("greedy", "greedy", greedy),
        _best(f"best of {len(samples)}", "sampled", samples),
        PolicyResult(f"mean of {len(costs)}", "mean", mean, deviation=deviation),
    ]
    cheapest(results, design)  # This raises if there is none.
    if chosen := finished(evaluations)[:annealed]:
        results.append(_annealed(chosen, design, weights))
    if flips:
        results.append(_flipped(results, design, weights))
    return results


def _best(name: str, key: str, evaluations: Sequence[Evaluation]) -> PolicyResult:
    found = finished(evaluations)
    costs, placement = (found[0].costs, found[0].placement) if found else (None, None)
    return PolicyResult(name, key, costs, len(evaluations) - len(found), placement)


def finished(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Returns the placements in which every macro is placed, cheapest first."""
    found = [(one.costs.total, number) for number, one in enumerate(evaluations) if one.costs is not None]
    return [evaluations[number] for _, number in sorted(found)]


def _annealed(evaluations: Sequence[Evaluation], design: Design, weights: CostWeights) -> PolicyResult:
    """Returns the cheapest of these placements after annealing their soft macros."""
    found = []
    for evaluation in evaluations:
        assert evaluation.placement is not None
        placement = anneal_soft_macros(design, evaluation.placement, weights=weights)
        found.append((compute_costs(design, placement, weights=weights), placement))
    costs, placement = min(found, key=lambda one: one[0].total)
    return PolicyResult(f"annealed best of {len(found)}", "annealed", costs, placement=placement)


def _flipped(results: Sequence[PolicyResult], design: Design, weights: CostWeights) -> PolicyResult:
    """Mirrors the macros of every result's placement; returns the cheapest."""
    whole = [(result.key, result.placement) for result in results if result.placement is not None]
    found = [(key, flip_macros(design, placement, weights=weights)) for key, placement in whole]
    key, best = min(found, key=lambda one: one[1].costs.total)
    return PolicyResult(f"flipped {key}", "flipped", best.costs, placement=best.placement, flipped=best.flipped)


def cheapest(results: Sequence[PolicyResult], design: Design) -> PolicyResult:
    """The result with the cheapest placement; raises DesignError if there is none."""
    found = [(one.costs.total, index) for index, one in enumerate(results) if one.costs and one.placement]
    if not found:
        raise no_placement(design, sum(one.dead_ends or 0 for one in results))
    return results[min(found)[1]]


def no_placement(design: Design, episodes: int) -> DesignError:
    """The error if every episode was a dead end."""
    return DesignError(
        f"{design.name}: none of the {episodes} episodes placed every macro: in each, a macro had no "
        "legal cell; draw more with samples=N, or train the policy on this design"
    )


def results_table(results: Sequence[PolicyResult], title: str, cost: str = DEFAULT_WEIGHTS.name) -> Table:
    """A table of the results, with the dead ends of each; `cost` is the name of the cost."""
    rows = []
    for one in results:
        values = [None] * 4 if one.costs is None else [one.costs.total, *one.costs[1:4]]
        cells = ["–" if value is None else f"{value:.6f}" for value in values]
        rows.append([one.name, *cells, "" if one.dead_ends is None else str(one.dead_ends)])
    spreads = [one.deviation for one in results if one.deviation is not None]
    notes = [f"standard deviation of the samples' {cost} cost {spread:.6f}" for spread in spreads]
    notes += [f"macros flipped: {one.flipped}" for one in results if one.key == "flipped"]
    columns = ("placements", cost, "wirelength", "density", "congestion", "dead ends")
    return make_table(columns, rows, title=title, caption="\n".join(notes) or None)


def _write_results_of(
    folder: Path,
    results: Sequence[PolicyResult],
    evaluations: Sequence[Evaluation],
    design: Design,
    weights: CostWeights,
) -> None:
    """Writes the results to `lines.json`, each placement to a file called by its key, the episodes to `samples.csv`."""
    described = []
    for one in results:
        file = None
        if one.placement is not None:
            file = f"{one.key}.plc"
            write_placement(folder / file, design, one.placement, comments=[f"{design.name}: {one.name}"])
        costs = None if one.costs is None else costs_object(one.costs, weights)
        about = {"name": one.name, "key": one.key, "dead_ends": one.dead_ends, "macros_flipped": one.flipped}
        described.append({**about, "file": file, "costs": costs})
    write_whole(folder / "lines.json", json.dumps(described, indent=2) + "\n")
    nothing = [""] * len(Costs._fields)  # the costs of a dead end
    rows = [[int(one.greedy), int(one.dead_end), *(one.costs or nothing)] for one in evaluations]
    write_whole(folder / "samples.csv", csv_text([["greedy", "dead_end", *Costs._fields[:-1], "cost"], *rows]))


def _draw_training(run: Path, path: Path, design: str, metrics: Metrics) -> None:
    """Draws the run's training curves, with the cost of the new placement as a line."""
    columns = read_metrics(run / METRICS_NAME)
    found = {f"found on {design}": metrics.costs.total}
    title, cost = f"training of {run.name}", metrics.weights.name
    style.save_figure(curves.plot_training(columns, title=title, baselines=found, cost=cost), path)
