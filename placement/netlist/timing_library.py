"""The timing of cells and macros in Liberty files.

Axis legend: K cells, P pins, A arcs, T tables. Times in ps, capacitances in fF, slews of the whole swing in ps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

COMBINATIONAL, RISING_EDGE, FALLING_EDGE, SETUP_RISING, SETUP_FALLING, TRANSPARENT = range(6)
"""Kinds of arcs: within a cell; from a clock's edge to a register's output; limits of a register's data; from a latch's
data to its output."""
INPUT, OUTPUT = 1, 2
_LISTS = ("cells", "pins")


@dataclasses.dataclass(frozen=True, eq=False)
class TimingLibrary:
    """The cells of one or more Liberty files."""

    # K names; cell k has the pins `pin_start[k]:pin_start[k+1]` and the arcs `arc_start[k]:arc_start[k+1]`
    cells: tuple[str, ...]
    pin_start: np.ndarray  # pin_start, arc_start: int32 [K+1]
    arc_start: np.ndarray
    is_latch: np.ndarray  # int8 [K]
    pins: tuple[str, ...]  # P names, a bus bit as `D[3]`
    direction: np.ndarray  # int8 [P], 1: input, 2: output, 3: both, 0: inside; is_clock: int8 [P]
    is_clock: np.ndarray
    # rise_capacitance, fall_capacitance, max_capacitance: float32 [P], fF; the last is 0 if there is no limit
    rise_capacitance: np.ndarray
    fall_capacitance: np.ndarray
    max_capacitance: np.ndarray
    arc_from: np.ndarray  # arc_from, arc_to: int32 [A], pins; for a limit, the clock and the data
    arc_to: np.ndarray
    arc_kind: np.ndarray  # arc_kind, arc_sense: int8 [A]; the sense is 1 (positive), -1 (negative) or 0 (both)
    arc_sense: np.ndarray
    # int32 [4 A], for each arc the tables of the delay to a rising and a falling output and of the slew of both; for a
    # limit, those of rising and falling data; -1: none
    arc_tables: np.ndarray
    # rows, columns, offset: int32 [T]; table t has its rising row and column indices, then its values row by row, from
    # `offset[t]` in `numbers`. Rows are slews at the source, columns loads; for a limit, both are slews, of clock and
    # data.
    rows: np.ndarray
    columns: np.ndarray
    offset: np.ndarray
    numbers: np.ndarray  # float32 [·]

    @classmethod
    def array_names(cls) -> list[str]:
        """The names of the attributes that are arrays."""
        return [field.name for field in dataclasses.fields(cls) if field.name not in _LISTS]

    def arrays(self) -> dict[str, np.ndarray]:
        """The attributes that are arrays, by name."""
        return {name: getattr(self, name) for name in self.array_names()}

    def pin_index(self, cell: int) -> dict[str, int]:
        """Maps the names of a cell's pins to their numbers."""
        begin, end = int(self.pin_start[cell]), int(self.pin_start[cell + 1])
        return {name: begin + place for place, name in enumerate(self.pins[begin:end])}

    def only(self, cells: np.ndarray) -> TimingLibrary:
        """The library reduced to these cells (int [·], each once), in this order, and the tables that they use."""
        pins, pin_start = _ranges(self.pin_start, cells)
        arcs, arc_start = _ranges(self.arc_start, cells)
        new_pin = np.full(len(self.pins), -1, dtype=np.int32)
        new_pin[pins] = np.arange(len(pins))
        used = self.arc_tables.reshape(-1, 4)[arcs]
        tables, place = np.unique(used, return_inverse=True)
        place = place.reshape(-1).astype(np.int32) - np.int32(tables[0] < 0 if len(tables) else 0)
        tables = tables[tables >= 0]
        sizes = self.rows[tables] + self.columns[tables] + self.rows[tables] * self.columns[tables]
        numbers, starts = _ranges(np.append(self.offset, 0), tables, sizes)
        return TimingLibrary(
            cells=tuple(self.cells[cell] for cell in cells.tolist()),
            pin_start=pin_start,
            arc_start=arc_start,
            is_latch=self.is_latch[cells],
            pins=tuple(self.pins[pin] for pin in pins.tolist()),
            **{name: getattr(self, name)[pins] for name in (
                "direction", "is_clock", "rise_capacitance", "fall_capacitance", "max_capacitance"
            )},
            arc_from=new_pin[self.arc_from[arcs]],
            arc_to=new_pin[self.arc_to[arcs]],
            arc_kind=self.arc_kind[arcs],
            arc_sense=self.arc_sense[arcs],
            arc_tables=place,
            rows=self.rows[tables],
            columns=self.columns[tables],
            offset=starts[:-1],
            numbers=self.numbers[numbers],
        )  # fmt: skip

    def look_up(self, table: int, slew: float, load: float) -> float:
        """A table at one point, bilinear; its outermost values extrapolate it linearly."""
        begin, down, across = int(self.offset[table]), int(self.rows[table]), int(self.columns[table])
        rows = self.numbers[begin : begin + down]
        columns = self.numbers[begin + down : begin + down + across]
        values = self.numbers[begin + down + across : begin + down + across + down * across].reshape(down, across)
        (row, next_row, u), (column, next_column, v) = _between(rows, slew), _between(columns, load)
        low = (1 - v) * values[row, column] + v * values[row, next_column]
        high = (1 - v) * values[next_row, column] + v * values[next_row, next_column]
        return float((1 - u) * low + u * high)


