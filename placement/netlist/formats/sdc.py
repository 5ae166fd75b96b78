"""Reads SDC files: clocks; delays, slews and loads of ports; path exceptions; derating.

A command that is not understood, or that has no effect on setup checks with ideal clocks, is named in a notice with its
line; nothing is dropped silently.
"""

import dataclasses
import functools
import itertools
import math
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from placement.netlist.errors import SHOWN, DesignError, Finding, listing
from placement.netlist.files import SourceFile, decoded_leniently, read_bytes
from placement.netlist.formats.sdc_objects import REGISTERS, DesignObjects, Finder
from placement.netlist.formats.tcl import Jump, Tcl, items
from placement.netlist.formats.tcl_commands import Language
from placement.netlist.formats.tcl_expressions import Value, as_text
from placement.netlist.timing_constraints import (
    Clock,
    Derating,
    Object,
    PathException,
    PortDelay,
    PortLoad,
    PortTransition,
    TimingConstraints,
    Uncertainty,
)

_TIME_UNITS = {"fs": 1e-3, "ps": 1.0, "ns": 1e3, "us": 1e6}
_NO_EFFECT = (
    "set_max_transition", "set_max_fanout", "set_max_capacitance", "set_max_area", "set_min_delay",
    "set_operating_conditions", "set_wire_load_model", "set_wire_load_mode", "set_propagated_clock", "group_path",
    "set_dont_touch", "set_dont_use", "set_ideal_network", "set_clock_gating_check",
    "set_wire_load_selection_group", "set_critical_range", "set_fanout_load", "set_driving_cell",
    "get_lib_cells", "get_lib_pins", "get_libs", "set_max_leakage_power", "set_max_dynamic_power", "set_fix_hold",
    "set_min_capacitance", "unset_propagated_clock",
)  # fmt: skip
_FLAGS = (
    "-setup", "-hold", "-rise", "-fall", "-max", "-min", "-early", "-late", "-source", "-add", "-add_delay", "-start",
    "-end", "-clock_fall", "-asynchronous", "-physically_exclusive", "-logically_exclusive", "-exclusive", "-quiet",
    "-no_clocks", "-clock_pins", "-data_pins",
    "-hierarchical", "-hier", "-invert", "-combinational", "-ignore_clock_latency", "-allow_paths", "-cells",
    "-pin_load", "-wire_load", "-data", "-cell_delay", "-net_delay", "-cell_check", "-regexp", "-nocase",
)  # fmt: skip
_VALUES = (
    "-name", "-period", "-waveform", "-clock", "-from", "-to", "-through", "-rise_from", "-fall_from", "-rise_to",
    "-fall_to", "-rise_through", "-fall_through", "-group", "-time", "-capacitance", "-resistance", "-voltage",
    "-current", "-power", "-filter", "-of_objects", "-comment", "-distance", "-reference_pin",
    "-divide_by", "-multiply_by", "-master_clock",
)  # fmt: skip
_GENERATED = "create_generated_clock"


