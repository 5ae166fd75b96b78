"""The commands of Tcl itself that constraints use: variables, control flow, lists and text."""

import fnmatch
import itertools
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from placement.netlist.errors import DesignError
from placement.netlist.files import SourceFile, decoded_leniently, read_bytes
from placement.netlist.formats.tcl import Command, Jump, Tcl, items
from placement.netlist.formats.tcl_expressions import Value, as_text, regular_expression

_IGNORED = ("puts", "package")


class Language:
    """The commands of one interpreter.

    Attributes:
        sources: the files that `source` has read, by their absolute paths.
    """

    def __init__(self, tcl: Tcl) -> None:
        self.tcl = tcl
        self.sources: dict[str, SourceFile] = {}
        flow: dict[str, Command] = {
            "set": self.set, "unset": self.unset, "info": self.info, "incr": self.incr, "append": self.append,
            "expr": lambda given, line: tcl.expression(" ".join(map(as_text, given)), line), "if": self.if_,
            "foreach": self.foreach, "foreach_in_collection": self.foreach, "while": self.while_, "for": self.for_,
            "switch": self.switch, "proc": self.proc, "catch": self.catch, "error": self.error, "source": self.source,
            "eval": lambda given, line: tcl.run(" ".join(map(as_text, given)), line),
            "return": lambda given, line: _jump("return", given[-1] if given else ""),
            "break": lambda given, line: _jump("break"), "continue": lambda given, line: _jump("continue"),
            "lappend": self.lappend, "regexp": self.regexp, "global": self.global_,
        }  # fmt: skip
        plain: dict[str, Callable[[Sequence[Value]], Value]] = {
            "list": list, "concat": lambda given: [one for value in given for one in items(value)],
            "llength": lambda given: len(items(given[0])), "lindex": _element, "lrange": _range, "lreplace": _replaced,
            "lsearch": _search, "lsort": _sorted,
            "join": lambda given: (as_text(given[1]) if len(given) > 1 else " ").join(map(as_text, items(given[0]))),
            "split": lambda given: as_text(given[0]).split(as_text(given[1]) if len(given) > 1 else None),
            "string": _string, "format": _format,
        }  # fmt: skip
        tcl.commands |= flow | {name: _without_line(command) for name, command in plain.items()}
        tcl.commands |= dict.fromkeys(_IGNORED, lambda given, line: "")

    # Variables

    def set(self, given: Sequence[Value], line: int) -> Value:
        if len(given) > 2:
            raise ValueError
        if len(given) > 1:
            self.tcl.set(as_text(given[0]), given[1])
        return self.tcl.get(as_text(given[0]), line)

    def unset(self, given: Sequence[Value], line: int) -> Value:
        for name in given:
            self.tcl.variables.pop(as_text(name), None)
        return ""

    def info(self, given: Sequence[Value], line: int) -> Value:
        name = as_text(given[1]) if len(given) > 1 else ""
        if given[0] == "exists":
            return int(self.tcl.exists(name))
        if given[0] in ("commands", "procs"):
            return [name] if name in self.tcl.commands else []
        if given[0] == "script":
            return str(self.tcl.path)
        raise ValueError

    def global_(self, given: Sequence[Value], line: int) -> Value:
        self.tcl.linked.update(map(as_text, given))
        return ""

    def incr(self, given: Sequence[Value], line: int) -> Value:
        name = as_text(given[0])
        before = int(as_text(self.tcl.get(name, line))) if self.tcl.exists(name) else 0
        self.tcl.set(name, before + int(as_text(given[1]) if len(given) > 1 else 1))
        return self.tcl.get(name, line)

    def append(self, given: Sequence[Value], line: int) -> Value:
        name = as_text(given[0])
        before = as_text(self.tcl.get(name, line)) if self.tcl.exists(name) else ""
        self.tcl.set(name, before + "".join(map(as_text, given[1:])))
        return self.tcl.get(name, line)

    def lappend(self, given: Sequence[Value], line: int) -> Value:
        name = as_text(given[0])
        before = items(self.tcl.get(name, line)) if self.tcl.exists(name) else []
        self.tcl.set(name, [*before, *given[1:]])
        return self.tcl.get(name, line)

    # Control flow

    def if_(self, given: Sequence[Value], line: int) -> Value:
        rest = list(given)
        while len(rest) >= 2:
            condition = rest.pop(0)
            body = rest.pop(0)
            if body == "then":
                body = rest.pop(0)
            if self.tcl.is_true(condition, line):
                return self.tcl.run(body, line)
            if rest and rest[0] in ("elseif", "else"):
                rest.pop(0)
        return self.tcl.run(rest[0], line) if rest else ""

    def foreach(self, given: Sequence[Value], line: int) -> Value:
        """Runs a body for the elements of one or more lists, with one or more variables for each."""
        names = [[as_text(name) for name in items(one)] for one in given[:-1:2]]
        values = [items(one) for one in given[1:-1:2]]
        turns = max(-(-len(found) // len(of)) for of, found in zip(names, values, strict=True))
        for turn in range(turns):
            for of, found in zip(names, values, strict=True):
                for place, name in enumerate(of, turn * len(of)):
                    self.tcl.set(name, found[place] if place < len(found) else "")
            if not self._body(given[-1], line):
                break
        return ""

    def while_(self, given: Sequence[Value], line: int) -> Value:
        while self.tcl.is_true(given[0], line) and self._body(given[1], line):
            pass
        return ""

    def for_(self, given: Sequence[Value], line: int) -> Value:
        self.tcl.run(given[0], line)
        while self.tcl.is_true(given[1], line) and self._body(given[3], line):
            self.tcl.run(given[2], line)
        return ""

    def _body(self, body: str, line: int) -> bool:
        """Runs the body of a loop; returns whether the loop continues."""
        try:
            self.tcl.run(body, line)
        except Jump as jump:
            if jump.kind == "return":
                raise
            return jump.kind == "continue"
        return True

    def switch(self, given: Sequence[Value], line: int) -> Value:
        """Runs the body of the first pattern that matches; `-` means the next body."""
        options = list(
            itertools.takewhile(lambda one: as_text(one) in ("-exact", "-glob", "-regexp", "--"), given[:-2])
        )
        if "-regexp" in options:
            raise ValueError
        value, *rest = given[len(options) :]
        cases = items(rest[0]) if len(rest) == 1 else rest
        for place in range(0, len(cases) - 1, 2):
            pattern = as_text(cases[place])
            if pattern == "default" or as_text(value) == pattern or ("-glob" in options and _glob(pattern, value)):
                body = next(body for body in cases[place + 1 :: 2] if body != "-")
                return self.tcl.run(body, line)
        return ""

    def proc(self, given: Sequence[Value], line: int) -> Value:
        name, parameters, body = given
        self.tcl.commands[as_text(name).removeprefix("::")] = lambda arguments, at: self.tcl.call(
            items(parameters), body, arguments, at
        )
        return ""

    def catch(self, given: Sequence[Value], line: int) -> Value:
        value, failed = "", 0
        try:
            value = self.tcl.run(given[0], line)
        except DesignError as error:
            value, failed = str(error), 1
        if len(given) > 1:
            self.tcl.set(as_text(given[1]), value)
        return failed

    def error(self, given: Sequence[Value], line: int) -> Value:
        raise self.tcl.error(line, f"error: {as_text(given[0])}")

    def source(self, given: Sequence[Value], line: int) -> Value:
        """Runs a file, which is found from the working directory or from the folder of the file that names it."""
        path, before = Path(as_text(given[-1])), self.tcl.path
        beside = Path(str(before)).parent / path
        try:
            if not path.is_file() and beside.exists() and not beside.is_file():
                raise DesignError(f"{beside}: is not a file")
            data, source = read_bytes(path if path.is_file() else beside)
        except DesignError as error:
            raise self.tcl.error(line, str(error)) from None
        self.tcl.path = path if path.is_file() else beside
        self.sources[os.path.abspath(self.tcl.path)] = source
        try:
            return self.tcl.run(decoded_leniently(data))
        except Jump as jump:
            return jump.value
        finally:
            self.tcl.path = before

    def regexp(self, given: Sequence[Value], line: int) -> Value:
        """Whether an expression matches; further arguments are variables for the match and its groups."""
        options = [one for one in given if one in ("-nocase", "--")]
        pattern, text, *names = given[len(options) :]
        found = regular_expression(as_text(pattern), re.IGNORECASE if "-nocase" in options else 0).search(as_text(text))
        for name, value in zip(names, (found[0], *found.groups("")) if found else (), strict=False):
            self.tcl.set(as_text(name), value)
        return int(found is not None)


def _jump(kind: str, value: Value = "") -> Value:
    raise Jump(kind, value)


def _without_line(command: Callable[[Sequence[Value]], Value]) -> Command:
    return lambda given, line: command(given)


def _format(given: Sequence[Value]) -> Value:
    text, *values = map(as_text, given)
    types: dict[str, Callable[[str], Any]] = {"s": str} | dict.fromkeys("eEfgG", float) | dict.fromkeys("dixXo", int)
    kinds = re.findall(r"%(?!%)[-+ 0#]*\d{0,4}(?:\.\d{1,3})?(.)", text.replace("%%", ""))
    return text % tuple(types[kind](value) for kind, value in zip(kinds, values, strict=True))


def _sorted(given: Sequence[Value]) -> Value:
    *options, elements = given
    if set(options) - {"-ascii", "-integer", "-real", "-increasing", "-decreasing", "-unique"}:
        raise ValueError
    found = map(as_text, items(elements))
    key: Callable[[str], Any] = float if {"-integer", "-real"} & set(options) else str
    return sorted(set(found) if "-unique" in options else found, key=key, reverse="-decreasing" in options)


def _index(text: Value, count: int) -> int:
    found = re.fullmatch(r"(end)?([-+]?\d+)?", as_text(text))
    if found is None or not found[0]:
        raise ValueError
    return (count - 1 if found[1] else 0) + int(found[2] or 0)


def _element(given: Sequence[Value]) -> Value:
    value = given[0]
    for number in given[1:]:
        elements = items(value)
        place = _index(number, len(elements))
        value = elements[place] if 0 <= place < len(elements) else ""
    return value


def _range(given: Sequence[Value]) -> Value:
    elements = items(given[0])
    return elements[max(_index(given[1], len(elements)), 0) : max(_index(given[2], len(elements)) + 1, 0)]


def _replaced(given: Sequence[Value]) -> Value:
    elements = items(given[0])
    first, last = (_index(one, len(elements)) for one in given[1:3])
    if first < 0:
        return elements  # as `lsearch` returns for an element that does not exist
    return elements[:first] + list(given[3:]) + elements[max(last + 1, first) :]


def _glob(pattern: str, value: Value) -> bool:
    return re.match(fnmatch.translate(pattern), as_text(value)) is not None


def _search(given: Sequence[Value]) -> Value:
    """`lsearch` with -exact, -glob (the default), -regexp, -not, -inline and -all."""
    *options, elements, pattern = given
    if set(options) - {"-exact", "-glob", "-regexp", "-not", "-inline", "-all"}:
        raise ValueError
    text, found = as_text(pattern), []
    for place, one in enumerate(items(elements)):
        if "-exact" in options:
            is_found = as_text(one) == text
        elif "-regexp" in options:
            is_found = regular_expression(text).search(as_text(one)) is not None
        else:
            is_found = _glob(text, one)
        if is_found != ("-not" in options):
            found.append(one if "-inline" in options else place)
    if "-all" in options:
        return found
    return found[0] if found else "" if "-inline" in options else -1


def _string(given: Sequence[Value]) -> Value:
    what, text, *rest = map(as_text, given)
    if what == "range":
        first, last = (_index(one, len(text)) for one in rest)
        return text[max(first, 0) : max(last + 1, 0)]
    changed: dict[str, Callable[..., Value]] = {
        "match": lambda other: int(_glob(text, other)), "equal": lambda other: int(text == other),
        "length": lambda: len(text), "tolower": text.lower, "toupper": text.upper, "trim": text.strip,
    }  # fmt: skip
    return changed[what](*rest)
