"""Reads SDC files: clocks, delays of ports, false and multicycle paths.

A command that is not understood, or that has no effect on setup checks with ideal clocks, is named in a notice with its
line; nothing is dropped silently.
"""

import dataclasses
import fnmatch
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from placement.netlist.errors import SHOWN, DesignError, Finding, listing
from placement.netlist.files import SourceFile, decoded, read_bytes
from placement.netlist.formats.tcl import Tcl, Value, as_text, flat
from placement.netlist.timing_constraints import Clock, Object, PathException, PortDelay, TimingConstraints

_TIME_UNITS = {"fs": 1e-3, "ps": 1.0, "ns": 1e3, "us": 1e6}
_NO_EFFECT = (
    "set_max_transition", "set_max_fanout", "set_max_capacitance", "set_max_area", "set_min_delay",
    "set_operating_conditions", "set_wire_load_model", "set_wire_load_mode", "set_propagated_clock", "group_path",
    "set_dont_touch", "set_dont_use", "set_ideal_network", "set_clock_gating_check", "set_timing_derate",
    "set_wire_load_selection_group", "set_critical_range", "set_fanout_load", "set_load", "set_driving_cell",
)  # fmt: skip
_FLAGS = (
    "-setup", "-hold", "-rise", "-fall", "-max", "-min", "-early", "-late", "-source", "-add", "-add_delay", "-start",
    "-end", "-clock_fall", "-asynchronous", "-physically_exclusive", "-logically_exclusive", "-exclusive", "-quiet",
    "-no_clocks", "-clock_pins", "-data_pins", "-network_latency_included", "-source_latency_included",
    "-edge_triggered", "-level_sensitive", "-hierarchical", "-hier", "-invert", "-combinational",
)  # fmt: skip
_VALUES = (
    "-name", "-period", "-waveform", "-clock", "-from", "-to", "-through", "-rise_from", "-fall_from", "-rise_to",
    "-fall_to", "-rise_through", "-fall_through", "-group", "-time", "-capacitance", "-resistance", "-voltage",
    "-current", "-power", "-filter", "-of_objects", "-comment", "-distance", "-reference_pin", "-regexp", "-exact",
    "-divide_by", "-multiply_by", "-master_clock",
)  # fmt: skip
_GENERATED = "create_generated_clock"


class DesignObjects(NamedTuple):
    """The objects that names in an SDC file refer to."""

    ports: Mapping[str, int]  # name → 1: input, 2: output, 3: both
    cells: Sequence[str]  # unescaped names of cells and macros
    pins_of: Callable[[str], Sequence[str]]  # returns the names of a cell's pins


def read_sdc(
    path: str | os.PathLike[str],
    objects: DesignObjects,
    *,
    time_unit: float,
) -> tuple[TimingConstraints, SourceFile]:
    """Reads the constraints in an SDC file, plain or gzipped, and returns their source, too.

    Args:
        path: the file.
        objects: the objects of the design.
        time_unit: ps, the unit of the file's times if it has no `set_units -time`.

    Raises:
        DesignError: with file and line; the text is no Tcl, a number is missing or out of range, or a clock is unknown.
    """
    reader = _Reader(path, objects, time_unit)
    data, source = read_bytes(path)
    reader.tcl.run(decoded(data, path))
    return reader.constraints(), source


class _Arguments(NamedTuple):
    flags: frozenset[str]
    values: dict[str, list[Value]]
    rest: list[Value]
    unknown: list[str]

    def one(self, name: str) -> Value | None:
        return self.values[name][-1] if name in self.values else None


def _parsed(command: str, arguments: Sequence[Value]) -> _Arguments:
    flags, values, rest, unknown = set(), dict[str, list[Value]](), list[Value](), list[str]()
    queue = list(arguments)
    while queue:
        word = queue.pop(0)
        if not isinstance(word, str) or not re.fullmatch(r"-[A-Za-z_]+", word):
            rest.append(word)
        elif queue and (word in _VALUES or (word == "-source" and command == _GENERATED)):
            values.setdefault(word, []).append(queue.pop(0))
        elif word in _FLAGS:
            flags.add(word)
        else:
            unknown.append(word)
    return _Arguments(frozenset(flags), values, rest, unknown)


