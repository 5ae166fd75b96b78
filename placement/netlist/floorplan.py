"""The floorplan of a flat design: die, rows, tracks, blockages, regions and halos.

Axis legend: W rows, K rectangles, each (x_low, y_low, x_high, y_high), P points, G nodes of a region, H nodes with a
halo. Lengths are in µm and measured from the user's own origin (the DEF file's), so that nothing shifts on the way
back; a clustered design's canvas begins at the lower left corner of `Floorplan.core`.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.errors import DesignError


def frozen(array: np.ndarray, dtype: type) -> np.ndarray:
    """A read-only contiguous copy."""
    result: np.ndarray = np.array(array, dtype=dtype, order="C", copy=True)
    result.setflags(write=False)
    return result


@dataclasses.dataclass(frozen=True)
class Rectangle:
    """An upright rectangle, µm.

    Raises:
        DesignError: it is empty or a corner is not finite.
    """

    x_low: float
    y_low: float
    x_high: float
    y_high: float

    def __post_init__(self) -> None:
        corners = (self.x_low, self.y_low, self.x_high, self.y_high)
        if not (np.isfinite(corners).all() and self.x_low < self.x_high and self.y_low < self.y_high):
            raise DesignError(f"the rectangle {corners} µm must be finite and have a width and a height above 0")

    @property
    def width(self) -> float:
        """µm."""
        return self.x_high - self.x_low

    @property
    def height(self) -> float:
        """µm."""
        return self.y_high - self.y_low

    @property
    def area(self) -> float:
        """µm²."""
        return self.width * self.height

    def contains(self, other: Rectangle) -> bool:
        """Whether `other` lies within this rectangle."""
        return (
            self.x_low <= other.x_low
            and self.y_low <= other.y_low
            and other.x_high <= self.x_high
            and other.y_high <= self.y_high
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Rows that standard cells stand in; all arrays are read-only.

    Attributes:
        x, y: float64 [W], µm, lower left corners.
        width, height: float64 [W], µm.
        site_width: float64 [W], µm; cells begin at whole numbers of sites.
        orientation: int8 [W], `Orientation` values, of a cell that stands in the row unmirrored.
    """

    x: np.ndarray
    y: np.ndarray
    width: np.ndarray
    height: np.ndarray
    site_width: np.ndarray
    orientation: np.ndarray

    def __post_init__(self) -> None:
        for field in ("x", "y", "width", "height", "site_width"):
            object.__setattr__(self, field, frozen(getattr(self, field), np.float64))
        object.__setattr__(self, "orientation", frozen(self.orientation, np.int8))
        if not all(len(getattr(self, field.name)) == len(self.x) for field in dataclasses.fields(self)):
            raise DesignError("rows: every column must have the same length")
        if len(self.x) and not (min(self.width.min(), self.height.min()) > 0):
            raise DesignError("rows: every row must be wider and higher than 0")

    def __len__(self) -> int:
        return len(self.x)

    @property
    def row_height(self) -> float:
        """µm, of most rows; 0 where there are none."""
        if not len(self):
            return 0.0
        heights, counts = np.unique(self.height, return_counts=True)
        return float(heights[np.argmax(counts)])

    @property
    def box(self) -> Rectangle | None:
        """The box around all rows, None where there are none."""
        if not len(self):
            return None
        return Rectangle(
            x_low=float(self.x.min()),
            y_low=float(self.y.min()),
            x_high=float((self.x + self.width).max()),
            y_high=float((self.y + self.height).max()),
        )


@dataclasses.dataclass(frozen=True)
class Tracks:
    """Wires' places on one layer: `count` lines at `start`, `start + step`, … µm.

    `is_vertical` lines stand at x positions and run up; the others stand at y positions and run across.
    """

    layer: str
    is_vertical: bool
    start: float
    step: float
    count: int


@dataclasses.dataclass(frozen=True, eq=False)
class Blockage:
    """An area that is taken.

    Attributes:
        rectangles: float64 [K, 4], µm, apart from each other within one polygon.
        layer: the routing layer that it blocks; "": it blocks placement.
        is_soft: only cells that a tool adds later may stand in it (DEF SOFT).
        density: the largest share that cells may cover (DEF PARTIAL), None: none.
        node: the netlist node that it belongs to, -1: none.
    """

    rectangles: np.ndarray
    layer: str = ""
    is_soft: bool = False
    density: float | None = None
    node: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "rectangles", frozen(self.rectangles, np.float64).reshape(-1, 4))


@dataclasses.dataclass(frozen=True, eq=False)
class Region:
    """An area that nodes must stay in.

    Attributes:
        name: the region's, or its group's where that has none of its own.
        rectangles: float64 [K, 4], µm.
        nodes: int32 [G], the nodes that belong to it.
        is_guide: whether it is a wish only (DEF GUIDE).
        is_exclusive: whether all others must stay out (DEF FENCE).
    """

    name: str
    rectangles: np.ndarray
    nodes: np.ndarray
    is_guide: bool = False
    is_exclusive: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rectangles", frozen(self.rectangles, np.float64).reshape(-1, 4))
        object.__setattr__(self, "nodes", frozen(self.nodes, np.int32))


def _no_nodes() -> np.ndarray:
    return frozen(np.zeros(0), np.int32)


def _no_halos() -> np.ndarray:
    return frozen(np.zeros((0, 4)), np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class Floorplan:
    """Where a design's nodes may stand and wires may run.

    Attributes:
        units: database units per µm; every coordinate of the user's files is a whole number of them.
        die: the box around the chip.
        core: the box around its rows; the die where it has none.
        rows: where standard cells stand; possibly none.
        tracks: per layer and direction; possibly none.
        blockages: of placement and routing. Parts of `die` outside of a die that is no rectangle are among them.
        regions: areas with their nodes.
        halo_node: int32 [H], nodes that keep others away.
        halo: float64 [H, 4], µm, left, bottom, right, top of those nodes in orientation N.
        manufacturing_grid: µm; 0: unknown.
    """

    units: float
    die: Rectangle
    core: Rectangle
    rows: Rows
    tracks: tuple[Tracks, ...] = ()
    blockages: tuple[Blockage, ...] = ()
    regions: tuple[Region, ...] = ()
    halo_node: np.ndarray = dataclasses.field(default_factory=_no_nodes)
    halo: np.ndarray = dataclasses.field(default_factory=_no_halos)
    manufacturing_grid: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "halo_node", frozen(self.halo_node, np.int32))
        object.__setattr__(self, "halo", frozen(self.halo, np.float64).reshape(-1, 4))
        if not (np.isfinite(self.units) and self.units > 0):
            raise DesignError(f"database units per µm are {self.units}; must be above 0")
        if len(self.halo) != len(self.halo_node):
            raise DesignError(f"{len(self.halo)} halos for {len(self.halo_node)} nodes")
