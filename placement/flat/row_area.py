"""Row area that macros, their halos and hard blockages leave to standard cells, and the pieces into which it is
divided.

Adjacent free sites of a row form a run. Two runs are connected if they touch in one row, or overlap in x in rows that
touch. A connected component is a piece: cells cannot move between pieces without jumping over a macro.

Axis legend: F rectangles, R runs of free sites, W rows. Lengths in µm from the core's lower left corner.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from placement.flat import _native
from placement.flat.correspondence import core_of, macros_on_flat
from placement.flat.problem import Core, fixed_rectangles
from placement.netlist.design import Design, NodeKind, Placement
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Rows
from placement.netlist.geometry import complement, merged_in_line
from placement.netlist.macro_gaps import SLIVER


class RowColumns(NamedTuple):
    """Rows in the form of the native module: float64 [W] each in µm, and int32 [W] sites."""

    x: np.ndarray
    y: np.ndarray
    height: np.ndarray
    site: np.ndarray
    sites: np.ndarray


class RowArea(NamedTuple):
    """Runs of free sites and their pieces."""

    x_low: np.ndarray  # x_low, y_low, x_high, y_high: float64 [R]
    y_low: np.ndarray
    x_high: np.ndarray
    y_high: np.ndarray
    sites: np.ndarray  # int32 [R], number of sites in each run
    piece: np.ndarray  # int32 [R], piece of each run; pieces are numbered from the largest (0) down


class RowCounts(NamedTuple):
    """Summary of a `RowArea`."""

    row_pieces: int  # number of connected pieces of row area
    largest_piece: float  # share of the free sites in the largest piece; 1 if there are none
    sliver_sites: int  # free sites in runs of fewer than `SLIVER`
    free_sites: int  # total number of free sites

    @classmethod
    def of(cls, area: RowArea) -> RowCounts:
        """Counts pieces and sites."""
        pieces, free = np.bincount(area.piece, weights=area.sites), int(area.sites.sum())
        largest = float(pieces[0] / free) if free else 1.0
        return cls(len(pieces), largest, int(area.sites[area.sites < SLIVER].sum()), free)


def row_columns(rows: Rows, core: Core) -> RowColumns:
    """Returns the rows of the most common height relative to the core.

    In designs with several row heights, rows of other heights lie across these and would count the same area twice.
    """
    chosen = np.isclose(rows.height, rows.row_height)
    sites = np.floor(rows.width[chosen] / rows.site_width[chosen] + 1e-4)
    return RowColumns(
        rows.x[chosen] - core.x,
        rows.y[chosen] - core.y,
        rows.height[chosen],
        rows.site_width[chosen],
        sites.astype(np.int32),
    )


def within_rows(core: Core, rows: Rows) -> Core:
    """Returns the core with blockages where it has no rows; unchanged without rows.

    Rows that were cut around macros remain cut when these macros move, and a flow places no cell in the gaps.
    """
    if not len(rows):
        return core
    low = np.stack([rows.x - core.x, rows.y - core.y], axis=1)
    boxes = np.concatenate([low, low + np.stack([rows.width, rows.height], axis=1)], axis=1)
    gaps = complement(boxes, core.width, core.height) + np.tile([core.x, core.y], 2)
    return dataclasses.replace(core, blockages=(*core.blockages, *map(tuple, gaps.tolist())))


def row_area(rows: RowColumns, blocked: np.ndarray) -> RowArea:
    """Returns the free sites of rows. A partially covered site is not free.

    Args:
        rows: non-overlapping rows.
        blocked: float64 [F, 4], (x low, y low, x high, y high), relative to the core as the rows are.
    """
    row, first, sites, found = _native.free_runs(*rows, np.ascontiguousarray(blocked, np.float64))
    order = np.argsort(-np.bincount(found, weights=sites), kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    x, y = rows.x[row] + first * rows.site[row], rows.y[row]
    return RowArea(x, y, x + sites * rows.site[row], y + rows.height[row], sites, rank[found])


def free_row_area(flat: FlatDesign, design: Design, placement: Placement) -> RowArea | None:
    """Returns the row area beside the macros of a placement; None if the floorplan has no rows.

    Fixed cells (tap cells) count as free.

    Args:
        flat: the design before clustering.
        design: the clustered design, with the constraints.
        placement: a placement of `design`, whose hard macros are read.

    Raises:
        DesignError: a hard macro of the flat netlist is not in the clustered one, or has no position.
    """
    if not len(flat.floorplan.rows):
        return None
    return _beside_macros(flat, macros_on_flat(flat, design.netlist, placement), core_of(flat, design))


def with_slivers(core: Core, flat: FlatDesign, macros: Placement) -> Core:
    """Returns the core with its `slivers`: the runs of fewer than `SLIVER` sites; unchanged without rows.

    Args:
        core: the core with everything that is closed to the legaliser.
        flat: the design before clustering.
        macros: a placement of the flat netlist.
    """
    if not len(flat.floorplan.rows):
        return core
    area = _beside_macros(flat, macros, core)
    runs = np.stack([area.x_low, area.y_low, area.x_high, area.y_high], axis=1)[area.sites < SLIVER]
    boxes = merged_in_line(np.round(runs, 6)) + np.tile([core.x, core.y], 2)  # rounded, because only equal runs merge
    return dataclasses.replace(core, slivers=tuple(map(tuple, boxes.tolist())))


def _beside_macros(flat: FlatDesign, macros: Placement, core: Core) -> RowArea:
    """Returns the row area that `core` and the macros of a placement of the flat netlist leave."""
    blocked = fixed_rectangles(flat.netlist, macros, core, movable=flat.netlist.kind == NodeKind.CELL)
    return row_area(row_columns(flat.floorplan.rows, core), blocked)
