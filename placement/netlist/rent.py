"""An estimate of a design's Rent exponent: how fast the wires that leave a block grow with the block.

Rent's rule (Landman and Russo, 1971) says T = t·Bᵖ for the T wires that leave a block of B nodes in a good partition.
Blocks come from halving the design again and again at the median of the Fiedler vector of its graph. It holds for
blocks well below the whole (region I): of those above an eighth of it, fewer wires leave, and they are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from placement.netlist.design import Design, NodeKind
from placement.netlist.graph import GraphArrays, graph_arrays, net_members

MOST_NODES = 2500
"""Above this, the dense eigenvectors would take minutes."""
_LEAST_NODES = 64
_LEAST_BLOCK = 4
_LEVELS_OF_REGION_II = 2
_SLOPE = 1e-5
_NOTHING = 1e-9
"""A Fiedler vector's entries below this are rounding errors."""


class RentFit(NamedTuple):
    """T = coefficient · B^exponent, fitted over the sizes of blocks up to an eighth of the design.

    Attributes:
        exponent: p.
        coefficient: t, wires per node.
        block_sizes: float64 [levels], mean nodes of a block, largest first.
        terminals: float64 [levels], mean wires (by net weight) that leave a block.
    """

    exponent: float
    coefficient: float
    block_sizes: np.ndarray
    terminals: np.ndarray


def rent_fit(design: Design) -> RentFit | None:
    """The fit; None for designs with fewer than 64 macros, or too many for it (`MOST_NODES`)."""
    graph = graph_arrays(design)
    nodes = np.flatnonzero(graph.kind != NodeKind.PORT)
    if not _LEAST_NODES <= len(nodes) <= MOST_NODES:
        return None
    blocks, sizes, terminals = [nodes], [], []
    while min(len(block) for block in blocks) >= 2 * _LEAST_BLOCK:
        blocks = [half for block in blocks for half in _halves(graph, block)]
        sizes.append(float(np.mean([len(block) for block in blocks])))
        terminals.append(_mean_terminals(design, graph, blocks))
    block_sizes, leaving = np.array(sizes), np.array(terminals)
    if (leaving <= 0).any():
        return None
    region = slice(_LEVELS_OF_REGION_II, None)
    exponent, intercept = np.polyfit(np.log(block_sizes[region]), np.log(leaving[region]), 1)
    return RentFit(float(exponent), float(np.exp(intercept)), block_sizes, leaving)


def _halves(graph: GraphArrays, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A block's graph nodes (int [B]) in two halves with few wires between them."""
    place = np.full(len(graph.kind), -1)
    place[block] = np.arange(len(block))
    ends = place[graph.edges]
    inside = (ends >= 0).all(axis=1)
    first, second = ends[inside].T
    links = scipy.sparse.coo_array((graph.weight[inside], (first, second)), shape=(len(block), len(block))).tocsr()
    count, component = scipy.sparse.csgraph.connected_components(links, directed=False)
    # Largest first, so that the cut goes through one component at most.
    by_size = sorted(range(count), key=lambda index: -int((component == index).sum()))
    order = np.concatenate([_in_fiedler_order(links, np.flatnonzero(component == index)) for index in by_size])
    return block[np.sort(order[: len(block) // 2])], block[np.sort(order[len(block) // 2 :])]


def _in_fiedler_order(links: scipy.sparse.csr_array, nodes: np.ndarray) -> np.ndarray:
    """A connected component's nodes (int [B]) by the Fiedler vector of its links."""
    if len(nodes) < 3:
        return nodes
    weights = links[nodes][:, nodes].toarray()
    weights += weights.T
    degree = weights.sum(axis=1)
    # The slope on the diagonal decides between vectors that are equally good, or every processor would choose its own.
    laplacian = np.diag(degree * (1 + _SLOPE * np.arange(len(nodes)) / len(nodes))) - weights
    fiedler = np.linalg.eigh(laplacian)[1][:, 1]
    return nodes[np.argsort(fiedler * np.sign(fiedler[np.argmax(np.abs(fiedler) > _NOTHING)]), kind="stable")]


def _mean_terminals(design: Design, graph: GraphArrays, blocks: list[np.ndarray]) -> float:
    """Weight of the nets that leave a block, mean over blocks; ports lie outside every block."""
    netlist = design.netlist
    label = np.full(len(graph.kind), len(blocks))
    for number, block in enumerate(blocks):
        label[block] = number
    member_net, node = net_members(design)
    pairs = np.unique(member_net * (len(blocks) + 1) + label[graph.vertex[node]])
    net, block_of_end = pairs // (len(blocks) + 1), pairs % (len(blocks) + 1)
    leaves = np.bincount(net, minlength=netlist.num_nets)[net] > 1
    return float(netlist.net_weight[net[leaves & (block_of_end < len(blocks))]].sum() / len(blocks))
