"""The pool inside JAX programs: `pool.xla()`.

A handle carries the number of its pool, by which a call finds the pool. One program can therefore play several pools:
sequentially under `jax.vmap` over their handles; concurrently, one per device, under `jax.shard_map` and `jax.pmap`.

Axis legend: B environments in a batch. JAX is imported on first use.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from placement.engine import _native
from placement.engine.observation import PoolSpec, Result

if TYPE_CHECKING:
    import jax

TIMEOUT = 600.0
_OBSERVATION = ("design", "step", "mask", "maps", "x", "y")
_RESULTS = (*_OBSERVATION, "reward", "terminated", "dead_end", "costs", "elapsed_step", "env_id")


_POOLS: weakref.WeakValueDictionary[int, Pool] = weakref.WeakValueDictionary()
"""Pools by number, for callbacks; the engine has a separate registry."""


class Pool(Protocol):
    """The interface of `placement.engine.pool.EnvironmentPool` that this module uses."""

    spec: PoolSpec
    number: int
    num_envs: int
    batch_size: int
    synchronous: bool

    def send(self, actions: np.ndarray, env_id: np.ndarray | None = None) -> None: ...

    def recv(self, timeout: float | None = None) -> Result: ...

    def step(
        self, actions: np.ndarray, env_id: np.ndarray | None = None, *, timeout: float | None = None
    ) -> Result: ...


class PoolFunctions(NamedTuple):
    """Functions with which a JAX program plays a pool; each returns the handle for the next call.

    Attributes:
        handle: uint32 [2]; each call takes the handle of the call before, which keeps the calls in order.
        recv: ``recv(handle) -> handle, result``; in synchronous mode ``recv(handle, size)`` for a call of fewer
            environments than all.
        send: ``send(handle, actions, env_id=None) -> handle``.
        step: ``step(handle, actions, env_id=None) -> handle, result``.

    A result is that of `EnvironmentPool.recv` as JAX arrays; the costs are float32 and `info` has no true sizes. The
    functions play the pool of the handle, provided that its batches have the same shapes; for `jax.vmap`,
    `jax.shard_map` and `jax.pmap` see docs/how-to/other-learners.md.
    """

    handle: jax.Array
    recv: Callable[..., Any]
    send: Callable[..., Any]
    step: Callable[..., Any]


def pool_functions(pool: Pool, *, callback: bool | None = None, timeout: float = TIMEOUT) -> PoolFunctions:
    """Returns the functions for `pool`, for use inside `jax.jit` and control flow.

    Args:
        pool: remains owned by the caller: it must live, and be closed, outside the program.
        callback: whether to use a host callback instead of XLA's foreign function interface. None: only if the default
            backend is not the CPU, or the engine was built without XLA's headers.
        timeout: seconds to wait for a batch before the program fails.
    """
    import jax

    if callback is None:
        callback = jax.default_backend() != "cpu" or not _native.XLA_HANDLERS
    _POOLS[pool.number] = pool
    call = _through_the_host(timeout) if callback else _in_the_engine(timeout)
    next_handle = jax.ShapeDtypeStruct((2,), np.uint32)

    def ids(env_id: Any) -> Any:
        return _int32(jax.numpy.arange(pool.num_envs) if env_id is None else env_id)

    def send(handle: Any, actions: Any, env_id: Any = None) -> Any:
        return call("send", [next_handle], handle, _int32(actions), ids(env_id))[0]

    def recv(handle: Any, size: int | None = None) -> Any:
        if size is not None and not pool.synchronous and size != pool.batch_size:
            raise ValueError(f"recv: size={size}, the pool's batches hold {pool.batch_size}")
        shapes = _result_shapes(pool, pool.batch_size if size is None else size)
        return _structured(call("recv", [next_handle, *shapes], handle))

    def step(handle: Any, actions: Any, env_id: Any = None) -> Any:
        chosen = ids(env_id)
        shapes = _result_shapes(pool, chosen.shape[0] if pool.synchronous else pool.batch_size)
        return _structured(call("step", [next_handle, *shapes], handle, _int32(actions), chosen))

    return PoolFunctions(jax.numpy.array([pool.number, 0], np.uint32), recv, send, step)


def _int32(array: Any) -> Any:
    """Returns `array` as int32 [B]; raises TypeError unless it holds integers, ValueError for another shape."""
    import jax

    array = jax.numpy.asarray(array)
    if not jax.numpy.issubdtype(array.dtype, np.integer):
        raise TypeError(f"actions and env_id must be integers, such as int32, not {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"actions and env_id must have one axis, not shape {list(array.shape)}")
    # Values outside int32 saturate to its limits, which are out of range as well.
    own, limits = np.iinfo(array.dtype), np.iinfo(np.int32)
    low, high = max(own.min, limits.min), min(own.max, limits.max)
    return jax.numpy.clip(array, low, high).astype(np.int32)


def _structured(outputs: Any) -> Any:
    """Builds handle and result from the flat outputs of a call."""
    import jax

    handle, *arrays = outputs
    named = dict(zip(_RESULTS, arrays, strict=True))
    observation = {name: named.pop(name) for name in _OBSERVATION}
    reward, terminated = named.pop("reward"), named.pop("terminated")
    return handle, (observation, reward, terminated, jax.numpy.zeros_like(terminated), named)


def _result_shapes(pool: Pool, size: int) -> list[jax.ShapeDtypeStruct]:
    import jax

    shapes: dict[str, tuple[Any, Any]] = {
        name: (spec.shape, spec.dtype) for name, spec in pool.spec.observation.items()
    }
    shapes |= {"reward": ((), np.float32), "terminated": ((), np.bool_), "dead_end": ((), np.bool_)}
    shapes |= {"costs": ((5,), np.float32), "elapsed_step": ((), np.int32), "env_id": ((), np.int32)}
    return [jax.ShapeDtypeStruct((size, *shapes[name][0]), shapes[name][1]) for name in _RESULTS]


def _in_the_engine(timeout: float) -> Callable[..., Any]:
    """Calls the pool through XLA's foreign function interface, on the CPU."""
    import jax

    if not _native.XLA_HANDLERS:
        raise RuntimeError("xla: the engine was built without XLA's headers; install jaxlib and rebuild it")
    _register_handlers()

    def call(name: str, shapes: list[jax.ShapeDtypeStruct], *inputs: Any) -> Any:
        attributes = {} if name == "send" else {"timeout": np.float64(timeout)}
        target = f"placement_pool_{name}"
        called = jax.ffi.ffi_call(target, shapes, has_side_effect=True, vmap_method="sequential")
        return called(*inputs, **attributes)

    return call


