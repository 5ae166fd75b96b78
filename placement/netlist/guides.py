"""Guides of a floorplan (DEF REGION of TYPE GUIDE), which are enforced as regions where their macros fit.

Axis legend: N nodes, K rectangles on the canvas, each (x_low, y_low, x_high, y_high). Lengths in µm.
"""

import dataclasses

import numpy as np

from placement.netlist.canvas import Canvas
from placement.netlist.constraints import Constraints
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Region
from placement.netlist.geometry import LEAST, clipped, union_area

_MOST_NAMED = 3  # maximum number of a guide's macros that its notice names
_LARGEST_SHARE = 0.5  # maximum share of a guide's free area that macros and their halos cover if it is enforced


def with_guides(flat: FlatDesign, constraints: Constraints, canvas: Canvas) -> tuple[Constraints, tuple[str, ...]]:
    """The constraints of a flat design and the guides that its macros can keep, and a notice for each guide.

    A guide is only a preference. Those that might leave a macro without a legal gcell are ignored.
    """
    netlist, notices = flat.netlist, list[str]()
    origin = np.array([flat.floorplan.core.x_low, flat.floorplan.core.y_low] * 2)
    given = {region.name for region in constraints.regions}
    for guide in (region for region in flat.floorplan.regions if region.is_guide):
        bound = [node for region in constraints.regions for node in region.nodes.tolist()]
        macros = np.setdiff1d(np.intersect1d(guide.nodes, netlist.hard), bound)
        macros = macros[~flat.placement.fixed[macros]].astype(np.int32)
        rectangles = clipped(guide.rectangles - origin, canvas.width, canvas.height)
        if guide.name in given:
            notices.append(f"guide {guide.name!r} is replaced by the region of this name")
        elif not len(macros):
            notices.append(f"guide {guide.name!r} is ignored: no movable macro without a region belongs to it")
        elif problem := _problem(flat, constraints, canvas, Region(guide.name, rectangles, macros)):
            notices.append(f"guide {guide.name!r} is ignored: {problem}{_as_option(flat, guide, macros)}")
        else:
            regions = (*constraints.regions, Region(guide.name, rectangles, macros))
            constraints = dataclasses.replace(constraints, regions=regions)
            notices.append(f"guide {guide.name!r} is enforced as a region: its {len(macros)} macros stay inside")
    return constraints, tuple(notices)


def _problem(flat: FlatDesign, constraints: Constraints, canvas: Canvas, guide: Region) -> str | None:
    """Why the macros of a guide on the canvas cannot stay in it, or None."""
    netlist, placement, macros = flat.netlist, flat.placement, guide.nodes
    origin = np.array([flat.floorplan.core.x_low, flat.floorplan.core.y_low] * 2)
    turned = constraints.turned(placement.orientation)
    sides, halo = np.stack(netlist.sides(turned), axis=1), constraints.turned_halo(turned)
    if not (sides[macros][:, None] <= guide.rectangles[:, 2:] - guide.rectangles[:, :2] + LEAST).all(2).any(1).all():
        return "a macro is larger than its rectangles"
    hard = netlist.hard
    fixed = hard[placement.fixed[hard] & placement.placed[hard]]
    fixed_boxes = netlist.boxes(placement, fixed) - origin
    fixed_boxes += constraints.turned_halo(placement.orientation)[fixed] * (-1, -1, 1, 1)
    exclusive = [region.rectangles for region in constraints.regions if region.is_exclusive]
    closed = np.concatenate((constraints.blockages, *exclusive))
    taken = np.concatenate((closed, fixed_boxes))
    free = union_area(np.concatenate((guide.rectangles, taken))) - union_area(taken)
    inside = np.union1d(macros, _in_overlapping(flat, constraints, guide))
    area = (sides[inside] + halo[inside, :2] + halo[inside, 2:]).prod(axis=1).sum()
    if area > _LARGEST_SHARE * free:
        whose = "its macros" if len(inside) == len(macros) else "its macros and those of overlapping regions"
        return f"{whose} would cover {area / free:.0%} of its free area" if free > 0 else "it has no free area"
    pitch = np.array(constraints.coarsest_pitch)
    for size, gap in {(tuple(sides[node].tolist()), tuple(halo[node].tolist())) for node in macros.tolist()}:
        around = fixed_boxes + np.roll(gap, 2) * (-1, -1, 1, 1)  # halos on opposite sides add up
        if not _has_gcell(canvas, np.array(size) / 2, pitch, guide.rectangles, np.concatenate((closed, around))):
            return "a macro has no legal gcell in it"
    boxes = netlist.boxes(placement, macros[placement.placed[macros]]) - origin
    outside = union_area(np.concatenate((guide.rectangles, boxes))) - union_area(guide.rectangles)
    return "the files place macros outside" if outside > LEAST * canvas.width else None


def _in_overlapping(flat: FlatDesign, constraints: Constraints, guide: Region) -> np.ndarray:
    """The movable macros of the other regions that overlap a guide and let its macros in."""
    area, nodes = union_area(guide.rectangles), np.zeros(0, dtype=np.int32)
    for region in (one for one in constraints.regions if not one.is_exclusive):
        together = union_area(np.concatenate((guide.rectangles, region.rectangles)))
        if area + union_area(region.rectangles) - together > LEAST:
            nodes = np.union1d(nodes, region.nodes)
    return nodes[~flat.placement.fixed[nodes]]


def _has_gcell(canvas: Canvas, half: np.ndarray, pitch: np.ndarray, rectangles: np.ndarray, taken: np.ndarray) -> bool:
    """Whether a macro fits in one of the rectangles and outside of the `taken` ones, centred in some gcell.

    Snapping moves it by at most `pitch`, float64 [2]; `half` is half its size, float64 [2].
    """
    x = (np.arange(canvas.columns) + 0.5) * canvas.width / canvas.columns
    y = (np.arange(canvas.rows) + 0.5) * canvas.height / canvas.rows
    centre = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    low, high = centre - half - pitch + LEAST, centre + half + pitch - LEAST
    is_free = np.zeros(len(centre), dtype=np.bool_)
    for box in rectangles:
        is_free |= (low >= box[:2]).all(axis=1) & (high <= box[2:]).all(axis=1)
    low, high = low[is_free], high[is_free]
    for box in taken:
        clear = (low >= box[2:]).any(axis=1) | (high <= box[:2]).any(axis=1)
        low, high = low[clear], high[clear]
    return len(low) > 0


def _as_option(flat: FlatDesign, guide: Region, macros: np.ndarray) -> str:
    """The option that enforces a guide; empty if one of its macros is an array, which the files do not name."""
    if {array.node for array in flat.arrays} & set(macros.tolist()):
        return ""
    some = ",".join(flat.netlist.names[node] for node in macros[:_MOST_NAMED].tolist())
    more = ",…" if len(macros) > _MOST_NAMED else ""
    boxes = ";".join(",".join(f"{side:g}" for side in box) for box in guide.rectangles.tolist())
    return f"; --region '{guide.name}:{some}{more}:{boxes}' keeps its {len(macros)} macros inside"
