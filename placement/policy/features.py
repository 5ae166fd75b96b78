"""The network's inputs at each step: the current macro's situation, and standardised maps of the grid.

Nothing here has parameters, so nothing here requires a backward pass. The first section determines the floating-point
type of the whole policy's products.

With the sequential targets (`placement.policy.springs`), the springs' minimum energy given the placed macros is a sum
over these macros of stiffness · (position - target)². A macro's target depends only on the macros placed before it. A
step therefore adds one term, and the terms of an episode are the same for all of its steps.

Axis legend: G designs, B samples (or episodes), T macros (padded), K spring targets (direct, sequential), U priors, R
grid rows, C grid columns, L map channels, V global values.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import jax
import jax.numpy as jnp

from placement.config import PolicyConfig
from placement.engine.observation import Observation
from placement.policy.inputs import GraphInputs

# --- Precision -------------------------------------------------------------------------------------------------------
#
# Accelerators compute float32 products with fewer digits by default (TPUs in bfloat16, NVIDIA GPUs in TF32). Logits
# must not be computed like this: an actor and a learner that round differently disagree on the action's probability.
# Every product of float32 operands is therefore computed at full precision, and only `product` rounds, to its `dtype`.

FLOAT32 = jnp.dtype(jnp.float32)


def product_dtype(config: PolicyConfig) -> jnp.dtype:
    """Returns the type that `config.dtype` selects on this process's default devices: float32 or bfloat16.

    With "auto", an actor on a CPU draws in float32 the actions for which a learner on an accelerator computes in
    bfloat16: at the learner's first step, the importance ratios are then 1 only to within bfloat16's rounding. If a
    type is named, both use it.
    """
    if config.dtype == "auto":
        return FLOAT32 if jax.default_backend() == "cpu" else jnp.dtype(jnp.bfloat16)
    return jnp.dtype(config.dtype)


def rounded(array: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """Rounds `array` to `dtype`; stored as float32 on a CPU, which cannot multiply in that type."""
    if dtype == FLOAT32 or jax.default_backend() != "cpu":
        return array.astype(dtype)
    info = jnp.finfo(dtype)
    return jax.lax.reduce_precision(array, exponent_bits=info.nexp, mantissa_bits=info.nmant)


def product(one: jax.Array, other: jax.Array, *, dtype: jnp.dtype) -> jax.Array:
    """Returns the matrix product, float32, of operands rounded to `dtype`, accumulated in float32."""
    full = jax.lax.Precision.HIGHEST if dtype == FLOAT32 else jax.lax.Precision.DEFAULT
    return jnp.matmul(rounded(one, dtype), rounded(other, dtype), precision=full, preferred_element_type=jnp.float32)


def full_precision() -> contextlib.AbstractContextManager[None]:
    """Makes products traced within the context use float32 for float32 operands, whatever the device's default."""
    return jax.default_matmul_precision("highest")


# --- Features --------------------------------------------------------------------------------------------------------

PRIORS = ("wire", "direct", "sequential", "edge", "whitespace")
"""Maps that a macro may follow, cell by cell: wire mask, squared distance to the direct and to the sequential target,
distance to the nearest canvas edge, and number of open cells around (few if the macro would abut others or the edge).
"""
_ELECTROSTATIC = "electrostatic"
"""An additional prior if its bias is not 0: log(1 + distance in cells) to the macro's electrostatic position."""
_CHANNELS = 21  # number of channels without that of the electrostatic prior
VALID = _CHANNELS - 1  # the channel that is 1 on the design's grid
_FOLLOWED = slice(3, 3 + len(PRIORS))  # the channels that contain the priors of `PRIORS`
GLOBALS = 14  # V, the number of `GridFeatures.globals`
_LIMIT = 4.0
_NO_CELL = 1e30  # more than the wire mask of any cell
_TOGETHER = 16  # number of samples whose [T, T] weights are gathered at once if designs are mixed


