"""The commands that download, describe and generate designs: `fetch`, `describe`, `generate`."""

import dataclasses
from pathlib import Path
from typing import Any

from rich.console import Console

from placement.config import ConfigError, DesignSettings, OutputSettings, Seeded
from placement.netlist.generators.clustered import clustered
from placement.netlist.generators.flat import FlatOptions, drawn_options, flat_on_floorplan
from placement.netlist.import_constraints import ConstraintSettings
from placement.netlist.importing import ImportSettings, import_flat, write_design
from placement.netlist.load import check_design_folder, load, save
from placement.netlist.public_designs import PUBLIC_DESIGNS, SOURCE, PublicFile, fetch, public_design
from placement.report.progress_bar import progress_bars

USUAL = FlatOptions(cells=20000, macros=40, ports=120, macro_pins=60, macro_utilization=0.5)
"""The defaults of `generate flat`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FetchConfig:
    """Settings of `fetch`.

    Attributes:
        name: the design; null: list all designs
        out: folder for the files; null: where commands find the design by name
        source: address of a copy of the MacroPlacement repository's files (http, https or file); {ref} in it is
            replaced by a branch or commit
    """

    name: str | None = None
    out: str | None = None
    source: str = SOURCE


@dataclasses.dataclass(frozen=True, kw_only=True)
class GeneratedDesign(OutputSettings):
    """The output of the `generate` commands.

    Attributes:
        out: the design's folder, named after the design
    """

    out: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusteredConfig(GeneratedDesign, Seeded):
    """Settings of `generate clustered`.

    Attributes:
        hard: hard macros
        soft: soft macros
        ports: ports on the edge
    """

    hard: int = 40
    soft: int = 250
    ports: int = 120


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlatConfig(GeneratedDesign, Seeded):
    """Settings of `generate flat`.

    Attributes:
        cells: standard cells; null: 20000
        macros: hard macros; null: 40
        ports: ports on the edge; null: 120
        varied: draw the settings above, which must be null, and the macros' banks, area and halo from the seed
    """

    cells: int | None = None
    macros: int | None = None
    ports: int | None = None
    varied: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.varied and self._given:
            given = ", ".join(f"{key}={value}" for key, value in self._given.items())
            raise ConfigError(f"varied=true: draws these settings from the seed: {given}; give only one of the two")

    @property
    def _given(self) -> dict[str, Any]:
        keys = ("cells", "macros", "ports")
        return {key: value for key in keys if (value := getattr(self, key)) is not None}

    @property
    def options(self) -> tuple[FlatOptions, float]:
        """The properties of the design, and the halo of its macros in µm."""
        if self.varied:
            return drawn_options(self.seed)
        return dataclasses.replace(USUAL, **self._given), 0.0


def fetch_design(config: FetchConfig, console: Console) -> None:
    """Downloads a public design and prints how to use it, or lists all."""
    if config.name is None:
        for name, design in PUBLIC_DESIGNS.items():
            _say(console, f"{name:<18} {design.size / 1e6:5.1f} MB  {design.about}")
        return
    design = public_design(config.name)
    arrived = dict.fromkeys(design.files, 0)
    with progress_bars(console, config.name) as (bar,):

        def progress(file: PublicFile, done: int) -> None:
            arrived[file] = done
            bar(sum(arrived.values()) / design.size, file.name)

        out = None if config.out is None else Path(config.out)
        folder = fetch(config.name, out, source=config.source, progress=progress)
    _say(console, f"{config.name}: {len(design.files)} files, {design.size / 1e6:.1f} MB, verified: {folder}")
    if design.importing:
        _say(console, f"next: macro-placement import {design.import_arguments(folder)} --out designs/{config.name}")
    elif out is None:
        _say(console, f"next: macro-placement search design={config.name}")


def describe(config: DesignSettings, console: Console) -> None:
    """Prints a design's statistics."""
    # Imported late, since Matplotlib takes a second.
    from placement.report.describe import print_description

    assert config.design is not None
    print_description(load(config.design, config.initial))


def generate_clustered(config: ClusteredConfig, console: Console) -> None:
    """Writes a clustered design."""
    check_design_folder(config.out, force=config.force)
    save(
        config.out,
        clustered(name=_name(config), hard=config.hard, soft=config.soft, ports=config.ports, seed=config.seed),
    )
    console.print(config.out, soft_wrap=True)


def generate_flat(config: FlatConfig, console: Console) -> None:
    """Writes a design of standard cells and macros: the flat netlist, and the design imported from it."""
    # Imported late, since JAX takes seconds.
    from placement.flat.global_placement import place_before_clustering

    check_design_folder(config.out, force=config.force)
    options, halo = config.options
    flat = flat_on_floorplan(_name(config), options, seed=config.seed)
    settings = ImportSettings(constraints=ConstraintSettings(halo=(halo, halo)))
    imported = import_flat(flat, settings, place=place_before_clustering)
    write_design(config.out, imported)
    for notice in imported.notices:
        console.print(f"note: {notice}", soft_wrap=True)
    console.print(config.out, soft_wrap=True)


def _name(config: GeneratedDesign) -> str:
    """The name of the design, which is the last component of its folder's path."""
    return Path(config.out).resolve().name


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
