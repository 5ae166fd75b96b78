"""What the policy knows of each design before an episode: graph, sizes, spring targets and grid, as padded arrays.

Axis legend: G designs, N graph nodes (hard macros, soft macros, port clusters; padded), E edges (padded), F node
features, T macros to place (padded to the most of any design), K spring targets (direct, sequential).
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from placement.flat.clusters import place_design
from placement.netlist.design import Design, Netlist, NodeKind, Placement
from placement.netlist.distribution import DesignBounds
from placement.netlist.errors import DesignError
from placement.netlist.graph import GraphArrays, graph_arrays
from placement.policy.springs import TARGETS, spring_targets

NODE_FEATURES = 14

Array: TypeAlias = Any
"""A NumPy array on the host, a JAX array inside the network."""


class GraphInputs(NamedTuple):
    """Constants of the designs, stacked. A single design's arrays lack the leading G axis.

    Attributes:
        nodes: float32 [G, N, F]: kind (hard, soft, port cluster), width, height (canvas fractions), square root of
            the area (of the canvas's), log degree, log weight, whether it is fixed, x and y where fixed (in [-1, 1],
            else 0), x and y in the springs' equilibrium (standardised), place in the order in (0, 1].
        node_mask: float32 [G, N], 1 for nodes, 0 for padding.
        edges: int32 [G, E, 2], the two end nodes, one edge per joined pair.
        edge_weight: float32 [G, E], log(1 + weight / mean weight).
        edge_mask: float32 [G, E].
        order: int32 [G, T], graph node of each macro in placing order.
        macros: int32 [G], macros to place.
        size: float32 [G, T, 2], the macros' width and height in canvas fractions.
        target_weights: float32 [G, K, T, T], see `placement.policy.springs.SpringTargets.weights`.
        target_fixed: float32 [G, K, T, 2].
        stiffness: float32 [G, K, T].
        grid: int32 [G, 2], rows and columns.
        aspect: float32 [G, 2], canvas width and height over their mean.
        electrostatic: float32 [G, T, 2], each macro's position in an electrostatic placement of hard and soft macros,
            in canvas fractions; NaN where it failed or was not requested.
    """

    nodes: Array
    node_mask: Array
    edges: Array
    edge_weight: Array
    edge_mask: Array
    order: Array
    macros: Array
    size: Array
    target_weights: Array
    target_fixed: Array
    stiffness: Array
    grid: Array
    aspect: Array
    electrostatic: Array


_KNOWN: weakref.WeakKeyDictionary[Design, GraphInputs] = weakref.WeakKeyDictionary()
_PLACED: weakref.WeakKeyDictionary[Netlist, tuple[tuple[Any, ...], Placement | None]] = weakref.WeakKeyDictionary()
"""Electrostatic placements, each with what beside the netlist it was made of; None: the method failed."""


def graph_inputs(design: Design, *, electrostatic: bool = False) -> GraphInputs:
    """The constants of one design, without padding; kept as long as `design` lives. Not to be changed.

    `electrostatic` says whether to find its macros' electrostatic positions, which takes seconds. Raises ValueError
    where the design has no macro to place.
    """
    known = _KNOWN.get(design)
    if known is None:
        known = _KNOWN.setdefault(design, _graph_inputs(design))
    return known._replace(electrostatic=_electrostatic_positions(design)) if electrostatic else known


def _electrostatic_positions(design: Design) -> np.ndarray:
    """float32 [T, 2], as `GraphInputs.electrostatic`; found once for all grids of actions and orders of the macros."""
    made_of = (design.initial, design.constraints, design.canvas, design.pdn_channel)
    known, placed = _PLACED.get(design.netlist, ((), None))
    if [id(one) for one in known] != [id(one) for one in made_of]:
        try:
            placed = place_design(design)
        except DesignError:  # too little whitespace for the method
            placed = None
        _PLACED[design.netlist] = made_of, placed
    macros = design.placing_order
    if placed is None:
        return np.full((len(macros), 2), np.nan, np.float32)
    extent = np.array([design.canvas.width, design.canvas.height])
    return (np.stack((placed.x, placed.y), axis=1)[macros] / extent).astype(np.float32)


def _graph_inputs(design: Design) -> GraphInputs:
    if not len(design.placing_order):
        raise DesignError(
            f"design {design.name!r} has no movable hard macro: there is nothing to place (import --free-macros frees "
            "macros that the files fix)"
        )
    graph = graph_arrays(design)
    position, size = _geometry(design, graph)
    weight = graph.weight.astype(np.float32)
    solved = spring_targets(design)
    canvas, order = design.action_canvas, graph.vertex[design.placing_order]
    mean_side = (canvas.width + canvas.height) / 2
    return GraphInputs(
        nodes=_features(design, graph, position, size, weight, solved.equilibrium),
        node_mask=np.ones(len(size), np.float32),
        edges=graph.edges,
        edge_weight=np.log1p(weight / weight.mean()).astype(np.float32) if len(weight) else weight,
        edge_mask=np.ones(len(graph.edges), np.float32),
        order=order.astype(np.int32),
        macros=np.int32(len(order)),
        size=size[order].astype(np.float32),
        target_weights=solved.weights.astype(np.float32),
        target_fixed=solved.fixed.astype(np.float32),
        stiffness=solved.stiffness.astype(np.float32),
        grid=np.array([canvas.rows, canvas.columns], np.int32),
        aspect=np.array([canvas.width / mean_side, canvas.height / mean_side], np.float32),
        electrostatic=np.full((len(order), 2), np.nan, np.float32),
    )


def stack(
    designs: Sequence[GraphInputs], *, macros: int = 0, node_bucket: int = 64, edge_bucket: int = 512
) -> GraphInputs:
    """Pads the inputs of several designs to common sizes and stacks them.

    T is at least `macros`. N and E are rounded up to multiples of the buckets, so that compilations stay few.
    """
    most = max([macros, *(len(item.order) for item in designs)])
    nodes = _rounded(max(len(item.nodes) for item in designs), node_bucket)
    edges = _rounded(max(len(item.edges) for item in designs), edge_bucket)
    lengths: dict[str, tuple[int, ...]] = dict.fromkeys(("nodes", "node_mask"), (nodes,))
    lengths |= dict.fromkeys(("edges", "edge_weight", "edge_mask"), (edges,))
    lengths |= dict.fromkeys(("order", "size", "electrostatic"), (most,))
    lengths |= dict.fromkeys(("stiffness", "target_fixed"), (TARGETS, most))
    lengths["target_weights"] = (TARGETS, most, most)
    fields = {}
    for name in GraphInputs._fields:
        arrays = [np.asarray(getattr(item, name)) for item in designs]
        fields[name] = np.stack([_padded(array, lengths.get(name, ())) for array in arrays])
    return GraphInputs(**fields)


def stack_drawn(designs: Sequence[Design], bounds: DesignBounds, *, count: int, electrostatic: bool) -> GraphInputs:
    """The inputs of designs drawn from a distribution, padded to its bounds, so that those of others have their shapes.

    G is `count`: the first design is repeated. `bounds` has none for E: it is a multiple of ten edges for each node and
    more, which few designs exceed.
    """
    found = [graph_inputs(design, electrostatic=electrostatic) for design in designs]
    found += found[:1] * (count - len(found))
    edges = 1 << (10 * bounds.nodes).bit_length()
    return stack(found, macros=bounds.macros, node_bucket=bounds.nodes, edge_bucket=edges)


def _rounded(value: int, multiple: int) -> int:
    return max(multiple, math.ceil(value / multiple) * multiple)


def _padded(array: np.ndarray, lengths: tuple[int, ...]) -> np.ndarray:
    """`array` with zeros at the end of its leading axes, up to `lengths`."""
    padding = [(0, length - have) for length, have in zip(lengths, array.shape, strict=False)]
    return np.pad(array, padding + [(0, 0)] * (array.ndim - len(padding))) if lengths else array


def _geometry(design: Design, graph: GraphArrays) -> tuple[np.ndarray, np.ndarray]:
    """Fixed positions and sizes of the graph nodes, in canvas fractions, float64 [N, 2] each.

    Movable nodes have the position NaN, clusters of ports the mean of their ports.
    """
    netlist, canvas, initial = design.netlist, design.canvas, design.initial
    macros = graph.node[graph.node >= 0]
    extent = np.array([canvas.width, canvas.height])
    place = np.stack((initial.x, initial.y), axis=1) / extent
    position = np.full((len(graph.node), 2), np.nan)
    fixed = np.flatnonzero(initial.fixed[macros])
    position[fixed] = place[macros[fixed]]
    member, clusters = graph.vertex[netlist.ports] - len(macros), len(graph.node) - len(macros)
    for axis in range(2):
        total = np.bincount(member, place[netlist.ports, axis], clusters)
        position[len(macros) :, axis] = total / np.maximum(np.bincount(member, minlength=clusters), 1)
    size = np.zeros_like(position)
    size[: len(macros)] = np.stack(netlist.sides(initial.orientation), axis=1)[macros] / extent
    return position, size


def _features(
    design: Design,
    graph: GraphArrays,
    position: np.ndarray,
    size: np.ndarray,
    weight: np.ndarray,
    equilibrium: np.ndarray,
) -> np.ndarray:
    """float32 [N, F], see `GraphInputs.nodes`."""
    count, netlist = len(size), design.netlist
    result = np.zeros((count, NODE_FEATURES), np.float32)
    result[np.arange(count), graph.kind] = 1
    result[:, 3:5] = size
    result[:, 5] = np.sqrt(size.prod(axis=1))
    degree = np.bincount(graph.edges.ravel(), minlength=count)
    strength = np.bincount(graph.edges.ravel(), np.repeat(weight, 2), count)
    result[:, 6] = np.log1p(degree) / 4
    result[:, 7] = np.log1p(strength / max(strength.mean(), 1e-30))
    fixed = ~np.isnan(position[:, 0])
    result[:, 8] = fixed
    result[fixed, 9:11] = 2 * position[fixed] - 1
    soft = netlist.indices(NodeKind.SOFT)
    movable = graph.vertex[np.concatenate((design.placing_order, soft[~design.initial.fixed[soft]]))]
    result[movable, 11:13] = (equilibrium - equilibrium.mean(axis=0)) / np.maximum(equilibrium.std(axis=0), 1e-6)
    order = graph.vertex[design.placing_order]
    result[order, 13] = np.arange(1, len(order) + 1) / len(order)
    return result
