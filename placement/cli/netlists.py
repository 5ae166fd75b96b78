"""The commands that describe designs or generate them: `describe`, `generate`."""

import dataclasses
import math
from pathlib import Path
from typing import Any

from rich.console import Console

from placement.config import ConfigError, DesignSettings, OutputSettings, Seeded
from placement.netlist.generators.clustered import clustered
from placement.netlist.generators.flat import FlatOptions, drawn_options, flat_on_floorplan
from placement.netlist.generators.planted import planted
from placement.netlist.generators.shipped import SHIPPED, save
from placement.netlist.import_constraints import ConstraintSettings
from placement.netlist.importing import ImportSettings, import_flat, write_design
from placement.netlist.load import check_design_folder, load

USUAL = FlatOptions(cells=20000, macros=40, ports=120, macro_pins=60, macro_utilization=0.5)
"""The defaults of `generate flat`."""
MULTI_PIN_NETS = 30  # number of nets with more than two pins in a design of `generate planted`


@dataclasses.dataclass(frozen=True, kw_only=True)
class GeneratedDesign(OutputSettings):
    """The output of all `generate` commands.

    Attributes:
        out: the design's folder, named after the design; for `generate shipped`, its parent folder
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
        bank: macros of one shape that connect to the same cells; null: 1
        macro_utilization: share of the core that macros cover; null: 0.5
        halo: margin of the macros in µm; null: 0.0
        varied: draw all of the above, which must be null, from the seed
    """

    cells: int | None = None
    macros: int | None = None
    ports: int | None = None
    macro_pins: int | None = None
    bank: int | None = None
    macro_utilization: float | None = None
    halo: float | None = None
    varied: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.halo is not None and not 0 <= self.halo < math.inf:
            raise ConfigError(f"halo={self.halo}: must be at least 0 µm")
        if self.varied and self._given:
            given = ", ".join(f"{key}={value}" for key, value in self._given.items())
            raise ConfigError(f"varied=true: draws these settings from the seed: {given}; give only one of the two")

    @property
    def _given(self) -> dict[str, Any]:
        keys = ("cells", "macros", "ports", "macro_pins", "bank", "macro_utilization", "halo")
        return {key: value for key in keys if (value := getattr(self, key)) is not None}

    @property
    def options(self) -> tuple[FlatOptions, float]:
        """The properties of the design, and the halo of its macros in µm."""
        if self.varied:
            return drawn_options(self.seed)
        given = self._given
        halo = given.pop("halo", 0.0)
        return dataclasses.replace(USUAL, **given), halo


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlantedConfig(GeneratedDesign, Seeded):
    """Settings of `generate planted`.

    Attributes:
        block_columns: columns of macros in the optimal placement
        block_rows: rows of macros in it
        columns: grid columns
        rows: grid rows
    """

    block_columns: int = 5
    block_rows: int = 4
    columns: int = 8
    rows: int = 8


def describe(config: DesignSettings, console: Console) -> None:
    """Prints a design's statistics."""
    # Imported late, since Matplotlib takes a second.
    from placement.report.describe import print_description

    assert config.design is not None
    print_description(load(config.design, config.initial))


def generate_shipped(config: GeneratedDesign, console: Console) -> None:
    """Writes the built-in designs."""
    folders = {name: Path(config.out) / name for name in SHIPPED}
    for folder in folders.values():
        check_design_folder(folder, force=config.force)
    for name, folder in folders.items():
        save(folder, SHIPPED[name]())
        console.print(f"{config.out}/{name}", soft_wrap=True)


def generate_clustered(config: ClusteredConfig, console: Console) -> None:
    """Writes a clustered design."""
    check_design_folder(config.out, force=config.force)
    save(config.out, clustered(**_options(config)))
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


def generate_planted(config: PlantedConfig, console: Console) -> None:
    """Writes a design of known minimum wirelength."""
    check_design_folder(config.out, force=config.force)
    solved = planted(**_options(config), multi_pin_nets=MULTI_PIN_NETS)
    save(config.out, solved)
    console.print(f"{config.out}: minimum wirelength {solved.wirelength} µm", soft_wrap=True)


def _options(config: ClusteredConfig | PlantedConfig) -> dict[str, Any]:
    values = dataclasses.asdict(config)
    for key in ("out", "force"):
        del values[key]
    return {"name": _name(config), **values}


def _name(config: GeneratedDesign) -> str:
    """The name of the design, which is the last component of its folder's path."""
    return Path(config.out).resolve().name
