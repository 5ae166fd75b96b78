"""Builds the timing netlist of a chip from its DEF (with the netlist), LEF, Liberty and SDC files.

Axis legend: M components, C connections of nets, P pins that are kept.
"""

import os
from collections.abc import Sequence

import numpy as np

from placement.netlist.errors import SHOWN, DesignError, listing
from placement.netlist.files import SourceFile
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.def_design import SUPPLY, connection_offsets
from placement.netlist.formats.def_file import DIRECTIONS, DefFile
from placement.netlist.formats.liberty import LibertyFiles, read_liberty
from placement.netlist.formats.sdc import read_sdc
from placement.netlist.formats.sdc_objects import DesignObjects
from placement.netlist.formats.verilog import plain
from placement.netlist.repeaters import wire_model
from placement.netlist.timing_constraints import TimingConstraints
from placement.netlist.timing_library import (
    FALLING_EDGE,
    OUTPUT,
    RISING_EDGE,
    SETUP_FALLING,
    SETUP_RISING,
    TimingLibrary,
)
from placement.netlist.timing_netlist import InputFile, TimingNetlist

LONGEST = 10_000
"""Maximum plausible clock period, in delays of the fastest register; a longer one suggests a wrong unit."""

FilePath = str | os.PathLike[str]


def read_timing_files(
    file: DefFile, flat: FlatDesign, liberty: Sequence[FilePath], sdc: FilePath | None
) -> TimingNetlist:
    """The timing netlist of a flat design that was read from `file`.

    Args:
        file: the DEF file with components, pins and nets.
        flat: the design of this file, before macros are joined to arrays.
        liberty: the libraries of one corner.
        sdc: the timing constraints; None: the design has no clock.

    Of its `files`, the result has only those of the constraints.

    Raises:
        DesignError: like `read_liberty`, `read_sdc` and `wire_model`; no master is in a library.
    """
    files = read_liberty(liberty)
    library, components = files.library, file.components
    index = {name: cell for cell, name in enumerate(library.cells)}
    of_master = np.array([index.get(name, -1) for name in components.masters] + [-1], dtype=np.int64)
    used = np.unique(of_master[of_master >= 0])
    if not len(used):
        raise DesignError(
            f"{liberty[0]}: the Liberty files have none of the design's {len(components.masters)} masters (first: "
            f"{next(iter(components.masters), 'none')}): do they belong to another technology?"
        )
    wires = wire_model(library, flat.technology.layers)
    library = library.only(used)
    cell_of_master = np.where(of_master >= 0, np.searchsorted(used, of_master), -1)
    cell = cell_of_master[components.master].astype(np.int32)
    pins = _kept_pins(file)
    component, pin = file.nets.component[pins], file.nets.pin[pins]
    offset_x, offset_y = (offsets[pins] for offsets in connection_offsets(file, flat.technology))
    library_pin = _library_pins(file, library, cell_of_master, component=component, pin=pin)
    is_port = component < 0
    port_node = np.cumsum(~np.isin(file.pins.use, SUPPLY)) - 1 + len(components.names)
    direction = file.pins.direction[np.where(is_port, pin, 0)] if len(file.pins.names) else np.zeros(len(pins))
    inputs = (DIRECTIONS.index("INPUT"), DIRECTIONS.index("INOUT"))
    node = np.where(is_port, port_node[np.where(is_port, pin, 0)] if len(port_node) else -1, component)
    of_net = np.repeat(np.arange(len(file.nets.start) - 1), np.diff(file.nets.start))[pins]
    counts = np.bincount(of_net, minlength=len(file.nets.start) - 1)
    # A port in both directions drives its net unless a cell does.
    is_driver = (library_pin >= 0) & (library.direction[library_pin] == OUTPUT)
    is_driven = np.bincount(of_net[is_driver], minlength=len(counts))[of_net] > 0
    drives = (direction == inputs[0]) | ((direction == inputs[1]) & ~is_driven)
    constraints = TimingConstraints()
    read: dict[str, SourceFile] = {}
    if sdc is not None:
        constraints, read = read_sdc(
            sdc,
            _objects(file),
            time_unit=files.time_unit,
            slew_factor=files.slew_factor,
            capacitance_unit=files.capacitance_unit,
        )
    return TimingNetlist(
        library=library,
        cell=cell,
        instance=component.astype(np.int32),
        library_pin=library_pin,
        port=np.where(is_port, np.where(drives, 1, 2), 0).astype(np.int8),
        net_start=np.concatenate(([0], np.cumsum(counts[counts > 0]))).astype(np.int32),
        node=node.astype(np.int32),
        dx=offset_x.astype(np.float32),
        dy=offset_y.astype(np.float32),
        members={},
        constraints=constraints,
        wires=wires,
        sources=(*files.sources, *read.values()),
        notices=(
            *files.notices,
            *_unknown(file, of_master),
            *_unknown_pins(file, (component >= 0) & (cell[component] >= 0) & (library_pin < 0), component, pin),
            *_without_arcs(file, library),
            *constraints.notices,
            *_suspicious(constraints, files, sdc),
        ),
        files=tuple(
            InputFile("sourced" if number else "sdc", path, source.sha256)
            for number, (path, source) in enumerate(read.items())
        ),
    )


def _kept_pins(file: DefFile) -> np.ndarray:
    """The connections of signal nets that connect at least two pins, int64 [P]."""
    nets = file.nets
    degree = np.diff(nets.start)
    net = np.repeat(np.arange(len(degree)), degree)
    supply_pin = (nets.component < 0) & np.isin(file.pins.use, SUPPLY)[np.where(nets.component < 0, nets.pin, 0)]
    taken = ~np.isin(nets.use, SUPPLY)[net] & ~supply_pin
    return np.flatnonzero(taken & (np.bincount(net[taken], minlength=len(degree)) >= 2)[net])


