"""The flat check beside coloquinte, and the routing estimate beside what a commercial flow measured.

    python benchmarks/bench_flat.py FLAT.pb.txt.gz placed.def.gz … [--published published.csv]
    python benchmarks/bench_flat.py FLAT.pb.txt.gz --clustered NETLIST.pb.txt.gz placed.plc …

For each placement of the macros: half-perimeter wirelength (nets of 2 to 3,000 pins), density overflow on our bins and
CPU seconds of both global placers, neither result legalised; then the routing estimate, with our cells spread as a flow
leaves them. With --published (a CSV with the columns placer and routed_wirelength_um), Kendall's τ of each figure with
the routed wirelength.
--warm begins each placement but the first from the cells of the one before. Needs `pip install coloquinte`, or
--no-coloquinte. What JAX compiles is kept between runs, as by train.py.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kendalltau

from placement.flat.check import FlatResult, flat_check
from placement.flat.core import Core
from placement.flat.global_placement import PlacerSettings
from placement.flat.grid import blocked_share, density_overflow, grid_for
from placement.flat.problem import counted_nets, flat_problem
from placement.flat.routable import spread_cells
from placement.flat.routing import NANGATE45, route_estimate
from placement.flat.wirelength import half_perimeter
from placement.netlist.design import Netlist, NodeKind, Orientation, Placement
from placement.netlist.formats.plc import read_placement
from placement.netlist.formats.protobuf import read_netlist
from placement.netlist.formats.protobuf_design import read_protobuf_def
from placement.utils.compilation import keep_compilations

_UNITS = 100  # coloquinte's length units per µm
_ROW = 1.4  # µm, a row of NanGate45
_TURNS = {"N": (1, 1), "FN": (-1, 1), "S": (-1, -1), "FS": (1, -1)}  # the others swap sides: coloquinte is not asked


class Standing(NamedTuple):
    """A flat netlist, where its macros and ports stand, and the core; cells are not placed."""

    netlist: Netlist
    placement: Placement
    core: Core


def of_def(path: Path, flat: Path, halo: float) -> Standing:
    """Macros, ports and die of a DEF file."""
    design, _ = read_protobuf_def(flat, path)
    die, own = design.floorplan.die, design.placement
    stands = design.netlist.kind != NodeKind.CELL
    placement = dataclasses.replace(own, placed=own.placed & stands, fixed=stands)
    return Standing(design.netlist, placement, Core(die.width, die.height, x=die.x_low, y=die.y_low, halo=halo))


def of_plc(path: Path, netlist: Netlist, clustered: Netlist, halo: float) -> Standing:
    """Hard macros and ports of a .plc file, whose indices count the nodes of `clustered`, by name."""
    canvas, theirs = read_placement(path, clustered)
    stands = netlist.kind != NodeKind.CELL
    index = {name: node for node, name in enumerate(clustered.names)}
    nodes = np.flatnonzero(stands)
    there = np.array([index[netlist.names[node]] for node in nodes.tolist()])
    x, y = np.zeros((2, netlist.num_nodes))
    orientation = np.zeros(netlist.num_nodes, np.int8)
    x[nodes], y[nodes] = theirs.x[there], theirs.y[there]
    orientation[netlist.hard] = theirs.orientation[[index[netlist.names[node]] for node in netlist.hard.tolist()]]
    placement = Placement(x=x, y=y, orientation=orientation, placed=stands, fixed=stands)
    return Standing(netlist, placement, Core(canvas.width, canvas.height, halo=halo))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Standard output to nowhere: coloquinte talks."""
    kept = os.dup(1)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def coloquinte_placement(netlist: Netlist, placement: Placement, core: Core) -> tuple[Placement, float]:
    """Where coloquinte's global placer (effort 3) puts the cells, and its CPU seconds."""
    import coloquinte

    cells, hard = netlist.kind == NodeKind.CELL, netlist.kind == NodeKind.HARD
    width = np.round(netlist.width * _UNITS).astype(int)
    height = np.where(cells, round(_ROW * _UNITS), np.round(netlist.height * _UNITS)).astype(int)
    x = np.where(cells, core.width / 2, placement.x - core.x) * _UNITS
    y = np.where(cells, core.height / 2, placement.y - core.y) * _UNITS
    turns = np.array([_TURNS[Orientation(turn).name] for turn in placement.orientation])
    of = netlist.pin_node
    offset = [
        np.round(delta * _UNITS * turns[of, axis] + side[of] / 2).astype(int)
        for axis, (delta, side) in enumerate(((netlist.pin_dx, width), (netlist.pin_dy, height)))
    ]
    circuit: Any = coloquinte.Circuit(netlist.num_nodes)
    circuit.cell_width, circuit.cell_height = width.tolist(), height.tolist()
    circuit.cell_is_fixed, circuit.cell_is_obstruction = (~cells).tolist(), hard.tolist()
    circuit.cell_x, circuit.cell_y = (
        (at - side / 2).round().astype(int).tolist() for at, side in ((x, width), (y, height))
    )
    for net in np.flatnonzero(counted_nets(netlist)):
        pins = netlist.net_pins[netlist.net_start[net] : netlist.net_start[net + 1]]
        circuit.add_net(of[pins].tolist(), offset[0][pins].tolist(), offset[1][pins].tolist())
    whole = coloquinte.Rectangle(0, int(core.width * _UNITS), 0, int(core.height * _UNITS))
    circuit.setup_rows(whole, round(_ROW * _UNITS), True, True)
    begun = time.process_time()
    with quiet():
        circuit.place_global(3)
    seconds = time.process_time() - begun
    nodes = np.flatnonzero(cells)
    corner = np.array([circuit.cell_x, circuit.cell_y])[:, nodes] / _UNITS
    x, y = corner[0] + width[nodes] / _UNITS / 2 + core.x, corner[1] + _ROW / 2 + core.y
    return placement.moved(nodes, x, y), seconds


