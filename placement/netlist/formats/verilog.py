"""Reader of structural Verilog, as synthesis writes it: modules with ports, wires, instances and assignments."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from typing import Any

from placement.netlist.errors import DesignError
from placement.netlist.files import SourceFile, decoded, read_bytes

_DIRECTIONS = ("input", "output", "inout")
_NETS = ("wire", "tri", "wand", "wor", "supply0", "supply1", "reg", "logic")
_SKIPPED = ("parameter", "localparam", "defparam")
_BEHAVIOUR = ("always", "initial", "function", "task", "generate", "always_ff", "always_comb", "case", "if", "for")
_WORD = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\(\*(?!\s*\)).*?\*\)|`[^\n]*)"""
    r"""|(?P<word>\\\S+|[A-Za-z_][\w$]*|\d*\s*'[sS]?[bBhHdDoO][\w?]+|\d[\w.]*|"[^"]*"|[()\[\]{},;:.=\#])""",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\[A-Za-z_]\w*")
_CONSTANT = re.compile(r"(\d*)\s*'")


@dataclasses.dataclass(frozen=True)
class Bits:
    """A part of an expression: some bits of a wire, or constants.

    Attributes:
        name: the wire, as the file writes it; "" for constants.
        high, low: the first and last bit, as written; None for a whole wire.
        count: of the constants; 0 for a wire.
    """

    name: str
    high: int | None = None
    low: int | None = None
    count: int = 0


Expression = tuple[Bits, ...]
"""Parts, the most significant first."""


@dataclasses.dataclass(frozen=True)
class Instance:
    """An instance in a module: `by_name` (port → expression) or `by_position`."""

    name: str
    module: str
    by_name: dict[str, Expression]
    by_position: list[Expression]
    line: int


@dataclasses.dataclass
class Module:
    """A module.

    Attributes:
        ports: names in order, as the file writes them; directions: port → input, output or inout.
        ranges: wire or port → its first and last bit, of those that are vectors.
        instances: of other modules and of library cells.
        assigns: pairs of expressions that are one.
    """

    name: str
    line: int
    ports: list[str] = dataclasses.field(default_factory=list)
    directions: dict[str, str] = dataclasses.field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    instances: list[Instance] = dataclasses.field(default_factory=list)
    assigns: list[tuple[Expression, Expression]] = dataclasses.field(default_factory=list)


def read_verilog(path: str | os.PathLike[str]) -> tuple[dict[str, Module], SourceFile]:
    """The modules of a file, plain or gzipped, by name.

    Raises:
        DesignError: with file and line; the file is cut, holds behaviour or no module, or defines one twice.
    """
    data, source = read_bytes(path)
    reader = _Reader(path, decoded(data, path))
    modules: dict[str, Module] = {}
    while not reader.at_end:
        word = reader.next()
        if word != "module":
            raise reader.error(f"expected 'module', found {word[:40]!r}")
        module = reader.module()
        if modules.setdefault(module.name, module) is not module:
            raise DesignError.at(path, module.line, f"module {module.name!r} is defined twice")
    if not modules:
        raise DesignError.at(path, 1, "the file holds no module; expected structural Verilog")
    return modules, source


