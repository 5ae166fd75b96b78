"""The netlist reader: accepted files, and rejections that name file, line and reason."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.netlist import _native
from placement.netlist.builder import NetlistBuilder
from placement.netlist.design import Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.formats.protobuf import netlist_text as text_of
from placement.netlist.formats.protobuf import read_netlist, read_netlist_file, write_netlist
from placement.netlist.formats.protobuf_text import read_nodes
from tests.support.small_files import NETLIST


def read(tmp_path: Path, text: str | bytes) -> Netlist:
    path = tmp_path / "netlist.pb.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_netlist(path)


def assert_equal(first: Netlist, second: Netlist) -> None:
    for field in dataclasses.fields(Netlist):
        one, other = getattr(first, field.name), getattr(second, field.name)
        assert one == other if isinstance(one, tuple) else np.array_equal(one, other), field.name


def test_arrays_by_hand(tmp_path: Path) -> None:
    (tmp_path / "n.pb.txt").write_text(NETLIST)
    _, netlist, located, *_ = read_netlist_file(tmp_path / "n.pb.txt")
    assert netlist.names == ("clk", "ram", "Grp_1")
    assert netlist.kind.tolist() == [NodeKind.PORT, NodeKind.HARD, NodeKind.SOFT]
    assert netlist.file_index.tolist() == [0, 1, 3]
    assert netlist.width.tolist() == [0, 4, 2]
    assert netlist.height.tolist() == [0, 6, 1]
    assert netlist.pin_node.tolist() == [0, 1, 2]
    assert netlist.pin_dx.tolist() == [0, -2, 0]
    assert netlist.pin_dy.tolist() == [0, 1.5, 0]
    assert netlist.net_weight.tolist() == [1, 3]
    assert netlist.net_start.tolist() == [0, 2, 5]
    assert netlist.net_pins.tolist() == [0, 1, 2, 1, 0]
    assert located.orientation.tolist() == [Orientation.N, Orientation.FN, Orientation.N]
    assert located.placed.tolist() == [True, False, False]
    assert (located.x[0], located.y[0]) == (0.5, 2.0)


def test_macro_named_in_a_net_has_a_pin_at_its_centre(tmp_path: Path) -> None:
    netlist = read(tmp_path, NETLIST.replace('input: "ram/clk"\n  input: "clk"', 'input: "ram"\n  input: "ram"'))
    assert netlist.num_pins == 4
    assert netlist.net_pins[netlist.net_start[1] :].tolist() == [2, 3, 3]
    assert (netlist.pin_node[3], netlist.pin_dx[3], netlist.pin_dy[3]) == (1, 0, 0)


LAYOUTS = {
    "one line": lambda text: text.replace("\n", " "),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "comments everywhere": lambda text: text.replace("\n", ' # "a comment" }\n'),
    "no spaces": lambda text: text.replace("\n", "").replace(" ", ""),
    "every token on a line": lambda text: text.replace(" ", "\n"),
    "colons before braces": lambda text: text.replace("{", ": {"),
    "angle brackets": lambda text: text.replace("{", "<").replace("}", ">"),
    "semicolons": lambda text: text.replace("}", "};"),
    "commas": lambda text: text.replace('"\n', '",\n').replace("}", "},"),
    "single quotes": lambda text: text.replace('"', "'"),
    "strings in pieces": lambda text: text.replace('"clk"', '"c" \'l\'\n"k"'),
    "pieces with a comment between": lambda text: text.replace('"clk"', '"c" # and\n"lk"'),
    "escapes": lambda text: text.replace('"clk"', r'"\143\x6c\u006B"'),
    "lists": lambda text: text.replace('input: "ram/clk"\n  input: "clk"', 'input: ["ram/clk", "clk"]'),
    "list of nodes": lambda text: "node: [" + text.replace("node {", "{").replace("}\n{", "},\n{").rstrip() + "]",
    "value before key": lambda text: text.replace('key: "weight" value { i: 3 }', 'value { i: 3 } key: "weight"'),
    "bytes for words": lambda text: text.replace("placeholder:", "s:"),
    "numbers": lambda text: text.replace("i: 3", "i: 0x3").replace("f: 2.0", "f: 2.0f").replace("f: -2.0", "f: -20e-1"),
    "octal": lambda text: text.replace("i: 3", "i: 03").replace("f: 6.0", "f: .6e1"),
    "other attributes": lambda text: text.replace(
        'attr { key: "weight"',
        'op: "NoOp" device: "" attr { key: "a" value { b: true } } attr { key: "b" value { list { i: 1 i: 2 } } }\n'
        'attr { key: "c" value { shape { dim { size: 3 } } } } attr { key: "d" value { type: DT_FLOAT } }\n'
        'attr { key: "e" value { } } attr { key: "f" } attr { key: "weight"',
    ),
    "other fields of the graph": lambda text: "versions { producer: 1 }\n" + text + "library {}\n",
    "lower case types": lambda text: text.replace("PORT", "port").replace("MACRO", "macro"),
    "byte order and blank lines": lambda text: "\n\n" + text + "\n\n#end",
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_every_layout_reads_the_same(layout: str, tmp_path: Path) -> None:
    changed = LAYOUTS[layout](NETLIST)
    assert changed != NETLIST
    assert_equal(read(tmp_path, changed), read(tmp_path, NETLIST))


def test_names_keep_odd_characters(tmp_path: Path) -> None:
    odd = r'"a\\b \"[0]\" µ\n"'
    netlist = read(tmp_path, NETLIST.replace('"clk"', odd))
    assert netlist.names[0] == 'a\\b "[0]" µ\n'
    write_netlist(tmp_path / "again.pb.txt", netlist)
    assert_equal(read_netlist(tmp_path / "again.pb.txt"), netlist)


def test_byte_escapes_are_utf8(tmp_path: Path) -> None:
    """Protobuf's own printer writes µ as two octal bytes."""
    netlist = read(tmp_path, NETLIST.replace('"clk"', r'"clk_\302\265"').replace('"Grp_1"', r'"Grp_1\xc2" "\xB5"'))
    assert netlist.names == ("clk_µ", "ram", "Grp_1µ")


