"""Checkpoints: exact round trips, and errors that name the cause."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from placement.training import checkpoint
from placement.training.checkpoint import CheckpointDamaged, CheckpointError, CheckpointMismatch, Checkpoints


@pytest.fixture
def checkpoints(tmp_path: Path) -> Iterator[Checkpoints]:
    result = Checkpoints(tmp_path / "checkpoints", keep=2)
    yield result
    result.close()


def _tree(width: int = 3, seed: int = 0) -> dict[str, Any]:
    """Returns everything that a learner may store: a Flax state, optimiser state, a random key, unusual dtypes."""
    state = nnx.state(nnx.Linear(width, 2, rngs=nnx.Rngs(seed)))
    return {
        "learner": {
            "network": state,
            "optimiser": optax.adam(1e-3).init(state),
            "step": jnp.array(seed, jnp.int32),
            "key": jax.random.PRNGKey(seed),
            "half": jnp.full((2,), seed + 0.5, jnp.bfloat16),
        },
        "best": [{"x": np.linspace(0, 1, 5) + seed, "placed": np.array([True, False])}],
        "elapsed": np.float64(12.5),
    }


def _same(one: Any, other: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_what_is_saved_is_restored_bit_by_bit(checkpoints: Checkpoints) -> None:
    tree = _tree(seed=1)
    checkpoints.save(10, tree, {"cost": 0.5, "names": ["a"]})
    restored = checkpoints.restore(_tree(seed=2))
    assert (restored.step, restored.record) == (10, {"cost": 0.5, "names": ["a"]})
    _same(restored.tree, tree)
    assert checkpoints.record() == restored.record


def test_a_part_can_be_restored(checkpoints: Checkpoints) -> None:
    checkpoints.save(1, _tree(), {})
    restored = checkpoints.restore({"elapsed": np.float64(0), "best": _tree()["best"]})
    assert restored.tree["elapsed"] == 12.5
    assert set(restored.tree) == {"elapsed", "best"}


def test_the_last_few_are_kept_and_the_newest_is_restored(checkpoints: Checkpoints) -> None:
    for step in (1, 2, 3):
        checkpoints.save(step, {"a": np.array(step)}, {})
    assert checkpoints.steps() == [2, 3]
    assert checkpoints.restore({"a": np.array(0)}).tree["a"] == 3
    assert checkpoints.restore({"a": np.array(0)}, step=2).tree["a"] == 2


def test_saving_a_number_again_replaces_it(checkpoints: Checkpoints) -> None:
    for value in (1, 2):
        checkpoints.save(7, {"a": np.array(value)}, {"value": value})
    assert checkpoints.steps() == [7]
    assert checkpoints.restore({"a": np.array(0)})[1:] == ({"a": 2}, {"value": 2})


def test_another_object_sees_what_was_saved(checkpoints: Checkpoints, tmp_path: Path) -> None:
    checkpoints.save(1, {"a": np.arange(3)}, {})
    other = Checkpoints(tmp_path / "checkpoints", read_only=True)
    np.testing.assert_array_equal(other.restore({"a": np.zeros(3, int)}).tree["a"], np.arange(3))
    other.close()


def test_a_missing_checkpoint_is_reported(checkpoints: Checkpoints, tmp_path: Path) -> None:
    assert checkpoints.steps() == []
    with pytest.raises(CheckpointError, match="checkpoints: no checkpoint; there are none"):
        checkpoints.restore({"a": np.zeros(1)})
    checkpoints.save(1, {"a": np.zeros(1)}, {})
    with pytest.raises(CheckpointError, match=r"no checkpoint 7; there are \[1\]"):
        checkpoints.restore({"a": np.zeros(1)}, step=7)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ({"a": np.zeros(4)}, r"\['a'\] is float64 \[3\], expected float64 \[4\]"),
        ({"a": np.zeros(3, np.float32)}, r"\['a'\] is float64 \[3\], expected float32 \[3\]"),
        ({"a": {"b": np.zeros(3)}}, r"does not have \['a'\]\['b'\]; also has \['a'\]"),
        ({"c": np.zeros(3)}, r"does not have \['c'\]"),
        ({"a": {}}, r"also has \['a'\]"),
    ],
)
def test_another_network_is_rejected(checkpoints: Checkpoints, like: dict[str, Any], message: str) -> None:
    checkpoints.save(1, {"a": np.zeros(3)}, {})
    with pytest.raises(CheckpointMismatch, match=f"another network, design or version of macro-placement: {message}"):
        checkpoints.restore(like)


def test_a_checkpoint_of_an_older_format_is_rejected_with_a_remedy(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "FORMAT", 1)
        checkpoints.save(1, {"a": np.zeros(3)}, {})
    for read in (checkpoints.record, lambda: checkpoints.restore({"a": np.zeros(3)})):
        with pytest.raises(CheckpointMismatch, match=r"/1: has format version 1; .* give another run_dir"):
            read()


def test_many_differences_are_counted(checkpoints: Checkpoints) -> None:
    checkpoints.save(1, _tree(width=3), {})
    with pytest.raises(CheckpointMismatch, match=r"kernel.*float32 \[3, 2\], expected float32 \[4, 2\]"):
        checkpoints.restore(_tree(width=4))


def _data_files(folder: Path) -> list[Path]:
    return sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: -path.stat().st_size)


@pytest.mark.parametrize("damage", ["cut", "flipped", "removed", "record"])
def test_damage_is_reported_and_the_one_before_is_taken(
    checkpoints: Checkpoints, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    values = np.random.default_rng(0).normal(size=5000)
    checkpoints.save(1, {"a": values}, {})
    checkpoints.save(2, {"a": values + 1}, {})
    _damage(tmp_path / "checkpoints" / "2", damage)
    with pytest.raises(CheckpointDamaged, match=str(tmp_path / "checkpoints" / "2")):
        checkpoints.restore({"a": values}, step=2)
    with caplog.at_level(logging.WARNING):
        restored = checkpoints.restore({"a": values})
    assert restored.step == 1
    np.testing.assert_array_equal(restored.tree["a"], values)
    assert "trying the previous checkpoint" in caplog.text
    _damage(tmp_path / "checkpoints" / "1", damage)
    with pytest.raises(CheckpointDamaged):
        checkpoints.restore({"a": values})


def _damage(folder: Path, how: str) -> None:
    largest = _data_files(folder / "tree")[0]
    content = bytearray(largest.read_bytes())
    if how == "cut":
        largest.write_bytes(content[: len(content) // 2])
    elif how == "flipped":
        content[len(content) // 2] ^= 0xFF
        largest.write_bytes(content)
    elif how == "removed":
        shutil.rmtree(folder / "tree")
    else:
        for path in _data_files(folder / "record"):
            path.write_bytes(b"{")


def test_a_save_that_was_interrupted_is_not_seen(checkpoints: Checkpoints, tmp_path: Path) -> None:
    checkpoints.save(1, {"a": np.arange(3)}, {})
    checkpoints.close()
    finished = tmp_path / "checkpoints" / "1"
    unfinished = tmp_path / "checkpoints" / "2.orbax-checkpoint-tmp-0"
    shutil.copytree(finished, unfinished)
    reader = Checkpoints(tmp_path / "checkpoints", read_only=True)
    assert reader.steps() == [1]
    assert unfinished.exists(), "a reader cleaned up what a running training may be writing"
    reader.close()
    other = Checkpoints(tmp_path / "checkpoints")
    assert other.steps() == [1]
    other.save(2, {"a": np.arange(3)}, {})
    assert not unfinished.exists()
    assert other.steps() == [1, 2]
    other.close()
