"""Synthetic designs by number: reproducible, disjoint between splits, within the bounds."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from placement.netlist.generators.clustered import clustered, largest_grid
from placement.netlist.generators.synthetic import SyntheticDesigns

SMALL = SyntheticDesigns(macros=(3, 9), soft_macros=(2, 4), seed=4)


def same(left, right) -> bool:
    arrays = ("width", "height", "pin_node", "pin_dx", "pin_dy", "net_weight", "net_start", "net_pins")
    return left.name == right.name and all(
        getattr(left.netlist, name).tobytes() == getattr(right.netlist, name).tobytes() for name in arrays
    )


def test_a_number_is_one_design() -> None:
    again = dataclasses.replace(SMALL)
    assert all(same(SMALL[number], again[number]) for number in (0, 7, 2**31 - 2))
    first = [SMALL[number].netlist.num_pins for number in range(6)]
    assert len(set(first)) > 1
    for other in ({"seed": 5}, {"split": "validation"}, {"split": "test"}):
        assert [dataclasses.replace(SMALL, **other)[number].netlist.num_pins for number in range(6)] != first


def test_sizes_are_drawn_within_the_bounds() -> None:
    bounds, designs = SMALL.bounds, list(itertools.islice(SMALL, 25))
    hard = [len(design.netlist.hard) for design in designs]
    assert {min(hard), max(hard)} == {3, 9}
    for design in designs:
        assert design.canvas.rows <= bounds.rows and design.canvas.columns <= bounds.columns
        assert design.netlist.num_nodes <= bounds.nodes and len(design.placing_order) <= bounds.macros == 9
        assert design.own_action_scale <= bounds.action_scale


def test_no_clustered_design_has_a_larger_grid() -> None:
    """Designs of one or two of the largest memories reach the bound or come within a column of it."""
    for hard in (1, 2):
        grids = [clustered(seed=seed, hard=hard, soft=16, ports=1).canvas for seed in range(20)]
        rows, columns = largest_grid((hard, hard))
        assert max(grid.rows for grid in grids) == rows
        assert columns - 1 <= max(grid.columns for grid in grids) <= columns


def test_a_split_may_end() -> None:
    few = dataclasses.replace(SMALL, split="validation", count=3)
    assert [design.name for design in few] == ["validation_4_0", "validation_4_1", "validation_4_2"]
    with pytest.raises(IndexError, match=r"design 3: must be in \[0, 3\)"):
        few[3]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"macros": (0, 4)}, "macros="),
        ({"macros": (5, 4)}, "macros="),
        ({"rent_exponent": (0.5, 1.5)}, "at most 1"),
        ({"split": "dev"}, "one of train, validation, test"),
        ({"count": 0}, "count=0"),
        ({"episodes_per_design": 0}, "episodes_per_design=0"),
    ],
)
def test_wrong_values_are_named(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SyntheticDesigns(**wrong)
