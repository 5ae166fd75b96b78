"""The constraints on a design's macros: halos, blockages, regions, orientations, a snapping grid, the ports' keep-out.

Axis legend: N nodes, K rectangles, each (x_low, y_low, x_high, y_high). Lengths are in µm and count from the canvas's
lower left corner.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from placement.netlist.errors import DesignError
from placement.netlist.floorplan import Region
from placement.netlist.geometry import frozen

ALL_ORIENTATIONS = 0xFF  # a set of orientations is a byte; bit `Orientation.X` is set where X is allowed
# Row o: all orientations, o first, then those with its sides. N, FN, S, FS are 0 to 3, and E, FE, W, FW 4 to 7.
_PREFERRED = np.array(
    [sorted(range(8), key=lambda other: (other != o, other // 4 != o // 4, other)) for o in range(8)], dtype=np.int8
)
_ORIENTATIONS = 8
# Row o: which of the sides left, bottom, right, top of a macro are its left, bottom, right, top in orientation o.
_TURNED_SIDES = np.array(
    [
        [0, 1, 2, 3],  # N
        [2, 1, 0, 3],  # FN
        [2, 3, 0, 1],  # S
        [0, 3, 2, 1],  # FS
        [1, 2, 3, 0],  # E
        [3, 2, 1, 0],  # FE
        [3, 0, 1, 2],  # W
        [1, 0, 3, 2],  # FW
    ]
)
TOLERANCE = 1e-6  # µm; coordinates that differ by no more are equal, as differences come from rounding
LEAST_PITCH = 1e-4
"""Minimum pitch of a snapping grid in µm; coordinates are equal within 1e-6 µm, so a finer grid would be useless."""
LARGEST = 1e9  # µm; equal to `placement.netlist.design.LARGEST`


@dataclasses.dataclass(frozen=True)
class SnapGrid:
    """Positions of macros' lower left corners: `offset` plus a whole number of `pitch`es (µm) on each axis.

    A pitch of 0 allows any position on its axis. Raises DesignError if a value is not finite, or a pitch is negative or
    between 0 and `LEAST_PITCH`.
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

    def holds(self, corner_x: float, corner_y: float) -> bool:
        """Whether a lower left corner (µm) is on the grid, within `TOLERANCE`."""
        return all(
            pitch <= 0 or abs(at - offset - pitch * round((at - offset) / pitch)) <= TOLERANCE
            for at, (pitch, offset) in zip((corner_x, corner_y), self.axes, strict=True)
        )


