"""The two forces on cells and fillers: wirelength pulls, the density's field pushes.

Axis legend: M movable cells, J fillers, X bins across, Y bins up; the leading axis 2 is x, y.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from placement.flat import density, native_sums, spectral, wirelength
from placement.flat.density import Shapes
from placement.flat.grid import Grid, blocked_share
from placement.flat.problem import FlatProblem, Nets
from placement.flat.wirelength import BlockedNets


class Forces(NamedTuple):
    """The forces at one place, and what is known of it.

    Attributes:
        wirelength: float32 [2, M+J], gradient of the weighted-average wirelength.
        density: float32 [2, M+J], gradient of the potential energy, µm³.
        length: float32, half-perimeter wirelength, µm.
        overflow: float32, share of the cells' area in bins beyond their free area.
    """

    wirelength: jax.Array
    density: jax.Array
    length: jax.Array
    overflow: jax.Array


class Model(NamedTuple):
    """What the forces depend on besides the positions; a JAX tree.

    Attributes:
        nets: as `Nets` for the engine's sums, as `BlockedNets` for JAX's.
        cells, fillers: the rectangles on the grid.
        free: float32 [X, Y], share of each bin that cells may fill.
        fixed: float32 [X, Y], charge of what stands in each bin; with `free` it makes the same sum in every bin.
        spectrum: of the grid.
        scale: float32 [2, 1], bins per µm.
        half: float32 [2, M+J], how far centres keep from the core's edge, µm.
        side: float32 [2, 1], the core's width and height, µm.
        bin_area: float32, µm².
        pins: float32 [M+J], weighted net pins of each cell.
        area: float32 [M+J], µm².
    """

    nets: Nets | BlockedNets
    cells: Shapes
    fillers: Shapes
    free: jax.Array
    fixed: jax.Array
    spectrum: spectral.Spectrum
    scale: jax.Array
    half: jax.Array
    side: jax.Array
    bin_area: jax.Array
    pins: jax.Array
    area: jax.Array


def model(problem: FlatProblem, grid: Grid, *, fillers: np.ndarray, density_limit: float, native: bool) -> Model:
    """The model of `problem` on a grid.

    Args:
        problem: cells and what stands.
        grid: the bins.
        fillers: float [J], the sides of square fillers, µm.
        density_limit: share of the free room that cells may fill.
        native: sums by the engine.
    """
    width, height = np.concatenate([problem.width, fillers]), np.concatenate([problem.height, fillers])
    half_x = np.minimum(np.maximum(width / 2, grid.bin_width * np.sqrt(0.5)), grid.width / 2)
    half_y = np.minimum(np.maximum(height / 2, grid.bin_height * np.sqrt(0.5)), grid.height / 2)
    nets = problem.nets
    pin_weight = np.repeat(nets.weight, np.diff(nets.start))
    pins = np.bincount(nets.pin_cell, pin_weight, len(problem.cells) + 1)[:-1]
    f32 = jnp.float32
    blocked = blocked_share(problem.fixed, grid)
    return Model(
        nets=jax.tree.map(jnp.asarray, nets) if native else wirelength.blocked_nets(nets),
        cells=density.shapes(problem.width, problem.height, grid),
        fillers=density.shapes(fillers, fillers, grid),
        free=jnp.asarray(density_limit * (1 - blocked), f32),
        fixed=jnp.asarray(density_limit * blocked, f32),
        spectrum=spectral.spectrum((grid.across, grid.up), grid.width, grid.height),
        scale=jnp.asarray([[1 / grid.bin_width], [1 / grid.bin_height]], f32),
        half=jnp.asarray(np.stack([half_x, half_y]), f32),
        side=jnp.asarray([[grid.width], [grid.height]], f32),
        bin_area=jnp.asarray(grid.bin_area, f32),
        pins=jnp.asarray(np.concatenate([pins, np.zeros(len(fillers))]), f32),
        area=jnp.asarray(width.astype(np.float64) * height, f32),
    )


def within(model: Model, at: jax.Array) -> jax.Array:
    """Positions [2, M+J] moved into the core, so that every drawn rectangle lies inside."""
    return jnp.clip(at, model.half, model.side - model.half)


def forces(model: Model, at: jax.Array, per_gamma: jax.Array) -> Forces:
    """The forces at positions `at` (float32 [2, M+J], µm); `per_gamma`: 1/µm."""
    cells = model.cells.charge.shape[0]
    sums = native_sums if isinstance(model.nets, Nets) else density
    spread, gather = sums.spread, sums.gather
    if isinstance(model.nets, Nets):
        pull_x, pull_y, length = native_sums.weighted_average(model.nets, at[0, :cells], at[1, :cells], per_gamma)
    else:
        pull_x, pull_y, length = wirelength.weighted_average(model.nets, at[0, :cells], at[1, :cells], per_gamma)
    x, y = at * model.scale
    used = spread(model.cells, x[:cells], y[:cells], jnp.zeros_like(model.free))
    over = jnp.maximum(used - model.free, 0).sum() / model.cells.charge.sum()
    full = spread(model.fillers, x[cells:], y[cells:], used + model.fixed)
    field_x, field_y = spectral.field(full, model.spectrum)
    cell_x, cell_y = gather(model.cells, x[:cells], y[:cells], field_x, field_y)
    filler_x, filler_y = gather(model.fillers, x[cells:], y[cells:], field_x, field_y)
    none = jnp.zeros_like(filler_x)
    push = jnp.stack([jnp.concatenate([cell_x, filler_x]), jnp.concatenate([cell_y, filler_y])])
    pull = jnp.stack([jnp.concatenate([pull_x, none]), jnp.concatenate([pull_y, none])])
    return Forces(pull, -push * model.bin_area, length, over)
