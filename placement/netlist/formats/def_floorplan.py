"""The floorplan in a DEF file, in µm.

Axis legend: W rows, M components, K rectangles, each (x_low, y_low, x_high, y_high).
"""

import fnmatch
import itertools

import numpy as np

from placement.netlist.design import Orientation
from placement.netlist.errors import DesignError, listing
from placement.netlist.floorplan import Blockage, Floorplan, Region, Rows, Straps, Tracks
from placement.netlist.formats.def_file import DefFile
from placement.netlist.geometry import Rectangle, is_slanted, polygon_rectangles, without_slants
from placement.netlist.technology import Technology

_LONG = 0.5  # minimum length of a power strap, as a fraction of the core's side


def floorplan_of(file: DefFile, technology: Technology, node_of: np.ndarray) -> tuple[Floorplan, tuple[str, ...]]:
    """The floorplan in a DEF file, and notices of the assumptions that were made.

    Args:
        file: the file.
        technology: the sites' sizes and the manufacturing grid.
        node_of: int32 [M], the netlist node of each component.

    Raises:
        DesignError: with file and line; the die is empty, or all rows lie outside of it.
    """
    notices: list[str] = []
    rows = _rows(file, technology, notices)
    die = core = _die(file, rows, notices)
    if rows.box is None:
        notices.append(f"{file.path} has no rows for cells: the core is the whole die")
    else:
        # Lengths are rounded to whole database units, which sums of µm miss by a rounding error.
        box = (rows.box.x_low, rows.box.y_low, rows.box.x_high, rows.box.y_high)
        core = Rectangle(*(round(corner * file.units) / file.units for corner in box))
    if not die.contains(core):
        beyond = f"{file.path}: the rows span {_box_text(core)} µm, beyond the die of {_box_text(die)} µm"
        low = max(core.x_low, die.x_low), max(core.y_low, die.y_low)
        high = min(core.x_high, die.x_high), min(core.y_high, die.y_high)
        if low[0] >= high[0] or low[1] >= high[1]:
            raise DesignError(f"{beyond}: they must be inside the die")
        core = Rectangle(*low, *high)
        notices.append(f"{beyond}: the core is clipped to the die")
    tracks = file.tracks
    columns = zip(tracks.layer, tracks.is_x, tracks.start, tracks.step, tracks.count, strict=True)
    floorplan = Floorplan(
        units=file.units,
        die=die,
        core=core,
        rows=rows,
        tracks=tuple(
            Tracks(tracks.layers[layer], bool(is_x), int(start) / file.units, int(step) / file.units, int(count))
            for layer, is_x, start, step, count in columns
        ),
        blockages=(*_outside_of_die(file, die, notices), *_blockages(file, node_of, notices)),
        regions=tuple(_regions(file, node_of, notices)),
        halo_node=node_of[file.components.halo_component],
        halo=file.components.halo / file.units,
        manufacturing_grid=technology.manufacturing_grid,
        straps=straps_of(file, core),
    )
    return floorplan, tuple(notices)


def straps_of(file: DefFile, core: Rectangle) -> tuple[Straps, ...]:
    """The power straps that run through most of the core; of each layer, those of the net with the widest pitch.

    A net's pitch is the median distance between neighbouring straps. Shorter segments, such as those of a grid over a
    macro, do not count.
    """
    straps, found = file.straps, []
    vertical = straps.is_vertical > 0
    is_long = (straps.high - straps.low) / file.units >= _LONG * np.where(vertical, core.height, core.width)
    for layer, is_vertical in sorted({*zip(straps.layer[is_long].tolist(), vertical[is_long].tolist(), strict=True)}):
        own = is_long & (straps.layer == layer) & (vertical == is_vertical)
        places = (np.unique(straps.at[own & (straps.net == net)]) for net in np.unique(straps.net[own]))
        pitches = [float(np.median(np.diff(at))) / file.units for at in places if len(at) > 1]
        if pitches:
            width = float(straps.width[own].max()) / file.units
            found.append(Straps(straps.layers[layer], is_vertical, max(pitches), width))
    return tuple(found)


def _box_text(box: Rectangle) -> str:
    return f"({box.x_low:g}, {box.y_low:g}) to ({box.x_high:g}, {box.y_high:g})"


