"""End-to-end learning: on the planted toy, whose least wirelength is known, the greedy policy reaches the optimum."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import placement.netlist.load as netlists
from placement.config import CostConfig, EnvConfig, PolicyConfig, PPOConfig, ReplayConfig, RuntimeConfig, TrainConfig
from placement.engine.costs import CostWeights, compute_costs, legality
from placement.netlist.formats.plc import read_placement
from placement.runtimes import local

WEIGHTS = CostWeights(wirelength=1.0, density=0.0, congestion=0.0)


def test_the_greedy_policy_ends_at_the_known_optimum(tmp_path: Path) -> None:
    config = TrainConfig(
        design=("toy6",),
        run_dir=str(tmp_path / "run"),
        env=EnvConfig(cost=CostConfig(*WEIGHTS)),
        policy=PolicyConfig(node_width=8, rounds=1, grid_width=8),
        ppo=PPOConfig(iterations=16, epochs=2, sample_fraction=1.0, minibatch_size=48, learning_rate=2e-2),
        replay=ReplayConfig(name="memory"),
        runtime=RuntimeConfig(evaluate_every=0, checkpoint_every=100),
    )
    result = local.run(config)
    design = netlists.load("toy6")
    _, optimum = read_placement(netlists.find("toy6").parent / "optimum.plc", design.netlist)
    least = compute_costs(design, optimum, weights=WEIGHTS).total
    with (result.folder / "metrics.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert float(rows[0]["cost_mean"]) > 1.3 * least, "the untrained policy is far from it"
    assert float(rows[-1]["greedy_cost"]) == pytest.approx(least, rel=1e-6)
    assert float(rows[-1]["cost_mean"]) < 1.05 * least
    _, found = read_placement(result.best_files[0], design.netlist)
    assert compute_costs(design, found, weights=WEIGHTS).total == pytest.approx(least, rel=1e-12)
    assert legality(design, found) == (0, 0)
