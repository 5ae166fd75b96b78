"""The judge's network: cells of a map look around them, nets look at the cells under their boxes.

The predicted wirelength is a sum over the nets, each net's length times what the network makes of it, times what it
makes of the placement as a whole. So what it has to learn is a correction of a wirelength that is there already.

Mirroring a placement, renumbering its nodes or nets and enlarging its canvas change nothing.

Axis legend: B placements of one design, E nets (padded), G cells of a map across and up, K channels, M maps, Q parts.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from placement.judge.geometry import MAPS, PARTS

Array: TypeAlias = Any
"""A NumPy array on the host, a JAX array inside the network."""

REACHES = (1, 2, 4)
"""Cells that each round of the maps looks far."""
_SHORTEST = 1e-3  # half perimeters of the canvas, added to each net's length
_NET_FEATURES = 6


class View(NamedTuple):
    """Placements of one design, as the network takes them.

    Attributes:
        maps: float32 [B, G, G, M].
        boxes: float32 [B, E, 4], in canvas sides.
        lengths: float32 [B, E, 2], in half perimeters.
        parts: float32 [B, Q], standardised.
        weight: float32 [E], summing to 1, 0 at padding.
        degree: float32 [E], pins of each net.
        aspect: float32 [2], the canvas's sides in half perimeters.
    """

    maps: Array
    boxes: Array
    lengths: Array
    parts: Array
    weight: Array
    degree: Array
    aspect: Array


class Prediction(NamedTuple):
    """What the network says of placements.

    Attributes:
        wirelength: float32 [B], log of the routed wirelength over its design's scale.
        overflow: float32 [B], square root of the share of the demand above capacity.
        maps: float32 [B, G, G, 2], log(1 + demand over capacity), horizontal and vertical.
    """

    wirelength: Array
    overflow: Array
    maps: Array


class MapRound(nnx.Module):
    """Each cell from itself and the means of its neighbours beside, above and below, and at the corners."""

    def __init__(self, inputs: int, width: int, *, reach: int, rngs: nnx.Rngs) -> None:
        self.reach = reach
        self.mix = nnx.Linear(4 * inputs, width, rngs=rngs)

    def __call__(self, maps: jax.Array) -> jax.Array:
        """float32 [B, G, G, K] → [B, G, G, width]."""
        across = _neighbours(maps, 1, self.reach)
        up = _neighbours(maps, 2, self.reach)
        corners = _neighbours(across, 2, self.reach)
        return nnx.relu(self.mix(jnp.concatenate([maps, across, up, corners], axis=-1)))


class JudgeNetwork(nnx.Module):
    """Predicts what the flat check would say.

    Args:
        width: channels of cells, nets and the whole.
        rngs: of the first weights.
    """

    def __init__(self, width: int = 16, *, rngs: nnx.Rngs) -> None:
        self.width = width
        channels = len(MAPS)
        for number, reach in enumerate(REACHES):
            setattr(self, f"round_{number}", MapRound(channels, width, reach=reach, rngs=rngs))
            channels = width
        self.demand = nnx.Linear(width + len(MAPS), 2, rngs=rngs)
        self.under = nnx.Linear(width + len(MAPS), width // 2, rngs=rngs)
        self.net_first = nnx.Linear(width // 2 + _NET_FEATURES, width, rngs=rngs)
        self.net_second = nnx.Linear(width, width, rngs=rngs)
        self.net_last = nnx.Linear(width, 1, kernel_init=nnx.initializers.zeros_init(), rngs=rngs)
        self.linear = nnx.Linear(len(PARTS), 1, kernel_init=nnx.initializers.zeros_init(), rngs=rngs)
        self.whole_first = nnx.Linear(4 * width + len(PARTS), width, rngs=rngs)
        self.whole_last = nnx.Linear(width, 2, kernel_init=nnx.initializers.zeros_init(), rngs=rngs)

    def __call__(self, view: View) -> Prediction:
        """What becomes of the placements."""
        maps = jnp.log1p(view.maps)
        hidden = maps
        for number in range(len(REACHES)):
            layer: MapRound = getattr(self, f"round_{number}")
            after = layer(hidden)
            hidden = after if hidden.shape[-1] != after.shape[-1] else hidden + after
        cells = jnp.concatenate([hidden, maps], axis=-1)
        correction, pooled = self._nets(view, self.under(cells))
        length = view.lengths.sum(-1) + _SHORTEST
        after_length = ((view.boxes[..., 2:] - view.boxes[..., :2]) * view.aspect).sum(-1) + _SHORTEST
        total = jnp.sum(view.weight * jnp.sqrt(length * after_length) * jnp.exp(correction), axis=1)
        whole = jnp.concatenate([hidden.mean((1, 2)), hidden.max((1, 2)), pooled, view.parts], axis=-1)
        rest = self.whole_last(nnx.relu(self.whole_first(whole)))
        wirelength = jnp.log(total) + self.linear(view.parts)[:, 0] + rest[:, 0]
        return Prediction(wirelength, rest[:, 1], nnx.softplus(self.demand(cells)))

    def _nets(self, view: View, cells: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Each net's correction, [B, E], and means over the nets, [B, 2 K], by weight and by length."""
        span = (view.boxes[..., 2:] - view.boxes[..., :2]) * view.aspect
        length = span.sum(-1) + _SHORTEST
        own = jnp.stack(
            [
                jnp.log(length) / 3,
                jnp.log(view.lengths.sum(-1) + _SHORTEST) / 3,
                jnp.minimum(span[..., 0], span[..., 1]) / length,
                jnp.abs(view.lengths - span).sum(-1) / length,
                jnp.broadcast_to(jnp.log(view.degree), length.shape) / 3,
                jnp.sqrt(length),
            ],
            axis=-1,
        )
        hidden = nnx.relu(self.net_first(jnp.concatenate([own, box_means(cells, view.boxes)], axis=-1)))
        hidden = hidden + nnx.relu(self.net_second(hidden))
        by_length = view.weight * length
        by_length /= by_length.sum(1, keepdims=True)
        pooled = [jnp.einsum("e,bek->bk", view.weight, hidden), jnp.einsum("be,bek->bk", by_length, hidden)]
        return jnp.tanh(self.net_last(hidden)[..., 0]), jnp.concatenate(pooled, axis=-1)


