"""What a judge is shown of placements: maps of a fixed number of cells, and the boxes of the nets.

Soft macros stand in two places: where they were annealed for the chip cost, as the placement has them, and from there
spread as charges around the macros, clear of straps, as the flat check spreads the cells. Of the second the nets are
routed, too.

All of it is free of scale: lengths in half perimeters of the canvas, maps as shares of their cells. Nothing tells left
from right or up from down.

Axis legend: B placements of one design, N nodes, S soft macros, H hard macros, E nets, L net-pin incidences, P pins,
G cells of a map across and up. Lengths in µm where nothing else is said.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.engine.costs import CostWeights, checked_placement, proxy_cost
from placement.flat.clusters import spread_clusters
from placement.flat.problem import MOST_UTILIZATION, Core
from placement.flat.routing import RoutingEstimate, RoutingResources, route_estimate
from placement.netlist.design import TURN, Design, Netlist, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.straps import CELL_SHARE, DENSITY

CELLS = 32
"""G: of a map, across and up, whatever the canvas."""
MAPS = ("macros", "kept clear", "cells", "excess", "pressure", "horizontal", "vertical")
PARTS = (
    *("wirelength", "spread wirelength", "routed wirelength", "overflow", "excess", "spread excess"),
    *("chip density", "chip congestion", "proxy density", "proxy congestion"),
)
ROUNDS = 2
"""Of rip-up and reroute: all pins of a cluster are in one point, where more rounds would find no way out."""
_REACH = 0.05  # of the pressure, in canvas sides


class Geometry(NamedTuple):
    """Placements of one design as a judge sees them.

    Attributes:
        maps: float32 [B, G, G, 7], `MAPS`, first across.
        boxes: float32 [B, E, 4], left, low, right, high of each net once cells have made way, in canvas sides [0, 1].
        lengths: float32 [B, E, 2], width and height of each net's box before that, in half perimeters of the canvas.
        parts: float32 [B, 10], `PARTS`.
    """

    maps: np.ndarray
    boxes: np.ndarray
    lengths: np.ndarray
    parts: np.ndarray


class Viewer:
    """Shows placements of one design.

    Args:
        design: whose.
    """

    CHIP, PROXY = CostWeights(1.0, 1.0, 1.0, "chip"), CostWeights(1.0, 0.5, 0.5, "proxy")

    def __init__(self, design: Design) -> None:
        netlist, canvas = design.netlist, design.canvas
        self.design = design
        self._resources = dataclasses.replace(RoutingResources.of(canvas), rounds=ROUNDS)
        self._wires = _one_net_each(netlist)
        self.size = np.array([canvas.width, canvas.height])
        self.scale = canvas.width + canvas.height
        degree = np.diff(netlist.net_start)
        self._nets = np.flatnonzero(degree > 1)
        pins = netlist.net_pins[np.repeat(degree > 1, degree)]
        self._start = np.concatenate([[0], np.cumsum(degree[self._nets])[:-1]])
        self._node = netlist.pin_node[pins]
        self._offset = np.stack([netlist.pin_dx[pins], netlist.pin_dy[pins]])
        self._hard, self._soft = netlist.hard, netlist.soft
        self.weight = netlist.net_weight[self._nets] / netlist.net_weight[self._nets].sum()
        self.degree = degree[self._nets]
        self._clear = np.maximum(design.own_straps, design.constraints.halo[netlist.hard]).T  # [2, H], orientation N
        blockages = tuple(map(tuple, design.constraints.blockages.tolist()))
        self._core = Core(canvas.width, canvas.height, blockages=blockages)

    @property
    def cell_area(self) -> float:
        """µm² of all standard cells, as the clustering draws them."""
        soft = self._soft
        return float(CELL_SHARE * (self.design.netlist.width[soft] * self.design.netlist.height[soft]).sum())

    def see(self, placements: Sequence[Placement]) -> Geometry:
        """The placements, soft macros annealed as the flat check begins its cells (`settle_for_check`).

        Raises:
            DesignError: a placement is of another number of nodes, or lacks a macro.
        """
        placed = [checked_placement(self.design, placement) for placement in placements]
        spread = [self.spread(placement) for placement in placed]
        routes = [route_estimate(self._wires, one, self._core, self._resources) for one in spread]
        orientation = np.stack([placement.orientation for placement in placed])
        offsets = self._pin_offsets(orientation)
        blocked = self._maps_of_macros(*_places(placed), orientation)
        first, boxes = (self._boxes(*_places(one), offsets) for one in (placed, spread))
        cells, excess = zip(*(self._maps_of_cells(*_places(one), blocked[1]) for one in (placed, spread)), strict=True)
        demand = [np.stack([resized(getattr(one, way)) for one in routes]) for way in ("horizontal", "vertical")]
        maps = np.stack([*blocked, cells[1], excess[0], _pressure(excess[1]), *demand], axis=-1)
        lengths = [np.stack([one[..., 2] - one[..., 0], one[..., 3] - one[..., 1]], axis=-1) for one in (first, boxes)]
        parts = self._parts(placed, lengths, routes, excess)
        unit = np.tile(self.size, 2)
        return Geometry(
            maps=maps.astype(np.float32),
            boxes=(boxes / unit).astype(np.float32),
            lengths=(lengths[0] / self.scale).astype(np.float32),
            parts=parts.astype(np.float32),
        )

    def spread(self, placement: Placement) -> Placement:
        """`placement` with its movable soft macros as the check would spread their cells; as they are, if it cannot."""
        try:
            return spread_clusters(self.design, placement)
        except DesignError:  # no soft macros, or no room for them
            return placement

    def _maps_of_macros(self, x: np.ndarray, y: np.ndarray, orientation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[B, G, G] each: the share of each cell that macros cover, and that they, halos and straps keep clear."""
        hard = self._hard
        width, height = self.design.netlist.sides(orientation)
        beside, above = np.where(orientation[:, hard] >= Orientation.E, self._clear[::-1, None], self._clear[:, None])
        covers = []
        for share in (0.0, 1.0):
            half = width[:, hard] / 2 + share * beside, height[:, hard] / 2 + share * above
            across = self._overlaps(x[:, hard] - half[0], x[:, hard] + half[0], 0)
            up = self._overlaps(y[:, hard] - half[1], y[:, hard] + half[1], 1)
            covers.append(np.minimum(np.einsum("bhi,bhj->bij", across, up, optimize=True), 1.0))
        return covers[0], covers[1]

    def _overlaps(self, low: np.ndarray, high: np.ndarray, axis: int) -> np.ndarray:
        """[B, K, G]: the share of each column (row) of cells that intervals [B, K] cover."""
        step = self.size[axis] / CELLS
        edges = np.arange(CELLS, dtype=np.float32)
        low, high = (low / step)[..., None].astype(np.float32), (high / step)[..., None].astype(np.float32)
        covered: np.ndarray = np.clip(np.minimum(edges + 1, high) - np.maximum(edges, low), 0.0, None)
        return covered

    def _pin_offsets(self, orientation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[B, L] each: µm from the node's centre."""
        turn = TURN[orientation[:, self._node]]
        dx, dy = self._offset
        return turn[..., 0] * dx + turn[..., 1] * dy, turn[..., 2] * dx + turn[..., 3] * dy

    def _boxes(self, x: np.ndarray, y: np.ndarray, offsets: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """[B, E, 4]: the nets' boxes."""
        at = x[:, self._node] + offsets[0], y[:, self._node] + offsets[1]
        sides = [reduce.reduceat(place, self._start, axis=1) for reduce in (np.minimum, np.maximum) for place in at]
        return np.stack(sides, axis=-1)

    def _maps_of_cells(self, x: np.ndarray, y: np.ndarray, kept_clear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[B, G, G] each: the share of each cell of a map that standard cells take, and what is beyond the room."""
        soft, step = self._soft, self.size / CELLS
        # At least as wide as a cell of the map.
        width = np.maximum(self.design.netlist.width[soft], step[0]) / 2
        height = np.maximum(self.design.netlist.height[soft], step[1]) / 2
        mass = CELL_SHARE * (self.design.netlist.width[soft] * self.design.netlist.height[soft])
        mass = (mass / (4 * width * height)).astype(np.float32)
        free = 1 - kept_clear
        density = np.maximum(
            DENSITY, self.cell_area / (MOST_UTILIZATION * np.maximum(free.mean((1, 2)), 1e-3) * self.size.prod())
        )
        room = free * np.minimum(density, 1.0)[:, None, None]
        across = self._overlaps(x[:, soft] - width, x[:, soft] + width, 0)
        up = self._overlaps(y[:, soft] - height, y[:, soft] + height, 1)
        full = np.matmul((across * mass[:, None]).transpose(0, 2, 1), up)
        return full, np.maximum(full - room, 0.0)

    def _parts(
        self,
        placed: Sequence[Placement],
        lengths: Sequence[np.ndarray],
        routes: Sequence[RoutingEstimate],
        excess: Sequence[np.ndarray],
    ) -> np.ndarray:
        """[B, 10]: `PARTS`; lengths and excess first of the annealed soft macros, then of the spread ones."""
        chip = [proxy_cost(self.design, placement, weights=self.CHIP) for placement in placed]
        proxy = [proxy_cost(self.design, placement, weights=self.PROXY) for placement in placed]
        columns = [
            *(np.log((one.sum(-1) / self.scale) @ self.weight) for one in lengths),
            np.log([one.routed_wirelength / (self.scale * self._wires.num_nets) for one in routes]),
            np.sqrt([one.overflow for one in routes]),
            *(np.log1p(100 * over.mean((1, 2))) for over in excess),
            np.log1p(10 * np.array([one.density_cost / one.wirelength_cost for one in chip])),
            np.log1p(10 * np.array([one.congestion_cost / one.wirelength_cost for one in chip])),
            np.array([one.density_cost for one in proxy]),
            np.array([one.congestion_cost for one in proxy]),
        ]
        return np.stack(columns, axis=1)


def _one_net_each(netlist: Netlist) -> Netlist:
    """A net that stands for several, by its weight, as so many nets: the router takes each for one wire."""
    count = np.maximum(np.rint(netlist.net_weight), 1).astype(int)
    nets = np.repeat(np.arange(netlist.num_nets), count)
    degree = np.diff(netlist.net_start)[nets]
    start = np.concatenate([[0], np.cumsum(degree)])
    pins = np.repeat(netlist.net_start[nets] - start[:-1], degree) + np.arange(start[-1])
    return dataclasses.replace(
        netlist,
        net_start=start.astype(netlist.net_start.dtype),
        net_pins=netlist.net_pins[pins],
        net_weight=np.ones(len(nets)),
    )


def resized(values: np.ndarray) -> np.ndarray:
    """float64 [X, Y] → [G, G]: the mean of what lies under each cell."""
    across, up = (_shares(size) for size in values.shape)
    return across @ values.astype(np.float64) @ up.T


@functools.cache
def _shares(size: int) -> np.ndarray:
    """[G, size]: rows of shares that sum to 1."""
    low = np.arange(CELLS)[:, None] * size / CELLS
    covered = np.clip(np.minimum(low + size / CELLS, np.arange(size) + 1) - np.maximum(low, np.arange(size)), 0, None)
    return covered / covered.sum(1, keepdims=True)


def _places(placements: Sequence[Placement]) -> tuple[np.ndarray, np.ndarray]:
    """Their x and y, float64 [B, N] each."""
    return np.stack([one.x for one in placements]), np.stack([one.y for one in placements])


@functools.cache
def _modes() -> tuple[np.ndarray, np.ndarray]:
    """Cosines [G, G], a mode in each row, and the response [G, G] of each pair to a source."""
    at = np.arange(CELLS)
    cosines = np.cos(np.pi * at[:, None] * (at + 0.5) / CELLS) * np.sqrt(2 / CELLS)
    cosines[0] /= np.sqrt(2)
    curvature = 4 * np.sin(np.pi * at / (2 * CELLS)) ** 2
    reach = 1 / (_REACH * CELLS) ** 2
    return cosines.astype(np.float32), (1 / (curvature[:, None] + curvature + reach)).astype(np.float32)


def _pressure(excess: np.ndarray) -> np.ndarray:
    """[B, G, G]: the potential of the excess, no flow over the canvas's edge, fading over `_REACH`."""
    cosines, response = _modes()
    return cosines.T @ ((cosines @ excess @ cosines.T) * response) @ cosines