def overflow_of(netlist: Netlist, placement: Placement, core: Core) -> float:
    """Density overflow on our placer's bins."""
    problem = flat_problem(netlist, placement, core)
    grid = grid_for(problem)
    at = placement.x[problem.cells] - core.x, placement.y[problem.cells] - core.y
    free = 1 - blocked_share(problem.fixed, grid)
    return density_overflow(*at, (problem.width, problem.height), free, grid=grid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("flat", type=Path)
    parser.add_argument("placements", type=Path, nargs="+")
    parser.add_argument("--clustered", type=Path, help="the netlist that the .plc files' indices count")
    parser.add_argument("--published", type=Path)
    parser.add_argument("--halo", type=float, default=0.0, help="µm around macros; coloquinte gets none")
    parser.add_argument("--density", type=float, default=1.0)
    parser.add_argument("--no-coloquinte", action="store_true")
    parser.add_argument("--jax", action="store_true", help="the inner sums in JAX, not in the engine")
    parser.add_argument("--warm", action="store_true")
    args = parser.parse_args()
    keep_compilations()
    named = (read_netlist(args.flat), read_netlist(args.clustered)) if args.clustered else None
    settings = PlacerSettings(density=args.density, native=False if args.jax else None)
    figures: dict[str, list[float]] = {"flat wirelength": [], "routed estimate": [], "overflow": []}
    last: FlatResult | None = None
    for path in args.placements:
        standing = of_plc(path, *named, args.halo) if named else of_def(path, args.flat, args.halo)
        netlist, placement, core = standing
        last = flat_check(
            netlist, placement, core, settings=settings, start=last.placement if args.warm and last else None
        )
        line = f"{path.name:22} ours {last.wirelength / 1e6:.3f} m, overflow {last.density_overflow:.3f}, "
        line += f"{last.seconds:.1f} s"
        if not args.no_coloquinte:
            theirs, seconds = coloquinte_placement(netlist, placement, core)
            length = half_perimeter(netlist, theirs)
            over = overflow_of(netlist, theirs, dataclasses.replace(core, halo=0.0))
            line += f" | coloquinte {length / 1e6:.3f} m, {over:.3f}, {seconds:.1f} s"
            line += f" | ratio {last.wirelength / length:.3f}"
        spread = spread_cells(netlist, placement, core, dense=last, settings=settings)
        route = route_estimate(netlist, spread.placement, core, NANGATE45)
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
