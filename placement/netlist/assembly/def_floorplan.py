"""The floorplan that a DEF file holds, in µm.

Axis legend: W rows, M components, K rectangles, each (x_low, y_low, x_high, y_high).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping

import numpy as np

from placement.netlist.assembly.def_rows import rows_of
from placement.netlist.errors import DesignError
from placement.netlist.floorplan import Blockage, Floorplan, Rectangle, Region, Tracks
from placement.netlist.formats.def_file import DefFile
from placement.netlist.formats.findings import refuse
from placement.netlist.formats.shapes import is_slanted, polygon_rectangles
from placement.netlist.technology import Technology


def floorplan_of(file: DefFile, technology: Technology, node_of: np.ndarray) -> tuple[Floorplan, tuple[str, ...]]:
    """The floorplan in a DEF file.

    Args:
        file: the file.
        technology: gives the sites' sizes and the manufacturing grid.
        node_of: int32 [M], the netlist node of each component.

    Returns:
        The floorplan, and notices of what was assumed.

    Raises:
        DesignError: with file and line; the die is empty or slanted, rows lie outside of it, a region or a component
            that is named does not exist.
    """
    notices: list[str] = []
    die = _die(file)
    rows = rows_of(file, technology, notices)
    core = _snapped(rows.box, file.units) if rows.box else None
    if core is None:
        notices.append(f"{file.path} has no rows for cells: the core is the whole die")
        core = die
    elif not die.contains(core):
        raise DesignError(
            f"{file.path}: the rows span {_box_text(core)} µm, which must lie in the die of {_box_text(die)} µm"
        )
    component_of = {name: index for index, name in enumerate(file.components.written_names)}
    halo_component = file.components.halo_component
    floorplan = Floorplan(
        units=file.units,
        die=die,
        core=core,
        rows=rows,
        tracks=_tracks(file),
        blockages=(*_outside_of_die(file, die), *_blockages(file, component_of, node_of)),
        regions=tuple(_regions(file, node_of)),
        halo_node=node_of[halo_component],
        halo=file.components.halo / file.units,
        manufacturing_grid=technology.manufacturing_grid,
    )
    return floorplan, tuple(notices)


def _snapped(box: Rectangle, units: float) -> Rectangle:
    """The same box at whole database units, which sums of µm miss by a rounding error."""
    corners = (box.x_low, box.y_low, box.x_high, box.y_high)
    return Rectangle(*(round(corner * units) / units for corner in corners))


def _box_text(box: Rectangle) -> str:
    return f"({box.x_low:g}, {box.y_low:g}) to ({box.x_high:g}, {box.y_high:g})"


def _die(file: DefFile) -> Rectangle:
    low, high = file.die.min(axis=0) / file.units, file.die.max(axis=0) / file.units
    try:
        return Rectangle(float(low[0]), float(low[1]), float(high[0]), float(high[1]))
    except DesignError as error:
        raise DesignError(f"{file.path}: DIEAREA: {error}") from None


def _outside_of_die(file: DefFile, die: Rectangle) -> list[Blockage]:
    """What a die that is no rectangle leaves free of its box, as a blockage."""
    if len(file.die) <= 2:
        return []
    if is_slanted(file.die):
        raise DesignError(f"{file.path}: DIEAREA has slanted edges: every edge must be horizontal or vertical")
    inside = polygon_rectangles(file.die / file.units)
    heights = np.unique(np.concatenate((inside[:, [1, 3]].ravel(), [die.y_low, die.y_high])))
    free = []
    for bottom, top in zip(heights[:-1].tolist(), heights[1:].tolist(), strict=True):
        slab = inside[(inside[:, 1] <= bottom) & (inside[:, 3] >= top)]
        edges = [die.x_low, *np.sort(slab[:, [0, 2]].ravel()).tolist(), die.x_high]
        free += [
            (left, bottom, right, top) for left, right in zip(edges[::2], edges[1::2], strict=True) if left < right
        ]
    return [Blockage(rectangles=np.array(free))] if free else []


def _tracks(file: DefFile) -> tuple[Tracks, ...]:
    tracks = file.tracks
    return tuple(
        Tracks(
            layer=tracks.layers[layer],
            is_vertical=bool(is_x),
            start=start / file.units,
            step=step / file.units,
            count=count,
        )
        for layer, is_x, start, step, count in zip(
            tracks.layer.tolist(), tracks.is_x.tolist(), tracks.start.tolist(), tracks.step.tolist(),
            tracks.count.tolist(), strict=True,
        )
    )  # fmt: skip


def _blockages(file: DefFile, component_of: Mapping[str, int], node_of: np.ndarray) -> list[Blockage]:
    blockages = file.blockages
    found = []
    for index, (layer, component) in enumerate(
        zip(blockages.layer.tolist(), blockages.component.tolist(), strict=True)
    ):
        shapes = []
        for polygon in range(blockages.start[index], blockages.start[index + 1]):
            points = blockages.points[blockages.polygon_start[polygon] : blockages.polygon_start[polygon + 1]]
            corners = points / file.units
            box = np.concatenate((corners.min(axis=0), corners.max(axis=0)))[None, :]
            shapes.append(box if len(points) == 2 else polygon_rectangles(corners))
        node = -1
        if component >= 0:
            name = blockages.components[component]
            if name not in component_of:
                raise file.error(
                    blockages.begin[index], f"a blockage belongs to component {name!r}, which does not exist"
                )
            node = int(node_of[component_of[name]])
        density = float(blockages.partial[index])
        found.append(
            Blockage(
                rectangles=np.concatenate(shapes) if shapes else np.zeros((0, 4)),
                layer=blockages.layers[layer] if layer >= 0 else "",
                is_soft=bool(blockages.is_soft[index]),
                density=None if np.isnan(density) else density / 100,
                node=node,
            )
        )
    return found


def _regions(file: DefFile, node_of: np.ndarray) -> list[Region]:
    """Every region with the nodes of its groups, and of the components that name it."""
    areas, components = file.areas, file.components
    number = {name: index for index, name in enumerate(areas.regions)}
    members: list[list[int]] = [[] for _ in areas.regions]
    unknown: list[tuple[int, str]] = []
    for index, (group, region) in enumerate(zip(areas.groups, areas.group_region, strict=True)):
        patterns = areas.patterns[areas.group_start[index] : areas.group_start[index + 1]]
        if region and region not in number:
            unknown.append((file.line(areas.group_begin[index]), f"{region} of group {group}"))
        elif region:
            members[number[region]] += _matching(components.written_names, patterns)
    for component, region in zip(components.region_component.tolist(), components.region.tolist(), strict=True):
        name = components.regions[region]
        if name not in number:
            unknown.append((file.line(components.begin[component]), f"{name} of {components.names[component]}"))
        else:
            members[number[name]].append(component)
    if unknown:
        refuse(file.path, [("regions that do not exist", len(unknown), unknown)])
    return [
        Region(
            name=name,
            rectangles=_boxes(areas.boxes[areas.start[index] : areas.start[index + 1]]) / file.units,
            nodes=np.unique(node_of[np.array(members[index], dtype=np.int64)]),
            is_guide=bool(areas.is_guide[index]),
            is_exclusive=bool(areas.is_fence[index]),
        )
        for index, name in enumerate(areas.regions)
    ]


def _boxes(corners: np.ndarray) -> np.ndarray:
    """int32 [K, 4] with the lower left corner first."""
    return np.concatenate((np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])), 1)


def _matching(names: list[str], patterns: list[str]) -> list[int]:
    """The components that name patterns mean; `*` stands for anything."""
    plain = {pattern for pattern in patterns if "*" not in pattern}
    found = [index for index, name in enumerate(names) if name in plain] if plain else []
    for pattern in patterns:
        if "*" in pattern:
            # Only `*` is special in DEF; fnmatch knows `?` and `[` too.
            escaped = "".join(f"[{letter}]" if letter in "?[" else letter for letter in pattern)
            found += [index for index, name in enumerate(names) if fnmatch.fnmatchcase(name, escaped)]
    return found
