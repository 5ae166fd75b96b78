"""Imports a chip's files as the design that every later step reads, and writes the design folder.

The folder contains the clustered netlist and an initial placement in Circuit Training's formats, the flat netlist in a
compact format, the macros' constraints, the cells' clusters, the user's DEF file, and the names and checksums of all
source files.
"""

import contextlib
import dataclasses
import gzip
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from placement.netlist.canvas import RoutingCapacity, canvas_of
from placement.netlist.clustering.cluster import Clustering, ClusteringSettings, cluster_cells
from placement.netlist.clustering.soft_macros import check_macro_names, clustered_design
from placement.netlist.constraints import Constraints
from placement.netlist.constraints_file import CONSTRAINTS_NAME, write_constraints
from placement.netlist.design import Canvas, Design, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import check_constraints
from placement.netlist.files import write_npz, write_whole
from placement.netlist.flat_design import FLAT_NAME, FlatDesign, write_flat
from placement.netlist.flat_design_checks import tall_cells
from placement.netlist.formats.bookshelf import read_bookshelf
from placement.netlist.formats.def_design import read_lef_def
from placement.netlist.formats.def_file import DefFile
from placement.netlist.formats.plc import read_canvas, write_placement
from placement.netlist.formats.protobuf import write_netlist
from placement.netlist.formats.protobuf_design import read_protobuf_canvas, read_protobuf_def
from placement.netlist.formats.timing_files import read_timing_files
from placement.netlist.formats.verilog_design import read_verilog_def
from placement.netlist.guides import with_guides
from placement.netlist.import_constraints import ConstraintSettings, constraints_of
from placement.netlist.load import (
    CLUSTERS_NAME,
    DEF_NAME,
    INITIAL_NAME,
    NETLIST_NAMES,
    POSITIONS_NAME,
    SOURCE_NAME,
    design_folder,
)
from placement.netlist.macro_arrays import ArraySetting, with_arrays
from placement.netlist.timing_netlist import TIMING_NAME, InputFile, TimingNetlist, write_timing

FilePath = str | os.PathLike[str]
Phase = Callable[[str], AbstractContextManager[Any]]
"""Context manager around a stage of the work, made from the stage's name."""
Place = Callable[[FlatDesign, Design], Placement]
"""Places cells and movable macros together: maps the flat design, and the same on the canvas with its constraints, to a
placement of the flat netlist. Raises DesignError if it cannot."""
_SOURCES = "give lef and def (with verilog, where the def has no nets), or bookshelf, or protobuf with def or plc"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChipFiles:
    """The files of a chip; they may be gzipped.

    Attributes:
        lef: technology and library files, in any order: --lef tech.lef cells.lef, or --lef several times
        def_: DEF file with nets; with --verilog or --protobuf its floorplan is sufficient
        verilog: netlist after synthesis, hierarchical or flat, for a DEF file without nets
        bookshelf: .aux file
        protobuf: Circuit Training's netlist before clustering
        plc: placement file with the canvas of a protobuf without DEF
        liberty: timing of cells and macros, of one corner, for timing=true; needs a netlist from DEF or Verilog
        sdc: timing constraints

    Raises:
        DesignError: the files do not make up one chip.
    """

    lef: tuple[FilePath, ...] = ()
    def_: FilePath | None = None
    verilog: tuple[FilePath, ...] = ()
    bookshelf: FilePath | None = None
    protobuf: FilePath | None = None
    plc: FilePath | None = None
    liberty: tuple[FilePath, ...] = ()
    sdc: FilePath | None = None

    def __post_init__(self) -> None:
        for is_wrong, message in (
            (
                self.verilog and (self.bookshelf or self.protobuf),
                f"verilog and {'bookshelf' if self.bookshelf else 'protobuf'} are two netlists: {_SOURCES}",
            ),
            (
                self.verilog and not (self.def_ and self.lef),
                "verilog needs a floorplan and the sizes of its masters: give def and lef, too",
            ),
            (self.sdc and not self.liberty, "sdc needs liberty: give liberty, too"),
            (
                self.liberty and (self.bookshelf or self.protobuf),
                "liberty needs a netlist with the cells' pins, which bookshelf and protobuf do not have: give lef and "
                "def, with nets or verilog",
            ),
            (self.bookshelf and self.protobuf, f"bookshelf and protobuf are two netlists: {_SOURCES}"),
            (not (self.bookshelf or self.protobuf or self.def_), f"no netlist is given: {_SOURCES}"),
            (
                self.bookshelf and (self.lef or self.def_ or self.plc or self.verilog),
                "a Bookshelf design is complete: omit lef, def, plc and verilog",
            ),
            (
                self.protobuf and bool(self.def_) == bool(self.plc),
                "protobuf needs a floorplan: give either def or plc",
            ),
            (self.plc and not self.protobuf, "plc is the floorplan of a protobuf: give protobuf, too"),
            (
                self.def_ and not self.protobuf and not self.lef,
                "def needs the sizes of its masters: give the lef files of the technology and the cells, too",
            ),
        ):
            if is_wrong:
                raise DesignError(message)

    @property
    def folders(self) -> list[str]:
        """The folders of the files with a separator, longest first; without the current one."""
        others = (self.def_, self.bookshelf, self.protobuf, self.plc, self.sdc)
        given = (*self.lef, *self.verilog, *self.liberty, *others)
        folders = {f"{Path(path).parent}{os.sep}" for path in given if path is not None}
        return sorted(folders - {f".{os.sep}"}, key=len, reverse=True)


