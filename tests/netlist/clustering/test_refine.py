"""Refinement of groups of cells: by hand, never for the worse, within bounds."""

from __future__ import annotations

import numpy as np
import pytest

from placement.netlist.clustering.groups import Connectivity, connectivity, refine
from placement.netlist.design import NodeKind
from tests.support.flat_designs import chain_design

FAR = 1e9


def price(joined: Connectivity, group: np.ndarray) -> int:
    """Counts the nets between groups, and the groups of nets, slowly; a node without a group counts as a group."""
    total = 0
    for net in range(len(joined.nets)):
        places = {int(group[node]) if group[node] >= 0 else -1 - int(node) for node in joined.node[joined.net == net]}
        total += len(places) - 1 + (len(places) > 1)
    return total


def test_a_cell_goes_where_its_nets_are() -> None:
    """In a chain of twelve cells the fourth one is in the wrong half."""
    design = chain_design([("a", 12)])
    joined = connectivity(design)
    group = np.full(design.netlist.num_nodes, -1)
    group[:12] = [0, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1]
    found = refine(group, np.arange(12), joined, reach=FAR)
    assert found[:12].tolist() == [0] * 6 + [1] * 6
    assert (found[12:] == -1).all()
    kept = refine(group, np.setdiff1d(np.arange(12), [3]), joined, reach=FAR)
    assert kept[3] == 1, "a cell that may not move stays"
    assert refine(group, np.arange(12), joined, reach=1.0).tolist() == group.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_it_pays_and_keeps_its_bounds(seed: int) -> None:
    design = chain_design([(f"b{number}/", 60) for number in range(4)], macro_after=50, parallel=300, seed=seed)
    joined = connectivity(design)
    cells = np.flatnonzero(design.netlist.kind == NodeKind.CELL)
    group = np.full(design.netlist.num_nodes, -1)
    group[cells] = np.random.default_rng(seed).integers(0, 12, len(cells))
    movable = cells[::2]
    found = refine(group, movable, joined, reach=FAR, seed=seed)
    assert price(joined, found) < price(joined, group)
    assert np.bincount(found[cells]).max() <= np.bincount(group[cells]).max()
    stays = np.setdiff1d(np.arange(len(group)), movable)
    np.testing.assert_array_equal(found[stays], group[stays])
    again = refine(group, movable, joined, reach=FAR, seed=seed)
    np.testing.assert_array_equal(found, again)


def test_the_gain_of_a_single_move_is_what_it_saves() -> None:
    """One movable cell at a time, so that no two moves interact: each accepted move lowers the cost."""
    design = chain_design([("a", 40)], parallel=60, seed=5)
    joined = connectivity(design)
    group = np.full(design.netlist.num_nodes, -1)
    group[:40] = np.arange(40) % 4
    group[:3] = 3  # space in the other groups
    moved = 0
    for cell in range(40):
        found = refine(group, np.array([cell]), joined, reach=FAR, seed=cell)
        if (found != group).any():
            assert price(joined, found) < price(joined, group)
            moved += 1
        else:
            for target in range(4):
                other = group.copy()
                other[cell] = target
                full = np.bincount(group[:40])[target] >= np.bincount(group[:40]).max()
                assert target == group[cell] or full or price(joined, other) >= price(joined, group)
    assert moved > 0
