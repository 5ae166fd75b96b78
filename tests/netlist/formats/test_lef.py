"""The LEF reader: a library by hand, the numbers of the `lefdef` package, and rejections."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.netlist.errors import DesignError
from placement.netlist.formats.lef import read_lefs
from placement.netlist.technology import LayerDirection
from tests.support.small_lef_def import LEF


def write(tmp_path: Path, text: str, name: str = "cells.lef") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def test_library_by_hand(tmp_path: Path) -> None:
    library = read_lefs([write(tmp_path, LEF)])[0]
    assert (library.units, library.manufacturing_grid) == (1000, 0.005)
    assert [(layer.name, layer.direction, layer.pitch, layer.width, layer.number) for layer in library.layers] == [
        ("M1", LayerDirection.HORIZONTAL, 0.2, 0.1, 0),
        ("M2", LayerDirection.VERTICAL, 0.4, 0.2, 1),
    ]
    assert (library.sites["core"].width, library.sites["core"].height) == (0.5, 2)
    ram, inverter = library.masters["RAM"], library.masters["INV"]
    assert (ram.is_block, ram.width, ram.height, ram.symmetry) == (True, 10, 6, {"X", "Y", "R90"})
    assert (inverter.is_block, inverter.site, inverter.kind) == (False, "core", "CORE")
    # Offsets are relative to the lower left corner of the box, which ORIGIN moves.
    assert [(pin.name, pin.direction, pin.use, pin.layer) for pin in ram.pins] == [
        ("D[0]", "INPUT", "SIGNAL", "M1"),
        ("Q", "OUTPUT", "SIGNAL", "M2"),
        ("VDD", "INOUT", "POWER", ""),
    ]
    assert [(round(pin.x, 9), round(pin.y, 9)) for pin in ram.pins] == [(0.5, 0.2), (9.5, 5.5), (5, 3)]
    np.testing.assert_allclose(
        ram.obstructions["M1"], [[0, 0, 1, 6], [5, 0, 6, 6], [2, 2, 4, 3], [3, 3, 4, 4]], atol=1e-12
    )
    np.testing.assert_allclose(ram.obstructions["M2"], [[0.8, 1.8, 3.2, 2.2]], atol=1e-12)
    np.testing.assert_allclose(ram.pin_shapes["M2"], [[9, 5, 10, 6]], atol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(" ;", ";"),
        lambda text: text.replace("\n", "\n\t#x\n"),
    ],
    ids=["carriage returns", "no space before ;", "comments"],
)
def test_layouts_that_mean_the_same(tmp_path: Path, change: Callable[[str], str]) -> None:
    one, other = (read_lefs([path])[0] for path in (write(tmp_path, LEF), write(tmp_path, change(LEF), "other.lef")))
    assert one.layers == other.layers
    assert [master.pins for master in one.masters.values()] == [master.pins for master in other.masters.values()]


def test_blocks_within_a_macro_are_skipped(tmp_path: Path) -> None:
    """TIMING ends in END TIMING, DENSITY in END (LEF/DEF Language Reference, MACRO)."""
    blocks = (
        "  DENSITY\n    LAYER M1 ;\n      RECT 0 0 1 2 45.5 ;\n  END\n"
        "  TIMING\n    FROMPIN A ;\n    TOPIN Y ;\n    RISE INTRINSIC 1 1 ;\n  END TIMING\n"
    )
    library = read_lefs([write(tmp_path, LEF.replace("  SITE core ;\n  PIN A", f"{blocks}  SITE core ;\n  PIN A"))])[0]
    inverter = library.masters["INV"]
    assert (inverter.site, [pin.name for pin in inverter.pins]) == ("core", ["A", "Y"])


def test_several_files_are_one(tmp_path: Path) -> None:
    at = LEF.index("MACRO RAM")
    technology, cells = write(tmp_path, LEF[:at], "tech.lef"), tmp_path / "cells.lef.gz"
    cells.write_bytes(gzip.compress(LEF[at:].encode()))
    library, sources = read_lefs([technology, cells])
    # offset in the unpacked bytes
    texts = {"tech.lef": LEF[:at], "cells.lef.gz": LEF[at:]}
    assert [(source.name, source.sha256) for source in sources] == [
        (name, hashlib.sha256(text.encode()).hexdigest()) for name, text in texts.items()
    ]
    assert list(library.masters) == ["RAM", "INV"]
    assert len(library.layers) == 2


def test_of_two_definitions_the_first_holds(tmp_path: Path) -> None:
    other = write(tmp_path, LEF.replace("SIZE 10 BY 6", "SIZE 11 BY 6"), "other.lef")
    library = read_lefs([write(tmp_path, LEF), other])[0]
    assert (library.masters["RAM"].width, library.masters["RAM"].height) == (10, 6)
    notice = "macro 'RAM' is defined twice in the LEF files, 10 × 6 µm, then 11 × 6 µm: the first definition is used"
    assert library.notices == (notice,)
    # The same in one file.
    twice = LEF.replace("END LIBRARY\n", LEF[LEF.index("MACRO RAM") :].replace("SIZE 10 BY 6", "SIZE 11 BY 6"))
    assert read_lefs([write(tmp_path, twice)])[0].notices == (notice,)


def test_files_that_were_joined_are_read_to_the_end(tmp_path: Path) -> None:
    at = LEF.index("MACRO RAM")
    library = read_lefs([write(tmp_path, LEF + LEF[:at] + "END LIBRARY\n" + LEF[at:].replace("RAM", "ROM"))])[0]
    assert list(library.masters) == ["RAM", "INV", "ROM"]
    assert [(layer.name, layer.number) for layer in library.layers] == [("M1", 0), ("M2", 1)]


def test_two_blocks_of_a_pin_are_one_pin(tmp_path: Path) -> None:
    again = "  PIN Q\n    DIRECTION OUTPUT ;\n    PORT\n      LAYER M1 ;\n        RECT 1 1 2 2 ;\n    END\n  END Q\n"
    library = read_lefs([write(tmp_path, LEF.replace("  PIN VDD", f"{again}  PIN VDD"))])[0]
    q = library.masters["RAM"].pins[1]
    # The bounding box of (8, 3) to (9, 4) and (1, 1) to (2, 2), relative to the origin at (1, 2).
    assert (q.name, q.x, q.y, q.layer) == ("Q", 6, 4.5, "M2")
    assert [pin.name for pin in library.masters["RAM"].pins] == ["D[0]", "Q", "VDD"]
    assert len(library.masters["RAM"].pin_shapes["M1"]) == 3
    assert [notice.partition("cells.lef: ")[2] for notice in library.notices] == [
        "macro 'RAM' has pin 'Q' twice: its shapes are merged"
    ]


def test_a_macro_that_is_there_twice_in_one_size_counts_once(tmp_path: Path) -> None:
    again = LEF[LEF.index("MACRO INV") :].replace("PIN A", "PIN B").replace("END A", "END B")
    library = read_lefs([write(tmp_path, LEF.replace("END LIBRARY\n", again))])[0]
    assert list(library.masters) == ["RAM", "INV"]
    assert [pin.name for pin in library.masters["INV"].pins] == ["A", "Y"]
    (notice,) = library.notices
    assert notice == "macro 'INV' is defined twice in the LEF files, once without pin 'A': the first definition is used"


def test_files_without_masters(tmp_path: Path) -> None:
    empty = write(tmp_path, "VERSION 5.8 ;\nVIA v LAYER M1 ; RECT 0 0 1 1 ; END v\nEND LIBRARY\n", "vias.lef")
    library = read_lefs([write(tmp_path, LEF), empty])[0]
    assert library.notices == (f"{empty}: the file contains no layer, site or macro",)
    for name, data in {"bzip2": b"BZh9", "xz": b"\xfd7zXZ\0", "zstd": b"\x28\xb5\x2f\xfd", "zip": b"PK\3\4"}.items():
        empty.write_bytes(data + b"packed")
        with pytest.raises(DesignError, match=f"is compressed with {name}; must be plain or gzipped"):
            read_lefs([empty])


def test_keywords_may_be_small(tmp_path: Path) -> None:
    words = ("LAYER", "TYPE", "ROUTING", "DIRECTION", "END", "UNITS", "SITE", "MACRO", "PIN", "OBS", "VIA", "LIBRARY")
    small = LEF
    for word in words:
        small = re.sub(rf"\b{word}\b", word.lower(), small)
    expected, found = (read_lefs([write(tmp_path, text)])[0] for text in (LEF, small))
    assert "end RAM" in small and "macro RAM" in small
    assert (found.layers, found.sites, list(found.masters)) == (expected.layers, expected.sites, ["RAM", "INV"])


def test_comments_may_be_latin_1_and_files_begin_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "cells.lef"
    path.write_bytes(b"# \xa9 a foundry, \xb5m\n" + LEF.encode())
    assert list(read_lefs([path])[0].masters) == ["RAM", "INV"]
    path.write_bytes(b"\xef\xbb\xbf" + LEF.encode())
    assert list(read_lefs([path])[0].masters) == ["RAM", "INV"]


def test_layers_that_no_signal_is_routed_on_are_omitted(tmp_path: Path) -> None:
    block = "LAYER {0}\n  TYPE ROUTING ;\n  DIRECTION VERTICAL ;\n  PITCH 0.1 ;\n  PROPERTY {1} ;\nEND {0}\n"
    more = block.format("BM1", 'LEF58_BACKSIDE "BACKSIDE ;"') + block.format("P", 'A 1 LEF58_TYPE "TYPE POLYROUTING ;"')
    more += "LAYER AP\n  TYPE ROUTING ;\n  PITCH 5 ;\nEND AP\n"
    layers = read_lefs([write(tmp_path, LEF.replace("LAYER M1", more + "LAYER M1", 1))])[0].layers
    assert [(layer.name, layer.direction, layer.number) for layer in layers] == [
        ("AP", LayerDirection.NONE, 0),
        ("M1", LayerDirection.HORIZONTAL, 1),
        ("M2", LayerDirection.VERTICAL, 2),
    ]


def test_paths_are_as_wide_as_their_layer_in_another_file(tmp_path: Path) -> None:
    begin = LEF.index("MACRO RAM")
    cells = write(tmp_path, LEF[begin:].replace("      WIDTH 0.4 ;\n", ""))
    technology = write(tmp_path, LEF[:begin] + "END LIBRARY\n", "tech.lef")
    for order in ([technology, cells], [cells, technology]):
        (path,) = read_lefs([*order])[0].masters["RAM"].obstructions["M2"].tolist()
        # M2 is 0.2 µm wide; ORIGIN moves by (1, 2).
        assert path == pytest.approx([0.9, 1.9, 3.1, 2.1])


FAULTS = {
    "cut in a macro": (LEF[: LEF.index("END INV")], "END INV"),
    "cut in a statement": (LEF[: LEF.index(" ;\n  SITE core")], "appears to be truncated"),
    "negative size": (LEF.replace("SIZE 1 BY 2", "SIZE -1 BY 2"), r"cells.lef:71: the size of macro 'INV' is -1 × 2"),
    "no number": (
        LEF.replace("SIZE 1 BY 2", "SIZE 1 BY two"),
        r"cells.lef:73: expected the size, a number, found 'two'",
    ),
    "no grid": (LEF.replace("GRID 0.005", "GRID"), r"cells.lef:6: the manufacturing grid: expected 1 number, found 0"),
    "infinite": (LEF.replace("SIZE 1 BY 2", "SIZE 1 BY inf"), r"a number, found 'inf'"),
    "another end": (LEF.replace("END INV", "END NAND"), "must end with 'END INV'"),
    "no direction": (LEF.replace("DIRECTION VERTICAL", "DIRECTION UP"), "layer 'M2': its direction is 'UP'"),
    "no LEF": ("once upon a time ;", r":1: 'ONCE' is not a LEF statement"),
    "empty": ("", "contains no layer"),
    "open string": ('VERSION "5.8 ;', ":1: the string that begins here has no closing quote"),
    "too many copies": (LEF.replace("DO 2 BY 1", "DO 20000 BY 20000"), "must be 1 to 1,000,000"),
    "odd coordinates": (LEF.replace("RECT 0.1 0.9 0.3 1.1", "RECT 0.1 0.9 0.3"), "RECT with 3 coordinates"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_rejected_with_line_and_reason(tmp_path: Path, name: str) -> None:
    text, reason = FAULTS[name]
    with pytest.raises(DesignError, match=reason) as rejection:
        read_lefs([write(tmp_path, text)])
    assert "cells.lef:" in str(rejection.value)


def test_unknown_statements_and_blocks_are_skipped_and_counted(tmp_path: Path) -> None:
    text = LEF.replace("END LIBRARY", "FOO 1 ;\nFOO 2 ;\nBAR name\n  BAZ 3 ;\nEND name\nEND LIBRARY")
    plain, odd = (read_lefs([write(tmp_path, one)])[0] for one in (LEF, text))
    assert odd.masters.keys() == plain.masters.keys() and odd.sites == plain.sites
    added = [notice for notice in odd.notices if notice not in plain.notices]
    assert len(added) == 1 and added[0].endswith("cells.lef: 3 unknown statements are ignored: FOO (2), BAR")
    with pytest.raises(DesignError, match="END name matches no earlier statement"):
        read_lefs([write(tmp_path, LEF.replace("END LIBRARY", "END name\nEND LIBRARY"))])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_damage_brings_it_down(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    words = LEF.split(" ")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.lists(
                st.sampled_from(["END", ";", "MACRO", "-1e308", "PIN", '"', "LAYER", "\x00", "é", "0"]), max_size=3
            )
        )
    path = tmp_path_factory.mktemp("lef") / "cells.lef"
    path.write_bytes(" ".join(words).encode())
    try:
        read_lefs([path])
    except DesignError as error:
        assert "cells.lef" in str(error)


REAL = (
    "ct_ariane_lefdef/ariane.lef.gz",
    "ng45_lef/NangateOpenCellLibrary.macro.mod.lef.gz",
    "riscv_asap7/asap7sc7p5t_28_R_1x_220121a.lef.gz",
    "riscv_asap7/fr7.lef.gz",
)


@pytest.mark.parametrize("name", REAL)
def test_the_same_macros_as_lefdef_reads(tmp_path: Path, real: Callable[[str], Path], name: str) -> None:
    lefdef = pytest.importorskip("lefdef", reason="the oracle needs the package lefdef (extra lefdef)")
    path = real(name)
    plain = write(tmp_path, gzip.decompress(path.read_bytes()).decode())
    reader = lefdef.C_LefReader()  # keeps what it reads alive
    theirs = reader.read(str(plain))
    ours, _ = read_lefs([path])
    macros = [theirs.c_macros[index] for index in range(theirs.c_num_macros)]
    assert [macro.c_name.decode() for macro in macros] == list(ours.masters)
    for macro in macros:
        mine = ours.masters[macro.c_name.decode()]
        assert (mine.width, mine.height) == (pytest.approx(macro.c_size_x), pytest.approx(macro.c_size_y))
        pins = [macro.c_pins[index] for index in range(macro.c_num_pins)]
        assert [pin.c_name.decode() for pin in pins] == [pin.name for pin in mine.pins]
        for pin, our_pin in zip(pins, mine.pins, strict=True):
            assert pin.c_direction.decode() == our_pin.direction
            rects = [
                port.c_rects[rect]
                for port in (pin.c_ports[index] for index in range(pin.c_num_ports))
                for rect in range(port.c_num_rects)
            ]
            if rects:
                x = (min(rect.c_xl for rect in rects) + max(rect.c_xh for rect in rects)) / 2
                y = (min(rect.c_yl for rect in rects) + max(rect.c_yh for rect in rects)) / 2
                assert (our_pin.x, our_pin.y) == (pytest.approx(x), pytest.approx(y))