def test_full_grammar_agrees_with_the_fast_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = read(tmp_path, NETLIST)
    monkeypatch.setattr(_native, "read_plain_protobuf", lambda data: None)
    assert_equal(read(tmp_path, NETLIST), fast)


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    assert_equal(read(tmp_path, gzip.compress(NETLIST.encode())), read(tmp_path, NETLIST))


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


REFUSED = {
    # reason: (text to replace, replacement, part of the reported line, words of the message)
    "unknown sink": ('input: "clk"', 'input: "nothing"', 'node {\n  name: "Grp_1/out"', "Grp_1/out drives nothing"),
    "unknown sink, full grammar": ('input: "clk"', "input: 'nothing'", "input: 'nothing'", "which does not exist"),
    "pin of a missing macro": ('placeholder: "Grp_1"', 'placeholder: "Grp_2"', None, "not exist: Grp_1/out on Grp_2"),
    "missing macro, full grammar": ('placeholder: "Grp_1"', "placeholder: 'Grp_2'", "Grp_2", "'Grp_2'; must be a node"),
    "pin of a port": ('placeholder: "Grp_1"', 'placeholder: "clk"', None, "nodes that are not macros: Grp_1/out"),
    "pin without a macro": ('attr { key: "macro_name" value { placeholder: "ram" } }', "", None, "macro_name: ram/clk"),
    "duplicate name": ('name: "Grp_1"\n', 'name: "ram"\n', None, "duplicate node names: ram"),
    "duplicate name, full grammar": ('name: "Grp_1"\n', "name: 'ram'\n", None, "'ram', first used on line 13"),
    "negative size": ("f: 6.0", "f: -6.0", 'node {\n  name: "ram"\n', "macros whose height is not above 0: ram (-6)"),
    "zero size": ("f: 6.0", "f: 0", 'node {\n  name: "ram"\n', "macros whose height is not above 0: ram (0)"),
    "negative soft size": ("f: 1.0", "f: -1.0", None, "soft macros whose height is below 0: Grp_1 (-1)"),
    "missing size": ('attr { key: "width" value { f: 4.0 } }', "", None, "nodes without a width: ram"),
    "size as a word": ("f: 4.0", 's: "4"', 's: "4"', "width of node 'ram' is '4'; must be a finite number"),
    "NaN": ("f: 6.0", "f: nan", "f: nan", "height of node 'ram' is nan"),
    "infinite": ("f: 1.5", "f: -inf", "f: -inf", "y_offset of node 'ram/clk' is -inf"),
    "huge offset": ("f: 1.5", "f: 1e300", None, "y_offset is not a finite number up to ±1e+09: ram/clk (1e+300)"),
    "too large a number": ("f: 1.5", "f: 1e999", "f: 1e999", "must be a finite number"),
    "NaN position": ("f: 0.5", "f: nan", "f: nan", "x of node 'clk' is nan"),
    "negative weight": ("i: 3", "i: -3", None, "nodes whose weight is below 0: Grp_1/out (-3)"),
    "no type": ('attr { key: "type" value { placeholder: "MACRO" } }', "", None, "without a type (macro, macro_pin"),
    "unknown type": ('"MACRO_PIN"', '"PIN"', '"PIN"', "is 'PIN'; must be one of macro, macro_pin"),
    "unknown orientation": ('"FN"', '"R90"', '"R90"', "'R90'; must be one of N, FN"),
    "no name": ('  name: "ram"\n', "", None, "no name"),
    "second name": ('  name: "ram"\n', '  name: "ram" name: "rom"\n', 'name: "rom"', 'multiple "name" fields'),
    "attribute twice": ("value { f: 6.0 } }", 'value { f: 6.0 } } attr { key: "height" }', None, "twice"),
    "two values": ("{ i: 3 }", "{ i: 3 f: 3.0 }", "i: 3 f", "weight of node 'Grp_1/out' is None"),
    "unknown field": ('name: "ram"\n', 'nome: "ram"\n', None, "no name"),
    "unknown graph field": ("node {\n  name: \"ram\"\n", "nodes {\n", None, "node 'ram/clk' is 'ram'; must be"),
    "bad number": ("f: 6.0", "f: 6.0.0", "f: 6.0.0", "parse float: 6.0.0"),
    "word for a number": ("f: 6.0", "f: six", "f: six", "parse float: six"),
    "no quotes": ('name: "ram"\n', "name: ram\n", "name: ram\n", "Expected string"),
    "open string": ('name: "ram"\n', 'name: "ram\n', 'name: "ram\n', "missing ending quote"),
    "bytes that are not text": ('name: "ram"\n', 'name: "\\302"\n', None, "utf-8"),
    "stray brace": ('name: "ram"\n', 'name: "ram" {\n', 'name: "ram" {', "Expected identifier"),
}  # fmt: skip


