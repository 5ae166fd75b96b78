"""Statements of LEF and DEF that placement does not need: the design is the same with and without them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from placement.api import import_design
from placement.netlist.formats.def_design import read_lef_def
from tests.interop.chips import RAM, Chip, section

CHIP = Chip()
RULES = """\
PROPERTYDEFINITIONS LAYER LEF58_TYPE STRING ; LIBRARY note STRING "END LIBRARY ; it's" ; END PROPERTYDEFINITIONS
MAXVIASTACK 4 RANGE M1 M3 ;
CLEARANCEMEASURE EUCLIDEAN ;
VIA v12 DEFAULT RESISTANCE 2 ; LAYER M1 ; RECT -0.1 -0.1 0.1 0.1 ; LAYER M2 ; RECT -0.1 -0.1 0.1 0.1 ; END v12
VIARULE v12gen GENERATE DEFAULT
  LAYER M1 ; ENCLOSURE 0 0.1 ; LAYER M2 ; ENCLOSURE 0 0.1 ; LAYER V1 ; RECT 0 0 0.1 0.1 ; SPACING 0.2 BY 0.2 ;
END v12gen
VIARULE turn LAYER M1 ; DIRECTION VERTICAL ; WIDTH 1 TO 9 ; LAYER M2 ; DIRECTION HORIZONTAL ; VIA v12 ; END turn
NONDEFAULTRULE wide
  LAYER M1 WIDTH 0.2 ; SPACING 0.2 ; END M1
  VIA v12wide LAYER M1 ; RECT -0.2 -0.2 0.2 0.2 ; END v12wide
  SPACING SAMENET M1 M1 0.1 ; END SPACING
END wide
SPACING SAMENET M1 M1 0.1 STACK ; END SPACING
ARRAY gates SITE unit 0 0 N DO 10 BY 10 STEP 1 2 ; FLOORPLAN all CANPLACE unit 0 0 N DO 1 BY 1 STEP 1 1 ; END all
END gates
BEGINEXT "tool" CREATOR "me" ; END MACRO ENDEXT
LAYER V1 TYPE CUT ; SPACING 0.2 ; PROPERTY LEF58_SPACING "SPACING 0.1 ; SPACING 0.2 LAYER M1 ;" ; END V1
LAYER OVERLAP TYPE OVERLAP ; END OVERLAP
"""
MEMORY = """\
MACRO RAM
  CLASS BLOCK ; FOREIGN RAM 0 0 N ; EEQ RAM ; FIXEDMASK ;
  SIZE 20 BY 30 ; SYMMETRY x Y ; SITE unit 0 0 N DO 1 BY 1 STEP 1 1 ;
  PROPERTY LEF58_CLASS "CLASS BLOCK ;" ;
  PIN D TAPERRULE wide ; DIRECTION INPUT ; ANTENNAMODEL OXIDE1 ; ANTENNAGATEAREA 0.1 LAYER M2 ;
    PORT CLASS CORE ; END
    PORT VIA 0.1 12.1 v12 ; LAYER M2 EXCEPTPGNET SPACING 0.1 ; RECT MASK 1 0 12 0.1 12.1 ; END
    PORT LAYER M3 DESIGNRULEWIDTH 1 ; WIDTH 0.1 ; PATH 0 12 0 12.1 ; POLYGON 0 12 0 12.1 0.1 12.1 0.1 12 ; END
  END D
  PIN Q DIRECTION OUTPUT TRISTATE ; USE SIGNAL ; NETEXPR "q vdd!" ;
    PORT LAYER M2 ; RECT 19.9 18 20 18.1 ; END
  END Q
  PIN VDD DIRECTION INOUT ; USE POWER ; SHAPE ABUTMENT ; PORT LAYER M1 ; RECT ITERATE 0 0 1 1 DO 2 BY 2 STEP 5 5 ; END
  END VDD
  OBS LAYER M1 ; RECT 0 0 20 30 ; VIA ITERATE 1 1 v12 DO 2 BY 2 STEP 1 1 ; END
  DENSITY LAYER M1 ; RECT 0 0 20 30 45.5 ; END
  TIMING FROMPIN D ; TOPIN Q ; RISE INTRINSIC 1 1 VARIABLE 1 1 ; UNATENESS INVERT ; END TIMING
