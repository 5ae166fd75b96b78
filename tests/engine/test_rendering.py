"""Replayed episodes reproduce the observations; episodes that cannot have been played are rejected."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from placement.config import EnvConfig
from placement.engine.observation import Observation
from placement.engine.pool import make_pool
from placement.engine.state import EpisodeRenderer, IllegalAction
from placement.netlist.errors import DesignError
from tests.support.designs import Node, NodeKind, build, four_macros, random_design, square_canvas


def test_a_replay_shows_what_was_seen() -> None:
    designs = [four_macros(), *(random_design(seed, hard=4 + seed, canvas=square_canvas(9, 7)) for seed in (1, 8))]
    with make_pool(designs, 6, num_threads=1, config=EnvConfig(soft_placer="none")) as pool:
        seen, ended, actions = [pool.reset(seed=3)[0]], [], []
        for _ in range(20):
            actions.append(np.maximum(pool.sample_actions(), 0))
            observation, _, terminated, _, _ = pool.step(actions[-1])
            seen.append(observation)
            ended.append(terminated)
        lengths = [next(step for step in range(20) if ended[step][env]) + 1 for env in range(6)]
        rendered = EpisodeRenderer(designs).render(pool.config.design_of_env, np.stack(actions, axis=1), lengths)
    for env, length in enumerate(lengths):
        for name in Observation._fields:
            array = getattr(rendered, name)[env]
            expected = np.stack([observation[name][env] for observation in seen[:length]])
            assert np.array_equal(array[:length], expected), name
            assert not array[length:].any(), name


def test_jax_uses_the_arrays_without_a_copy() -> None:
    for array in EpisodeRenderer([four_macros()]).arrays(3, 5):
        assert jax.device_put(array).unsafe_buffer_pointer() == array.ctypes.data


def test_compact_maps_are_the_maps_rounded() -> None:
    renderer = EpisodeRenderer([four_macros()])
    compact = renderer.arrays(1, 4, compact_maps=True)
    full = renderer.render([0], [[12, 7, 0, 0]], [1])
    renderer.render([0], [[12, 7, 0, 0]], [1], out=compact)
    np.testing.assert_array_equal(compact.maps, full.maps.astype("bfloat16"))
    np.testing.assert_array_equal(compact.mask, full.mask)
    assert full.maps.any()


@pytest.mark.parametrize(
    ("design", "actions", "length", "error", "message"),
    [
        ([0], [[12, 12]], [2], IllegalAction, "episode 0: action 12 .*'middle'.*overlap macro 'large'"),
        ([0], [[12, 7]], [3], ValueError, r"lengths: every value must be in \[0, 2\]"),
        ([0], [[12, 7]], [-1], ValueError, "lengths"),
        ([1], [[12, 7]], [1], IndexError, r"design_index: every value must be in \[0, 1\)"),
        ([0], [[12.0, 7.0]], [1], TypeError, "actions: must be integers, not float64"),
        ([0, 0], [[12, 7]], [1], ValueError, r"design_index: shape \[2\], expected \[1\]"),
        ([0], [12, 7], [1], ValueError, r"actions: shape \[2\], expected \[any, any\]"),
    ],
)
def test_what_cannot_have_been_played_is_rejected(design, actions, length, error, message) -> None:
    with pytest.raises(error, match=message):
        EpisodeRenderer([four_macros()]).render(design, actions, length)


def test_a_design_that_cannot_be_played_is_named() -> None:
    nodes = [Node("p", NodeKind.PORT, 0, 0), Node("huge", NodeKind.HARD, 10, 10, 20, 20)]
    with pytest.raises(DesignError, match=r"'small' cannot be played: node 'huge' extends beyond the canvas"):
        EpisodeRenderer([four_macros(), build("small", square_canvas(2, 2), nodes, [])])
