"""The commands that look at designs or make them: `describe`, `mirror`, `generate`."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from rich.console import Console

from placement.config import ConfigError
from placement.netlist.design_folder import check_design_folder
from placement.netlist.files import check_output_file
from placement.netlist.flat_constraints import ConstraintSettings
from placement.netlist.generators.clustered import clustered
from placement.netlist.generators.flat import FlatOptions, drawn_options
from placement.netlist.generators.flat_floorplan import flat_on_floorplan
from placement.netlist.generators.planted import planted
from placement.netlist.generators.shipped import SHIPPED, save
from placement.netlist.importing import import_design, write_design
from placement.netlist.load import load
from placement.netlist.mirrored import mirrored

USUAL = FlatOptions(cells=20000, macros=40, ports=120, macro_pins=60, macro_utilization=0.5)
"""What a design of `generate flat` looks like where nothing is said."""
_SIZES = tuple(field.name for field in dataclasses.fields(FlatOptions))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DescribeConfig:
    """Of `describe`."""

    design: str
    initial: str | None = None
    plot: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class MirrorConfig:
    """Of `mirror`."""

    design: str
    initial: str | None = None
    axis: str
    out: str
    force: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShippedConfig:
    """Of `generate shipped`."""

    out: str
    force: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusteredConfig(ShippedConfig):
    """Of `generate clustered`."""

    hard: int
    soft: int
    ports: int
    seed: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlatConfig(ShippedConfig):
    """Of `generate flat`."""

    cells: int | None = None
    macros: int | None = None
    ports: int | None = None
    macro_pins: int | None = None
    bank: int | None = None
    bank_cells: float | None = None
    size_spread: float | None = None
    macro_aspect: float | None = None
    core_aspect: float | None = None
    macro_utilization: float | None = None
    cell_utilization: float | None = None
    rent_exponent: float | None = None
    halo: float | None = None
    varied: bool
    seed: int

    def __post_init__(self) -> None:
        if self.halo is not None and not 0 <= self.halo < math.inf:
            raise ConfigError(f"halo={self.halo}: must be at least 0 µm")
        if self.varied and self.given:
            given = ", ".join(f"{key}={value}" for key, value in self.given.items())
            raise ConfigError(f"varied=true: draws these itself with the seed: {given}; leave out one or the other")

    @property
    def given(self) -> dict[str, Any]:
        """What the design looks like, as far as it was said."""
        return {key: value for key in (*_SIZES, "halo") if (value := getattr(self, key)) is not None}

    @property
    def options(self) -> tuple[FlatOptions, float]:
        """What the design looks like, and the halo of its macros in µm."""
        if self.varied:
            return drawn_options(self.seed)
        given = self.given
        halo = given.pop("halo", 0.0)
        return dataclasses.replace(USUAL, **given), halo


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlantedConfig(ShippedConfig):
    """Of `generate planted`."""

    block_columns: int
    block_rows: int
    columns: int
    rows: int
    multi_pin_nets: int
    seed: int


def describe(config: DescribeConfig, console: Console) -> None:
    """Prints a design's statistics, and draws them where that is asked for."""
    # late: Matplotlib takes a second to import
    from placement.report.describe import check_plot, plot, print_description

    if config.plot:
        check_output_file("plot", config.plot)
        check_plot(config.plot)
    design = load(config.design, config.initial)
    print_description(design)
    if config.plot:
        plot(design, Path(config.plot))
        console.print(f"plot: {config.plot}", soft_wrap=True)


def mirror(config: MirrorConfig, console: Console) -> None:
    """Writes the mirror image of a design."""
    check_design_folder(config.out, force=config.force)
    save(config.out, mirrored(load(config.design, config.initial), config.axis))
    console.print(config.out, soft_wrap=True)


def generate_shipped(config: ShippedConfig, console: Console) -> None:
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
    """Writes a design of standard cells and macros: the flat netlist, and what an import makes of it."""
    from placement.flat.global_placement import place_before_clustering  # late: SciPy takes a second to import

    check_design_folder(config.out, force=config.force)
    options, halo = config.options
    flat = flat_on_floorplan(_name(config), options, seed=config.seed)
    imported = import_design(flat, constraints=ConstraintSettings(halo=(halo, halo)), place=place_before_clustering)
    write_design(config.out, imported)
    for notice in imported.notices:
        console.print(f"note: {notice}", soft_wrap=True)
    console.print(config.out, soft_wrap=True)


def generate_planted(config: PlantedConfig, console: Console) -> None:
    """Writes a design of known least wirelength."""
    check_design_folder(config.out, force=config.force)
    solved = planted(**_options(config))
    save(config.out, solved)
    console.print(f"{config.out}: least wirelength {solved.wirelength} µm", soft_wrap=True)


def _options(config: ClusteredConfig | PlantedConfig) -> dict[str, Any]:
    """A generator's arguments."""
    values = dataclasses.asdict(config)
    for key in ("out", "force"):
        del values[key]
    return {"name": _name(config), **values}


def _name(config: ShippedConfig) -> str:
    """Of the design: the last part of its folder's path."""
    return Path(config.out).resolve().name
