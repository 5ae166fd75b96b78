"""The objects that an SDC file names: ports, pins, cells and clocks, by patterns, filters and properties."""

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from placement.netlist.formats.tcl import items
from placement.netlist.formats.tcl_expressions import Value, as_text, regular_expression
from placement.netlist.timing_constraints import Clock, Object

REGISTERS = Object("registers", "all_registers")  # all registers, latches and macros with a clock
_DIRECTIONS = {1: "input", 2: "output", 3: "bidirect"}
_TERM = re.compile(r"\s*(!?)\s*@?(\w+)\s*(?:(==|!=|=~|!~)\s*(\"[^\"]*\"|'[^']*'|\{[^}]*\}|[^\s\"']+))?\s*")
_NAMES = ("name", "full_name", "object_name")


class DesignObjects(NamedTuple):
    """The objects that names in an SDC file refer to."""

    ports: Mapping[str, int]  # name → 1: input, 2: output, 3: both
    cells: Sequence[str]  # unescaped names of cells and macros
    pins_of: Callable[[str], Sequence[str]]  # returns the names of a cell's pins
    master_of: Callable[[str], str]  # returns the name of a cell's master


class Finder:
    """Finds objects.

    Args:
        objects: the objects of the design.
        clocks: the clocks defined so far; more may be added.
        note: called with a finding, its line and a name.
    """

    def __init__(
        self, objects: DesignObjects, clocks: Mapping[str, Clock], note: Callable[[str, int, str], None]
    ) -> None:
        self._objects, self._clocks, self._note = objects, clocks, note
        self._ports, self._cells = _Names(list(objects.ports)), _Names(objects.cells)

    def ports(self, direction: int) -> list[Object]:
        return [Object("port", name) for name, found in self._objects.ports.items() if found in (direction, 3)]

    def direction(self, port: str) -> int:
        return self._objects.ports[port]

    def named(
        self, values: Sequence[Value], line: int, kinds: Sequence[Any], *, options: frozenset[str] = frozenset()
    ) -> list[Object]:
        """The objects of these kinds that are among the values or named by them; names without a match are noted.

        With `-hierarchical`, names may begin within the hierarchy. With `-regexp`, they are regular expressions.
        """
        found: dict[Object, None] = {}
        queue = list(values)
        while queue:
            value = queue.pop(0)
            if isinstance(value, Object):
                if value.kind in kinds or value.kind == "registers":
                    found[value] = None
                else:
                    self._note(f"objects that are not {' or '.join(kinds)}", line, value.name)
            elif len(parts := items(value)) > 1 or isinstance(value, list):
                queue[:0] = parts
            elif parts:
                pattern = as_text(parts[0])
                matched = next((m for kind in kinds if (m := self._matching(kind, pattern, options))), [])
                if not matched:
                    self._note("names without a match", line, pattern)
                found |= dict.fromkeys(matched)
        return list(found)

    def filtered(self, objects: Sequence[Value], expression: str, line: int) -> list[Value]:
        """The objects for which an expression such as `direction==in && name=~a*` holds; none if it is unsupported."""
        try:
            return [
                one
                for one in objects
                if any(
                    all(self._holds(term, one) for term in re.split(r"&&|\band\b", choice))
                    for choice in re.split(r"\|\||\bor\b", expression)
                )
            ]
        except ValueError:
            self._note("unsupported filters, which match nothing", line, expression)
            return []

    def property(self, one: Object, name: str) -> str | None:
        """A property of an object as text; None if it is not known."""
        if name in _NAMES:
            return one.name
        if one.kind == "port":
            if name in ("direction", "port_direction"):
                return _DIRECTIONS[self._objects.ports[one.name]]
            if name in ("is_clock", "is_clock_network", "is_on_clock_network"):
                return str(any(one in clock.sources for clock in self._clocks.values())).lower()
        if one.kind == "cell" and name in ("ref_name", "lib_cell"):
            return self._objects.master_of(one.name)
        return None

    def _holds(self, term: str, one: Object) -> bool:
        found = _TERM.fullmatch(term)
        value = self.property(one, found[2]) if found else None
        if found is None or value is None:
            raise ValueError
        _, name, operator, wanted = found[1], found[2], found[3], (found[4] or "").strip("\"'{}")
        if operator is None:
            return (value not in ("false", "0", "")) != bool(found[1])
        if name.endswith("direction"):
            wanted = {"in": "input", "out": "output", "inout": "bidirect"}.get(wanted, wanted)
        if wanted.lower() in ("true", "false", "1", "0") and value in ("true", "false"):
            wanted = {"1": "true", "0": "false"}.get(wanted, wanted.lower())
        is_equal = _pattern(wanted).match(value) is not None if "~" in operator else value == wanted
        return is_equal != operator.startswith("!")

    def _matching(self, kind: Any, pattern: str, options: frozenset[str]) -> list[Object]:
        if kind == "pin":
            cell, _, pin = pattern.rpartition("/")
            owners = self._cells.matching(cell, options) if cell else []
            pins = [
                (one, _Names(self._objects.pins_of(one)).matching(pin, options - {"-hierarchical"})) for one in owners
            ]
            return [Object("pin", f"{one}/{name}") for one, names in pins for name in names]
        names = {"port": self._ports, "cell": self._cells}.get(kind) or _Names(list(self._clocks))
        return [Object(kind, name) for name in names.matching(pattern, options)]


class _Names:
    """Names that patterns are matched against."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._found: dict[str, list[str]] = {}
        for name in names:
            self._found.setdefault(name, []).append(name)
            if name.endswith("]"):
                self._found.setdefault(name.rpartition("[")[0], []).append(name)

    def matching(self, pattern: str, options: frozenset[str]) -> list[str]:
        """The names that match a pattern with `*` and `?`, or that are bits of a bus of that name."""
        if "-regexp" in options:
            expression = regular_expression(pattern)
            return [name for name in self._names if expression.fullmatch(name)]
        pattern = pattern.replace("\\", "")
        if "*" not in pattern and "?" not in pattern and "-hierarchical" not in options:
            return self._found.get(pattern, [])
        patterns = [_pattern(pattern)] + [_pattern(f"*/{pattern}")] * ("-hierarchical" in options)
        return [name for name in self._names if any(one.match(name) for one in patterns)]


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern whose brackets are bits of buses, not character sets."""
    return re.compile(fnmatch.translate(text.replace("[", "[[]")))