def _die(file: DefFile, rows: Rows, notices: list[str]) -> Rectangle:
    if not len(file.die):
        if rows.box is None:
            raise DesignError(f"{file.path}: the file has no DIEAREA and no rows of standard cells")
        notices.append(f"{file.path} has no DIEAREA: the die is the box around the rows")
        return rows.box
    low, high = file.die.min(axis=0) / file.units, file.die.max(axis=0) / file.units
    try:
        return Rectangle(float(low[0]), float(low[1]), float(high[0]), float(high[1]))
    except DesignError as error:
        raise DesignError(f"{file.path}: DIEAREA: {error}") from None


def _outside_of_die(file: DefFile, die: Rectangle, notices: list[str]) -> list[Blockage]:
    """Blockages of the area between a die that is not a rectangle and its bounding box."""
    if len(file.die) <= 2:
        return []
    if is_slanted(file.die):
        notices.append(f"{file.path}: slanted edges of DIEAREA are replaced by corners inside the die")
    inside = polygon_rectangles(without_slants(file.die) / file.units)
    heights = np.unique(np.concatenate((inside[:, [1, 3]].ravel(), [die.y_low, die.y_high])))
    free = []
    for bottom, top in itertools.pairwise(heights.tolist()):
        slab = inside[(inside[:, 1] <= bottom) & (inside[:, 3] >= top)]
        edges = [die.x_low, *np.sort(slab[:, [0, 2]].ravel()).tolist(), die.x_high]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        free += [(left, bottom, right, top) for left, right in pairs if left < right]
    return [Blockage(rectangles=np.array(free))] if free else []


def _rows(file: DefFile, technology: Technology, notices: list[str]) -> Rows:
    """The rows of standard cells, which are all rows but those of the pad ring, whose sites have the class PAD.

    Raises DesignError if the row height cannot be found.
    """
    rows = file.rows
    kept = _of_cells(file, technology, notices)
    turned = rows.orientation >= Orientation.E
    across = rows.count_x >= rows.count_y
    width, height = np.zeros(len(rows.names)), np.zeros(len(rows.names))
    for number, name in enumerate(rows.sites):
        mine = kept & (rows.site == number)
        if not mine.any():
            continue
        site = technology.sites.get(name)
        if site is None:
            height[mine] = _height_between(file, name, rows.y[mine], notices)
        else:
            width[mine] = np.where(turned[mine], site.height, site.width)
            height[mine] = np.where(turned[mine], site.width, site.height)
    step_x, step_y = rows.step_x / file.units, rows.step_y / file.units
    site_width = np.where(across & (step_x > 0), step_x, width)
    site_width = np.where(site_width > 0, site_width, 1 / file.units)
    site_height = np.where(~across & (step_y > 0), step_y, height)
    return Rows(
        x=(rows.x / file.units)[kept],
        y=(rows.y / file.units)[kept],
        width=(np.where(across, rows.count_x, 1) * site_width)[kept],
        height=(np.where(across, 1, rows.count_y) * site_height)[kept],
        site_width=site_width[kept],
        orientation=rows.orientation[kept],
    )


def _of_cells(file: DefFile, technology: Technology, notices: list[str]) -> np.ndarray:
    """Marks the rows of standard cells, bool [W].

    Tools make sites for the pad ring that no LEF file defines: if some rows have known sites, rows without one count as
    rows of pads.
    """
    site, sites = file.rows.site, technology.sites
    kinds = np.array([sites[name].kind if name in sites else "" for name in file.rows.sites], dtype=object)
    pads, unknown = kinds == "PAD", kinds == ""
    others: np.ndarray = (~pads & ~unknown)[site]
    if others.any():
        pads |= unknown
    of_pads: np.ndarray = pads[site]
    if of_pads.any():
        names = ", ".join(np.array(file.rows.sites, dtype=object)[pads].tolist())
        count = int(of_pads.sum())
        notices.append(
            f"{file.path}: {count} rows of sites that are for pads or in no LEF file ({names}) are not part of the core"
        )
    return ~of_pads


def _height_between(file: DefFile, site: str, y: np.ndarray, notices: list[str]) -> float:
    """The most frequent distance in µm between rows of a site that no LEF file defines."""
    gaps = np.diff(np.unique(y))
    if not len(gaps):
        raise DesignError(
            f"{file.path}: site {site!r} is in no LEF file, and a single row does not show its height: "
            "give the technology LEF"
        )
    values, counts = np.unique(gaps, return_counts=True)
    height = float(values[np.argmax(counts)]) / file.units
    notices.append(
        f"{file.path}: site {site!r} is in no LEF file; rows are {height:g} µm apart, so this is used as their height"
    )
    return height


