"""The text format of protocol buffers, as far as a netlist (a `GraphDef` of nodes) uses it.

The grammar is the published one (protobuf.dev, "Text Format Language Specification"): comments, `field: value`,
`field { … }`, `field < … >`, lists in brackets, `,` or `;` between fields, single- and double-quoted strings with
escapes, adjacent strings joined. The native reader accepts files as programs write them; this one accepts all others,
and reports what is wrong with a file and where. (Google's Python parser for this format is no help: it takes unknown
escapes for text, rejects others that the specification has, and does not report positions of values.)
"""

from __future__ import annotations

import dataclasses
import re
from typing import NamedTuple, TypeAlias

from placement.netlist.errors import DesignError

Scalar: TypeAlias = "str | float | bool | None"
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
_VALUE_FIELDS = ("placeholder", "s", "f", "i", "b", "type", "shape", "tensor", "list", "func")


@dataclasses.dataclass(slots=True)
class TextNode:
    """One `node { … }` as written. Positions are character offsets, for `TextFile.error`.

    Attributes:
        at: where the node begins.
        name: its name.
        inputs, inputs_at: its `input` fields and their positions.
        attributes: key → (value, position); the value of a nested message is None.
    """

    at: int
    name: str | None = None
    inputs: list[str] = dataclasses.field(default_factory=list)
    inputs_at: list[int] = dataclasses.field(default_factory=list)
    attributes: dict[str, tuple[Scalar, int]] = dataclasses.field(default_factory=dict)


class _Word(str):
    """An unquoted word used as a value: true, -inf, DT_FLOAT."""


class _Field(NamedTuple):
    """One field of a message: a string, a number (float), a word, or the fields of a nested message."""

    name: str
    value: Value
    at: int


class TextFile:
    """A text and its path; turns positions into messages with line numbers."""

    def __init__(self, path: object, text: str) -> None:
        self.path = path
        self.text = text

    def error(self, at: int, message: str) -> DesignError:
        """A DesignError naming file and line of character offset `at`."""
        return DesignError.at(self.path, self.text.count("\n", 0, at) + 1, message)


def parse_nodes(file: TextFile) -> list[TextNode]:
    """All nodes in file order; raises DesignError with file and line if the text is no valid graph."""
    nodes: list[TextNode] = []
    parser = _Parser(file)
    while parser.kind != "end":
        for field in _known(file, parser.field(0), "the file", _GRAPH_FIELDS):
            if field.name == "node":
                nodes.append(_node(file, field))
    return nodes


def _node(file: TextFile, field: _Field) -> TextNode:
    """One node; fields without meaning here are dropped."""
    node = TextNode(field.at)
    for name, inner, at in _fields(file, field, "a node", _NODE_FIELDS):
        if name in ("name", "input") and not _is_text(inner):
            raise file.error(at, f"{name} must be a string in quotes")
        if name == "name":
            if node.name is not None:
                raise file.error(at, f"second name {inner!r} in node {node.name!r}")
            node.name = str(inner)
        elif name == "input":
            node.inputs.append(str(inner))
            node.inputs_at.append(at)
        elif name == "attr":
            key, scalar, value_at = _attribute(file, _Field(name, inner, at))
            if key in node.attributes:
                raise file.error(at, f"attribute {key!r} is given twice in one node")
            node.attributes[key] = (scalar, value_at)
    if not node.name:
        raise file.error(node.at, "this node has no name")
    return node


def _attribute(file: TextFile, attr: _Field) -> tuple[str, Scalar, int]:
    """Key and value of an `attr { key value }`, and the position of the value."""
    fields = _once(file, attr, "attr", ("key", "value"))
    key = fields["key"].value if "key" in fields else None
    if not isinstance(key, str) or not _is_text(key):
        raise file.error(attr.at, "attr must have a key in quotes")
    given = fields.get("value", _Field("value", [], attr.at))
    content = _once(file, given._replace(at=attr.at), f"the value of attribute {key!r}", _VALUE_FIELDS)
    if len(content) > 1:
        raise file.error(attr.at, f"attribute {key!r} has several values: {', '.join(content)}")
    for kind, field in content.items():
        try:
            return key, _scalar(kind, field.value), field.at
        except ValueError as error:
            raise file.error(field.at, f"attribute {key!r}: {error}") from None
    return key, None, attr.at


def _scalar(kind: str, value: Value) -> Scalar:
    """The value of a field of AttrValue, None for kinds that netlists do not use; raises ValueError."""
    if kind in ("placeholder", "s"):
        if not isinstance(value, str) or not _is_text(value):
            raise ValueError(f"{kind} must be a string in quotes")
        return value
    if kind in ("f", "i"):
        if isinstance(value, _Word) and value.lstrip("-").lower() in ("inf", "infinity", "nan"):
            return float(value)
        if not isinstance(value, float):
            raise ValueError(f"{kind} must be a number")
        return value
    if kind == "b":
        text = value.lower() if isinstance(value, _Word) else {1.0: "true", 0.0: "false"}.get(value, "")  # type: ignore[arg-type]
        if text not in ("true", "t", "false", "f"):
            raise ValueError("b must be true or false")
        return text in ("true", "t")
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, _Word)


