"""Electrostatic placement of clustered designs: all macros, as a start of a search, or soft macros around the hard
ones.

A soft macro is placed as its cells, which need `CELL_SHARE` of its area and fill `DENSITY` of the whitespace.
"""

import dataclasses

import numpy as np

from placement.flat.electrostatic import PlacerSettings, place
from placement.flat.problem import Core, as_turned, flat_problem
from placement.netlist.design import Design, NodeKind, Orientation, Placement
from placement.netlist.geometry import union_area
from placement.netlist.pdn_channel import CELL_SHARE, DENSITY, PDN_CHANNEL

SETTINGS = PlacerSettings(overflow=0.05, accepted=0.2, density=DENSITY, iterations=1200, growth=1.08, balance=1e-3)
"""Placer settings for macros; with more overflow than accepted, the legaliser would move them far."""
SPREAD_SETTINGS = dataclasses.replace(SETTINGS, overflow=0.15, accepted=1.0)
"""Placer settings for soft macros alone, which are too coarse to fill corners and scatter if forced to."""
FULLEST = 0.6  # maximum share of the whitespace outside the macros and their spacing that the cells may fill
WIDTHS = 9  # number of spacings that are compared


def place_design(design: Design, *, spacing: float = 0.0, seed: int = 0) -> Placement:
    """Places the macros that are not fixed; they may overlap a little and need legalisation.

    Args:
        design: a design with its halos and blockages; macros keep their initial orientation.
        spacing: minimum distance between macros in µm, if their halos are narrower.
        seed: seed of the initial positions and the fillers, at least 0.

    Raises:
        DesignError: there are no macros to place, they do not fit, or every attempt failed.
    """
    halo = np.maximum(design.constraints.turned_halo(design.initial.orientation), spacing / 2)
    return _placed(design, design.initial, halo, dataclasses.replace(SETTINGS, seed=seed))


def spacing_for_channels(design: Design, *, spacing: float = 0.0) -> float:
    """Returns a spacing in µm for `place_design`, wide enough for legalisation to hardly move the macros.

    It is `2 * PDN_CHANNEL`, or as much of that as lets the cells fill at most `FULLEST` of the remaining whitespace.
    With a smaller spacing, legalisation pushes macros onto the cells between them. Without soft macros, it is
    `spacing`.

    Args:
        design: a design with its halos and blockages.
        spacing: minimum distance between macros in µm.
    """
    netlist, canvas, orientation = design.netlist, design.canvas, design.initial.orientation
    width, height = (side[netlist.hard] for side in netlist.sides(orientation))
    halo = design.constraints.turned_halo(orientation)[netlist.hard]
    cells = CELL_SHARE * float((netlist.width * netlist.height)[netlist.soft].sum())
    free = canvas.width * canvas.height - union_area(design.constraints.blockages)
    widest = max(spacing, 2 * PDN_CHANNEL if cells else 0.0)
    for wide in np.linspace(widest, spacing, WIDTHS).tolist():
        left, low, right, high = np.maximum(halo, wide / 2).T
        taken = float(((width + left + right) * (height + low + high)).sum())
        if cells <= FULLEST * (free - taken):
            return wide
    return spacing


def spread_clusters(design: Design, placement: Placement) -> Placement:
    """Places the soft macros that are not fixed around the hard ones, clear of their halos and PDN channels.

    This is a coarse, fast full evaluation: over placements of one design, the routed wirelength of its result ranks
    like that of all cells.

    Args:
        design: the clustered design.
        placement: positions of ports and hard macros.

    Raises:
        DesignError: there are no soft macros to place, they do not fit, or every attempt failed.
    """
    netlist, halo = design.netlist, design.constraints.turned_halo(placement.orientation)
    halo[netlist.hard] = np.maximum(halo[netlist.hard], design.own_pdn_channel)
    held = dataclasses.replace(placement, fixed=placement.fixed | (netlist.kind == NodeKind.HARD))
    placed = _placed(design, held, halo, SPREAD_SETTINGS)
    return dataclasses.replace(placed, fixed=placement.fixed)


def _placed(design: Design, placement: Placement, halo: np.ndarray, settings: PlacerSettings) -> Placement:
    """Places all nodes that are not fixed; `halo` is in their orientation."""
    netlist, canvas = design.netlist, design.canvas
    blockages = tuple(map(tuple, design.constraints.blockages.tolist()))
    core = Core(canvas.width, canvas.height, blockages=blockages, halo=halo)
    soft = netlist.kind == NodeKind.SOFT
    share = np.where(soft, np.sqrt(CELL_SHARE), 1.0)
    turned = as_turned(netlist, placement.orientation)
    turned = dataclasses.replace(
        turned,
        kind=np.where(soft, NodeKind.CELL, netlist.kind).astype(netlist.kind.dtype),
        width=turned.width * share,
        height=turned.height * share,
    )
    north = dataclasses.replace(placement, orientation=np.full_like(placement.orientation, Orientation.N))
    problem = flat_problem(turned, north, core, mixed_size=True)
    placed = place(problem, settings, cells=soft[problem.cells])
    return problem.moved(placement, placed.x, placed.y)
