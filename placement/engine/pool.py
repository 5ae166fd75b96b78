"""Pools of environments that the engine steps: `make_pool`.

The contract is EnvPool's: `send` actions, `recv` the first `batch_size` results that are ready, or `step`, which does
both. Axis legend: B environments in a batch, K maps, R grid rows, C grid columns, T macros to place, each of the
largest design in the pool; N nodes.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.config import EnvConfig
from placement.engine import _native
from placement.engine.cost_terms import load_cost_term, load_reward
from placement.engine.costs import Costs
from placement.engine.drawn_designs import DesignMaker, DrawnDesigns
from placement.engine.native_design import native_design
from placement.engine.observation import ArraySpec, Integers, Result, int32_array, pool_spec
from placement.engine.state import IllegalAction, explain, naming_unplayable
from placement.engine.xla import TIMEOUT, PoolFunctions, pool_functions
from placement.netlist.design import Design, Placement
from placement.netlist.distribution import DesignDistribution
from placement.netlist.feasibility import turned_design
from placement.netlist.load import load

if TYPE_CHECKING:
    from gymnasium import spaces


class WorkerError(RuntimeError):
    """A step of environment `env_id` failed inside the engine. That environment has begun a new episode."""

    def __init__(self, env_id: int, message: str) -> None:
        super().__init__(message)
        self.env_id = env_id


@dataclasses.dataclass(frozen=True)
class PoolConfig:
    """Configuration of a pool, with the resolved `num_threads` and `batch_size`.

    If designs are drawn, `designs` describes the distribution and `design_of_env` holds the numbers of the first
    designs.
    """

    designs: tuple[str, ...]
    design_of_env: tuple[int, ...]
    num_envs: int
    batch_size: int
    num_threads: int
    thread_affinity_offset: int
    seed: int
    env: EnvConfig
    compact_maps: bool = False
    shape: tuple[int, int, int] = (0, 0, 0)


_OPEN: weakref.WeakSet[EnvironmentPool] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for pool in list(_OPEN):
        pool.close()


class EnvironmentPool:
    """Environments that each play one design repeatedly, stepped in C++ without the global interpreter lock.

    **Drawn designs.** With a distribution of designs, an environment gets a new one every `episodes_per_design`
    episodes; environment i of B plays the numbers i, i + B, i + 2·B … in order. A thread makes each environment's next
    design in the background. The first `reset` does not change the designs.

    **Two modes.** With `batch_size` below `num_envs`, `recv` returns the first `batch_size` results that are ready, of
    any environments, and `info["env_id"]` names them; send the next actions to those. With `batch_size` equal to
    `num_envs` (synchronous mode), a batch holds the results of one call, in the call's order, for all environments or
    any subset; it is bit-identical for any number of threads. The calling thread is one of them: with `num_threads=1`,
    `step` and `reset` use no other thread.

    **Automatic reset, next-step semantics.** The step that ends an episode returns its last observation, its reward and
    its costs. The *next* action sent to that environment is ignored: it begins the next episode and returns the first
    observation with reward 0, `terminated` False and `elapsed_step` 0.

    **Results** are `observation, reward, terminated, truncated, info`: observation a dict of arrays named as in
    `placement.engine.observation.Observation`; reward float32 [B]; terminated and truncated (always False) bool [B];
    info a dict of `env_id` int32 [B], `elapsed_step` int32 [B], `dead_end` bool [B], `costs` float64 [B, 5] (wirelength
    in µm; wirelength, density and congestion cost; total; NaN unless this step placed the last macro), and the true
    sizes of the environment's design, `rows`, `columns` and `macros` int32 [B]. The arrays are views of the engine's
    memory. The engine does not write to them while the program holds one of them.

    **Misuse** raises and leaves the pool usable: IllegalAction, ValueError, TypeError and IndexError for arguments;
    RuntimeError for the wrong state of the pool (a busy environment, nothing in flight, closed, forked); TimeoutError;
    WorkerError for a failure inside a step.

    Actions and environment numbers are integers of any dtype, or lists of ints. The environments hold no randomness of
    their own: `seed` governs `sample_actions` alone. Several threads may send while one receives. A pool cannot be used
    in a forked child.

    Attributes:
        designs: the designs played, their macros in allowed orientations, with the action grid of `env`. Drawn designs
            are made again on access, by `observation["design"]`.
        config: configuration of the pool.
        spec: specification of inputs and outputs.
        num_envs: number of environments.
        batch_size: number of results in a batch; in synchronous mode, as many as the call named.
        synchronous: whether each batch holds the results of one call.
        number: the pool's number in the engine's registry, for `xla`.
    """

    def __init__(self, designs: Sequence[Design] | DrawnDesigns, config: PoolConfig) -> None:
        """Use `make_pool`."""
        env = config.env
        drawn = designs if isinstance(designs, DrawnDesigns) else None
        self._reward = load_reward(env.reward)
        if drawn is not None:
            self.designs: Sequence[Design] = drawn
            first: Sequence[Design] = [drawn[number] for number in config.design_of_env]
        else:
            turned = map(turned_design, designs)
            self.designs = tuple(design.with_actions(env.action_scale, off_grid=env.off_grid) for design in turned)
            first = self.designs
        with naming_unplayable(first):
            self._native = _native.EnvironmentPool(
                designs=[native_design(design) for design in first],
                design_of_env=list(config.design_of_env),
                weights=tuple(env.cost.weights()),
                dead_end_penalty=env.dead_end_penalty,
                soft_placer=env.soft_placer,
                batch_size=config.batch_size,
                num_threads=config.num_threads,
                thread_affinity_offset=config.thread_affinity_offset,
                seed=config.seed,
                compact_maps=config.compact_maps,
                terms=[(term.address, term.weight) for term in map(load_cost_term, env.cost_terms)],
                episodes_per_design=drawn.distribution.episodes_per_design if drawn else 0,
                drawn_shape=drawn.shape if drawn else config.shape,
            )
        self.config = dataclasses.replace(
            config, batch_size=self._native.batch_size, num_threads=self._native.num_threads
        )
        nodes = drawn.distribution.bounds.nodes if drawn else None
        self.spec = pool_spec(self.designs, self._native.shape, nodes=nodes, compact_maps=config.compact_maps)
        self.num_envs, self.batch_size = self.config.num_envs, self.config.batch_size
        self.synchronous = self.batch_size == self.num_envs
        self.number: int = self._native.number
        self._all = np.arange(config.num_envs, dtype=np.int32)
        self._maker = DesignMaker(self._native, drawn, config.num_envs) if drawn else None
        if drawn is not None:  # nothing else ends the thread of a discarded pool
            weakref.finalize(self, self._native.close)
        _OPEN.add(self)

    @functools.cached_property
    def observation_space(self) -> spaces.Dict:
        """The observation of one environment as a Gymnasium space; needs Gymnasium."""
        from gymnasium import spaces

        return spaces.Dict({name: _space(spec) for name, spec in self.spec.observation.items()})

    @functools.cached_property
    def action_space(self) -> spaces.Discrete:
        """The action of one environment, row · C + column, as a Gymnasium space; needs Gymnasium."""
        from gymnasium import spaces

        return spaces.Discrete(self.spec.num_actions)

    @property
    def draws_designs(self) -> bool:
        """Whether designs come from a distribution; arrays must then not be sized by `len(designs)`."""
        return self._maker is not None

    @property
    def closed(self) -> bool:
        return self._native.closed

    @property
    def in_flight(self) -> int:
        """Number of results not yet received."""
        return self._native.in_flight

    def __len__(self) -> int:
        return self.num_envs

    def send(self, actions: Integers, env_id: Integers | None = None) -> None:
        """Takes one action in each of the environments `env_id` (integers [B]; None: all); does not wait.

        An environment may be named once and must not be in flight. The action (integers [B]) is ignored if the episode
        has ended. After IllegalAction, nothing was sent; for other errors see the class.
        """
        ids = self._ids(env_id)
        self._call(self._native.send, _actions(actions, len(ids)), ids)

    def recv(self, timeout: float | None = None) -> Result:
        """Returns the next batch, waiting at most `timeout` seconds (None: forever).

        Raises:
            RuntimeError: fewer results are in flight than a batch holds, or another thread receives.
            TimeoutError: no batch was ready in time; nothing is lost.
            WorkerError: a step failed; calling again receives the batch.
        """
        return self._shown(self._call(self._native.recv, _seconds(timeout)))

    def step(self, actions: Integers, env_id: Integers | None = None, *, timeout: float | None = None) -> Result:
        """Calls `send`, then `recv`; raises their errors."""
        ids = self._ids(env_id)
        return self._shown(self._call(self._native.step, _actions(actions, len(ids)), ids, _seconds(timeout)))

    def async_reset(self, env_id: Integers | None = None, *, seed: int | Sequence[int] | None = None) -> None:
        """Begins an episode in the environments `env_id` (None: all); `recv` returns their first observations.

        `seed` seeds their random numbers: environment i gets seed + i, or the i-th of a sequence. None may be in
        flight.
        """
        ids = self._ids(env_id)
        self._native.send_reset(ids, None if seed is None else _seeds(seed, ids))

    def reset(
        self,
        env_id: Integers | None = None,
        *,
        seed: int | Sequence[int] | None = None,
        timeout: float | None = None,
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Calls `async_reset`, then `recv`; returns observation and info of the batch, and raises their errors."""
        ids = self._ids(env_id)
        seeds = None if seed is None else _seeds(seed, ids)
        result = self._shown(self._call(self._native.reset, ids, seeds, _seconds(timeout)))
        return result[0], result[4]

    def sample_actions(self, env_id: Integers | None = None) -> np.ndarray:
        """Returns int32 [B]: a random legal action for each environment, -1 if its episode has ended.

        Drawn from each environment's own stream, which its seed determines; none may be in flight.
        """
        ids = self._ids(env_id)
        actions = np.empty(len(ids), np.int32)
        self._native.sample_actions(ids, actions)
        return actions

    def observe(self, env_id: Integers | None = None) -> Result:
        """Returns the current observations of idle environments (None: all) without changing anything."""
        return self._shown(self._native.observe(self._ids(env_id)))

    def snapshot(self, env_id: int) -> bytes:
        """Returns the state of an environment's current episode, including its random numbers.

        The bytes are portable across machines (`placement/engine/native/env/snapshot.hpp` describes them) and can be
        restored into any environment of the same design, in any pool.
        """
        return self._native.snapshot(self._one(env_id))

    def restore(self, env_id: int, state: bytes) -> None:
        """Sets an idle environment to the state of a snapshot; `observe` returns its observation.

        Raises ValueError, without changing anything, if the bytes are not a snapshot, are damaged, or belong to another
        design.
        """
        if not isinstance(state, (bytes, bytearray)):
            raise TypeError(f"state: must be bytes, not {type(state).__name__}")
        self._native.restore(self._one(env_id), bytes(state))

    def placement(self, env_id: int) -> Placement:
        """Returns the placement of an environment's last episode that placed every macro, soft macros included.

        With drawn designs, it belongs to the design in the observation of the step that ended that episode.

        Raises RuntimeError if there is no such episode yet or the environment is in flight.
        """
        found = self._native.last_placement(self._one(env_id))
        if found is None:
            which = "" if self.draws_designs else f" of {self.designs[self.config.design_of_env[env_id]].name!r}"
            raise RuntimeError(f"environment {env_id} has not placed all macros{which} in any episode yet")
        x, y = (np.array(values) for values in found[1:])
        initial = self.designs[found[0]].initial
        return Placement(x=x, y=y, orientation=initial.orientation, placed=np.ones(len(x), bool), fixed=initial.fixed)

    def thread_seconds(self) -> float:
        """CPU seconds of the pool's own threads, without the calling thread; NaN if the system does not report them."""
        return self._native.thread_seconds()

    def xla(self, *, callback: bool | None = None, timeout: float = TIMEOUT) -> PoolFunctions:
        """Returns handle, recv, send and step for JAX programs; see `placement.engine.xla.pool_functions`.

        Raises ValueError if the pool's maps are compact, or its reward is a Python function and `callback` is not True.
        """
        if self.config.compact_maps:
            raise ValueError("xla: does not support compact_maps=True; create the pool without it")
        if self._reward is not None and not callback:
            raise ValueError(f"xla: needs callback=True with env.reward={self.config.env.reward}, a Python function")
        return pool_functions(self, callback=callback, timeout=timeout)

    def close(self) -> None:
        """Ends the threads and discards what is in flight. May be called twice."""
        self._native.close()
        if self._maker is not None:
            self._maker.join()

    def __enter__(self) -> EnvironmentPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        config = self.config
        return (
            f"EnvironmentPool(designs={list(config.designs)}, num_envs={config.num_envs}, "
            f"batch_size={config.batch_size}, num_threads={config.num_threads}{', closed' if self.closed else ''})"
        )

    def _ids(self, env_id: Integers | None) -> np.ndarray:
        return self._all if env_id is None else int32_array("env_id", env_id, (None,))

    def _shown(self, result: Result) -> Result:
        """Returns the engine's result with the user-defined reward, and the raw bits of compact maps as bfloat16."""
        if self.config.compact_maps:
            result[0]["maps"] = result[0]["maps"].view(self.spec.observation["maps"].dtype)
        if self._reward is not None:
            _, reward, terminated, _, info = result
            for row in np.flatnonzero(terminated & ~info["dead_end"]):
                env, costs = int(info["env_id"][row]), Costs(*info["costs"][row].tolist())
                design = self.designs[int(result[0]["design"][row])]
                paid = reward[row] = float(self._reward(costs, design, self.placement(env)))
                if not np.isfinite(paid):
                    own = f"env.reward={self.config.env.reward}"
                    raise ValueError(f"{own}: returned {paid} for {design.name!r}: must be finite")
        return result

    def _one(self, env_id: int) -> int:
        if not 0 <= env_id < self.num_envs:
            raise IndexError(f"env_id: {env_id} must be in [0, {self.num_envs})")
        return int(env_id)

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Calls the engine and turns its rejections into explained errors."""
        try:
            return method(*arguments)
        except _native.IllegalActionError as error:
            action, rejection = error.args
            env, step, design = rejection[:3]
            reason = explain(self.designs[design], step, action, self.spec.columns, rejection)
            raise IllegalAction(f"environment {env}: {reason}") from None
        except _native.WorkerFailure as error:
            raise WorkerError(*error.args) from None


def make_pool(  # noqa: PLR0913  the public face: all but the first two have a default
    designs: Design | str | Sequence[Design | str] | DesignDistribution,
    num_envs: int,
    *,
    batch_size: int | None = None,
    num_threads: int = 0,
    thread_affinity_offset: int = -1,
    seed: int = 0,
    config: EnvConfig | None = None,
    design_of_env: Sequence[int] | None = None,
    compact_maps: bool = False,
    shape: tuple[int, int, int] = (0, 0, 0),
) -> EnvironmentPool:
    """Returns a pool of environments that the engine steps.

    Args:
        designs: one or more designs, or their names or paths; or a distribution to draw them from, such as
            `placement.SyntheticDesigns`.
        num_envs: number of environments.
        batch_size: results in a batch; None: `num_envs` (synchronous mode). Asynchronous pools are fastest with two to
            three times as many environments as the batch holds.
        num_threads: number of threads, at most `num_envs`; 0: one per core. 1 in synchronous mode: the calling thread.
        thread_affinity_offset: pins thread i to core offset + i; -1: no pinning.
        seed: seed of `sample_actions`.
        config: weights, dead-end penalty, soft placer.
        design_of_env: index into `designs` of each environment; None: round-robin.
        compact_maps: maps are bfloat16 instead of float32, which halves the transfer to an accelerator.
        shape: rows, columns and macros of an observation; zeros: those of the largest design.

    Example:
        >>> with placement.make_pool("toy6", num_envs=4) as pool:
        ...     observation, info = pool.reset()
        ...     observation, reward, terminated, truncated, info = pool.step(pool.sample_actions())
        >>> observation["step"].tolist()
        [1, 1, 1, 1]

    Raises:
        DesignError: a design cannot be read or played.
        ValueError: a number is out of range, or the soft placer is unknown.
    """
    if num_envs < 1:
        raise ValueError(f"num_envs={num_envs}: must be at least 1")
    if batch_size is not None and not 1 <= batch_size <= num_envs:
        raise ValueError(f"batch_size={batch_size}: must be in [1, {num_envs}], the number of environments")
    config = EnvConfig() if config is None else config
    loaded: DrawnDesigns | list[Design]
    if isinstance(designs, DesignDistribution):
        # Keep three per environment: the current design, the next one, and that of the last placement.
        loaded = DrawnDesigns(designs, config, kept=3 * num_envs)
        names: tuple[str, ...] = (repr(designs),)
        if design_of_env is not None:
            raise ValueError(
                "design_of_env: must be None with a distribution, from which each environment draws its designs"
            )
    else:
        several = [designs] if isinstance(designs, (Design, str)) else list(designs)
        loaded = [load(design) if isinstance(design, str) else design for design in several]
        names = tuple(design.name for design in loaded)
        if not loaded:
            raise ValueError("designs: at least one is needed")
    if design_of_env is None:
        design_of_env = [index % len(loaded) for index in range(num_envs)]
    if len(design_of_env) != num_envs or not all(0 <= index < len(loaded) for index in design_of_env):
        raise ValueError(f"design_of_env: must be {num_envs} indices in [0, {len(loaded)})")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed={seed}: must be in [0, 2⁶⁴)")
    made = PoolConfig(
        designs=names,
        design_of_env=tuple(int(index) for index in design_of_env),
        num_envs=num_envs,
        batch_size=batch_size or num_envs,
        num_threads=num_threads,
        thread_affinity_offset=thread_affinity_offset,
        seed=seed,
        env=config,
        compact_maps=compact_maps,
        shape=shape,
    )
    return EnvironmentPool(loaded, made)


def _space(spec: ArraySpec) -> spaces.Space:
    from gymnasium import spaces

    if not spec.shape:
        return spaces.Discrete(int(spec.high) + 1, dtype=spec.dtype.type)
    low, high = (np.full(spec.shape, bound, spec.dtype) for bound in (spec.low, spec.high))
    return with_short_bounds(spaces.Box(low, high, dtype=spec.dtype.type))


def with_short_bounds(space: spaces.Box) -> spaces.Box:
    """Returns the same space with a `repr` that shows the lowest and highest bound instead of whole arrays."""
    space.low_repr, space.high_repr = str(space.low.min()), str(space.high.max())
    return space


def _actions(actions: Integers, count: int) -> np.ndarray:
    return int32_array("actions", actions, (count,), beyond=IllegalAction)


def _seconds(timeout: float | None) -> float:
    if timeout is None:
        return -1.0
    if not timeout >= 0:
        raise ValueError(f"timeout={timeout}: must be at least 0 seconds, or None")
    return float(timeout)


def _seeds(seed: int | Sequence[int], ids: np.ndarray) -> np.ndarray:
    """Returns the seeds of environments, uint64 [B]; raises ValueError for another number of seeds."""
    if isinstance(seed, (int, np.integer)):
        return (ids.astype(np.uint64) + np.uint64(seed)).astype(np.uint64)
    if len(seed) != len(ids):
        raise ValueError(f"seed: {len(seed)} seeds for {len(ids)} environments")
    return np.array(seed, np.uint64)
