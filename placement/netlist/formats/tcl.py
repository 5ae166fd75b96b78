"""Interprets the Tcl of constraints: words, variables, nested commands, expressions, loops and procedures.

A value is a string, an object that a command found, or a list of values.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from placement.netlist.errors import DesignError
from placement.netlist.formats.tcl_expressions import VARIABLE, Value, as_text, closing, evaluate, is_true

Command = Callable[[Sequence[Value], int], Value]
"""A command's implementation, which maps its arguments and its line to its value."""
_MOST_NESTED = 50
_MOST_STATEMENTS = 1_000_000
_LONGEST = 10_000_000  # letters of a text, or elements of a list
_MISTAKES = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, StopIteration, TypeError, ValueError,
    re.error,
)  # fmt: skip
_ENVIRONMENT = re.compile(r"(?:::)?env\((\w+)\)")


class Jump(Exception):
    """`break`, `continue` or `return`, which ends a body."""

    def __init__(self, kind: str, value: Value = "") -> None:
        super().__init__(kind)
        self.kind, self.value = kind, value


class Braced(str):
    """Text in braces, with the line at which it begins."""

    line: int


class _Word(NamedTuple):
    text: str
    is_braced: bool
    line: int


class Tcl:
    """Runs the statements of a text.

    Args:
        path: the file, for messages.
        commands: commands by name; unknown commands are recorded in `unknown`.

    Attributes:
        environment: the environment variables that the text has read, with their values.
        unknown: file, line and name of each unknown command.
    """

    def __init__(self, path: object, commands: Mapping[str, Command]) -> None:
        self.path, self.commands = path, dict(commands)
        self.variables: dict[str, Value] = {}
        self.environment: dict[str, str] = {}
        self.unknown: list[tuple[object, int, str]] = []
        self.linked = set[str]()  # the variables of a procedure that are global
        self._globals = self.variables
        self._depth = self._count = 0
        self._parsed: dict[tuple[str, int], list[tuple[int, list[_Word]]]] = {}

    def run(self, text: Value, first_line: int = 1) -> Value:
        """Runs every statement and returns the value of the last.

        Raises:
            DesignError: with the line.
            Jump: the text has a `break`, `continue` or `return`.
        """
        value: Value = ""
        text = text if isinstance(text, str) else as_text(text)
        line = text.line if isinstance(text, Braced) else first_line
        self._count += 1  # of bodies and statements, because the body of a loop may be empty
        if (text, line) not in self._parsed:  # Bodies of loops run more than once.
            self._parsed[text, line] = self._statements(text, line)
        if self._count > _MOST_STATEMENTS:
            begun = next((begun for begun, _ in self._parsed[text, line]), line)
            raise self.error(begun, f"a loop does not end within {_MOST_STATEMENTS:,} statements")
        for begun, words in self._parsed[text, line]:
            value = self._statement(begun, words)
        return value

    def call(self, parameters: Sequence[Value], body: str, arguments: Sequence[Value], line: int) -> Value:
        """Runs a procedure; a parameter is its name, or a list of it and its default."""
        local: dict[str, Value] = {}
        for number, parameter in enumerate(parameters):
            name, *default = items(parameter)
            if name == "args" and number == len(parameters) - 1:
                local["args"] = list(arguments[number:])
            elif number < len(arguments) or default:
                local[as_text(name)] = arguments[number] if number < len(arguments) else default[0]
            else:
                raise self.error(line, f"the argument {as_text(name)!r} of a procedure is missing")
        before, self.variables, self.linked = (self.variables, self.linked), local, set()
        try:
            return self.run(body, line)
        except Jump as jump:
            return jump.value
        finally:
            self.variables, self.linked = before

    def is_true(self, text: Value, line: int) -> bool:
        """Whether a condition holds."""
        value = self.expression(as_text(text), line)
        try:
            return is_true(value)
        except ValueError:
            raise self.error(line, f"expr {as_text(text)!r}: expected a condition, found {as_text(value)!r}") from None

    def expression(self, text: str, line: int) -> Value:
        """The value of an expression."""
        try:
            return evaluate(text.replace("\\\n", " "), lambda word: self._value(self._word(word, 0, line)[0], line))
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            if isinstance(error, DesignError):
                raise
            raise self.error(line, f"expr {text.strip()!r}: expected numbers, text and operators") from None

    def exists(self, name: str) -> bool:
        """Whether a variable is set; `env(NAME)` is an environment variable."""
        environment = _ENVIRONMENT.fullmatch(name)
        return self._scope(name) is not None or (environment is not None and environment[1] in os.environ)

    def set(self, name: str, value: Value) -> None:
        """Sets a variable; raises ValueError if the value is too long."""
        if isinstance(value, str | list) and len(value) > _LONGEST:
            raise ValueError
        is_global = name.startswith("::") or name in self.linked
        (self._globals if is_global else self.variables)[name.removeprefix("::")] = value

    def get(self, name: str, line: int) -> Value:
        """The value of a variable; raises DesignError if it is not set."""
        scope, environment = self._scope(name), _ENVIRONMENT.fullmatch(name)
        if scope is not None:
            return scope[name.removeprefix("::")]
        if environment is None:
            raise self.error(line, f"variable {name!r} is not set")
        if environment[1] not in os.environ:
            raise self.error(line, f"environment variable {environment[1]!r} is not set: set it as in your flow")
        self.environment[environment[1]] = os.environ[environment[1]]
        return os.environ[environment[1]]

    def error(self, line: int, message: str) -> DesignError:
        return DesignError.at(self.path, line, message)

    def _scope(self, name: str) -> dict[str, Value] | None:
        """The variables that contain a name: the local ones, or else the global ones, even without `global`."""
        name = name.removeprefix("::")
        return next((scope for scope in (self.variables, self._globals) if name in scope), None)

    def _statement(self, line: int, words: list[_Word]) -> Value:
        if self._depth == _MOST_NESTED:
            raise self.error(line, f"commands are nested more than {_MOST_NESTED} deep")
        self._depth += 1
        self._count += 1
        name, arguments = words[0].text, list[Value]()
        try:
            name = as_text(self._value(words[0], line))
            for word in words[1:]:
                if word.text.startswith("{*}") and not word.is_braced:
                    arguments += items(self._value(self._word(word.text, 3, line)[0], line))
                else:
                    arguments.append(self._value(word, line))
            if name in self.commands:
                return self.commands[name](arguments, line)
            if not arguments and re.fullmatch(r"[\d:*?]+", name):
                return f"[{name}]"  # the bus bit `data[3]`
            self.unknown.append((self.path, line, name))
            return ""
        except DesignError:
            raise
        except _MISTAKES as mistake:
            message = f"{name[:40]} {_shown(arguments)!r}: arguments are missing or not supported"
            raise self.error(line, message) from mistake
        finally:
            self._depth -= 1

    def _value(self, word: _Word, line: int) -> Value:
        if word.is_braced:
            text = Braced(word.text)
            text.line = word.line
            return text
        whole = VARIABLE.fullmatch(word.text)
        if whole:
            return self._variable(whole, line)
        if word.text.startswith("[") and closing(word.text, 0) == len(word.text) - 1:
            return self.run(word.text[1:-1], line)
        return self._substituted(word.text, line)

    def _variable(self, match: re.Match[str], line: int) -> Value:
        if match[1] is not None:
            return self.get(match[1], line)
        return self.get(match[2] + (self._substituted(match[3], line) if match[3] else ""), line)

    def _substituted(self, text: str, line: int) -> str:
        parts, at = [], 0
        while at < len(text):
            variable = VARIABLE.match(text, at)
            end = closing(text, at) if text[at] == "[" else None
            if variable:
                parts.append(as_text(self._variable(variable, line)))
                at = variable.end()
            elif end is not None:
                parts.append(as_text(self.run(text[at + 1 : end], line)))
                at = end + 1
            elif text[at] == "\\" and at + 1 < len(text):
                parts.append({"n": "\n", "t": "\t"}.get(text[at + 1], text[at + 1]))
                at += 2
            else:
                parts.append(text[at])
                at += 1
        return "".join(parts)

    def _statements(self, text: str, first_line: int) -> list[tuple[int, list[_Word]]]:
        found, at, line = [], 0, first_line
        words: list[_Word] = []
        begun = line
        while at < len(text):
            letter = text[at]
            if letter in "\n;":
                if words:
                    found.append((begun, words))
                words = []
                line += letter == "\n"
                at += 1
            elif letter in " \t\r" or text[at : at + 2] in ("\\\n", "\\\r"):
                line += letter == "\\"
                at += 2 if letter == "\\" else 1
                at += text[at - 1 : at + 1] == "\r\n" and letter == "\\"
            elif letter == "#" and not words:
                while (end := text.find("\n", at)) >= 0 and text[at:end].rstrip("\r").endswith("\\"):
                    at, line = end + 1, line + 1  # A comment continues, too.
                at = len(text) if end < 0 else end
            else:
                if not words:
                    begun = line
                word, end = self._word(text, at, line)
                words.append(word)
                line += text.count("\n", at, end)
                at = end
        if words:
            found.append((begun, words))
        return found

    def _word(self, text: str, at: int, line: int) -> tuple[_Word, int]:
        if text[at : at + 1] in ("{", '"') and text[at : at + 3] != "{*}":
            end = closing(text, at)
            if end is None:
                raise self.error(line, f"the {text[at]} that begins here is not closed")
            return _Word(text[at + 1 : end], text[at] == "{", line), end + 1
        end = at
        while end < len(text) and text[end] not in " \t\r\n;":
            if text[end] == "[":
                last = closing(text, end)
                if last is None:
                    raise self.error(line, "the [ that begins here is not closed")
                end = last
            end += 2 if text[end] == "\\" and end + 1 < len(text) and text[end + 1] not in "\r\n" else 1
            if text[end - 1 : end + 1] in ("\\\n", "\\\r"):
                end -= 1
                break
        return _Word(text[at : max(end, at + 1)], False, line), max(end, at + 1)


def _shown(arguments: Sequence[Value]) -> str:
    return " ".join(one if isinstance(one, str) else "…" for one in arguments)[:60]


def items(value: Value) -> list[Value]:
    """The elements of a list; text is split at blanks outside of braces and quotes."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        return [value]
    value = value.replace("\\\n", " ")
    found, at = list[Value](), 0
    while at < len(value):
        if value[at].isspace():
            at += 1
            continue
        end = closing(value, at) if value[at] in '{"' else None
        if end is not None:
            found.append(value[at + 1 : end])
            at = end + 1
            continue
        begin = at
        while at < len(value) and not value[at].isspace():
            at += 1
        found.append(value[begin:at])
    return found
