"""A design before clustering: every standard cell, and the floorplan that it is to stand in.

Axis legend: N nodes (hard macros, ports and standard cells, in file order).
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from placement.netlist.bytes_file import SourceFile
from placement.netlist.design import Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.floorplan import Floorplan
from placement.netlist.macro_array import MacroArray
from placement.netlist.technology import Technology


@dataclasses.dataclass(frozen=True, eq=False)
class FlatDesign:
    """A flat netlist on its floorplan.

    Unlike in a clustered netlist, a standard cell has as many pins as nets join, each with its own offset.

    Attributes:
        name: for people and file names.
        netlist: hard macros, ports and standard cells; no soft macros. Supply nets are left out. Names are unescaped
            and have `/` as the divider.
        placement: where the nodes stand, µm from the same origin as `floorplan`; ports are placed, all of them.
        floorplan: die, rows, tracks, constraints.
        technology: layers and masters; empty where no LEF file was given.
        master: int32 [N], the place of each node's master in `master_names`; -1 for ports.
        master_names: the masters' names.
        written_names: node → its name as the user's DEF file writes it, where that is another one.
        sources: the files that this was read from.
        notices: what was odd, assumed or derived while reading, one sentence each.
        arrays: hard macros that stand for several of the files, whose master is that of each of these.

    Raises:
        DesignError: a length is wrong, a soft macro is among the nodes, a port is not placed, an array is no hard
            macro.
    """

    name: str
    netlist: Netlist
    placement: Placement
    floorplan: Floorplan
    technology: Technology
    master: np.ndarray
    master_names: tuple[str, ...]
    written_names: dict[int, str]
    sources: tuple[SourceFile, ...] = ()
    notices: tuple[str, ...] = ()
    arrays: tuple[MacroArray, ...] = ()

    def __post_init__(self) -> None:
        count = self.netlist.num_nodes
        master = np.array(self.master, dtype=np.int32)
        master.setflags(write=False)
        object.__setattr__(self, "master", master)
        if len(self.placement.x) != count or len(master) != count:
            raise DesignError(f"{len(self.placement.x)} positions and {len(master)} masters for {count} nodes")
        if len(self.netlist.soft):
            raise DesignError(f"node {self.netlist.names[self.netlist.soft[0]]!r} is a soft macro in a flat netlist")
        ports = self.netlist.ports
        if not self.placement.placed[ports].all():
            raise DesignError(f"port {self.netlist.names[ports[~self.placement.placed[ports]][0]]!r} has no position")
        wrong = {array.node for array in self.arrays} - set(self.netlist.hard.tolist())
        if wrong:
            raise DesignError(f"node number {min(wrong)} stands for an array and is no hard macro")

    @functools.cached_property
    def cells(self) -> np.ndarray:
        """int32 [·]: the standard cells, in file order."""
        return self.netlist.indices(NodeKind.CELL)

    @functools.cached_property
    def pads(self) -> np.ndarray:
        """int32 [·]: the hard macros of the pad ring, in file order."""
        masters = self.technology.masters
        is_pad = np.array([name in masters and masters[name].is_pad for name in self.master_names] + [False])
        hard = self.netlist.hard
        return hard[is_pad[self.master[hard]]]

    def written_name(self, node: int) -> str:
        """A node's name as the user's DEF file writes it."""
        return self.written_names.get(node, self.netlist.names[node])
