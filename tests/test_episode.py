"""Sets of episodes' identities: exact, and small where counts are consecutive."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placement.episode import MOST_INTERVALS, EpisodeIntervalSet


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12))))
def test_it_behaves_as_a_set(identities: list[tuple[int, int]]) -> None:
    intervals, expected = EpisodeIntervalSet(), set()
    for identity in identities:
        assert intervals.add(*identity) == (identity not in expected)
        expected.add(identity)
    found = {(actor, count) for actor, first, last in intervals.rows().tolist() for count in range(first, last + 1)}
    assert found == expected
    again = EpisodeIntervalSet(intervals.rows())
    assert not any(again.add(*identity) for identity in expected)


def test_consecutive_counts_take_one_row() -> None:
    intervals = EpisodeIntervalSet()
    for count in np.random.default_rng(0).permutation(1000).tolist():
        intervals.add(5, count)
    assert intervals.rows().tolist() == [[5, 0, 999]]


def test_memory_is_bounded_by_closing_the_oldest_gap() -> None:
    intervals = EpisodeIntervalSet()
    for count in range(0, 4 * MOST_INTERVALS, 2):
        intervals.add(0, count)
    assert len(intervals.rows()) == MOST_INTERVALS
    assert not intervals.add(0, 1)  # in the oldest gap, which is closed
    assert intervals.add(0, 4 * MOST_INTERVALS - 3)
