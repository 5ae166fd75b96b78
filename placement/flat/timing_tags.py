"""Constraints as arrays of the timing graph: what launches and captures paths, and which exceptions apply.

Axis legend: P pins, G tags, U groups of endpoints, J clock edges (2 × clock + 1 if falling). Times in ps. With
maximum delays, the last clock means no clock: its edge launches at inputs, and captures at outputs, without a delay.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placement.netlist.errors import SHOWN, DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.timing_constraints import Clock, Object, PathException, TimingConstraints
from placement.netlist.timing_library import FALLING_EDGE, RISING_EDGE, SETUP_FALLING, SETUP_RISING
from placement.netlist.timing_netlist import TimingNetlist

MOST_CLOCKS = 32
MOST_TAGS = 256
_MOST_CYCLES = 1000  # maximum number of periods of the launching clock within which two clocks are aligned


class TagArrays(NamedTuple):
    """Arguments of `TimingGraph.constrain`."""

    # the keyword arguments; `slew_at`, float32 [P], ps, applies to pins that clocks reach and to inputs, and is NaN
    # elsewhere; `load_at`, float32 [P], fF, is the load outside of the chip
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
    constraints = timing.constraints
    clocks, exceptions = constraints.clocks, constraints.exceptions
    if not clocks:
        raise DesignError(
            f"{flat.name}: no clock is defined: import the design with --sdc and a file that contains create_clock"
        )
    limits = [one for one in exceptions if one.delay is not None]
    no_clock = 2 * len(clocks)
    if len(clocks) + bool(limits) > MOST_CLOCKS:
        raise DesignError(f"{flat.name}: {len(clocks)} clocks; at most {MOST_CLOCKS - bool(limits)} are analysed")
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
    signature_of = _signatures([finder.pins(one.begins) for one in exceptions])
    tags = _Tags(constraints)
    vertices, numbers, times = [], [], []
    for vertex, edge in zip(*_register_launches(timing, plain, inverted, register_clocks[reached]), strict=True):
        vertices.append(vertex)
        numbers.append(tags.number(edge, signature_of.get(vertex // 2, ())))
        times.append(tags.time(edge))
    number_of = {clock.name: number for number, clock in enumerate(clocks)}
    inputs = [
        (pin, 2 * number_of[delay.clock] + delay.is_falling, (delay.rise, delay.fall))
        for delay in constraints.inputs
        for pin in finder.pins([Object("port", delay.port)])
    ]
    without_delay = np.setdiff1d(
        np.flatnonzero((timing.port == 1) & (plain | inverted == 0)), [pin for pin, *_ in inputs]
    )
    starts = finder.among(without_delay.tolist(), [one.begins for one in limits])
    inputs += [(pin, no_clock, (0.0, 0.0)) for pin in starts]
    for pin, edge, delays in inputs:
        for falls, value in enumerate(delays):
            if np.isfinite(value):
                vertices.append(2 * pin + falls)
                numbers.append(tags.number(edge, signature_of.get(pin, ()), is_input=True))
                times.append(tags.time(edge) + value)
    ports = [
        (pin, 2 * number_of[delay.clock] + delay.is_falling, delay.rise, delay.fall)
        for delay in constraints.outputs
        for pin in finder.pins([Object("port", delay.port)])
    ]
    without_delay = np.setdiff1d(np.flatnonzero(timing.port == 2), [port[0] for port in ports])
    ports += [(pin, no_clock, 0.0, 0.0) for pin in finder.among(without_delay.tolist(), [one.ends for one in limits])]
    ends = {pin: (False, found) for pin, found in _signatures([finder.pins(one.ends) for one in exceptions]).items()}
    ends |= {pin: (bool(limits), ends.get(pin, (False, ()))[1]) for pin, *_ in ports}
    groups = {key: number for number, key in enumerate(dict.fromkeys([(False, ()), *ends.values()]))}
    group = np.zeros(len(timing.instance), dtype=np.int32)
    for pin, key in ends.items():
        group[pin] = groups[key]
    edges = no_clock + 2 * bool(limits)
    tag_of, kept, capture = _merged(tags, list(groups), edges)
    launched = [place for place, number in enumerate(numbers) if tag_of[number] >= 0]
    slew_at, load_at = _at_pins(timing, finder, plain | inverted)
    offset = [clock.latency - clock.uncertainty for clock in clocks] + [0.0] * bool(limits)
    arrays = {
        "launch_vertex": np.array(vertices, dtype=np.int32)[launched],
        "launch_tag": tag_of[np.array(numbers, dtype=np.int32)[launched]],
        "launch_time": np.array(times, dtype=np.float32)[launched],
        "port_pin": np.array([port[0] for port in ports], dtype=np.int32),
        "port_edge": np.array([port[1] for port in ports], dtype=np.int32),
        "port_delay": np.array([port[2:] for port in ports], dtype=np.float32).reshape(-1),
        "capture": capture.reshape(-1),
        "group": group,
        "plain": plain,
        "inverted": inverted,
        "edge_time": np.array([tags.edge(edge) for edge in range(edges)], dtype=np.float32),
        "edge_offset": np.repeat(offset, 2).astype(np.float32),
        "period": np.array([clock.period for clock in clocks] + [1.0] * bool(limits), dtype=np.float32),
        "tag_of_edge": tag_of[[tags.all.get((edge, (), False), -1) for edge in range(edges)]],
        "slew_at": slew_at,
        "load_at": load_at,
        "blocked": np.isin(np.arange(len(timing.instance)), finder.pins(constraints.blocked)).astype(np.int8),
        "tags": len(kept),
        "groups": len(groups),
    }
    return TagArrays(arrays, [tags.text(tag) for tag in kept], notices)


class _Finder:
    """Finds the pins of objects."""

    def __init__(self, timing: TimingNetlist, flat: FlatDesign) -> None:
        self._timing, names = timing, flat.netlist.names
        self._port = {names[timing.node[pin]]: int(pin) for pin in np.flatnonzero(timing.instance < 0)}
        self._names = names
        self._instance: dict[str, int] | None = None

    def pins(self, objects: Sequence[Object]) -> list[int]:
        """Returns ports, pins, all pins of cells, and the data and clock pins of registers; clocks have none."""
        found: list[int] = []
        for kind, name in objects:
            if kind == "registers":
                found += self._of_registers()
            elif kind == "port":
                found += [self._port[name]] if name in self._port else []
            elif kind == "cell":
                found += self._of_cell(name)
            elif kind == "pin":
                cell, _, pin = name.rpartition("/")
                library = self._timing.library.pins
                found += [one for one in self._of_cell(cell) if library[self._timing.library_pin[one]] == pin]
        return found

    def among(self, pins: Sequence[int], lists: Sequence[Sequence[Object]]) -> list[int]:
        """Returns those of the pins that are in one of the lists of objects, or all if one of the lists is empty."""
        if any(not one for one in lists):
            return list(pins)
        taken = {pin for one in lists for pin in self.pins(one)}
        return [pin for pin in pins if pin in taken]

    def _of_registers(self) -> list[int]:
        library = self._timing.library
        is_used = np.zeros(len(library.pins) + 1, dtype=np.bool_)  # the last one: pins that are not in the library
        is_used[library.arc_from[np.isin(library.arc_kind, (RISING_EDGE, FALLING_EDGE))]] = True
        is_used[library.arc_to[np.isin(library.arc_kind, (SETUP_RISING, SETUP_FALLING))]] = True
        return np.flatnonzero(is_used[self._timing.library_pin]).tolist()

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


_Tag = tuple[int, tuple[int, ...], bool]
"""A launching edge, the exceptions that match the startpoints, and whether these are inputs."""


class _Tags:
    """Kinds of paths by their launch: a clock edge and the exceptions that match their startpoints."""

    def __init__(self, constraints: TimingConstraints) -> None:
        self._clocks = constraints.clocks
        self._rules = [_Rule(one) for one in constraints.exceptions]
        self._general = [number for number, rule in enumerate(self._rules) if rule.is_general]
        self._tells_inputs = any(one.ignores_latency for one in constraints.exceptions)
        self._between = {(one.launch, one.capture): one.value for one in constraints.uncertainties}
        self.all: dict[_Tag, int] = {}

    def number(self, edge: int, signature: tuple[int, ...], *, is_input: bool = False) -> int:
        return self.all.setdefault((edge, signature, is_input and self._tells_inputs), len(self.all))

    def clock(self, edge: int) -> Clock | None:
        return self._clocks[edge // 2] if edge < 2 * len(self._clocks) else None

    def edge(self, edge: int) -> float:
        """Returns the time of an edge in the clock's first period; 0 without a clock."""
        clock = self.clock(edge)
        return 0.0 if clock is None else clock.fall if edge % 2 else clock.rise

    def time(self, edge: int) -> float:
        """Returns the time at which an edge launches at registers."""
        clock = self.clock(edge)
        return self.edge(edge) + (clock.latency if clock else 0.0)

    def text(self, tag: _Tag) -> str:
        clock = self.clock(tag[0])
        return f"{clock.name} {'falling' if tag[0] % 2 else 'rising'}" if clock else "no clock"

    def capture(self, tag: _Tag, group: tuple[bool, tuple[int, ...]], edge: int) -> float:
        """Returns the time at which data of a tag is captured by a clock edge; infinite for false paths.

        Args:
            tag: the tag.
            group: whether the endpoints are ports (only with maximum delays), and the exceptions that match them.
            edge: the capturing edge.
        """
        launch, begins, is_input = tag
        is_port, ends = group
        from_clock, to_clock = self.clock(launch), self.clock(edge)
        matching = [
            rule
            for number in {*begins, *self._general}
            if (rule := self._rules[number]).is_from(number in begins, from_clock)
            and rule.is_to(number in ends, to_clock)
        ]
        found = max(matching, key=lambda rule: rule.priority).exception if matching else PathException(1)
        launched, offset = self.edge(launch), 0.0
        if to_clock:
            pair = (from_clock.name if from_clock else "", to_clock.name)
            offset = to_clock.latency - self._between.get(pair, to_clock.uncertainty)
        if found.delay is not None:
            if found.ignores_latency:
                return self.edge(launch) + found.delay if is_input else self.time(launch) + found.delay
            return launched + found.delay + (0.0 if is_port else offset)
        if not found.cycles or from_clock is None or to_clock is None:
            return float("inf")
        apart = _first_after(self.edge(edge) - launched, to_clock.period, from_clock.period)
        return launched + apart + (found.cycles - 1) * to_clock.period + offset


