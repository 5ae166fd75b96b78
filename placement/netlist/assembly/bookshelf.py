"""A flat design from a Bookshelf design; its unit of length is taken for 1 µm.

Axis legend: N nodes, L net pins, W rows.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from placement.netlist.assembly.flat_protobuf import even_rows
from placement.netlist.assembly.lef_def import file_indices
from placement.netlist.assembly.ports import place_missing
from placement.netlist.design import Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan, Rectangle, Rows
from placement.netlist.formats.bookshelf import Bookshelf, read_bookshelf
from placement.netlist.technology import Technology

# Of a core that no file gives: the share that macros and cells are to cover.
_UTILIZATION = 0.7


def read_bookshelf_design(
    path: str | os.PathLike[str], *, name: str | None = None, free_blocks: bool = False
) -> FlatDesign:
    """As `read_bookshelf_file`, the design alone."""
    return read_bookshelf_file(path, name=name, free_blocks=free_blocks)[0]


def read_bookshelf_file(
    path: str | os.PathLike[str], *, name: str | None = None, free_blocks: bool = False
) -> tuple[FlatDesign, bytes | None]:
    """A flat design from the files that an `.aux` file names, and the unpacked bytes of its `.pl` file, if any.

    A terminal no higher and no wider than a row is high is a port, a larger one a fixed macro; another node higher
    than a row is a macro, the rest are standard cells. A missing `.scl` is replaced by rows within the box around
    the fixed nodes, or around a square that nodes cover to 70% where that is too small.

    Args:
        path: the `.aux` file.
        name: of the design; default: the file's name without suffix.
        free_blocks: whether large terminals are macros to be placed, as some publications do with designs whose
            blocks are all fixed.

    Raises:
        DesignError: as `read_bookshelf`; no row height can be found.
    """
    files = read_bookshelf(path)
    notices = list(files.notices)
    row_height = _row_height(files, notices)
    kind = _kinds(files, row_height)
    netlist = _netlist(files, kind, notices)
    rows, core = _rows(files, netlist, row_height, notices)
    die = _around(files, netlist, core)
    placement, port_notice = _placement(files, netlist, die, free_blocks=free_blocks)
    notices += [port_notice] if port_notice else []
    values = np.concatenate((files.x, files.y, files.width, files.height, files.row_x, files.row_y))
    design = FlatDesign(
        name=name or Path(path).name.removesuffix(".aux"),
        netlist=netlist,
        placement=placement,
        floorplan=Floorplan(units=1.0 if (values == np.round(values)).all() else 1000.0, die=die, core=core, rows=rows),
        technology=Technology(),
        master=np.full(netlist.num_nodes, -1),
        master_names=(),
        written_names={},
        sources=files.sources,
        notices=tuple(notices),
    )
    return design, files.positions_data


def _row_height(files: Bookshelf, notices: list[str]) -> float:
    """Of the rows; without rows, of most nodes that move."""
    heights = files.row_height if len(files.row_height) else files.height[~files.terminal & (files.height > 0)]
    if not len(heights):
        raise DesignError(f"{files.path}: no .scl file and no cell shows how high a row is")
    values, counts = np.unique(heights, return_counts=True)
    height = float(values[np.argmax(counts)])
    if not len(files.row_height):
        notices.append(f"rows are taken to be {height:g} high, as most cells are")
    return height


def _kinds(files: Bookshelf, row_height: float) -> np.ndarray:
    """int8 [N]."""
    small = (files.width <= row_height) & (files.height <= row_height)
    kind = np.where(files.height > row_height, NodeKind.HARD, NodeKind.CELL)
    return np.where(files.terminal, np.where(small, NodeKind.PORT, NodeKind.HARD), kind).astype(np.int8)


def _netlist(files: Bookshelf, kind: np.ndarray, notices: list[str]) -> Netlist:
    is_port = kind == NodeKind.PORT
    flat = np.flatnonzero((kind == NodeKind.HARD) & ((files.width <= 0) | (files.height <= 0)))
    if len(flat):
        raise DesignError(f"{files.path}: macro {files.names[flat[0]]!r} has no width or height above 0")
    degree = np.diff(files.net_start)
    net = np.repeat(np.arange(len(degree)), degree)
    order = np.lexsort((np.arange(len(net)), ~files.pin_drives, net))
    order = order[degree[net[order]] >= 2]
    used = degree >= 2
    if not used.all():
        notices.append(f"{int((~used).sum()):,} nets that join fewer than two pins are left out")
    pin_node = files.pin_node[order]
    # A port is a point: what its shape says of the pin goes into its position, which is the shape's centre.
    return Netlist(
        names=tuple(files.names),
        kind=kind,
        width=np.where(is_port, 0.0, files.width),
        height=np.where(is_port, 0.0, files.height),
        file_index=file_indices(kind, pin_node),
        pin_node=pin_node,
        pin_dx=np.where(is_port[pin_node], 0.0, files.pin_dx[order]),
        pin_dy=np.where(is_port[pin_node], 0.0, files.pin_dy[order]),
        net_weight=files.net_weight[used],
        net_start=np.concatenate(([0], np.cumsum(degree[used]))),
        net_pins=np.arange(len(order)),
    )


def _rows(files: Bookshelf, netlist: Netlist, height: float, notices: list[str]) -> tuple[Rows, Rectangle]:
    """The rows and the box around them."""
    if len(files.row_x):
        rows = Rows(x=files.row_x, y=files.row_y, width=files.row_width, height=files.row_height,
                    site_width=files.site_width, orientation=files.row_orientation)  # fmt: skip
        box = rows.box
        assert box is not None
        return rows, box
    area = float((netlist.width * netlist.height).sum())
    fixed = files.located & (files.terminal | files.fixed)
    box = None
    if fixed.any():
        low_x, low_y = float(files.x[fixed].min()), float(files.y[fixed].min())
        across, up = _sides(files)
        high_x = float((files.x + across)[fixed].max())
        high_y = float((files.y + up)[fixed].max())
        if (high_x - low_x) * (high_y - low_y) * 0.95 > area:
            box = Rectangle(low_x, low_y, high_x, high_y)
            notices.append("the core is taken to be the box around the fixed nodes")
    if box is None:
        side = height * np.ceil(np.sqrt(area / _UTILIZATION) / height)
        box = Rectangle(0.0, 0.0, side, side)
        notices.append(f"the core is taken to be a square that nodes cover to {_UTILIZATION:.0%}")
    count = max(1, int(box.height / height))
    rows = even_rows(box, height, count, site_width=1.0)
    return rows, Rectangle(box.x_low, box.y_low, box.x_high, box.y_low + count * height)


def _around(files: Bookshelf, netlist: Netlist, core: Rectangle) -> Rectangle:
    """The core, and the fixed nodes around it."""
    fixed = files.located & (files.terminal | files.fixed)
    if not fixed.any():
        return core
    width, height = _sides(files)
    return Rectangle(
        min(core.x_low, float(files.x[fixed].min())),
        min(core.y_low, float(files.y[fixed].min())),
        max(core.x_high, float((files.x + width)[fixed].max())),
        max(core.y_high, float((files.y + height)[fixed].max())),
    )


def _sides(files: Bookshelf) -> tuple[np.ndarray, np.ndarray]:
    """Widths and heights of the nodes as they are turned, float64 [N] each."""
    swapped = files.orientation >= Orientation.E
    return np.where(swapped, files.height, files.width), np.where(swapped, files.width, files.height)


def _placement(
    files: Bookshelf, netlist: Netlist, die: Rectangle, *, free_blocks: bool
) -> tuple[Placement, str | None]:
    """Centres; nodes that move and all stand at (0, 0) are not placed."""
    is_port = netlist.kind == NodeKind.PORT
    moves = ~(files.terminal | files.fixed)
    placed = files.located.copy()
    if not (files.x[moves].any() or files.y[moves].any()):
        placed &= ~moves
    width, height = _sides(files)
    x, y = files.x + width / 2, files.y + height / 2
    port_x, port_y, port_placed = x[is_port], y[is_port], placed[is_port]
    notice = place_missing(port_x, port_y, port_placed, box=die)
    x[is_port], y[is_port], placed[is_port] = port_x, port_y, port_placed
    fixed = is_port | (~moves & placed)
    if free_blocks:
        fixed &= netlist.kind != NodeKind.HARD
    return (
        Placement(
            x=np.where(placed, x, 0.0),
            y=np.where(placed, y, 0.0),
            orientation=np.where(is_port, 0, files.orientation),
            placed=placed,
            fixed=fixed,
        ),
        notice,
    )
