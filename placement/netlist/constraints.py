"""The constraints on a design's macros: halos, blockages, regions, orientations, a snapping grid, the ports' keep-out.

Axis legend: N nodes, K rectangles, each (x_low, y_low, x_high, y_high). Lengths are in µm and count from the canvas's
lower left corner.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.errors import DesignError
from placement.netlist.floorplan import Region
from placement.netlist.geometry import frozen

ALL_ORIENTATIONS = 0xFF
"""A set of orientations is a byte; bit `Orientation.X` is set where X is allowed."""
# Row o: all orientations, o first, then those with its sides. N, FN, S, FS are 0 to 3, and E, FE, W, FW 4 to 7.
_PREFERRED = np.array(
    [sorted(range(8), key=lambda other: (other != o, other // 4 != o // 4, other)) for o in range(8)], dtype=np.int8
)
LEAST_PITCH = 1e-4
"""µm, of a snapping grid. Coordinates are equal within 1e-6 µm, so a finer grid would distinguish nothing."""
LARGEST = 1e9
"""µm; as `placement.netlist.design.LARGEST`."""


@dataclasses.dataclass(frozen=True)
class SnapGrid:
    """Where the lower left corners of macros may lie: at `offset` + a whole number of `pitch`es (µm), per axis.

    A pitch of 0 allows any place on its axis.

    Raises:
        DesignError: a value is not finite, or a pitch is negative or between 0 and `LEAST_PITCH`.
    """

    pitch_x: float = 0.0
    pitch_y: float = 0.0
    offset_x: float = 0.0
    offset_y: float = 0.0

    def __post_init__(self) -> None:
        for axis, (pitch, offset) in zip("xy", self.axes, strict=True):
            if pitch != 0 and not LEAST_PITCH <= pitch <= LARGEST:
                raise DesignError(f"grid pitch_{axis}: {pitch} must be 0 (no grid) or at least {LEAST_PITCH:g} µm")
            if not abs(offset) <= LARGEST:
                raise DesignError(f"grid offset_{axis}: {offset} must be a finite number of µm")

    @property
    def axes(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Pitch and offset of each axis."""
        return (self.pitch_x, self.offset_x), (self.pitch_y, self.offset_y)

    @property
    def is_set(self) -> bool:
        """Whether it restricts any axis."""
        return self.pitch_x > 0 or self.pitch_y > 0


