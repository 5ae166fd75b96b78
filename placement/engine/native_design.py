"""The engine's own copy of a design, made once per `Design` and shared by everything that evaluates it."""

from __future__ import annotations

import math
import weakref

import numpy as np

from placement.engine import _native
from placement.netlist.design import Design

_CACHE: weakref.WeakKeyDictionary[Design, _native.Design] = weakref.WeakKeyDictionary()


def native_design(design: Design) -> _native.Design:
    """The engine's copy of `design`, cached for as long as `design` lives."""
    native = _CACHE.get(design)
    if native is None:
        native = _CACHE.setdefault(design, _build(design))
    return native


def _build(design: Design) -> _native.Design:
    netlist, canvas, initial = design.netlist, design.canvas, design.initial
    return _native.Design(
        width=canvas.width,
        height=canvas.height,
        columns=int(canvas.columns),
        rows=int(canvas.rows),
        routes_horizontal=canvas.routes_horizontal,
        routes_vertical=canvas.routes_vertical,
        macro_routes_horizontal=canvas.macro_routes_horizontal,
        macro_routes_vertical=canvas.macro_routes_vertical,
        smoothing=math.floor(canvas.smoothing),
        overlap_threshold=canvas.overlap_threshold,
        kind=netlist.kind,
        node_width=netlist.width,
        node_height=netlist.height,
        pin_node=netlist.pin_node,
        pin_dx=netlist.pin_dx,
        pin_dy=netlist.pin_dy,
        net_weight=netlist.net_weight,
        net_start=netlist.net_start,
        net_pins=netlist.net_pins,
        initial_x=initial.x,
        initial_y=initial.y,
        initial_orientation=initial.orientation,
        placed=initial.placed.astype(np.uint8),
        fixed=initial.fixed.astype(np.uint8),
        placing_order=design.placing_order,
    )