class _Reader:
    def __init__(self, path: object, objects: DesignObjects, time_unit: float) -> None:
        self.path, self.objects, self.unit = path, objects, time_unit
        self.ports, self.cells = _Names(list(objects.ports)), _Names(objects.cells)
        self.clocks: dict[str, Clock] = {}
        self.latency: dict[tuple[str, bool], float] = {}
        self.delays: dict[bool, list[PortDelay]] = {True: [], False: []}
        self.exceptions: list[PathException] = []
        self.findings: dict[str, list[tuple[int, str]]] = {}
        commands: dict[str, Callable[[_Arguments, int], Value]] = {
            "create_clock": self.create_clock,
            _GENERATED: self.create_generated_clock,
            "set_clock_latency": self.set_clock_latency,
            "set_clock_uncertainty": self.set_clock_uncertainty,
            "set_clock_transition": self.set_clock_transition,
            "set_input_delay": lambda given, line: self.set_delay(given, line, is_input=True),
            "set_output_delay": lambda given, line: self.set_delay(given, line, is_input=False),
            "set_false_path": lambda given, line: self.set_exception(given, line, cycles=0),
            "set_multicycle_path": self.set_multicycle_path,
            "set_clock_groups": self.set_clock_groups,
            "set_units": self.set_units,
            "get_ports": lambda given, line: self.get(given, line, "port"),
            "get_pins": lambda given, line: self.get(given, line, "pin"),
            "get_cells": lambda given, line: self.get(given, line, "cell"),
            "get_clocks": lambda given, line: self.get(given, line, "clock"),
            "all_inputs": self.all_inputs,
            "all_outputs": lambda given, line: self._ports(2),
            "all_clocks": lambda given, line: [Object("clock", name) for name in self.clocks],
            "remove_from_collection": lambda given, line: [
                one for one in flat(given.rest[:1]) if one not in flat(given.rest[1:])
            ],
            "add_to_collection": lambda given, line: flat(given.rest),
            "current_design": lambda given, line: "",
        }
        self.tcl = Tcl(path, {name: self._run(name, command) for name, command in commands.items()})

    def _run(self, name: str, command: Callable[[_Arguments, int], Value]) -> Callable[[Sequence[Value], int], Value]:
        def run(arguments: Sequence[Value], line: int) -> Value:
            given = _parsed(name, arguments)
            for option in given.unknown:
                self.note("unsupported options", line, f"{option} of {name}")
            return command(given, line)

        return run

    def note(self, what: str, line: int, name: str) -> None:
        self.findings.setdefault(what, []).append((line, name))

    def error(self, line: int, message: str) -> DesignError:
        return DesignError.at(self.path, line, message)

    def constraints(self) -> TimingConstraints:
        for line, name in self.tcl.unknown:
            what = "commands without effect on the estimate" if name in _NO_EFFECT else "unsupported commands"
            self.note(what, line, name)
        clocks = []
        for clock in self.clocks.values():
            latency = sum(self.latency.get((clock.name, of_source), 0.0) for of_source in (False, True))
            clocks.append(dataclasses.replace(clock, latency=latency))
        notices = [listing(self.path, *_summary(what, found)) for what, found in self.findings.items()]
        return TimingConstraints(
            clocks=tuple(clocks),
            inputs=tuple(self.delays[True]),
            outputs=tuple(self.delays[False]),
            exceptions=tuple(self.exceptions),
            notices=tuple(notices),
        )

    def number(self, value: Value, line: int, what: str) -> float:
        try:
            number = float(as_text(value))
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise self.error(line, f"{what}: expected a number, found {as_text(value)[:40]!r}")
        return number

    def first_number(self, given: _Arguments, line: int, what: str) -> float:
        if not given.rest:
            raise self.error(line, f"{what}: expected a number")
        return self.number(given.rest[0], line, what)

    # Clocks

    def create_clock(self, given: _Arguments, line: int) -> Value:
        sources = self.named(flat(given.rest), line, ("port", "pin"))
        period = self.number(given.one("-period") or "", line, "-period of create_clock") * self.unit
        name = as_text(given.one("-name") or (sources[0].name if sources else ""))
        if not name:
            raise self.error(line, "create_clock: expected -name or a source")
        if period <= 0:
            raise self.error(line, f"clock {name!r}: a period of {period / self.unit:g} must be above 0")
        edges = [
            self.number(word, line, "-waveform") * self.unit for word in as_text(given.one("-waveform") or "").split()
        ]
        edges = edges or [0.0, period / 2]
        if len(edges) != 2 or not 0 <= edges[0] < edges[1] <= edges[0] + period:
            raise self.error(line, f"clock {name!r}: -waveform must be two rising times within a period")
        self.clocks[name] = Clock(
            name, period, edges[0], edges[1] % period if edges[1] > period else edges[1], tuple(sources)
        )
        return [Object("clock", name)]

    def create_generated_clock(self, given: _Arguments, line: int) -> Value:
        if given.unknown:
            self.note("generated clocks with an unsupported option, which are ignored", line, given.unknown[0])
            return ""
        sources = self.named(flat(given.rest), line, ("port", "pin"))
        name = as_text(given.one("-name") or (sources[0].name if sources else ""))
        factors = {option: self._factor(given, option, line) for option in ("-divide_by", "-multiply_by")}
        if min(factors.values()) > 1:
            raise self.error(line, f"clock {name!r}: give either -divide_by or -multiply_by")
        master = self._master(given, line)
        if not sources:
            return ""  # A pattern without a match has been noted.
        if master is None:
            self.note("generated clocks without a master clock, which are ignored; set -master_clock", line, name)
            return ""
        divisor, ratio = factors["-divide_by"], factors["-divide_by"] / factors["-multiply_by"]
        rise, fall, period = master.rise * ratio, master.fall * ratio, master.period * ratio
        if fall < rise:
            fall += period
        if divisor > 1 and divisor & (divisor - 1) == 0:  # It toggles with the master's rising edge.
            rise, fall = master.rise, master.rise + divisor // 2 * master.period
        if "-invert" in given.flags:
            rise, fall = fall, rise
        self.clocks[name] = Clock(name, period, rise % period, fall % period, tuple(sources), is_generated=True)
        return [Object("clock", name)]

    def _factor(self, given: _Arguments, option: str, line: int) -> int:
        factor = self.number(given.one(option) or "1", line, f"{option} of {_GENERATED}")
        if factor != int(factor) or factor < 1:
            raise self.error(line, f"{_GENERATED}: {option} {factor:g} must be a whole number of at least 1")
        return int(factor)

    def _master(self, given: _Arguments, line: int) -> Clock | None:
        """The master of a generated clock: the named one, or that of its -source, or the only clock."""
        if "-master_clock" in given.values:
            return next(iter(self.clocks_of(given.values["-master_clock"], line)), None)
        pins = self.named(flat(given.values.get("-source", [])), line, ("port", "pin"))
        of_source = [clock for clock in self.clocks.values() if set(clock.sources) & set(pins)]
        clocks = of_source or [clock for clock in self.clocks.values() if clock.sources and not clock.is_generated]
        return clocks[0] if len(clocks) == 1 and pins else None

    def set_clock_latency(self, given: _Arguments, line: int) -> Value:
        if "-min" in given.flags or "-early" in given.flags:
            return ""
        value = self.first_number(given, line, "set_clock_latency") * self.unit
        for clock in self.clocks_of(given.rest[1:], line):
            self.latency[clock.name, "-source" in given.flags] = value
        return ""

    def set_clock_uncertainty(self, given: _Arguments, line: int) -> Value:
        if "-hold" in given.flags and "-setup" not in given.flags:
            return ""
        if given.values:
            self.note("unsupported options", line, f"{next(iter(given.values))} of set_clock_uncertainty")
            return ""
        value = self.first_number(given, line, "set_clock_uncertainty") * self.unit
        for clock in self.clocks_of(given.rest[1:], line):
            self.clocks[clock.name] = dataclasses.replace(clock, uncertainty=value)
        return ""

    def set_clock_transition(self, given: _Arguments, line: int) -> Value:
        value = self.first_number(given, line, "set_clock_transition") * self.unit
        for clock in self.clocks_of(given.rest[1:], line):
            self.clocks[clock.name] = dataclasses.replace(clock, transition=value)
        return ""

    def clocks_of(self, values: Sequence[Value], line: int) -> list[Clock]:
        return [self.clocks[one.name] for one in self.named(flat(values), line, ("clock",))]

    # Ports and paths

    def set_delay(self, given: _Arguments, line: int, *, is_input: bool) -> Value:
        command = "set_input_delay" if is_input else "set_output_delay"
        if "-min" in given.flags and "-max" not in given.flags:
            return ""
        value = self.first_number(given, line, command) * self.unit
        clocks = self.named(flat([given.one("-clock") or ""]), line, ("clock",))
        if not clocks:
            raise self.error(line, f"{command}: expected -clock and the name of a clock")
        edges = {"-rise", "-fall"} & given.flags or {"-rise", "-fall"}
        falls, delays = "-clock_fall" in given.flags, self.delays[is_input]
        allowed = (1, 3) if is_input else (2, 3)
        for port in self.named(flat(given.rest[1:]), line, ("port",)):
            if self.objects.ports[port.name] not in allowed:
                self.note(f"ports of {command} in the wrong direction", line, port.name)
                continue
            key = (port.name, clocks[0].name, falls)
            known = next((one for one in delays if (one.port, one.clock, one.is_falling) == key), None)
            if "-add_delay" not in given.flags:
                delays[:] = [one for one in delays if one.port != port.name]
            elif known is not None:
                delays.remove(known)
            rise = value if "-rise" in edges else (known.rise if known else -math.inf)
            fall = value if "-fall" in edges else (known.fall if known else -math.inf)
            delays.append(PortDelay(*key, rise, fall))
        return ""

    def set_multicycle_path(self, given: _Arguments, line: int) -> Value:
        cycles = self.first_number(given, line, "set_multicycle_path")
        if cycles != int(cycles) or cycles < 1:
            raise self.error(line, f"set_multicycle_path: {cycles:g} must be a whole number of at least 1")
        if "-start" in given.flags:
            self.note("unsupported options", line, "-start of set_multicycle_path")
        return self.set_exception(given, line, cycles=int(cycles))

    def set_exception(self, given: _Arguments, line: int, *, cycles: int) -> Value:
        if "-hold" in given.flags and "-setup" not in given.flags:
            return ""
        through = [name for name in given.values if name not in ("-from", "-to", "-comment")]
        if through:
            command = "set_multicycle_path" if cycles else "set_false_path"
            self.note("unsupported options, whose exceptions are ignored", line, f"{through[0]} of {command}")
            return ""
        ends = []
        for side in ("-from", "-to"):
            found = self.named(flat(given.values.get(side, [])), line, ("clock", "port", "pin", "cell"))
            if side in given.values and not found:
                return ""  # A pattern without a match has been noted.
            ends.append(tuple(found))
        self.exceptions.append(PathException(cycles, *ends))
        return ""

    def set_clock_groups(self, given: _Arguments, line: int) -> Value:
        groups = [tuple(self.named(flat([group]), line, ("clock",))) for group in given.values.get("-group", [])]
        if len(groups) == 1:
            groups.append(
                tuple(Object("clock", name) for name in self.clocks if Object("clock", name) not in groups[0])
            )
        for one in groups:
            self.exceptions += [PathException(0, one, other) for other in groups if other is not one and one and other]
        return ""

    def set_units(self, given: _Arguments, line: int) -> Value:
        time = given.one("-time")
        if time is not None:
            found = re.fullmatch(r"([\d.]*)(fs|ps|ns|us)", as_text(time))
            if found is None:
                raise self.error(line, f"set_units: -time {as_text(time)!r} must be a unit such as ns or 1ps")
            self.unit = float(found[1] or 1) * _TIME_UNITS[found[2]]
        return ""

    # Objects

    def all_inputs(self, given: _Arguments, line: int) -> Value:
        ports = self._ports(1)
        if "-no_clocks" in given.flags:
            sources = {one for clock in self.clocks.values() for one in clock.sources}
            ports = [port for port in ports if port not in sources]
        return ports

    def _ports(self, direction: int) -> list[Object]:
        return [Object("port", name) for name, found in self.objects.ports.items() if found in (direction, 3)]

    def get(self, given: _Arguments, line: int, kind: Any) -> Value:
        for option in given.values:
            self.note("unsupported options", line, f"{option} of get_{kind}s")
        return self.named(flat(given.rest), line, (kind,))

    def named(self, values: Sequence[Value], line: int, kinds: Sequence[Any]) -> list[Object]:
        """The objects of these kinds that the values are or name; a name without an object is noted."""
        found: dict[Object, None] = {}
        for value in values:
            if isinstance(value, Object):
                if value.kind in kinds:
                    found[value] = None
                else:
                    self.note(f"objects that are not {' or '.join(kinds)}", line, value.name)
                continue
            for pattern in str(value).split():
                matched = next((match for kind in kinds if (match := self._matching(kind, pattern))), [])
                if not matched:
                    self.note("names without a match", line, pattern)
                found |= dict.fromkeys(matched)
        return list(found)

    def _matching(self, kind: Any, pattern: str) -> list[Object]:
        pattern = pattern.replace("\\", "")
        if kind == "pin":
            cell, _, pin = pattern.rpartition("/")
            owners = self.cells.matching(cell) if cell else []
            pins_of = self.objects.pins_of
            return [Object("pin", f"{one}/{name}") for one in owners for name in _Names(pins_of(one)).matching(pin)]
        names = {"port": self.ports, "cell": self.cells}.get(kind) or _Names(list(self.clocks))
        return [Object(kind, name) for name in names.matching(pattern)]


class _Names:
    """Names that patterns are matched against."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._found: dict[str, list[str]] = {}
        for name in names:
            self._found.setdefault(name, []).append(name)
            if name.endswith("]"):
                self._found.setdefault(name.rpartition("[")[0], []).append(name)

    def matching(self, pattern: str) -> list[str]:
        """The names that match a pattern with `*` and `?`, or that are bits of a bus of that name."""
        if "*" not in pattern and "?" not in pattern:
            return self._found.get(pattern, [])
        # Brackets are bits of buses, not character sets.
        expression = re.compile(fnmatch.translate(pattern.replace("[", "[[]")))
        return [name for name in self._names if expression.match(name)]


def _summary(what: str, found: list[tuple[int, str]]) -> Finding:
    """A finding with each name once, at its first line."""
    first: dict[str, int] = {}
    for line, name in found:
        first.setdefault(name, line)
    return what, len(found), [(line, name) for name, line in list(first.items())[:SHOWN]]
