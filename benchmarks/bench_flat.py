"""Full evaluations beside coloquinte, and the routing estimate beside what a commercial flow measured.

    python benchmarks/bench_flat.py FLAT.pb.txt.gz placed.def.gz … [--published published.csv]
    python benchmarks/bench_flat.py FLAT.pb.txt.gz --clustered NETLIST.pb.txt.gz placed.plc …

For each placement of the macros: half-perimeter wirelength (nets of 2 to 3,000 pins), density overflow on our bins and
CPU seconds of both global placers, neither result legalised; then the routing estimate, with our cells spread as a flow
leaves them. With --published (a CSV with the columns placer and routed_wirelength_um), Kendall's τ of each figure with
the routed wirelength.
--warm begins each placement but the first from the cells of the one before. Needs `pip install coloquinte`, or
--no-coloquinte.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import kendalltau

from placement.benchmark.coloquinte_judge import coloquinte_placement
from placement.flat.electrostatic import PlacerSettings
from placement.flat.global_placement import CellPlacement, place_cells, spread_cells
from placement.flat.grid import blocked_share, density_overflow, grid_for
from placement.flat.problem import Core, flat_problem, half_perimeter
from placement.flat.routing import RoutingResources, route_estimate
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.formats.plc import read_placement
from placement.netlist.formats.protobuf import read_netlist
from placement.netlist.formats.protobuf_design import read_protobuf_def
from placement.netlist.pdn_channel import pdn_channel

# NanGate45, metal2 to metal10: usable share of the tracks (the adjustments that OpenROAD's platform gives its global
# router) over the LEF's pitch. Memories block metal1 to metal4.
_ACROSS = (0.3 / 0.14, 0.75 / 0.28, 0.75 / 0.8, 0.75 / 1.6)
_UP = (0.2 / 0.19, 0.75 / 0.28, 0.75 / 0.28, 0.75 / 0.8, 0.75 / 1.6)
_TRACKS = RoutingResources(sum(_ACROSS), sum(_UP), _ACROSS[0], sum(_UP[:2]))


class Macros(NamedTuple):
    """A flat netlist, a placement of its macros and ports, and the core; cells are not placed."""

    netlist: Netlist
    placement: Placement
    core: Core


def of_def(path: Path, flat: Path, halo: float) -> Macros:
    """Macros, ports and die of a DEF file."""
    design, _ = read_protobuf_def(flat, path)
    die, own = design.floorplan.die, design.placement
    held = design.netlist.kind != NodeKind.CELL
    placement = dataclasses.replace(own, placed=own.placed & held, fixed=held)
    return Macros(design.netlist, placement, Core(die.width, die.height, x=die.x_low, y=die.y_low, halo=halo))


def of_plc(path: Path, netlist: Netlist, clustered: Netlist, halo: float) -> Macros:
    """Hard macros and ports of a .plc file, whose indices count the nodes of `clustered`, by name."""
    canvas, theirs = read_placement(path, clustered)
    held = netlist.kind != NodeKind.CELL
    index = {name: node for node, name in enumerate(clustered.names)}
    nodes = np.flatnonzero(held)
    there = np.array([index[netlist.names[node]] for node in nodes.tolist()])
    x, y = np.zeros((2, netlist.num_nodes))
    orientation = np.zeros(netlist.num_nodes, np.int8)
    x[nodes], y[nodes] = theirs.x[there], theirs.y[there]
    orientation[netlist.hard] = theirs.orientation[[index[netlist.names[node]] for node in netlist.hard.tolist()]]
    placement = Placement(x=x, y=y, orientation=orientation, placed=held, fixed=held)
    return Macros(netlist, placement, Core(canvas.width, canvas.height, halo=halo))


def overflow_of(netlist: Netlist, placement: Placement, core: Core) -> float:
    """Density overflow on our placer's bins."""
    problem = flat_problem(netlist, placement, core)
    grid = grid_for(problem)
    at = np.stack([placement.x[problem.cells] - core.x, placement.y[problem.cells] - core.y])
    return density_overflow(problem, at, 1 - blocked_share(problem.fixed, grid), grid)


def channel_of(netlist: Netlist, core: Core) -> float:
    """µm around each macro that the power network takes."""
    cells, hard = netlist.kind == NodeKind.CELL, netlist.hard
    area = float((netlist.width[cells] * netlist.height[cells]).sum())
    return pdn_channel(netlist.width[hard], netlist.height[hard], core=core.width * core.height, cells=area)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flat", type=Path)
    parser.add_argument("placements", type=Path, nargs="+")
    parser.add_argument("--clustered", type=Path, help="the netlist that the .plc files' indices count")
    parser.add_argument("--published", type=Path)
    parser.add_argument("--halo", type=float, default=0.0, help="µm around macros; coloquinte gets none")
    parser.add_argument("--density", type=float, default=1.0)
    parser.add_argument("--no-coloquinte", action="store_true")
    parser.add_argument("--warm", action="store_true")
    args = parser.parse_args()
    named = (read_netlist(args.flat), read_netlist(args.clustered)) if args.clustered else None
    settings = PlacerSettings(density=args.density)
    neighbour = dataclasses.replace(settings, growth=1.05, balance=0.1)
    spreading = [dataclasses.replace(settings, balance=1e-3), dataclasses.replace(settings, growth=1.015)]
    figures: dict[str, list[float]] = {"flat wirelength": [], "routed estimate": [], "overflow": []}
    last: CellPlacement | None = None
    for path in args.placements:
        netlist, placement, core = of_plc(path, *named, args.halo) if named else of_def(path, args.flat, args.halo)
        start = last.placement if args.warm and last else None
        last = place_cells(netlist, placement, core, settings=neighbour if start else settings, start=start)
        line = f"{path.name:22} ours {last.wirelength / 1e6:.3f} m, overflow {last.density_overflow:.3f}, "
        line += f"{last.seconds:.1f} s"
        if not args.no_coloquinte:
            theirs, seconds = coloquinte_placement(netlist, placement, core)
            length = half_perimeter(netlist, theirs)
            over = overflow_of(netlist, theirs, dataclasses.replace(core, halo=0.0))
            line += f" | coloquinte {length / 1e6:.3f} m, {over:.3f}, {seconds:.1f} s"
            line += f" | ratio {last.wirelength / length:.3f}"
        spread = spread_cells(
            netlist, placement, core, channel=channel_of(netlist, core), attempts=spreading, start=last.placement
        )
        route = route_estimate(netlist, spread.placement, core, _TRACKS)
        line += f" | spread {spread.wirelength / 1e6:.3f} m, {spread.seconds:.1f} s"
        line += f" | routed {route.routed_wirelength / 1e6:.3f} m, over {route.overflow:.2%}, {route.seconds:.1f} s"
        print(line, flush=True)
        for name, value in zip(figures, (last.wirelength, route.routed_wirelength, route.overflow), strict=True):
            figures[name].append(value)
    if args.published:
        with args.published.open(encoding="utf-8") as file:
            known = {row["placer"]: float(row["routed_wirelength_um"]) for row in csv.DictReader(file)}
        published = [known[path.name.split(".")[0]] for path in args.placements]
        for name, values in figures.items():
            print(f"{name}: Kendall's τ with the published routed wirelength {kendalltau(values, published)[0]:.2f}")


if __name__ == "__main__":
    main()
