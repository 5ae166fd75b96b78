"""Reads netlists in any form of protobuf's text format with Google's parser; the native reader is faster for the usual
form.

A message names the line of a fault in the text, or of the node whose values are wrong.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from placement.netlist.errors import DesignError

# Message → its fields, numbered from 1; those with * are repeated. Unlike in a `GraphDef`, `f` is a double.
_MESSAGES = {
    "Value": ("string placeholder", "string s", "double f", "int64 i"),
    "Attribute": ("string key", "Value value"),
    "Node": ("string name", "string *input", "Attribute *attr"),
    "Graph": ("Node *node",),
}
_SCALARS = {"string": 9, "double": 1, "int64": 3}  # FieldDescriptorProto.Type
_MESSAGE, _OPTIONAL, _REPEATED = 11, 1, 3


@functools.cache
def _graph_class() -> Any:
    """The message of a whole file."""
    file = descriptor_pb2.FileDescriptorProto(name="placement_netlist.proto", package="placement_netlist")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (kind, field) in enumerate(map(str.split, fields), start=1):
            label = _REPEATED if field.startswith("*") else _OPTIONAL
            added = message.field.add(name=field.strip("*"), number=number, label=label)
            added.type = _SCALARS.get(kind, _MESSAGE)
            if kind not in _SCALARS:
                added.type_name = f".{file.package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.Graph"))


@dataclasses.dataclass(frozen=True)
class TextNode:
    """One node of the file `path` with this text, and the character offset `at` of its name.

    An attribute is None if it is neither text nor a number.
    """

    path: object
    file: str
    at: int
    name: str
    inputs: list[str]
    attributes: dict[str, str | float | None]

    def number(self, key: str, largest: float) -> float:
        """The number in an attribute, or NaN without it; raises DesignError beyond ±`largest`."""
        value = self.attributes.get(key, math.nan)
        if not isinstance(value, float) or (key in self.attributes and not abs(value) <= largest):
            raise self.wrong(key, f"a finite number up to ±{largest:g}")
        return value

    def text(self, key: str) -> str | None:
        """The text of an attribute, or None without it."""
        value = self.attributes.get(key)
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
        return self.error(f"{key} of node {self.name!r} is {self.attributes[key]!r}; must be {right}", key)

    def line(self, part: str = "") -> int:
        """The line of the node's name, or of a string in it."""
        found = re.compile(f"[\"']{re.escape(part)}[\"']").search(self.file, self.at)
        return self.file.count("\n", 0, found.start() if part and found else self.at) + 1

    def error(self, message: str, part: str = "") -> DesignError:
        """An error on the line of `part`."""
        return DesignError.at(self.path, self.line(part), message)


def read_nodes(path: object, text: str) -> list[TextNode]:
    """Reads all nodes in file order; raises DesignError with file and line if the text is not a valid graph."""
    graph = _graph_class()()
    try:
        text_format.Parse(text, graph, allow_unknown_field=True)
    except text_format.ParseError as error:
        line, message = error.GetLine() or 1, re.sub(r"^\d+:\d+ : ", "", str(error))
        is_cut = line > text.rstrip().count("\n") and text.count("{") > text.count("}")
        message = f"{message.rstrip('.')}. The file appears to be truncated." if is_cut else message
        raise DesignError.at(path, line, message) from None
    except RecursionError:
        raise DesignError(f"{path}: messages are nested too deeply") from None
    except ValueError as error:  # an escape that is not a character
        raise DesignError(f"{path}: {error}") from None
    nodes, at = list[TextNode](), 0
    starts = (found.start() for found in re.finditer(r"""\bname\s*:\s*["']""", text))
    for node in graph.node:
        at = next(starts, at) if node.name else at
        attributes = {attribute.key: _content(attribute.value) for attribute in node.attr}
        nodes.append(TextNode(path, text, at, node.name, list(node.input), attributes))
        if not node.name:
            raise nodes[-1].error("a node after this one has no name")
        if len(attributes) < len(node.attr):
            raise nodes[-1].error(f"an attribute of node {node.name!r} is given twice")
    return nodes


def _content(value: Any) -> str | float | None:
    """The text or the number that an attribute has; None if it has neither, or both."""
    contents = [content for _, content in value.ListFields()]
    if len(contents) != 1:
        return None
    return contents[0] if isinstance(contents[0], str) else float(contents[0])
