"""`macro-placement import`: from a chip's files to a design folder."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from placement.cli.constraint_options import ConstraintOptions
from placement.config import ConfigError
from placement.netlist.assembly.bookshelf import read_bookshelf_file
from placement.netlist.assembly.flat_protobuf import read_protobuf_canvas, read_protobuf_def
from placement.netlist.assembly.lef_def import read_lef_def
from placement.netlist.clustering.settings import ClusteringSettings
from placement.netlist.design import Canvas, NodeKind
from placement.netlist.design_folder import PICTURE_NAME, check_design_folder
from placement.netlist.flat_design import FlatDesign
from placement.netlist.formats.plc import read_canvas
from placement.netlist.grid import GridRule
from placement.netlist.importing import import_design, write_design

_SOURCES = "give --lef and --def, or --bookshelf, or --protobuf with --def or --plc"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The files that a chip is read from."""

    lef: tuple[str, ...] = ()
    def_: str | None = None
    bookshelf: str | None = None
    protobuf: str | None = None
    plc: str | None = None

    def __post_init__(self) -> None:
        if self.bookshelf and self.protobuf:
            raise ConfigError(f"--bookshelf and --protobuf are two netlists: {_SOURCES}")
        if not (self.bookshelf or self.protobuf or self.def_):
            raise ConfigError(f"no netlist is given: {_SOURCES}")
        if self.bookshelf and (self.lef or self.def_ or self.plc):
            raise ConfigError("--bookshelf has all that it needs in its own files: leave out --lef, --def and --plc")
        if self.protobuf and bool(self.def_) == bool(self.plc):
            raise ConfigError("--protobuf needs a floorplan: give either --def or --plc")
        if self.plc and not self.protobuf:
            raise ConfigError("--plc is the floorplan of a protobuf: give --protobuf, too")
        if self.def_ and not self.protobuf and not self.lef:
            raise ConfigError("--def needs the sizes of its masters: give the technology's and the cells' --lef, too")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportConfig(ConstraintOptions, SourceOptions):
    """Of `import`."""

    out: str
    name: str | None = None
    force: bool = False
    free_macros: bool = False
    columns: int | None = None
    rows: int | None = None
    spacing: float = 0.0
    tracks: tuple[float, ...] = ()
    parts: int = 500
    utilization: float = 0.5
    aspect: float = 1.0
    imbalance: float = 0.3
    runs: int = 1
    seed: int = 0
    positions: bool = True
    hierarchy: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, least in (("columns", 1), ("rows", 1)):
            value = getattr(self, key)
            if value is not None and value < least:
                raise ConfigError(f"{key}={value}: must be at least {least}")
        if self.spacing < 0:
            raise ConfigError(f"spacing={self.spacing}: must be at least 0 µm")
        taken = zip(self.tracks[2:], self.tracks[:2], strict=False)
        if self.tracks and (len(self.tracks) != 4 or not all(0 <= part <= whole for part, whole in taken)):
            raise ConfigError(
                f"tracks={list(self.tracks)}: must be four numbers of tracks per µm: across, up, and of these taken by "
                "macros, across and up"
            )
        _ = self.clustering, self.constraints, self.arrays, self.order_by_places  # raise where one is wrong

    @property
    def clustering(self) -> ClusteringSettings:
        """The clustering's settings as it takes them."""
        return ClusteringSettings(
            parts=self.parts,
            utilization=self.utilization,
            aspect=self.aspect if self.aspect != 0 else None,
            imbalance=self.imbalance,
            runs=self.runs,
            seed=self.seed,
            use_positions=self.positions,
            use_hierarchy=self.hierarchy,
        )


def import_chip(config: ImportConfig, console: Console) -> None:
    """Reads a chip, clusters its cells, writes the design folder and says what is in it.

    Raises:
        DesignError: a file cannot be used, or something stands where the folder is to be.
        OSError: the folder cannot be written.
    """
    # late: Matplotlib takes a second to import, and a wrong setting should not wait for it
    from placement.flat.global_placement import place_before_clustering
    from placement.report import floorplan_plot, style
    from placement.report.imported import import_table, notice_lines

    check_design_folder(config.out, force=config.force)
    phases = Phases(console)
    with phases("reading"):
        flat, canvas, kept = _read(config)
        flat = _adapted(flat, config)
    imported = import_design(
        flat, columns=config.columns, rows=config.rows, rule=GridRule(spacing=config.spacing),
        settings=config.clustering, constraints=config.constraints, arrays=config.arrays, banks=config.banks,
        order_by_places=config.order_by_places,
        canvas=canvas, tracks=config.tracks, place=place_before_clustering, phase=phases,
    )  # fmt: skip
    with phases("picture"):
        picture = style.png_bytes(floorplan_plot.plot_floorplan(imported))
    with phases("writing"):
        write_design(config.out, imported, extra={PICTURE_NAME: picture}, **kept)
    console.print(import_table(imported))
    for line in notice_lines(imported):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"design: {config.out}\npicture: {Path(config.out) / PICTURE_NAME}", soft_wrap=True, markup=False)


class Phases:
    """Says which part of the work goes on, and how long each one took."""

    def __init__(self, console: Console) -> None:
        self.console = console

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Surrounds a part of the work."""
        begun = time.perf_counter()
        waiting = self.console.status(f"{name} …") if self.console.is_terminal else contextlib.nullcontext()
        with waiting:
            yield
        self.console.print(f"{name:<26}{time.perf_counter() - begun:8.1f} s", highlight=False)


def _read(config: ImportConfig) -> tuple[FlatDesign, Canvas | None, dict[str, bytes]]:
    """The flat design, the canvas where a file gives one, and the user's files that an export changes.

    These are unpacked, as `write_design` takes them.
    """
    lefs: list[str | os.PathLike[str]] = list(config.lef)
    if config.bookshelf:
        flat, positions = read_bookshelf_file(config.bookshelf, name=config.name, free_blocks=config.free_macros)
        return flat, None, {} if positions is None else {"positions_data": positions}
    if config.protobuf and config.plc:
        canvas, source = read_canvas(config.plc)
        flat = read_protobuf_canvas(config.protobuf, canvas, name=config.name)
        return dataclasses.replace(flat, sources=(*flat.sources, source)), canvas, {}
    assert config.def_ is not None
    if config.protobuf:
        flat, data = read_protobuf_def(config.protobuf, config.def_, lefs=lefs, name=config.name)
    else:
        flat, data = read_lef_def(lefs, config.def_, name=config.name)
    return flat, None, {"def_data": data}


def _adapted(flat: FlatDesign, config: ImportConfig) -> FlatDesign:
    """The design with its macros freed where that is asked for, and with notices that name files without folders."""
    placement = flat.placement
    if config.free_macros:
        fixed = placement.fixed & (flat.netlist.kind != NodeKind.HARD)
        fixed[flat.pads] = True
        placement = dataclasses.replace(placement, fixed=fixed)
    given = (*config.lef, config.def_, config.bookshelf, config.protobuf, config.plc)
    folders = {f"{Path(path).parent}{os.sep}" for path in given if path is not None}
    named = sorted(folders - {f".{os.sep}"}, key=len, reverse=True)
    notices = tuple(_without_folder(notice, named) for notice in flat.notices)
    return dataclasses.replace(flat, placement=placement, notices=notices)


def _without_folder(notice: str, folders: list[str]) -> str:
    """A notice that begins with a file's path, without the folder; elsewhere the same text may be a part of names."""
    return notice.removeprefix(next((folder for folder in folders if notice.startswith(folder)), ""))
