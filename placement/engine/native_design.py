"""The engine's copy of a design, made once per `Design` and shared by all evaluators."""

from __future__ import annotations

import dataclasses
import math
import re
import weakref

import numpy as np

from placement.engine import _native
from placement.netlist.design import Design, Netlist
from placement.netlist.keep_outs import keep_outs

_LAST_NUMBER = re.compile(r"(.*?)\d+(\D*)$")
_CACHE: weakref.WeakKeyDictionary[Design, _native.Design] = weakref.WeakKeyDictionary()


def native_design(design: Design) -> _native.Design:
    """Returns the engine's copy of `design`, cached during the lifetime of `design`."""
    native = _CACHE.get(design)
    if native is None:
        native = _CACHE.setdefault(design, _build(design))
    return native


def _build(design: Design) -> _native.Design:
    netlist, canvas, initial = design.netlist, design.canvas, design.initial
    whole = {"columns": int(canvas.columns), "rows": int(canvas.rows), "smoothing": math.floor(canvas.smoothing)}
    same = ("kind", "pin_node", "pin_dx", "pin_dy", "net_weight", "net_start", "net_pins")
    native = _native.Design(
        **{**dataclasses.asdict(canvas), **whole},
        **{name: getattr(netlist, name) for name in same},
        node_width=netlist.width,
        node_height=netlist.height,
        initial_x=initial.x,
        initial_y=initial.y,
        initial_orientation=initial.orientation,
        placed=initial.placed.astype(np.uint8),
        fixed=initial.fixed.astype(np.uint8),
        placing_order=design.placing_order,
        action_scale=design.action_scale,
        off_grid=design.off_grid,
        pdn_channel=design.own_pdn_channel,
        spacing=design.constraints.spacing,
        bank=banks(netlist),
    )
    if design.constraints.any:
        _constrain(native, design)
    return native


def banks(netlist: Netlist) -> np.ndarray:
    """Numbers the banks, int32 [N]: hard macros of one size whose names differ only in the last number; others −1."""
    bank = np.full(netlist.num_nodes, -1, dtype=np.int32)
    known: dict[tuple[str, float, float], int] = {}
    for node in netlist.hard.tolist():
        name = _LAST_NUMBER.sub(r"\1#\2", netlist.names[node])
        key = (name, float(netlist.width[node]), float(netlist.height[node]))
        bank[node] = known.setdefault(key, len(known))
    return bank


def _constrain(native: _native.Design, design: Design) -> None:
    constraints, kept = design.constraints, keep_outs(design)
    grid = constraints.grid
    own = np.full(design.netlist.num_nodes if constraints.macro_grids else 0, -1, dtype=np.int32)
    own_grids = [one for some in constraints.macro_grids for one in some.grids]
    for index, some in enumerate(constraints.macro_grids):
        own[some.nodes] = index * len(some.grids)
    native.constrain(
        halos=constraints.halo,
        orientations=constraints.orientations,
        rectangles=kept.rectangles,
        kind=kept.kind,
        keep_set=kept.set_of,
        set_start=kept.set_start,
        items=kept.items,
        grid=[grid.pitch_x, grid.pitch_y, grid.offset_x, grid.offset_y],
        channel=list(constraints.channel),
        own_grid=own,
        own_grids=[dataclasses.astuple(one) for one in own_grids],
    )
