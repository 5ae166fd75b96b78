"""When Nesterov's momentum is lost."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from placement.flat import nesterov
from placement.flat.core import Core
from placement.flat.global_placement import use_native
from placement.flat.grid import grid_for
from placement.flat.objective import Forces, Model, model
from placement.flat.problem import FlatProblem, flat_problem
from placement.netlist.generators.flat import FlatOptions, flat_draft

SCHEDULE = nesterov.Schedule(gamma=1.0, fastest=1.03, slowest=0.95, rise=0.01, stop=0.07, least=0, most=100)


def problem() -> FlatProblem:
    made = flat_draft(FlatOptions(cells=300, macros=2, ports=8, macro_pins=8), seed=1)
    return flat_problem(made.netlist, made.placement, Core(width=made.width, height=made.height))


@functools.cache
def begun() -> tuple[Model, nesterov.State]:
    """Cells strewn over the core, a few iterations on; arrays of NumPy, for an iteration takes JAX's own."""
    of = problem()
    whole = model(of, grid_for(of), fillers=np.zeros(0), density_limit=1.0, native=use_native(None))
    at = np.random.default_rng(0).uniform(0, [[of.core.width], [of.core.height]], (2, len(of.cells)))
    state = nesterov.begin(whole, jnp.asarray(at, jnp.float32), SCHEDULE, jnp.float32(1e-2))
    return whole, jax.tree.map(np.asarray, nesterov.advance(whole, SCHEDULE, state, jnp.int32(5)))


def one_more(forces: Forces) -> nesterov.State:
    """The next iteration, where the one before had `forces`."""
    whole, state = begun()
    return nesterov.advance(whole, SCHEDULE, jax.tree.map(jnp.asarray, state._replace(forces=forces)), jnp.int32(1))


@pytest.mark.parametrize(
    ("length", "overflow", "lost"), [(1.0, 1.0, False), (0.9, 0.9, True), (0.9, 1.1, False), (1.1, 0.9, False)]
)
def test_momentum_is_lost_where_wirelength_and_overflow_rise_together(
    length: float, overflow: float, lost: bool
) -> None:
    """The step is the same each time; what came before it is not."""
    before = begun()[1].forces
    after = one_more(before).forces
    other = before._replace(length=jnp.float32(length * after.length), overflow=jnp.float32(overflow * after.overflow))
    assert (float(one_more(other).momentum) == 1.0) == lost
