"""What the decoder sees of each grid cell: the observation's maps made comparable, and cheap geometry.

Nothing here has parameters, so nothing here costs a backward pass.

Axis legend: B samples, K pulls, T macros, U guides, R grid rows, C grid columns, L map channels, V global values.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.policy.precision import product_dtype, rounded

GUIDES = ("wire", "direct", "sequential", "edge", "room")
"""Priors that a macro may follow, cell by cell: wire mask, squared distance to the direct and to the sequential target,
distance to the nearest canvas edge, open cells around (few: the macro would abut others or the edge)."""
_ELECTROSTATIC = "electrostatic"
"""One more, where its bias is not 0: log(1 + distance in cells) to where an electrostatic placement has the macro."""
_CHANNELS = 21
"""Without the channel of that."""
GLOBALS = 14
"""V, the number of `GridFeatures.globals`."""
_LIMIT = 4.0


def guides(shown: PolicyConfig) -> tuple[str, ...]:
    """The names of all guides, U of them."""
    return (*GUIDES, _ELECTROSTATIC) if shown.electrostatic_bias else GUIDES


def channels(shown: PolicyConfig) -> int:
    """L, the number of channels of `GridFeatures.channels`."""
    return _CHANNELS + len(guides(shown)) - len(GUIDES)


class Situation(NamedTuple):
    """The constants of each sample's design and current macro, gathered.

    Attributes:
        grid: int32 [B, 2], rows and columns of the design.
        aspect: float32 [B, 2].
        target: float32 [B, K, 2], where each kind of pull draws the current macro, in canvas fractions.
        stiffness: float32 [B, K], how strongly.
        energy: float32 [B, 2], what the springs hold of the placed macros, over that of random placement, x and y.
        size: float32 [B, 2], the current macro's width and height in canvas fractions.
        electrostatic: float32 [B, 2], where an electrostatic placement has it, in canvas fractions; NaN: nowhere.
        progress: float32 [B], share of the macros placed.
    """

    grid: jax.Array
    aspect: jax.Array
    target: jax.Array
    stiffness: jax.Array
    energy: jax.Array
    size: jax.Array
    electrostatic: jax.Array
    progress: jax.Array


class GridFeatures(NamedTuple):
    """The decoder's inputs.

    Attributes:
        channels: float32 [B, L, R, C], 0 outside the design's grid.
        guides: float32 [B, U, R, C], see `guides`, those of `GUIDES` standardised over the legal cells; 0 at illegal
            cells.
        valid: float32 [B, R, C], 1 on the design's grid.
        legal: bool [B, R, C].
        column, row: float32 [B, C] and [B, R], centres of the cells in canvas fractions.
        globals: float32 [B, V], the whole state in a few numbers.
    """

    channels: jax.Array
    guides: jax.Array
    valid: jax.Array
    legal: jax.Array
    column: jax.Array
    row: jax.Array
    globals: jax.Array


def standardised(values: jax.Array, legal: jax.Array, count: jax.Array) -> jax.Array:
    """`values` [B, R, C] with mean 0 and deviation 1 over the legal cells, clipped to ±4; 0 elsewhere.

    Args:
        values: float32 [B, R, C].
        legal: float32 [B, R, C].
        count: float32 [B, 1, 1], legal cells, at least 1.
    """
    mean = jnp.sum(values * legal, axis=(1, 2), keepdims=True) / count
    centred = (values - mean) * legal
    variance = jnp.sum(centred**2, axis=(1, 2), keepdims=True) / count
    return jnp.clip(centred * jax.lax.rsqrt(variance + 1e-10), -_LIMIT, _LIMIT)


def grid_features(observation: Observation, situation: Situation, shown: PolicyConfig) -> GridFeatures:
    """The decoder's inputs for a batch of observations.

    Args:
        observation: the batch.
        situation: the constants that go with it.
        shown: the network's settings.
    """
    maps = rounded(jnp.asarray(observation.maps), product_dtype(shown)).astype(jnp.float32)
    rows, columns = maps.shape[-2:]
    row, row_valid = _centres(rows, situation.grid[:, 0])
    column, column_valid = _centres(columns, situation.grid[:, 1])
    valid = row_valid[:, :, None] * column_valid[:, None, :]
    legal = jnp.asarray(observation.mask) != 0
    open_ = legal.astype(jnp.float32)
    count = jnp.maximum(open_.sum(axis=(1, 2), keepdims=True), 1.0)
    occupancy, density = (maps[:, kind] * valid for kind in range(2))
    wire = maps[:, 2]
    pulls = [_pull(row, column, situation.target[:, kind], situation.aspect) for kind in range(2)]
    edges = [jnp.minimum(position, 1 - position) for position in (row, column)]
    closed = _neighbours(open_)
    nearest = jnp.minimum(
        edges[0][:, :, None] * situation.aspect[:, 1:, None], edges[1][:, None, :] * situation.aspect[:, :1, None]
    )
    room = 4 - sum(closed) + 4 * _box(open_, 2)
    led = [standardised(value, open_, count) for value in (wire, *pulls, nearest, room)]
    if shown.electrostatic_bias:
        led.append(_cells_away(row, column, situation) * open_)
    seen = [
        open_,
        occupancy,
        jnp.clip(density, 0, 2),
        *led[: len(GUIDES)],
        jnp.sqrt(pulls[1] + 1e-12),
        jnp.broadcast_to(2 * column[:, None, :] - 1, valid.shape),
        jnp.broadcast_to(2 * row[:, :, None] - 1, valid.shape),
        jnp.broadcast_to(2 * edges[1][:, None, :], valid.shape),
        jnp.broadcast_to(2 * edges[0][:, :, None], valid.shape),
        *closed,
        _box(density, 1),
        _box(density, 3),
        _box(open_, 1),
        valid,
        *led[len(GUIDES) :],
    ]
    return GridFeatures(
        channels=jnp.stack(seen, axis=1) * valid[:, None],
        guides=jnp.stack(led, axis=1),
        valid=valid,
        legal=legal,
        column=column,
        row=row,
        globals=_globals(density, open_, valid, wire, situation),
    )


def _centres(length: int, used: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cell centres in fractions, and which cells are on the grid: float32 [B, length] each."""
    index = jnp.arange(length, dtype=jnp.float32)[None]
    used_float = used.astype(jnp.float32)[:, None]
    return (index + 0.5) / used_float, (index < used_float).astype(jnp.float32)