class _Rule:
    """An exception with its clocks and its priority, which is that of OpenSTA.

    False paths precede maximum delays, and these precede multicycle paths; then the most specific ends count (pins
    before clocks, starts before ends), and then the tighter limit.
    """

    def __init__(self, exception: PathException) -> None:
        self.exception = exception
        names = [{name for kind, name in side if kind == "clock"} for side in (exception.begins, exception.ends)]
        self._from, self._to = names
        pins = [any(kind != "clock" for kind, _ in side) for side in (exception.begins, exception.ends)]
        kind = 1 if exception.delay is not None else 0 if exception.cycles else 2
        limit = exception.cycles if exception.delay is None else exception.delay
        self.is_general = not exception.begins or bool(self._from)  # whether it may match without its pins
        self.priority = (kind, *pins, *map(bool, names), -limit)

    def is_from(self, is_named: bool, clock: Clock | None) -> bool:
        return is_named or not self.exception.begins or (clock is not None and clock.name in self._from)

    def is_to(self, is_named: bool, clock: Clock | None) -> bool:
        return is_named or not self.exception.ends or (clock is not None and clock.name in self._to)


def _merged(
    tags: _Tags, groups: Sequence[tuple[bool, tuple[int, ...]]], edges: int
) -> tuple[np.ndarray, list[_Tag], np.ndarray]:
    """Joins tags of one edge with the same capture times, and drops those that nothing captures.

    Returns:
        The new number of each tag, and of no tag, int32 [G + 1], -1 if it is dropped; for each new number, one of the
        joined tags; and the capture times of these, float32 [G, U, J].

    Raises:
        DesignError: too many tags remain.
    """
    found: dict[tuple[int, bytes], int] = {}
    kept, rows, tag_of = list[_Tag](), list[np.ndarray](), np.full(len(tags.all) + 1, -1, dtype=np.int32)
    for number, tag in enumerate(tags.all):
        row = np.array([[tags.capture(tag, to, edge) for edge in range(edges)] for to in groups], dtype=np.float32)
        if not np.isfinite(row).any():
            continue
        tag_of[number] = found.setdefault((tag[0], row.tobytes()), len(found))
        if len(found) > len(kept):
            kept.append(tag)
            rows.append(row)
    if len(kept) > MOST_TAGS:
        raise DesignError(f"there are more than {MOST_TAGS} combinations of clocks and exceptions")
    return tag_of, kept, np.array(rows, dtype=np.float32).reshape(len(kept), len(groups), edges)


def _at_pins(timing: TimingNetlist, finder: _Finder, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slews and loads that the constraints set at pins, float32 [P] each; `reach` has masks of clocks, [P]."""
    constraints = timing.constraints
    slew_at = np.full(len(timing.instance), np.nan, dtype=np.float32)
    load_at = np.zeros(len(timing.instance), dtype=np.float32)
    for transition in constraints.transitions:
        slew_at[finder.pins([Object("port", transition.port)])] = transition.slew
    for load in constraints.loads:
        load_at[finder.pins([Object("port", load.port)])] = load.load
    for number, clock in enumerate(constraints.clocks):
        slew_at[(reach >> np.uint32(number)) & 1 > 0] = clock.transition
    return slew_at, load_at


@functools.cache
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
