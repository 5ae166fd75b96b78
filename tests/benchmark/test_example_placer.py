"""The worked example of docs/how-to/benchmark-suites.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.benchmark_placer import place
from placement.benchmark.scoring import broken_rules
from placement.benchmark.suites import generated, read_suite
from placement.engine.costs import cost
from placement.netlist.design import Design
from placement.netlist.load import load

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs/how-to/benchmark-suites.md").read_text(encoding="utf-8")
    code = (ROOT / "examples/benchmark_placer.py").read_text(encoding="utf-8")
    assert f"```python\n{code}```\n" in page
    assert len(code.splitlines()) <= 30


@pytest.mark.parametrize(
    "design", [load("toy6"), generated(read_suite("synthetic").designs[1])], ids=lambda one: one.name
)
def test_the_example_places_legally_also_with_constraints(design: Design) -> None:
    found = place(design, 1, 0.1)
    assert broken_rules(design, found) == {}
    assert cost(design, found).total > 0
