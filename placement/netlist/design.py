"""A chip design as arrays: netlist, canvas, placement, and the three together.

Axis legend: N nodes (hard macros, soft macros, ports, standard cells, in file order), P pins, E nets,
L net-pin incidences (one per pin of each net), R grid rows, C grid columns. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from collections.abc import Mapping

import numpy as np

from placement.netlist.constraints import NO_CONSTRAINTS, Constraints
from placement.netlist.errors import DesignError
from placement.netlist.geometry import frozen
from placement.netlist.pdn_channel import CELL_SHARE, pdn_channel


class NodeKind(enum.IntEnum):
    """The kind of a node. A soft macro is a cluster of standard cells."""

    HARD = 0
    SOFT = 1
    PORT = 2
    CELL = 3


class Orientation(enum.IntEnum):
    """The eight orientations of a macro, named as in LEF/DEF. E, FE, W, FW swap width and height."""

    N = 0
    FN = 1
    S = 2
    FS = 3
    E = 4
    FE = 5
    W = 6
    FW = 7

    @property
    def swaps_sides(self) -> bool:
        """Whether width and height are swapped."""
        return self >= Orientation.E


# Row o = (a, b, c, d) rotates an offset (dx, dy) in orientation N into orientation o: (a·dx + b·dy, c·dx + d·dy).
TURN = np.array(
    [
        [1, 0, 0, 1],  # N
        [-1, 0, 0, 1],  # FN
        [-1, 0, 0, -1],  # S
        [1, 0, 0, -1],  # FS
        [0, 1, -1, 0],  # E
        [0, -1, -1, 0],  # FE
        [0, -1, 1, 0],  # W
        [0, 1, 1, 0],  # FW
    ],
    dtype=np.float64,
)
TURN.setflags(write=False)

LARGEST = 1e9
"""The largest coordinate, size (µm), net weight or track density (1/µm); beyond it, sums in the cost overflow."""
SMALLEST = 1e-9  # the smallest side of a canvas (µm) and track density (1/µm), for the same reason
MOST_LINES, MOST_GCELLS = 2**15, 2**24
"""The largest number of rows or columns, and of gcells. The engine's maps take about 100 bytes per gcell."""


def _check_range(what: str, values: np.ndarray, least: float) -> None:
    """Raises DesignError for the first of `values` that is not in [least, LARGEST]."""
    wrong = ~((values >= least) & (values <= LARGEST))  # This also catches NaN.
    if wrong.any():
        index = int(np.flatnonzero(wrong)[0])
        raise DesignError(f"{what}: {values[index]} (index {index}) must be in [{least:g}, {LARGEST:g}]")


def _set_columns(owner: object, columns: Mapping[str, tuple[type, int]]) -> None:
    """Replaces fields by read-only contiguous copies of a dtype and length; raises DesignError for another shape."""
    for field, (dtype, length) in columns.items():
        array = frozen(getattr(owner, field), dtype)
        if array.shape != (length,):
            raise DesignError(f"{field}: shape {array.shape}, expected {(length,)}")
        object.__setattr__(owner, field, array)


def _check_indices(field: str, indices: np.ndarray, count: int) -> None:
    if len(indices) and not (0 <= indices.min() <= indices.max() < count):
        raise DesignError(f"{field}: every value must be in [0, {count})")