def box_means(cells: jax.Array, boxes: jax.Array) -> jax.Array:
    """The mean of the cells under each box, a cell that is touched counting whole.

    Args:
        cells: float32 [B, G, G, K].
        boxes: float32 [B, E, 4], left, low, right, high, in canvas sides.

    Returns:
        float32 [B, E, K].
    """
    grid = cells.shape[1]
    sums = jnp.pad(cells, ((0, 0), (1, 0), (1, 0), (0, 0))).cumsum(1).cumsum(2)
    flat = sums.reshape(len(cells), (grid + 1) ** 2, -1)
    low = jnp.clip(jnp.floor(boxes[..., :2] * grid), 0, grid - 1).astype(jnp.int32)
    high = jnp.clip(jnp.ceil(boxes[..., 2:] * grid).astype(jnp.int32), low + 1, grid)

    def at(column: jax.Array, row: jax.Array) -> jax.Array:
        return jnp.take_along_axis(flat, (column * (grid + 1) + row)[..., None], axis=1)

    total = (
        at(high[..., 0], high[..., 1])
        - at(low[..., 0], high[..., 1])
        - at(high[..., 0], low[..., 1])
        + at(low[..., 0], low[..., 1])
    )
    return total / (high - low).prod(-1)[..., None].astype(cells.dtype)


def _neighbours(maps: jax.Array, axis: int, reach: int) -> jax.Array:
    """The mean of the two cells `reach` away along an axis; at the edge, the cell at the edge."""
    padding = [(reach, reach) if number == axis else (0, 0) for number in range(maps.ndim)]
    wide = jnp.pad(maps, padding, mode="edge")
    size = maps.shape[axis]
    before = jax.lax.slice_in_dim(wide, 0, size, axis=axis)
    after = jax.lax.slice_in_dim(wide, 2 * reach, 2 * reach + size, axis=axis)
    return (before + after) / 2


def parameters_of(network: JudgeNetwork) -> dict[str, np.ndarray]:
    """The weights by their path, `round_0.mix.kernel` and so on."""
    flat = nnx.to_flat_state(nnx.state(network, nnx.Param))
    return {".".join(map(str, path)): np.asarray(variable[...]) for path, variable in flat}


def check_parameters(width: int, parameters: Mapping[str, np.ndarray]) -> None:
    """Raises ValueError where a weight of a network of that width is missing, or one too many, or of another shape."""
    own = {path: variable.shape for path, variable in _abstract(width)[1].items()}
    if own != {path: array.shape for path, array in parameters.items()}:
        raise ValueError(f"weights of another network: {sorted(set(own) ^ set(parameters)) or 'their shapes differ'}")


def with_parameters(width: int, parameters: Mapping[str, np.ndarray]) -> JudgeNetwork:
    """The network of that width with the weights that `parameters_of` gave; raises ValueError as `check_parameters`."""
    check_parameters(width, parameters)
    graph, own = _abstract(width)
    weights = [(tuple(path.split(".")), own[path].replace(jnp.asarray(parameters[path]))) for path in own]
    network: JudgeNetwork = nnx.merge(graph, nnx.from_flat_state(weights))
    return network


@functools.cache
def _abstract(width: int) -> tuple[Any, dict[str, Any]]:
    """How a network of that width is built, and its weights by path, without values: no device is asked for any."""
    graph, state = nnx.split(nnx.eval_shape(lambda: JudgeNetwork(width, rngs=nnx.Rngs(0))))
    return graph, {".".join(map(str, path)): variable for path, variable in nnx.to_flat_state(state)}
