"""The pool inside JAX programs produces the trajectories of the NumPy interface."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from placement.config import EnvConfig
from placement.engine import _native
from placement.engine.pool import make_pool
from tests.support.designs import four_macros, random_design, square_canvas

CALLS = 14
NONE = EnvConfig(soft_placer="none")
CALLBACK = [
    pytest.param(False, id="foreign", marks=pytest.mark.skipif(not _native.XLA_HANDLERS, reason="built without XLA")),
    pytest.param(True, id="callback"),
]


needs_two = pytest.mark.skipif(len(jax.devices()) < 2, reason="needs two devices; tests/conftest.py asks for them")


def designs():
    return [four_macros(), random_design(3, canvas=square_canvas(9, 7))]


def first_legal(mask):
    """Returns the first legal gcell of each, int32 [B]; 0 if there is none."""
    return jnp.argmax(mask.reshape(mask.shape[0], -1), axis=1).astype(jnp.int32)


def looped(pool, callback):
    """Returns rewards, maps' sums and steps of CALLS calls inside one compiled loop."""
    handle, _, _, step = pool.xla(callback=callback)
    mask = jnp.asarray(pool.reset()[0]["mask"])
    size = pool.num_envs

    @jax.jit
    def run(handle, mask):
        def body(i, carry):
            handle, mask, rewards, sums, steps = carry
            handle, (observation, reward, _, _, info) = step(handle, first_legal(mask))
            sums = sums.at[i].set(observation["maps"].sum(axis=(1, 2, 3)))
            steps = steps.at[i].set(info["elapsed_step"])
            return handle, observation["mask"], rewards.at[i].set(reward), sums, steps

        empty = jnp.zeros((CALLS, size))
        return jax.lax.fori_loop(0, CALLS, body, (handle, mask, empty, empty, empty.astype(jnp.int32)))

    return [np.asarray(array) for array in run(handle, mask)]


@pytest.mark.parametrize("callback", CALLBACK)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_loop_in_a_program_plays_what_numpy_plays(callback: bool, threads: int) -> None:
    with make_pool(designs(), 4, num_threads=threads) as pool, make_pool(designs(), 4, num_threads=1) as plain:
        handle, mask, rewards, sums, steps = looped(pool, callback)
        assert handle[1] == CALLS
        expected = plain.reset()[0]["mask"]
        for call in range(CALLS):
            observation, reward, _, _, info = plain.step(np.asarray(first_legal(jnp.asarray(expected))))
            expected = observation["mask"]
            assert np.array_equal(rewards[call], reward)
            np.testing.assert_allclose(sums[call], observation["maps"].sum(axis=(1, 2, 3)), rtol=1e-5)
            assert np.array_equal(steps[call], info["elapsed_step"])
        assert np.array_equal(mask, expected)
        assert rewards.any()


@pytest.mark.parametrize("callback", CALLBACK)
def test_send_and_recv_in_asynchronous_mode(callback: bool) -> None:
    with make_pool(four_macros(), 5, batch_size=2, num_threads=2, config=NONE) as pool:
        pool.async_reset()
        handle, recv, send, _ = pool.xla(callback=callback)

        @jax.jit
        def turn(handle):
            handle, (observation, reward, _, _, info) = recv(handle)
            handle = send(handle, first_legal(observation["mask"]), info["env_id"])
            return handle, info["env_id"], observation["step"], reward

        counts: dict[int, list[int]] = {env: [] for env in range(5)}
        for _ in range(20):
            handle, env_id, step, _ = turn(handle)
            for env, placed in zip(env_id.tolist(), step.tolist(), strict=True):
                counts[env].append(placed)
        assert handle.tolist()[1] == 40
        for placed in counts.values():  # four_macros has three macros to place
            assert placed == [call % 4 for call in range(len(placed))]


@pytest.mark.parametrize("callback", CALLBACK)
def test_a_subset_in_a_program(callback: bool) -> None:
    with make_pool(designs(), 4, num_threads=1, config=NONE) as pool:
        mask = jnp.asarray(pool.reset()[0]["mask"])
        handle, _, _, step = pool.xla(callback=callback)
        ids = jnp.array([2, 0], jnp.int32)
        _, (_, _, _, truncated, info) = jax.jit(step)(handle, first_legal(mask[ids]), ids)
        assert info["env_id"].tolist() == [2, 0] and info["elapsed_step"].tolist() == [1, 1]
        assert truncated.tolist() == [False, False]


@pytest.mark.parametrize("callback", CALLBACK)
@pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint8, jnp.uint16, jnp.uint32])
def test_actions_in_a_program_are_integers_of_any_dtype(callback: bool, dtype) -> None:
    with make_pool(four_macros(), 2, num_threads=1, config=NONE) as pool:
        pool.reset()
        handle, _, _, step = pool.xla(callback=callback)
        _, (observation, *_) = jax.jit(step)(handle, jnp.array([12, 7], dtype))
        assert observation["step"].tolist() == [1, 1]