@pytest.mark.parametrize("reason", list(REFUSED))
def test_rejection_names_file_line_and_reason(reason: str, tmp_path: Path) -> None:
    old, new, blamed, words = REFUSED[reason]
    assert old in NETLIST
    text = NETLIST.replace(old, new, 1)
    with pytest.raises(DesignError) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert words in message
    path, line = message.split(": ")[0].rsplit(":", 1)
    assert path == str(tmp_path / "netlist.pb.txt")
    if blamed is not None:
        assert int(line) == line_of(text, blamed), message
    assert 1 <= int(line) <= text.count("\n") + 1


@pytest.mark.parametrize("kept", [20, 200, 640, len(NETLIST) - 2])
def test_truncated_text_is_rejected(kept: int, tmp_path: Path) -> None:
    with pytest.raises(DesignError, match=r"netlist\.pb\.txt:\d+: .*appears to be truncated"):
        read(tmp_path, NETLIST[:kept])


def test_text_truncated_between_nodes_is_rejected_for_its_sinks(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match="do not exist: clk drives ram/clk"):
        read(tmp_path, NETLIST[: NETLIST.index('node {\n  name: "ram/clk"')])


def test_unreadable_files_are_rejected(tmp_path: Path) -> None:
    packed = gzip.compress(NETLIST.encode())
    for content, words in (
        (packed[:-30], "damaged gzip"),
        (packed[:20] + b"xx" + packed[22:], "damaged gzip"),
        (b"", "contains no nodes"),
        (b'node {\n  name: "\xff"\n}', r"netlist\.pb\.txt:2: byte 0xff is not UTF-8"),
        (b"node { " * 3000, "nested|cut"),
        (b'node { name: "x" attr { value ' + b"{ list " * 3000, "nested too deep"),
    ):
        with pytest.raises(DesignError, match=words):
            read(tmp_path, content)
    with pytest.raises(DesignError, match="cannot be read"):
        read_netlist(tmp_path / "missing.pb.txt")
    with pytest.raises(DesignError, match="cannot be read"):
        read_netlist(tmp_path)