def _fields(file: TextFile, message: _Field, what: str, known: tuple[str, ...]) -> list[_Field]:
    """The fields of a message, none of them unknown."""
    if not isinstance(message.value, list):
        raise file.error(message.at, f"{what} must be a message in braces")
    return _known(file, message.value, what, known)


def _known(file: TextFile, fields: list[_Field], what: str, known: tuple[str, ...]) -> list[_Field]:
    for field in fields:
        if field.name not in known:
            raise file.error(field.at, f"unknown field {field.name!r} in {what}; known are {', '.join(known)}")
    return fields


def _once(file: TextFile, message: _Field, what: str, known: tuple[str, ...]) -> dict[str, _Field]:
    """The fields of a message, each of which may occur once."""
    result: dict[str, _Field] = {}
    for field in _fields(file, message, what, known):
        if field.name in result:
            raise file.error(field.at, f"field {field.name!r} is given twice in {what}")
        result[field.name] = field
    return result


class _Parser:
    """The full grammar, one token ahead: its `kind`, its `token` as written, and where it begins (`at`)."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.end = 0
        self.advance()

    def advance(self) -> None:
        found = _TOKEN.match(self.file.text, self.end)
        assert found is not None and found.lastgroup is not None
        self.kind, self.token = found.lastgroup, found[found.lastgroup]
        self.at, self.end = found.span(found.lastgroup)

    def take(self, marks: str) -> bool:
        """Moves past one of `marks` if it is the current token."""
        taken = self.kind == "mark" and self.token in marks
        if taken:
            self.advance()
        return taken

    def expected(self, what: str) -> DesignError:
        if self.token in ('"', "'"):
            return self.file.error(self.at, "this string has no closing quote on its line")
        rest = self.file.text[self.at : self.at + 20].split("\n")[0]
        found = repr(rest) if rest else "the end of the file or line"
        return self.file.error(self.at, f"expected {what}, found {found}")

    def field(self, depth: int) -> list[_Field]:
        """One field, as several if its value is a list; the marks between fields are skipped."""
        if self.take(",;"):
            return []
        name, at = self.token, self.at
        if self.kind != "word" or name.startswith("-"):
            raise self.expected("a field's name")
        self.advance()
        if not self.take(":") and self.token not in ("{", "<"):
            raise self.expected(f"':' or '{{' after {name!r}")
        values = self.items(depth) if self.take("[") else [self.value(depth)]
        return [_Field(name, value, at) for value in values]

    def items(self, depth: int) -> list[Value]:
        """The values of a list, behind its opening bracket."""
        if self.take("]"):
            return []
        values = [self.value(depth)]
        while self.take(","):
            values.append(self.value(depth))
        if not self.take("]"):
            raise self.expected("',' or ']' in a list")
        return values

    def value(self, depth: int) -> Value:
        if self.kind == "string":
            return self.string()
        token, at = self.token, self.at
        if self.kind == "number":
            self.advance()
            return self.number(token, at)
        if self.kind == "word":
            self.advance()
            return _Word("".join(token.split()))
        if self.take("{<"):
            return self.message(">" if token == "<" else "}", at, depth + 1)
        raise self.expected("a value")

    def message(self, close: str, opened: int, depth: int) -> list[_Field]:
        """The fields of a message up to its closing brace."""
        if depth > _DEEPEST:
            raise self.file.error(opened, f"messages are nested more than {_DEEPEST} deep")
        fields: list[_Field] = []
        while not self.take(close):
            if self.kind == "end":
                message = "the file ends before the message opened here is closed; it seems to be cut"
                raise self.file.error(opened, message)
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
            raise self.file.error(at, f"{text[:40]!r} is no number") from None

    def string(self) -> str:
        """One string, or several adjacent ones joined. Octal and hexadecimal escapes are bytes of UTF-8."""
        start, pieces = self.at, []
        while self.kind == "string":
            raw, end = self.token[1:-1], 0
            for escape in _ESCAPE.finditer(raw):
                pieces += [raw[end : escape.start()].encode("utf-8"), self.escaped(escape)]
                end = escape.end()
            pieces.append(raw[end:].encode("utf-8"))
            self.advance()
        try:
            return b"".join(pieces).decode("utf-8")
        except UnicodeDecodeError:
            raise self.file.error(start, "the escapes in this string make no UTF-8 text") from None

    def escaped(self, escape: re.Match[str]) -> bytes:
        """The bytes of one escape."""
        octal, hexadecimal, short, long, simple = escape.groups()
        if simple is not None:
            if simple not in _SIMPLE_ESCAPES:
                raise self.file.error(self.at, f"unknown escape {escape[0]!r} in a string")
            return _SIMPLE_ESCAPES[simple].encode("utf-8")
        code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
        if (octal and code > 0xFF) or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.file.error(self.at, f"{escape[0]} is no character")
        return bytes([code]) if octal or hexadecimal else chr(code).encode("utf-8")
