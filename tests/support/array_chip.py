"""A chip with two banks of memories, in LEF and DEF: bank[0] to bank[3], tag_9 and tag_10, and one called lone."""

from __future__ import annotations

from pathlib import Path

from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.def_design import read_lef_def
from tests.support.small_lef_def import LEF

MEMORIES = (r"bank\[0\]", r"bank\[1\]", r"bank\[2\]", r"bank\[3\]", "tag_10", "tag_9", "lone")
CELLS = 12


def array_def(places: dict[str, str] | None = None, *, halo: str = "") -> str:
    """Returns the DEF: a core of 100 × 80 µm from (2, 4), memories of 10 × 6 µm.

    Args:
        places: memory, as the file writes it → its placing, as `PLACED ( 0 0 ) N`.
        halo: of bank[0], as `+ HALO 1000 1000 1000 1000`.
    """
    places = places or {}
    rows = "\n".join(f"ROW r{row} core 2000 {4000 + 2000 * row} N DO 200 BY 1 STEP 500 0 ;" for row in range(40))
    memories = "\n".join(
        f"- {name} RAM + {places.get(name, 'UNPLACED')} {halo if number == 0 else ''};"
        for number, name in enumerate(MEMORIES)
    )
    cells = "\n".join(f"- u{cell} INV ;" for cell in range(CELLS))
    nets = "\n".join(
        f"- n{number} ( {name} Q ) ( u{number} A ) ( {MEMORIES[number - 1]} D[0] ) ;"
        for number, name in enumerate(MEMORIES)
    )
    chain = "\n".join(f"- c{cell} ( u{cell - 1} Y ) ( u{cell} A ) ;" for cell in range(len(MEMORIES) + 1, CELLS))
    return f"""VERSION 5.8 ;
DIVIDERCHAR "/" ;
BUSBITCHARS "[]" ;
DESIGN banks ;
UNITS DISTANCE MICRONS 1000 ;
DIEAREA ( 0 0 ) ( 104000 90000 ) ;
{rows}
TRACKS X 100 DO 250 STEP 400 LAYER M2 ;
TRACKS Y 50 DO 440 STEP 200 LAYER M1 ;
REGIONS 1 ;
- low ( 2000 4000 ) ( 102000 44000 ) ;
END REGIONS
COMPONENTS {len(MEMORIES) + CELLS} ;
{memories}
{cells}
END COMPONENTS
PINS 1 ;
- in + NET p + DIRECTION INPUT + LAYER M1 ( -70 0 ) ( 70 140 ) + FIXED ( 0 40000 ) E ;
END PINS
GROUPS 1 ;
- tags tag_* + REGION low ;
END GROUPS
NETS {CELLS} ;
- p ( PIN in ) ( u0 A ) ;
{nets}
{chain}
END NETS
END DESIGN
"""


def array_flat(folder: Path, places: dict[str, str] | None = None, *, halo: str = "") -> FlatDesign:
    """Writes the chip to `banks.lef` and `banks.def` in a folder and reads it."""
    (folder / "banks.lef").write_text(LEF)
    (folder / "banks.def").write_text(array_def(places, halo=halo))
    return read_lef_def([folder / "banks.lef"], folder / "banks.def")[0]
