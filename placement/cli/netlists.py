"""The commands that describe designs or generate them: `describe`, `generate`."""

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

USUAL = FlatOptions(cells=20000, macros=40, ports=120, macro_pins=60, macro_utilization=0.5)
"""The defaults of `generate flat`."""


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
        macro_pins: pins of each macro; null: 60
        varied: draw these, which must be null, and the macros' banks, area and halo from the seed
    """

    cells: int | None = None
    macros: int | None = None
    ports: int | None = None
    macro_pins: int | None = None
    varied: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.varied and self._given:
            given = ", ".join(f"{key}={value}" for key, value in self._given.items())
            raise ConfigError(f"varied=true: draws these settings from the seed: {given}; give only one of the two")

    @property
    def _given(self) -> dict[str, Any]:
        keys = ("cells", "macros", "ports", "macro_pins")
        return {key: value for key in keys if (value := getattr(self, key)) is not None}

    @property
    def options(self) -> tuple[FlatOptions, float]:
        """The properties of the design, and the halo of its macros in µm."""
        if self.varied:
            return drawn_options(self.seed)
        return dataclasses.replace(USUAL, **self._given), 0.0


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
