"""Row area left by placements of an imported design, and the result of legalising their cells.

    python benchmarks/bench_rows.py DESIGN placement.plc other.def … [--density 0.6]

The cells are placed once, from the middle of the core at one density, as by OpenROAD's placer by default, and then
legalised. Printed for each placement: connected pieces of row area, the share of the largest, sites in slivers; the
half perimeters after global placement and after legalisation (µm), cells without a place, and the mean and the greatest
displacement (µm), with the CPU seconds of both.
"""

from __future__ import annotations

import argparse

from rich.console import Console

from placement.evaluation.full_evaluation import read_flat_of
from placement.evaluation.placements import load_placements
from placement.flat.correspondence import core_of, macros_on_flat
from placement.flat.electrostatic import PlacerSettings
from placement.flat.global_placement import place_cells
from placement.flat.legalisation import legalise_cells
from placement.flat.row_area import RowCounts, free_row_area, within_rows
from placement.netlist.load import load
from placement.report.placement_metrics import make_table

COLUMNS = ("placement", "pieces", "largest", "sliver sites", "global", "legal", "no place", "mean", "most", "CPU-s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design")
    parser.add_argument("placements", nargs="+")
    parser.add_argument("--density", type=float, default=0.6)
    given = parser.parse_args()
    design, (flat, _) = load(given.design), read_flat_of(given.design)
    rows, settings = flat.floorplan.rows, PlacerSettings(density=given.density)
    core, found = within_rows(core_of(flat, design), rows), []
    for name, placement in load_placements(given.placements, given.design, design).items():
        area = free_row_area(flat, design, placement)
        placed = place_cells(flat.netlist, macros_on_flat(flat, design.netlist, placement), core, settings=settings)
        legal = legalise_cells(flat.netlist, placed.placement, core, rows)
        if area is None or legal is None:
            raise SystemExit(f"{given.design}: its floorplan has no rows")
        counts = RowCounts.of(area)
        wires = f"{placed.wirelength:,.0f}", f"{legal.wirelength:,.0f}"
        moved = f"{legal.mean_displacement:.2f}", f"{legal.most_displacement:.1f}"
        seconds = f"{placed.seconds:.1f} + {legal.seconds:.2f}"
        pieces = str(counts.row_pieces), f"{counts.largest_piece:.2%}", f"{counts.sliver_sites:,}"
        found.append([name, *pieces, *wires, str(legal.without_place), *moved, seconds])
    Console(width=160).print(make_table(COLUMNS, found))


if __name__ == "__main__":
    main()