def _pull(row: jax.Array, column: jax.Array, target: jax.Array, aspect: jax.Array) -> jax.Array:
    """float32 [B, R, C]: squared distance to the target, in units of the canvas's mean side."""
    across = ((column - target[:, :1]) * aspect[:, :1]) ** 2
    up = ((row - target[:, 1:]) * aspect[:, 1:]) ** 2
    return up[:, :, None] + across[:, None, :]


def _cells_away(row: jax.Array, column: jax.Array, situation: Situation) -> jax.Array:
    """float32 [B, R, C]: log(1 + distance in cells) to the macro's electrostatic place; 0 where it has none."""
    known = jnp.isfinite(situation.electrostatic).all(axis=1)
    target = jnp.where(known[:, None], situation.electrostatic, 0.0)
    cell = situation.aspect.prod(axis=1) / situation.grid.prod(axis=1)  # squared side, in squares of the mean side
    squared = _pull(row, column, target, situation.aspect) / cell[:, None, None]
    return jnp.log1p(jnp.sqrt(squared + 1e-6)) * known[:, None, None]


def _neighbours(open_: jax.Array) -> list[jax.Array]:
    """Whether the cell left, right, below and above is closed to the macro: 4 × float32 [B, R, C]."""
    padded = jnp.pad(open_, ((0, 0), (1, 1), (1, 1)))
    around = (padded[:, 1:-1, :-2], padded[:, 1:-1, 2:], padded[:, :-2, 1:-1], padded[:, 2:, 1:-1])
    return [1 - value for value in around]


def _box(values: jax.Array, radius: int) -> jax.Array:
    """Mean over the (2·radius + 1)² cells around each cell, 0 outside the grid."""
    rows, columns = values.shape[-2:]
    across, up = (
        (jnp.abs(jnp.arange(n)[:, None] - jnp.arange(n)[None]) <= radius).astype(jnp.float32) / (2 * radius + 1)
        for n in (columns, rows)
    )
    return jnp.einsum("qr,brc,cd->bqd", up, values, across)


def _globals(
    density: jax.Array, open_: jax.Array, valid: jax.Array, wire: jax.Array, situation: Situation
) -> jax.Array:
    """float32 [B, V]."""
    cells = valid.sum(axis=(1, 2))
    least = jnp.min(jnp.where(open_ > 0, wire, jnp.inf), axis=(1, 2))
    over = [jnp.sum(jnp.maximum(density - level, 0), axis=(1, 2)) / cells for level in (0.0, 0.5, 0.9)]
    values = [
        situation.progress,
        open_.sum(axis=(1, 2)) / cells,
        *over,
        jnp.where(jnp.isfinite(least), least, 0.0),
        jnp.sqrt(situation.energy[:, 0] + 1e-6),
        jnp.sqrt(situation.energy[:, 1] + 1e-6),
        2 * situation.target[:, 1, 0] - 1,
        2 * situation.target[:, 1, 1] - 1,
        jnp.log1p(situation.stiffness[:, 0]),
        jnp.log1p(situation.stiffness[:, 1]),
        4 * situation.size[:, 0],
        4 * situation.size[:, 1],
    ]
    return jnp.stack(values, axis=1)
