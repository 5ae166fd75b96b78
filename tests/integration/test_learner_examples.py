"""The one-file learners in examples/, each for a second on `toy6`; skipped if their library is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import placement

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the libraries
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# The required modules of each example.
NEEDS = {"cleanrl_ppo": ("torch",), "torchrl_ppo": ("torch", "torchrl")}


@pytest.fixture(params=NEEDS)
def example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    for name in NEEDS[request.param]:
        pytest.importorskip(name, reason=f"examples/{request.param}.py needs {name}", exc_type=ImportError)
    spec = importlib.util.spec_from_file_location(request.param, EXAMPLES / f"{request.param}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, request.param, module)
    spec.loader.exec_module(module)
    return module


def test_it_learns_from_whole_legal_episodes(example) -> None:
    found = example.train("toy6", envs=4, seconds=0.5)
    steps, costs = (np.array(values) for values in zip(*found, strict=True))
    design = placement.load("toy6")
    _, best = placement.read_placement(placement.netlist.load.find("toy6").parent / "optimum.plc", design.netlist)
    least = placement.cost(design, best, cost=placement.CostWeights(density=0.0, congestion=0.0, name="chip")).total
    assert (np.diff(steps, prepend=0) > 0).all()
    assert np.isfinite(costs).all() and (costs >= 0.5 * least).all() and (costs < 2).all()
