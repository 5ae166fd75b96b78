"""Small chips in LEF and DEF, written by the tests. Lengths in µm, unless stated as database units."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

TECHNOLOGY = """\
VERSION 5.8 ;
MANUFACTURINGGRID 0.005 ;
LAYER M1 TYPE ROUTING ; DIRECTION HORIZONTAL ; PITCH 0.2 ; WIDTH 0.1 ; END M1
LAYER M2 TYPE ROUTING ; DIRECTION VERTICAL ; PITCH 0.2 ; WIDTH 0.1 ; END M2
LAYER M3 TYPE ROUTING ; DIRECTION HORIZONTAL ; PITCH 0.4 ; WIDTH 0.2 ; END M3
SITE unit CLASS CORE ; SIZE 0.2 BY 2 ; END unit
"""


def master(name: str, width: float, height: float, about: str = "CLASS BLOCK ; SYMMETRY X Y ;") -> str:
    """Returns a LEF macro with the pins D (left), Q (right) and VDD."""
    return f"""\
MACRO {name} {about} SIZE {width} BY {height} ;
  PIN D DIRECTION INPUT ; PORT LAYER M2 ; RECT 0 {0.4 * height:g} 0.1 {0.4 * height + 0.1:g} ; END END D
  PIN Q DIRECTION OUTPUT ; PORT LAYER M2 ; RECT {width - 0.1:g} {0.6 * height:g} {width:g} {0.6 * height + 0.1:g} ;
  END END Q
  PIN VDD DIRECTION INOUT ; USE POWER ; PORT LAYER M1 ; RECT 0 0 {width:g} 0.1 ; END END VDD
  OBS LAYER M1 ; RECT 0 0 {width:g} {height:g} ; END
END {name}
"""


BUF = master("BUF", 1, 2, "CLASS CORE ; SYMMETRY X Y ; SITE unit ;")
RAM = master("RAM", 20, 30)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chip:
    """A chip of macros and cells; by default a chain m0, c0, m1, c1, …, from the port `a` on.

    Attributes:
        core: its sides; a die as large is written, and rows of 2 µm, unless `rows` has other ones.
        masters: LEF macros beside BUF.
        macros: name → what follows it in COMPONENTS: master and options.
        cells: names → options of BUF cells.
        nets: name → connections; None: the chain.
        ports: name → options in PINS.
        sections: further sections of the DEF file.
        units: database units per µm.
        die, rows: other statements than those of `core`.
    """

    core: tuple[float, float] = (100, 100)
    masters: str = RAM
    macros: Mapping[str, str] = dataclasses.field(default_factory=lambda: {"m0": "RAM", "m1": "RAM"})
    cells: Mapping[str, str] = dataclasses.field(default_factory=lambda: {"c0": "", "c1": ""})
    nets: Mapping[str, str] | None = None
    ports: Mapping[str, str] = dataclasses.field(
        default_factory=lambda: {"a": "+ NET n0 + DIRECTION INPUT + LAYER M2 ( 0 0 ) ( 100 100 ) + FIXED ( 0 500 ) N"}
    )
    sections: str = ""
    units: int = 1000
    die: str | None = None
    rows: str | None = None

    @property
    def lef(self) -> str:
        """Returns the text of the LEF file."""
        return f"{TECHNOLOGY}{BUF}{self.masters}END LIBRARY\n"

    @property
    def text(self) -> str:
        """Returns the text of the DEF file."""
        width, height = (round(side * self.units) for side in self.core)
        rows = self.rows
        if rows is None:
            rows = row_statements(0, 0, *self.core, units=self.units)
        components = [f"{name} {rest}" for name, rest in self.macros.items()]
        components += [f"{name} BUF {rest}" for name, rest in self.cells.items()]
        nets = self.nets if self.nets is not None else self.chain()
        sections = {
            "COMPONENTS": components,
            "PINS": [f"{name} {options}" for name, options in self.ports.items()],
            "NETS": [f"{name} {ends}" for name, ends in nets.items()],
        }
        written = [section(name, entries) for name, entries in sections.items()]
        return (
            f"VERSION 5.8 ;\nDESIGN top ;\nUNITS DISTANCE MICRONS {self.units} ;\n"
            f"DIEAREA {self.die or f'( 0 0 ) ( {width} {height} )'} ;\n{rows}"
            f"{written[0]}{written[1]}{self.sections}{written[2]}END DESIGN\n"
        )

    def chain(self) -> dict[str, str]:
        """Returns a chain of nets through all macros and cells, beginning at the first port."""
        macros, cells = list(self.macros), list(self.cells)
        names = [name for pair in zip(macros, cells, strict=False) for name in pair]
        names += macros[len(cells) :] + cells[len(macros) :]
        ends = ["( PIN a )"] if "a" in self.ports else []
        nets, last = {}, "".join(ends)
        for number, name in enumerate(names):
            nets[f"n{number}"] = f"{last} ( {name} D )"
            last = f"( {name} Q )"
        return nets

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Writes `chip.lef` and `chip.def` to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "chip.lef").write_text(self.lef, encoding="utf-8")
        (folder / "chip.def").write_text(self.text, encoding="utf-8")
        return folder / "chip.lef", folder / "chip.def"


def section(name: str, entries: Sequence[str]) -> str:
    """Returns a section of a DEF file."""
    return "".join([f"{name} {len(entries)} ;\n", *(f"- {entry} ;\n" for entry in entries), f"END {name}\n"])


def row_statements(x: float, y: float, width: float, height: float, *, units: int = 1000, name: str = "r") -> str:
    """Returns rows of 2 µm that fill a box; a lower box gets rows of its height."""
    count, sites = int(height / 2), int(round(width / 0.2, 6))
    return "".join(
        f"ROW {name}{row} unit {round(x * units)} {round((y + 2 * row) * units)} N "
        f"DO {sites} BY 1 STEP {round(0.2 * units)} 0 ;\n"
        for row in range(count)
    )