def _library_pins(
    file: DefFile, library: TimingLibrary, cell_of_master: np.ndarray, *, component: np.ndarray, pin: np.ndarray
) -> np.ndarray:
    """Each connection's pin in the library, int32 [P]; -1 for ports and unknown pins."""
    found = np.full(len(pin), -1, dtype=np.int32)
    inner = np.flatnonzero(component >= 0)
    width = max(len(file.nets.pins), 1)
    master = file.components.master[component[inner]].astype(np.int64)
    pairs, member = np.unique(master * width + pin[inner], return_inverse=True)
    of_pair = np.full(len(pairs), -1, dtype=np.int32)
    index: dict[int, dict[str, int]] = {}
    for place, pair in enumerate(pairs.tolist()):
        of_master, of_pin = divmod(pair, width)
        cell = int(cell_of_master[of_master])
        if cell >= 0:
            if cell not in index:
                index[cell] = library.pin_index(cell)
            of_pair[place] = index[cell].get(plain(file.nets.pins[of_pin]), -1)
    found[inner] = of_pair[member.reshape(-1)]
    return found


def _objects(file: DefFile) -> DesignObjects:
    directions = {"INPUT": 1, "OUTPUT": 2, "INOUT": 3}
    ports = {
        name: directions.get(DIRECTIONS[direction], 3)
        for name, direction, use in zip(
            file.pins.names, file.pins.direction.tolist(), file.pins.use.tolist(), strict=True
        )
        if use not in SUPPLY
    }
    pins: dict[int, set[str]] = {}
    inner = file.nets.component >= 0
    for component, pin in zip(file.nets.component[inner].tolist(), file.nets.pin[inner].tolist(), strict=True):
        pins.setdefault(component, set()).add(file.nets.pins[pin])
    number = {name: component for component, name in enumerate(file.components.names)}
    return DesignObjects(
        ports,
        file.components.names,
        pins_of=lambda cell: sorted(pins.get(number[cell], ())),
        master_of=lambda cell: file.components.masters[file.components.master[number[cell]]],
    )


def _unknown(file: DefFile, of_master: np.ndarray) -> list[str]:
    """Returns a notice of masters without timing."""
    missing = np.flatnonzero(of_master[:-1] < 0)
    if not len(missing):
        return []
    first = [(0, file.components.masters[master]) for master in missing[:SHOWN].tolist()]
    return [
        listing(file.path, "masters are in no Liberty file: no path starts, ends or passes there", len(missing), first)
    ]


def _unknown_pins(file: DefFile, is_unknown: np.ndarray, component: np.ndarray, pin: np.ndarray) -> list[str]:
    """Returns a notice of pins that the libraries' cells do not have; `is_unknown` is bool [P]."""
    masters = file.components.master[component[is_unknown]]
    names = {
        f"{file.components.masters[master]}/{plain(file.nets.pins[one])}": None
        for master, one in set(zip(masters.tolist(), pin[is_unknown].tolist(), strict=True))
    }
    what = "pins are missing from their cells in the Liberty files: no path passes there"
    first = [(0, name) for name in sorted(names)[:SHOWN]]
    return [listing(file.path, what, len(names), first)] if names else []


def _without_arcs(file: DefFile, library: TimingLibrary) -> list[str]:
    """Returns notices of masters that have a clock, but at which no path begins or ends."""
    cells = np.arange(len(library.cells))
    owner = np.repeat(cells, np.diff(library.arc_start))
    clock_of = np.repeat(cells, np.diff(library.pin_start))[library.is_clock != 0]
    is_check = np.isin(library.arc_kind, (SETUP_RISING, SETUP_FALLING))
    launches = np.isin(cells, owner[np.isin(library.arc_kind, (RISING_EDGE, FALLING_EDGE))])
    passes = np.isin(cells, owner[~is_check & (library.is_clock[library.arc_from] != 0)])
    found = (
        ("masters with a clock have no setup check: no path ends there", launches & ~np.isin(cells, owner[is_check])),
        ("masters with a clock have no arc from it: no path starts there", np.isin(cells, clock_of) & ~passes),
    )
    return [
        listing(file.path, what, int(which.sum()), [(0, library.cells[cell]) for cell in cells[which][:SHOWN]])
        for what, which in found
        if which.any()
    ]


def _suspicious(constraints: TimingConstraints, files: LibertyFiles, sdc: FilePath | None) -> list[str]:
    """Returns notices of clocks whose period is implausible: shorter than any register's delay, or far longer."""
    library = files.library
    checks = np.isin(library.arc_kind, (SETUP_RISING, SETUP_FALLING))
    edges = np.isin(library.arc_kind, (RISING_EDGE, FALLING_EDGE))
    if not constraints.clocks or not checks.any() or not edges.any():
        return []
    tables = library.arc_tables.reshape(-1, 4)[edges][:, 0]
    tables = tables[tables >= 0]
    least = min(_least(files, table) for table in tables.tolist())
    return [
        f"{sdc}: clock {clock.name!r} has a period of {clock.period:g} ps, "
        f"{'less' if clock.period < least else f'over {LONGEST:,} times more'} than the {least:.3g} ps of the fastest "
        f"register alone: are its times in another unit than {files.time_unit:g} ps (set_units -time)?"
        for clock in constraints.clocks
        if clock.period < least or clock.period > LONGEST * least > 0
    ]


def _least(files: LibertyFiles, table: int) -> float:
    library = files.library
    down, across, begin = int(library.rows[table]), int(library.columns[table]), int(library.offset[table])
    return float(library.numbers[begin + down + across : begin + down + across + down * across].min())
