"""The rows of a DEF file, in µm.

Axis legend: W rows.
"""

from __future__ import annotations

import numpy as np

from placement.netlist.design import Orientation
from placement.netlist.errors import DesignError
from placement.netlist.floorplan import Rows
from placement.netlist.formats.def_file import DefFile
from placement.netlist.technology import Technology


def rows_of(file: DefFile, technology: Technology, notices: list[str]) -> Rows:
    """The rows that standard cells stand in: all but those of the pad ring, whose sites are of class PAD.

    Args:
        file: the file.
        technology: gives the sites' sizes and classes.
        notices: what was assumed or left out is added.

    Raises:
        DesignError: a row goes in both directions, or nothing says how high a row is.
    """
    rows = file.rows
    both = np.flatnonzero(np.minimum(rows.count_x, rows.count_y) > 1)
    if len(both):
        first = int(both[0])
        raise DesignError(f"{file.path}: row {rows.names[first]!r} is {rows.count_x[first]} BY {rows.count_y[first]}; "
                          "one of the two must be 1")  # fmt: skip
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
    """Bool [W]: the rows that are no rows of pads.

    Tools make sites for the pad ring that no LEF file has: where other rows have known sites, rows without one count as
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
            f"{file.path}: {count} rows of sites that are for pads or in no LEF file ({names}) are no part of the core"
        )
    return ~of_pads


def _height_between(file: DefFile, site: str, y: np.ndarray, notices: list[str]) -> float:
    """µm, the commonest distance between rows of a site that no LEF file has."""
    gaps = np.diff(np.unique(y))
    if not len(gaps):
        raise DesignError(
            f"{file.path}: site {site!r} is in no LEF file, and one row alone does not show its height: "
            "give the technology LEF"
        )
    values, counts = np.unique(gaps, return_counts=True)
    height = float(values[np.argmax(counts)]) / file.units
    notices.append(
        f"{file.path}: site {site!r} is in no LEF file; rows are {height:g} µm apart, so that is taken for their height"
    )
    return height
