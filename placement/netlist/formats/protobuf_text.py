"""Parses the part of protocol buffers' text format that a netlist (a `GraphDef` of nodes) uses.

The grammar is the published one (protobuf.dev, "Text Format Language Specification"): comments, `field: value`,
`field { … }`, `field < … >`, lists in brackets, `,` or `;` between fields, single- and double-quoted strings with
escapes, adjacent strings joined. The native reader accepts files in the form that programs write; this one accepts all
others, and reports the faults of a file and their positions. (Google's Python parser for this format does not report
positions of values, treats unknown escapes as text and rejects others that the specification has.)
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeAlias

from placement.netlist.errors import DesignError

Value: TypeAlias = "str | float | list[_Field]"

_TOKEN = re.compile(
    r"""(?:\s+|\#[^\n]*)*(?:
    (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>-?\s*(?:0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fF]?(?![A-Za-z0-9_.]))
    |(?P<word>-?\s*[A-Za-z_][A-Za-z0-9_]*)
    |(?P<mark>[{}<>\[\]:,;])
    |(?P<unknown>.)
    |(?P<end>\Z))""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_SIMPLE_ESCAPES = dict(zip("abfnrtv\\'\"?", "\a\b\f\n\r\t\v\\'\"?", strict=True))
_DEEPEST = 32

_GRAPH_FIELDS = ("node", "library", "versions", "version", "debug_info")
_NODE_FIELDS = ("name", "op", "input", "device", "attr", "experimental_debug_info", "experimental_type")
_TEXTS, _NUMBERS = ("placeholder", "s"), ("f", "i")
_VALUE_FIELDS = (*_TEXTS, *_NUMBERS, "b", "type", "shape", "tensor", "list", "func")


class _Word(str):
    """An unquoted word used as a value: true, -inf, DT_FLOAT."""


class _Field(NamedTuple):
    """One field of a message: a string, a number (float), a word, or the fields of a nested message."""

    name: str
    value: Value
    at: int


@dataclasses.dataclass(slots=True)
class TextNode:
    """One `node { … }` as written. Positions (`at`) are character offsets, for `TextParser.error`.

    Attributes:
        file: the parser of its file.
        at: the offset of its beginning.
        name: its name.
        inputs: its `input` fields, each with its position.
        attributes: key → (value, position); value None for one that is neither text nor a number.
    """

    file: TextParser
    at: int
    name: str = ""
    inputs: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    attributes: dict[str, tuple[str | float | None, int]] = dataclasses.field(default_factory=dict)

    def number(self, key: str, largest: float) -> float:
        """The number in an attribute, or NaN without it; raises DesignError beyond ±`largest`."""
        if key not in self.attributes:
            return math.nan
        value, _ = self.attributes[key]
        if not isinstance(value, float) or not abs(value) <= largest:
            raise self.wrong(key, f"a finite number up to ±{largest:g}")
        return value

    def text(self, key: str) -> str | None:
        """The text of an attribute, or None without it."""
        value = self.attributes[key][0] if key in self.attributes else None
        if key in self.attributes and not isinstance(value, str):
            raise self.wrong(key, "a string")
        return value  # type: ignore[return-value]

    def choice(self, key: str, known: Mapping[str, int], right: str) -> int:
        """The number that `known` has for the text of an attribute, or -1 without it."""
        value = self.text(key)
        if value is not None and value not in known:
            raise self.wrong(key, right)
        return -1 if value is None else known[value]

    def wrong(self, key: str, right: str) -> DesignError:
        """Makes an error about the value of an attribute."""
        value, at = self.attributes[key]
        return self.file.error(at, f"{key} of node {self.name!r} is {value!r}; must be {right}")


