"""The inner sums in the C++ engine, for programs on the CPU: what `wirelength` and `density` compute in JAX."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from placement.flat import _sums
from placement.flat.density import Shapes
from placement.flat.problem import Nets


@functools.cache
def available() -> bool:
    """Whether the engine was built with XLA's headers; makes its calls known to JAX."""
    for name, handler in _sums.XLA_HANDLERS.items():
        jax.ffi.register_ffi_target(name, handler, platform="cpu")
    return bool(_sums.XLA_HANDLERS)


def weighted_average(
    nets: Nets, x: jax.Array, y: jax.Array, per_gamma: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """As `wirelength.weighted_average`."""
    cells = jax.ShapeDtypeStruct(x.shape, np.float32)
    call = jax.ffi.ffi_call("placement_flat_wirelength", (cells, cells, jax.ShapeDtypeStruct((), np.float32)))
    zero = jnp.zeros(1, np.float32)
    gradient_x, gradient_y, length = call(
        jnp.concatenate([x, zero]),
        jnp.concatenate([y, zero]),
        nets.start,
        nets.pin_cell,
        nets.pin_x,
        nets.pin_y,
        nets.weight,
        nets.cell_start,
        nets.cell_pins,
        jnp.asarray(per_gamma, np.float32),
    )
    return gradient_x, gradient_y, length


def spread(drawn: Shapes, x: jax.Array, y: jax.Array, onto: jax.Array) -> jax.Array:
    """As `density.spread`."""
    result = jax.ShapeDtypeStruct(onto.shape, np.float32)
    call = jax.ffi.ffi_call("placement_flat_spread", result, input_output_aliases={5: 0})
    return call(x, y, drawn.half_width, drawn.half_height, drawn.charge, onto)


def gather(
    drawn: Shapes, x: jax.Array, y: jax.Array, map_x: jax.Array, map_y: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """As `density.gather`."""
    cells = jax.ShapeDtypeStruct(x.shape, np.float32)
    call = jax.ffi.ffi_call("placement_flat_gather", (cells, cells))
    mean_x, mean_y = call(x, y, drawn.half_width, drawn.half_height, drawn.charge, map_x, map_y)
    return mean_x, mean_y