def read_sdc(
    path: str | os.PathLike[str],
    objects: DesignObjects,
    *,
    time_unit: float,
    slew_factor: float = 1.0,
    capacitance_unit: float = 1.0,
) -> tuple[TimingConstraints, dict[str, SourceFile]]:
    """Reads the constraints in an SDC file, plain or gzipped.

    Returns them and the files read by their absolute paths: the file itself, then those that it sources.

    Args:
        path: the file, which may `source` further ones and read environment variables.
        objects: the objects of the design.
        time_unit: ps, the unit of the file's times if it has no `set_units -time`.
        slew_factor: the factor from the file's transition times to those of the whole swing.
        capacitance_unit: fF, the unit of the file's loads if it has no `set_units -capacitance`.

    Raises:
        DesignError: with file and line; the text is not valid Tcl, a variable is not set, or a number is missing or out
            of range.
    """
    reader = _Reader(path, objects, time_unit, slew_factor, capacitance_unit)
    data, source = read_bytes(path)
    try:
        reader.tcl.run(decoded_leniently(data))
    except Jump as jump:
        if jump.kind != "return":  # `return` ends the file.
            raise DesignError(f"{path}: {jump.kind} outside of a loop") from None
    return reader.constraints(), {os.path.abspath(path): source} | reader.language.sources


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
    def __init__(
        self, path: object, objects: DesignObjects, time_unit: float, slew_factor: float, capacitance_unit: float
    ) -> None:
        self.path, self.unit, self.slew_factor, self.capacitance_unit = path, time_unit, slew_factor, capacitance_unit
        self.clocks: dict[str, Clock] = {}
        self.finder = Finder(objects, self.clocks, self.note)
        self.latency: dict[tuple[str, bool], float] = {}
        self.delays: dict[bool, dict[str, dict[tuple[str, bool], PortDelay]]] = {True: {}, False: {}}
        self.transitions: dict[str, PortTransition] = {}
        self.loads: dict[str, PortLoad] = {}
        self.blocked: dict[Object, None] = {}
        self.between: dict[tuple[str, str], Uncertainty] = {}
        self.derating = Derating()
        self.exceptions: dict[tuple[Any, ...], PathException] = {}
        self.findings: dict[str, list[tuple[int, str]]] = {}
        commands: dict[str, Callable[[_Arguments, int], Value]] = {
            "create_clock": self.create_clock,
            _GENERATED: self.create_generated_clock,
            "set_clock_latency": self.set_clock_latency,
            "set_clock_uncertainty": self.set_clock_uncertainty,
            "set_clock_transition": self.set_clock_transition,
            "set_input_delay": lambda given, line: self.set_delay(given, line, is_input=True),
            "set_output_delay": lambda given, line: self.set_delay(given, line, is_input=False),
            "set_input_transition": self.set_input_transition,
            "set_load": self.set_load,
            "set_timing_derate": self.set_timing_derate,
            "set_false_path": lambda given, line: self.set_exception(given, line, PathException(0)),
            "set_multicycle_path": self.set_multicycle_path,
            "set_max_delay": self.set_max_delay,
            "set_case_analysis": self.set_case_analysis,
            "set_disable_timing": self.set_disable_timing,
            "set_clock_groups": self.set_clock_groups,
            "set_units": self.set_units,
            "all_inputs": self.all_inputs,
            "all_outputs": lambda given, line: self.finder.ports(2),
            "all_clocks": lambda given, line: [Object("clock", name) for name in self.clocks],
            "all_registers": self.all_registers,
            "filter_collection": lambda given, line: self.finder.filtered(
                items(given.rest[0]), as_text(given.rest[1]), line
            ),
            "remove_from_collection": self.remove_from_collection,
            "add_to_collection": lambda given, line: _joined(given.rest),
            "sizeof_collection": lambda given, line: len(items(given.rest[0])),
            "current_design": lambda given, line: "",
            **dict.fromkeys(("get_property", "get_attribute"), self.get_property),
            **dict.fromkeys(
                ("get_full_name", "get_name", "get_object_name"), lambda given, line: as_text(given.rest[0])
            ),
        }
        for kind in ("port", "pin", "cell", "clock"):
            commands[f"get_{kind}s"] = commands[f"get_{kind}"] = functools.partial(self.get, kind=kind)
        self.tcl = Tcl(path, {name: self._run(name, command) for name, command in commands.items()})
        self.language = Language(self.tcl)

    def _run(self, name: str, command: Callable[[_Arguments, int], Value]) -> Callable[[Sequence[Value], int], Value]:
        def run(arguments: Sequence[Value], line: int) -> Value:
            given = _parsed(name, arguments)
            for option in given.unknown:
                self.note("unsupported options", line, f"{option} of {name}")
            return command(given, line)

        return run

    def note(self, what: str, line: int, name: str, path: object = None) -> None:
        path = path or self.tcl.path
        if path != self.path:
            line, name = 0, f"{name} ({os.path.basename(str(path))}:{line})"
        self.findings.setdefault(what, []).append((line, name))

    def error(self, line: int, message: str) -> DesignError:
        return self.tcl.error(line, message)

    def constraints(self) -> TimingConstraints:
        for path, line, name in self.tcl.unknown:
            what = "commands without effect on the estimate" if name in _NO_EFFECT else "unsupported commands"
            self.note(what, line, name, path)
        clocks = []
        for clock in self.clocks.values():
            latency = sum(self.latency.get((clock.name, of_source), 0.0) for of_source in (False, True))
            clocks.append(dataclasses.replace(clock, latency=latency))
        notices = [listing(self.path, *_summary(what, found)) for what, found in self.findings.items()]
        if self.tcl.environment:
            values = ", ".join(f"{name}={value}" for name, value in self.tcl.environment.items())
            notices.append(f"{self.path}: values of environment variables: {values}")
        inputs, outputs = (
            tuple(one for found in self.delays[side].values() for one in found.values() if one.clock in self.clocks)
            for side in (True, False)
        )
        return TimingConstraints(
            clocks=tuple(clocks),
            inputs=inputs,
            outputs=outputs,
            exceptions=tuple(self.exceptions.values()),
            transitions=tuple(self.transitions.values()),
            loads=tuple(self.loads.values()),
            blocked=tuple(self.blocked),
            derating=self.derating,
            uncertainties=tuple(self.between.values()),
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

    def first_number(self, given: _Arguments, line: int, what: str, *, least: float = -math.inf) -> float:
        if not given.rest:
            raise self.error(line, f"{what}: expected a number")
        number = self.number(given.rest[0], line, what)
        if number < least:
            raise self.error(line, f"{what}: {number:g} must be at least {least:g}")
        return number

    # Clocks

    def create_clock(self, given: _Arguments, line: int) -> Value:
        sources = self.finder.named(given.rest, line, ("port", "pin"))
        period = self.number(given.one("-period") or "", line, "-period of create_clock") * self.unit
        name = as_text(given.one("-name") or (sources[0].name if sources else ""))
        if not name:
            raise self.error(line, "create_clock: expected -name or a source")
        if not 0 < period < math.inf:
            raise self.error(line, f"clock {name!r}: a period of {period / self.unit:g} must be above 0 and finite")
        edges = [
            self.number(word, line, "-waveform") * self.unit for word in as_text(given.one("-waveform") or "").split()
        ]
        edges = edges or [0.0, period / 2]
        if len(edges) != 2 or not 0 <= edges[0] < edges[1] <= edges[0] + period:
            raise self.error(line, f"clock {name!r}: -waveform must be two rising times within a period")
        if "-add" not in given.flags:  # A clock replaces those at its sources.
            for other in [one.name for one in self.clocks.values() if set(one.sources) & set(sources)]:
                del self.clocks[other]
        self.clocks[name] = Clock(
            name, period, edges[0], edges[1] % period if edges[1] > period else edges[1], tuple(sources)
        )
        return [Object("clock", name)]

    def create_generated_clock(self, given: _Arguments, line: int) -> Value:
        if given.unknown:
            self.note("generated clocks with an unsupported option, which are ignored", line, given.unknown[0])
            return ""
        sources = self.finder.named(given.rest, line, ("port", "pin"))
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
        pins = self.finder.named(given.values.get("-source", []), line, ("port", "pin"))
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
        value = self.first_number(given, line, "set_clock_uncertainty") * self.unit
        if given.values.keys() == {"-from", "-to"}:
            ends = [self.clocks_of(given.values[side], line) for side in ("-from", "-to")]
            for one, other in itertools.product(*ends):
                self.between[one.name, other.name] = Uncertainty(one.name, other.name, value)
            return ""
        if given.values:
            self.note("unsupported options", line, f"{next(iter(given.values))} of set_clock_uncertainty")
            return ""
        for clock in self.clocks_of(given.rest[1:], line):
            self.clocks[clock.name] = dataclasses.replace(clock, uncertainty=value)
        return ""

    def set_clock_transition(self, given: _Arguments, line: int) -> Value:
        if "-min" in given.flags and "-max" not in given.flags:
            return ""
        value = self.first_number(given, line, "set_clock_transition", least=0.0) * self.unit * self.slew_factor
        for clock in self.clocks_of(given.rest[1:], line):
            self.clocks[clock.name] = dataclasses.replace(clock, transition=value)
        return ""

    def clocks_of(self, values: Sequence[Value], line: int) -> list[Clock]:
        """The clocks that the values name, by themselves or by their source ports and pins."""
        found = self.finder.named(values, line, ("clock", "port", "pin"))
        return [
            one for one in self.clocks.values() if Object("clock", one.name) in found or set(one.sources) & set(found)
        ]

    # Ports and paths

    def set_delay(self, given: _Arguments, line: int, *, is_input: bool) -> Value:
        command = "set_input_delay" if is_input else "set_output_delay"
        if "-min" in given.flags and "-max" not in given.flags:
            return ""
        value = self.first_number(given, line, command) * self.unit
        clocks = self.clocks_of(given.values.get("-clock", []), line)
        if not clocks:
            self.note(
                f"{command} without a clock, which are ignored", line, as_text(given.one("-clock") or "no -clock")
            )
            return ""
        edges = {"-rise", "-fall"} & given.flags or {"-rise", "-fall"}
        falls, delays = "-clock_fall" in given.flags, self.delays[is_input]
        allowed = (1, 3) if is_input else (2, 3)
        for port in self.finder.named(given.rest[1:], line, ("port",)):
            if self.finder.direction(port.name) not in allowed:
                self.note(f"ports of {command} in the wrong direction", line, port.name)
                continue
            key = (clocks[0].name, falls)
            of_port = delays.setdefault(port.name, {})
            known = of_port.pop(key, None)
            if "-add_delay" not in given.flags:
                of_port.clear()
            rise = value if "-rise" in edges else (known.rise if known else -math.inf)
            fall = value if "-fall" in edges else (known.fall if known else -math.inf)
            of_port[key] = PortDelay(port.name, *key, rise, fall)
        return ""

    def set_input_transition(self, given: _Arguments, line: int) -> Value:
        if "-min" in given.flags and "-max" not in given.flags:
            return ""
        value = self.first_number(given, line, "set_input_transition", least=0.0) * self.unit * self.slew_factor
        for port in self.finder.named(given.rest[1:], line, ("port",)):
            self.transitions[port.name] = PortTransition(port.name, value)
        return ""

    def set_load(self, given: _Arguments, line: int) -> Value:
        if "-min" in given.flags and "-max" not in given.flags:
            return ""
        value = self.first_number(given, line, "set_load", least=0.0) * self.capacitance_unit
        for port in self.finder.named(given.rest[1:], line, ("port",)):
            self.loads[port.name] = PortLoad(port.name, value)
        return ""

    def set_timing_derate(self, given: _Arguments, line: int) -> Value:
        """Keeps the late factors for the whole design; factors for clocks have no effect, because clocks are ideal."""
        is_early = "-early" in given.flags and "-late" not in given.flags
        if is_early or given.values.keys() & {"-clock"} or "-cell_check" in given.flags:
            self.note("commands without effect on the estimate", line, "set_timing_derate")
            return ""
        if len(given.rest) > 1:
            self.note("unsupported options", line, "objects of set_timing_derate")
            return ""
        value = self.first_number(given, line, "set_timing_derate")
        if value <= 0:
            raise self.error(line, f"set_timing_derate: {value:g} must be above 0")
        parts = {"-cell_delay": "cells", "-net_delay": "wires"}
        names = [name for option, name in parts.items() if option in given.flags] or list(parts.values())
        self.derating = dataclasses.replace(self.derating, **dict.fromkeys(names, value))
        return ""

    def set_multicycle_path(self, given: _Arguments, line: int) -> Value:
        cycles = self.first_number(given, line, "set_multicycle_path")
        if "-hold" in given.flags and "-setup" not in given.flags:
            return ""
        if cycles != int(cycles) or cycles < 1:
            raise self.error(line, f"set_multicycle_path: {cycles:g} must be a whole number of at least 1")
        if "-start" in given.flags:
            self.note("unsupported options", line, "-start of set_multicycle_path")
        return self.set_exception(given, line, PathException(int(cycles)))

    def set_max_delay(self, given: _Arguments, line: int) -> Value:
        delay = self.first_number(given, line, "set_max_delay") * self.unit
        ignores = "-ignore_clock_latency" in given.flags
        return self.set_exception(given, line, PathException(1, delay=delay, ignores_latency=ignores))

    def set_exception(self, given: _Arguments, line: int, exception: PathException) -> Value:
        if "-hold" in given.flags and "-setup" not in given.flags:
            return ""
        if not exception.cycles and not given.values:
            raise self.error(line, "set_false_path: expected -from, -through or -to")
        through = [name for name in given.values if name not in ("-from", "-to", "-comment")]
        through += ["-rise", "-fall"] if len({"-rise", "-fall"} & given.flags) == 1 else []
        if through == ["-through"] and exception == PathException(0) and not {"-from", "-to"} & given.values.keys():
            return self.block(given.values["-through"], line)
        if through:
            self.note("unsupported options, whose exceptions are ignored", line, f"{through[0]} of {exception.command}")
            return ""
        ends = []
        for side in ("-from", "-to"):
            found = self.finder.named(given.values.get(side, []), line, ("clock", "port", "pin", "cell"))
            if side in given.values and not found:
                return ""  # A pattern without a match has been noted.
            ends.append(tuple(found))
        made = dataclasses.replace(exception, begins=ends[0], ends=ends[1])
        self.exceptions[made.command, *ends] = made  # A later exception for the same paths replaces an earlier one.
        return ""

    def block(self, values: Sequence[Value], line: int) -> Value:
        """Blocks all paths that begin at the ports and pins or pass through them."""
        self.blocked |= dict.fromkeys(self.finder.named(values, line, ("port", "pin")))
        return ""

    def set_case_analysis(self, given: _Arguments, line: int) -> Value:
        self.note("values of set_case_analysis, which only block paths at their pins", line, as_text(given.rest[1:]))
        return self.block(given.rest[1:], line)

    def set_disable_timing(self, given: _Arguments, line: int) -> Value:
        if {"-from", "-to"} & given.values.keys():
            self.note("unsupported options", line, "-from and -to of set_disable_timing")
            return ""
        return self.block(given.rest, line)

    def set_clock_groups(self, given: _Arguments, line: int) -> Value:
        if "-allow_paths" in given.flags:
            return ""
        groups = [tuple(self.finder.named([group], line, ("clock",))) for group in given.values.get("-group", [])]
        if len(groups) == 1:
            groups.append(
                tuple(Object("clock", name) for name in self.clocks if Object("clock", name) not in groups[0])
            )
        for one in groups:
            for other in groups:
                if other is not one and one and other:
                    self.exceptions["set_clock_groups", one, other] = PathException(0, one, other)
        return ""

    def set_units(self, given: _Arguments, line: int) -> Value:
        time = given.one("-time")
        if time is not None:
            found = re.fullmatch(r"(\d+\.?\d*|\.\d+)?(fs|ps|ns|us)", as_text(time))
            if found is None or not float(found[1] or 1):
                raise self.error(line, f"set_units: -time {as_text(time)!r} must be a unit such as ns or 1ps")
            self.unit = float(found[1] or 1) * _TIME_UNITS[found[2]]
        load = given.one("-capacitance")
        if load is not None:
            found = re.fullmatch(r"(\d+\.?\d*|\.\d+)?(f|p)F?", as_text(load), re.IGNORECASE)
            if found is None or not float(found[1] or 1):
                raise self.error(line, f"set_units: -capacitance {as_text(load)!r} must be a unit such as pF or 1fF")
            self.capacitance_unit = float(found[1] or 1) * (1000.0 if found[2].lower() == "p" else 1.0)
        return ""

    # Objects

    def all_inputs(self, given: _Arguments, line: int) -> Value:
        ports = self.finder.ports(1)
        if "-no_clocks" in given.flags:
            sources = {one for clock in self.clocks.values() for one in clock.sources}
            ports = [port for port in ports if port not in sources]
        return ports

    def all_registers(self, given: _Arguments, line: int) -> Value:
        """All registers; paths begin at their clock pins and end at their data pins."""
        if "-clock" in given.values:
            self.note("unsupported options", line, "-clock of all_registers")
            return []
        return [REGISTERS]

    def remove_from_collection(self, given: _Arguments, line: int) -> Value:
        removed = {as_text(one) for one in _joined(given.rest[1:])}
        return [one for one in items(given.rest[0]) if as_text(one) not in removed]

    def get(self, given: _Arguments, line: int, *, kind: Any) -> Value:
        for option in given.values.keys() - {"-filter"}:
            self.note("unsupported options, which match nothing", line, f"{option} of get_{kind}s")
            return []
        options = given.flags | ({"-hierarchical"} if "-hier" in given.flags else set())
        try:
            found = self.finder.named(given.rest or ["*"], line, (kind,), options=options)
        except re.error as error:
            what = f"{as_text(given.rest[0])!r} is not a valid regular expression ({error})"
            raise self.error(line, f"get_{kind}s: {what}") from None
        return self.finder.filtered(found, as_text(given.one("-filter")), line) if "-filter" in given.values else found

    def get_property(self, given: _Arguments, line: int) -> Value:
        one, name = (items(given.rest[0]) or [""])[0], as_text(given.rest[1])
        value = self.finder.property(one, name) if isinstance(one, Object) else None
        if isinstance(one, Object) and one.kind == "clock" and name == "period":
            return self.clocks[one.name].period / self.unit if one.name in self.clocks else ""
        if value is None:
            self.note("unsupported properties", line, name)
        return value or ""


def _joined(values: Sequence[Value]) -> list[Value]:
    """The elements of several lists."""
    return [one for value in values for one in items(value)]


def _summary(what: str, found: list[tuple[int, str]]) -> Finding:
    """A finding with each name once, at its first line."""
    first: dict[str, int] = {}
    for line, name in found:
        first.setdefault(name, line)
    return what, len(found), [(line, name) for name, line in list(first.items())[:SHOWN]]
