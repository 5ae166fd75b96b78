from __future__ import annotations

import csv

from placement.report.placement_metrics import write_macros
from tests.support.designs import four_macros


def test_hard_macros_as_oriented(tmp_path):
    design = four_macros()
    path = write_macros(tmp_path / "macros.csv", design, design.initial)
    with path.open(newline="") as stream:
        rows = {row["name"]: row for row in csv.DictReader(stream)}
    assert list(rows) == ["large", "middle", "small", "kept"]
    small = rows["small"]  # 6 × 8 µm at (15, 35), rotated to E
    assert [float(small[key]) for key in ("x", "y", "left", "bottom", "width", "height")] == [15, 35, 11, 32, 8, 6]
    assert (small["orientation"], small["fixed"]) == ("E", "0")
    assert rows["kept"]["fixed"] == "1"
    assert rows["middle"]["orientation"] == "FN"