def priors(config: PolicyConfig) -> tuple[str, ...]:
    """Returns the names of all U priors."""
    return (*PRIORS, _ELECTROSTATIC) if config.electrostatic_bias else PRIORS


def channels(config: PolicyConfig) -> int:
    """Returns L, the number of channels of `GridFeatures.channels`."""
    return _CHANNELS + len(priors(config)) - len(PRIORS)


class Situation(NamedTuple):
    """The constants of each sample's design and current macro, and quantities derived from the placed macros."""

    grid: jax.Array  # int32 [B, 2], rows and columns of the design; [1, 2] if there is only one design
    aspect: jax.Array  # float32 [B, 2] or [1, 2], canvas width and height over their mean
    target: jax.Array  # float32 [B, K, 2], the current macro's spring targets, in canvas fractions
    stiffness: jax.Array  # float32 [B, K], strength of its attraction to each target
    energy: jax.Array  # float32 [B, 2], x and y, see `spring_energy`
    size: jax.Array  # float32 [B, 2], the current macro's width and height in canvas fractions
    electrostatic: jax.Array  # float32 [B, 2], its electrostatic position in canvas fractions; NaN if there is none
    progress: jax.Array  # float32 [B], fraction of the macros that are placed


def situation(inputs: GraphInputs, observation: Observation, energy: jax.Array | None = None) -> Situation:
    """Returns the situation of B samples, in O(T) for each if `energy` is given; None: computed by `spring_energy`."""
    design = jnp.asarray(observation.design)
    macros = inputs.macros[design]
    placed = jnp.minimum(jnp.asarray(observation.step), macros)
    step = jnp.minimum(placed, macros - 1)
    weights, fixed = inputs.target_weights[design, :, step], inputs.target_fixed[design, :, step]
    return Situation(
        grid=_own(inputs.grid, design),
        aspect=_own(inputs.aspect, design),
        target=jnp.einsum("bkt,bta->bka", weights, _positions(observation)) + fixed,
        stiffness=inputs.stiffness[design, :, step],
        energy=spring_energy(inputs, observation) if energy is None else energy,
        size=inputs.size[design, step],
        electrostatic=inputs.electrostatic[design, step],
        progress=placed.astype(jnp.float32) / macros,
    )


def _own(constants: jax.Array, design: jax.Array) -> jax.Array:
    """Selects each sample's constants, [G, …] → [B, …]; [1, …] for a single design, so results are computed once."""
    return constants if len(constants) == 1 else constants[design]


def spring_energy(inputs: GraphInputs, observation: Observation) -> jax.Array:
    """The springs' minimum energy given the placed macros, over that of random positions, x and y: float32 [B, 2].

    The random positions are uniform. The computation takes O(T²) for each sample, whatever the number of designs.
    """
    design, placed = jnp.asarray(observation.design), jnp.asarray(observation.step)
    done = jnp.arange(inputs.size.shape[1])[None] < jnp.minimum(placed, inputs.macros[design])[:, None]
    return jnp.sum(_energy_terms(inputs, design, _positions(observation)) * done[:, :, None], axis=1)


def next_energy(inputs: GraphInputs, observation: Observation, energy: jax.Array) -> jax.Array:
    """Returns `spring_energy` in O(T) from `energy`, float32 [B, 2], of the same environments one step before."""
    design, placed = jnp.asarray(observation.design), jnp.asarray(observation.step)
    last = jnp.clip(placed, 1, inputs.macros[design]) - 1
    positions = _positions(observation)
    position = jnp.take_along_axis(positions, last[:, None, None], axis=1)[:, 0]
    target = jnp.einsum("bt,bta->ba", inputs.target_weights[design, 1, last], positions)
    target = target + inputs.target_fixed[design, 1, last]
    added = (inputs.stiffness[design, 1, last] / _energy_scale(inputs, design))[:, None] * (position - target) ** 2
    return jnp.where(placed[:, None] > 0, jnp.asarray(energy) + added, 0.0)


