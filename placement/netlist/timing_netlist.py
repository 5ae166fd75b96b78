"""The timing data of a design: the pins of its cells with their positions, the library, the constraints; and its file.

Axis legend: I instances, P pins (the connections of nets, net by net), E nets. Lengths in µm, times in ps, loads in fF.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from placement.netlist.errors import DesignError
from placement.netlist.files import SourceFile, read_npz, write_npz
from placement.netlist.flat_design import FlatDesign
from placement.netlist.timing_constraints import (
    Clock,
    Derating,
    Object,
    PathException,
    PortDelay,
    PortLoad,
    PortTransition,
    TimingConstraints,
    Uncertainty,
)
from placement.netlist.timing_library import TimingLibrary

TIMING_NAME = "timing.npz"
_FORMAT_VERSION = 1
_ARRAYS = ("cell", "instance", "library_pin", "port", "net_start", "node", "dx", "dy")


@dataclasses.dataclass(frozen=True)
class WireModel:
    """The model of optimally repeated wires."""

    delay_per_um: float  # ps, of a repeated wire
    capacitance_per_um: float  # fF
    resistance_per_um: float  # Ω
    most_load: float  # fF, the maximum load of a driver: the first segment of a repeated wire and its repeater's input
    stage_delay: float  # ps, of a repeater with its segment
    segment: float  # µm between repeaters
    fanout_ratio: float  # load of a repeater over its input capacitance, above 1
    repeater: str  # the name of the buffer
    source: str  # the source of resistance and capacitance, a sentence


@dataclasses.dataclass(frozen=True)
class InputFile:
    """An input file for another timer."""

    kind: str  # `verilog`, `liberty`, `sdc`, or `sourced` by the SDC file
    path: str  # absolute; sha256: of its unpacked bytes
    sha256: str


@dataclasses.dataclass(frozen=True, eq=False)
class TimingNetlist:
    """The pins of a flat design and their timing data."""

    library: TimingLibrary  # the timing of the masters that the design uses
    cell: np.ndarray  # int32 [I], the instance's cell in the library; -1: the library does not have it
    instance: np.ndarray  # int32 [P]; -1: a port
    library_pin: np.ndarray  # int32 [P]; -1: a port, or not in the library
    port: np.ndarray  # int8 [P], 1 for a port that drives its net (an input), 2 for a driven port, 0 for other pins
    net_start: np.ndarray  # int32 [E+1]; net e has the pins `net_start[e]:net_start[e+1]`
    node: np.ndarray  # int32 [P], the pin's node in the flat design
    dx: np.ndarray  # dx, dy: float32 [P], µm from the node's centre in orientation N
    dy: np.ndarray
    members: dict[int, str]  # instances whose node is an array → their names; others have the names of their nodes
    constraints: TimingConstraints  # clocks, delays and exceptions
    wires: WireModel  # the delay model of wires
    sources: tuple[SourceFile, ...] = ()  # the Liberty and SDC files
    notices: tuple[str, ...] = ()  # unusual, assumed or omitted facts
    top: str = ""  # the netlist's top module
    files: tuple[InputFile, ...] = ()  # netlist, libraries and constraints, with their paths at the import

    def onto(self, before: FlatDesign, after: FlatDesign) -> TimingNetlist:
        """The same timing netlist for `after`, in which arrays replace some of the macros of `before`."""
        if not after.arrays:
            return self
        index = {name: node for node, name in enumerate(after.netlist.names)}
        shift = np.zeros((2, before.netlist.num_nodes))
        node_of = np.array([index.get(name, -1) for name in before.netlist.names], dtype=np.int32)
        own = {name: node for node, name in enumerate(before.netlist.names)}
        joined: dict[int, str] = {}
        for array in after.arrays:
            for name, dx, dy in zip(array.names, array.dx.tolist(), array.dy.tolist(), strict=True):
                node_of[own[name]] = array.node
                shift[:, own[name]] = dx, dy
                joined[own[name]] = name
        of_instance = self.instance_nodes()
        members = {int(one): joined[node] for one, node in enumerate(of_instance.tolist()) if node in joined}
        return dataclasses.replace(
            self,
            node=node_of[self.node],
            dx=(self.dx + shift[0, self.node]).astype(np.float32),
            dy=(self.dy + shift[1, self.node]).astype(np.float32),
            members=members,
        )

    def instance_nodes(self) -> np.ndarray:
        """The node of each instance, int32 [I]; -1 if no net joins it."""
        nodes = np.full(len(self.cell), -1, dtype=np.int32)
        inner = self.instance >= 0
        nodes[self.instance[inner]] = self.node[inner]
        return nodes

    def pin_name(self, pin: int, flat: FlatDesign) -> str:
        """A pin as `cell/pin`, or a port by its name."""
        instance = int(self.instance[pin])
        if instance < 0:
            return flat.netlist.names[self.node[pin]]
        name = self.members.get(instance, flat.netlist.names[self.node[pin]])
        library_pin = int(self.library_pin[pin])
        return f"{name}/{self.library.pins[library_pin]}" if library_pin >= 0 else name


def write_timing(path: str | os.PathLike[str], timing: TimingNetlist) -> None:
    """Writes a timing netlist, entirely or not at all; raises OSError."""
    header = {
        "form": _FORMAT_VERSION,
        "cells": timing.library.cells,
        "pins": timing.library.pins,
        "members": timing.members,
        "constraints": dataclasses.asdict(timing.constraints),
        "wires": dataclasses.asdict(timing.wires),
        "sources": [dataclasses.astuple(source) for source in timing.sources],
        "notices": timing.notices,
        "top": timing.top,
        "files": [dataclasses.astuple(one) for one in timing.files],
    }
    arrays = {f"library_{name}": column for name, column in timing.library.arrays().items()}
    arrays |= {name: getattr(timing, name) for name in _ARRAYS}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    write_npz(path, arrays)


def read_timing(folder: str | os.PathLike[str]) -> TimingNetlist:
    """The timing netlist in a design's folder; raises DesignError if there is none or it is damaged."""
    path = Path(folder) / TIMING_NAME
    if not path.is_file():
        raise DesignError(
            f"{folder} has no timing ({TIMING_NAME}): import the design again with --liberty and --sdc, from DEF with "
            "nets or from Verilog"
        )
    arrays = read_npz(path, "timing netlist")
    try:
        header = json.loads(arrays["header"].tobytes())
        if header["form"] != _FORMAT_VERSION:
            raise DesignError(
                f"{path}: has format version {header['form']}; this program reads version {_FORMAT_VERSION}"
            )
        library = TimingLibrary(
            cells=tuple(header["cells"]),
            pins=tuple(header["pins"]),
            **{name: arrays[f"library_{name}"] for name in TimingLibrary.array_names()},
        )
        return TimingNetlist(
            library=library,
            **{name: arrays[name] for name in _ARRAYS},
            members={int(instance): name for instance, name in header["members"].items()},
            constraints=_constraints(header["constraints"]),
            wires=WireModel(**header["wires"]),
            sources=tuple(SourceFile(*source) for source in header["sources"]),
            notices=tuple(header["notices"]),
            top=header.get("top", ""),
            files=tuple(InputFile(*one) for one in header.get("files", ())),
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, DesignError):
            raise
        raise DesignError(f"{path}: not a valid timing netlist: {error}") from None


def _constraints(header: dict[str, Any]) -> TimingConstraints:
    def objects(found: list[list[str]]) -> tuple[Object, ...]:
        return tuple(Object(*one) for one in found)  # type: ignore[arg-type]

    return TimingConstraints(
        clocks=tuple(Clock(**(one | {"sources": objects(one["sources"])})) for one in header["clocks"]),
        inputs=tuple(PortDelay(**one) for one in header["inputs"]),
        outputs=tuple(PortDelay(**one) for one in header["outputs"]),
        exceptions=tuple(
            PathException(**(one | {side: objects(one[side]) for side in ("begins", "ends")}))
            for one in header["exceptions"]
        ),
        notices=tuple(header["notices"]),
        transitions=tuple(PortTransition(**one) for one in header.get("transitions", ())),
        derating=Derating(**header.get("derating", {})),
        blocked=objects(header.get("blocked", [])),
        loads=tuple(PortLoad(**one) for one in header.get("loads", ())),
        uncertainties=tuple(Uncertainty(**one) for one in header.get("uncertainties", ())),
    )
