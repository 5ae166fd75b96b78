"""The exports of `placement`: every name has a docstring with an example, and the examples run."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import placement


@pytest.mark.parametrize("name", placement.__all__)
def test_every_example_runs(name, tmp_path, monkeypatch):
    if name == "DmEnvPool":
        pytest.importorskip("dm_env", reason="dm-env is not installed")
    monkeypatch.chdir(tmp_path)  # some write files
    value = getattr(placement, name)
    text = inspect.getdoc(value)
    names = {"placement": placement, "gymnasium": gymnasium, "np": np}
    test = doctest.DocTestParser().get_doctest(text or "", names, name, None, None)
    assert test.examples, f"{name} has no example"
    failures: list[str] = []
    doctest.DocTestRunner().run(test, out=failures.append)
    assert not failures, "".join(failures)


def test_search_is_a_function_and_a_package_in_any_order():
    for first in ("placement.annealing", "placement.annealing.annealer", "placement.evaluation.settings"):
        program = (
            f"import placement, {first}, placement.annealing.legaliser; assert placement.annealing.legaliser.legalise; "
            "print(placement.search('toy6', moves=500, seed=3).moves)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert (done.returncode, int(done.stdout) >= 500) == (0, True), done.stderr


def test_search_improves_a_given_placement():
    design = placement.load("toy6")
    found = placement.search(design, moves=2000, start=design.initial)
    assert found.start == "given"
    assert found.costs == placement.cost(design, found.placement)
    assert found.costs.total < placement.cost(design).total


def test_importing_the_package_loads_neither_engine_nor_jax():
    program = "import sys, placement; print([n for n in ('jax', 'placement.engine._native') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr


def test_unknown_names_are_rejected():
    with pytest.raises(AttributeError, match="no attribute 'serch'"):
        placement.serch  # noqa: B018
    assert set(placement.__all__) <= set(dir(placement))
