"""`macro-placement export`: a placement in the forms that other tools read."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from placement.config import ConfigError
from placement.engine.costs import legality, violations
from placement.evaluation.placements import has_macro_places, read_file
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import check_output_file, unpacked_bytes, write_whole
from placement.netlist.flat_design import FlatDesign
from placement.netlist.flat_file import DEF_NAME, POSITIONS_NAME
from placement.netlist.formats import export as forms
from placement.netlist.formats.def_file import read_def
from placement.netlist.formats.export import MacroLocation
from placement.netlist.formats.plc import placement_text
from placement.netlist.formats.protobuf_writer import netlist_text
from placement.netlist.load import check_placement_file, find, load
from placement.netlist.user_placement import read_imported_flat

# Formats that are a text of the macros' locations and the database units per µm.
_TEXTS: dict[str, Callable[[Sequence[MacroLocation], float], str]] = {
    "openroad": forms.openroad_tcl,
    "innovus": forms.innovus_tcl,
    "icc2": forms.icc2_tcl,
    "csv": forms.csv_text,
}
# Formats that hold what is to change, not all locations.
_CHANGES = ("def", "openroad", "innovus", "icc2")
FORMATS = ("def", "openroad", "innovus", "icc2", "bookshelf", "plc", "csv", "protobuf")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """Settings of `export`.

    Attributes:
        design: an imported design: its folder, or its name on PLACEMENT_PATH
        placement: the .plc or .def that is exported; null: the placement that the design comes with
        format: def, openroad, innovus, icc2, bookshelf, plc, csv or protobuf
        out: the file that is written, gzipped if its name ends in .gz
        force: replace the file if it exists
    """

    design: str
    placement: str | None = None
    format: str = "def"
    out: str
    force: bool = False

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ConfigError(f"format={self.format!r}: must be one of {', '.join(FORMATS)}")


def export(config: ExportConfig, console: Console) -> None:
    """Writes a placement in the requested format.

    Raises:
        DesignError: the design or the placement cannot be read, the design's own files do not have the format, or
            the file exists.
        OSError: the file cannot be written.
    """
    out = Path(config.out)
    check_output_file("out", out)
    if out.exists() and not config.force:
        raise DesignError(f"out={out}: exists; give another name, or --force")
    folder = find(config.design).parent
    design = load(config.design)
    placement = _placement(config, design)
    notes = _faults(design, placement)
    if config.format in ("plc", "protobuf"):
        text = placement_text(out.name, design, placement) if config.format == "plc" else netlist_text(
            design.netlist, placement
        )  # fmt: skip
        data, count = text.encode(), len(design.netlist.hard)
    else:
        data, off_grid, count = user_data(config.format, folder, design, placement)
        notes += off_grid
    write_whole(out, gzip.compress(data, 6, mtime=0) if out.name.endswith(".gz") else data)
    for note in notes:
        console.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{count} macros as {config.format}: {out}", markup=False, highlight=False, soft_wrap=True)


def user_data(form: str, folder: Path, design: Design, placement: Placement) -> tuple[bytes, list[str], int]:
    """The bytes of a format that holds the macros in the user's coordinates, notes on them, and how many it holds.

    Args:
        form: one of `FORMATS`, but plc and protobuf.
        folder: of the design.
        design: as it was loaded from there.
        placement: of its macros.

    Raises:
        DesignError: the design was not imported, or its own files do not have the format.
    """
    flat = read_imported_flat(folder)
    locations = forms.macro_locations(flat, design.netlist, placement)
    notes = _off_grid(flat, locations)
    if form in _CHANGES:
        moved = forms.without_fixed(flat, locations)
        stays = len(locations) - len(moved)
        notes += [f"{stays} of {len(locations)} macros are fixed, and stay as your files have them"] if stays else []
        locations = moved
    return _data(form, folder, flat, locations), notes, len(locations)


def _placement(config: ExportConfig, design: Design) -> Placement:
    if config.placement is None:
        if not has_macro_places(design):
            raise DesignError(f"placement: the macros of {design.name} have no locations yet; give a .plc or .def file")
        return design.initial
    check_placement_file("placement", config.placement)
    return read_file(config.placement, config.design, design)[0]


def _data(form: str, folder: Path, flat: FlatDesign, locations: Sequence[MacroLocation]) -> bytes:
    """The file's bytes, of formats that hold the macros in the user's coordinates."""
    units = flat.floorplan.units
    if form in _TEXTS:
        return _TEXTS[form](locations, units).encode()
    source = folder / (DEF_NAME if form == "def" else POSITIONS_NAME)
    if not source.is_file():
        what = "a DEF file" if form == "def" else "a Bookshelf design with a .pl file"
        raise DesignError(f"format={form}: {folder} was not imported from {what} (there is no {source.name})")
    if form == "def":
        return forms.def_bytes(read_def(source), locations)
    return forms.bookshelf_pl(unpacked_bytes(source).decode(), locations, units).encode()


def _faults(design: Design, placement: Placement) -> list[str]:
    """The faults of the placement, in words."""
    found = legality(design, placement)
    notes = [f"{found.overlaps} pairs of macros overlap"] if found.overlaps else []
    notes += [f"{found.outside} macros are outside of the core"] if found.outside else []
    broken = {name.replace("_", " "): count for name, count in violations(design, placement)._asdict().items() if count}
    if broken:
        notes.append("constraints are broken: " + ", ".join(f"{name} {count} times" for name, count in broken.items()))
    return notes


def _off_grid(flat: FlatDesign, locations: Sequence[MacroLocation]) -> list[str]:
    """Macros that are not on the manufacturing grid, in words."""
    grid = round(flat.floorplan.manufacturing_grid * flat.floorplan.units)
    if grid <= 1:
        return []
    corners = np.array([(place.x, place.y) for place in locations], dtype=np.int64)
    off = int((corners % grid != 0).any(axis=1).sum())
    what = f"macros are not on the manufacturing grid of {flat.floorplan.manufacturing_grid:g} µm"
    return [f"{off} {what}"] if off else []
