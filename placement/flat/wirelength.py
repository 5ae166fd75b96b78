"""Weighted-average wirelength and its gradient in JAX, without a scatter; half-perimeter wirelength in NumPy.

Nets of about equal degree are padded to one width and form a dense block; so do cells of about equal pin count. Both
directions are then gathers (Hsu et al. 2011 for the model; DREAMPlace, DAC 2019, for the form of its gradient).

Axis legend: M movable cells, E nets, L net-pin incidences, B nets or cells of one block, W its width.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from placement.flat.problem import Nets, counted_nets, pin_offsets
from placement.netlist.design import Netlist, Placement


class NetBlock(NamedTuple):
    """Nets of at most W pins each. A slot beyond a net's last pin repeats the first pin, at weight 0.

    Attributes:
        cell: int32 [B, W], M for a fixed pin.
        x, y: float32 [B, W], offsets, µm.
        used: float32 [B, W], 1 for a pin, 0 for padding.
        weight: float32 [B, 1].
    """

    cell: jax.Array
    x: jax.Array
    y: jax.Array
    used: jax.Array
    weight: jax.Array


class PinSums(NamedTuple):
    """Sums over the pins of cells.

    Attributes:
        slots: int32 [B, W] per block, the pins of its cells among the net blocks' slots laid end to end; one past
            the last for padding.
        place: int32 [M], where each cell is among the blocks' cells laid end to end.
    """

    slots: tuple[jax.Array, ...]
    place: jax.Array


class BlockedNets(NamedTuple):
    """The nets as dense blocks."""

    nets: tuple[NetBlock, ...]
    sums: PinSums


def blocked_nets(nets: Nets) -> BlockedNets:
    """`nets` as dense blocks; widths are 2, 3, 4, and from there on doubled at every second step."""
    degree = np.diff(nets.start)
    slot_of = np.zeros(len(nets.pin_cell), np.int64)
    blocks, slots = [], 0
    for members, width in _by_width(degree):
        index = nets.start[members][:, None] + np.arange(width)[None, :]
        used = np.arange(width)[None, :] < degree[members][:, None]
        index = np.where(used, index, nets.start[members][:, None])
        slot_of[index[used]] = slots + np.flatnonzero(used.ravel())
        slots += used.size
        blocks.append(
            NetBlock(
                jnp.asarray(nets.pin_cell[index]),
                jnp.asarray(nets.pin_x[index]),
                jnp.asarray(nets.pin_y[index]),
                jnp.asarray(used, jnp.float32),
                jnp.asarray(nets.weight[members][:, None]),
            )
        )
    return BlockedNets(tuple(blocks), _pin_sums(nets, slot_of, slots))


def _pin_sums(nets: Nets, slot_of: np.ndarray, slots: int) -> PinSums:
    count = np.diff(nets.cell_start)
    place = np.zeros(len(count), np.int64)
    tables, done = [], 0
    for members, width in _by_width(count):
        used = np.arange(width)[None, :] < count[members][:, None]
        table = np.full(used.shape, slots, np.int64)
        index = (nets.cell_start[members][:, None] + np.arange(width)[None, :])[used]
        table[used] = slot_of[nets.cell_pins[index]]
        tables.append(jnp.asarray(table, jnp.int32))
        place[members] = done + np.arange(len(members))
        done += len(members)
    return PinSums(tuple(tables), jnp.asarray(place, jnp.int32))


def _by_width(counts: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """The members of each block and the block's width."""
    widths = [1, 2, 3, 4]
    while widths[-1] < counts.max(initial=1):
        widths.append(widths[-1] * 3 // 2 if widths[-1] & (widths[-1] - 1) == 0 else widths[-1] * 4 // 3)
    which = np.searchsorted(widths, counts)
    return [(np.flatnonzero(which == k), width) for k, width in enumerate(widths) if (which == k).any()]


def weighted_average(
    nets: BlockedNets, x: jax.Array, y: jax.Array, per_gamma: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The gradient of the weighted-average wirelength, and the half-perimeter wirelength.

    Args:
        nets: the nets.
        x: float32 [M], µm.
        y: float32 [M], µm.
        per_gamma: float32, 1/µm; the larger, the nearer to half perimeters.

    Returns:
        float32 [M] and [M], the gradient; float32, µm.
    """
    gradients, lengths = [], []
    for at, axis in ((x, "x"), (y, "y")):
        at = jnp.append(at, 0.0)
        slots = [jnp.zeros(1)]
        for block in reversed(nets.nets):
            slot, extent = _block(block, at[block.cell] + getattr(block, axis), per_gamma)
            slots.append(slot.ravel())
            lengths.append(jnp.sum(extent))
        flat = jnp.concatenate(slots[::-1])
        sums = jnp.concatenate([flat[table].sum(axis=1) for table in nets.sums.slots])
        gradients.append(sums[nets.sums.place])
    return gradients[0], gradients[1], jnp.sum(jnp.stack(lengths))


def _block(block: NetBlock, at: jax.Array, per_gamma: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Gradient [B, W] and weighted extent [B, 1] of the nets of one block, whose pins stand `at` [B, W]."""
    low, high = at.min(axis=1, keepdims=True), at.max(axis=1, keepdims=True)
    near = at - low
    gradient = jnp.zeros_like(at)
    for exponent, sign in (((at - high) * per_gamma, 1.0), ((low - at) * per_gamma, -1.0)):
        share = jnp.exp(exponent) * block.used
        share = share / share.sum(axis=1, keepdims=True)
        mean = (share * near).sum(axis=1, keepdims=True)
        gradient += share * (sign + (near - mean) * per_gamma)
    return gradient * block.weight, (high - low) * block.weight


def half_perimeter(netlist: Netlist, placement: Placement) -> float:
    """Half-perimeter wirelength, µm, times the nets' weights, of the counted nets (2 to 3,000 pins).

    Args:
        netlist: any.
        placement: every node's position.
    """
    dx, dy = pin_offsets(netlist, placement.orientation)
    chosen = counted_nets(netlist)
    if not chosen.any():
        return 0.0
    total = 0.0
    for at, offset in ((placement.x, dx), (placement.y, dy)):
        pins = (at[netlist.pin_node] + offset)[netlist.net_pins]
        extent = np.maximum.reduceat(pins, netlist.net_start[:-1]) - np.minimum.reduceat(pins, netlist.net_start[:-1])
        total += float((extent * netlist.net_weight)[chosen].sum())
    return total
