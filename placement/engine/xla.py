"""The pool inside JAX programs: `pool.xla()`.

Axis legend: B environments in a batch. JAX is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from placement.engine import _native
from placement.engine.pool_types import PoolSpec, Result

if TYPE_CHECKING:
    import jax

TIMEOUT = 600.0
_OBSERVATION = ("design", "step", "mask", "maps", "x", "y")
_RESULTS = (*_OBSERVATION, "reward", "terminated", "dead_end", "costs", "elapsed_step", "env_id")
_registered = False


class Pool(Protocol):
    """What is needed of `placement.engine.pool.EnvironmentPool`."""

    spec: PoolSpec
    number: int
    num_envs: int
    batch_size: int
    synchronous: bool

    def send(self, actions: np.ndarray, env_id: np.ndarray | None = None) -> None:
        """Takes actions."""

    def recv(self, timeout: float | None = None) -> Result:
        """The next batch."""

    def step(self, actions: np.ndarray, env_id: np.ndarray | None = None, *, timeout: float | None = None) -> Result:
        """Both."""


class PoolFunctions(NamedTuple):
    """What a JAX program plays a pool with; each function returns the handle for the next call.

    Attributes:
        handle: uint32 [2]; passing it on from call to call is what keeps the calls in order.
        recv: ``recv(handle) -> handle, result``; in synchronous mode ``recv(handle, size)`` for a call of fewer
            environments than all.
        send: ``send(handle, actions, env_id=None) -> handle``.
        step: ``step(handle, actions, env_id=None) -> handle, result``.

    A result is what `EnvironmentPool.recv` returns, as JAX arrays; the costs are float32 and `info` has no true sizes.
    """

    handle: jax.Array
    recv: Callable[..., Any]
    send: Callable[..., Any]
    step: Callable[..., Any]


def pool_functions(pool: Pool, *, callback: bool | None = None, timeout: float = TIMEOUT) -> PoolFunctions:
    """The functions for `pool`, for use inside `jax.jit` and control flow.

    Args:
        pool: stays the caller's: it must live, and be closed, outside the program.
        callback: whether to go through a host callback instead of XLA's foreign function interface. None: where the
            default backend is no CPU, or the engine was built without XLA's headers.
        timeout: seconds that a batch is waited for, before the program fails.
    """
    import jax

    if callback is None:
        callback = jax.default_backend() != "cpu" or not _native.XLA_HANDLERS
    calls = _CallbackCalls(pool, timeout) if callback else _ForeignCalls(pool, timeout)

    def ids(env_id: Any) -> Any:
        return jax.numpy.arange(pool.num_envs, dtype=np.int32) if env_id is None else env_id

    def send(handle: Any, actions: Any, env_id: Any = None) -> Any:
        return calls.send(handle, _int32(actions), _int32(ids(env_id)))

    def recv(handle: Any, size: int | None = None) -> Any:
        if size is not None and not pool.synchronous and size != pool.batch_size:
            raise ValueError(f"recv: size={size}, the pool's batches hold {pool.batch_size}")
        return _structured(calls.recv(handle, pool.batch_size if size is None else size))

    def step(handle: Any, actions: Any, env_id: Any = None) -> Any:
        chosen = _int32(ids(env_id))
        size = chosen.shape[0] if pool.synchronous else pool.batch_size
        return _structured(calls.step(handle, _int32(actions), chosen, size))

    return PoolFunctions(jax.numpy.array([pool.number, 0], np.uint32), recv, send, step)


def _int32(array: Any) -> Any:
    """`array` as a JAX array; raises TypeError or ValueError unless it is int32 [B]."""
    import jax

    array = jax.numpy.asarray(array)
    if array.dtype != np.int32:
        raise TypeError(f"actions and env_id must be of dtype int32, not {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"actions and env_id must have one axis, not shape {list(array.shape)}")
    return array


def _structured(outputs: Any) -> Any:
    """Handle and result from the flat outputs of a call."""
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
    batch = [jax.ShapeDtypeStruct((size, *shapes[name][0]), shapes[name][1]) for name in _RESULTS]
    return [jax.ShapeDtypeStruct((2,), np.uint32), *batch]


class _ForeignCalls:
    """Calls through XLA's foreign function interface, on the CPU."""

    def __init__(self, pool: Pool, timeout: float) -> None:
        global _registered
        import jax

        if not _native.XLA_HANDLERS:
            raise RuntimeError("xla: the engine was built without XLA's headers; install jaxlib and build it again")
        if not _registered:
            for name, handler in _native.XLA_HANDLERS.items():
                jax.ffi.register_ffi_target(name, handler, platform="cpu")
            _registered = True
        self._pool, self._timeout = pool, np.float64(timeout)

    def send(self, handle: Any, actions: Any, env_id: Any) -> Any:
        import jax

        shape = jax.ShapeDtypeStruct((2,), np.uint32)
        return jax.ffi.ffi_call("placement_pool_send", shape, has_side_effect=True)(handle, actions, env_id)

    def recv(self, handle: Any, size: int) -> Any:
        import jax

        call = jax.ffi.ffi_call("placement_pool_recv", _result_shapes(self._pool, size), has_side_effect=True)
        return call(handle, timeout=self._timeout)

    def step(self, handle: Any, actions: Any, env_id: Any, size: int) -> Any:
        import jax

        call = jax.ffi.ffi_call("placement_pool_step", _result_shapes(self._pool, size), has_side_effect=True)
        return call(handle, actions, env_id, timeout=self._timeout)


class _CallbackCalls:
    """Calls through the host, on any backend."""

    def __init__(self, pool: Pool, timeout: float) -> None:
        self._pool, self._timeout = pool, timeout

    def send(self, handle: Any, actions: Any, env_id: Any) -> Any:
        import jax
        from jax.experimental import io_callback

        def on_host(handle: Any, actions: Any, env_id: Any) -> np.ndarray:
            self._pool.send(np.asarray(actions), np.asarray(env_id))
            return _after(handle)

        return io_callback(on_host, jax.ShapeDtypeStruct((2,), np.uint32), handle, actions, env_id)

    def recv(self, handle: Any, size: int) -> Any:
        from jax.experimental import io_callback

        def on_host(handle: Any) -> list[np.ndarray]:
            return [_after(handle), *_flat(self._pool.recv(self._timeout), size)]

        return io_callback(on_host, _result_shapes(self._pool, size), handle)

    def step(self, handle: Any, actions: Any, env_id: Any, size: int) -> Any:
        from jax.experimental import io_callback

        def on_host(handle: Any, actions: Any, env_id: Any) -> list[np.ndarray]:
            result = self._pool.step(np.asarray(actions), np.asarray(env_id), timeout=self._timeout)
            return [_after(handle), *_flat(result, size)]

        return io_callback(on_host, _result_shapes(self._pool, size), handle, actions, env_id)


def _after(handle: Any) -> np.ndarray:
    return np.asarray(handle) + np.array([0, 1], np.uint32)


def _flat(result: Any, size: int) -> list[np.ndarray]:
    observation, reward, terminated, _, info = result
    if len(reward) != size:
        raise ValueError(f"the batch holds {len(reward)} results, the program was made for {size}")
    named = {**observation, "reward": reward, "terminated": terminated, **info}
    named["costs"] = named["costs"].astype(np.float32)
    return [named[name] for name in _RESULTS]
