"""Macros in rows with gaps in the order of another placement, and the equilibrium of springs along the nets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.rows import MOST_ASSIGNED, RowPacker, _halves, spring_equilibrium, spring_matrix
from placement.annealing.starts import MOST_ROWS, grid_starts, repacked
from placement.engine.costs import legality
from placement.netlist.design import Placement
from placement.netlist.load import load


def test_macros_of_equal_size_are_as_near_as_possible_to_where_they_were() -> None:
    design = load("clustered40")
    (start,) = grid_starts("random", design, AnnealConfig(), 3)
    found = repacked(design, start, AnnealConfig())
    assert 1 <= len(found) <= MOST_ROWS and all(one.name.startswith("random, repacked ") for one in found)
    order = design.placing_order

    def distance(placement: Placement) -> float:
        return float(((placement.x - start.placement.x) ** 2 + (placement.y - start.placement.y) ** 2)[order].sum())

    for one in found:
        assert legality(design, one.placement) == (0, 0)
        words = one.name.split()
        packer = RowPacker(design, AnnealConfig(), upright="upright" in words)
        other = packer.pack(float(words[-1]), design.initial)
        assert other is not None
        assert distance(one.placement) < 0.9 * distance(other)


@pytest.mark.parametrize("upright", [False, True])
def test_each_number_of_rows_has_its_widest_pitch(upright: bool) -> None:
    design = load("clustered40")
    packer = RowPacker(design, AnnealConfig(), upright=upright)
    stretches = packer.stretches()
    assert len(stretches) > 1 and stretches == sorted(stretches) and stretches[0] >= 1
    found = [packer.pack(stretch, spring_equilibrium(design)) for stretch in stretches]
    packed = [placement for placement in found if placement is not None]  # another order may need one more row
    assert len(packed) > len(stretches) / 2
    for placement in packed:
        assert not legality(design, placement).overlaps and not legality(design, placement).outside


@pytest.mark.parametrize("macros", [1, MOST_ASSIGNED, MOST_ASSIGNED + 1, 700])
def test_assigning_part_by_part_is_nearly_as_near_as_at_once(macros: int) -> None:
    generator = np.random.default_rng(macros)
    want, spots = generator.random((2, macros)) * 1000.0, generator.random((2, macros)) * [[2000.0], [500.0]]
    square = ((want[:, :, None] - spots[:, None]) ** 2).sum(axis=0)
    met, given, total = [], [], 0.0
    for mine, theirs in _halves(want, spots):
        assert len(mine) == len(theirs) <= MOST_ASSIGNED
        distance = square[np.ix_(mine, theirs)]
        total += float(distance[linear_sum_assignment(distance)].sum())
        met += mine.tolist()
        given += theirs.tolist()
    assert sorted(met) == sorted(given) == list(range(macros))
    least = float(square[linear_sum_assignment(square)].sum())
    assert total <= least * (1 if macros <= MOST_ASSIGNED else 1.1) + 1e-6


def quadratic_wirelength(springs: np.ndarray, placement: Placement) -> float:
    across, up = (values[:, None] - values[None, :] for values in (placement.x, placement.y))
    return float((springs * (across**2 + up**2)).sum() / 2)


def test_the_equilibrium_has_the_least_quadratic_wirelength() -> None:
    design = load("toy6")
    springs = spring_matrix(design).toarray()
    assert np.array_equal(springs, springs.T) and not springs.diagonal().any()
    rest = spring_equilibrium(design)
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
    rest = spring_equilibrium(design)
    held = spring_equilibrium(design, like=design.initial, hold=1e6)
    macros = design.placing_order
    assert np.allclose(held.x[macros], design.initial.x[macros], atol=0.1)
    assert not np.allclose(rest.x[macros], design.initial.x[macros], atol=10)
