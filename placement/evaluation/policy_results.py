"""What a policy's evaluation reports: a line each for greedy, samples and flips, and their placements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from placement.annealing.finishing import anneal_soft_macros, flip_macros
from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, compute_costs, costs_object
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import write_placement
from placement.report.metrics import make_table
from placement.training.rollout import Evaluation


class PolicyResult(NamedTuple):
    """One way of using the policy.

    Attributes:
        name: for people.
        key: of its placement's file.
        costs: of the placement, or means over several; None where all episodes were dead ends.
        dead_ends: episodes that came to one; None where that has no meaning.
        placement: None where there is none, or where the costs are means.
        deviation: standard deviation of the proxy costs that a mean is over, else None.
        flipped: macros that were mirrored.
    """

    name: str
    key: str
    costs: Costs | None
    dead_ends: int | None = None
    placement: Placement | None = None
    deviation: float | None = None
    flipped: int = 0


def policy_results(evaluations: Sequence[Evaluation]) -> list[PolicyResult]:
    """A line for the greedy placement, and the best and the mean of the samples."""
    greedy = [evaluation for evaluation in evaluations if evaluation.greedy]
    samples = [evaluation for evaluation in evaluations if not evaluation.greedy]
    lines = [_best("greedy", "greedy", greedy), _best(f"best of {len(samples)}", "sampled", samples)]
    costs = [evaluation.costs for evaluation in samples if evaluation.costs is not None]
    mean = Costs(*np.mean(costs, axis=0).tolist()) if costs else None
    deviation = float(np.std([one.total for one in costs])) if costs else None
    lines.append(PolicyResult(f"mean of {len(costs)}", "mean", mean, deviation=deviation))
    return lines


def _best(name: str, key: str, evaluations: Sequence[Evaluation]) -> PolicyResult:
    found = finished(evaluations)
    costs, placement = (found[0].costs, found[0].placement) if found else (None, None)
    return PolicyResult(name, key, costs, len(evaluations) - len(found), placement)


def finished(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Those that placed every macro, the cheapest first."""
    found = [(one.costs.total, number) for number, one in enumerate(evaluations) if one.costs is not None]
    return [evaluations[number] for _, number in sorted(found)]


def settled_result(
    evaluations: Sequence[Evaluation], count: int, design: Design, weights: CostWeights
) -> PolicyResult | None:
    """The cheapest of the `count` cheapest placements once their soft macros are annealed; None if there is none."""
    found = []
    for evaluation in finished(evaluations)[:count]:
        assert evaluation.placement is not None
        placement = anneal_soft_macros(design, evaluation.placement, weights=weights)
        found.append((compute_costs(design, placement, weights=weights), placement))
    if not found:
        return None
    costs, placement = min(found, key=lambda one: one[0].total)
    return PolicyResult(f"settled best of {len(found)}", "settled", costs, placement=placement)


def flipped_result(lines: Sequence[PolicyResult], design: Design, weights: CostWeights) -> PolicyResult:
    """Mirrors the macros of every line's placement; the cheapest result."""
    whole = [(line, line.placement) for line in lines if line.placement is not None]
    found = [(line, flip_macros(design, placement, weights=weights)) for line, placement in whole]
    line, best = min(found, key=lambda one: one[1].costs.total)
    return PolicyResult(f"flipped {line.key}", "flipped", best.costs, placement=best.placement, flipped=best.flipped)


def cheapest(lines: Sequence[PolicyResult], design: Design) -> PolicyResult:
    """The line of the cheapest placement; raises DesignError if there is none."""
    found = [(line.costs.total, index) for index, line in enumerate(lines) if line.costs and line.placement]
    if not found:
        raise no_placement(design, sum(line.dead_ends or 0 for line in lines))
    return lines[min(found)[1]]


def no_placement(design: Design, episodes: int) -> DesignError:
    """What is raised where every episode was a dead end."""
    return DesignError(
        f"{design.name}: none of the {episodes} episodes placed every macro, for each came to a macro "
        "without a legal cell; draw more with samples=N, or train the policy on this design"
    )


def results_table(lines: Sequence[PolicyResult], title: str, cost: str = DEFAULT_WEIGHTS.name) -> Table:
    """The lines, with the dead ends of each; `cost` is the name of the cost."""
    rows = []
    for line in lines:
        values = [None] * 4 if line.costs is None else [line.costs.total, *line.costs[1:4]]
        cells = ["–" if value is None else f"{value:.6f}" for value in values]
        rows.append([line.name, *cells, "" if line.dead_ends is None else str(line.dead_ends)])
    spreads = [line.deviation for line in lines if line.deviation is not None]
    notes = [f"standard deviation of the samples' {cost} cost {spread:.6f}" for spread in spreads]
    notes += [f"macros flipped: {line.flipped}" for line in lines if line.key == "flipped"]
    columns = ("placements", cost, "wirelength", "density", "congestion", "dead ends")
    return make_table(columns, rows, title=title, caption="\n".join(notes) or None)


def write_results_of(folder: Path, lines: Sequence[PolicyResult], design: Design, weights: CostWeights) -> None:
    """Writes the lines to `lines.json`, and each placement to a file of its key, such as `greedy.plc`."""
    described = []
    for line in lines:
        file = None
        if line.placement is not None:
            file = f"{line.key}.plc"
            write_placement(folder / file, design, line.placement, comments=[f"{design.name}: {line.name}"])
        costs = None if line.costs is None else costs_object(line.costs, weights)
        about = {"name": line.name, "key": line.key, "dead_ends": line.dead_ends, "macros_flipped": line.flipped}
        described.append({**about, "file": file, "costs": costs})
    write_whole(folder / "lines.json", json.dumps(described, indent=2) + "\n")