@pytest.mark.skipif(not _native.XLA_HANDLERS, reason="built without XLA")
def test_misuse_in_a_program_is_an_error_of_the_program() -> None:
    with make_pool(four_macros(), 2, num_threads=1) as pool:
        pool.reset()
        handle, recv, _, step = pool.xla()
        with pytest.raises(Exception, match="environment 1: action 99"):
            jax.block_until_ready(step(handle, jnp.array([12, 99], jnp.int32)))
        with pytest.raises(Exception, match="would wait forever"):
            jax.block_until_ready(recv(handle))
        with pytest.raises(Exception, match="environment 0: action 2147483647"):
            jax.block_until_ready(step(handle, jnp.array([2**32 - 1, 12], jnp.uint32)))
        with pytest.raises(TypeError, match="int32"):
            step(handle, jnp.zeros(2))
        pool.step(np.array([12, 12], np.int32))
    with pytest.raises(Exception, match="closed"):
        jax.block_until_ready(step(handle, jnp.array([12, 12], jnp.int32)))
    del pool
    with pytest.raises(Exception, match=r"no more|closed"):
        jax.block_until_ready(recv(handle))


def together(kind: str, callback: bool, run):
    """Maps `run` over the first axis of handles and masks by `kind`."""
    if kind == "vmap":
        return jax.jit(jax.vmap(run))
    if kind == "pmap":
        return jax.pmap(run, devices=jax.devices()[:2])
    each = jax.sharding.PartitionSpec("pools")

    def on_one_device(handles, masks):
        return jax.tree.map(lambda array: array[None], run(handles[0], masks[0]))

    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("pools",))
    # A callback's results have no varying axes.
    return jax.jit(jax.shard_map(on_one_device, mesh=mesh, in_specs=each, out_specs=each, check_vma=not callback))


@needs_two
@pytest.mark.parametrize("callback", CALLBACK)
@pytest.mark.parametrize("kind", ["vmap", "shard_map", "pmap"])
def test_one_program_plays_a_pool_on_each_device(kind: str, callback: bool) -> None:
    """Each pool, of another design, plays as it does alone."""
    one, other = (random_design(seed, canvas=square_canvas(9, 7)) for seed in (3, 5))
    steps = max(len(design.placing_order) for design in (one, other))
    with make_pool([one, other], 2, config=NONE, design_of_env=[0, 0], num_threads=1) as first, \
            make_pool([one, other], 2, config=NONE, design_of_env=[1, 1], num_threads=1) as second:  # fmt: skip
        step = first.xla(callback=callback).step
        handles = jnp.stack([pool.xla(callback=callback).handle for pool in (first, second)])
        masks = jnp.stack([jnp.asarray(pool.reset()[0]["mask"]) for pool in (first, second)])

        def run(handle, mask):
            def turn(carry, _):
                handle, (observation, reward, _, _, info) = step(carry[0], first_legal(carry[1]))
                return (handle, observation["mask"]), (observation["design"], reward, info["elapsed_step"])

            return jax.lax.scan(turn, (handle, mask), None, length=steps)

        (after, _), (designs, rewards, elapsed) = together(kind, callback, run)(handles, masks)
        assert np.asarray(after).tolist() == [[first.number, steps], [second.number, steps]]
        assert np.asarray(designs).tolist() == [[[0, 0]] * steps, [[1, 1]] * steps]
        for index, pool in enumerate((first, second)):
            mask = pool.reset()[0]["mask"]
            for turn in range(steps):
                observation, reward, _, _, info = pool.step(np.asarray(first_legal(jnp.asarray(mask))))
                mask = observation["mask"]
                assert np.array_equal(rewards[index, turn], reward)
                assert np.array_equal(elapsed[index, turn], info["elapsed_step"])
        assert np.asarray(rewards)[:, :, 0].any(axis=1).all()


@needs_two
@pytest.mark.parametrize("callback", CALLBACK)
def test_vmap_over_parts_of_a_pool(callback: bool) -> None:
    """Rows of environments of one synchronous pool, stepped one after the other."""
    with make_pool("toy6", 4, config=NONE, num_threads=1) as pool:
        handle, _, _, step = pool.xla(callback=callback)
        cells = first_legal(jnp.asarray(pool.reset()[0]["mask"]))
        rows = jnp.arange(4).reshape(2, 2)
        _, (observation, _, _, _, info) = jax.jit(jax.vmap(step, in_axes=(None, 0, 0)))(
            handle, cells.reshape(2, 2), rows
        )
        assert np.array_equal(info["env_id"], rows) and (np.asarray(observation["step"]) == 1).all()
        assert pool.observe()[0]["step"].tolist() == [1, 1, 1, 1]
