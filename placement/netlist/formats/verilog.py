"""Reads structural Verilog, hierarchical or flat: components, ports and nets in the form of a DEF file.

Axis legend: M components, D ports (bits), E nets, C connections of nets.
"""

import bisect
import codecs
import dataclasses
import itertools
import os
import re
from collections.abc import Sequence

import numpy as np

from placement.netlist import _native
from placement.netlist.errors import SHOWN, DesignError, Finding, listing
from placement.netlist.files import SourceFile, decoded_leniently, read_bytes
from placement.netlist.technology import Technology

_INCLUDE = re.compile(rb"^[ \t]*`include[ \t]+(\S+)", re.MULTILINE)


@dataclasses.dataclass(frozen=True, eq=False)
class VerilogNetlist:
    """A flattened netlist."""

    top: str  # the name of the top module
    names: list[str]  # M names of components, without backslashes, `/` between levels
    masters: list[str]  # the masters' names; master: int32 [M], indices in it
    master: np.ndarray
    ports: list[str]  # D names, a bus bit as `data[3]`; direction: int8 [D], 1: input, 2: output, 3: both
    direction: np.ndarray
    start: np.ndarray  # int32 [E+1]; net e has the connections `start[e]:start[e+1]`
    component: np.ndarray  # int32 [C], -1 for a port
    pin: np.ndarray  # int32 [C], the index in `pins`, or the index of the port if `component` is -1
    pins: list[str]  # names of masters' pins
    sources: tuple[SourceFile, ...]  # the files
    notices: tuple[str, ...]  # unusual but harmless properties of the files


def read_verilog(paths: Sequence[str | os.PathLike[str]], technology: Technology, *, top: str = "") -> VerilogNetlist:
    """Reads the netlist in Verilog files, plain or gzipped, whose leaves are masters of LEF files.

    Args:
        paths: the files, in any order.
        technology: the masters and their pins. A bus of a master is connected from its highest index to its lowest,
            unless the Verilog files declare the master's ports.
        top: the top module, if there is one of that name; else the module that no other instantiates.

    Raises:
        DesignError: with file and line; the text is truncated or is not a netlist, a module is not defined, a pin does
            not exist, or a name is repeated.
    """
    files = [(path, *read_bytes(path)) for path in paths]
    text = _Text(paths, [data for _, data, _ in files])
    masters = technology.masters
    try:
        found = _native.read_verilog(
            text.data, list(masters), [[plain(pin.name) for pin in master.pins] for master in masters.values()], top
        )
    except _native.ParseError as error:
        line, _, message = str(error).partition(":")
        raise DesignError.at(*text.place(int(line)), message) from None
    if found["faults"]:
        raise DesignError("\n".join(map(text.listing, (*found["faults"], *text.includes()))))
    constants, unconnected = found.pop("constants"), found.pop("open")
    notices = [text.listing(finding) for finding in (*text.includes(), *found.pop("notices"))]
    for count, what in ((constants, "are tied to a constant"), (unconnected, "are not connected")):
        notices += [f"{text.paths[0]}: {count:,} pins of cells and macros {what}"] if count else []
    for column in found.values():
        if isinstance(column, np.ndarray):
            column.setflags(write=False)
    kept = {field.name for field in dataclasses.fields(VerilogNetlist)} & found.keys()
    return VerilogNetlist(
        **{name: found[name] for name in kept}, sources=tuple(source for *_, source in files), notices=tuple(notices)
    )


def plain(name: str) -> str:
    """A pin's name without escapes, its bus bits in square brackets."""
    return name.replace("\\", "").replace("<", "[").replace(">", "]")


class _Text:
    """Several files as one text, with the map from its lines to theirs."""

    def __init__(self, paths: Sequence[str | os.PathLike[str]], contents: Sequence[bytes]) -> None:
        self.paths = [str(path) for path in paths]
        self.data = b"\n".join(content.removeprefix(codecs.BOM_UTF8) for content in contents)
        self._first = list(itertools.accumulate((data.count(b"\n") + 1 for data in contents[:-1]), initial=1))

    def place(self, line: int) -> tuple[str, int]:
        file = bisect.bisect_right(self._first, line) - 1
        return self.paths[file], line - self._first[file] + 1

    def includes(self) -> list[Finding]:
        found = list(_INCLUDE.finditer(self.data)) if b"`include" in self.data else []
        first = [(self.data.count(b"\n", 0, one.start()) + 1, decoded_leniently(one[1])) for one in found[:SHOWN]]
        return [("`include directives, whose files are not read", len(found), first)] if found else []

    def listing(self, finding: Finding) -> str:
        """A finding as text: its first place with the file, further ones with the line in their file."""
        what, count, first = finding
        path = self.place(first[0][0])[0]
        return listing(path, what, count, [(self.place(line)[1], name) for line, name in first])
