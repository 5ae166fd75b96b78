"""Snapshots in transfer format: round trips, and rejection of anything else."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.modelcache.store import Layout, SnapshotDamaged, SnapshotMismatch, read_header


def _parameters(seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "dense": {"kernel": random.normal(size=(7, 5)).astype(np.float32), "bias": jnp.zeros(5)},
        "scale": np.float32(2.5).reshape(()),
        "table": random.integers(0, 9, (3,), dtype=np.int32),
        "empty": np.zeros((0, 4), np.float32),
        "half": np.asarray(random.normal(size=3), jnp.bfloat16),
    }


def _leaves(parameters: Any) -> list[np.ndarray]:
    return [np.asarray(parameters[name]) for name in ("scale", "table", "empty", "half")] + [
        np.asarray(parameters["dense"][name]) for name in ("kernel", "bias")
    ]


def test_a_snapshot_comes_out_as_it_went_in() -> None:
    parameters = _parameters()
    layout = Layout(parameters)
    buffer = layout.pack(7, parameters)
    assert buffer.size == layout.size and not buffer.flags.writeable
    snapshot = layout.unpack(buffer)
    assert snapshot.version == 7
    assert read_header(buffer).version == 7
    for found, expected in zip(_leaves(snapshot.parameters), _leaves(parameters), strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape and not found.flags.writeable
        np.testing.assert_array_equal(found, expected)


BUFFER = Layout(_parameters()).pack(7, _parameters())


@settings(max_examples=200, deadline=None)
@given(place=st.integers(0, BUFFER.size - 1), bit=st.integers(0, 7))
def test_a_single_changed_bit_is_found_wherever_it_is(place: int, bit: int) -> None:
    damaged = BUFFER.copy()
    damaged[place] ^= 1 << bit
    with pytest.raises((SnapshotDamaged, SnapshotMismatch)):
        Layout(_parameters()).unpack(damaged)


@settings(max_examples=50, deadline=None)
@given(where=st.integers(0, BUFFER.size - 1))
def test_a_torn_snapshot_is_found(where: int) -> None:
    """The first bytes of one publication and the rest of another; or the rest missing."""
    layout = Layout(_parameters())
    other = layout.pack(8, _parameters(1))
    torn = np.concatenate([other[:where], BUFFER[where:]])
    if not np.array_equal(torn, BUFFER) and not np.array_equal(torn, other):
        with pytest.raises(SnapshotDamaged):
            layout.unpack(torn)
    with pytest.raises(SnapshotDamaged):
        layout.unpack(BUFFER[:where])
    with pytest.raises(SnapshotDamaged, match="bytes of payload"):
        layout.unpack(np.concatenate([BUFFER, BUFFER[: where + 1]]))


@pytest.mark.parametrize(
    "other",
    [
        {"kernel": np.zeros((3, 2), np.float32)},
        {"kernel": np.zeros((2, 3), np.int32)},
        {"weights": np.zeros((2, 3), np.float32)},
        {"kernel": np.zeros((2, 3), np.float32), "more": np.zeros(1, np.float32)},
    ],
    ids=["shape", "dtype", "name", "leaves"],
)
def test_another_models_snapshot_is_rejected(other: dict[str, np.ndarray]) -> None:
    layout = Layout({"kernel": np.zeros((2, 3), np.float32)})
    with pytest.raises(SnapshotMismatch, match="another model"):
        layout.unpack(Layout(other).pack(1, other))
    with pytest.raises(SnapshotMismatch, match="other names, shapes or dtypes"):
        layout.pack(1, other)


def test_what_is_no_buffer_is_named() -> None:
    layout = Layout({"kernel": np.zeros(2, np.float32)})
    for wrong in (np.zeros(100, np.float32), np.zeros((10, 10), np.uint8), b"x" * 100):
        with pytest.raises(SnapshotDamaged, match=r"must be uint8 \[bytes\]"):
            layout.unpack(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"kernel.*float64, must be"):
        Layout({"kernel": np.zeros(2)})
