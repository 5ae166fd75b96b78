"""The channel rule that an import chooses from the power straps in the files.

Axis legend: H hard macros. Lengths in µm.
"""

from __future__ import annotations

import numpy as np

from placement.netlist.constraints import TOLERANCE
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Straps

_WIDEST = 0.5
"""Of a macro's side, the channel: around smaller macros, straps run over several of them."""
_MOST_COVERED = 0.7
"""Of the core, by the macros and a channel beside each."""


def channel_for_straps(flat: FlatDesign, halo: np.ndarray) -> tuple[tuple[float, float], list[str]]:
    """The channel across and up, and a notice of what was chosen and why; no rule and no notice without straps.

    A gap as wide as the distance from strap to strap of a net and one strap has a whole strap of every supply, wherever
    it begins. There is no rule where macros would need most of the core, or are small, or where they are so placed in
    the files that they break it.

    Args:
        flat: the design before clustering.
        halo: float64 [N, 4], left, bottom, right and top of each node in orientation N.
    """
    straps = flat.floorplan.straps
    chosen = [_closest([one for one in straps if one.is_vertical == is_vertical]) for is_vertical in (True, False)]
    width, height = (0.0 if one is None else round(one.pitch + one.width, 6) for one in chosen)
    if not (width or height) or not len(flat.netlist.hard):
        return (0.0, 0.0), []
    whose = ", ".join(
        f"{one.layer} {one.pitch:g} µm from strap to strap of a net, {one.width:g} µm wide" for one in chosen if one
    )
    sizes = [f"{size:g} µm {way}" for size, way in ((width, "across"), (height, "up")) if size]
    rule = f"channels of {' and '.join(sizes)}"
    reason = _reason_against(flat, halo, (width, height))
    if reason:
        return (0.0, 0.0), [
            f"no channel rule: for the power straps ({whose}) it would be {rule}, but {reason}; "
            f"--channel {width:g},{height:g} sets it"
        ]
    return (width, height), [
        f"macros abut or leave {rule}, so that each gap has a power strap of every supply ({whose}); "
        "--channel sets other widths, and --channel 0 no rule"
    ]


def _closest(straps: list[Straps]) -> Straps | None:
    return min(straps, key=lambda one: one.pitch + one.width, default=None)


def _reason_against(flat: FlatDesign, halo: np.ndarray, channel: tuple[float, float]) -> str:
    """Why there is no such rule; empty where there is."""
    netlist, core, hard = flat.netlist, flat.floorplan.core, flat.netlist.hard
    sides = np.stack([netlist.width[hard], netlist.height[hard]], axis=1)
    if (np.array(channel) > _WIDEST * np.median(sides)).any():
        return "that is wide for these macros"
    if (sides + channel).prod(axis=1).sum() > _MOST_COVERED * core.area:
        return "the core has no whitespace for it"
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
