"""A flat design from structural Verilog, LEF files and the floorplan of a DEF file.

The instances and nets of the Verilog are written into the DEF file's COMPONENTS and NETS, which is then read as any
other: an export has all of them.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from placement.netlist.errors import SHOWN, DesignError, Finding, reject
from placement.netlist.flat_design import FlatDesign
from placement.netlist.flat_design_checks import lint
from placement.netlist.formats.def_design import flat_design_of
from placement.netlist.formats.def_file import DefFile, parse_def, read_def
from placement.netlist.formats.lef import read_lefs
from placement.netlist.formats.verilog import Instance, Module, bits, read_verilog, wires
from placement.netlist.technology import Master, Technology

_SPECIAL = re.compile(r"([\\/\[\]*#])")
_COMPONENTS = re.compile(rb"^[ \t]*COMPONENTS\s+\d+\s*;(.*?)^[ \t]*END\s+COMPONENTS[^\n]*\n?", re.M | re.S | re.I)
_NETS = re.compile(rb"^[ \t]*NETS\s+\d+\s*;.*?^[ \t]*END\s+NETS[^\n]*\n?", re.M | re.S | re.I)
_BEHIND_COMPONENTS = re.compile(
    rb"^[ \t]*(?=(PINS|PINPROPERTIES|BLOCKAGES|SLOTS|FILLS|SPECIALNETS|NETS|SCANCHAINS|GROUPS)\s+\d|END\s+DESIGN\b)",
    re.M | re.I,
)
_BEHIND_NETS = re.compile(rb"^[ \t]*(?=(SCANCHAINS|GROUPS)\s+\d|END\s+DESIGN\b)", re.M | re.I)
_DEEPEST = 200
"""Levels of modules, one within the other."""
_One = TypeVar("_One")
_Other = TypeVar("_Other")

Wire = tuple[str, int | None]
"""Of a module: its name as the Verilog writes it, and its bit, None if it is no vector."""


def read_verilog_def(
    path: str | os.PathLike[str],
    floorplan: str | os.PathLike[str],
    *,
    lefs: Sequence[str | os.PathLike[str]],
    name: str | None = None,
    free_macros: bool = False,
) -> tuple[FlatDesign, bytes]:
    """A flat design, and the unpacked DEF text with the netlist, which an export changes.

    The top module is the one that the DEF file's DESIGN names, or the only one that no other contains. Instances keep
    the places that the DEF file gives them, if any. Its own nets are passed over.

    Raises:
        DesignError: as `read_verilog`, `read_def`, `read_lefs` and `flat_design_of`; a module or port does not exist,
            a module contains itself, there is no single top module, the DEF file has macros that the Verilog lacks.
    """
    modules, source = read_verilog(path)
    technology, sources = read_lefs(lefs)
    file = read_def(floorplan)
    netlist = _Netlist(path, modules, technology, _top(path, modules, file.design))
    data, merging = _merged(file, netlist, technology)
    merged = parse_def(floorplan, data, file.source)
    design = flat_design_of(merged, technology, name=name)
    design = design.freed() if free_macros else design
    notices = (*technology.notices, *merging, *design.notices, *lint(design))
    return dataclasses.replace(design, sources=(*sources, source, file.source), notices=notices), data


def _top(path: object, modules: dict[str, Module], wanted: str) -> Module:
    if wanted in modules:
        return modules[wanted]
    inner = {instance.module for module in modules.values() for instance in module.instances}
    roots = [name for name in modules if name not in inner and modules[name].instances]
    if len(roots) != 1:
        raise DesignError(
            f"{path}: {', '.join(roots[:SHOWN]) or 'no module'} may be the top module; the DEF file's DESIGN must name "
            f"it, but is {wanted!r}"
        )
    return modules[roots[0]]


class _Netlist:
    """The instances of library cells below a top module, and the nets between their pins.

    Attributes:
        cells: name in DEF → master; nets: name in DEF → connections, as DEF writes them.
        ports: names of the top module's ports, a bit each, as DEF writes them.
    """

    def __init__(
        self, path: str | os.PathLike[str], modules: dict[str, Module], technology: Technology, top: Module
    ) -> None:
        self.path, self.modules, self.technology = path, modules, technology
        self.cells: dict[str, str] = {}
        self.joined: list[int] = []  # net → the net that it is one with, or itself
        self.names: list[str] = []
        self.ends: list[tuple[int, str]] = []
        self.ports: list[str] = []
        self.unknown: dict[str, tuple[int, str]] = {}
        self.missing: list[tuple[int, str]] = []
        self.pins_of = {name: _pins(master) for name, master in technology.masters.items()}
        outer: dict[Wire, int] = {}
        for port in top.ports:
            for wire in _bits_of(top, port):
                outer[wire] = self.new(_written(wire, ""))
                self.ports.append(self.names[-1])
                self.ends.append((outer[wire], f"( PIN {self.names[-1]} )"))
        self.fill(top, "", outer, 0)
        findings: list[Finding] = []
        for what, found in (
            ("modules that neither the Verilog nor a LEF file defines", list(self.unknown.values())),
            ("connections to pins that the masters do not have", self.missing),
        ):
            findings += [(what, len(found), found[:SHOWN])] if found else []
        reject(path, findings)

    def new(self, name: str) -> int:
        self.joined.append(len(self.joined))
        self.names.append(name)
        return len(self.joined) - 1

    def net(self, number: int) -> int:
        """The net that stands for all that are one with a net: the first of them."""
        while self.joined[number] != number:
            self.joined[number] = self.joined[self.joined[number]]
            number = self.joined[number]
        return number

    def join(self, first: int, second: int) -> None:
        low, high = sorted((self.net(first), self.net(second)))
        self.joined[high] = low

    def fill(self, module: Module, prefix: str, nets: dict[Wire, int], depth: int) -> None:
        """Adds what a module contains; `nets` has those of its ports."""
        if depth > _DEEPEST:
            raise DesignError.at(self.path, module.line, f"module {module.name!r} contains itself")
        for left, right in module.assigns:
            sides = (self.found(wires(module, side), prefix, nets) for side in (left, right))
            for first, second in _aligned(*sides):
                if first is not None and second is not None:
                    self.join(first, second)
        for instance in module.instances:
            name = prefix + _escaped(instance.name)
            ports = [(port, self.found(given, prefix, nets)) for port, given in self.ports_of(module, instance)]
            inner = self.modules.get(instance.module)
            if instance.module in self.technology.masters:
                self.add_cell(instance, name, ports)
            elif inner is not None and (inner.instances or inner.assigns):
                pairs = [pair for port, given in ports for pair in _aligned(_bits_of(inner, port), given)]
                outer = {wire: net for wire, net in pairs if net is not None}
                self.fill(inner, f"{name}/", outer, depth + 1)
            else:
                self.unknown.setdefault(instance.module, (instance.line, instance.module))

    def found(self, given: Sequence[Wire | None], prefix: str, nets: dict[Wire, int]) -> list[int | None]:
        """The nets of wires of a module; a wire that has none gets one."""
        for wire in given:
            if wire is not None and wire not in nets:
                nets[wire] = self.new(_written(wire, prefix))
        return [None if wire is None else nets[wire] for wire in given]

    def ports_of(self, module: Module, instance: Instance) -> list[tuple[str, list[Wire | None]]]:
        """The ports of an instance, and the wires of the module at them."""
        named = [(port, wires(module, given)) for port, given in instance.by_name.items()]
        if instance.by_position:
            inner = self.modules.get(instance.module)
            if inner is None or len(instance.by_position) > len(inner.ports):
                raise DesignError.at(
                    self.path, instance.line, f"the connections of {instance.name!r} must name the ports: .A(net)"
                )
            given = [wires(module, expression) for expression in instance.by_position]
            named += zip(inner.ports, given, strict=False)
        return named

    def add_cell(self, instance: Instance, name: str, ports: list[tuple[str, list[int | None]]]) -> None:
        """Adds an instance of a library cell and connects its pins; those of supplies are on no net."""
        self.cells[name] = instance.module
        pins, declared = self.pins_of[instance.module], self.modules.get(instance.module)
        for port, nets in ports:
            if not nets:
                continue
            plain = port.removeprefix("\\")
            own = [pins[plain, None]] if (plain, None) in pins else []
            if not own:
                span = declared.ranges.get(port) if declared is not None else None
                known = [bit for at, bit in pins if at == plain and bit is not None]
                order = bits(span) if span else sorted(known, reverse=True)
                own = [pins[plain, bit] for bit in order if (plain, bit) in pins]
            if not own:
                self.missing.append((instance.line, f"{plain} of {name} ({instance.module})"))
            for pin, net in _aligned(own, nets):
                if pin and net is not None:
                    self.ends.append((net, f"( {name} {pin} )"))

    @property
    def nets(self) -> dict[str, list[str]]:
        of: dict[int, list[str]] = {}
        for net, end in self.ends:
            of.setdefault(self.net(net), []).append(end)
        return {self.names[net]: ends for net, ends in of.items()}


def _aligned(first: Sequence[_One], second: Sequence[_Other]) -> Iterator[tuple[_One, _Other]]:
    """Pairs from the least significant bits on; what one side has beyond the other is on no net."""
    return zip(reversed(first), reversed(second), strict=False)


def _pins(master: Master) -> dict[tuple[str, int | None], str]:
    """Name and bit (None: no vector) → the name in DEF; "" for pins of supplies."""
    found: dict[tuple[str, int | None], str] = {}
    for pin in master.pins:
        plain = pin.name.replace("\\", "")
        own = pin.name if pin.is_signal else ""
        found[plain, None] = own
        if bit := re.fullmatch(r"(.*)[\[<](\d+)[\]>]", plain):
            found[bit[1], int(bit[2])] = own
    return found


def _bits_of(module: Module, port: str) -> list[Wire]:
    span = module.ranges.get(port)
    return [(port, bit) for bit in bits(span)] if span else [(port, None)]


def _escaped(name: str) -> str:
    """A name as DEF writes it: what an escaped one has beside letters is no divider and no bit."""
    return _SPECIAL.sub(r"\\\1", name[1:]) if name[0] == "\\" else name


def _written(wire: Wire, prefix: str) -> str:
    name, bit = wire
    return f"{prefix}{_escaped(name)}" + (f"[{bit}]" if bit is not None else "")


def _merged(file: DefFile, netlist: _Netlist, technology: Technology) -> tuple[bytes, list[str]]:
    """The DEF text with the netlist's components and nets, and notices."""
    plain = {name.replace("\\", ""): name for name in netlist.cells}
    components = file.components
    index = [components.masters[master] for master in components.master.tolist()]
    strange, renamed = [], {}
    for name, written, master, begin in zip(
        components.names, components.written_names, index, components.begin.tolist(), strict=True
    ):
        own = plain.get(name.replace("\\", ""))
        if own is not None:
            renamed[own] = written
            if netlist.cells[own] != master:
                raise file.error(begin, f"{name} is a {master}, but a {netlist.cells[own]} in {netlist.path}")
        elif master in technology.masters and technology.masters[master].kind == "BLOCK":
            strange.append((file.line(begin), name))
    if strange:
        reject(file.path, [("macros that the Verilog does not have", len(strange), strange[:SHOWN])])
    ports = {
        name.replace("\\", ""): written for name, written in zip(file.pins.names, file.pins.written_names, strict=True)
    }
    new = [f"- {name} {master} ;" for name, master in netlist.cells.items() if name not in renamed]
    nets = [
        f"- {name} {' '.join(_renamed(end, renamed, ports) for end in ends)} ;" for name, ends in netlist.nets.items()
    ]
    notices = [f"{file.path}: {len(new):,} components and {len(nets):,} nets are those of {Path(netlist.path).name}"]
    data, dropped = _NETS.subn(b"", file.data)
    if dropped and (file.nets.component >= 0).any():
        notices.append(f"{file.path}: its own nets are passed over")
    own_entries = _COMPONENTS.search(data)
    kept = own_entries[1].rstrip() + b"\n" if own_entries else b"\n"
    text = "\n".join(new).encode() + b"\n"
    count = len(components.names) + len(new)
    section = b"COMPONENTS %d ;" % count + kept + text + b"END COMPONENTS\n"
    if own_entries:
        data = data[: own_entries.start()] + section + data[own_entries.end() :]
    else:
        data = _inserted(file, data, _BEHIND_COMPONENTS, section)
    lines = "\n".join(nets).encode()
    return _inserted(file, data, _BEHIND_NETS, b"NETS %d ;\n" % len(nets) + lines + b"\nEND NETS\n"), notices


def _inserted(file: DefFile, data: bytes, behind: re.Pattern[bytes], section: bytes) -> bytes:
    found = behind.search(data)
    if found is None:
        raise DesignError(f"{file.path}: no line begins with END DESIGN")
    return data[: found.start()] + section + data[found.start() :]


def _renamed(end: str, cells: dict[str, str], ports: dict[str, str]) -> str:
    """A connection with the names that the DEF file itself writes."""
    _, owner, pin, _ = end.split(" ")
    if owner == "PIN":
        return f"( PIN {ports.get(pin.replace(chr(92), ''), pin)} )"
    return f"( {cells.get(owner, owner)} {pin} )"