END RAM
"""


def lef(change: Callable[[str], str]) -> tuple[str, str]:
    return change(CHIP.lef), CHIP.text


def chip(change: Callable[[str], str]) -> tuple[str, str]:
    return CHIP.lef, change(CHIP.text)


def before(place: str, text: str) -> tuple[str, str]:
    """Returns the DEF file with a text inserted before a place."""
    assert place in CHIP.text
    return chip(lambda whole: whole.replace(place, text + place, 1))


def with_options(entry: str, options: str) -> tuple[str, str]:
    """Returns the DEF file with options of an entry."""
    assert CHIP.text.count(f"- {entry}") == 1
    return chip(lambda text: re.sub(rf"(- {re.escape(entry)}[^;]*);", rf"\1 {options} ;", text))


def moved_to_the_end(text: str, name: str) -> str:
    """Returns a DEF file with a section after all others."""
    begin, end = text.index(f"\n{name} ") + 1, text.index(f"END {name}\n") + len(f"END {name}\n")
    return text[:begin] + text[end:].replace("END DESIGN", text[begin:end] + "END DESIGN")


def small_letters(text: str) -> str:
    """Converts all words but names to lower case."""
    names = ("RAM", "BUF", "M1", "M2", "M3", "D", "Q", "VDD", "n0", "n1", "n2", "n3")
    return re.sub(r"\w+", lambda word: word[0] if word[0] in names else word[0].lower(), text)


WIRES = (
    "+ USE SIGNAL + SOURCE NETLIST + FIXEDBUMP + FREQUENCY 1e9 + ORIGINAL n9 + PATTERN STEINER + ESTCAP 1.5 "
    '+ WEIGHT 1 + XTALK 2 + NONDEFAULTRULE wide + STYLE 1 + SHIELDNET VDD + PROPERTY note "- ; + ( END NETS" '
    "+ VPIN v1 LAYER M1 ( 0 0 ) ( 9 9 ) PLACED ( 5 5 ) N "
    "+ SUBNET s ( c0 D ) ( VPIN v1 ) NONDEFAULTRULE wide ROUTED M1 ( 0 0 ) ( * 5 ) "
    "+ ROUTED M1 TAPER STYLE 1 ( 0 0 3 ) ( * 5 ) v12 N DO 2 BY 2 STEP 5 5"
    " NEW M2 ( 1 1 ) RECT ( 0 0 5 5 ) VIRTUAL ( 2 2 )"
)
SAME = {
    "LEF rules": lef(lambda text: text.replace("SITE unit CLASS", RULES + "SITE unit CLASS")),
    "LEF macro": lef(lambda text: text.replace(RAM, MEMORY)),
    "LEF without an end": lef(lambda text: text.replace("END LIBRARY\n", "")),
    "LEF in small letters": lef(small_letters),
    "LEF comments": lef(lambda text: text.replace(" ;", " ; # a ; \" END\n").replace("MACRO", "#MACRO X\nMACRO")),
    "LEF strings": lef(lambda text: text.replace("SIZE 20", 'PROPERTY note "a \\" ; END RAM" ; SIZE 20')),
    "other brackets": (
        f'BUSBITCHARS "()" ;\n{CHIP.lef}'.replace(" D ", " D(0) ").replace("END D\n", "END D(0)\n"),
        CHIP.text.replace("UNITS", 'BUSBITCHARS "{}" ;\nUNITS').replace(" D )", " D{0} )"),
    ),
    "LEF header": lef(
        lambda text: 'NAMESCASESENSITIVE ON ;\nBUSBITCHARS "<>" ;\nDIVIDERCHAR "|" ;\nUNITS DATABASE MICRONS 2000 ; '
        f"TIME NANOSECONDS 1 ; END UNITS\nUSEMINSPACING OBS OFF ;\n{text}"
    ),
    "DEF in small letters": chip(small_letters),
    "DEF comments": chip(lambda text: "# DEF\n" + text.replace(" ;\n", " ; # - x ; END DESIGN\n").replace("+", "#\n+")),
    "DEF without a version": chip(lambda text: text.replace("VERSION 5.8 ;\n", "")),
    "DEF 5.3": chip(lambda text: text.replace("VERSION 5.8", "NAMESCASESENSITIVE OFF ;\nVERSION 5.3")),
    "DEF header": before(
        "UNITS", 'DIVIDERCHAR "/" ;\nBUSBITCHARS "[]" ;\nTECHNOLOGY t ;\nARRAY a ;\nHISTORY it\'s "so" ;\n'
    ),
    "free text": before("UNITS", "HISTORY of 5\" wafers ;\nHISTORY Joe's \"tool ; 1\" ;\n"),
    "pins after nets": chip(lambda text: moved_to_the_end(text, "PINS")),
    "special nets after nets": before(
        "END DESIGN", section("SPECIALNETS", ["n1 + USE SIGNAL + ROUTED M1 200 ( 0 0 ) ( * 99 )"])
    ),
    "properties": before(
        "UNITS", 'PROPERTYDEFINITIONS\n  DESIGN END STRING "END DESIGN" ;\nEND PROPERTYDEFINITIONS\n'
    ),
    "extension": before("COMPONENTS", 'BEGINEXT "tool"\n  - END DESIGN ;\nENDEXT\n'),
    "extension in a section": before("- m0", 'BEGINEXT "tool"\n  - END DESIGN ;\nENDEXT\n'),
    "die of four points": chip(
        lambda text: text.replace("( 0 0 ) ( 100000 100000 )", "( 0 0 ) ( 0 100000 ) ( 100000 * ) ( * 0 )")
    ),
    "gcells": before("COMPONENTS", "GCELLGRID X 0 DO 10 STEP 10000 ;\nGCELLGRID Y 0 DO 10 STEP 10000 ;\n"),
    "tracks": before("COMPONENTS", "TRACKS X 100 DO 9 STEP 200 MASK 1 SAMEMASK LAYER M1 M2 ;\n"),
    "vias": before(
        "COMPONENTS",
        section("VIAS", ["v + RECT M1 + MASK 1 ( 0 0 ) ( 9 9 )", "w + VIARULE g + LAYERS M1 V1 M2 + ROWCOL 2 2"]),
    ),
    "styles": before("COMPONENTS", section("STYLES", ["STYLE 1 ( 0 0 ) ( 9 * ) ( * 9 )"])),
    "rules of nets": before("COMPONENTS", section("NONDEFAULTRULES", ["wide + LAYER M1 WIDTH 9 + VIA v"])),
    "pin properties": before("NETS", section("PINPROPERTIES", ['PIN a + PROPERTY x "y"', "c0 D + PROPERTY x 1"])),
    "slots and fills": before(
        "NETS", section("SLOTS", ["LAYER M1 RECT ( 0 0 ) ( 9 9 )"]) + section("FILLS", ["VIA v + OPC ( 0 0 ) ( 9 9 )"])
    ),
    "supply nets": before(
        "NETS",
        section(
            "SPECIALNETS",
            ["VDD ( * VDD ) + USE POWER + ROUTED M1 200 + SHAPE STRIPE + STYLE 1 ( 0 0 ) ( * 99 ) NEW M2 9 ( 1 1 ) v"],
        ),
    ),
    "wires": with_options("n1", WIRES),
    "component": with_options(
        "m0",
        '+ EEQMASTER RAM + GENERATE gen p1 + SOURCE NETLIST + WEIGHT 5 + FOREIGN x ( 1 2 ) N + MASKSHIFT 12 '
        '+ PROPERTY a "b ; - + PLACED ( 0 0 ) N" + UNPLACED',
    ),
    "component on a net": chip(lambda text: text.replace("m0 RAM", "m0 RAM n0 n1")),
    "pin": with_options(
        "a", "+ SUPPLYSENSITIVITY VDD + NETEXPR \"x y\" + ANTENNAPINGATEAREA 1 LAYER M1 + ANTENNAMODEL OXIDE1"
    ),
    "pin of several ports": chip(
        lambda text: text.replace(
            "+ LAYER M2 ( 0 0 ) ( 100 100 )",
            "+ PORT + LAYER M2 MASK 1 ( 0 0 ) ( 100 100 ) + POLYGON M1 ( 0 0 ) ( 9 * ) ( * 9 ) + VIA v ( 0 0 )",
        )
    ),
    "no orientation": chip(lambda text: text.replace("( 0 500 ) N", "( 0 500 )")),
    "fractions": chip(lambda text: text.replace("( 100000 100000 )", "( 100000.0 1e5 )")),
    "synthesized pin": chip(lambda text: text.replace("( m0 D )", "( m0 D + SYNTHESIZED )")),
    "windows": chip(lambda text: "\ufeff" + text.replace("\n", "\r\n")),
    "tabs": chip(lambda text: text.replace(" ", "\t\t")),
    "one line": chip(lambda text: text.replace("\n", " ")),
    "quoted design": chip(lambda text: text.replace("DESIGN top", 'DESIGN top.v1-2[3]')),
    "rows in an array": chip(
        lambda text: re.sub(r"ROW r\d+ [^;]*;\n", "", text).replace(
            "COMPONENTS", "ROW r unit 0 0 N DO 500 BY 50 STEP 200 2000 + PROPERTY x 1 ;\nCOMPONENTS", 1
        )
    ),
    "blockages of wires": before(
            "NETS",
            section(
                "BLOCKAGES",
                [
                    "LAYER M1 + EXCEPTPGNET + DESIGNRULEWIDTH 9 + MASK 1 RECT ( 0 0 ) ( 9 9 )",
                    "LAYER M2 + FILLS RECT ( 0 0 ) ( 9 9 )",
                ],
            ),
        ),
}  # fmt: skip
PASSED = {
    "scan chains": (
        before("NETS", section("SCANCHAINS", ["s + START PIN a + ORDERED c0 ( IN D ) ( OUT Q ) + STOP m0 Q"])),
        "1 statements that are unknown or do not concern placement are ignored: SCANCHAINS",
    ),
    "timing": (
        before(
            "NETS", section("IOTIMINGS", ["PIN a RISE VARIABLE 1 2"]) + "CANNOTOCCUPY unit 0 0 N DO 1 BY 1 STEP 1 1 ;\n"
        ),
        r"2 statements .*: IOTIMINGS, CANNOTOCCUPY \(line",
    ),
    "another tool's": (before("NETS", "FUTURE 2 ;\n- a b ;\n- c ;\nEND FUTURE\nOTHER 5 ;\n"), "FUTURE, OTHER"),
    "tracks of no layer": (before("COMPONENTS", "TRACKS X 5 DO 9 STEP 200 ;\n"), "1 TRACKS without a LAYER.*: X"),
    "region of no name": (
        before("END DESIGN", section("GROUPS", ["g m0 + REGION r"])),
        r"chip\.def:\d+: 1 regions that do not exist, which are ignored: r of group g",
    ),
    "group of nobody": (
        before("END DESIGN", section("REGIONS", ["r ( 0 0 ) ( 9 9 )"]) + section("GROUPS", ["g m7 x* m0 + REGION r"])),
        r"chip\.def:\d+: 2 names in groups that match no component: m7 in g, x\* in g",
    ),
    "no sites": (before("COMPONENTS", "ROW z unit 0 0 N DO 0 BY 1 STEP 200 0 ;\n"), "1 rows without a site .*: z"),
    "no units": (
        (f"UNITS DATABASE MICRONS 1000 ; END UNITS\n{CHIP.lef}", re.sub("UNITS.*\n", "", CHIP.text)),
        "the file has no UNITS: 1000 per µm are assumed",
    ),
    "no die": (chip(lambda text: re.sub("DIEAREA.*\n", "", text)), "no DIEAREA: the die is the box around the rows"),
    "unknown options": (
        with_options("m0", "+ ROUTEHALO 100 M1 M3 + SOURCE DIST + FIRM ( 1000 2000 ) N +FIXED"),
        r"chip\.def:\d+: 3 options of components and pins are ignored: ROUTEHALO of m0, FIRM of m0 .*, \+FIXED of m0",
    ),
    "pin of two locations": (
        with_options("a", "+ PORT + LAYER M1 ( 0 0 ) ( 9 9 ) + FIXED ( 100000 500 ) S"),
        r"chip\.def:\d+: 1 pins have further locations, which are ignored: a",
    ),
    "slanted blockage": (
        before("NETS", section("BLOCKAGES", ["PLACEMENT POLYGON ( 0 0 ) ( 0 9 ) ( 9 9 )"])),
        "1 blockages with slanted edges are replaced by their bounding boxes: PLACEMENT",
    ),
    "LEF site of no size": (
        lef(lambda text: text.replace("SITE unit", "SITE z CLASS PAD ; END z\nSITE unit", 1)),
        "site 'z', which has no size above 0, is ignored",
    ),
    "LEF site twice": (
        lef(lambda text: text.replace("MACRO BUF", "SITE unit SIZE 0.4 BY 4 ; END unit\nMACRO BUF")),
        "site 'unit' is defined twice: the first definition is used",
    ),
    "LEF macro twice": (
        lef(lambda text: text.replace("END LIBRARY", RAM.replace("PIN D", "PIN E").replace("END D", "END E"))),
        "macro 'RAM' is defined twice in the LEF files, once without pin 'D': the first definition is used",
    ),
    "LEF pin beyond its macro": (
        lef(lambda text: text.replace("RECT 0 12 0.1", "RECT -0.1 12 0.2").replace("RECT 19.9 18 20", "RECT 19 18 31")),
        "1 pins of macros extend beyond the SIZE in LEF \\(first: 'Q' of RAM\\)",
    ),
    "LEF macro of another shape": (
        lef(lambda text: text.replace("OBS LAYER M1 ; RECT 0 0 20 30 ;", "OBS LAYER OVERLAP ; RECT 0 0 20 20 ;")),
        r"^1 masters of macros are not rectangles \(OBS on OVERLAP in LEF; first: 'RAM'\): their bounding boxes are",
    ),
    "text behind LEF": (lef(lambda text: text + "written by hand\x1a"), "words after END LIBRARY are ignored: WRITTEN"),
    "no tracks": (
        before("COMPONENTS", "TRACKS X 5 DO 0 STEP 200 LAYER M1 ;\n"),
        "1 TRACKS whose count or step is not above 0",
    ),
    "no spaces": (chip(lambda text: re.sub(" ;$", ";", text, flags=re.MULTILINE)), r"\d+ missing spaces before ';'"),
}


def imported(texts: tuple[str, str], folder: Path, *, zipped: bool = False) -> tuple[tuple[float, ...], list[str]]:
    """Returns macros, cells, nets, pins, rows and port positions, and the notices, of LEF and DEF texts."""
    paths = []
    for name, text in zip(("chip.lef", "chip.def"), texts, strict=True):
        paths.append(folder / (name + ".gz" * zipped))
        paths[-1].write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    flat, _ = read_lef_def(paths[:1], paths[1])
    netlist, ports = flat.netlist, flat.netlist.ports
    at = (round(float(value), 3) for value in (*flat.placement.x[ports], *flat.placement.y[ports]))
    rows = len(flat.floorplan.rows.x)
    counts = len(netlist.hard), len(flat.cells), netlist.num_nets, len(netlist.net_pins), rows, *at
    return counts, list(flat.notices)


PLAIN = (2, 2, 4, 8, 50, 0.05, 0.55)


def test_the_plain_chip(tmp_path: Path) -> None:
    assert imported((CHIP.lef, CHIP.text), tmp_path) == (PLAIN, [])
    assert imported((CHIP.lef, CHIP.text), tmp_path, zipped=True) == (PLAIN, [])


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_concern_places_changes_nothing(tmp_path: Path, name: str) -> None:
    assert SAME[name] != (CHIP.lef, CHIP.text)
    counts, notices = imported(SAME[name], tmp_path)
    assert counts[:5] == PLAIN[:5]
    assert counts == PLAIN or name in ("no orientation", "pin of several ports")
    assert notices == []


@pytest.mark.parametrize("name", PASSED)
def test_ignored_content_is_reported(tmp_path: Path, name: str) -> None:
    texts, notice = PASSED[name]
    counts, notices = imported(texts, tmp_path)
    assert counts == PLAIN
    assert len(notices) == 1 and re.search(notice, notices[0]), notices


def test_a_region_may_be_given_by_points(tmp_path: Path) -> None:
    groups = section("GROUPS", ["left m0 + SOFT MAXX 9 + REGION ( 0 0 ) ( 50000 100000 )"])
    text = CHIP.text.replace("END DESIGN", groups + "END DESIGN")
    text = text.replace("- m1 RAM", "- m1 RAM + REGION ( 40000 0 ) ( 100000 100000 )")
    (tmp_path / "chip.lef").write_text(CHIP.lef)
    (tmp_path / "chip.def").write_text(text)
    design = import_design(lef=[tmp_path / "chip.lef"], def_=tmp_path / "chip.def")
    regions = {
        design.netlist.names[int(region.nodes[0])]: region.rectangles.tolist() for region in design.constraints.regions
    }
    assert regions == {"m0": [[0, 0, 50, 100]], "m1": [[40, 0, 100, 100]]}


def test_one_lef_file_is_given_as_a_path_or_in_a_list(tmp_path: Path) -> None:
    (tmp_path / "chip.lef").write_text(CHIP.lef)
    (tmp_path / "chip.def").write_text(CHIP.text)
    path = str(tmp_path / "chip.lef")
    one, listed = (import_design(lef=lef, def_=tmp_path / "chip.def") for lef in (path, [path]))
    assert one.netlist.names == listed.netlist.names
