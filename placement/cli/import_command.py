"""`macro-placement import`: converts a chip's files to a design folder."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from placement.config import ConfigError, OutputSettings, Seeded, Settings, Text
from placement.netlist.clustering.cluster import ClusteringSettings
from placement.netlist.constraints import SnapGrid
from placement.netlist.errors import DesignError
from placement.netlist.geometry import Rectangle
from placement.netlist.import_constraints import ConstraintSettings, RegionSetting
from placement.netlist.importing import ChipFiles, ImportSettings, import_flat, read_chip, write_design
from placement.netlist.load import PICTURE_NAME, check_design_folder
from placement.netlist.macro_arrays import ArraySetting

_SNAPS = ("manufacturing", "tracks", "none")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConstraintOptions(Settings):
    """Constraints. Lengths in µm, rectangles in the files' coordinates; macros by names with `*`.

    Attributes:
        halo: margins of macros in µm, instead of the files' halos: 5, or 5,3 (x, y), or 5,3,4,3 (left, bottom,
            right, top, in orientation N), or mem*=5,3 for some macros, by name or master
        halo_pins: keep halos only on the sides of a macro nearest to its pins
        blockage: rectangles without macros, in addition to those of the files: x_low,y_low,x_high,y_high
        region: rectangles that contain certain macros: NAME:MACROS:x_low,y_low,x_high,y_high
        fence: region that excludes other macros, in the same form
        port_keepout: minimum distance between macros and ports, in µm
        channel: minimum gap in µm between macros, and between macros and the core's edge, unless they abut: 12, or
            12,10 (x, y); 0: no rule; null: derived from the power straps in the files
        snap: grid of lower left corners: manufacturing, tracks, none, or pitch_x,pitch_y[,offset_x,offset_y]
        any_orientation: allow all orientations, whatever the LEF files say
        array: macros that form one block: NAME:MACROS, NAME:MACROS:COLUMNS, or NAME:MACROS:COLUMNS:gap_x,gap_y (µm;
            default gap: the halos)
        banks: join macros of one master whose names differ only in the last number (ram_0, ram_1, …) into a block
    """

    halo: tuple[Text, ...] = ()
    halo_pins: bool = False
    blockage: tuple[Text, ...] = ()
    region: tuple[Text, ...] = ()
    fence: tuple[Text, ...] = ()
    port_keepout: float = 0.0
    channel: Text | None = None
    snap: str = "manufacturing"
    any_orientation: bool = False
    array: tuple[Text, ...] = ()
    banks: bool = False

    @property
    def constraints(self) -> ConstraintSettings:
        """The constraints in addition to those of the files; raises ConfigError for a malformed option."""
        of_all = [value for value in self.halo if "=" not in value]
        if len(of_all) > 1:
            raise ConfigError(
                f"halo={', '.join(of_all)}: is given {len(of_all)} times for all macros; give one, as 5 or 5,3 "
                "(x, y), and PATTERN=5,3 for some macros"
            )
        named = [value.rpartition("=") for value in self.halo if "=" in value]
        regions = [*((text, False) for text in self.region), *((text, True) for text in self.fence)]
        return ConstraintSettings(
            halo=_halo("halo", of_all[0]) if of_all else None,
            halos={pattern: _halo(f"halo={pattern}", sides) for pattern, _, sides in named},
            halo_pins=self.halo_pins,
            blockages=tuple(_rectangle("blockage", text) for text in self.blockage),
            regions=tuple(_region("fence" if is_fence else "region", text, is_fence) for text, is_fence in regions),
            port_keepout=self.port_keepout,
            channel=_sides("channel", self.channel) if self.channel else None,
            snap=_grid(self.snap) if self.snap not in _SNAPS else self.snap,  # type: ignore[arg-type]
            any_orientation=self.any_orientation,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportConfig(ConstraintOptions, OutputSettings, Seeded, ChipFiles):
    """Settings of `import`.

    Attributes:
        out: design folder to write
        name: name of the design; null: as in the files
        free_macros: treat macros that are fixed in the files as movable
        columns: grid columns; null: Circuit Training's rule
        rows: grid rows; null: Circuit Training's rule
        clusters: target number of soft macros, not counting those next to macros and ports
        positions: cluster cells by position, too; if the files give no positions, first place cells and macros
            together
    """

    out: str
    name: str | None = None
    free_macros: bool = False
    columns: int | None = None
    rows: int | None = None
    clusters: int = 500
    positions: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        ChipFiles.__post_init__(self)
        _ = self.settings  # This raises DesignError or ConfigError if an option is wrong.

    @property
    def settings(self) -> ImportSettings:
        return ImportSettings(
            columns=self.columns,
            rows=self.rows,
            clustering=ClusteringSettings(clusters=self.clusters, seed=self.seed, use_positions=self.positions),
            constraints=self.constraints,
            arrays=tuple(map(_array, self.array)),
            banks=self.banks,
        )


def import_chip(config: ImportConfig, console: Console) -> None:
    """Reads a chip, clusters its cells, writes the design folder and prints its content; raises DesignError."""
    # Imported late, since JAX and Matplotlib take seconds, and a wrong setting should not wait for them.
    from placement.flat.global_placement import place_before_clustering
    from placement.report import style
    from placement.report.describe import import_table, notice_lines, plot_floorplan

    check_design_folder(config.out, force=config.force)
    phases = Phases(console)
    with phases("reading"):
        chip = read_chip(config, name=config.name, free_macros=config.free_macros)
    imported = import_flat(chip.flat, config.settings, canvas=chip.canvas, place=place_before_clustering, phase=phases)
    with phases("picture"):
        picture = style.png_bytes(plot_floorplan(imported))
    with phases("writing"):
        write_design(
            config.out, imported, def_data=chip.def_data, positions_data=chip.positions_data,
            timing=chip.timing and chip.timing.onto(chip.flat, imported.flat), extra={PICTURE_NAME: picture},
        )  # fmt: skip
    console.print(import_table(imported))
    for line in notice_lines(imported):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(f"design: {config.out}\npicture: {Path(config.out) / PICTURE_NAME}", soft_wrap=True, markup=False)


class Phases:
    """Prints the duration of each stage of the work, and the current stage while it runs."""

    def __init__(self, console: Console) -> None:
        self.console = console

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        waiting = self.console.status(f"{name} …") if self.console.is_terminal else contextlib.nullcontext()
        with waiting:
            yield
        self.console.print(f"{name:<26}{time.perf_counter() - begun:8.1f} s", highlight=False)


def _numbers(what: str, text: str, counts: Sequence[int], form: str) -> list[float]:
    """The numbers in a list with commas; `counts` are the allowed lengths."""
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in counts:
        raise ConfigError(f"{what}={text}: must be {form} in µm")
    return values


def _sides(what: str, text: str) -> tuple[float, float]:
    values = _numbers(what, text, (1, 2), "one number, or two with a comma (x, y),")
    if min(values) < 0:
        raise ConfigError(f"{what}={text}: must be at least 0 µm")
    return values[0], values[-1]


def _halo(what: str, text: str) -> tuple[float, ...]:
    """Parses a halo: x and y, or left, bottom, right and top."""
    sides = _numbers(what, text, (1, 2, 4), "1, 2 (x, y) or 4 numbers (left, bottom, right, top) with commas,")
    if not all(0 <= side < math.inf for side in sides):
        raise ConfigError(f"{what}={text}: must be at least 0 µm, and finite")
    return tuple(sides) if len(sides) == 4 else (sides[0], sides[-1])


def _rectangle(what: str, text: str) -> Rectangle:
    values = _numbers(what, text, (4,), "x_low,y_low,x_high,y_high")
    try:
        return Rectangle(*values)
    except DesignError as error:
        raise ConfigError(f"{what}={text}: {error}") from None


def _region(what: str, text: str, is_fence: bool) -> RegionSetting:
    name, _, rest = text.partition(":")
    macros, _, rectangles = rest.rpartition(":")
    if not (name and macros and rectangles):
        raise ConfigError(f"{what}={text}: must be NAME:MACROS:x_low,y_low,x_high,y_high")
    boxes = tuple(_rectangle(f"{what} {name}", one) for one in rectangles.split(";"))
    return RegionSetting(name=name, rectangles=boxes, macros=tuple(macros.split(",")), is_exclusive=is_fence)


def _array(text: str) -> ArraySetting:
    name, *rest = text.split(":")
    macros, columns, gap = (*rest, "", "", "")[:3]
    if not (name and macros and len(rest) <= 3 and (columns or "1").isdecimal()):
        raise ConfigError(f"array={text}: must be NAME:MACROS, NAME:MACROS:COLUMNS or NAME:MACROS:COLUMNS:GAP_X,GAP_Y")
    if columns and int(columns) == 0:
        raise ConfigError(f"array={text}: COLUMNS must be at least 1; without it the import chooses")
    sides = _sides(f"array {name}: gap", gap) if gap else None
    return ArraySetting(name=name, macros=tuple(macros.split(",")), columns=int(columns or "0"), gap=sides)


def _grid(text: str) -> SnapGrid:
    values = _numbers("snap", text, (2, 4), f"one of {', '.join(_SNAPS)}, or pitch_x,pitch_y[,offset_x,offset_y]")
    try:
        return SnapGrid(*values)
    except DesignError as error:
        raise ConfigError(f"snap={text}: {error}") from None
