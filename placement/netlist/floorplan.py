"""The floorplan of a flat design: die, rows, tracks, blockages, regions and halos; ports spread on its edges.

Axis legend: W rows, K rectangles, each (x_low, y_low, x_high, y_high), G nodes of a region, H nodes with a halo, D
ports. Lengths are in µm and measured from the origin of the user's own files, so that an export shifts nothing; a
clustered design's canvas begins at the lower left corner of `Floorplan.core`.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.errors import DesignError
from placement.netlist.geometry import Rectangle, frozen


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Rows of standard cells; all arrays are read-only."""

    x: np.ndarray  # x, y: float64 [W], µm, lower left corners
    y: np.ndarray
    width: np.ndarray  # width, height: float64 [W], µm
    height: np.ndarray
    site_width: np.ndarray  # float64 [W], µm; cells begin at whole numbers of sites
    orientation: np.ndarray  # int8 [W], `Orientation` values of a cell that is not mirrored in its row

    def __post_init__(self) -> None:
        for field in ("x", "y", "width", "height", "site_width"):
            object.__setattr__(self, field, frozen(getattr(self, field), np.float64))
        object.__setattr__(self, "orientation", frozen(self.orientation, np.int8))
        if not all(len(getattr(self, field.name)) == len(self.x) for field in dataclasses.fields(self)):
            raise DesignError("rows: every column must have the same length")
        if len(self.x) and not (min(self.width.min(), self.height.min()) > 0):
            raise DesignError("rows: every row must have a width and a height above 0")

    @classmethod
    def filling(cls, box: Rectangle, height: float, count: int, *, site_width: float) -> Rows:
        """`count` rows of `height` µm from the bottom of a box, each as wide as the box, every second one flipped."""
        return cls(
            x=np.full(count, box.x_low),
            y=box.y_low + height * np.arange(count),
            width=np.full(count, box.width),
            height=np.full(count, height),
            site_width=np.full(count, site_width),
            orientation=np.where(np.arange(count) % 2 == 0, 0, 3),
        )

    def __len__(self) -> int:
        return len(self.x)

    @property
    def row_height(self) -> float:
        """The most frequent row height in µm; 0 without rows."""
        if not len(self):
            return 0.0
        heights, counts = np.unique(self.height, return_counts=True)
        return float(heights[np.argmax(counts)])

    @property
    def box(self) -> Rectangle | None:
        """The box around all rows; None without rows."""
        if not len(self):
            return None
        right, top = self.x + self.width, self.y + self.height
        return Rectangle(float(self.x.min()), float(self.y.min()), float(right.max()), float(top.max()))


@dataclasses.dataclass(frozen=True)
class Tracks:
    """Routing tracks of one layer: `count` lines at `start`, `start + step`, … µm.

    `is_vertical` lines are located at x positions and run up; the others are located at y positions and run across.
    """

    layer: str
    is_vertical: bool
    start: float
    step: float
    count: int


@dataclasses.dataclass(frozen=True, eq=False)
class Blockage:
    """A blocked area."""

    rectangles: np.ndarray  # float64 [K, 4], µm, disjoint within one polygon
    layer: str = ""  # the routing layer that it blocks; "" if it blocks placement
    # whether it keeps off macros and initial cells, but not cells that a tool adds later (DEF SOFT)
    is_soft: bool = False
    density: float | None = None  # the maximum fraction that cells may cover (DEF PARTIAL); None: no cells at all
    node: int = -1  # the netlist node that it belongs to; -1: none

    def __post_init__(self) -> None:
        object.__setattr__(self, "rectangles", frozen(self.rectangles, np.float64).reshape(-1, 4))


@dataclasses.dataclass(frozen=True, eq=False)
class Region:
    """An area that nodes must stay in."""

    name: str  # the region's name, or its group's if it has none
    rectangles: np.ndarray  # float64 [K, 4], µm
    nodes: np.ndarray  # int32 [G], the nodes that belong to it
    is_guide: bool = False  # whether it is only a preference (DEF GUIDE)
    is_exclusive: bool = False  # whether all other nodes must stay out (DEF FENCE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rectangles", frozen(self.rectangles, np.float64).reshape(-1, 4))
        object.__setattr__(self, "nodes", frozen(self.nodes, np.int32))


@dataclasses.dataclass(frozen=True)
class Straps:
    """Repeated power straps on a layer."""

    layer: str  # the layer's name
    is_vertical: bool  # whether they run up
    pitch: float  # µm from a strap to the next of the same net
    width: float  # µm


@dataclasses.dataclass(frozen=True, eq=False)
class Floorplan:
    """The areas where a design's nodes may be placed and its wires may run."""

    units: float  # database units per µm; every coordinate of the user's files is a whole number of them
    die: Rectangle  # the box around the chip
    core: Rectangle  # the box around its rows; the die if it has none
    rows: Rows  # rows of standard cells; possibly none
    tracks: tuple[Tracks, ...] = ()  # routing tracks per layer and direction; possibly none
    # placement and routing blockages, including the area of `die` outside a die that is not a rectangle
    blockages: tuple[Blockage, ...] = ()
    regions: tuple[Region, ...] = ()  # areas with their nodes
    halo_node: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))  # int32 [H], nodes with a halo
    # float64 [H, 4], µm, left, bottom, right and top of those nodes in orientation N
    halo: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 4)))
    manufacturing_grid: float = 0.0  # µm; 0: unknown
    straps: tuple[Straps, ...] = ()  # power straps per layer and direction

    def __post_init__(self) -> None:
        object.__setattr__(self, "halo_node", frozen(self.halo_node, np.int32))
        object.__setattr__(self, "halo", frozen(self.halo, np.float64).reshape(-1, 4))
        if not (np.isfinite(self.units) and self.units > 0):
            raise DesignError(f"database units per µm are {self.units}; must be above 0")
        if len(self.halo) != len(self.halo_node):
            raise DesignError(f"{len(self.halo)} halos for {len(self.halo_node)} nodes")


def spread_on_edges(box: Rectangle, count: int) -> np.ndarray:
    """Points at even distances along the box's edges, clockwise from its lower left corner; float64 [count, 2], in µm.

    The first point is half a distance up the left edge, so that points avoid the corners if possible.
    """
    perimeter = 2 * (box.width + box.height)
    along = (np.arange(count) + 0.5) * perimeter / max(count, 1)
    corners = np.cumsum([0.0, box.height, box.width, box.height, box.width])
    x = np.interp(along, corners, [box.x_low, box.x_low, box.x_high, box.x_high, box.x_low])
    y = np.interp(along, corners, [box.y_low, box.y_high, box.y_high, box.y_low, box.y_low])
    return np.stack((x, y), axis=1)


def place_missing(
    x: np.ndarray, y: np.ndarray, placed: np.ndarray, *, box: Rectangle, what: str = "ports"
) -> list[str]:
    """Places every port without a position on the box's edges, in order, and returns a notice if there are any.

    `x`, `y` (float64 [D], µm) and `placed` (bool [D]) are changed in place; the notice calls the ports `what`.
    """
    missing = np.flatnonzero(~placed)
    if not len(missing):
        return []
    x[missing], y[missing] = spread_on_edges(box, len(missing)).T
    placed[missing] = True
    return [f"{len(missing):,} of {len(x):,} {what} have no position: they are spread evenly on the edges of the die"]