class _Reader:
    """The words of a file, read in order."""

    def __init__(self, path: str | os.PathLike[str], text: str) -> None:
        self.path, self.text = path, text
        self.words: list[str] = []
        self.begins: list[int] = []
        at = 0
        while at < len(text):
            found = _WORD.match(text, at)
            if found is None:
                raise DesignError.at(
                    path,
                    text.count("\n", 0, at) + 1,
                    f"{text[at : at + 20]!r} is no structural Verilog: give the netlist that synthesis writes",
                )
            if word := found["word"]:
                # A backslash before a plain name says nothing.
                self.words.append(word[1:] if _ESCAPED.fullmatch(word) else word)
                self.begins.append(at)
            at = found.end()
        self.at = 0
        self.known = 0, 1  # a place that is not behind the last word, and its line

    @property
    def at_end(self) -> bool:
        return self.at == len(self.words)

    @property
    def line(self) -> int:
        """Of the word that was read last."""
        begin = self.begins[min(self.at, len(self.begins)) - 1] if self.begins else 0
        known, line = self.known
        self.known = begin, line + self.text.count("\n", known, begin)
        return self.known[1]

    def error(self, message: str) -> DesignError:
        return DesignError.at(self.path, self.line, message)

    def peek(self) -> str:
        return self.words[self.at] if not self.at_end else ""

    def next(self) -> str:
        if self.at_end:
            raise self.error("the file ends within a module; it seems to be cut")
        self.at += 1
        return self.words[self.at - 1]

    def take(self, word: str) -> bool:
        """Moves past a word if it is the next one."""
        found = self.peek() == word
        self.at += found
        return found

    def expect(self, word: str) -> None:
        found = self.next()
        if found != word:
            raise self.error(f"expected {word!r}, found {found[:40]!r}")

    def name(self, what: str) -> str:
        word = self.next()
        if word[0] != "\\" and not (word[0].isalpha() or word[0] == "_"):
            raise self.error(f"expected {what}, found {word[:40]!r}")
        return word

    def skip_to(self, word: str) -> None:
        while self.next() != word:
            pass

    def skip_brackets(self) -> None:
        """Moves past the brackets that open next."""
        self.expect("(")
        depth = 1
        while depth:
            depth += {"(": 1, ")": -1}.get(self.next(), 0)

    def integer(self) -> int:
        word = self.next()
        if not word.isdecimal():
            raise self.error(f"expected a number, found {word[:40]!r}")
        return int(word)

    def range(self) -> tuple[int, int] | None:
        """`[high:low]` if it follows."""
        if not self.take("["):
            return None
        high = self.integer()
        self.expect(":")
        low = self.integer()
        self.expect("]")
        return high, low

    def module(self) -> Module:
        """A module, whose keyword has been read."""
        module = Module(self.name("the module's name"), self.line)
        if self.take("#"):
            self.skip_brackets()
        if self.take("("):
            self.header(module)
        self.expect(";")
        while (word := self.next()) != "endmodule":
            self.statement(module, word)
        return module

    def header(self, module: Module) -> None:
        """The ports in brackets: names, or declarations."""
        direction, span = "", None
        while not self.take(")"):
            if self.peek() in _DIRECTIONS:
                direction = self.next()
                span = self.kind_and_range()
            name = self.name("a port")
            module.ports.append(name)
            if direction:
                self.declare(module, name, span, direction)
            self.take(",")

    def kind_and_range(self) -> tuple[int, int] | None:
        while self.peek() in (*_NETS, "signed", "unsigned"):
            self.next()
        return self.range()

    def declare(self, module: Module, name: str, span: tuple[int, int] | None, direction: str = "") -> None:
        if span is not None:
            module.ranges[name] = span
        if direction:
            module.directions[name] = direction

    def statement(self, module: Module, word: str) -> None:
        if word in _DIRECTIONS or word in _NETS:
            span = self.kind_and_range()
            while True:
                name = self.name("a wire")
                self.declare(module, name, span, word if word in _DIRECTIONS else "")
                if self.take("="):
                    module.assigns.append(((Bits(name),), self.expression()))
                if not self.take(","):
                    break
            self.expect(";")
        elif word == "assign":
            while True:
                left = self.expression()
                self.expect("=")
                module.assigns.append((left, self.expression()))
                if not self.take(","):
                    break
            self.expect(";")
        elif word in _SKIPPED or word == "specify":
            self.skip_to(";" if word in _SKIPPED else "endspecify")
        elif word in _BEHAVIOUR:
            raise self.error(f"{word!r} is behaviour: give the netlist that synthesis writes")
        elif word != ";":
            self.instances(module, word)

    def instances(self, module: Module, kind: str) -> None:
        if self.take("#"):
            self.skip_brackets()
        while True:
            name, line = self.name(f"an instance of {kind[:40]!r}"), self.line
            by_name: dict[str, Expression] = {}
            by_position: list[Expression] = []
            self.expect("(")
            while not self.take(")"):
                if self.take("."):
                    port = self.name("a port")
                    self.expect("(")
                    by_name[port] = () if self.peek() == ")" else self.expression()
                    self.expect(")")
                else:
                    by_position.append(() if self.peek() == "," else self.expression())
                self.take(",")
            module.instances.append(Instance(name, kind, by_name, by_position, line))
            if not self.take(","):
                break
        self.expect(";")

    def expression(self) -> Expression:
        """Wires, their bits, constants, and all of these joined or repeated in braces."""
        word = self.next()
        if word == "{":
            return self.joined()
        if (constant := _CONSTANT.match(word)) or word[0].isdecimal():
            return (Bits("", count=int(constant[1] or 1) if constant else 1),)
        if word[0] in '()[]{},;:.=#"':
            raise self.error(f"expected a wire, found {word[:40]!r}")
        if not self.take("["):
            return (Bits(word),)
        high = self.integer()
        low = self.integer() if self.take(":") else high
        self.expect("]")
        return (Bits(word, high, low),)

    def joined(self) -> Expression:
        """What stands in braces, of which the first has been read."""
        parts: list[Bits] = []
        if self.peek().isdecimal():
            times = self.integer()
            if self.take("{"):
                parts = [*self.joined()] * times
                self.expect("}")
                return tuple(parts)
            parts.append(Bits("", count=1))
            self.take(",")
        while not self.take("}"):
            parts += self.expression()
            self.take(",")
        return tuple(parts)


def wires(module: Module, expression: Sequence[Bits]) -> list[tuple[str, int | None] | None]:
    """The single wires of an expression, the most significant first: name and bit (None: no vector); None: constant."""
    found: list[Any] = []
    for part in expression:
        span = module.ranges.get(part.name)
        if not part.name:
            found += [None] * part.count
        elif part.high is None or part.low is None:
            found += [(part.name, bit) for bit in bits(span)] if span else [(part.name, None)]
        else:
            found += [(part.name, bit) for bit in bits((part.high, part.low))]
    return found


def bits(span: tuple[int, int]) -> range:
    """The bits of a vector, the most significant first."""
    high, low = span
    return range(high, low - 1, -1) if high >= low else range(high, low + 1)
