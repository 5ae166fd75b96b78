"""Types of the compiled module that reads large netlist files."""

from typing import Any

DENSITY: float
CELL_SHARE: float

class ParseError(ValueError):
    """A file is cut or malformed; the message is ``line:what``."""

def read_def(data: bytes) -> dict[str, Any]:
    """The sections of a DEF file as columns; see `placement.netlist.formats.def_file`."""

def read_liberty(data: bytes) -> dict[str, Any]:
    """The timing of a Liberty library as columns; see `placement.netlist.formats.liberty`."""

def read_verilog(data: bytes, masters: list[str], pins: list[list[str]], top: str) -> dict[str, Any]:
    """A flattened netlist as columns; see `placement.netlist.formats.verilog`."""

def line_at(data: bytes, offset: int) -> int:
    """The line of a byte, from 1."""

def read_plain_protobuf(data: bytes) -> dict[str, Any] | None:
    """The nodes of a protobuf netlist as columns; None if only the full grammar can read it."""

def empty_share(
    width: float,
    height: float,
    columns: int,
    rows: int,
    macro_width: list[float],
    macro_height: list[float],
    tolerance: float,
) -> float:
    """The share of gcells that macros leave free when packed in order; -1 if one does not fit."""
