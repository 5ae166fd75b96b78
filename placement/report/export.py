"""Files that a placement is handed on in: `.plc` (by `placement.netlist.formats.plc`) and a CSV of the hard macros."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from placement.netlist.design import Design, Orientation, Placement
from placement.netlist.files import csv_text, write_whole

MACRO_COLUMNS = ("name", "x", "y", "left", "bottom", "width", "height", "orientation", "fixed")


def write_macros(path: str | os.PathLike[str], design: Design, placement: Placement) -> Path:
    """Writes the hard macros as a CSV file, one per row, for scripts of other tools.

    x and y are the centre, left and bottom the lower left corner, width and height as the macro stands, all in µm;
    orientation is LEF/DEF's; fixed is 0 or 1. Macros that are not placed are left out.

    Returns:
        The path.

    Raises:
        OSError: the file cannot be written; it is then as it was before.
    """
    netlist = design.netlist
    rows: list[Sequence[object]] = [MACRO_COLUMNS]
    sides = netlist.sides(placement.orientation)
    for node in netlist.hard[placement.placed[netlist.hard]].tolist():
        x, y, width, height = (float(values[node]) for values in (placement.x, placement.y, *sides))
        place = (x, y, x - width / 2, y - height / 2, width, height)
        orientation = Orientation(placement.orientation[node]).name
        rows.append([netlist.names[node], *place, orientation, int(placement.fixed[node])])
    write_whole(path, csv_text(rows))
    return Path(path)
