"""Reads the timing of cells and macros from Liberty files (NLDM)."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.netlist import _native
from placement.netlist.errors import SHOWN, DesignError, listing
from placement.netlist.files import SourceFile, read_bytes
from placement.netlist.timing_library import TimingLibrary, merged


class LibertyFiles(NamedTuple):
    """The content of Liberty files."""

    library: TimingLibrary  # all cells
    time_unit: float  # ps, from the first file; used for SDC files without `set_units`
    capacitance_unit: float  # fF, like the time unit
    slew_factor: float  # from transition times of the first file, and of SDC files, to those of the whole swing
    sources: tuple[SourceFile, ...]  # the files
    notices: tuple[str, ...]  # omissions and assumptions


def read_liberty(paths: Sequence[str | os.PathLike[str]]) -> LibertyFiles:
    """Reads Liberty files of one corner, plain or gzipped; the first of several definitions of a cell holds.

    Raises:
        DesignError: with file and line; a file is truncated, a table does not fit its indices, or a unit is missing or
            unknown.
    """
    libraries, sources, notices, units = [], [], list[str](), list[tuple[float, float, float]]()
    for path in paths:
        data, source = read_bytes(path)
        try:
            found = _native.read_liberty(data)
        except _native.ParseError as error:
            line, _, message = str(error).partition(":")
            raise DesignError.at(path, int(line), message) from None
        sources.append(source)
        notices += [listing(path, *finding) for finding in found["notices"]]
        units.append((found["time_unit"], found["capacitance_unit"], found["slew_factor"]))
        for column in found.values():
            if isinstance(column, np.ndarray):
                column.setflags(write=False)
        columns = {name: found[name] for name in TimingLibrary.array_names()}
        libraries.append(TimingLibrary(cells=tuple(found["cells"]), pins=tuple(found["pins"]), **columns))
    library, twice = merged(libraries)
    if twice:
        what = "cells that several Liberty files define; the first definition is used"
        notices.append(listing(paths[0], what, len(twice), [(0, name) for name in twice[:SHOWN]]))
    return LibertyFiles(library, *units[0], tuple(sources), tuple(notices))