def _counted(netlist: Netlist) -> str:
    """The numbers of nodes and nets for representations: ``6 hard macros, 12 soft macros, 4 ports, 30 nets``."""
    counts = np.bincount(netlist.kind, minlength=len(NodeKind)).tolist()
    named = zip([*counts, netlist.num_nets], ("hard macros", "soft macros", "ports", "cells", "nets"), strict=True)
    return ", ".join(f"{count:,} {what}" for count, what in named if count)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Netlist:
    """Nodes, their pins, and the nets that connect pins. All arrays are read-only.

    Attributes:
        names: N node names, unique.
        kind: int8 [N], `NodeKind` values.
        width, height: float64 [N], µm, in orientation N; 0 for ports.
        file_index: int32 [N], the node's index in `.plc` files, which counts pins but not `__metadata__`.
        pin_node: int32 [P], the node of each pin. In a clustered netlist a port or a cell has one pin; in a flat one it
            has a pin for each net that it is on.
        pin_dx, pin_dy: float64 [P], µm from the node's centre in orientation N.
        net_weight: float64 [E].
        net_start: int32 [E+1]; net e connects `net_pins[net_start[e]:net_start[e+1]]`, its driver first.
        net_pins: int32 [L], pin indices.

    Example:
        >>> netlist = placement.load("toy6").netlist
        >>> len(netlist.hard), len(netlist.soft), len(netlist.net_weight)
        (6, 0, 13)

    Raises:
        DesignError: an array has the wrong length, an index is out of range, a size or a weight is negative, not finite
            or above `LARGEST`.
    """

    names: tuple[str, ...]
    kind: np.ndarray
    width: np.ndarray
    height: np.ndarray
    file_index: np.ndarray
    pin_node: np.ndarray
    pin_dx: np.ndarray
    pin_dy: np.ndarray
    net_weight: np.ndarray
    net_start: np.ndarray
    net_pins: np.ndarray

    def __post_init__(self) -> None:
        nodes, pins, nets = len(self.names), len(self.pin_node), len(self.net_weight)
        columns = {
            **dict.fromkeys(("width", "height"), (np.float64, nodes)),
            **dict.fromkeys(("pin_dx", "pin_dy"), (np.float64, pins)),
            "kind": (np.int8, nodes),
            "file_index": (np.int32, nodes),
            "pin_node": (np.int32, pins),
            "net_weight": (np.float64, nets),
            "net_start": (np.int32, nets + 1),
            "net_pins": (np.int32, len(self.net_pins)),
        }
        _set_columns(self, columns)
        if len(set(self.names)) != nodes:
            raise DesignError("node names are not unique")
        for field, (dtype, _) in columns.items():
            if dtype is np.float64:
                _check_range(field, getattr(self, field), -LARGEST if field.startswith("pin") else 0)
        _check_indices("pin_node", self.pin_node, nodes)
        _check_indices("net_pins", self.net_pins, pins)
        starts = self.net_start
        if starts[0] != 0 or starts[-1] != len(self.net_pins) or (np.diff(starts) < 1).any():
            raise DesignError("net_start: must increase from 0 to the number of net pins, each net having a driver")

    def __repr__(self) -> str:
        return f"Netlist({_counted(self)}, {self.num_pins:,} pins)"

    @property
    def num_nodes(self) -> int:
        return len(self.names)

    @property
    def num_pins(self) -> int:
        return len(self.pin_node)

    @property
    def num_nets(self) -> int:
        return len(self.net_weight)

    def indices(self, kind: NodeKind) -> np.ndarray:
        """The nodes of one kind in file order, int32 [·]."""
        return np.flatnonzero(self.kind == kind).astype(np.int32)

    def sides(self, orientation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Width and height of every node in its orientation (int [N]), float64 [N] each, µm."""
        turned = orientation >= Orientation.E
        return np.where(turned, self.height, self.width), np.where(turned, self.width, self.height)

    def boxes(self, placement: Placement, nodes: np.ndarray) -> np.ndarray:
        """Left, bottom, right and top of `nodes` (int [K]) as placed, float64 [K, 4], in µm."""
        half = np.stack(self.sides(placement.orientation), axis=1)[nodes] / 2
        centres = np.stack((placement.x[nodes], placement.y[nodes]), axis=1)
        return np.concatenate((centres - half, centres + half), axis=1)

    @functools.cached_property
    def hard(self) -> np.ndarray:
        """The hard macros in file order, int32 [·]."""
        return self.indices(NodeKind.HARD)

    @functools.cached_property
    def soft(self) -> np.ndarray:
        """The soft macros in file order, int32 [·]."""
        return self.indices(NodeKind.SOFT)

    @functools.cached_property
    def ports(self) -> np.ndarray:
        """The ports in file order, int32 [·]."""
        return self.indices(NodeKind.PORT)


@dataclasses.dataclass(frozen=True, repr=False)
class Canvas:
    """The chip area, its grid of gcells and its routing resources.

    Attributes:
        width, height: µm.
        columns, rows: number of gcells across and up.
        routes_horizontal, routes_vertical: routing tracks per µm.
        macro_routes_horizontal, macro_routes_vertical: tracks per µm that a hard macro blocks.
        smoothing: gcells on each side over which net congestion is spread.
        overlap_threshold: µm by which two hard macros may overlap, in both directions at once, and still be legal.

    Example:
        >>> canvas = placement.load("toy6").canvas
        >>> canvas.width, canvas.columns, canvas.cell_width
        (240.0, 4, 60.0)
    """

    width: float
    height: float
    columns: int
    rows: int
    routes_horizontal: float
    routes_vertical: float
    macro_routes_horizontal: float
    macro_routes_vertical: float
    smoothing: int = 0
    overlap_threshold: float = 0.0

    def __post_init__(self) -> None:
        above_zero = ("width", "height", "routes_horizontal", "routes_vertical")
        for field in (*above_zero, "macro_routes_horizontal", "macro_routes_vertical", "overlap_threshold"):
            value, least = getattr(self, field), SMALLEST if field in above_zero else 0
            if not least <= value <= LARGEST:
                raise DesignError(f"canvas {field}: {value} must be a number in [{least:g}, {LARGEST:g}]")
        for field, least in (("columns", 1), ("rows", 1), ("smoothing", 0)):
            value = getattr(self, field)
            if int(value) != value or not least <= value < 2**31:
                raise DesignError(f"canvas {field}: {value} must be an integer of at least {least} and below 2³¹")
        if max(self.rows, self.columns) > MOST_LINES or self.rows * self.columns > MOST_GCELLS:
            raise DesignError(
                f"canvas rows: a grid of {self.rows} rows and {self.columns} columns is too fine; the engine takes up "
                f"to {MOST_LINES} of each and {MOST_GCELLS} gcells"
            )

    def __repr__(self) -> str:
        tracks = f"{self.routes_horizontal:g} and {self.routes_vertical:g} tracks per µm"
        return f"Canvas({self.width:g} × {self.height:g} µm, {self.columns} × {self.rows} gcells, {tracks})"

    @property
    def cell_width(self) -> float:
        """Width of a gcell, in µm."""
        return self.width / self.columns

    @property
    def cell_height(self) -> float:
        """Height of a gcell, in µm."""
        return self.height / self.rows


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Placement:
    """The positions and orientations of all nodes. All arrays are read-only.

    Attributes:
        x, y: float64 [N], µm, centres; 0 where not placed.
        orientation: int8 [N], `Orientation` values; N for ports and cells.
        placed: bool [N].
        fixed: bool [N], nodes that are never moved (ports are always fixed).

    Example:
        >>> design = placement.load("toy6")
        >>> moved = design.initial.moved(design.placing_order[:1], np.array([90.0]), np.array([30.0]))
        >>> float(moved.x[design.placing_order[0]])
        90.0
    """

    x: np.ndarray
    y: np.ndarray
    orientation: np.ndarray
    placed: np.ndarray
    fixed: np.ndarray

    def __post_init__(self) -> None:
        dtypes = {"x": np.float64, "y": np.float64, "orientation": np.int8, "placed": np.bool_, "fixed": np.bool_}
        _set_columns(self, {field: (dtype, len(self.x)) for field, dtype in dtypes.items()})
        for field in ("x", "y"):
            _check_range(f"placement {field}", getattr(self, field), -LARGEST)
        _check_indices("placement orientation", self.orientation, len(Orientation))

    def __repr__(self) -> str:
        return f"Placement({len(self.x):,} nodes, {int(self.placed.sum()):,} placed, {int(self.fixed.sum()):,} fixed)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placement):
            return NotImplemented
        return all(np.array_equal(value, getattr(other, field)) for field, value in vars(self).items())

    __hash__ = None  # type: ignore[assignment]

    def moved(self, nodes: np.ndarray, x: np.ndarray, y: np.ndarray) -> Placement:
        """This placement with `nodes` (int [K]) centred at `x`, `y` (float [K], µm) and marked placed."""
        new_x, new_y, placed = self.x.copy(), self.y.copy(), self.placed.copy()
        new_x[nodes], new_y[nodes], placed[nodes] = x, y, True
        return dataclasses.replace(self, x=new_x, y=new_y, placed=placed)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Design:
    """A netlist, its canvas and its initial placement.

    Attributes:
        name: the design's name.
        netlist: the nodes and nets.
        canvas: the chip area.
        initial: the placement that the design came with; ports and fixed nodes are always located as in it.
        constraints: constraints on the macros; none by default.
        action_scale: number of action cells along each side of a gcell. An episode places macros at the centres of its
            cells.
        off_grid: whether an episode may place a macro anywhere in the cell of its action: where it touches placed
            macros or the canvas's edges, otherwise at the legal position nearest to the cell's centre.
        pdn_channel: µm around hard macros that cells keep free in the chip cost; None: derived from the design.

    Example:
        >>> design = placement.load("toy6")
        >>> design.name, len(design.placing_order)
        ('toy6', 6)

    Raises:
        DesignError: the placement has another number of nodes, a port is not placed, the hard macros cannot fit on the
            canvas (total area, or one macro larger than it), the grid of actions is too fine, or the constraints are
            for another number of nodes, allow a macro no orientation, or have a region with a node that is not a hard
            macro.
    """

    name: str
    netlist: Netlist
    canvas: Canvas
    initial: Placement
    constraints: Constraints = NO_CONSTRAINTS
    action_scale: int = 1
    off_grid: bool = False
    pdn_channel: float | None = None

    def __post_init__(self) -> None:
        netlist, canvas = self.netlist, self.canvas
        if self.constraints is NO_CONSTRAINTS:
            object.__setattr__(self, "constraints", Constraints.none(netlist.num_nodes))
        if len(self.initial.x) != netlist.num_nodes:
            raise DesignError(f"placement of {len(self.initial.x)} nodes for a netlist of {netlist.num_nodes}")
        if not self.initial.placed[netlist.ports].all():
            port = netlist.names[netlist.ports[~self.initial.placed[netlist.ports]][0]]
            raise DesignError(f"port {port!r} has no position")
        width, height = (side[netlist.hard] for side in netlist.sides(self._as_allowed))
        too_large = (width > canvas.width) | (height > canvas.height)
        if too_large.any():
            at = int(np.flatnonzero(too_large)[0])
            raise DesignError(
                f"macro {netlist.names[netlist.hard[at]]!r} of {width[at]} × {height[at]} µm is larger "
                f"than the canvas of {canvas.width} × {canvas.height} µm"
            )
        area = float((width * height).sum())
        if area > canvas.width * canvas.height:
            raise DesignError(
                f"the hard macros cover {area:.1f} µm², more than the canvas's {canvas.width * canvas.height:.1f} µm²"
            )
        if self.action_scale < 1:
            raise DesignError(f"action_scale: {self.action_scale} must be at least 1")
        if self.pdn_channel is not None and not 0 <= self.pdn_channel < math.inf:
            raise DesignError(f"pdn_channel: {self.pdn_channel} must be at least 0 µm")
        _ = self.action_canvas  # This raises if the grid is too fine.
        self._check_constraints()

    def _check_constraints(self) -> None:
        netlist, constraints = self.netlist, self.constraints
        if len(constraints.halo) != netlist.num_nodes:
            raise DesignError(f"constraints of {len(constraints.halo)} nodes for a netlist of {netlist.num_nodes}")
        nowhere = netlist.hard[constraints.orientations[netlist.hard] == 0]
        if len(nowhere):
            raise DesignError(f"macro {netlist.names[nowhere[0]]!r} has no allowed orientation")
        for region in constraints.regions:
            other = region.nodes[netlist.kind[region.nodes] != NodeKind.HARD]
            if len(other):
                raise DesignError(f"region {region.name!r}: {netlist.names[other[0]]!r} is not a hard macro")

    def __repr__(self) -> str:
        canvas = f"{self.canvas.width:g} × {self.canvas.height:g} µm, {self.canvas.columns} × {self.canvas.rows} gcells"
        return f"Design({self.name!r}, {_counted(self.netlist)}, {canvas})"

    @functools.cached_property
    def own_pdn_channel(self) -> float:
        """PDN channel in µm: `pdn_channel` if given, otherwise derived from the areas of soft and hard macros."""
        if self.pdn_channel is not None:
            return self.pdn_channel
        netlist, hard, soft = self.netlist, self.netlist.hard, self.netlist.soft
        cells = CELL_SHARE * float((netlist.width[soft] * netlist.height[soft]).sum())
        core = self.canvas.width * self.canvas.height
        return pdn_channel(netlist.width[hard], netlist.height[hard], core=core, cells=cells) if cells else 0.0

    def with_actions(self, scale: int, *, off_grid: bool = False) -> Design:
        """The design with `scale` as its `action_scale` (0 selects `own_action_scale`) and the given `off_grid`."""
        scale = scale or self.own_action_scale
        if (scale, off_grid) == (self.action_scale, self.off_grid):
            return self
        return dataclasses.replace(self, action_scale=scale, off_grid=off_grid)

    @functools.cached_property
    def _as_allowed(self) -> np.ndarray:
        """Orientations after movable nodes are rotated as allowed, int [N]."""
        before = self.initial.orientation
        return np.where(self.initial.fixed, before, self.constraints.turned(before))

    @functools.cached_property
    def own_action_scale(self) -> int:
        """The scale, 1 to 4, at which half of the movable macros with their halos span two or more actions."""
        macros, canvas = self.placing_order, self.canvas
        if not len(macros):
            return 1
        halo = self.constraints.turned_halo(self._as_allowed)[macros]
        across, up = (halo[:, :2] + halo[:, 2:]).T
        width, height = (side[macros] for side in self.netlist.sides(self._as_allowed))
        columns = (width + across) * canvas.columns / canvas.width
        rows = (height + up) * canvas.rows / canvas.height
        return int(np.clip(round(2 / float(np.median(np.minimum(columns, rows)))), 1, 4))

    @functools.cached_property
    def action_canvas(self) -> Canvas:
        """The canvas with the grid of actions, which has the R rows and C columns of an episode's observations."""
        scale = self.action_scale
        return dataclasses.replace(self.canvas, columns=scale * self.canvas.columns, rows=scale * self.canvas.rows)

    @functools.cached_property
    def placing_order(self) -> np.ndarray:
        """The movable hard macros in the order of placement, largest first, then by name; int32 [T]."""
        netlist = self.netlist
        movable = netlist.hard[~self.initial.fixed[netlist.hard]].tolist()
        movable.sort(key=lambda node: (-netlist.width[node] * netlist.height[node], netlist.names[node]))
        return np.array(movable, dtype=np.int32)
