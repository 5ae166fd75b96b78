"""Designs as flows produce them: each ends in a legal placement, or in a rejection with reason and remedy."""

from __future__ import annotations

import dataclasses
import itertools
import string
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.search import search
from placement.api import import_design
from placement.engine.costs import legality, violations
from placement.netlist.clustering.cluster import ClusteringSettings
from placement.netlist.errors import DesignError
from placement.netlist.importing import ImportSettings
from tests.interop.chips import RAM, Chip, master, row_statements, section

"""CPU seconds after which a situation is stuck; on a quiet machine the largest takes 8."""
PIN = "+ NET {} + DIRECTION INPUT + LAYER {} ( -100 -100 ) ( 100 100 ) + FIXED ( {} {} ) N"


@dataclasses.dataclass(frozen=True)
class Situation:
    """A chip, its import options, and the expected rejection; None: a legal placement is expected."""

    chip: Callable[[], Chip]
    rejected: str | None = None
    free_macros: bool = False
    movable: int | None = None


def many(count: int, master: str = "RAM", options: str = "") -> Mapping[str, str]:
    return {f"m{number}": f"{master} {options}" for number in range(count)}


def fixed(*corners: tuple[float, float], master: str = "RAM") -> Mapping[str, str]:
    return {
        f"f{number}": f"{master} + FIXED ( {round(x * 1000)} {round(y * 1000)} ) N"
        for number, (x, y) in enumerate(corners)
    }


def blockages(*boxes: tuple[float, float, float, float]) -> str:
    corners = [[round(side * 1000) for side in box] for box in boxes]
    return section("BLOCKAGES", [f"PLACEMENT RECT ( {a} {b} ) ( {c} {d} )" for a, b, c, d in corners])


def fences(*fences: tuple[str, tuple[float, float, float, float], str]) -> str:
    regions, groups = [], []
    for name, box, members in fences:
        a, b, c, d = (round(side * 1000) for side in box)
        regions.append(f"{name} ( {a} {b} ) ( {c} {d} ) + TYPE FENCE")
        groups.append(f"G{name} {members} + REGION {name}")
    return section("REGIONS", regions) + section("GROUPS", groups)


def around(inside: tuple[float, float, float, float], core: tuple[float, float]) -> str:
    """Returns blockages of all of a core except one box."""
    left, low, right, high = inside
    width, height = core
    return blockages((0, 0, width, low), (0, high, width, height), (0, low, left, high), (right, low, width, high))


def pads() -> Chip:
    """Returns a ring of pads and corners around a core of 60 × 80 µm, with its own sites, beside two memories."""
    masters = (
        RAM
        + "SITE io CLASS PAD ; SIZE 10 BY 20 ; END io\n"
        + master("PAD", 10, 20, "CLASS PAD INPUT ; SYMMETRY X Y R90 ; SITE io ;")
        + master("CORNER", 20, 20, "CLASS ENDCAP BOTTOMLEFT ; SYMMETRY X Y R90 ;")
    )
    ring = {"corner": "CORNER + FIXED ( 0 0 ) N"}
    ring |= {f"s{at}": f"PAD + FIXED ( {20000 + 10000 * at} 0 ) N" for at in range(6)}
    ring |= {f"w{at}": f"PAD + FIXED ( 0 {20000 + 10000 * at} ) E" for at in range(8)}
    rows = row_statements(20, 20, 60, 80) + "ROW p io 20000 0 N DO 6 BY 1 STEP 10000 0 ;\n"
    return Chip(core=(100, 120), masters=masters, macros=dict(many(2)) | ring, rows=rows, nets=Chip().chain())


def names() -> Chip:
    """Returns names with every character that DEF allows in them."""
    legal = "".join(set(string.printable) - set(string.whitespace) - set("\\#*[]/"))
    written = [rf"m\[0\]/{legal}", r"m\[1\]/a\\b", "m/é_µ", rf"m\#\*{legal}"]
    return Chip(core=(120, 100), macros=dict.fromkeys(written, "RAM"))


def off(*where: tuple[str, str, int, int]) -> Mapping[str, str]:
    return {name: PIN.format(net, layer, x, y) for name, (net, layer, x, y) in zip("abcdefgh", where, strict=False)}


def chained(chip: Chip, macros: Mapping[str, str]) -> Chip:
    """Returns the chip with additional macros that are on no net."""
    return dataclasses.replace(chip, macros=dict(chip.macros) | dict(macros), nets=chip.chain())


