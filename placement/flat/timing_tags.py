"""Constraints as arrays of the timing graph: what launches and captures paths, and which exceptions apply.

Axis legend: P pins, G tags, U groups of endpoints, J clock edges (2 × clock + 1 if falling). Times in ps.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placement.netlist.errors import SHOWN, DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.timing_constraints import Clock, Object, PathException
from placement.netlist.timing_library import FALLING_EDGE, RISING_EDGE
from placement.netlist.timing_netlist import TimingNetlist

MOST_CLOCKS = 32
MOST_TAGS = 256
_MOST_CYCLES = 1000  # maximum number of periods of the launching clock within which two clocks are aligned


class TagArrays(NamedTuple):
    """Arguments of `TimingGraph.constrain`."""

    # the keyword arguments; `slew_at`, float32 [P], ps, applies to pins that clocks reach and is NaN elsewhere
    arrays: dict[str, Any]
    clocks: list[str]  # the launching clock edge of each of the G tags, as text
    notices: list[str]  # messages about unusual constraints


def tag_arrays(timing: TimingNetlist, flat: FlatDesign, graph: Any, facts: dict[str, Any]) -> TagArrays:
    """Returns the arrays of a design's constraints.

    Args:
        timing: the netlist with its constraints.
        flat: the design, for names.
        graph: the `TimingGraph`.
        facts: the result of its `facts()`.

    Raises:
        DesignError: there is no clock, or none reaches a register; there are too many clocks or kinds of paths.
    """
    clocks = timing.constraints.clocks
    if not clocks:
        raise DesignError(
            f"{flat.name}: no clock is defined: import the design with --sdc and a file that contains create_clock"
        )
    if len(clocks) > MOST_CLOCKS:
        raise DesignError(f"{flat.name}: {len(clocks)} clocks; at most {MOST_CLOCKS} are analysed")
    finder = _Finder(timing, flat)
    sources = [(pin, number) for number, clock in enumerate(clocks) for pin in finder.pins(clock.sources)]
    is_generated = [clocks[number].is_generated for _, number in sources]
    plain, inverted = graph.clocks([pin for pin, _ in sources], [number for _, number in sources], is_generated)
    register_clocks = np.flatnonzero(facts["is_register_clock"])
    reached = (plain | inverted)[register_clocks] != 0
    if not reached.any():
        if not len(register_clocks):
            raise DesignError(
                f"{flat.name}: the Liberty files contain no register with an arc from its clock, so no path begins"
            )
        names = ", ".join(clock.name for clock in clocks)
        raise DesignError(f"{flat.name}: no clock ({names}) reaches a register: the sources in the SDC file are wrong")
    clock_pins = np.union1d(register_clocks, facts["check_clock"])
    notices = _unreached(timing, flat, clocks, plain | inverted, clock_pins)
    exceptions = timing.constraints.exceptions
    begins = [finder.pins(one.begins) for one in exceptions]
    signature_of = _signatures(begins)
    launches = _register_launches(timing, plain, inverted, register_clocks[reached])
    tags = _Tags(clocks)
    vertices, numbers, times = [], [], []
    for vertex, edge in zip(*launches, strict=True):
        vertices.append(vertex)
        numbers.append(tags.number(edge, signature_of.get(vertex // 2, ())))
        times.append(tags.time(edge))
    number_of = {clock.name: number for number, clock in enumerate(clocks)}
    for delay in timing.constraints.inputs:
        edge = 2 * number_of[delay.clock] + delay.is_falling
        for pin in finder.pins([Object("port", delay.port)]):
            for falls, value in enumerate((delay.rise, delay.fall)):
                if np.isfinite(value):
                    vertices.append(2 * pin + falls)
                    numbers.append(tags.number(edge, signature_of.get(pin, ())))
                    times.append(tags.time(edge) + value)
    ports = [
        (pin, 2 * number_of[delay.clock] + delay.is_falling, delay.rise, delay.fall)
        for delay in timing.constraints.outputs
        for pin in finder.pins([Object("port", delay.port)])
    ]
    ends = _signatures([finder.pins(one.ends) for one in exceptions])
    groups = {signature: number for number, signature in enumerate(dict.fromkeys([(), *ends.values()]))}
    group = np.zeros(len(timing.instance), dtype=np.int32)
    for pin, signature in ends.items():
        group[pin] = groups[signature]
    capture = np.array(
        [
            [[tags.capture(exceptions, tag, to, edge) for edge in range(2 * len(clocks))] for to in groups]
            for tag in tags.all
        ]
    )
    slew_at = np.full(len(timing.instance), np.nan, dtype=np.float32)
    for number, clock in enumerate(clocks):
        slew_at[((plain | inverted) >> np.uint32(number)) & 1 > 0] = clock.transition
    arrays = {
        "launch_vertex": np.array(vertices, dtype=np.int32),
        "launch_tag": np.array(numbers, dtype=np.int32),
        "launch_time": np.array(times, dtype=np.float32),
        "port_pin": np.array([port[0] for port in ports], dtype=np.int32),
        "port_edge": np.array([port[1] for port in ports], dtype=np.int32),
        "port_delay": np.array([port[2:] for port in ports], dtype=np.float32).reshape(-1),
        "capture": capture.astype(np.float32).reshape(-1),
        "group": group,
        "plain": plain,
        "inverted": inverted,
        "edge_time": np.array([time for clock in clocks for time in (clock.rise, clock.fall)], dtype=np.float32),
        "edge_offset": np.repeat([clock.latency - clock.uncertainty for clock in clocks], 2).astype(np.float32),
        "period": np.array([clock.period for clock in clocks], dtype=np.float32),
        "tag_of_edge": np.array([tags.all.get((edge, ()), -1) for edge in range(2 * len(clocks))], dtype=np.int32),
        "slew_at": slew_at,
        "tags": len(tags.all),
        "groups": len(groups),
    }
    return TagArrays(arrays, [tags.text(tag) for tag in tags.all], notices)


class _Finder:
    """Finds the pins of objects."""

    def __init__(self, timing: TimingNetlist, flat: FlatDesign) -> None:
        self._timing, names = timing, flat.netlist.names
        self._port = {names[timing.node[pin]]: int(pin) for pin in np.flatnonzero(timing.instance < 0)}
        self._names = names
        self._instance: dict[str, int] | None = None

    def pins(self, objects: Sequence[Object]) -> list[int]:
        """Returns ports, pins and all pins of cells; clocks have none."""
        found: list[int] = []
        for kind, name in objects:
            if kind == "port":
                found += [self._port[name]] if name in self._port else []
            elif kind == "cell":
                found += self._of_cell(name)
            elif kind == "pin":
                cell, _, pin = name.rpartition("/")
                library = self._timing.library.pins
                found += [one for one in self._of_cell(cell) if library[self._timing.library_pin[one]] == pin]
        return found

    def _of_cell(self, name: str) -> list[int]:
        timing = self._timing
        if self._instance is None:
            nodes = timing.instance_nodes().tolist()
            own = [timing.members.get(number, self._names[node]) for number, node in enumerate(nodes)]
            self._instance = {name: number for number, name in enumerate(own)}
            self._order = np.argsort(timing.instance, kind="stable")
            self._sorted = timing.instance[self._order]
        number = self._instance.get(name, -2)
        begin, end = np.searchsorted(self._sorted, (number, number + 1))
        return self._order[begin:end].tolist() if number >= 0 else []


class _Tags:
    """Kinds of paths by their launch: a clock edge and the exceptions that match their startpoints."""

    def __init__(self, clocks: Sequence[Clock]) -> None:
        self._clocks = clocks
        self.all: dict[tuple[int, tuple[int, ...]], int] = {}

    def number(self, edge: int, signature: tuple[int, ...]) -> int:
        if len(self.all) >= MOST_TAGS and (edge, signature) not in self.all:
            raise DesignError(f"there are more than {MOST_TAGS} combinations of clocks and exceptions")
        return self.all.setdefault((edge, signature), len(self.all))

    def time(self, edge: int) -> float:
        """Returns the time at which an edge launches at registers."""
        clock = self._clocks[edge // 2]
        return (clock.fall if edge % 2 else clock.rise) + clock.latency

    def text(self, tag: tuple[int, tuple[int, ...]]) -> str:
        return f"{self._clocks[tag[0] // 2].name} {'falling' if tag[0] % 2 else 'rising'}"

    def capture(
        self, exceptions: Sequence[PathException], tag: tuple[int, tuple[int, ...]], ends: tuple[int, ...], edge: int
    ) -> float:
        """Returns the time at which data of a tag is captured by a clock edge; infinite for false paths."""
        launch, begins = tag
        from_clock, to_clock = self._clocks[launch // 2], self._clocks[edge // 2]
        cycles = 1
        for number, one in enumerate(exceptions):
            starts = not one.begins or number in begins or Object("clock", from_clock.name) in one.begins
            stops = not one.ends or number in ends or Object("clock", to_clock.name) in one.ends
            if starts and stops:
                if not one.cycles:
                    return float("inf")
                cycles = one.cycles
        launched, captured = (
            clock.fall if number % 2 else clock.rise for clock, number in ((from_clock, launch), (to_clock, edge))
        )
        apart = _first_after(captured - launched, to_clock.period, from_clock.period)
        return launched + apart + (cycles - 1) * to_clock.period + to_clock.latency - to_clock.uncertainty


def _first_after(offset: float, period: float, launching: float) -> float:
    """Returns the least time above 0 from an edge every `launching` ps to one every `period` ps, `offset` later."""
    least = np.inf
    for cycle in range(_MOST_CYCLES):
        apart = (offset - cycle * launching) % period
        apart = apart if 1e-6 * period < apart < (1 - 1e-6) * period else period
        least = min(least, apart)
        cycles = (cycle + 1) * launching / period
        if abs(cycles - round(cycles)) < 1e-6:
            break
    return float(least)


def _signatures(members: Sequence[Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """Returns the indices of the exceptions whose lists contain a pin, for all pins in any list."""
    found: dict[int, tuple[int, ...]] = {}
    for number, pins in enumerate(members):
        for pin in pins:
            if found.get(pin, ())[-1:] != (number,):
                found[pin] = (*found.get(pin, ()), number)
    return found


def _register_launches(
    timing: TimingNetlist, plain: np.ndarray, inverted: np.ndarray, pins: np.ndarray
) -> tuple[list[int], list[int]]:
    """Returns the vertices of registers' clock pins at which a clock edge launches, and the edges."""
    library = timing.library
    launching = np.zeros((2, len(library.pins)), dtype=np.bool_)
    for falls, kind in enumerate((RISING_EDGE, FALLING_EDGE)):
        launching[falls, library.arc_from[library.arc_kind == kind]] = True
    vertices, edges = list[int](), list[int]()
    for number in range(MOST_CLOCKS):
        for falls in range(2):
            used = pins[launching[falls, timing.library_pin[pins]]]
            for mask, edge in ((plain, falls), (inverted, 1 - falls)):
                taken = used[(mask[used] >> np.uint32(number)) & 1 > 0]
                vertices += (2 * taken + falls).tolist()
                edges += [2 * number + edge] * len(taken)
    return vertices, edges


def _unreached(
    timing: TimingNetlist, flat: FlatDesign, clocks: Sequence[Clock], reach: np.ndarray, clock_pins: np.ndarray
) -> list[str]:
    """Returns notices of registers without a clock, and of clocks without a register."""
    notices = []
    lost = clock_pins[reach[clock_pins] == 0]
    if len(lost):
        names = ", ".join(timing.pin_name(int(pin), flat) for pin in lost[:SHOWN].tolist())
        notices.append(f"no clock reaches {len(lost):,} clock pins of registers and macros: {names}")
    for number, clock in enumerate(clocks):
        if clock.sources and not ((reach[clock_pins] >> np.uint32(number)) & 1).any():
            notices.append(f"clock {clock.name!r} reaches no register")
    return notices
