"""Nesterov's method with a step predicted from the gradient's Lipschitz constant, and the schedule around it.

Lu et al.: "ePlace", ACM TODAES 2015, algorithms 1 and 2, and section 5 for the smoothing and the density's weight.

Axis legend: M movable cells, J fillers; the leading axis 2 is x, y. Lengths in µm.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from placement.flat.objective import Forces, Model, forces, within

BACKTRACK = 0.95
"""A step is taken again, shorter, where the gradient at its end allows less than this part of it."""

APART = 2e-3
"""Cells fly apart where the wirelength rises by more than this share in one iteration while the overflow rises, too."""


class Schedule(NamedTuple):
    """How the weights change; a JAX tree of scalars.

    Attributes:
        gamma: µm, the wirelength's smoothing at an overflow of 0.1, as a unit.
        fastest, slowest: factors of the density's weight per iteration.
        rise: rise of the wirelength in one iteration, as a share of it, at which the weight stands still.
        stop: overflow at which to stop.
        least, most: iterations at least and at most.
    """

    gamma: float
    fastest: float
    slowest: float
    rise: float
    stop: float
    least: int
    most: int


class State(NamedTuple):
    """Where the method stands; a JAX tree.

    Attributes:
        major, reference: float32 [2, M+J], u and v of the method.
        forces: at `reference`.
        momentum: float32, a of the method.
        step: float32.
        weight: float32, of the density.
        iteration: int32.
    """

    major: jax.Array
    reference: jax.Array
    forces: Forces
    momentum: jax.Array
    step: jax.Array
    weight: jax.Array
    iteration: jax.Array


def per_gamma(schedule: Schedule, overflow: jax.Array) -> jax.Array:
    """1/γ, 1/µm: the smoothing falls tenfold as the overflow falls by 0.45 (ePlace, equation 38)."""
    return 1 / (schedule.gamma * 10 ** (20 / 9 * (jnp.clip(overflow, 0, 1) - 0.1)))


def preconditioned(model: Model, at: Forces, weight: jax.Array) -> jax.Array:
    """The gradient over an estimate of the Hessian's diagonal (ePlace, section 5.3); float32 [2, M+J]."""
    return (at.wirelength + weight * at.density) / jnp.maximum(model.pins + weight * model.area, 1.0)


@jax.jit
def begin(model: Model, at: jax.Array, schedule: Schedule, balance: jax.Array) -> State:
    """The state at positions `at`; the density's first force is `balance` times that of the wirelength."""
    at = within(model, at)
    found = forces(model, at, per_gamma(schedule, jnp.float32(1.0)))
    found = forces(model, at, per_gamma(schedule, found.overflow))
    cells = model.cells.charge.shape[0]
    push = jnp.abs(found.density[:, :cells]).sum()
    weight = balance * jnp.abs(found.wirelength).sum() / jnp.maximum(push, 1e-30)
    # The first step moves by a tenth of a bin on average.
    gradient = preconditioned(model, found, weight)
    step = 0.1 * jnp.sqrt(model.bin_area) / jnp.maximum(jnp.abs(gradient).mean(), 1e-30)
    return State(at, at, found, jnp.float32(1.0), step, weight, jnp.int32(0))


def _advance(model: Model, schedule: Schedule, state: State) -> State:
    """One iteration."""
    smoothing = per_gamma(schedule, state.forces.overflow)
    gradient = preconditioned(model, state.forces, state.weight)
    momentum = (1 + jnp.sqrt(4 * state.momentum**2 + 1)) / 2
    carry = (state.momentum - 1) / momentum

    def attempt(step: jax.Array) -> tuple[jax.Array, jax.Array, Forces, jax.Array]:
        major = within(model, state.reference - step * gradient)
        reference = within(model, major + carry * (major - state.major))
        found = forces(model, reference, smoothing)
        change = preconditioned(model, found, state.weight) - gradient
        allowed = jnp.linalg.norm(reference - state.reference) / jnp.maximum(jnp.linalg.norm(change), 1e-30)
        return major, reference, found, allowed

    def again(carried: tuple) -> tuple:
        tries, (_, _, _, allowed), _ = carried
        return tries + 1, attempt(allowed), allowed

    _, (major, reference, found, allowed), _ = jax.lax.while_loop(
        lambda c: (c[1][3] < BACKTRACK * c[2]) & (c[0] < 2), again, (0, attempt(state.step), state.step)
    )
    rise = (found.length - state.forces.length) / (schedule.rise * found.length)
    factor = jnp.clip(schedule.fastest ** (1 - rise), schedule.slowest, schedule.fastest)
    # Momentum that runs uphill is lost: cells that macros hold back would swing ever wider (O'Donoghue, Candès 2015).
    # They may be too few to turn the sum around; then it is the wirelength and the overflow that rise together.
    uphill = (gradient * (major - state.major)).sum() > 0
    apart = (found.length > (1 + APART) * state.forces.length) & (found.overflow > state.forces.overflow)
    momentum = jnp.where(uphill | apart, 1.0, momentum)
    return State(major, reference, found, momentum, allowed, state.weight * factor, state.iteration + 1)


@functools.partial(jax.jit, donate_argnums=2)
def advance(model: Model, schedule: Schedule, state: State, count: jax.Array) -> State:
    """Up to `count` iterations; fewer at the goal or at `schedule.most`."""
    last = jnp.minimum(state.iteration + count, schedule.most)
    return jax.lax.while_loop(
        lambda s: (s.iteration < last) & ((s.forces.overflow > schedule.stop) | (s.iteration < schedule.least)),
        lambda s: _advance(model, schedule, s),
        state,
    )