@functools.cache
def _register_handlers() -> None:
    import jax

    for name, handler in _native.XLA_HANDLERS.items():
        jax.ffi.register_ffi_target(name, handler, platform="cpu")


def _through_the_host(timeout: float) -> Callable[..., Any]:
    """Calls the pool through Python, on any backend."""
    from jax.experimental import io_callback

    def call(name: str, shapes: list[jax.ShapeDtypeStruct], *inputs: Any) -> Any:
        def on_host(handle: Any, *inputs: Any) -> list[np.ndarray]:
            arrays = [np.asarray(array) for array in inputs]
            after = np.asarray(handle) + np.array([0, 1], np.uint32)
            pool = _POOLS.get(int(after[0]))
            if pool is None:
                raise RuntimeError("the pool of this handle no longer exists")
            if name == "send":
                pool.send(*arrays)
                return [after]
            result = pool.recv(timeout) if name == "recv" else pool.step(*arrays, timeout=timeout)
            return [after, *_flat(result, shapes[1].shape[0])]

        return io_callback(on_host, shapes, *inputs)

    return call


def _flat(result: Any, size: int) -> list[np.ndarray]:
    observation, reward, terminated, _, info = result
    if len(reward) != size:
        raise ValueError(f"the batch has {len(reward)} results; the program was compiled for {size}")
    named = {**observation, "reward": reward, "terminated": terminated, **info}
    named["costs"] = named["costs"].astype(np.float32)
    return [named[name] for name in _RESULTS]
