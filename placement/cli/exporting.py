"""`macro-placement export`: writes a placement in the formats of other tools."""

import dataclasses
from pathlib import Path

from rich.console import Console

from placement.config import GivenPlacement, OutputSettings
from placement.engine.costs import legality, violations
from placement.evaluation.placements import has_macro_places, read_file
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.export import export_format, export_placement
from placement.netlist.files import check_output_file, write_whole
from placement.netlist.load import check_placement_file, find, load


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportConfig(GivenPlacement, OutputSettings):
    """Settings of `export`.

    Attributes:
        design: imported design: its folder, or its name on PLACEMENT_PATH
        format: def, openroad, innovus, icc2, bookshelf, plc, csv or protobuf
        out: file to write, gzipped if its name ends in .gz
        blockages: a script also adds placement blockages: the macros with their halos, and those of the import
        cut_rows: a script also cuts the rows at the macros
    """

    design: str
    format: str = "def"
    out: str
    blockages: bool = False
    cut_rows: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        export_format(self.format)  # This raises DesignError if it is unknown.


def export(config: ExportConfig, console: Console) -> None:
    """Writes a placement in the requested format.

    Raises DesignError if the design or the placement cannot be read, the design was not imported from files of the
    format, or the file exists.
    """
    out = Path(config.out)
    check_output_file("out", out)
    if out.exists() and not config.force:
        raise DesignError(f"out={out}: already exists; give another name or --force")
    folder = find(config.design).parent
    design = load(config.design)
    placement = _placement(config, design)
    exported = export_placement(
        design, placement, folder, form=config.format, name=out.name, blockages=config.blockages,
        cut_rows=config.cut_rows,
    )  # fmt: skip
    write_whole(out, exported.data)
    for note in (*_faults(design, placement), *exported.notes):
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{exported.macros} macros as {config.format}: {out}", markup=False, highlight=False, soft_wrap=True)


def _placement(config: ExportConfig, design: Design) -> Placement:
    if config.placement is None:
        if not has_macro_places(design):
            raise DesignError(f"placement: the macros of {design.name} are unplaced; give a .plc or .def file")
        return design.initial
    check_placement_file("placement", config.placement)
    return read_file(config.placement, config.design, design)[0]


def _faults(design: Design, placement: Placement) -> list[str]:
    """Notes on illegally placed macros."""
    found = legality(design, placement)
    notes = [f"{found.overlaps} pairs of macros overlap"] if found.overlaps else []
    notes += [f"{found.outside} macros are outside the core"] if found.outside else []
    broken = {name.replace("_", " "): count for name, count in violations(design, placement)._asdict().items() if count}
    if broken:
        notes.append(
            "constraints are violated: " + ", ".join(f"{name} {count} times" for name, count in broken.items())
        )
    return notes