@dataclasses.dataclass(frozen=True, eq=False)
class MacroGrid:
    """The snapping grids of some macros per orientation, which put their pins on routing tracks.

    Raises DesignError if there are not eight grids.
    """

    nodes: np.ndarray  # int32 [·], the macros
    grids: tuple[SnapGrid, ...]  # the grid of their lower left corners in each `Orientation`, in its order

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", frozen(self.nodes, np.int32).reshape(-1))
        if len(self.grids) != _ORIENTATIONS:
            raise DesignError(
                f"macro_grids: {len(self.grids)} grids; must be {_ORIENTATIONS}, one for each orientation"
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Constraints:
    """The constraints on movable hard macros. All arrays are read-only.

    Soft macros have no halos, regions, orientations or grid; the soft placers keep them off blockages.

    Example:
        >>> design = placement.load("toy6")
        >>> design.constraints.any
        False

    Raises:
        DesignError: an array has the wrong shape, a number is not finite, negative or too large, a rectangle is empty,
            a region has no rectangle or an unknown node, or is only a guide, or two regions have the same name.
    """

    # float64 [N, 4], left, bottom, right and top of each node in orientation N; it rotates with the node. On at least
    # one axis, two hard macros are at least as far apart as the sum of the halos between them. [N, 2] is accepted as x
    # and y.
    halo: np.ndarray
    blockages: np.ndarray  # float64 [K, 4], areas without macros. Halos may reach over them.
    # areas that contain their nodes (hard macros) entirely; all other macros stay out of exclusive regions
    regions: tuple[Region, ...]
    orientations: np.ndarray  # uint8 [N], the set of allowed orientations of each node
    grid: SnapGrid = SnapGrid()  # the snapping grid of macros that have no grid of their own
    port_keepout: float = 0.0  # minimum distance of a macro from a port, on at least one axis
    # minimum distance between movable hard macros that searches keep by default (`AnnealConfig.spacing`), so that cells
    # fit between them. It is a default, not a constraint, and makes no placement illegal.
    spacing: float = 0.0
    # across and up; two hard macros that face each other, and a hard macro and the canvas's edge, either abut (as
    # closely as their halos and the snapping grid allow) or are at least this far apart. 0: no rule.
    channel: tuple[float, float] = (0.0, 0.0)
    macro_grids: tuple[MacroGrid, ...] = ()  # snapping grids of some macros, by orientation

    def __post_init__(self) -> None:
        object.__setattr__(self, "halo", frozen(four_sides(self.halo), np.float64))
        object.__setattr__(self, "blockages", frozen(self.blockages, np.float64).reshape(-1, 4))
        object.__setattr__(self, "orientations", frozen(self.orientations, np.uint8).reshape(-1))
        object.__setattr__(self, "regions", tuple(self.regions))
        if len(self.halo) != len(self.orientations):
            raise DesignError(f"constraints: {len(self.halo)} halos and {len(self.orientations)} sets of orientations")
        wrong = np.argwhere(~((self.halo >= 0) & (self.halo <= LARGEST)))
        if len(wrong):
            node, side = wrong[0]
            raise DesignError(
                f"halo {self.halo[node, side]} of node number {node}: must be at least 0 µm and at most {LARGEST:g}"
            )
        check_rectangles("blockages", self.blockages)
        for region in self.regions:
            what, nodes = f"region {region.name!r}", len(self.halo)
            if region.is_guide:
                raise DesignError(f"{what} is a guide, which is not a constraint")
            if not len(region.rectangles):
                raise DesignError(f"{what} has no rectangle")
            check_rectangles(what, region.rectangles)
            if len(region.nodes) and not (0 <= region.nodes.min() <= region.nodes.max() < nodes):
                raise DesignError(f"{what}: every node must be in [0, {nodes})")
        object.__setattr__(self, "macro_grids", tuple(self.macro_grids))
        _check_macro_grids(self.macro_grids, len(self.halo))
        names = [region.name for region in self.regions]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DesignError(f"region {twice!r} appears twice: give every region a different name")
        for field in ("port_keepout", "spacing"):
            if not 0 <= getattr(self, field) <= LARGEST:
                raise DesignError(f"{field}: {getattr(self, field)} must be at least 0 µm and at most {LARGEST:g}")
        if len(self.channel) != 2 or not all(0 <= width <= LARGEST for width in self.channel):
            raise DesignError(
                f"channel: {list(self.channel)} must be two widths, x and y, of at least 0 µm and at most {LARGEST:g}"
            )

    @classmethod
    def none(cls, nodes: int) -> Constraints:
        """No constraints, for a netlist of `nodes` nodes."""
        return cls(np.zeros((nodes, 4)), np.zeros((0, 4)), (), np.full(nodes, ALL_ORIENTATIONS))

    def renumbered(self, number: np.ndarray, count: int) -> Constraints:
        """The constraints for another netlist of `count` nodes, in which node n is node `number[n]`, int [N]; -1: none.

        Nodes of that netlist alone get none.
        """
        none, old = Constraints.none(count), np.flatnonzero(number >= 0)
        halo, orientations = none.halo.copy(), none.orientations.copy()
        halo[number[old]], orientations[number[old]] = self.halo[old], self.orientations[old]

        def found(nodes: np.ndarray) -> np.ndarray:
            return np.setdiff1d(number[nodes], [-1])

        regions = tuple(dataclasses.replace(one, nodes=found(one.nodes)) for one in self.regions)
        grids = tuple(dataclasses.replace(one, nodes=found(one.nodes)) for one in self.macro_grids)
        return dataclasses.replace(self, halo=halo, orientations=orientations, regions=regions, macro_grids=grids)

    @property
    def any(self) -> bool:
        """Whether there are any constraints."""
        return bool(
            self.halo.any()
            or len(self.blockages)
            or self.regions
            or (self.orientations != ALL_ORIENTATIONS).any()
            or self.grid.is_set
            or self.macro_grids
            or self.port_keepout > 0
            or self.has_channels
        )

    @property
    def has_channels(self) -> bool:
        """Whether there is a channel rule."""
        return max(self.channel) > 0

    def as_bytes(self) -> bytes:
        """The content as bytes, to compare sets of constraints; empty if there are none."""
        if not (self.any or self.spacing):
            return b""
        plain = [
            self._halo_values(),
            self.blockages.tolist(),
            [[one.name, one.rectangles.tolist(), one.nodes.tolist(), one.is_exclusive] for one in self.regions],
            self.orientations.tolist(),
            dataclasses.astuple(self.grid),
            self.port_keepout,
            *([self.spacing] if self.spacing else []),
            *([self.channel] if self.has_channels else []),
            *([one.nodes.tolist(), *map(dataclasses.astuple, one.grids)] for one in self.macro_grids),
        ]
        return repr(plain).encode()

    def _halo_values(self) -> list[list[float]]:
        """Halos as x and y if opposite sides of all halos are equal, so that earlier fingerprints remain valid."""
        is_even = bool((self.halo[:, :2] == self.halo[:, 2:]).all())
        return (self.halo[:, :2] if is_even else self.halo).tolist()

    def turned_halo(self, orientation: np.ndarray) -> np.ndarray:
        """The nodes' halos in their orientations (int [N]) as left, bottom, right and top, float64 [N, 4]."""
        return turned_sides(self.halo, orientation)

    @property
    def coarsest_pitch(self) -> tuple[float, float]:
        """Largest pitch of any grid in x and in y, in µm."""
        every = [self.grid, *(grid for one in self.macro_grids for grid in one.grids)]
        return max(grid.pitch_x for grid in every), max(grid.pitch_y for grid in every)

    def grid_of(self, node: int, orientation: int) -> SnapGrid:
        """The grid of a node's lower left corner in an orientation."""
        own = next((one for one in self.macro_grids if node in one.nodes), None)
        return self.grid if own is None else own.grids[orientation]

    def corner_grids(self, nodes: np.ndarray, orientation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pitch and offset of the grids of nodes (int [K]) in orientations (int [K]), float64 [2, K] each, x and y."""
        common = np.array(self.grid.axes)[:, :, None]
        found = np.tile(common, (1, 1, len(nodes)))  # [2 (x, y), 2 (pitch, offset), K]
        for one in self.macro_grids:
            own = np.flatnonzero(np.isin(nodes, one.nodes))
            axes = np.array([grid.axes for grid in one.grids])
            found[:, :, own] = axes[orientation[own]].transpose(1, 2, 0)
        return found[:, 0], found[:, 1]

    def allows(self, node: int, orientation: int) -> bool:
        """Whether a node may have an orientation."""
        return bool(self.orientations[node] >> orientation & 1)

    def turned(self, orientation: np.ndarray) -> np.ndarray:
        """Orientations (int [N]) rotated as allowed, int8 [N]; a node keeps its own, or else its sides, if it may."""
        preferred = _PREFERRED[orientation]
        allowed = self.orientations[:, None] >> preferred & 1
        return np.take_along_axis(preferred, allowed.argmax(axis=1)[:, None], axis=1)[:, 0]


def four_sides(halo: ArrayLike) -> np.ndarray:
    """Halos as left, bottom, right and top, float64 [·, 4], from the same or from x and y, [·, 2]."""
    sides = np.asarray(halo, np.float64)
    return np.tile(sides, (1, 2)) if sides.ndim == 2 and sides.shape[1] == 2 else sides.reshape(-1, 4)


def turned_sides(halo: np.ndarray, orientation: np.ndarray) -> np.ndarray:
    """Halos (float64 [N, 4]: left, bottom, right, top) rotated with the nodes to their orientations (int [N])."""
    return np.take_along_axis(halo, _TURNED_SIDES[orientation], axis=1)


def _check_macro_grids(grids: tuple[MacroGrid, ...], nodes: int) -> None:
    gridded = np.concatenate([np.zeros(0, np.int32), *(one.nodes for one in grids)])
    if len(gridded) and not (0 <= gridded.min() <= gridded.max() < nodes):
        raise DesignError(f"macro_grids: every node must be in [0, {nodes})")
    if len(np.unique(gridded)) < len(gridded):
        raise DesignError("macro_grids: a macro has two grids")


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


NO_CONSTRAINTS = Constraints.none(0)  # placeholder for `Constraints.none(N)` while the number of nodes is unknown
