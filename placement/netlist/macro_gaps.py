"""The gaps between macros that an import derives: the spacing that cells need, and channels for power straps.

In a gap between two macros that is narrower than a cell, a global placer puts cells that a legaliser cannot move to any
nearby position; and macros whose halos touch enclose the cells behind them.

Axis legend: H hard macros, N nodes. Lengths in µm.
"""

import numpy as np

from placement.netlist.constraints import TOLERANCE
from placement.netlist.flat_design import FlatDesign

SLIVER = 20  # sites; a shorter run is a sliver, in which few cells fit
_MOST_CELLS = 0.99  # fraction of the cells that fit in a channel; a few very wide ones would widen all channels
_MOST_SPACED = 0.9
"""Maximum fraction of the core under macros with half the spacing around them, so that legal placements exist."""

_WIDEST_SPACING = 0.1
"""Maximum channel, as a fraction of a macro's size; around macros hardly larger than cells, cells need no channel."""
_WIDEST_CHANNEL = 0.5
"""Maximum channel width, as a fraction of the median side of a macro; straps run over several smaller macros."""
_MOST_WITH_CHANNELS = 0.7  # maximum fraction of the core that the macros and one channel beside each may cover


def spacing_for_cells(flat: FlatDesign, halo: np.ndarray) -> float:
    """Spacing in µm that movable macros should keep, so that cells fit between them; 0 without rows.

    If macros have no halos, cells are placed in the gaps, which have `SLIVER` sites plus the width of 99% of the cells,
    and the rows of the height of 99% of the cells. Halos contain no cells, so the gaps between them only need to
    connect the rows on both sides: one site and one row. One more of each is added everywhere, because macros do not
    begin and end on sites and rows. If the macros need most of the core, or are small, there is no spacing.

    Args:
        flat: the design before clustering.
        halo: float64 [N, 4], left, bottom, right and top of each node in orientation N.
    """
    rows, netlist, cells = flat.floorplan.rows, flat.netlist, flat.cells[~flat.placement.fixed[flat.cells]]
    hard, core = netlist.hard, flat.floorplan.core
    if not len(rows) or not len(cells) or not len(hard):
        return 0.0
    site, height = float(np.median(rows.site_width)), rows.row_height
    beside = float((halo[hard, :2].max(axis=0) + halo[hard, 2:].max(axis=0)).max())
    sites = levels = 1.0
    if not beside:
        wide, high = (np.quantile(sides[cells], _MOST_CELLS) for sides in (netlist.width, netlist.height))
        sites, levels = max(SLIVER, np.ceil(wide / site - 1e-6)), np.ceil(high / height - 1e-6)
    channel = float(max((sites + 1) * site, (levels + 1) * height))
    spacing = round(beside + channel, 6)
    covered = float(((netlist.width[hard] + spacing) * (netlist.height[hard] + spacing)).sum())
    size = float(np.median(np.sqrt(netlist.width[hard] * netlist.height[hard])))
    return spacing if covered <= _MOST_SPACED * core.area and channel <= _WIDEST_SPACING * size else 0.0


def channel_for_straps(flat: FlatDesign, halo: np.ndarray) -> tuple[tuple[float, float], list[str]]:
    """The channel across and up, and a notice of the choice and its reason; no rule and no notice without straps.

    A gap as wide as one strap plus the pitch of a net's straps contains a whole strap of every supply, wherever the gap
    begins. No rule is chosen if macros with channels would cover most of the core, if macros are small, or if their
    placement in the files breaks the rule.

    Args:
        flat: the design before clustering.
        halo: float64 [N, 4], left, bottom, right and top of each node in orientation N.
    """
    straps = flat.floorplan.straps
    chosen = [
        min((one for one in straps if one.is_vertical == up), key=lambda one: one.pitch + one.width, default=None)
        for up in (True, False)
    ]
    width, height = (0.0 if one is None else round(one.pitch + one.width, 6) for one in chosen)
    if not (width or height) or not len(flat.netlist.hard):
        return (0.0, 0.0), []
    whose = ", ".join(f"{one.layer} {one.pitch:g} µm pitch per net, {one.width:g} µm wide" for one in chosen if one)
    sizes = [f"{size:g} µm {way}" for size, way in ((width, "across"), (height, "up")) if size]
    rule = f"channels of {' and '.join(sizes)}"
    reason = _reason_against(flat, halo, (width, height))
    if reason:
        return (0.0, 0.0), [
            f"no channel rule: the power straps ({whose}) require {rule}, but {reason}; "
            f"--channel {width:g},{height:g} sets the rule"
        ]
    return (width, height), [
        f"macros abut or leave {rule}, so that each gap has a power strap of every supply ({whose}); "
        "--channel changes the widths, and --channel 0 removes the rule"
    ]


def _reason_against(flat: FlatDesign, halo: np.ndarray, channel: tuple[float, float]) -> str:
    """Returns the reason not to set the channel rule; empty if there is none."""
    netlist, core, hard = flat.netlist, flat.floorplan.core, flat.netlist.hard
    sides = np.stack([netlist.width[hard], netlist.height[hard]], axis=1)
    if (np.array(channel) > _WIDEST_CHANNEL * np.median(sides)).any():
        return "that is too wide for these macros"
    if (sides + channel).prod(axis=1).sum() > _MOST_WITH_CHANNELS * core.area:
        return "the core has too little whitespace"
    placement = flat.placement
    placed = hard[placement.placed[hard]]
    boxes = netlist.boxes(placement, placed)
    sums = float((halo[hard, :2].max(axis=0) + halo[hard, 2:].max(axis=0)).max())
    narrow = 0
    for index, box in enumerate(boxes):
        gap = np.maximum(box[:2] - boxes[index + 1 :, 2:], boxes[index + 1 :, :2] - box[2:])
        is_narrow = (gap > sums + TOLERANCE) & (gap < np.array(channel) - TOLERANCE)
        narrow += int((is_narrow & (gap[:, ::-1] < -TOLERANCE)).sum())
    return f"{narrow} gaps between macros in the files are narrower" if narrow else ""
