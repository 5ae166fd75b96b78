"""Builds a flat design from structural Verilog and a DEF floorplan, with or without components and nets.

Axis legend: M components, D ports, E nets, C connections of nets.
"""

import dataclasses
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from placement.netlist.errors import SHOWN, listing, reject
from placement.netlist.flat_design import FlatDesign
from placement.netlist.flat_design_checks import lint
from placement.netlist.formats.def_design import SUPPLY, flat_design_of, unmatched_components
from placement.netlist.formats.def_file import DefComponents, DefFile, DefNets, DefPins, read_def
from placement.netlist.formats.lef import read_lefs
from placement.netlist.formats.verilog import VerilogNetlist, plain, read_verilog
from placement.netlist.technology import Technology


def read_verilog_def(
    verilogs: Sequence[str | os.PathLike[str]],
    lefs: Sequence[str | os.PathLike[str]],
    floorplan: str | os.PathLike[str],
    *,
    name: str | None = None,
    free_macros: bool = False,
) -> tuple[FlatDesign, DefFile]:
    """Builds a flat design from Verilog and LEF files and a DEF file's floorplan; also returns that file with the
    netlist in it.

    Args:
        verilogs: the netlist's files.
        lefs: technology and library files, in any order.
        floorplan: the DEF file, which an export changes; components and pins are found in it by their names.
        name: the design's name; default: the one in the DEF file.
        free_macros: whether macros that the DEF file fixes may move.

    Raises:
        DesignError: like `read_verilog`, `read_lefs`, `read_def` and `flat_design_of`; the DEF file has macros that the
            netlist does not have.
    """
    technology, sources = read_lefs(lefs)
    file = read_def(floorplan, units=technology.units)
    netlist = read_verilog(verilogs, technology, top=file.design)
    merged, notices = with_netlist(file, netlist, technology)
    design = flat_design_of(merged, technology, name=name or file.design or netlist.top)
    design = design.freed() if free_macros else design
    notices = (*technology.notices, *netlist.notices, *notices, *design.notices, *lint(design))
    return dataclasses.replace(design, sources=(*sources, *netlist.sources, file.source), notices=notices), merged


def with_netlist(file: DefFile, netlist: VerilogNetlist, technology: Technology) -> tuple[DefFile, tuple[str, ...]]:
    """Inserts the components, pins and nets of a netlist into a DEF file; also returns notices.

    Components and pins have the positions of the same names in the file; a macro keeps its halo and region, too. Raises
    DesignError if the file has macros that the netlist does not have; macros without signal pins are added to it.
    """
    netlist, added = _with_physical_macros(file, netlist, technology)
    index = {name: component for component, name in enumerate(netlist.names)}
    node_of = np.array([index.get(name, -1) for name in file.components.names], dtype=np.int32)
    blocks = {name for name, master in technology.masters.items() if master.is_block}
    findings, notices = unmatched_components(file, node_of, blocks, "netlist")
    reject(file.path, findings)
    notices += added
    if (file.nets.component >= 0).any():
        notices.append(f"{file.path}: its nets are ignored: the netlist comes from the Verilog files")
    pins, pin_of_port, pin_notices = _pins(file, netlist)
    is_port = netlist.component < 0
    pin = netlist.pin.copy()
    pin[is_port] = pin_of_port[netlist.pin[is_port]]
    is_supply = _supply_nets(netlist, technology)
    of_net = np.repeat(np.arange(len(is_supply)), np.diff(netlist.start))
    pins.use[pin[is_port & is_supply[of_net]]] = SUPPLY[0]
    nets = DefNets(
        names=[],
        start=netlist.start,
        component=netlist.component,
        pin=pin,
        pins=netlist.pins,
        use=np.where(is_supply, SUPPLY[0], 0).astype(np.int8),
        weight=np.ones(len(is_supply)),
        begin=np.zeros(len(is_supply), dtype=np.int64),
    )
    components = _components(file.components, netlist, node_of, blocks)
    merged = dataclasses.replace(file, design=netlist.top, components=components, pins=pins, nets=nets)
    return merged, (*notices, *pin_notices)


