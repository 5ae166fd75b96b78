from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
from pathlib import Path

import jax
import numpy as np
import pytest
import yaml
from rich.console import Console

from placement.config import ConfigError, CostConfig, PolicyConfig, TrainConfig, build
from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs, legality
from placement.evaluation import policies
from placement.evaluation.policies import evaluate_policy
from placement.evaluation.searching import evaluate_search
from placement.evaluation.settings import SampleConfig, SearchConfig, TrainedCost
from placement.netlist.errors import DesignError
from placement.netlist.load import load
from placement.policy.agent import Agent
from placement.training.checkpoint import Checkpoints
from placement.training.run_folder import CHECKPOINTS_NAME, plain
from tests.support.command import run_here

POLICY = PolicyConfig(node_width=8, grid_width=8, rounds=1)
ITERATION = 7
SAMPLES = 3

_agent = functools.lru_cache(lambda policy, design: Agent(policy, [load(design)]))


@pytest.fixture(autouse=True)
def compile_once(monkeypatch):
    """Shares agents of the same network and design, because each one compiles anew."""
    monkeypatch.setattr(policies, "Agent", lambda policy, designs: _agent(policy, designs[0].name))


def make_run(folder: Path, *designs: str, policy: PolicyConfig = POLICY) -> Path:
    """Writes a run folder as training on `designs` does, with random parameters for `POLICY`."""
    folder.mkdir()
    config = TrainConfig(design=designs or ("planted20",), run_dir=str(folder), policy=policy)
    (folder / "config.yaml").write_text(yaml.safe_dump(plain(config)))
    checkpoints = Checkpoints(folder / CHECKPOINTS_NAME)
    generator = np.random.default_rng(1)  # much faster than compiling the initialisation
    shapes = jax.eval_shape(_agent(POLICY, "toy6").init, 0)
    parameters = jax.tree.map(lambda leaf: generator.normal(0, 0.1, leaf.shape).astype(leaf.dtype), shapes)
    checkpoints.save(ITERATION, {"parameters": parameters, "learner": {"step": parameters}}, {})
    checkpoints.close()
    return folder


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "seed0")


def evaluate(run: Path, **settings):
    """Evaluates the run's policy on a design that it was not trained on; returns metrics and output."""
    stream = io.StringIO()
    values = {"design": "toy6", "plots": False, "samples": SAMPLES, "checkpoint": str(run), **settings}
    return evaluate_policy(build(SampleConfig, values), Console(file=stream, width=200)), stream.getvalue()


def test_the_best_of_all_is_kept_and_written(run_folder, tmp_path):
    metrics, text = evaluate(run_folder, out=str(tmp_path / "out"))
    with (tmp_path / "out" / "samples.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["greedy"] for row in rows] == ["1"] + SAMPLES * ["0"]
    costs = [float(row["cost"]) for row in rows]
    assert metrics.costs.total == min(costs)
    design = load("toy6", tmp_path / "out" / "placement.plc")
    assert compute_costs(design, weights=DEFAULT_WEIGHTS) == metrics.costs, (
        "the placement that was written costs exactly that"
    )
    assert legality(design) == (0, 0)
    written = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (written["cost"], written["iteration"]) == (metrics.costs.total, ITERATION)
    for line in ("greedy", f"best of {SAMPLES} ", f"mean of {SAMPLES} "):
        assert line in text
    assert f"{sum(costs[1:]) / SAMPLES:.6f}" in text


def test_pictures_are_drawn(run_folder, tmp_path):
    header = "iteration,episodes,cost_mean,cost_best"
    (run_folder / "metrics.csv").write_text(f"{header}\n1,8,1.5,1.25\n2,16,1.25,1.0\n")
    evaluate(run_folder, plots=True, out=str(tmp_path / "out"))
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"placement.png", "maps.png", "training.png", "placement.plc"} <= names


def test_the_seed_decides_the_samples(run_folder, tmp_path):
    def sampled(seed: int) -> str:
        evaluate(run_folder, seed=seed, out=str(tmp_path / "out"))
        return (tmp_path / "out" / "samples.csv").read_text()

    assert sampled(1) == sampled(1)
    assert sampled(1) != sampled(2)


def test_the_policy_is_judged_by_the_cost_that_it_was_trained_on(run_folder, tmp_path):
    trained, text = evaluate(run_folder, out=str(tmp_path / "trained"))
    assert trained.weights == DEFAULT_WEIGHTS and "chip cost" in text and "proxy" not in text
    by_proxy, text = evaluate(run_folder, cost="proxy", out=str(tmp_path / "asked"))
    assert by_proxy.weights == CostConfig(name="proxy").weights() and "proxy cost" in text


