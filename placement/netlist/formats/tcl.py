"""Interprets the Tcl of constraints: words, variables, nested commands, `expr` and `if`, but no loops or procedures.

A value is a string, a number as text, or a list of objects that a command found.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from placement.netlist.errors import DesignError

Value = Any  # a string, or a list of objects
Command = Callable[[Sequence[Value], int], Value]
"""A command's implementation, which maps its arguments and its line to its value."""
_MOST_NESTED = 50
_OPERATORS: Mapping[type, Callable[..., float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Mod: operator.mod,
}  # fmt: skip
_VARIABLE = re.compile(r"\$(?:\{([^}]*)\}|((?:::)?\w+(?:::\w+)*)(\([^)]*\))?)")


class _Word(NamedTuple):
    text: str
    is_braced: bool


class Tcl:
    """Runs the statements of a text.

    Args:
        path: the file, for messages.
        commands: commands by name; unknown commands are noted as not understood.
    """

    def __init__(self, path: object, commands: Mapping[str, Command]) -> None:
        self._path, self._commands = path, commands
        self.variables: dict[str, Value] = {}
        self.unknown: list[tuple[int, str]] = []
        self._depth = 0

    def run(self, text: str, first_line: int = 1) -> Value:
        """Runs every statement and returns the value of the last. Raises DesignError with the line."""
        value: Value = ""
        for line, words in self._statements(text, first_line):
            value = self._statement(line, words)
        return value

    def _statement(self, line: int, words: list[_Word]) -> Value:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise DesignError.at(self._path, line, f"commands are nested more than {_MOST_NESTED} deep")
        try:
            name = str(self._value(words[0], line))
            if name == "if":
                return self._if(line, words)
            arguments = [self._value(word, line) for word in words[1:]]
            if name == "set" and arguments:
                if len(arguments) > 1:
                    self.variables[str(arguments[0])] = arguments[1]
                return self.variables.get(str(arguments[0]), "")
            if name == "expr":
                return _text_of(self._number(" ".join(map(str, arguments)), line))
            if name == "list":
                return " ".join(arguments) if all(isinstance(one, str) for one in arguments) else flat(arguments)
            if name in ("puts", "source_echo"):
                return ""
            if name not in self._commands:
                self.unknown.append((line, name))
                return ""
            return self._commands[name](arguments, line)
        finally:
            self._depth -= 1

    def _if(self, line: int, words: list[_Word]) -> Value:
        """Runs `if {condition} {then} else {otherwise}`; the condition `info exists` tests for a variable."""
        rest = [word for word in words[1:] if word.text not in ("then", "else", "elseif") or word.is_braced]
        while len(rest) >= 2:
            if self._is_true(rest[0].text, line):
                return self.run(rest[1].text, line)
            rest = rest[2:]
        return self.run(rest[0].text, line) if rest else ""

    def _is_true(self, text: str, line: int) -> bool:
        query = re.fullmatch(r"\s*(!?)\s*\[\s*info\s+exists\s+(\S+?)\s*\]\s*", text)
        if query:
            return (query[2] in self.variables) != bool(query[1])
        return self._number(text, line) != 0

    def _value(self, word: _Word, line: int) -> Value:
        if word.is_braced:
            return word.text
        text = word.text
        whole = _VARIABLE.fullmatch(text)
        if whole:
            return self._variable(whole, line)
        if text.startswith("[") and _closing(text, 0) == len(text) - 1:
            return self.run(text[1:-1], line)
        return self._substituted(text, line)

    def _variable(self, match: re.Match[str], line: int) -> Value:
        name = match[1] if match[1] is not None else match[2] + (match[3] or "")
        if name not in self.variables:
            raise DesignError.at(self._path, line, f"variable {name!r} is not set")
        return self.variables[name]

    def _substituted(self, text: str, line: int) -> str:
        parts, at = [], 0
        while at < len(text):
            variable = _VARIABLE.match(text, at)
            if variable:
                parts.append(as_text(self._variable(variable, line)))
                at = variable.end()
            elif text[at] == "[" and _closing(text, at) is not None and _is_command(text, at):
                end = _closing(text, at)
                assert end is not None
                parts.append(as_text(self.run(text[at + 1 : end], line)))
                at = end + 1
            elif text[at] == "\\" and at + 1 < len(text):
                parts.append(text[at + 1])
                at += 2
            else:
                parts.append(text[at])
                at += 1
        return "".join(parts)

    def _number(self, text: str, line: int) -> float:
        """Evaluates an arithmetic expression of numbers, variables and nested commands."""
        plain = self._substituted(text, line).strip()
        try:
            return _evaluated(ast.parse(plain, mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
            raise DesignError.at(self._path, line, f"expr {plain!r}: expected numbers and + - * /") from None

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
                end = text.find("\n", at)
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
        if text[at] in '{"':
            end = _closing(text, at)
            if end is None:
                raise DesignError.at(self._path, line, f"the {text[at]} that begins here is not closed")
            return _Word(text[at + 1 : end], text[at] == "{"), end + 1
        end = at
        while end < len(text) and text[end] not in " \t\r\n;":
            if text[end] == "[":
                closing = _closing(text, end)
                if closing is None:
                    raise DesignError.at(self._path, line, "the [ that begins here is not closed")
                end = closing
            end += 2 if text[end] == "\\" and end + 1 < len(text) and text[end + 1] not in "\r\n" else 1
            if text[end - 1 : end + 1] in ("\\\n", "\\\r"):
                end -= 1
                break
        return _Word(text[at : max(end, at + 1)], False), max(end, at + 1)


def flat(values: Sequence[Value]) -> list[Value]:
    """Flattens lists of objects into one; other values remain."""
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


def as_text(value: Value) -> str:
    """A value as Tcl would print it."""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _text_of(number: float) -> str:
    return repr(number) if number != int(number) else str(int(number))


def _is_command(text: str, at: int) -> bool:
    """Whether a bracket within a word begins a command, which the bus bit `data[3]` does not."""
    return not re.match(r"\[[\d:*?]+\]", text[at:])


def _closing(text: str, at: int) -> int | None:
    """The position of the character that closes the bracket, brace or quote at `at`; None if there is none."""
    opening = text[at]
    closing = {"{": "}", "[": "]", '"': '"'}[opening]
    depth, place = 0, at
    while place < len(text):
        letter = text[place]
        if letter == "\\":
            place += 2
            continue
        if opening == '"':
            if letter == '"' and place > at:
                return place
        elif letter == opening:
            depth += 1
        elif letter == closing:
            depth -= 1
            if depth == 0:
                return place
        place += 1
    return None


def _evaluated(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluated(node.left), _evaluated(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluated(node.operand))
    raise ValueError("no arithmetic")