TINY = master("TINY", 1.2, 2.4)
SQUARE = master("SQUARE", 10, 10)
EXACT = master("EXACT", 40, 20)
WIDE = row_statements(0, 0, 100, 40) + row_statements(0, 40, 50, 60, name="t")
L_SHAPE = "( 0 0 ) ( 0 100000 ) ( 50000 100000 ) ( 50000 40000 ) ( 100000 40000 ) ( 100000 0 )"
ISLANDS = row_statements(0, 0, 45, 100, name="a") + row_statements(55, 0, 45, 100, name="b")
CHAIN = Chip().chain()

SITUATIONS = {
    "70 tiny macros in 1.5% of the core": Situation(
        lambda: Chip(core=(120, 112), masters=TINY, macros=many(70, "TINY"))
    ),
    "8 × 8 array at 88%": Situation(lambda: Chip(core=(85.2, 86), masters=SQUARE, macros=many(64, "SQUARE"))),
    "48 alike in 4 rows": Situation(lambda: Chip(core=(140, 60), masters=SQUARE, macros=many(48, "SQUARE"))),
    "macro as large as the core": Situation(lambda: Chip(core=(20, 30), macros=many(1))),
    "macros exactly as wide as the core": Situation(
        lambda: Chip(core=(40, 60), masters=EXACT, macros=many(3, "EXACT"))
    ),
    "macro larger than the core": Situation(
        lambda: Chip(core=(30, 18), macros=many(1)),
        r"macro 'm0' \(RAM\) of 20 × 30 µm is larger than the core of 30 × 18 µm: enlarge the core",
    ),
    "macro that fits turned only": Situation(
        lambda: Chip(core=(34, 24), macros=many(1)), "is larger than .*: give --any-orientation, or enlarge the core"
    ),
    "macros that need more than the core": Situation(
        lambda: Chip(core=(100, 30), macros=many(6)), "6 macros take 3600 µm², more than the 3000 µm² .* enlarge"
    ),
    "one macro": Situation(lambda: Chip(macros=many(1))),
    "no macro": Situation(lambda: Chip(macros={}), "design 'top' has no macros to place"),
    "macros without CLASS BLOCK": Situation(
        lambda: Chip(masters=master("RAM", 20, 30, "CLASS CORE ;")), "no macro.*first 'RAM' of .*set CLASS BLOCK"
    ),
    "all fixed": Situation(lambda: Chip(macros=fixed((10, 10), (60, 50))), movable=0),
    "fixed partly outside": Situation(lambda: chained(Chip(), fixed((-10, 40), (90, 90), (45, -29)))),
    "fixed that overlap": Situation(lambda: chained(Chip(), fixed((40, 40), (45, 50)))),
    "fixed without pins": Situation(
        lambda: chained(
            Chip(masters=f"{RAM}MACRO LOGO CLASS BLOCK ; SIZE 20 BY 10 ;\nEND LOGO\n"),
            fixed((40, 40), master="LOGO"),
        )
    ),
    "fixed, freed": Situation(lambda: Chip(macros=fixed((-10, -10), (0, 0), (5, 5))), free_macros=True, movable=3),
    "macros without nets": Situation(lambda: chained(Chip(), many(4))),
    "no nets at all": Situation(lambda: Chip(nets={}), "the file has no nets.*write it again with the netlist loaded"),
    "rectilinear die and core": Situation(lambda: Chip(die=L_SHAPE, rows=WIDE, macros=many(4))),
    "core of two pieces": Situation(lambda: Chip(rows=ISLANDS, macros=many(6))),
    "exactly one place": Situation(
        lambda: Chip(macros=many(1), sections=around((30.1, 40.5, 50.1, 70.5), (100, 100))),
    ),
    "no place": Situation(
        lambda: Chip(macros=many(1), sections=around((30.1, 40.5, 50.095, 70.5), (100, 100))),
        "space for 599.9 µm² of macros .* macro 'm0' need 600.0 µm²: enlarge it, or make halos and blockages smaller",
    ),
    "no place, though there is area": Situation(
        lambda: Chip(macros=many(1), sections=blockages((15, 0, 20, 100), (35, 0, 50, 100), (69.9, 0, 95, 100))),
        "leave no legal position for macro 'm0': each must be inside the canvas.* outside blockages",
    ),
    "two fences": Situation(
        lambda: Chip(macros=many(4), sections=fences(("A", (0, 0, 40, 50), "m0 m1"), ("B", (60, 50, 100, 100), "m2")))
    ),
    "fence too small": Situation(
        lambda: Chip(sections=fences(("A", (0, 0, 30, 30), "m*"))),
        "region 'A' has space for 900.0 µm² .* need 1200.0 µm²",
    ),
    "contradictory fences": Situation(
        lambda: Chip(sections=fences(("A", (0, 0, 40, 50), "m0"), ("B", (0, 0, 40, 50), "m0 m1"))),
        "leave no legal position for macros? 'm.'.*its regions",
    ),
    "ports off grid, on all layers, in corners": Situation(
        lambda: Chip(
            ports=off(("n0", "M1", 0, 0), ("n1", "M2", 100000, 33333), ("n2", "M3", 100000, 100000), ("n3", "M2", 7, 0))
        )
    ),
    "ports unplaced": Situation(lambda: Chip(ports={"a": "+ NET n0", "b": "+ NET n1 + UNPLACED ( 5 5 ) N"})),
    "ports covered by a fixed macro": Situation(
        lambda: chained(Chip(ports=off(("n0", "M1", 45000, 45000))), fixed((40, 40)))
    ),
    "pad ring": Situation(pads, movable=2),
    "CLASS RING": Situation(
        lambda: chained(Chip(masters=RAM + master("RING", 90, 4, "CLASS RING ;")), fixed((5, 0), master="RING"))
    ),
    "COVER without SIZE": Situation(
        lambda: chained(Chip(masters=RAM + "MACRO BUMP CLASS COVER BUMP ;\nEND BUMP\n"), fixed((9, 9), master="BUMP"))
    ),
    "BLOCK without SIZE": Situation(
        lambda: chained(Chip(masters=RAM + "MACRO LOGO CLASS BLOCK ;\nEND LOGO\n"), {"x": "LOGO"}),
        r"chip\.def:\d+: 1 masters whose LEF gives no SIZE above 0: LOGO",
    ),
    "negative origin": Situation(
        lambda: Chip(
            masters=RAM.replace("SIZE", "ORIGIN 10 15 ; SIZE"),
            die="( -50000 -70000 ) ( 50000 30000 )",
            rows=row_statements(-50, -70, 100, 100),
            ports=off(("n0", "M2", -50000, -70000)),
        )
    ),
    "units of 1 µm": Situation(lambda: Chip(units=100, ports={"a": "+ NET n0"})),
    "units of 0.1 nm": Situation(lambda: Chip(units=10000, ports={"a": "+ NET n0"})),
    "names with every legal character": Situation(names),
    "zero standard cells": Situation(lambda: Chip(cells={}, macros=many(5))),
    "nets of one pin and of 5,000": Situation(
        lambda: Chip(
            cells={f"c{number}": "" for number in range(5_000)},
            nets=CHAIN
            | {"lone": "( c0 Q )"}
            | {"huge": " ".join(f"( c{number} D )" for number in range(2, 5_000)) + " ( m0 Q )"},
            core=(200, 200),
        )
    ),
}
LARGE = {
    "2,000 macros": Situation(
        lambda: Chip(core=(1000, 1000), masters=SQUARE, macros=many(2000, "SQUARE"), cells={}),
    ),
    "a net of 100,000 pins": Situation(
        lambda: Chip(
            macros={"m0": "RAM + PLACED ( 0 0 ) N", "m1": "RAM + PLACED ( 300000 300000 ) N"},
            cells={f"c{n}": f"+ PLACED ( {n % 350 * 2000} {n // 350 * 2000} ) N" for n in range(100_000)},
            nets=CHAIN | {"huge": " ".join(f"( c{number} D )" for number in range(2, 100_000)) + " ( m0 Q )"},
            core=(700, 700),
        )
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_ones(name: str, tmp_path: Path) -> None:
    check(LARGE[name], tmp_path)


@pytest.mark.parametrize("name", SITUATIONS)
def test_it_ends_in_a_placement_or_a_reason(name: str, tmp_path: Path) -> None:
    check(SITUATIONS[name], tmp_path)


def check(situation: Situation, tmp_path: Path) -> None:
    """Imports a situation's chip and searches for a placement of it."""
    lef, text = situation.chip().write(tmp_path)
    settings = ImportSettings(clustering=ClusteringSettings(clusters=8))
    arguments = {"lef": [lef], "def_": text, "free_macros": situation.free_macros, "settings": settings}
    if situation.rejected is not None:
        with pytest.raises(DesignError, match=situation.rejected):
            import_design(**arguments)
    else:
        design = import_design(**arguments)
        if situation.movable is not None:
            assert len(design.placing_order) == situation.movable
        placement = search(design, moves=2_000, round_moves=1_000, config=AnnealConfig()).placement
        found, broken = legality(design, placement), violations(design, placement)
        if design.initial.fixed[design.netlist.hard].any():  # fixed macros may be anywhere
            before = legality(design, design.initial), violations(design, design.initial)
            assert all(now <= then for now, then in zip((*found, *broken), itertools.chain(*before), strict=True))
        else:
            assert tuple(found) == (0, 0) and not any(broken)