class TextParser:
    """The full grammar, one token ahead: its `kind`, its `token` as written, and the offset of its beginning (`at`)."""

    def __init__(self, path: object, text: str) -> None:
        self.path, self.text, self.end = path, text, 0
        self.advance()

    def line(self, at: int) -> int:
        """The line of character offset `at`."""
        return self.text.count("\n", 0, at) + 1

    def error(self, at: int, message: str) -> DesignError:
        """Makes a DesignError with the file and line of character offset `at`."""
        return DesignError.at(self.path, self.line(at), message)

    def nodes(self) -> list[TextNode]:
        """All nodes in file order; raises DesignError with file and line if the text is no valid graph."""
        graph: list[_Field] = []
        while self.kind != "end":
            graph += self.field(0)
        known = self.known(_Field("", graph, 0), "the file", _GRAPH_FIELDS)
        return [self.node(field) for field in known if field.name == "node"]

    def node(self, message: _Field) -> TextNode:
        """One node; irrelevant fields are dropped."""
        node = TextNode(self, message.at)
        for field in self.known(message, "a node", _NODE_FIELDS, once=("name",)):
            if field.name == "name":
                node.name = self.quoted(field)
            elif field.name == "input":
                node.inputs.append((self.quoted(field), field.at))
            elif field.name == "attr":
                key, value = self.attribute(field)
                if key in node.attributes:
                    raise self.error(field.at, f"attribute {key!r} is given twice in one node")
                node.attributes[key] = value
        if not node.name:
            raise self.error(node.at, "this node has no name")
        return node

    def attribute(self, attr: _Field) -> tuple[str, tuple[str | float | None, int]]:
        """The key of an `attr { key value }`, and its value with its position."""
        fields = {field.name: field for field in self.known(attr, "attr", ("key", "value"), once=("key", "value"))}
        if "key" not in fields:
            raise self.error(attr.at, "attr must have a key in quotes")
        key, value = self.quoted(fields["key"]), fields.get("value", _Field("value", [], attr.at)).value
        content = self.known(_Field("", value, attr.at), f"the value of attribute {key!r}", _VALUE_FIELDS)
        if len(content) > 1:
            names = ", ".join(field.name for field in content)
            raise self.error(attr.at, f"attribute {key!r} has several values: {names}")
        (name, given, at), *_ = [*content, _Field("", [], attr.at)]
        if name in _TEXTS:
            return key, (self.quoted(content[0]), at)
        if name not in _NUMBERS:
            return key, (None, at)
        if isinstance(given, _Word) and given.lstrip("-").lower() in ("inf", "infinity", "nan"):
            given = float(given)
        if not isinstance(given, float):
            raise self.error(at, f"attribute {key!r}: {name} must be a number")
        return key, (given, at)

    def quoted(self, field: _Field) -> str:
        """The text of a field; raises DesignError if it is not text."""
        if not isinstance(field.value, str) or isinstance(field.value, _Word):
            raise self.error(field.at, f"{field.name} must be a string in quotes")
        return field.value

    def known(self, message: _Field, what: str, names: Collection[str], *, once: Collection[str] = ()) -> list[_Field]:
        """The fields of a message; unknown fields and repeated ones of `once` are rejected."""
        if not isinstance(message.value, list):
            raise self.error(message.at, f"{what} must be a message in braces")
        found = set[str]()
        for field in message.value:
            if field.name not in names:
                raise self.error(field.at, f"unknown field {field.name!r} in {what}; known are {', '.join(names)}")
            if field.name in found and field.name in once:
                raise self.error(field.at, f"field {field.name!r} is given twice in {what}")
            found.add(field.name)
        return message.value

    def advance(self) -> None:
        found = _TOKEN.match(self.text, self.end)
        assert found is not None and found.lastgroup is not None
        self.kind, self.token = found.lastgroup, found[found.lastgroup]
        self.at, self.end = found.span(found.lastgroup)

    def take(self, marks: str) -> bool:
        """Moves past the current token if it is one of `marks`."""
        taken = self.kind == "mark" and self.token in marks
        if taken:
            self.advance()
        return taken

    def expected(self, what: str) -> DesignError:
        if self.token in ('"', "'"):
            return self.error(self.at, "this string has no closing quote on its line")
        rest = self.text[self.at : self.at + 20].split("\n")[0]
        found = repr(rest) if rest else "the end of the file or line"
        return self.error(self.at, f"expected {what}, found {found}")

    def field(self, depth: int) -> list[_Field]:
        """Reads one field, or several if its value is a list; the marks between fields are skipped."""
        if self.take(",;"):
            return []
        name, at = self.token, self.at
        if self.kind != "word" or name.startswith("-"):
            raise self.expected("a field's name")
        self.advance()
        if not self.take(":") and self.token not in ("{", "<"):
            raise self.expected(f"':' or '{{' after {name!r}")
        if not self.take("["):
            return [_Field(name, self.value(depth), at)]
        values = list[_Field]()
        while not self.take("]"):
            if values and not self.take(","):
                raise self.expected("',' or ']' in a list")
            values.append(_Field(name, self.value(depth), at))
        return values

    def value(self, depth: int) -> Value:
        token, at = self.token, self.at
        if self.kind == "string":
            return self.string()
        if self.kind in ("number", "word"):
            is_word = self.kind == "word"
            self.advance()
            return _Word("".join(token.split())) if is_word else self.number(token, at)
        if self.take("{<"):
            return self.message(">" if token == "<" else "}", at, depth + 1)
        raise self.expected("a value")

    def message(self, close: str, opened: int, depth: int) -> list[_Field]:
        """Reads the fields of a message up to its closing brace."""
        if depth > _DEEPEST:
            raise self.error(opened, f"messages are nested more than {_DEEPEST} deep")
        fields: list[_Field] = []
        while not self.take(close):
            if self.kind == "end":
                message = "the file ends before the message opened here is closed; it seems to be cut"
                raise self.error(opened, message)
            fields += self.field(depth)
        return fields

    def number(self, token: str, at: int) -> float:
        sign, text = (-1.0, token[1:].lstrip()) if token.startswith("-") else (1.0, token)
        try:
            if text[:2] in ("0x", "0X"):
                return sign * int(text, 16)
            text = text.rstrip("fF")
            return sign * (int(text, 8) if len(text) > 1 and text[0] == "0" and text.isdecimal() else float(text))
        except (ValueError, OverflowError):
            raise self.error(at, f"{text[:40]!r} is no number") from None

    def string(self) -> str:
        """Reads one string, or several adjacent ones joined. Octal and hexadecimal escapes are bytes of UTF-8."""
        start, joined = self.at, b""
        while self.kind == "string":
            pieces = _ESCAPE.sub(self.escaped, self.token[1:-1])
            joined += pieces.encode("utf-8", "surrogateescape")
            self.advance()
        try:
            return joined.decode("utf-8")
        except UnicodeDecodeError:
            raise self.error(start, "the escapes in this string make no UTF-8 text") from None

    def escaped(self, escape: re.Match[str]) -> str:
        """The value of an escape; a byte above 127 is the surrogate that represents it."""
        octal, hexadecimal, short, long, simple = escape.groups()
        if simple is not None:
            if simple not in _SIMPLE_ESCAPES:
                raise self.error(self.at, f"unknown escape {escape[0]!r} in a string")
            return _SIMPLE_ESCAPES[simple]
        code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
        if (octal and code > 0xFF) or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.error(self.at, f"{escape[0]} is no character")
        return bytes([code]).decode("ascii", "surrogateescape") if octal or hexadecimal else chr(code)