def test_weights_that_are_given_count_in_the_cost_of_the_training():
    trained = CostConfig(name="chip", congestion=3.0)
    assert TrainedCost().of(trained) == trained
    assert TrainedCost(density=0.2).of(trained) == CostConfig(name="chip", density=0.2, congestion=3.0)
    assert TrainedCost(name="proxy", density=0.2).of(trained) == CostConfig(name="proxy", density=0.2)


def test_the_best_is_chosen_by_the_weights_given(run_folder, tmp_path):
    metrics, _ = evaluate(
        run_folder, cost={"wirelength": 2.0, "density": 0.0, "congestion": 0.0}, out=str(tmp_path / "out")
    )
    with (tmp_path / "out" / "samples.csv").open(newline="") as stream:
        wirelengths = [float(row["wirelength_cost"]) for row in csv.DictReader(stream)]
    assert metrics.costs.wirelength_cost == min(wirelengths)
    assert metrics.costs.total == 2 * min(wirelengths)


def test_folders_that_cannot_be_evaluated_are_rejected(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "config.yaml").write_text("design: [toy6]\nwheels: 4\n")
    two = make_run(tmp_path / "two", "toy6", "planted20")
    without = make_run(tmp_path / "without", "toy6")
    for file in sorted((without / CHECKPOINTS_NAME).rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    for run, message in (
        (tmp_path / "missing", "no such folder"),
        (tmp_path / "empty", "it has no config.yaml"),
        (tmp_path / "strange", "wheels=4 no longer exist"),
        (two, "trained on several: toy6, planted20"),
        (without, "no checkpoint"),
    ):
        with pytest.raises(ConfigError, match=message):
            evaluate(run, design=None)


def test_only_dead_ends_are_reported(run_folder, monkeypatch):
    from placement.training.rollout import Evaluation, Evaluator

    ended = [Evaluation(0, greedy, None, None) for greedy in (True, False, False)]
    monkeypatch.setattr(Evaluator, "evaluate", lambda *_, **__: ended)
    with pytest.raises(DesignError, match="none of the 3 episodes"):
        evaluate(run_folder)


def test_the_checkpoint_of_another_network_is_rejected(tmp_path):
    make_run(tmp_path / "other", policy=dataclasses.replace(POLICY, grid_width=16))
    result = run_here("macro-placement", "sample", "checkpoint=other", "design=toy6", "json=true", folder=tmp_path)
    assert result.returncode == 2
    assert "another network" in result.stderr
    assert len(result.stderr.splitlines()) == 1, result.stderr


def searched(run: Path, function, cls, **settings):
    values = {"design": "toy6", "plots": False, "samples": SAMPLES, "checkpoint": str(run), **settings}
    return function(build(cls, values), Console(file=io.StringIO(), width=200))


def test_the_policys_best_samples_are_refined(run_folder, tmp_path):
    drawn, _ = evaluate(run_folder, out=str(tmp_path / "drawn"))
    settings = {"method": "refine", "moves": 20_000, "out": str(tmp_path / "out")}
    metrics = searched(run_folder, evaluate_search, SearchConfig, **settings)
    assert metrics.costs.total < drawn.costs.total
    assert metrics.legality == (0, 0)
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["start"].startswith("sample")


def test_every_way_has_a_line_and_a_placement_and_the_cheapest_is_kept(run_folder, tmp_path):
    metrics, text = evaluate(run_folder, design="clustered40", samples=2, out=str(tmp_path))
    lines = {line["key"]: line for line in json.loads((tmp_path / "lines.json").read_text())}
    assert list(lines) == ["greedy", "sampled", "mean", "annealed", "flipped"]
    assert lines["mean"]["file"] is None
    costs = {key: line["costs"]["cost"] for key, line in lines.items() if line["file"]}
    for key, cost in costs.items():
        design = load("clustered40", tmp_path / f"{key}.plc")
        assert compute_costs(design, weights=DEFAULT_WEIGHTS).total == pytest.approx(cost, rel=1e-12)
        assert legality(design) == (0, 0)
        assert lines[key]["name"] in text and f"{cost:.6f}" in text
    assert costs["annealed"] < min(costs[key] for key in ("greedy", "sampled"))
    assert costs["flipped"] < min(cost for key, cost in costs.items() if key != "flipped")
    assert metrics.costs.total == costs["flipped"]
    assert compute_costs(load("clustered40", tmp_path / "placement.plc"), weights=DEFAULT_WEIGHTS) == metrics.costs


def test_without_flips_there_is_no_such_line(run_folder, tmp_path):
    evaluate(run_folder, flips=False, annealed=0, out=str(tmp_path))
    keys = [line["key"] for line in json.loads((tmp_path / "lines.json").read_text())]
    assert keys == ["greedy", "sampled", "mean"]
    assert not (tmp_path / "flipped.plc").exists()
