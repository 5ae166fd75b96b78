"""What a judge is shown of placements: maps of a fixed number of cells, and the boxes of the nets.

All of it is free of scale: lengths in half perimeters of the canvas, maps as shares of their cells. Nothing tells left
from right or up from down.

Axis legend: B placements of one design, N nodes, S soft macros, H hard macros, E nets, L net-pin incidences, P pins,
G cells of a map across and up. Lengths in µm where nothing else is said.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.engine import _native
from placement.engine.costs import CostWeights, proxy_cost
from placement.engine.native_design import native_design
from placement.flat.routable import FULLEST
from placement.netlist.design import TURN, Design, Orientation, Placement
from placement.netlist.straps import CELL_SHARE, DENSITY

CELLS = 32
"""G: of a map, across and up, whatever the canvas."""
MAPS = ("macros", "kept clear", "cells", "excess", "pressure", "horizontal", "vertical")
PARTS = (
    *("wirelength", "spread wirelength", "tree", "excess", "spread excess"),
    *("chip density", "chip congestion", "proxy density", "proxy congestion"),
)
SPREADING_STEPS = 20
_REACH = 0.05  # of the pressure, in canvas sides
_FURTHEST = 1.0  # cells of a map that a soft macro is moved in one step at most


class Geometry(NamedTuple):
    """Placements of one design as a judge sees them.

    Attributes:
        maps: float32 [B, G, G, 7], `MAPS`, first across.
        boxes: float32 [B, E, 4], left, low, right, high of each net once cells have made way, in canvas sides [0, 1].
        lengths: float32 [B, E, 2], width and height of each net's box before that, in half perimeters of the canvas.
        parts: float32 [B, 9], `PARTS`.
    """

    maps: np.ndarray
    boxes: np.ndarray
    lengths: np.ndarray
    parts: np.ndarray


class Viewer:
    """Shows placements of one design.

    Args:
        design: whose.
        soft_placer: gives the soft macros their places.
    """

    CHIP, PROXY = CostWeights(1.0, 1.0, 1.0, "chip"), CostWeights(1.0, 0.5, 0.5, "proxy")

    def __init__(self, design: Design, *, soft_placer: str = "analytic_fast") -> None:
        netlist, canvas = design.netlist, design.canvas
        self.design = design
        self._native = _native.SoftPlacer(soft_placer, native_design(design))
        self.size = np.array([canvas.width, canvas.height])
        self.scale = canvas.width + canvas.height
        degree = np.diff(netlist.net_start)
        self._nets = np.flatnonzero(degree > 1)
        pins = netlist.net_pins[np.repeat(degree > 1, degree)]
        self._start = np.concatenate([[0], np.cumsum(degree[self._nets])[:-1]])
        self._node = netlist.pin_node[pins]
        self._offset = np.stack([netlist.pin_dx[pins], netlist.pin_dy[pins]])
        self._hard, self._soft = netlist.hard, netlist.soft
        self._movable = netlist.soft[~design.initial.fixed[netlist.soft]]
        self.weight = netlist.net_weight[self._nets] / netlist.net_weight[self._nets].sum()
        self.degree = degree[self._nets]
        self._clear = np.maximum(design.own_straps, design.constraints.halo[netlist.hard]).T  # [2, H], orientation N

    @property
    def cell_area(self) -> float:
        """µm² of all standard cells, as the clustering draws them."""
        soft = self._soft
        return float(CELL_SHARE * (self.design.netlist.width[soft] * self.design.netlist.height[soft]).sum())

    def see(self, placements: Sequence[Placement]) -> Geometry:
        """The placements, whose hard macros are read only.

        Raises:
            DesignError: a placement is of another number of nodes, or lacks a macro.
        """
        placed = [self.settled(placement) for placement in placements]
        x = np.stack([placement.x for placement in placed])
        y = np.stack([placement.y for placement in placed])
        orientation = np.stack([placement.orientation for placement in placed])
        blocked = self._maps_of_macros(x, y, orientation)
        offsets = self._pin_offsets(orientation)
        lengths = self._boxes(x, y, offsets)
        spread_x, spread_y, cells, excess = self._spread(x, y, blocked[1])
        boxes = self._boxes(spread_x, spread_y, offsets)
        demand = self._demand(boxes, blocked[0])
        pressure = _pressure(excess[-1])
        maps = np.stack([*blocked, cells[0], excess[0], pressure, *demand], axis=-1)
        first = np.stack([lengths[..., 2] - lengths[..., 0], lengths[..., 3] - lengths[..., 1]], axis=-1)
        then = np.stack([boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]], axis=-1)
        parts = self._parts(placed, (first, then), excess)
        unit = np.tile(self.size, 2)
        return Geometry(
            maps=maps.astype(np.float32),
            boxes=(boxes / unit).astype(np.float32),
            lengths=(first / self.scale).astype(np.float32),
            parts=parts.astype(np.float32),
        )

    def settled(self, placement: Placement) -> Placement:
        """`placement` with its movable soft macros where the soft placer puts them."""
        x, y = placement.x.copy(), placement.y.copy()
        self._native.place(x, y, placement.orientation)
        return placement.moved(self._movable, x[self._movable], y[self._movable])

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

    def _spread(
        self, x: np.ndarray, y: np.ndarray, kept_clear: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Soft macros pushed, step by step, from where cells stand too dense.

        Returns:
            x and y [B, N]; and, each before and after that, [B, G, G]: the share of each cell of the map that standard
            cells take, and how much of it is beyond the room there.
        """
        soft, step = self._soft, self.size / CELLS
        width, height = self.design.netlist.width[soft] / 2, self.design.netlist.height[soft] / 2
        # Cells are at least as wide as a cell of the map: smaller ones would jump.
        width, height = np.maximum(width, step[0] / 2), np.maximum(height, step[1] / 2)
        mass = CELL_SHARE * (self.design.netlist.width[soft] * self.design.netlist.height[soft])
        mass = (mass / (4 * width * height)).astype(np.float32)
        free = 1 - kept_clear
        density = np.maximum(
            DENSITY, self.cell_area / (FULLEST * np.maximum(free.mean((1, 2)), 1e-3) * self.size.prod())
        )
        room = free * np.minimum(density, 1.0)[:, None, None]
        x, y = x.copy(), y.copy()
        cells, excess = [], []
        for number in range(SPREADING_STEPS + 1):
            across = self._overlaps(x[:, soft] - width, x[:, soft] + width, 0)
            up = self._overlaps(y[:, soft] - height, y[:, soft] + height, 1)
            full = np.matmul((across * mass[:, None]).transpose(0, 2, 1), up)
            over = np.maximum(full - room, 0.0)
            if number in (0, SPREADING_STEPS):
                cells.append(full)
                excess.append(over)
            if number == SPREADING_STEPS:
                break
            pressure = _pressure(over)
            slope = np.gradient(pressure, axis=(1, 2))
            column = np.clip((x[:, soft] / step[0]).astype(np.int32), 0, CELLS - 1)
            row = np.clip((y[:, soft] / step[1]).astype(np.int32), 0, CELLS - 1)
            batch = np.arange(len(x))[:, None]
            push = np.stack([one[batch, column, row] for one in slope], axis=-1)
            size = np.sqrt((push**2).sum(-1, keepdims=True))
            push = push * _FURTHEST / (size + np.quantile(size, 0.9, axis=1, keepdims=True) + 1e-9)
            moves = np.isin(soft, self._movable)
            x[:, soft] = np.clip(x[:, soft] - push[..., 0] * step[0] * moves, 0, self.size[0])
            y[:, soft] = np.clip(y[:, soft] - push[..., 1] * step[1] * moves, 0, self.size[1])
        return x, y, cells, excess

    def _demand(self, boxes: np.ndarray, macros: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[B, G, G] each: wire of the boxes, spread evenly over them, over the tracks that macros leave."""
        canvas, netlist = self.design.canvas, self.design.netlist
        step = self.size / CELLS
        least = step / 2  # of a box's half sides: a point counts, too
        weight = netlist.net_weight[self._nets]
        middle = (boxes[..., :2] + boxes[..., 2:]) / 2
        half = np.maximum((boxes[..., 2:] - boxes[..., :2]) / 2, least)
        across = self._overlaps(middle[..., 0] - half[..., 0], middle[..., 0] + half[..., 0], 0)
        up = self._overlaps(middle[..., 1] - half[..., 1], middle[..., 1] + half[..., 1], 1)
        wide = (weight / (2 * half[..., 1]) * step[0]).astype(np.float32)  # µm in each cell's full share
        tall = (weight / (2 * half[..., 0]) * step[1]).astype(np.float32)
        horizontal = np.matmul((across * (wide * step[1])[..., None]).transpose(0, 2, 1), up) / step[0]
        vertical = np.matmul((across * (tall * step[0])[..., None]).transpose(0, 2, 1), up) / step[1]
        return (
            horizontal / (step[1] * (canvas.routes_horizontal - canvas.macro_routes_horizontal * macros) + 1e-3),
            vertical / (step[0] * (canvas.routes_vertical - canvas.macro_routes_vertical * macros) + 1e-3),
        )

    def _parts(
        self, placed: list[Placement], boxes: tuple[np.ndarray, np.ndarray], excess: list[np.ndarray]
    ) -> np.ndarray:
        """[B, 9]: `PARTS`."""
        chip = [proxy_cost(self.design, placement, weights=self.CHIP) for placement in placed]
        proxy = [proxy_cost(self.design, placement, weights=self.PROXY) for placement in placed]
        tree = self.weight * np.maximum(1.0, 0.5 * np.sqrt(self.degree))
        columns = [
            *(np.log((one.sum(-1) / self.scale) @ self.weight) for one in boxes),
            np.log((boxes[1].sum(-1) / self.scale) @ tree),
            *(np.log1p(100 * over.mean((1, 2))) for over in excess),
            np.log1p(10 * np.array([one.density_cost / one.wirelength_cost for one in chip])),
            np.log1p(10 * np.array([one.congestion_cost / one.wirelength_cost for one in chip])),
            np.array([one.density_cost for one in proxy]),
            np.array([one.congestion_cost for one in proxy]),
        ]
        return np.stack(columns, axis=1)


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
