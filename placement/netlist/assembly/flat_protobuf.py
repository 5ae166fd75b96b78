"""A flat design from a flat protobuf, with the floorplan of a DEF file or of a placement file's canvas.

Axis legend: T text nodes of the file, N nodes of the netlist, P pins, L net pins.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from placement.netlist.assembly.def_floorplan import floorplan_of
from placement.netlist.assembly.protobuf_names import Matched, match_def
from placement.netlist.design import Canvas, Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Floorplan, Rectangle, Rows
from placement.netlist.formats.def_file import read_def
from placement.netlist.formats.flat_protobuf import netlist_of, positions, read_flat_nodes
from placement.netlist.formats.lef import read_lefs
from placement.netlist.technology import Technology


def read_protobuf_def(
    path: str | os.PathLike[str],
    floorplan: str | os.PathLike[str],
    *,
    lefs: list[str | os.PathLike[str]] | None = None,
    name: str | None = None,
) -> tuple[FlatDesign, bytes]:
    """A flat design from a flat protobuf and the floorplan of a DEF file, and that file's unpacked bytes.

    Macros and ports stand as the DEF file says. Cells keep the protobuf's positions where those lie in the die;
    where they were made for another die, they are scaled to this one, as a hint for clustering and placing.

    Args:
        path: the protobuf; it gives nodes, sizes and nets.
        floorplan: the DEF file, which an export changes; its macros and pins must be those of the protobuf.
        lefs: technology and library files, for layers' directions and what macros block; default: none.
        name: of the design; default: the one that the DEF file gives.

    Raises:
        DesignError: as `read_flat_nodes`, `read_def` and `read_lefs`; the two files do not hold the same macros and
            pins.
    """
    nodes = read_flat_nodes(path)
    file = read_def(floorplan)
    technology, sources = read_lefs(lefs or [])
    netlist, located, master = netlist_of(nodes)
    matched = match_def(netlist, file)
    plan, notices = floorplan_of(file, technology, matched.node_of)
    placement, placing_notices = _on_def(netlist, positions(nodes, netlist, located), matched, plan)
    design = FlatDesign(
        name=name or file.design or _stem(path),
        netlist=netlist,
        placement=placement,
        floorplan=plan,
        technology=technology,
        master=master,
        master_names=tuple(nodes.masters),
        written_names=matched.written_names,
        sources=(nodes.source, *sources, file.source),
        notices=(*file.notices, *notices, *matched.notices, *placing_notices),
    )
    return design, file.data


def read_protobuf_canvas(path: str | os.PathLike[str], canvas: Canvas, *, name: str | None = None) -> FlatDesign:
    """A flat design from a flat protobuf alone, on the canvas of a placement file.

    Rows are derived: they fill the canvas, as high as most cells are.

    Raises:
        DesignError: as `read_flat_nodes`; a port has no position.
    """
    nodes = read_flat_nodes(path)
    netlist, located, master = netlist_of(nodes)
    placement = positions(nodes, netlist, located)
    box = Rectangle(0.0, 0.0, canvas.width, canvas.height)
    height = common_height(netlist)
    count = int(canvas.height / height) if height else 0
    rows = even_rows(box, height, count, site_width=height / 8 if height else 1.0)
    return FlatDesign(
        name=name or _stem(path),
        netlist=netlist,
        placement=placement,
        # The format knows no database units: a thousand per µm are fine enough for any of its numbers.
        floorplan=Floorplan(units=1000.0, die=box, core=box, rows=rows),
        technology=Technology(),
        master=master,
        master_names=tuple(nodes.masters),
        written_names={},
        sources=(nodes.source,),
        notices=(f"{path}: no DEF file gives rows: {count:,} of {height:g} µm are assumed to fill the canvas",),
    )


def even_rows(box: Rectangle, height: float, count: int, *, site_width: float) -> Rows:
    """`count` rows of `height` µm from the bottom of a box, each as wide as it."""
    return Rows(
        x=np.full(count, box.x_low),
        y=box.y_low + height * np.arange(count),
        width=np.full(count, box.width),
        height=np.full(count, height),
        site_width=np.full(count, site_width),
        orientation=np.where(np.arange(count) % 2 == 0, 0, 3),
    )


def common_height(netlist: Netlist) -> float:
    """µm, of most standard cells that have one; 0 where there are none."""
    heights = netlist.height[netlist.kind == NodeKind.CELL]
    values, counts = np.unique(heights[heights > 0], return_counts=True)
    return float(values[np.argmax(counts)]) if len(values) else 0.0


def _stem(path: str | os.PathLike[str]) -> str:
    return Path(path).name.removesuffix(".gz").removesuffix(".txt").removesuffix(".pb")


def _on_def(netlist: Netlist, own: Placement, matched: Matched, plan: Floorplan) -> tuple[Placement, tuple[str, ...]]:
    """The placement on a DEF file's floorplan, and notices."""
    x, y = own.x.copy(), own.y.copy()
    cells = (netlist.kind == NodeKind.CELL) & own.placed
    notices: list[str] = []
    die = plan.die
    if cells.any():
        # The pins of the old die's edges show how large it was.
        reach_x, reach_y = float(x[own.placed].max()), float(y[own.placed].max())
        inside = reach_x <= die.x_high + 1 and reach_y <= die.y_high + 1 and min(x[cells].min(), y[cells].min()) >= -1
        if not inside:
            x[cells] = die.x_low + x[cells] * die.width / reach_x
            y[cells] = die.y_low + y[cells] * die.height / reach_y
            notices.append(
                f"the protobuf's positions reach to ({reach_x:g}, {reach_y:g}) µm, beyond the die of {die.width:g} × "
                f"{die.height:g} µm: cells are scaled to it, a hint where macros have places, too"
            )
    given = matched.placement
    of_def = (netlist.kind != NodeKind.CELL) | given.placed
    if (of_def & (netlist.kind == NodeKind.PORT) & ~given.placed).any():
        raise DesignError("a port of the protobuf has no position in the DEF file")
    return (
        Placement(
            x=np.where(of_def, given.x, x),
            y=np.where(of_def, given.y, y),
            orientation=np.where(of_def, given.orientation, own.orientation),
            placed=np.where(of_def, given.placed, own.placed),
            fixed=given.fixed,
        ),
        tuple(notices),
    )