def episode_energies(inputs: GraphInputs, observation: Observation, lengths: jax.Array) -> jax.Array:
    """Returns `spring_energy` of all steps of whole episodes, in O(T) for each, float32 [B, T, 2].

    The observation has axes [B, T] before those of a single step. `lengths`, int32 [B], are the numbers of actions
    taken; energies past them are meaningless.
    """
    last = jnp.maximum(jnp.asarray(lengths) - 1, 0)[:, None]
    ends = [jnp.take_along_axis(jnp.asarray(array), last[:, :, None], axis=1)[:, 0] for array in observation[-2:]]
    terms = _energy_terms(inputs, jnp.asarray(observation.design)[:, 0], jnp.stack(ends, axis=2))
    return jnp.cumsum(terms, axis=1) - terms


def _positions(observation: Observation) -> jax.Array:
    """Stacks x and y, float32 [B, T, 2]."""
    return jnp.stack([jnp.asarray(observation.x), jnp.asarray(observation.y)], axis=2)


def _energy_scale(inputs: GraphInputs, design: jax.Array) -> jax.Array:
    """Returns the springs' energy at uniformly random positions, float32 [B]."""
    return inputs.stiffness[design, 1].sum(axis=1) / 6


def _energy_terms(inputs: GraphInputs, design: jax.Array, position: jax.Array) -> jax.Array:
    """Each macro's term at its `position`, float32 [B, T, 2] each; the terms of unplaced macros are meaningless."""
    if len(inputs.macros) == 1:
        targets = jnp.einsum("st,bta->bsa", inputs.target_weights[0, 1], position)
    else:
        targets = jax.lax.map(
            lambda one: jnp.einsum("st,ta->sa", inputs.target_weights[one[0], 1], one[1]),
            (design, position),
            batch_size=_TOGETHER,
        )
    stiffness = inputs.stiffness[design, 1] / _energy_scale(inputs, design)[:, None]
    return stiffness[:, :, None] * (position - targets - inputs.target_fixed[design, 1]) ** 2


class GridFeatures(NamedTuple):
    """The decoder's inputs. Arrays independent of the sample have the leading axis 1 if there is only one design."""

    channels: jax.Array  # float32 [B, L, R, C], meaningless outside the design's grid
    valid: jax.Array  # float32 [B or 1, R, C], 1 on the design's grid
    legal: jax.Array  # bool [B, R, C]
    column: jax.Array  # column, row: float32 [B or 1, C] and [B or 1, R], centres of the cells in canvas fractions
    row: jax.Array
    globals: jax.Array  # float32 [B, V], a summary of the whole state

    @property
    def priors(self) -> jax.Array:
        """Maps of `priors`, float32 [B, U, R, C]; those of `PRIORS` standardised over the legal cells, 0 elsewhere."""
        return jnp.concatenate([self.channels[:, _FOLLOWED], self.channels[:, _CHANNELS:]], axis=1)


def grid_features(observation: Observation, situation: Situation, config: PolicyConfig) -> GridFeatures:
    """Returns the decoder's inputs for a batch of observations and their `situation`."""
    maps = _maps(observation, situation, config)
    row, column, open_ = maps.row, maps.column, maps.open
    seen = [
        open_,
        maps.occupancy,
        jnp.clip(maps.density, 0, 2),
        *jnp.unstack(standardised(maps.followed, open_), axis=1),
        jnp.sqrt(maps.followed[:, 2] + 1e-12),
        2 * column[:, None, :] - 1,
        2 * row[:, :, None] - 1,
        2 * _from_edge(column)[:, None, :],
        2 * _from_edge(row)[:, :, None],
        *maps.closed,
        _box(maps.density, 1),
        _box(maps.density, 3),
        _box(open_, 1),
        maps.valid,
    ]
    if config.electrostatic_bias:
        seen.append(_cells_away(row, column, situation) * open_)
    return GridFeatures(
        channels=_stacked(seen, open_.shape),
        valid=maps.valid,
        legal=open_ != 0,
        column=column,
        row=row,
        globals=_globals(maps, situation),
    )