def _blockages(file: DefFile, node_of: np.ndarray, notices: list[str]) -> list[Blockage]:
    blockages, found, missing, slanted = file.blockages, [], [], []
    component_of = {name: index for index, name in enumerate(file.components.names)}
    component_of |= {name: index for index, name in enumerate(file.components.written_names)}
    for index, (layer, component) in enumerate(zip(blockages.layer, blockages.component, strict=True)):
        shapes = [np.zeros((0, 4))]
        for polygon in range(blockages.start[index], blockages.start[index + 1]):
            points = blockages.points[blockages.polygon_start[polygon] : blockages.polygon_start[polygon + 1]]
            corners = points / file.units
            box = np.concatenate((corners.min(axis=0), corners.max(axis=0)))[None, :]
            shapes.append(box if len(points) == 2 else polygon_rectangles(corners))
            if layer < 0 and len(points) > 2 and is_slanted(points):
                slanted.append((file.line(blockages.begin[index]), "PLACEMENT"))
        node, density = -1, float(blockages.partial[index])
        if component >= 0:
            name = blockages.components[component]
            if name in component_of:
                node = int(node_of[component_of[name]])
            else:
                missing.append((file.line(blockages.begin[index]), name))
        found.append(
            Blockage(
                rectangles=np.concatenate(shapes),
                layer=blockages.layers[layer] if layer >= 0 else "",
                is_soft=bool(blockages.is_soft[index]),
                density=None if np.isnan(density) else density / 100,
                node=node,
            )
        )
    for what, cases in (
        ("blockages of components that do not exist are treated as fixed", missing),
        ("blockages with slanted edges are replaced by their bounding boxes", slanted),
    ):
        notices += [listing(file.path, what, len(cases), cases)] if cases else []
    return found


def _regions(file: DefFile, node_of: np.ndarray, notices: list[str]) -> list[Region]:
    """Every region with the nodes of its groups, and of the components that name it."""
    areas, components = file.areas, file.components
    number = {name: index for index, name in enumerate(areas.regions)}
    members: list[list[int]] = [[] for _ in areas.regions]
    unknown: list[tuple[int, str]] = []
    strange: list[tuple[int, str]] = []
    for index, (group, region) in enumerate(zip(areas.groups, areas.group_region, strict=True)):
        patterns = areas.patterns[areas.group_start[index] : areas.group_start[index + 1]]
        if region and region not in number:
            unknown.append((file.line(areas.group_begin[index]), f"{region} of group {group}"))
        elif region:
            found, lost = _matching(components.written_names, patterns)
            others, lost = _matching(components.names, [pattern.replace("\\", "") for pattern in lost])
            members[number[region]] += found + others
            strange += [(file.line(areas.group_begin[index]), f"{pattern} in {group}") for pattern in lost]
    for component, region in zip(components.region_component.tolist(), components.region.tolist(), strict=True):
        name = components.regions[region]
        if name not in number:
            unknown.append((file.line(components.begin[component]), f"{name} of {components.names[component]}"))
        else:
            members[number[name]].append(component)
    for what, cases in (
        ("regions that do not exist, which are ignored", unknown),
        ("names in groups that match no component", strange),
    ):
        notices += [listing(file.path, what, len(cases), cases)] if cases else []
    low, high = np.minimum(areas.boxes[:, :2], areas.boxes[:, 2:]), np.maximum(areas.boxes[:, :2], areas.boxes[:, 2:])
    boxes = np.concatenate((low, high), axis=1) / file.units
    return [
        Region(
            name=name,
            rectangles=boxes[areas.start[index] : areas.start[index + 1]],
            nodes=np.unique(node_of[np.array(members[index], dtype=np.int64)]),
            is_guide=bool(areas.is_guide[index]),
            is_exclusive=bool(areas.is_fence[index]),
        )
        for index, name in enumerate(areas.regions)
    ]


def _matching(names: list[str], patterns: list[str]) -> tuple[list[int], list[str]]:
    """The components whose names match the patterns (`*` matches anything), and the patterns that match none."""
    plain = {pattern for pattern in patterns if "*" not in pattern}
    found = [index for index, name in enumerate(names) if name in plain] if plain else []
    lost = sorted(plain - {names[index] for index in found})
    for pattern in patterns:
        if "*" in pattern:
            # Only `*` is special in DEF; fnmatch also interprets `?` and `[`.
            escaped = "".join(f"[{letter}]" if letter in "?[" else letter for letter in pattern)
            matching = [index for index, name in enumerate(names) if fnmatch.fnmatchcase(name, escaped)]
            found += matching
            lost += [pattern] if not matching else []
    return found, lost
