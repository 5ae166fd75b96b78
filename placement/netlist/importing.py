"""From a flat design to the folder that every later step reads.

The folder holds the clustered netlist and a first placement in Circuit Training's formats, the flat netlist in its
compact form, the macros' constraints, the cells' clusters, the user's DEF file, and where everything came from (names
and checksums).
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from placement.netlist.canvas import canvas_of
from placement.netlist.capacity import RoutingCapacity
from placement.netlist.clustering.cluster import Clustering, cluster_cells
from placement.netlist.clustering.clustered import clustered_design
from placement.netlist.clustering.settings import ClusteringSettings
from placement.netlist.constraints_file import CONSTRAINTS_NAME, write_constraints
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.flat_constraints import ConstraintSettings, carried_over, constraints_of
from placement.netlist.flat_design import FlatDesign
from placement.netlist.flat_file import FLAT_NAME, write_flat
from placement.netlist.formats.plc import write_placement
from placement.netlist.formats.protobuf_writer import write_netlist
from placement.netlist.grid import GridRule
from placement.netlist.load import INITIAL_NAME, NETLIST_NAMES

CLUSTERS_NAME = "clusters.npz"
SOURCE_NAME = "source.json"
DEF_NAME = "source.def.gz"


@dataclasses.dataclass(frozen=True, eq=False)
class ImportedDesign:
    """A flat design and what was made of it.

    Attributes:
        flat: the design as it was read.
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


def import_design(
    flat: FlatDesign,
    *,
    columns: int | None = None,
    rows: int | None = None,
    rule: GridRule | None = None,
    settings: ClusteringSettings | None = None,
    constraints: ConstraintSettings | None = None,
) -> ImportedDesign:
    """Chooses the grid, clusters the cells and builds the clustered design with its constraints.

    Args:
        flat: from `placement.netlist.assembly`.
        columns: of the grid; None: chosen by the rule.
        rows: of the grid; None: chosen by the rule.
        rule: see `placement.netlist.grid`.
        settings: of the clustering.
        constraints: what macros must keep to beside what the files say.

    Raises:
        DesignError: as `canvas_of`, `cluster_cells`, `clustered_design` and `constraints_of`; the design has no macro.
    """
    if not len(flat.netlist.hard):
        raise DesignError(f"design {flat.name!r} has no macro: nothing is to be placed")
    kept, left_out = constraints_of(flat, constraints)
    canvas, capacity = canvas_of(flat, columns=columns, rows=rows, rule=rule)
    clustering = cluster_cells(flat, canvas, settings=settings)
    design = clustered_design(flat, clustering, canvas)
    design = dataclasses.replace(design, constraints=carried_over(kept, flat.netlist, design.netlist))
    notices = (*flat.notices, *left_out, *capacity.notices, *clustering.notices)
    return ImportedDesign(flat=flat, design=design, clustering=clustering, capacity=capacity, notices=notices)


def write_design(folder: str | os.PathLike[str], imported: ImportedDesign, *, def_data: bytes | None = None) -> None:
    """Writes the design folder; what is placed nowhere stands at the canvas's centre in its first placement.

    Args:
        folder: made if it does not exist; files in it are replaced.
        imported: the design.
        def_data: the unpacked bytes of the user's DEF file, which an export is to change.

    Raises:
        DesignError: the netlist has a form that the format cannot hold.
        OSError: the folder cannot be made or written.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    design, clustering = imported.design, imported.clustering
    initial = _all_placed(design)
    write_netlist(path / NETLIST_NAMES[1], design.netlist, initial)
    write_placement(path / INITIAL_NAME, design, initial)
    write_constraints(path / CONSTRAINTS_NAME, design.netlist, design.constraints)
    write_flat(path / FLAT_NAME, imported.flat)
    out = io.BytesIO()
    np.savez_compressed(out, cluster=clustering.cluster)
    write_whole(path / CLUSTERS_NAME, out.getvalue())
    write_whole(path / SOURCE_NAME, json.dumps(_source(imported), indent=1, ensure_ascii=False) + "\n")
    if def_data is not None:
        write_whole(path / DEF_NAME, gzip.compress(def_data, 6, mtime=0))


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
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DesignError(f"{path}: no clusters, or a damaged file: {error}") from None


def _all_placed(design: Design) -> Placement:
    initial, canvas = design.initial, design.canvas
    return Placement(
        x=np.where(initial.placed, initial.x, canvas.width / 2),
        y=np.where(initial.placed, initial.y, canvas.height / 2),
        orientation=initial.orientation,
        placed=np.ones_like(initial.placed),
        fixed=initial.fixed,
    )


def _source(imported: ImportedDesign) -> dict[str, Any]:
    flat, core = imported.flat, imported.flat.floorplan.core
    return {
        "name": flat.name,
        "files": [dataclasses.asdict(source) for source in flat.sources],
        "database_units_per_micron": flat.floorplan.units,
        "core_offset": [core.x_low, core.y_low],
        "clustering": dataclasses.asdict(imported.clustering.settings)
        | {"parts": imported.clustering.parts, "clusters": imported.clustering.count},
        "notices": list(imported.notices),
    }
