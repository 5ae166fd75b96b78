"""What a person draws: blockages, regions and halos, each a change of the constraints.

Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from placement.netlist.constraints import Constraints
from placement.netlist.design import Design, NodeKind
from placement.netlist.errors import DesignError
from placement.netlist.floorplan import Region

Changed = tuple[str, Constraints]
_DIGITS = 4
"""After the point that a drawn length keeps: a tenth of a nanometre."""


def changed(design: Design, request: Mapping[str, Any]) -> Changed:
    """What is done, in words, and the constraints after it.

    Args:
        design: with the constraints as they are.
        request: `what`, one of `blockage`, `region`, `halo`, `remove_blockage`, `remove_region`, with what it needs:
            `rectangle` [x_low, y_low, x_high, y_high], `nodes`, `name` and `exclusive` of a region, `halo` [x, y],
            `index` of what is taken away.

    Raises:
        DesignError: it cannot be done.
    """
    what = str(request["what"])
    if what not in _CHANGES:
        raise DesignError(f"constrain {what!r}: must be one of {', '.join(_CHANGES)}")
    return _CHANGES[what](design, request)


def _blockage(design: Design, request: Mapping[str, Any]) -> Changed:
    rectangle = _rectangle(design, request)
    before = design.constraints
    return "blockage", dataclasses.replace(before, blockages=np.concatenate((before.blockages, rectangle)))


def _region(design: Design, request: Mapping[str, Any]) -> Changed:
    rectangle, nodes = _rectangle(design, request), _hard(design, request)
    before = design.constraints
    name = str(request.get("name", "")).strip() or _free_name(before)
    region = Region(name, rectangle, nodes, is_exclusive=request.get("exclusive") is True)
    return f"region {name}", dataclasses.replace(before, regions=(*before.regions, region))


def _halo(design: Design, request: Mapping[str, Any]) -> Changed:
    across, up = (float(side) for side in request["halo"])
    nodes = _hard(design, request)
    halo = design.constraints.halo.copy()
    halo[nodes] = across, up
    names = design.netlist.names[nodes[0]] if len(nodes) == 1 else f"{len(nodes)} macros"
    return f"halo {across:g} × {up:g} µm of {names}", dataclasses.replace(design.constraints, halo=halo)


def _remove_blockage(design: Design, request: Mapping[str, Any]) -> Changed:
    before = design.constraints
    index = _index(request, len(before.blockages), "blockages")
    return "remove blockage", dataclasses.replace(before, blockages=np.delete(before.blockages, index, axis=0))


def _remove_region(design: Design, request: Mapping[str, Any]) -> Changed:
    before = design.constraints
    index = _index(request, len(before.regions), "regions")
    left = tuple(region for at, region in enumerate(before.regions) if at != index)
    return f"remove region {before.regions[index].name}", dataclasses.replace(before, regions=left)


_CHANGES: dict[str, Callable[[Design, Mapping[str, Any]], Changed]] = {
    "blockage": _blockage,
    "region": _region,
    "halo": _halo,
    "remove_blockage": _remove_blockage,
    "remove_region": _remove_region,
}


def _rectangle(design: Design, request: Mapping[str, Any]) -> np.ndarray:
    """float64 [1, 4]: the part of the drawn rectangle that lies on the canvas; raises DesignError for none."""
    canvas = design.canvas
    drawn = np.array(request["rectangle"], dtype=np.float64).reshape(1, 4)
    corners: np.ndarray = np.round(np.clip(drawn, 0.0, [canvas.width, canvas.height] * 2), _DIGITS)
    if not (corners[0, 0] < corners[0, 2] and corners[0, 1] < corners[0, 3]):
        raise DesignError("the rectangle lies beside the canvas, or is empty: draw it from corner to corner")
    return corners


def _hard(design: Design, request: Mapping[str, Any]) -> np.ndarray:
    """int32 [K]: the request's hard macros; raises DesignError where there are none."""
    nodes = np.array([int(node) for node in request["nodes"]], dtype=np.int32)
    kinds = design.netlist.kind
    nodes = np.unique(nodes[(nodes >= 0) & (nodes < len(kinds))])
    nodes = nodes[kinds[nodes] == NodeKind.HARD]
    if not len(nodes):
        raise DesignError("choose hard macros first")
    return nodes


def _index(request: Mapping[str, Any], count: int, what: str) -> int:
    index = int(request["index"])
    if not 0 <= index < count:
        raise DesignError(f"{what} {index}: there are {count}")
    return index


def _free_name(constraints: Constraints) -> str:
    taken = {region.name for region in constraints.regions}
    return next(name for number in range(1, len(taken) + 2) if (name := f"region {number}") not in taken)
