"""`macro-placement import`: from a chip's files to a design folder."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from placement.cli.constraint_options import ConstraintOptions
from placement.netlist.canvas import GridRule
from placement.netlist.clustering.cluster import ClusteringSettings
from placement.netlist.importing import ChipFiles, ImportSettings, import_flat, read_chip, write_design
from placement.netlist.load import PICTURE_NAME, check_design_folder


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """The files that a chip is read from."""

    lef: tuple[str, ...] = ()
    def_: str | None = None
    bookshelf: str | None = None
    protobuf: str | None = None
    plc: str | None = None

    @property
    def files(self) -> ChipFiles:
        """The same for `read_chip`; raises DesignError if they do not make up one chip."""
        return ChipFiles(
            lef=self.lef, def_file=self.def_, bookshelf=self.bookshelf, protobuf=self.protobuf, plc=self.plc
        )


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
        _ = self.files, self.settings  # raise DesignError or ConfigError if an option is wrong

    @property
    def settings(self) -> ImportSettings:
        """Grid, clustering, constraints and arrays."""
        return ImportSettings(
            columns=self.columns,
            rows=self.rows,
            rule=GridRule(spacing=self.spacing),
            tracks=self.tracks,
            clustering=ClusteringSettings(
                parts=self.parts,
                utilization=self.utilization,
                aspect=self.aspect if self.aspect != 0 else None,
                imbalance=self.imbalance,
                runs=self.runs,
                seed=self.seed,
                use_positions=self.positions,
                use_hierarchy=self.hierarchy,
            ),
            constraints=self.constraints,
            arrays=self.arrays,
            banks=self.banks,
            order_by_places=self.order_by_places,
        )


def import_chip(config: ImportConfig, console: Console) -> None:
    """Reads a chip, clusters its cells, writes the design folder and prints what is in it.

    Raises:
        DesignError: a file cannot be used, or the folder exists and is not empty.
        OSError: the folder cannot be written.
    """
    # late: JAX and Matplotlib take seconds to import, and a wrong setting should not wait for them
    from placement.flat.before_clustering import place_together
    from placement.report import floorplan_plot, style
    from placement.report.imported import import_table, notice_lines
    from placement.training.compilation import keep_compilations

    check_design_folder(config.out, force=config.force)
    keep_compilations()
    phases = Phases(console)
    with phases("reading"):
        chip = read_chip(config.files, name=config.name, free_macros=config.free_macros)
    imported = import_flat(chip.flat, config.settings, canvas=chip.canvas, place=place_together, phase=phases)
    with phases("picture"):
        picture = style.png_bytes(floorplan_plot.plot_floorplan(imported))
    with phases("writing"):
        write_design(
            config.out, imported, def_data=chip.def_data, positions_data=chip.positions_data,
            extra={PICTURE_NAME: picture},
        )  # fmt: skip
    console.print(import_table(imported))
    for line in notice_lines(imported):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"design: {config.out}\npicture: {Path(config.out) / PICTURE_NAME}", soft_wrap=True, markup=False)


class Phases:
    """Prints how long each stage of the work took, and the current one while it runs."""

    def __init__(self, console: Console) -> None:
        self.console = console

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Surrounds a stage."""
        begun = time.perf_counter()
        waiting = self.console.status(f"{name} …") if self.console.is_terminal else contextlib.nullcontext()
        with waiting:
            yield
        self.console.print(f"{name:<26}{time.perf_counter() - begun:8.1f} s", highlight=False)
