"""From a flat design to the folder that every later step reads.

The folder holds the clustered netlist and a first placement in Circuit Training's formats, the flat netlist in its
compact form, the macros' constraints, the cells' clusters, the user's DEF file, and where everything came from (names
and checksums).
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from placement.netlist.canvas import canvas_of
from placement.netlist.capacity import RoutingCapacity, capacity_of
from placement.netlist.clustering.cluster import Clustering, cluster_cells
from placement.netlist.clustering.clustered import check_macro_names, clustered_design
from placement.netlist.clustering.settings import ClusteringSettings
from placement.netlist.constraints import Constraints
from placement.netlist.constraints_file import CONSTRAINTS_NAME, write_constraints
from placement.netlist.design import Canvas, Design, NodeKind, Placement
from placement.netlist.design_folder import CLUSTERS_NAME, SOURCE_NAME, design_folder
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import check_constraints
from placement.netlist.files import write_whole
from placement.netlist.flat_constraints import ConstraintSettings, carried_over, constraints_of
from placement.netlist.flat_design import FlatDesign
from placement.netlist.flat_file import DAMAGED_NPZ, DEF_NAME, FLAT_NAME, POSITIONS_NAME, write_flat
from placement.netlist.formats.plc import write_placement
from placement.netlist.formats.protobuf_writer import write_netlist
from placement.netlist.grid import GridRule
from placement.netlist.into_arrays import ArraySetting, with_arrays
from placement.netlist.load import INITIAL_NAME, NETLIST_NAMES

Phase = Callable[[str], AbstractContextManager[Any]]
"""Surrounds a part of the work, whose name it is told."""
Place = Callable[[FlatDesign, Design], Placement]
"""Places cells and movable macros together: from the flat design, and the same on the canvas with its constraints, to a
placement of the flat netlist. Raises DesignError where it cannot."""


@dataclasses.dataclass(frozen=True, eq=False)
class ImportedDesign:
    """A flat design and what was made of it.

    Attributes:
        flat: the design as it was read, with arrays in the place of their macros.
        design: hard macros, soft macros and ports on the canvas, with the macros' constraints; positions count from the
            core's lower left corner.
        clustering: the cluster of each cell: soft macro `Grp_<cluster>` of `design`.
        capacity: what the canvas's routing capacity is made of.
        notices: all that was odd, assumed, derived or left out.
    """

    flat: FlatDesign
    design: Design
    clustering: Clustering
    capacity: RoutingCapacity
    notices: tuple[str, ...]


def import_design(  # noqa: PLR0913  all but the first have a default
    flat: FlatDesign,
    *,
    columns: int | None = None,
    rows: int | None = None,
    rule: GridRule | None = None,
    settings: ClusteringSettings | None = None,
    constraints: ConstraintSettings | None = None,
    arrays: Sequence[ArraySetting] = (),
    banks: bool = False,
    order_by_places: bool = False,
    canvas: Canvas | None = None,
    tracks: Sequence[float] = (),
    place: Place | None = None,
    phase: Phase = contextlib.nullcontext,
) -> ImportedDesign:
    """Chooses the grid, clusters the cells and builds the clustered design with its constraints.

    Args:
        flat: from `placement.netlist.assembly`.
        columns: of the grid; None: chosen by the rule.
        rows: of the grid; None: chosen by the rule.
        rule: see `placement.netlist.grid`.
        settings: of the clustering.
        constraints: what macros must keep to beside what the files say.
        arrays: macros that stand as one (`with_arrays`). The grid is that of the macros by themselves.
        banks: whether macros whose names differ in their last number alone do so, too.
        order_by_places: whether the macros of an array are ordered by where they would be by themselves, as the files
            have them or as `place` finds it; otherwise by their names.
        canvas: taken as it is, but for columns, rows and tracks that are given; None: from the floorplan and the rule.
        tracks: four numbers of tracks per µm in the place of the canvas's: across, up, and of these taken by macros,
            across and up; none: as they are.
        place: where cells or macros have no positions, clusters go by the places that this finds for them; None: by
            those that cells have, if all have some, or by connectivity alone.
        phase: is told what is done.

    Raises:
        DesignError: as `canvas_of`, `cluster_cells`, `clustered_design`, `check_macro_names`, `constraints_of`,
            `with_arrays` and `check_constraints`; the design has no macro. All but what clustering raises comes before
            it.
    """
    if not len(flat.netlist.hard):
        raise DesignError(f"design {flat.name!r} has no macro: nothing is to be placed")
    kept, left_out = constraints_of(flat, constraints)
    with phase("grid and routing capacity"):
        if canvas is None:
            canvas, capacity = canvas_of(flat, columns=columns, rows=rows, rule=rule, constraints=kept)
        else:
            canvas = dataclasses.replace(canvas, columns=columns or canvas.columns, rows=rows or canvas.rows)
            capacity = capacity_of(canvas)
        if tracks:
            across, up, macros_across, macros_up = tracks
            canvas = dataclasses.replace(
                canvas,
                routes_horizontal=across,
                routes_vertical=up,
                macro_routes_horizontal=macros_across,
                macro_routes_vertical=macros_up,
            )
            capacity = capacity_of(canvas)
    places, unordered = None, tuple[str, ...]()
    if order_by_places and (arrays or banks):
        join = partial(with_arrays, flat, kept, arrays, banks=banks)
        places, unordered = _macro_places(flat, join, _flat_on(canvas, flat, kept), place, phase)
    flat, kept, strewn = with_arrays(flat, kept, arrays, banks=banks, places=places)
    check_macro_names(flat.netlist)
    on_canvas = _flat_on(canvas, flat, kept)
    broken = check_constraints(on_canvas)
    settings = settings or ClusteringSettings()
    at, not_placed = flat, tuple[str, ...]()
    if place is not None and settings.use_positions:
        at, not_placed = _with_places(flat, on_canvas, place, phase)
    with phase("clustering"):
        clustering = cluster_cells(at, canvas, settings=settings)
    with phase("clustered netlist"):
        design, dropped = clustered_design(flat, clustering, canvas)
        design = dataclasses.replace(design, constraints=carried_over(kept, flat.netlist, design.netlist))
    hard = flat.netlist.hard
    fixed = f"all {len(hard)} macros are fixed: nothing is left to place unless they are freed"
    own = [fixed] if flat.placement.fixed[hard].all() else []
    notices = (*flat.notices, *left_out, *own, *unordered, *strewn, *broken, *capacity.notices)
    notices += (*not_placed, *clustering.notices, *dropped)
    return ImportedDesign(flat=flat, design=design, clustering=clustering, capacity=capacity, notices=notices)


def _with_places(flat: FlatDesign, on_canvas: Design, place: Place, phase: Phase) -> tuple[FlatDesign, tuple[str, ...]]:
    """The design placed by `place`, where macros or cells have no places; where that fails, a notice."""
    if flat.placement.placed[flat.netlist.kind != NodeKind.PORT].all():
        return flat, ()
    with phase("placing cells and macros"):
        try:
            return dataclasses.replace(flat, placement=place(flat, on_canvas)), ()
        except DesignError as error:
            return flat, (f"cells and macros could not be placed together for the clustering: {error}",)


def _macro_places(
    flat: FlatDesign, join: Callable[..., tuple[FlatDesign, Constraints, tuple[str, ...]]], on_canvas: Design,
    place: Place | None, phase: Phase,
) -> tuple[Placement | None, tuple[str, ...]]:  # fmt: skip
    """Where macros would be by themselves, for the order in their arrays; None, and a notice, where nothing says it.

    The files' places count where macros stand as arrays already, or where all cells have places, too.
    """
    joined, _, notices = join()  # raises where an array is wrong, before the work
    if not joined.arrays:
        return None, ()
    macros_placed = flat.placement.placed[flat.netlist.hard].all()
    if macros_placed and (not notices or not join(places=flat.placement)[2]):
        return flat.placement, ()
    if flat.placement.placed[flat.netlist.kind != NodeKind.PORT].all():
        return flat.placement, ()
    why = "nothing places them"
    if place is not None:
        with phase("placing cells and macros, for the order in arrays"):
            try:
                return place(flat, on_canvas), ()
            except DesignError as error:
                why = str(error)
    return None, (f"the macros of arrays are in the order of their names: {why}",)


def _flat_on(canvas: Canvas, flat: FlatDesign, constraints: Constraints) -> Design:
    """The flat netlist on the canvas, of which constraints ask the same as of the clustered one."""
    core, there = flat.floorplan.core, flat.placement
    initial = dataclasses.replace(
        there,
        x=np.where(there.placed, there.x - core.x_low, 0.0),
        y=np.where(there.placed, there.y - core.y_low, 0.0),
    )
    return Design(name=flat.name, netlist=flat.netlist, canvas=canvas, initial=initial, constraints=constraints)


def write_design(
    folder: str | os.PathLike[str],
    imported: ImportedDesign,
    *,
    def_data: bytes | None = None,
    positions_data: bytes | None = None,
    extra: Mapping[str, bytes] | None = None,
) -> None:
    """Writes the design folder, whole or not at all, in the place of a design that is there (`design_folder`).

    What is placed nowhere stands at the canvas's centre in its first placement.

    Args:
        folder: made if it does not exist, with the folders above it.
        imported: the design.
        def_data: the unpacked bytes of the user's DEF file, which an export is to change.
        positions_data: the same of the `.pl` file of a Bookshelf design.
        extra: further files, name → bytes.

    Raises:
        DesignError: the netlist has a form that the format cannot hold.
        OSError: the folder cannot be made or written.
    """
    design, clustering = imported.design, imported.clustering
    with design_folder(folder) as made:
        initial = _all_placed(design)
        write_netlist(made / NETLIST_NAMES[1], design.netlist, initial)
        write_placement(made / INITIAL_NAME, design, initial)
        write_constraints(made / CONSTRAINTS_NAME, design.netlist, design.constraints)
        write_flat(made / FLAT_NAME, imported.flat)
        out = io.BytesIO()
        np.savez_compressed(out, cluster=clustering.cluster)
        write_whole(made / CLUSTERS_NAME, out.getvalue())
        write_whole(made / SOURCE_NAME, json.dumps(_source(imported), indent=1, ensure_ascii=False) + "\n")
        for name, data in ((DEF_NAME, def_data), (POSITIONS_NAME, positions_data)):
            if data is not None:
                write_whole(made / name, gzip.compress(data, 6, mtime=0))
        for name, data in (extra or {}).items():
            write_whole(made / name, data)


def read_clusters(folder: str | os.PathLike[str]) -> np.ndarray:
    """int32 [nodes of the flat netlist]: the soft macro `Grp_<n>` of each cell, -1 for what is in none.

    Raises:
        DesignError: the file cannot be read or is none of these.
    """
    path = Path(folder) / CLUSTERS_NAME
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            return np.asarray(file["cluster"], dtype=np.int32)
    except OSError as error:
        raise DesignError(f"{path}: cannot be read: {error.strerror or error}") from None
    except DAMAGED_NPZ as error:
        raise DesignError(f"{path}: no clusters, or a damaged file: {error}") from None


def clusters_or_none(folder: Path, flat: FlatDesign) -> np.ndarray:
    """As `read_clusters`; every cell is in none where the folder has no such file.

    Args:
        folder: of the design.
        flat: the design before clustering, as it was read from there.

    Raises:
        DesignError: the file cannot be read or is none of these.
    """
    if not (folder / CLUSTERS_NAME).is_file():
        return np.full(flat.netlist.num_nodes, -1, dtype=np.int32)
    return read_clusters(folder)


def _all_placed(design: Design) -> Placement:
    initial, canvas = design.initial, design.canvas
    x = np.where(initial.placed, initial.x, canvas.width / 2)
    y = np.where(initial.placed, initial.y, canvas.height / 2)
    return dataclasses.replace(initial, x=x, y=y, placed=np.ones_like(initial.placed))


def _source(imported: ImportedDesign) -> dict[str, Any]:
    flat, core = imported.flat, imported.flat.floorplan.core
    return {
        "name": flat.name,
        "files": [dataclasses.asdict(source) for source in flat.sources],
        "database_units_per_micron": flat.floorplan.units,
        "core_offset": [core.x_low, core.y_low],
        "clustering": dataclasses.asdict(imported.clustering.settings)
        | {"parts": imported.clustering.parts, "clusters": imported.clustering.count},
        "arrays": {flat.netlist.names[array.node]: list(array.names) for array in flat.arrays},
        "notices": list(imported.notices),
    }
