"""Where springs along the nets pull the macros."""

from __future__ import annotations

import numpy as np

from placement.annealing.springs import spring_matrix, springs_at_rest
from placement.netlist.design import Placement
from placement.netlist.load import load


def quadratic_wirelength(springs: np.ndarray, placement: Placement) -> float:
    across, up = (values[:, None] - values[None, :] for values in (placement.x, placement.y))
    return float((springs * (across**2 + up**2)).sum() / 2)


def test_springs_at_rest_are_shorter_than_anywhere_near() -> None:
    design = load("toy6")
    springs = spring_matrix(design).toarray()
    assert np.array_equal(springs, springs.T) and not springs.diagonal().any()
    rest = springs_at_rest(design)
    least = quadratic_wirelength(springs, rest)
    generator = np.random.default_rng(0)
    for _ in range(20):
        other = rest.moved(
            design.placing_order,
            rest.x[design.placing_order] + generator.normal(size=len(design.placing_order)),
            rest.y[design.placing_order] + generator.normal(size=len(design.placing_order)),
        )
        assert quadratic_wirelength(springs, other) > least


def test_stiff_ties_hold_the_hard_macros_where_they_are() -> None:
    design = load("clustered40")
    rest = springs_at_rest(design)
    held = springs_at_rest(design, like=design.initial, hold=1e6)
    macros = design.placing_order
    assert np.allclose(held.x[macros], design.initial.x[macros], atol=0.1)
    assert not np.allclose(rest.x[macros], design.initial.x[macros], atol=10)