def _supply_nets(netlist: VerilogNetlist, technology: Technology) -> np.ndarray:
    """Whether most pins of cells and macros on a net are supply pins, bool [E], as in a netlist with power ports."""
    inner = np.flatnonzero(netlist.component >= 0)
    width = max(len(netlist.pins), 1)
    master = netlist.master[netlist.component[inner]].astype(np.int64)
    pairs, member = np.unique(master * width + netlist.pin[inner], return_inverse=True)
    supplies = [
        {plain(pin.name) for pin in technology.masters[name].pins if not pin.is_signal} for name in netlist.masters
    ]
    feeds = np.array([netlist.pins[pair % width] in supplies[pair // width] for pair in pairs.tolist()], dtype=np.int64)
    of_net = np.searchsorted(netlist.start, inner, side="right") - 1
    count = np.bincount(of_net, weights=2 * feeds[member.reshape(-1)] - 1, minlength=len(netlist.start) - 1)
    is_supply: np.ndarray = count > 0
    return is_supply


def _with_physical_macros(
    file: DefFile, netlist: VerilogNetlist, technology: Technology
) -> tuple[VerilogNetlist, list[str]]:
    """The netlist with the DEF file's macros without signal pins, such as logos, which no netlist contains; notices."""
    known, components = set(netlist.names), file.components
    physical = {name for name, one in technology.masters.items() if one.is_block and not one.has_signals}
    pairs = zip(components.names, (components.masters[master] for master in components.master.tolist()), strict=True)
    added = [(name, master) for name, master in pairs if master in physical and name not in known]
    if not added:
        return netlist, []
    masters = [*netlist.masters, *sorted({master for _, master in added} - set(netlist.masters))]
    number = {name: index for index, name in enumerate(masters)}
    of_added = np.array([number[master] for _, master in added], dtype=np.int32)
    names = [*netlist.names, *(name for name, _ in added)]
    extended = dataclasses.replace(
        netlist, names=names, masters=masters, master=np.concatenate((netlist.master, of_added))
    )
    what = "macros without signal pins are not in the netlist: they are added"
    return extended, [listing(file.path, what, len(added), [(0, name) for name, _ in added[:SHOWN]])]


def _components(given: DefComponents, netlist: VerilogNetlist, node_of: np.ndarray, blocks: set[str]) -> DefComponents:
    """The netlist's components with the positions in the DEF file, whose components are `node_of` in the netlist."""
    count, known = len(netlist.names), node_of >= 0
    columns: dict[str, Any] = {}
    for name in ("status", "x", "y", "orientation"):
        column = getattr(given, name)
        columns[name] = np.zeros(count, dtype=column.dtype)
        columns[name][node_of[known]] = column[known]
    for key, values in (("halo_component", "halo"), ("region_component", "region")):
        kept = known[getattr(given, key)]
        columns[key] = node_of[getattr(given, key)[kept]]
        columns[values] = getattr(given, values)[kept]
    # Only macros are written into DEF files.
    is_block = np.array([name in blocks for name in netlist.masters] + [False])[netlist.master]
    written = list(netlist.names)
    for component in np.flatnonzero(is_block).tolist():
        written[component] = re.sub(r"([\[\]])", r"\\\1", netlist.names[component])
    for component, name in zip(node_of.tolist(), given.written_names, strict=True):
        if component >= 0:
            written[component] = name
    nowhere = np.zeros(count, dtype=np.int64)
    return DefComponents(
        names=netlist.names, written_names=written, masters=netlist.masters, master=netlist.master,
        begin=nowhere, end=nowhere, regions=given.regions, **columns,
    )  # fmt: skip


def _pins(file: DefFile, netlist: VerilogNetlist) -> tuple[DefPins, np.ndarray, list[str]]:
    """The netlist's ports, first those that the DEF file places; the number of each port (int32 [D]); and notices."""
    given, notices = file.pins, list[str]()
    port_of = {name: port for port, name in enumerate(netlist.ports)}
    of_pin = np.array([port_of.get(name, -1) for name in given.names], dtype=np.int64)
    unknown = np.flatnonzero((of_pin < 0) & ~np.isin(given.use, SUPPLY))
    if len(unknown):
        first = [(file.line(given.begin[pin]), given.names[pin]) for pin in unknown[:SHOWN].tolist()]
        notices.append(listing(file.path, "pins that are not in the netlist are ignored", len(unknown), first))
    taken = np.flatnonzero(of_pin >= 0)
    missing = np.setdiff1d(np.arange(len(netlist.ports)), of_pin)
    columns: dict[str, Any] = {}
    for field in dataclasses.fields(DefPins):
        column = getattr(given, field.name)
        if isinstance(column, np.ndarray):
            none = -1 if field.name in ("net", "layer") else 0
            added = np.full((len(missing), *column.shape[1:]), none, dtype=column.dtype)
            columns[field.name] = np.concatenate((column[taken], added))
    columns["direction"] = netlist.direction[np.concatenate((of_pin[taken], missing))]
    ports = [netlist.ports[port] for port in missing.tolist()]
    names = [given.names[pin] for pin in taken.tolist()] + ports
    written = [given.written_names[pin] for pin in taken.tolist()] + ports
    pin_of_port = np.zeros(len(netlist.ports), dtype=np.int32)
    pin_of_port[np.concatenate((of_pin[taken], missing))] = np.arange(len(names))
    pins = DefPins(names=names, written_names=written, nets=given.nets, layers=given.layers, **columns)
    return pins, pin_of_port, notices
