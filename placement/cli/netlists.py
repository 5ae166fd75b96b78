"""The commands that look at designs or make them: `describe`, `mirror`, `generate`."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from rich.console import Console

from placement.config import ConfigError
from placement.netlist.flat_constraints import ConstraintSettings
from placement.netlist.generators.clustered import clustered
from placement.netlist.generators.flat import FlatOptions, drawn_options
from placement.netlist.generators.flat_floorplan import flat_on_floorplan
from placement.netlist.generators.planted import planted
from placement.netlist.generators.shipped import SHIPPED, save
from placement.netlist.importing import import_design, write_design
from placement.netlist.load import load
from placement.netlist.mirrored import mirrored


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShippedConfig:
    """Of `generate shipped`."""

    out: str


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

    cells: int
    macros: int
    ports: int
    macro_pins: int
    bank: int
    bank_cells: float
    size_spread: float
    macro_aspect: float
    core_aspect: float
    macro_utilization: float
    cell_utilization: float
    rent_exponent: float
    halo: float
    varied: bool
    seed: int


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
    from placement.report.describe import plot, print_description

    design = load(config.design, config.initial)
    print_description(design)
    if config.plot:
        plot(design, Path(config.plot))
        console.print(f"plot: {config.plot}", soft_wrap=True)


def mirror(config: MirrorConfig, console: Console) -> None:
    """Writes the mirror image of a design."""
    save(Path(config.out), mirrored(load(config.design, config.initial), config.axis))
    console.print(config.out, soft_wrap=True)


def generate_shipped(config: ShippedConfig, console: Console) -> None:
    """Writes the built-in designs."""
    for name, make in SHIPPED.items():
        save(Path(config.out) / name, make())
        console.print(f"{config.out}/{name}", soft_wrap=True)


def generate_clustered(config: ClusteredConfig, console: Console) -> None:
    """Writes a clustered design."""
    save(Path(config.out), clustered(**_options(config)))
    console.print(config.out, soft_wrap=True)


def generate_flat(config: FlatConfig, console: Console) -> None:
    """Writes a design of standard cells and macros: the flat netlist, and what an import makes of it."""
    # late: JAX takes seconds to import
    from placement.flat.before_clustering import place_together
    from placement.training.compilation import keep_compilations

    values = _options(config)
    name, seed, halo, varied = (values.pop(key) for key in ("name", "seed", "halo", "varied"))
    if not 0 <= halo < math.inf:
        raise ConfigError(f"halo={halo}: must be at least 0 µm")
    options, halo = drawn_options(seed) if varied else (FlatOptions(**values), halo)
    flat = flat_on_floorplan(name, options, seed=seed)
    keep_compilations()
    imported = import_design(flat, constraints=ConstraintSettings(halo=(halo, halo)), place=place_together)
    write_design(config.out, imported)
    for notice in imported.notices:
        console.print(f"note: {notice}", soft_wrap=True)
    console.print(config.out, soft_wrap=True)


def generate_planted(config: PlantedConfig, console: Console) -> None:
    """Writes a design of known least wirelength."""
    solved = planted(**_options(config))
    save(Path(config.out), solved)
    console.print(f"{config.out}: least wirelength {solved.wirelength} µm", soft_wrap=True)


def _options(config: ShippedConfig) -> dict[str, Any]:
    """A generator's arguments."""
    values = dataclasses.asdict(config)
    return {"name": Path(values.pop("out")).resolve().name, **values}