_SNIPPETS = [*"\"'{}<>[]:,;#\n\\-\x00µ", "nan", "inf", "1e999", "0x", "09", "i: 3", "true", "\\777", "{{{{", 30 * "9"]
_SNIPPETS += ["node {", "attr", 'name: "ram"', 'input: "clk"']


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """Returns `text` after a few cuts, insertions, and moved, duplicated or dropped lines."""
    for _ in range(draw(st.integers(1, 4))):
        first, second = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        second = min(second, first + 40)
        kind = draw(st.integers(0, 4))
        if kind == 0:
            text = text[:first] + text[second:]
        elif kind == 1:
            text = text[:first] + draw(st.sampled_from(_SNIPPETS)) + text[first:]
        elif kind == 2:
            text = text[:first] + draw(st.text(max_size=4)) + text[second:]
        else:
            lines = text.split("\n")
            chosen = draw(st.integers(0, len(lines) - 1))
            line = lines.pop(chosen)
            for _ in range(kind - 3 + draw(st.integers(0, 1))):
                lines.insert(draw(st.integers(0, len(lines))), line)
            text = "\n".join(lines)
    return text


FUZZ = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(text=mutated(NETLIST))
def test_fuzzed_text_is_read_or_rejected(text: str, tmp_path: Path) -> None:
    path = tmp_path / "netlist.pb.txt"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        netlist = read_netlist(path)
    except DesignError as error:
        assert str(error).startswith(str(path))
    else:
        assert netlist.num_nodes > 0


@FUZZ
@given(data=st.data())
def test_fuzzed_bytes_are_read_or_rejected(data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(gzip.compress(NETLIST.encode(), mtime=0) if data.draw(st.booleans()) else NETLIST.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "netlist.pb.txt"
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    try:
        read_netlist(path)
    except DesignError as error:
        assert str(error).startswith(str(path))


def test_writer_rejects_what_the_format_cannot_hold(tmp_path: Path) -> None:
    builder = NetlistBuilder()
    ports = [builder.port("a"), builder.port("b")]
    builder.net(1.0, ports[0], [ports[1]])
    builder.net(1.0, ports[0], [ports[1]])
    with pytest.raises(DesignError, match="drives two nets"):
        text_of(builder.build())
    for name, kind, words in (("Grp_1", NodeKind.HARD, "must not begin"), ("cells", NodeKind.SOFT, "must begin")):
        builder = NetlistBuilder()
        builder.macro(name, kind, 1.0, 1.0)
        with pytest.raises(DesignError, match=words):
            text_of(builder.build())
    netlist = read(tmp_path, NETLIST)
    backwards = dataclasses.replace(
        netlist, net_weight=netlist.net_weight[::-1], net_start=[0, 3, 5], net_pins=[2, 1, 0, 0, 1]
    )
    with pytest.raises(DesignError, match="order of their drivers"):
        text_of(backwards)
    with pytest.raises(DesignError, match="file indices"):
        text_of(dataclasses.replace(netlist, file_index=[0, 1, 7]))


def test_written_placement_attributes_read_back(tmp_path: Path) -> None:
    netlist = read(tmp_path, NETLIST)
    placed = Placement([0.1, 1 / 3, 2.5], [0, 1e-17, 9e8], [0, 3, 0], [1, 1, 1], [1, 0, 0])
    write_netlist(tmp_path / "out.pb.txt.gz", netlist, placed)
    _, again, located, *_ = read_netlist_file(tmp_path / "out.pb.txt.gz")
    assert_equal(again, netlist)
    assert located == placed


def test_a_node_without_a_name_is_reported_at_the_node_before_it():
    text = 'node {\n  name: "a"\n}\nnode { op: "none" }\nnode {\n  name: "b"\n}\n'
    with pytest.raises(DesignError, match=r"^graph:2: a node after this one has no name"):
        read_nodes("graph", text)
