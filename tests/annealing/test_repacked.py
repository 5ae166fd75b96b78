"""A placement's macros repacked: set out in rows with gaps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from placement.annealing.config import AnnealConfig
from placement.annealing.rows import MOST_ASSIGNED, RowPacker, _parts
from placement.annealing.springs import springs_at_rest
from placement.annealing.starts import RACED, Start, make_starts, repacked
from placement.engine.costs import legality
from placement.netlist.load import load


def test_macros_of_equal_size_stand_as_near_as_they_can_to_where_they_stood() -> None:
    design = load("clustered40")
    config = AnnealConfig(soft_placer="analytic_fast", starts=("random",))
    start = make_starts(design, config, 3)[0]
    found = repacked(design, start, config, 0)
    assert 1 <= len(found) <= RACED and all(one.name.startswith("random, repacked ") for one in found)
    order = design.placing_order

    def distance(x: np.ndarray, y: np.ndarray) -> float:
        return float(((x - start.placement.x) ** 2 + (y - start.placement.y) ** 2)[order].sum())

    for one in found:
        assert not legality(design, one.placement).overlaps and not legality(design, one.placement).outside
        words = one.name.split()
        packer = RowPacker(design, config, upright="upright" in words)
        plain = packer.pack(float(words[-1]), np.random.default_rng(0))
        assert plain is not None
        assert distance(one.placement.x, one.placement.y) < 0.9 * distance(plain.x, plain.y)


@pytest.mark.parametrize("upright", [False, True])
def test_each_number_of_rows_has_its_widest_pitch(upright: bool) -> None:
    design = load("clustered40")
    packer = RowPacker(design, AnnealConfig(), upright=upright)
    stretches = packer.stretches()
    assert len(stretches) > 1 and stretches == sorted(stretches) and stretches[0] >= 1
    found = [packer.pack(stretch, np.random.default_rng(0), like=springs_at_rest(design)) for stretch in stretches]
    packed = [placement for placement in found if placement is not None]  # another order may need one row more
    assert len(packed) > len(stretches) / 2
    for placement in packed:
        assert not legality(design, placement).overlaps and not legality(design, placement).outside


def test_the_name_says_where_it_came_from() -> None:
    design = load("toy6")
    start = Start("sample 0", design.initial) if design.initial.placed[design.placing_order].all() else None
    start = start or make_starts(design, AnnealConfig(starts=("greedy",)), 0)[0]
    assert all(one.name.startswith(start.name) for one in repacked(design, start, AnnealConfig(), 0))


@pytest.mark.parametrize("macros", [1, MOST_ASSIGNED, MOST_ASSIGNED + 1, 700])
def test_assigning_part_by_part_is_nearly_as_near_as_at_once(macros: int) -> None:
    generator = np.random.default_rng(macros)
    want, spots = generator.random((2, macros)) * 1000.0, generator.random((2, macros)) * [[2000.0], [500.0]]
    square = ((want[:, :, None] - spots[:, None]) ** 2).sum(axis=0)
    met, given, total = [], [], 0.0
    for mine, theirs in _parts(want, spots):
        assert len(mine) == len(theirs) <= MOST_ASSIGNED
        distance = square[np.ix_(mine, theirs)]
        total += float(distance[linear_sum_assignment(distance)].sum())
        met += mine.tolist()
        given += theirs.tolist()
    assert sorted(met) == sorted(given) == list(range(macros))
    least = float(square[linear_sum_assignment(square)].sum())
    assert total <= least * (1 if macros <= MOST_ASSIGNED else 1.1) + 1e-6