@dataclasses.dataclass(frozen=True, eq=False)
class Constraints:
    """What movable hard macros must satisfy. All arrays are read-only.

    Soft macros have no halos, regions, orientations or grid; the soft placers keep them off blockages.

    Attributes:
        halo: float64 [N, 2], x and y of each node in orientation N. Two hard macros are, on at least one axis, as far
            apart as the sum of their halos.
        blockages: float64 [K, 4], areas without macros. Halos may reach over them.
        regions: areas that contain their nodes (hard macros) entirely; all others stay out of exclusive ones.
        orientations: uint8 [N], the set of allowed orientations of each node.
        grid: where lower left corners may lie.
        port_keepout: the least distance of a macro from a port, on one axis at least.

    Example:
        >>> design = placement.load("toy6")
        >>> design.constraints.any
        False

    Raises:
        DesignError: an array has the wrong shape, a number is not finite, negative or too large, a rectangle is empty,
            a region has no rectangle or an unknown node, or is only a guide, two regions have the same name.
    """

    halo: np.ndarray
    blockages: np.ndarray
    regions: tuple[Region, ...]
    orientations: np.ndarray
    grid: SnapGrid = SnapGrid()
    port_keepout: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "halo", frozen(self.halo, np.float64).reshape(-1, 2))
        object.__setattr__(self, "blockages", frozen(self.blockages, np.float64).reshape(-1, 4))
        object.__setattr__(self, "orientations", frozen(self.orientations, np.uint8).reshape(-1))
        object.__setattr__(self, "regions", tuple(self.regions))
        if len(self.halo) != len(self.orientations):
            raise DesignError(f"constraints: {len(self.halo)} halos and {len(self.orientations)} sets of orientations")
        wrong = np.argwhere(~((self.halo >= 0) & (self.halo <= LARGEST)))
        if len(wrong):
            node, axis = wrong[0]
            raise DesignError(
                f"halo {self.halo[node, axis]} of node number {node}: must be at least 0 µm and at most {LARGEST:g}"
            )
        check_rectangles("blockages", self.blockages)
        for region in self.regions:
            what, nodes = f"region {region.name!r}", len(self.halo)
            if region.is_guide:
                raise DesignError(f"{what} is a guide, which is no constraint")
            if not len(region.rectangles):
                raise DesignError(f"{what} has no rectangle")
            check_rectangles(what, region.rectangles)
            if len(region.nodes) and not (0 <= region.nodes.min() <= region.nodes.max() < nodes):
                raise DesignError(f"{what}: every node must be in [0, {nodes})")
        names = [region.name for region in self.regions]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DesignError(f"region {twice!r} is there twice: give every region another name")
        if not 0 <= self.port_keepout <= LARGEST:
            raise DesignError(f"port_keepout: {self.port_keepout} must be at least 0 µm and at most {LARGEST:g}")

    @classmethod
    def none(cls, nodes: int) -> Constraints:
        """No constraints, for a netlist of so many nodes."""
        return cls(np.zeros((nodes, 2)), np.zeros((0, 4)), (), np.full(nodes, ALL_ORIENTATIONS))

    @property
    def any(self) -> bool:
        """Whether there are any constraints."""
        return bool(
            self.halo.any()
            or len(self.blockages)
            or self.regions
            or (self.orientations != ALL_ORIENTATIONS).any()
            or self.grid.is_set
            or self.port_keepout > 0
        )

    def as_bytes(self) -> bytes:
        """The content as bytes, to compare sets of constraints; empty if there are none."""
        if not self.any:
            return b""
        plain = [
            self.halo.tolist(),
            self.blockages.tolist(),
            [[one.name, one.rectangles.tolist(), one.nodes.tolist(), one.is_exclusive] for one in self.regions],
            self.orientations.tolist(),
            dataclasses.astuple(self.grid),
            self.port_keepout,
        ]
        return repr(plain).encode()

    def sides(self, orientation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nodes' halos across and up in their orientations (int [N]), float64 [N] each."""
        x, y = self.halo.T
        return np.where(orientation >= 4, y, x), np.where(orientation >= 4, x, y)

    def allows(self, node: int, orientation: int) -> bool:
        """Whether a node may have an orientation."""
        return bool(self.orientations[node] >> orientation & 1)

    def turned(self, orientation: np.ndarray) -> np.ndarray:
        """Int8 [N]: orientations (int [N]) rotated as allowed: a node keeps its own, or else its sides, if it may."""
        preferred = _PREFERRED[orientation]
        allowed = self.orientations[:, None] >> preferred & 1
        return np.take_along_axis(preferred, allowed.argmax(axis=1)[:, None], axis=1)[:, 0]


def check_rectangles(what: str, rectangles: np.ndarray) -> None:
    """Raises DesignError for the first of float64 [K, 4] rectangles that is empty or not finite."""
    good = (np.abs(rectangles) <= LARGEST).all(axis=1)
    good &= (rectangles[:, 0] < rectangles[:, 2]) & (rectangles[:, 1] < rectangles[:, 3])
    if not good.all():
        corners = rectangles[np.flatnonzero(~good)[0]].tolist()
        raise DesignError(
            f"{what}: the rectangle {corners} must be [x_low, y_low, x_high, y_high] in µm, finite, with a width and a "
            "height above 0"
        )


NO_CONSTRAINTS = Constraints.none(0)
"""A placeholder for `Constraints.none(N)` while the number of nodes is unknown."""
