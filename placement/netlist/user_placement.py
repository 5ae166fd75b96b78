"""Placements in the coordinates of an imported design's own files: read from a DEF file, and handed back.

Axis legend: N nodes of the clustered netlist, G clusters.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np

from placement.netlist.design import Canvas, Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.flat_file import FLAT_NAME, read_flat


def is_def(path: str | os.PathLike[str]) -> bool:
    """Whether a file's name is that of a DEF file."""
    return Path(path).name.lower().endswith((".def", ".def.gz"))


def canvas_note(path: str | os.PathLike[str], canvas: Canvas, used: Canvas, *, done: str) -> str | None:
    """What to tell who gave a placement that was made for another canvas, None where it was not.

    Args:
        path: the placement's file.
        canvas: the file's.
        used: the design's.
        done: what is done with it, as in "evaluated".
    """
    if canvas == used:
        return None
    return f"note: {path} was made for {_described(canvas)}; {done} on {_described(used)}"


def _described(canvas: Canvas) -> str:
    return (
        f"a canvas of {canvas.width:g} × {canvas.height:g} µm, {canvas.columns} × {canvas.rows} gcells, "
        f"{canvas.routes_horizontal:g} and {canvas.routes_vertical:g} routes per µm, smoothing {canvas.smoothing}"
    )


def read_imported_flat(folder: str | os.PathLike[str]) -> FlatDesign:
    """The flat design in a design's folder; raises DesignError where there is none, or it cannot be read."""
    return read_flat(require_imported_flat(folder))


def require_imported_flat(folder: str | os.PathLike[str]) -> Path:
    """The file of the flat design in a design's folder; raises DesignError where there is none."""
    path = Path(folder) / FLAT_NAME
    if not path.is_file():
        raise DesignError(
            f"{folder} has no flat netlist ({FLAT_NAME}): import the design from its LEF, DEF, Bookshelf or flat "
            "protobuf files, or make one with `macro-placement generate flat`"
        )
    return path


def read_clustered_def(
    path: str | os.PathLike[str], folder: str | os.PathLike[str], design: Design
) -> tuple[Placement, bool]:
    """Where a DEF file puts the macros and soft macros of an imported design.

    Args:
        path: the DEF file; its components are found by their unescaped names.
        folder: of the design.
        design: as it was loaded from there.

    Returns:
        The placement, µm from the core's lower left corner, and whether the file places the standard cells: soft
        macros then stand at their cells' centres of area, else where the design has them.

    Raises:
        DesignError: as `read_def_placement` and `read_imported_flat`; a macro is not placed.
    """
    # Late: the readers of LEF and DEF take a while to import.
    from placement.netlist.assembly.def_placement import read_def_placement
    from placement.netlist.importing import read_clusters

    flat = read_imported_flat(folder)
    theirs = read_def_placement(path, flat)
    core, hard = flat.floorplan.core, flat.netlist.hard
    lacking = hard[~theirs.placed[hard]]
    if len(lacking):
        raise DesignError(
            f"{path}: {len(lacking)} macros are not placed, the first being {flat.netlist.names[lacking[0]]!r}"
        )
    own = {name: node for node, name in enumerate(design.netlist.names)}
    nodes = np.array([own[flat.netlist.names[node]] for node in hard.tolist()], dtype=np.int64)
    initial = design.initial
    x, y, orientation = initial.x.copy(), initial.y.copy(), initial.orientation.copy()
    x[nodes], y[nodes] = theirs.x[hard] - core.x_low, theirs.y[hard] - core.y_low
    orientation[nodes] = theirs.orientation[hard]
    cluster = read_clusters(folder)
    has_cells = bool(theirs.placed[cluster >= 0].all()) and len(design.netlist.soft) > 0
    if has_cells:
        from placement.netlist.clustering.regroup import centroids  # late: SciPy takes a while to import

        area = flat.netlist.width * flat.netlist.height
        soft = design.netlist.soft
        soft_x, soft_y = centroids(cluster, len(soft), x=theirs.x, y=theirs.y, area=area)
        x[soft], y[soft] = soft_x - core.x_low, soft_y - core.y_low
    placed = np.ones_like(initial.placed)
    return dataclasses.replace(initial, x=x, y=y, orientation=orientation, placed=placed), has_cells
