"""`macro-placement export`: a placement in the forms that other tools read."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

from rich.console import Console

from placement.engine.costs import legality, violations
from placement.evaluation.given_placement import has_macro_places, placed_by_def
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.export import export_format, export_placement
from placement.netlist.files import check_output_file, write_whole
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import check_placement_file, find, load
from placement.netlist.user_placement import is_def


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Of `export`."""

    design: str
    placement: str | None = None
    format: str = "def"
    out: str
    force: bool = False

    def __post_init__(self) -> None:
        export_format(self.format)  # raises DesignError if it is unknown


def export(config: ExportConfig, console: Console) -> None:
    """Writes a placement in the requested format.

    Raises:
        DesignError: the design or the placement cannot be read, the design was not imported from files of the format,
            or the file exists.
        OSError: the file cannot be written.
    """
    out = Path(config.out)
    check_output_file("out", out)
    if out.exists() and not config.force:
        raise DesignError(f"out={out}: is there already; give another name, or --force")
    folder = find(config.design).parent
    design = load(config.design)
    placement = _placement(config, design)
    exported = export_placement(design, placement, folder, form=config.format, name=out.name)
    write_whole(out, gzip.compress(exported.data, 6, mtime=0) if out.name.endswith(".gz") else exported.data)
    for note in (*_faults(design, placement), *exported.notes):
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{exported.macros} macros as {config.format}: {out}", markup=False, highlight=False, soft_wrap=True)


def _placement(config: ExportConfig, design: Design) -> Placement:
    if config.placement is None:
        if not has_macro_places(design):
            raise DesignError(f"placement: the macros of {design.name} have no places yet; give a .plc or .def file")
        return design.initial
    check_placement_file("placement", config.placement)
    if is_def(config.placement):
        return placed_by_def(config.placement, config.design, design)
    return read_placement(config.placement, design.netlist, located=design.initial)[1]


def _faults(design: Design, placement: Placement) -> list[str]:
    """Notes on what is not legal."""
    found = legality(design, placement)
    notes = [f"{found.overlaps} pairs of macros overlap"] if found.overlaps else []
    notes += [f"{found.outside} macros stand outside of the core"] if found.outside else []
    broken = {name.replace("_", " "): count for name, count in violations(design, placement)._asdict().items() if count}
    if broken:
        notes.append("constraints are broken: " + ", ".join(f"{name} {count} times" for name, count in broken.items()))
    return notes
