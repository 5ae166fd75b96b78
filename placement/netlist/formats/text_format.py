"""The text format of protocol buffers, as far as a netlist (a `GraphDef` of nodes) uses it.

The grammar is the published one (protobuf.dev, "Text Format Language Specification"): comments, `field: value`,
`field { … }`, `field < … >`, lists in brackets, `,` or `;` between fields, single- and double-quoted strings with
escapes, adjacent strings joined. Two readers share it: one regular expression takes a whole `input`, `name` or
`attr` as real files write them, and whatever it does not know goes to the full grammar below it.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TypeAlias

from placement.netlist.errors import DesignError

Scalar: TypeAlias = "str | float | bool | None"

_STRING = r'"([^"\\\n]*)"'
# Strings side by side are one string; a comment may stand between them.
_ALONE = _STRING + r"(?!\s*[\"'#])"
# Decimal only: the format reads a leading 0 as octal, which the full grammar handles.
_NUMBER = r"(-?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)"
_VALUE = rf"value\s*\{{\s*(?:(?:placeholder|s)\s*:\s*{_STRING}|[fi]\s*:\s*{_NUMBER})\s*\}}"
_FIELD = re.compile(
    rf"\s*(?:attr\s*\{{\s*key\s*:\s*{_STRING}\s*{_VALUE}\s*\}}|input\s*:\s*{_ALONE}|name\s*:\s*{_ALONE}|(\}}))"
)
_KEY, _TEXT, _DECIMAL, _INPUT, _NAME, _CLOSE = range(1, 7)
_OPEN_NODE = re.compile(r"\s*node\s*\{")
_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r"""(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)')""")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_NUMERAL = re.compile(r"(0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([fF]?)(?![A-Za-z0-9_.])")
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
        attributes: key → (value, position); a value that is a message of its own is None.
    """

    at: int
    name: str | None = None
    inputs: list[str] = dataclasses.field(default_factory=list)
    inputs_at: list[int] = dataclasses.field(default_factory=list)
    attributes: dict[str, tuple[Scalar, int]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class _Word:
    """An unquoted word used as a value: true, inf, DT_FLOAT."""

    text: str


@dataclasses.dataclass(frozen=True)
class _Message:
    """A value in braces: (field name, value, position) each."""

    fields: list[tuple[str, object, int]]


class TextFile:
    """A text and the place that it came from; turns positions into messages with line numbers."""

    def __init__(self, path: object, text: str) -> None:
        self.path = path
        self.text = text

    def error(self, at: int, message: str) -> DesignError:
        """A DesignError naming file and line of character offset `at`."""
        return DesignError.at(self.path, self.text.count("\n", 0, at) + 1, message)


def parse_nodes(file: TextFile) -> list[TextNode]:
    """All nodes in file order; raises DesignError with file and line where the text is no valid graph."""
    parser = _Parser(file)
    nodes: list[TextNode] = []
    while True:
        opened = _OPEN_NODE.match(file.text, parser.at)
        if opened:
            nodes.append(parser.node(opened.end()))
            continue
        parser.skip_space()
        if parser.at == len(file.text):
            return nodes
        if parser.take_separator():
            continue
        name, values, at = parser.field(_GRAPH_FIELDS, "the file", 0)
        if name == "node":
            nodes.extend(parser.node_of(value, at) for value in values)


class _Parser:
    """Reads from `at` onwards, in `file.text`."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.text = file.text
        self.at = 0

    # A node, the fast way: one match per field.

    def node(self, start: int) -> TextNode:
        """The node whose fields begin at `start`; leaves `at` behind its closing brace."""
        text, match, at = self.text, _FIELD.match, start
        node = TextNode(start - 1)
        inputs, inputs_at, attributes = node.inputs, node.inputs_at, node.attributes
        while True:
            found = match(text, at)
            if found is None:
                self.at = at
                if self.slow_field(node):
                    return self.named(node)
                at = self.at
                continue
            at = found.end()
            group = found.lastindex
            if group in (_DECIMAL, _TEXT):
                key, value = found[_KEY], found[group]
                if key in attributes:
                    raise self.file.error(found.start(_KEY), f"attribute {key!r} is given twice in one node")
                attributes[key] = (float(value) if group == _DECIMAL else value, found.start(group))
            elif group == _INPUT:
                inputs.append(found[_INPUT])
                inputs_at.append(found.start(_INPUT))
            elif group == _NAME:
                self.set_name(node, found[_NAME], found.start(_NAME))
            else:
                self.at = at
                return self.named(node)

    def set_name(self, node: TextNode, name: str, at: int) -> None:
        if node.name is not None:
            raise self.file.error(at, f"second name {name!r} in node {node.name!r}")
        node.name = name

    def named(self, node: TextNode) -> TextNode:
        """`node`, having checked that it is complete."""
        if not node.name:
            raise self.file.error(node.at, "this node has no name")
        return node

    # The full grammar.

    def slow_field(self, node: TextNode) -> bool:
        """Reads one field of `node`, or its closing brace (then True)."""
        self.skip_space()
        if self.at == len(self.text):
            raise self.file.error(
                len(self.text.rstrip()),
                f"the file ends inside node {node.name or '(unnamed)'!r}, opened on line "
                f"{self.text.count(chr(10), 0, node.at) + 1}; it seems to be cut",
            )
        if self.text[self.at] == "}":
            self.at += 1
            return True
        if self.take_separator():
            return False
        name, values, at = self.field(_NODE_FIELDS, f"node {node.name or '(unnamed)'!r}", 1)
        for value in values:
            self.apply(node, name, value, at)
        return False

    def node_of(self, value: object, at: int) -> TextNode:
        """A node that the full grammar has read."""
        if not isinstance(value, _Message):
            raise self.file.error(at, "node must be a message in braces")
        node = TextNode(at)
        for name, inner, inner_at in value.fields:
            if name not in _NODE_FIELDS:
                raise self.file.error(
                    inner_at, f"unknown field {name!r} in a node; known are {', '.join(_NODE_FIELDS)}"
                )
            self.apply(node, name, inner, inner_at)
        return self.named(node)

    def apply(self, node: TextNode, name: str, value: object, at: int) -> None:
        """Enters a field into `node`; fields without meaning here are dropped."""
        if name in ("name", "input"):
            if not isinstance(value, str):
                raise self.file.error(at, f"{name} must be a string in quotes")
            if name == "name":
                self.set_name(node, value, at)
            else:
                node.inputs.append(value)
                node.inputs_at.append(at)
        elif name == "attr":
            key, scalar = self.attribute(value, at)
            if key in node.attributes:
                raise self.file.error(at, f"attribute {key!r} is given twice in one node")
            node.attributes[key] = (scalar, at)

    def attribute(self, value: object, at: int) -> tuple[str, Scalar]:
        """Key and value of an `attr { key value }`."""
        fields = self.once(value, at, ("key", "value"), "attr")
        key = fields.get("key")
        if not isinstance(key, str):
            raise self.file.error(at, "attr must have a key in quotes")
        content = self.once(fields.get("value", _Message([])), at, _VALUE_FIELDS, f"the value of attribute {key!r}")
        if len(content) > 1:
            raise self.file.error(at, f"attribute {key!r} has several values: {', '.join(content)}")
        for kind, inner in content.items():
            return key, self.scalar_of(kind, inner, key, at)
        return key, None

    def once(self, value: object, at: int, known: tuple[str, ...], what: str) -> dict[str, object]:
        """The fields of a message, each of which may stand there once."""
        if not isinstance(value, _Message):
            raise self.file.error(at, f"{what} must be a message in braces")
        fields: dict[str, object] = {}
        for name, inner, inner_at in value.fields:
            if name not in known:
                raise self.file.error(inner_at, f"unknown field {name!r} in {what}; known are {', '.join(known)}")
            if name in fields:
                raise self.file.error(inner_at, f"field {name!r} is given twice in {what}")
            fields[name] = inner
        return fields

    def scalar_of(self, kind: str, value: object, key: str, at: int) -> Scalar:
        """The value of a field of AttrValue; None for kinds that netlists have no use for."""
        if kind in ("placeholder", "s"):
            if not isinstance(value, str):
                raise self.file.error(at, f"attribute {key!r}: {kind} must be a string in quotes")
            return value
        if kind in ("f", "i"):
            if isinstance(value, _Word) and value.text.lstrip("-").lower() in ("inf", "infinity", "nan"):
                return float(value.text)
            if not isinstance(value, float):
                raise self.file.error(at, f"attribute {key!r}: {kind} must be a number")
            return value
        if kind == "b":
            text = value.text.lower() if isinstance(value, _Word) else {1.0: "true", 0.0: "false"}.get(value, "")  # type: ignore[call-overload]
            if text not in ("true", "t", "false", "f"):
                raise self.file.error(at, f"attribute {key!r}: b must be true or false")
            return text in ("true", "t")
        return None

    def field(self, known: tuple[str, ...], what: str, depth: int) -> tuple[str, list[object], int]:
        """One field: its name, its values (several for a list) and its position."""
        at = self.at
        name = self.name_of_field()
        if known and name not in known:
            raise self.file.error(at, f"unknown field {name!r} in {what}; known are {', '.join(known)}")
        self.skip_space()
        colon = self.take(":")
        self.skip_space()
        if self.text[self.at : self.at + 1] in ("{", "<"):
            values: list[object] = [self.message(depth)]
        elif not colon:
            raise self.file.error(self.at, f"expected ':' or '{{' after {name!r}, found {self.found()}")
        elif self.take("["):
            values = self.items(depth)
        else:
            values = [self.scalar()]
        self.skip_space()
        self.take_separator()
        return name, values, at

    def name_of_field(self) -> str:
        found = _IDENTIFIER.match(self.text, self.at)
        if not found:
            raise self.file.error(self.at, f"expected a field's name, found {self.found()}")
        self.at = found.end()
        return found[0]

    def message(self, depth: int) -> _Message:
        """A message from its opening brace to its closing one."""
        opened = self.at
        if depth >= _DEEPEST:
            raise self.file.error(opened, f"messages are nested more than {_DEEPEST} deep")
        close = "}" if self.text[self.at] == "{" else ">"
        self.at += 1
        fields: list[tuple[str, object, int]] = []
        while True:
            self.skip_space()
            if self.at == len(self.text):
                raise self.file.error(
                    opened, "the file ends before the message opened here is closed; it seems to be cut"
                )
            if self.take(close):
                return _Message(fields)
            name, values, at = self.field((), "", depth + 1)
            fields.extend((name, value, at) for value in values)

    def items(self, depth: int) -> list[object]:
        """The values of a list, behind its opening bracket."""
        values: list[object] = []
        self.skip_space()
        if self.take("]"):
            return values
        while True:
            self.skip_space()
            is_message = self.text[self.at : self.at + 1] in ("{", "<")
            values.append(self.message(depth + 1) if is_message else self.scalar())
            self.skip_space()
            if self.take("]"):
                return values
            if not self.take(","):
                raise self.file.error(self.at, f"expected ',' or ']' in a list, found {self.found()}")

    def scalar(self) -> object:
        """A string, a number (float) or a word."""
        if self.text[self.at : self.at + 1] in ('"', "'"):
            return self.string()
        sign = "-" if self.take("-") else ""
        self.skip_space()
        number = _NUMERAL.match(self.text, self.at)
        if number:
            self.at = number.end()
            return -self.number(number[1], number.start()) if sign else self.number(number[1], number.start())
        word = _IDENTIFIER.match(self.text, self.at)
        if not word:
            raise self.file.error(self.at, f"expected a value, found {self.found()}")
        self.at = word.end()
        return _Word(sign + word[0])

    def number(self, text: str, at: int) -> float:
        try:
            if text[:2] in ("0x", "0X"):
                return float(int(text, 16))
            if len(text) > 1 and text[0] == "0" and text.isdecimal():
                return float(int(text, 8))
            return float(text)
        except (ValueError, OverflowError):
            raise self.file.error(at, f"{text[:40]!r} is no number") from None

    def string(self) -> str:
        """One string, or several side by side joined. Octal and hexadecimal escapes are bytes of UTF-8."""
        start, parts = self.at, []
        while found := _QUOTED.match(self.text, self.at):
            raw = found[1] if found[1] is not None else found[2]
            parts.append(self.unescaped(raw, found.start()))
            self.at = found.end()
            self.skip_space()
        if not parts:
            raise self.file.error(start, "this string has no closing quote on its line")
        try:
            return b"".join(parts).decode("utf-8")
        except UnicodeDecodeError:
            raise self.file.error(start, "the escapes in this string make no UTF-8 text") from None

    def unescaped(self, raw: str, start: int) -> bytes:
        """The bytes of a string as written between its quotes."""
        parts, end = [], 0
        for escape in _ESCAPE.finditer(raw):
            parts += [raw[end : escape.start()].encode("utf-8"), self.escaped(escape, start)]
            end = escape.end()
        return b"".join([*parts, raw[end:].encode("utf-8")])

    def escaped(self, escape: re.Match[str], start: int) -> bytes:
        """The bytes that one escape stands for."""
        octal, hexadecimal, short, long, simple = escape.groups()
        if simple is not None:
            if simple not in _SIMPLE_ESCAPES:
                raise self.file.error(start, f"unknown escape {escape[0]!r} in a string")
            return _SIMPLE_ESCAPES[simple].encode("utf-8")
        code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
        if (octal and code > 0xFF) or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.file.error(start, f"{escape[0]} is no character")
        return bytes([code]) if octal or hexadecimal else chr(code).encode("utf-8")

    def skip_space(self) -> None:
        """Moves past white space and comments."""
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def take(self, mark: str) -> bool:
        """Moves past `mark` if it stands here."""
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def take_separator(self) -> bool:
        """Moves past the mark that may stand behind a field."""
        return self.take(",") or self.take(";")

    def found(self) -> str:
        """What stands here, for messages."""
        rest = self.text[self.at : self.at + 20].split("\n")[0]
        return repr(rest) if rest else "the end of the file or line"