def _stacked(maps: list[jax.Array], shape: tuple[int, ...]) -> jax.Array:
    """Broadcasts maps to `shape`, [B, R, C], and stacks them, float32 [B, …, R, C]."""
    return jnp.stack([jnp.broadcast_to(one, shape) for one in maps], axis=1)


AT_CELL = len(PRIORS) + 8  # number of values in `cell_features`


def cell_features(
    observation: Observation, situation: Situation, config: PolicyConfig, cells: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Computes the values of `grid_features` for one legal cell of each sample (`cells`, int32 [B]), without its maps.

    Returns:
        (float32 [B, AT_CELL]: the standardised priors, the closed neighbours, the mean density near and far, the
            fraction of open cells near, the wire mask; float32 [B, V], the globals).
    """
    maps = _maps(observation, situation, config)
    rows, columns = maps.open.shape[1:]
    up, across = jnp.arange(rows) - cells[:, None] // columns, jnp.arange(columns) - cells[:, None] % columns

    def at(values: jax.Array) -> jax.Array:
        return jnp.take_along_axis(values.reshape(len(cells), -1), cells[:, None], axis=1)[:, 0]

    def near(values: jax.Array, radius: int) -> jax.Array:
        within = [(jnp.abs(away) <= radius).astype(jnp.float32) / (2 * radius + 1) for away in (up, across)]
        return jnp.einsum("br,brc,bc->b", within[0], values, within[1])

    followed = jnp.stack([at(one) for one in jnp.unstack(maps.followed, axis=1)], axis=1)
    mean, inverse = _moments(maps.followed, maps.open)
    scaled = jnp.clip((followed - mean[:, :, 0]) * inverse[:, :, 0], -_LIMIT, _LIMIT)
    around = [near(maps.density, 1), near(maps.density, 3), near(maps.open, 1)]
    others = jnp.stack([*map(at, maps.closed), *around, followed[:, 0]], axis=1)
    return jnp.concatenate([scaled, others], axis=1), _globals(maps, situation)


class _Maps(NamedTuple):
    """Maps from which features are computed, float32 [B, R, C]; `row`, `column` and `valid` as in `GridFeatures`.

    `followed`, float32 [B, U, R, C], contains the priors of `PRIORS` before standardisation.
    """

    row: jax.Array
    column: jax.Array
    valid: jax.Array
    open: jax.Array
    occupancy: jax.Array
    density: jax.Array
    closed: list[jax.Array]
    followed: jax.Array


def _maps(observation: Observation, situation: Situation, config: PolicyConfig) -> _Maps:
    maps = rounded(jnp.asarray(observation.maps), product_dtype(config)).astype(jnp.float32)
    row, row_valid = _centres(maps.shape[-2], situation.grid[:, 0])
    column, column_valid = _centres(maps.shape[-1], situation.grid[:, 1])
    valid = row_valid[:, :, None] * column_valid[:, None, :]
    open_ = (jnp.asarray(observation.mask) != 0).astype(jnp.float32)
    closed = _neighbours(open_)
    distances = [_squared_distance(row, column, situation.target[:, kind], situation.aspect) for kind in range(2)]
    nearest = jnp.minimum(
        _from_edge(row)[:, :, None] * situation.aspect[:, 1:, None],
        _from_edge(column)[:, None, :] * situation.aspect[:, :1, None],
    )
    return _Maps(
        row=row,
        column=column,
        valid=valid,
        open=open_,
        occupancy=maps[:, 0] * valid,
        density=maps[:, 1] * valid,
        closed=closed,
        followed=_stacked([maps[:, 2], *distances, nearest, 4 - sum(closed) + 4 * _box(open_, 2)], open_.shape),
    )


def standardised(values: jax.Array, legal: jax.Array) -> jax.Array:
    """Scales `values` [B, U, R, C] to mean 0 and deviation 1 over `legal` cells [B, R, C], within ±4; 0 elsewhere."""
    mean, inverse = (moment[:, :, :, None] for moment in _moments(values, legal))
    return jnp.clip((values - mean) * inverse, -_LIMIT, _LIMIT) * legal[:, None]


def _moments(values: jax.Array, legal: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and inverse deviation of `values` [B, U, R, C] over the legal cells [B, R, C]: float32 [B, U, 1] each."""
    flat, cells = values.reshape(*values.shape[:2], -1), legal.reshape(len(legal), -1, 1)
    count = jnp.maximum(cells.sum(axis=1, keepdims=True), 1.0)
    mean = flat @ cells / count
    variance = (flat - mean) ** 2 @ cells / count
    return mean, jax.lax.rsqrt(variance + 1e-10)


def _from_edge(position: jax.Array) -> jax.Array:
    """Returns the distance to the nearer end of an axis."""
    return jnp.minimum(position, 1 - position)


def _centres(length: int, used: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns cell centres in canvas fractions, and 1 for cells on the grid: float32 [B, length] each."""
    index = jnp.arange(length, dtype=jnp.float32)[None]
    used_float = used.astype(jnp.float32)[:, None]
    return (index + 0.5) / used_float, (index < used_float).astype(jnp.float32)


def _squared_distance(row: jax.Array, column: jax.Array, target: jax.Array, aspect: jax.Array) -> jax.Array:
    """Returns the squared distance to the target, float32 [B, R, C], in units of the canvas's mean side."""
    across = ((column - target[:, :1]) * aspect[:, :1]) ** 2
    up = ((row - target[:, 1:]) * aspect[:, 1:]) ** 2
    return up[:, :, None] + across[:, None, :]


def _cells_away(row: jax.Array, column: jax.Array, situation: Situation) -> jax.Array:
    """Returns log(1 + distance in cells) to the macro's electrostatic position, float32 [B, R, C]; 0 if it has none."""
    known = jnp.isfinite(situation.electrostatic).all(axis=1)
    target = jnp.where(known[:, None], situation.electrostatic, 0.0)
    cell = situation.aspect.prod(axis=1) / situation.grid.prod(axis=1)  # squared side, in squares of the mean side
    squared = _squared_distance(row, column, target, situation.aspect) / cell[:, None, None]
    return jnp.log1p(jnp.sqrt(squared + 1e-6)) * known[:, None, None]


def _neighbours(open_: jax.Array) -> list[jax.Array]:
    """Whether the cell left, right, below and above is closed to the macro: 4 × float32 [B, R, C]."""
    padded = jnp.pad(open_, ((0, 0), (1, 1), (1, 1)))
    around = (padded[:, 1:-1, :-2], padded[:, 1:-1, 2:], padded[:, :-2, 1:-1], padded[:, 2:, 1:-1])
    return [1 - value for value in around]


def _box(values: jax.Array, radius: int) -> jax.Array:
    """Returns the mean over the (2·radius + 1)² cells around each cell; cells outside the grid count as 0."""
    up, across = (
        (jnp.abs(jnp.arange(n)[:, None] - jnp.arange(n)[None]) <= radius).astype(jnp.float32) / (2 * radius + 1)
        for n in values.shape[-2:]
    )
    return jnp.broadcast_to(up, (len(values), *up.shape)) @ values @ across


def _globals(maps: _Maps, situation: Situation) -> jax.Array:
    """Returns `GridFeatures.globals`, float32 [B, V]."""
    density, open_, wire = maps.density, maps.open, maps.followed[:, 0]
    cells = maps.valid.sum(axis=(1, 2))
    # The limit prevents XLA from fusing the two minima, which would be several times slower.
    least = jnp.minimum(jnp.min(jnp.where(open_ > 0, wire, jnp.inf), axis=1), _NO_CELL).min(axis=1)
    over = [jnp.sum(jnp.maximum(density - level, 0), axis=(1, 2)) / cells for level in (0.0, 0.5, 0.9)]
    values = [
        situation.progress,
        open_.sum(axis=(1, 2)) / cells,
        *over,
        jnp.where(least < _NO_CELL, least, 0.0),
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