class Buffer(NamedTuple):
    """A buffer: the numbers of its cell, its input and its output pin, and its arc."""

    cell: int
    input: int
    output: int
    arc: int


def buffers(library: TimingLibrary) -> list[Buffer]:
    """The cells with one input, one output and one non-inverting arc."""
    found = []
    for cell in range(len(library.cells)):
        arcs = range(int(library.arc_start[cell]), int(library.arc_start[cell + 1]))
        pins = library.direction[library.pin_start[cell] : library.pin_start[cell + 1]].tolist()
        if len(arcs) == 1 and sorted(pin for pin in pins if pin) == [INPUT, OUTPUT]:
            arc = arcs[0]
            tables = library.arc_tables[4 * arc : 4 * arc + 4]
            if library.arc_kind[arc] == COMBINATIONAL and library.arc_sense[arc] > 0 and (tables >= 0).all():
                found.append(Buffer(cell, int(library.arc_from[arc]), int(library.arc_to[arc]), arc))
    return found


def merged(libraries: Sequence[TimingLibrary]) -> tuple[TimingLibrary, list[str]]:
    """Merges libraries; also returns the names of cells with several definitions, of which the first holds."""
    shifts = {"pins": 0, "arcs": 0, "tables": 0, "numbers": 0}
    parts: dict[str, list[np.ndarray]] = {name: [] for name in TimingLibrary.array_names()}
    starts: dict[str, np.ndarray] = {name: np.zeros(1, dtype=np.int32) for name in ("pin_start", "arc_start")}
    by = {"arc_from": "pins", "arc_to": "pins", "arc_tables": "tables", "offset": "numbers"}
    for library in libraries:
        for name, column in library.arrays().items():
            shift = shifts[by[name]] if name in by else 0
            parts[name].append(np.where(column < 0, column, column + shift) if shift else column)
        for name, of in (("pin_start", "pins"), ("arc_start", "arcs")):
            starts[name] = np.concatenate((starts[name], getattr(library, name)[1:] + shifts[of]))
        shifts["pins"] += len(library.pins)
        shifts["arcs"] += len(library.arc_from)
        shifts["tables"] += len(library.rows)
        shifts["numbers"] += len(library.numbers)
    columns = {name: np.concatenate(values).astype(values[0].dtype) for name, values in parts.items()}
    columns |= {name: start.astype(np.int32) for name, start in starts.items()}
    names = [name for library in libraries for name in library.cells]
    all_of_them = TimingLibrary(
        cells=tuple(names), pins=tuple(name for library in libraries for name in library.pins), **columns
    )
    first = {name: cell for cell, name in reversed(list(enumerate(names)))}
    if len(first) == len(names):
        return all_of_them, []
    twice = sorted({name for cell, name in enumerate(names) if first[name] != cell})
    return all_of_them.only(np.array(sorted(first.values()))), twice


def _ranges(start: np.ndarray, of: np.ndarray, sizes: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The members of the chosen ranges, concatenated (int64 [·]), and where each begins (int32 [len(of) + 1])."""
    count = start[of + 1] - start[of] if sizes is None else sizes
    starts = np.concatenate(([0], np.cumsum(count)))
    members = np.arange(starts[-1]) - np.repeat(starts[:-1], count) + np.repeat(start[of], count)
    return members.astype(np.int64), starts.astype(np.int32)


def _between(values: np.ndarray, at: float) -> tuple[int, int, float]:
    """The two neighbours of `at` among rising values, and its fraction between them; the outermost two extrapolate."""
    if len(values) == 1:
        return 0, 0, 0.0
    low = int(np.clip(np.searchsorted(values, at, side="right") - 1, 0, len(values) - 2))
    return low, low + 1, float((at - values[low]) / (values[low + 1] - values[low]))
