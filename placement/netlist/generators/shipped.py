"""The designs in `netlists/`, each with its generator, and the writer of generated designs."""

import dataclasses
import os
from collections.abc import Callable

from placement.netlist.constraints_file import CONSTRAINTS_NAME, write_constraints
from placement.netlist.design import Design, Placement
from placement.netlist.formats.plc import write_placement
from placement.netlist.formats.protobuf import write_netlist
from placement.netlist.generators.clustered import clustered
from placement.netlist.generators.planted import Planted, planted
from placement.netlist.load import INITIAL_NAME, NETLIST_NAMES, OPTIMUM_NAME, design_folder

SHIPPED: dict[str, Callable[[], Design | Planted]] = {
    "toy6": lambda: planted(seed=6, block_columns=3, block_rows=2, columns=4, rows=4, multi_pin_nets=4, name="toy6"),
    "planted20": lambda: planted(
        seed=20, block_columns=5, block_rows=4, columns=8, rows=8, multi_pin_nets=30, name="planted20"
    ),
    "clustered40": lambda: clustered(seed=40, hard=40, soft=250, ports=120, name="clustered40"),
    "clustered120": lambda: clustered(seed=120, hard=120, soft=800, ports=400, name="clustered120"),
}


def save(folder: str | os.PathLike[str], design: Design | Planted) -> None:
    """Writes a design as a folder that `load` reads: netlist, initial placement, constraints, the optimum if known.

    It replaces an existing design (`design_folder`).

    Raises:
        DesignError: the netlist has a form that the format cannot express.
        OSError: the folder cannot be made or written.
    """
    solved = design if isinstance(design, Planted) else None
    plain = design.design if isinstance(design, Planted) else design
    with design_folder(folder) as path:
        write_netlist(path / NETLIST_NAMES[1], plain.netlist, _ports_only(plain))
        write_placement(path / INITIAL_NAME, plain, plain.initial)
        write_constraints(path / CONSTRAINTS_NAME, plain.netlist, plain.constraints)
        if solved:
            comments = [f"Least wirelength : {solved.wirelength!r}"]
            write_placement(path / OPTIMUM_NAME, plain, solved.optimum, comments=comments)


def _ports_only(design: Design) -> Placement:
    """The initial placement without its macros, whose positions are in the `.plc` file."""
    initial = design.initial
    return dataclasses.replace(initial, placed=initial.placed & initial.fixed)