class Chip(NamedTuple):
    """The content of a chip's files: the flat design, the canvas of a `.plc` file, and the files to export into.

    `def_data` and `positions_data` are the unpacked bytes of the DEF and the Bookshelf `.pl` file; `timing` belongs to
    the flat design as read, and is None without Liberty files.
    """

    flat: FlatDesign
    canvas: Canvas | None = None
    def_data: bytes | None = None
    positions_data: bytes | None = None
    timing: TimingNetlist | None = None


@dataclasses.dataclass(frozen=True)
class ImportSettings:
    """The settings that turn a flat design into a clustered one.

    Attributes:
        columns, rows: size of the grid; None: chosen by the rule.
        clustering: settings of the clustering of cells.
        constraints: constraints on macros, in addition to those of the files.
        arrays: macros that are placed as one (`with_arrays`). They do not change the grid. The macros of an array are
            ordered by their individual positions, from the files or from the placer, or else by name.
        banks: whether macros whose names differ only in their last number are placed as one, too.

    Example:
        >>> settings = placement.ImportSettings(columns=32, rows=32, banks=True)

    Raises:
        DesignError: a number is out of range.
    """

    columns: int | None = None
    rows: int | None = None
    clustering: ClusteringSettings = dataclasses.field(default_factory=ClusteringSettings)
    constraints: ConstraintSettings = dataclasses.field(default_factory=ConstraintSettings)
    arrays: Sequence[ArraySetting] = ()
    banks: bool = False

    def __post_init__(self) -> None:
        for key in ("columns", "rows"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise DesignError(f"{key}={value}: must be at least 1")


@dataclasses.dataclass(frozen=True, eq=False)
class ImportedDesign:
    """A flat design and the data derived from it."""

    flat: FlatDesign  # the design as read, with arrays in place of their macros
    # hard macros, soft macros and ports on the canvas, with the macros' constraints; positions count from the core's
    # lower left corner
    design: Design
    clustering: Clustering  # the cluster of each cell: soft macro `Grp_<cluster>` of `design`
    capacity: RoutingCapacity  # the details of the canvas's routing capacity
    notices: tuple[str, ...]  # unusual, assumed, derived or omitted facts


def read_chip(files: ChipFiles, *, name: str | None = None, free_macros: bool = False) -> Chip:
    """Reads the flat design in a chip's files, named `name` or as in the files; its notices name files without folders.

    Raises DesignError if a file cannot be used.
    """
    lefs = list(files.lef)
    if files.bookshelf:
        flat, positions = read_bookshelf(files.bookshelf, name=name, free_blocks=free_macros)
        chip = Chip(flat, positions_data=positions)
    elif files.protobuf and files.plc:
        canvas, source = read_canvas(files.plc)
        flat = read_protobuf_canvas(files.protobuf, canvas, name=name)
        chip = Chip(dataclasses.replace(flat, sources=(*flat.sources, source)), canvas)
    else:
        assert files.def_ is not None
        if files.protobuf:
            flat, data = read_protobuf_def(files.protobuf, files.def_, lefs=lefs, name=name)
            chip = Chip(flat, def_data=data)
        else:
            if files.verilog:
                flat, file = read_verilog_def(files.verilog, lefs, files.def_, name=name, free_macros=free_macros)
            else:
                flat, file = read_lef_def(lefs, files.def_, name=name, free_macros=free_macros)
            chip = _with_timing(Chip(flat, def_data=file.data), file, files)
    flat, folders = chip.flat.freed() if free_macros else chip.flat, files.folders
    # Replace only at the beginning of a notice, since elsewhere the same text may be part of a name.
    notices = tuple(
        notice.removeprefix(next((folder for folder in folders if notice.startswith(folder)), ""))
        for notice in flat.notices
    )
    return chip._replace(flat=dataclasses.replace(flat, notices=notices))


def _with_timing(chip: Chip, file: DefFile, files: ChipFiles) -> Chip:
    """Adds the timing in Liberty files to the chip, and its sources and notices to those of the flat design."""
    if not files.liberty:
        return chip
    flat = chip.flat
    timing = read_timing_files(file, flat, files.liberty, files.sdc)
    given = [("verilog", path) for path in files.verilog] + [("liberty", path) for path in files.liberty]
    before_def = len(flat.sources) - 1
    sources = (*flat.sources[before_def - len(files.verilog) : before_def], *timing.sources)
    inputs = tuple(
        InputFile(kind, os.path.abspath(path), source.sha256)
        for (kind, path), source in zip(given, sources, strict=False)  # The sources of the constraints come last.
    )
    timing = dataclasses.replace(timing, top=file.design or flat.name, files=(*inputs, *timing.files))
    flat = dataclasses.replace(flat, sources=(*flat.sources, *timing.sources), notices=(*flat.notices, *timing.notices))
    return chip._replace(flat=flat, timing=timing)


def import_flat(
    flat: FlatDesign,
    settings: ImportSettings | None = None,
    *,
    canvas: Canvas | None = None,
    place: Place | None = None,
    phase: Phase = contextlib.nullcontext,
) -> ImportedDesign:
    """Chooses the grid, clusters the cells and builds the clustered design with its constraints.

    Args:
        flat: the design as read.
        settings: defaults to `ImportSettings()`.
        canvas: replaces the canvas derived from the floorplan; the settings' grid still applies.
        place: finds the positions that clusters follow if cells or macros have none; None: clusters follow the cells'
            own positions if all have one, otherwise connectivity alone.
        phase: context manager around each stage.

    Raises:
        DesignError: like `canvas_of`, `cluster_cells`, `clustered_design`, `check_macro_names`, `constraints_of`,
            `with_arrays` and `check_constraints`; the design has no macro, or macros are larger than the core. All
            errors but those of the clustering are raised before it.
    """
    chosen = settings or ImportSettings()
    if not len(flat.netlist.hard):
        reason = tall_cells(flat)
        raise DesignError(f"design {flat.name!r} has no macros to place" + (f"; {reason}" if reason else ""))
    kept, left_out = constraints_of(flat, chosen.constraints)
    _check_sizes(flat, kept)
    with phase("grid and routing capacity"):
        canvas, capacity = _canvas(flat, chosen, kept, canvas)
    places, unordered = None, tuple[str, ...]()
    if chosen.arrays or chosen.banks:
        join = partial(with_arrays, flat, kept, chosen.arrays, banks=chosen.banks)
        places, unordered = _macro_places(flat, join, _flat_on(canvas, flat, kept), place, phase)
    flat, kept, scattered = with_arrays(flat, kept, chosen.arrays, banks=chosen.banks, places=places)
    check_macro_names(flat.netlist)
    _check_sizes(flat, kept)
    kept, of_guides = with_guides(flat, kept, canvas)
    on_canvas = _flat_on(canvas, flat, kept)
    violated = check_constraints(on_canvas)
    at, not_placed = flat, tuple[str, ...]()
    if not flat.netlist.num_nets:
        not_placed = ("no net has two pins: a search considers only the areas of macros",)
    elif place is not None and chosen.clustering.use_positions and not _is_placed(flat):
        with phase("placing cells and macros"):
            try:
                at = dataclasses.replace(flat, placement=place(flat, on_canvas))
            except DesignError as error:
                not_placed = (f"cells and macros could not be placed together for the clustering: {error}",)
    with phase("clustering"):
        clustering = cluster_cells(at, canvas, settings=chosen.clustering)
    with phase("clustered netlist"):
        design, dropped = clustered_design(flat, clustering, canvas)
        node_of = {name: node for node, name in enumerate(design.netlist.names)}
        number = np.array([node_of.get(name, -1) for name in flat.netlist.names])
        design = dataclasses.replace(design, constraints=kept.renumbered(number, design.netlist.num_nodes))
    hard = flat.netlist.hard
    fixed = f"all {len(hard)} macros are fixed: there is nothing to place, unless they are freed"
    own = [fixed] if flat.placement.fixed[hard].all() else []
    notices = (*flat.notices, *left_out, *of_guides, *own, *unordered, *scattered, *violated, *capacity.notices)
    notices += (*not_placed, *clustering.notices, *dropped)
    return ImportedDesign(flat=flat, design=design, clustering=clustering, capacity=capacity, notices=notices)


def _check_sizes(flat: FlatDesign, constraints: Constraints) -> None:
    """Raises DesignError if a movable macro exceeds the core in every orientation, or all macros together do."""
    netlist, core = flat.netlist, flat.floorplan.core
    movable = netlist.hard[~flat.placement.fixed[netlist.hard]]
    across = np.array([core.width, core.height]) * (1 + 1e-9)
    sides = np.stack((netlist.width[movable], netlist.height[movable]), axis=1)
    masks = constraints.orientations[movable]
    fits = (sides <= across).all(axis=1) & (masks & 15 > 0)  # N, FN, S, FS are 0 to 3, and E, FE, W, FW 4 to 7.
    turned = (sides <= across[::-1]).all(axis=1)
    fits |= turned & (masks >> 4 > 0)
    if not fits.all():
        first = int(np.flatnonzero(~fits)[0])
        node, (width, height) = movable[first], sides[first].tolist()
        master = f" ({flat.master_names[flat.master[node]]})" if flat.master[node] >= 0 else ""
        more = f" (as are {int((~fits).sum()) - 1} more)" if (~fits).sum() > 1 else ""
        remedy = "give --any-orientation, or enlarge the core" if turned[first] else "enlarge the core"
        raise DesignError(
            f"{flat.name}: macro {netlist.names[node]!r}{master} of {width:g} × {height:g} µm is larger than the core "
            f"of {core.width:g} × {core.height:g} µm{more}: {remedy}"
        )
    area = float(sides.prod(axis=1).sum())
    if area > core.area * (1 + 1e-9):
        raise DesignError(
            f"{flat.name}: {len(movable)} macros take {area:g} µm², more than the {core.area:g} µm² of the core of "
            f"{core.width:g} × {core.height:g} µm: enlarge the core"
        )


def _canvas(
    flat: FlatDesign, settings: ImportSettings, constraints: Constraints, canvas: Canvas | None
) -> tuple[Canvas, RoutingCapacity]:
    if canvas is None:
        return canvas_of(flat, columns=settings.columns, rows=settings.rows, constraints=constraints)
    canvas = dataclasses.replace(canvas, columns=settings.columns or canvas.columns, rows=settings.rows or canvas.rows)
    return canvas, RoutingCapacity(
        canvas.routes_horizontal, canvas.routes_vertical, canvas.macro_routes_horizontal, canvas.macro_routes_vertical
    )


def _is_placed(flat: FlatDesign) -> bool:
    """Whether all cells and macros are placed."""
    return bool(flat.placement.placed[flat.netlist.kind != NodeKind.PORT].all())


def _macro_places(
    flat: FlatDesign, join: Callable[..., tuple[FlatDesign, Constraints, tuple[str, ...]]], on_canvas: Design,
    place: Place | None, phase: Phase,
) -> tuple[Placement | None, tuple[str, ...]]:  # fmt: skip
    """Individual positions of macros, for the order in their arrays; None and a notice if they are unknown.

    The files' positions are used if macros already form arrays in them, or if all cells have positions, too.
    """
    joined, _, notices = join()  # This raises before the work if an array is wrong.
    if not joined.arrays:
        return None, ()
    macros_placed = flat.placement.placed[flat.netlist.hard].all()
    if _is_placed(flat) or (macros_placed and (not notices or not join(places=flat.placement)[2])):
        return flat.placement, ()
    why = "cells and macros are not placed for the clustering"
    if place is not None:
        with phase("placing cells and macros, for the order in arrays"):
            try:
                return place(flat, on_canvas), ()
            except DesignError as error:
                why = str(error)
    return None, (f"the macros of arrays are in the order of their names: {why}",)


def _flat_on(canvas: Canvas, flat: FlatDesign, constraints: Constraints) -> Design:
    """The flat netlist on the canvas, with the same constraints as the clustered one."""
    core, given = flat.floorplan.core, flat.placement
    x = np.where(given.placed, given.x - core.x_low, 0.0)
    y = np.where(given.placed, given.y - core.y_low, 0.0)
    return Design(flat.name, flat.netlist, canvas, dataclasses.replace(given, x=x, y=y), constraints=constraints)


def write_design(
    folder: FilePath,
    imported: ImportedDesign,
    *,
    def_data: bytes | None = None,
    positions_data: bytes | None = None,
    timing: TimingNetlist | None = None,
    extra: Mapping[str, bytes] | None = None,
) -> None:
    """Writes the design folder entirely or not at all, replacing an existing design (`design_folder`).

    Nodes without a place are located at the canvas's centre in the first placement. The unpacked bytes of the user's
    DEF or `.pl` file (`Chip`) are kept for exports; `timing` belongs to the imported flat design
    (`TimingNetlist.onto`); `extra` are further files, name → bytes.

    Raises:
        DesignError: the netlist has a form that the format cannot express.
        OSError: the folder cannot be made or written.
    """
    design, clustering = imported.design, imported.clustering
    with design_folder(folder) as made:
        initial = all_placed(design)
        write_netlist(made / NETLIST_NAMES[1], design.netlist, initial)
        write_placement(made / INITIAL_NAME, design, initial)
        write_constraints(made / CONSTRAINTS_NAME, design.netlist, design.constraints)
        write_flat(made / FLAT_NAME, imported.flat)
        if timing is not None:
            write_timing(made / TIMING_NAME, timing)
        write_npz(made / CLUSTERS_NAME, {"cluster": clustering.cluster})
        write_whole(made / SOURCE_NAME, json.dumps(_source(imported), indent=1, ensure_ascii=False) + "\n")
        for name, data in ((DEF_NAME, def_data), (POSITIONS_NAME, positions_data)):
            if data is not None:
                write_whole(made / name, gzip.compress(data, 6, mtime=0))
        for name, data in (extra or {}).items():
            write_whole(made / name, data)


def all_placed(design: Design) -> Placement:
    """The design's placement, with unplaced nodes at the canvas's centre."""
    initial, canvas = design.initial, design.canvas
    x = np.where(initial.placed, initial.x, canvas.width / 2)
    y = np.where(initial.placed, initial.y, canvas.height / 2)
    return dataclasses.replace(initial, x=x, y=y, placed=np.ones_like(initial.placed))


def _source(imported: ImportedDesign) -> dict[str, Any]:
    flat, core, clustering = imported.flat, imported.flat.floorplan.core, imported.clustering
    return {
        "name": flat.name,
        "files": [dataclasses.asdict(source) for source in flat.sources],
        "database_units_per_micron": flat.floorplan.units,
        "core_offset": [core.x_low, core.y_low],
        "clustering": dataclasses.asdict(clustering.settings) | {"soft_macros": clustering.count},
        "arrays": {flat.netlist.names[array.node]: list(array.names) for array in flat.arrays},
        "notices": list(imported.notices),
    }
