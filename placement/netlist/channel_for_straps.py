"""Derives the channel rule of an import from the power straps in the files.

Axis legend: H hard macros. Lengths in µm.
"""

import numpy as np

from placement.netlist.constraints import TOLERANCE
from placement.netlist.flat_design import FlatDesign

_WIDEST = 0.5
"""Maximum channel width, as a fraction of the median side of a macro; straps run over several smaller macros."""
_MOST_COVERED = 0.7  # maximum fraction of the core that the macros and one channel beside each may cover


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
    if (np.array(channel) > _WIDEST * np.median(sides)).any():
        return "that is too wide for these macros"
    if (sides + channel).prod(axis=1).sum() > _MOST_COVERED * core.area:
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
