"""The components of a DEF file as nodes: macros, cells, and the points that bumps and pads are to a placement.

Axis legend: M components, P of them points. Lengths in µm.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.assembly.ports import place_missing
from placement.netlist.design import NodeKind, Orientation
from placement.netlist.floorplan import Rectangle
from placement.netlist.formats.def_file import DefFile, PlacementStatus
from placement.netlist.technology import Master


@dataclasses.dataclass(frozen=True, eq=False)
class Components:
    """What components are and where they stand.

    Attributes:
        kind: int8 [M], `NodeKind`: macros, cells, and ports for points.
        width, height: float64 [M], µm in orientation N; 0 of points.
        x, y: float64 [M], µm, centres; 0 where there is none.
        placed, fixed: bool [M].
        is_point: bool [M].
        notices: what was assumed.
    """

    kind: np.ndarray
    width: np.ndarray
    height: np.ndarray
    x: np.ndarray
    y: np.ndarray
    placed: np.ndarray
    fixed: np.ndarray
    is_point: np.ndarray
    notices: tuple[str, ...]


def components_of(file: DefFile, masters: list[Master], *, die: Rectangle, core: Rectangle) -> Components:
    """The components as nodes.

    The pad ring stands before macros are placed, and bumps lie over all: they never move. A pad beside the core is a
    point at its edge towards the core, a bump one in its middle; without a place they stand on the die's edges. A pad
    within the core is a fixed macro.
    """
    components = file.components
    columns = [(master.width, master.height, master.is_block, master.is_pad, master.is_cover) for master in masters]
    of_master = np.array(columns, dtype=np.float64).reshape(-1, 5)[components.master]
    width, height = of_master[:, 0], of_master[:, 1]
    is_block, is_pad, is_cover = (of_master[:, column] > 0 for column in (2, 3, 4))
    placed = components.status >= PlacementStatus.PLACED
    turned = components.orientation >= Orientation.E
    low = np.stack((components.x, components.y), axis=1) / file.units
    high = low + np.stack((np.where(turned, height, width), np.where(turned, width, height)), axis=1)
    core_low, core_high = np.array([core.x_low, core.y_low]), np.array([core.x_high, core.y_high])
    beside = ((high <= core_low) | (low >= core_high)).any(axis=1)
    is_point = is_cover | (is_pad & (beside | ~placed))
    at = (low + high) / 2
    edge = np.where(high <= core_low, high, np.where(low >= core_high, low, at))
    at = np.where((is_pad & beside)[:, None], edge, at)
    x, y = (np.where(placed, column, 0.0) for column in at.T)
    notices = []
    if (is_pad & placed).any():
        notices.append(f"{int((is_pad & placed).sum()):,} pads and corners of the pad ring stay where they are")
    points = np.flatnonzero(is_point)
    point_x, point_y, stands = x[points], y[points], placed[points]
    missing = place_missing(point_x, point_y, stands, box=die, what="pads and bumps")
    x[points], y[points], placed[points] = point_x, point_y, stands
    return Components(
        kind=np.select([is_point, is_block], [NodeKind.PORT, NodeKind.HARD], NodeKind.CELL).astype(np.int8),
        width=np.where(is_point, 0.0, width),
        height=np.where(is_point, 0.0, height),
        x=x,
        y=y,
        placed=placed,
        fixed=is_pad | is_cover | (components.status >= PlacementStatus.FIXED),
        is_point=is_point,
        notices=(*notices, *([missing] if missing else [])),
    )
