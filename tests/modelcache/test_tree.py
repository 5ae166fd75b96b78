"""The shape of the cache tree."""

from __future__ import annotations

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.modelcache.tree import ROOT, plan_tree


@given(count=st.integers(0, 200), fan_out=st.integers(1, 20))
def test_every_cache_hangs_on_the_root_and_none_feeds_more_than_the_fan_out(count: int, fan_out: int) -> None:
    tree = plan_tree([f"host{number}" for number in range(count)], fan_out)
    fed = collections.Counter(tree.parents)
    assert all(number <= fan_out for number in fed.values())
    depths = [len(tree.ancestors(cache)) for cache in range(count)]
    assert all(tree.ancestors(cache)[-1] == ROOT for cache in range(count))
    assert depths == sorted(depths)
    for depth in range(1, max(depths, default=0)):
        assert depths.count(depth) == fan_out**depth  # as flat as possible
    assert all(cache not in tree.parents for cache in tree.leaves) or tree.leaves == (ROOT,)


def test_a_tree_by_hand() -> None:
    tree = plan_tree(["a", "a", "b", "b", "c", "c", "d"], 2)
    assert tree.parents == (ROOT, ROOT, 0, 0, 1, 1, 2)
    assert tree.ancestors(6) == (2, 0, ROOT)
    assert tree.leaves == (3, 4, 5, 6)
    assert tree.readable("d", 0)[0] == 6
    assert tree.readable("d", 5)[0] == 6
    assert [tree.readable("a", reader)[0] for reader in range(4)] == [0, 1, 0, 1]


def test_readers_elsewhere_spread_evenly_over_the_leaves_and_can_fall_back_to_the_root() -> None:
    tree = plan_tree([f"cache{number}" for number in range(12)], 4)
    orders = [tree.readable("far", reader) for reader in range(8 * len(tree.leaves))]
    assert set(collections.Counter(order[0] for order in orders).values()) == {8}
    for first in tree.leaves:
        seconds = collections.Counter(order[1] for order in orders if order[0] == first)
        assert len(seconds) == 8  # the readers of a dead cache are spread over the others
    for order in orders:
        assert order[0] in tree.leaves and order[1] in tree.leaves and order[-1] == ROOT
        assert len(set(order)) == len(order)


def test_without_caches_all_read_from_the_root() -> None:
    tree = plan_tree([], 3)
    assert tree.leaves == (ROOT,)
    assert tree.readable("anywhere", 5) == (ROOT,)


def test_a_fan_out_of_zero_is_rejected() -> None:
    with pytest.raises(ValueError, match="fan_out=0: must be at least 1"):
        plan_tree(["a"], 0)
