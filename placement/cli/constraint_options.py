"""The options of `import` that say what macros must keep to, as the constraints' settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from placement.config import ConfigError
from placement.netlist.constraints import SnapGrid
from placement.netlist.errors import DesignError
from placement.netlist.geometry import Rectangle
from placement.netlist.import_constraints import ConstraintSettings, RegionSetting
from placement.netlist.macro_arrays import ArraySetting

_ORDERS = ("places", "names")
_SNAPS = ("manufacturing", "tracks", "none")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConstraintOptions:
    """As they are given. Lengths in µm, rectangles in the files' own coordinates.

    Attributes:
        halo: `5`, `5,3` (across, up) of all macros, or `PATTERN=5,3` of those that a pattern means.
        blockage: `x_low,y_low,x_high,y_high`.
        region: `NAME:PATTERN[,PATTERN…]:RECTANGLE[;RECTANGLE…]`, where those macros must stand.
        fence: the same, where no other macro may stand.
        port_keepout: that macros keep from ports.
        snap: manufacturing, tracks, none, or a grid `pitch_x,pitch_y[,offset_x,offset_y]`.
        any_orientation: whatever the LEF file says.
        array: `NAME:PATTERN[,PATTERN…][:COLUMNS[:GAP_X,GAP_Y]]`, macros that stand as one block.
        banks: macros of one master whose names differ in their last number alone stand as one block, too.
        array_order: of a block's macros: names, or places, where the files have them or where they would be by
            themselves.
    """

    halo: tuple[str, ...] = ()
    blockage: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    fence: tuple[str, ...] = ()
    port_keepout: float = 0.0
    snap: str = "manufacturing"
    any_orientation: bool = False
    array: tuple[str, ...] = ()
    banks: bool = False
    array_order: str = "places"

    @property
    def order_by_places(self) -> bool:
        """Whether a block's macros are ordered so; raises ConfigError for another order."""
        if self.array_order not in _ORDERS:
            raise ConfigError(f"array_order={self.array_order!r}: must be one of {', '.join(_ORDERS)}")
        return self.array_order == "places"

    @property
    def arrays(self) -> tuple[ArraySetting, ...]:
        """The blocks of macros; raises ConfigError for an option of another form."""
        return tuple(_array(text) for text in self.array)

    @property
    def constraints(self) -> ConstraintSettings:
        """What macros must keep to beside what the files say; raises ConfigError for an option of another form."""
        of_all = [value for value in self.halo if "=" not in value]
        if len(of_all) > 1:
            raise ConfigError(
                f"halo={', '.join(of_all)}: is given {len(of_all)} times for all macros; give one, as 5 or 5,3 "
                "(across, up), and PATTERN=5,3 for some macros"
            )
        named = [value.rpartition("=") for value in self.halo if "=" in value]
        regions = [*((text, False) for text in self.region), *((text, True) for text in self.fence)]
        return ConstraintSettings(
            halo=_sides("halo", of_all[0]) if of_all else None,
            halos={pattern: _sides(f"halo={pattern}", sides) for pattern, _, sides in named},
            blockages=tuple(_rectangle("blockage", text) for text in self.blockage),
            regions=tuple(_region("fence" if is_fence else "region", text, is_fence) for text, is_fence in regions),
            port_keepout=self.port_keepout,
            snap=_grid(self.snap) if self.snap not in _SNAPS else self.snap,  # type: ignore[arg-type]
            any_orientation=self.any_orientation,
        )


def _numbers(what: str, text: str, counts: Sequence[int], form: str) -> list[float]:
    """The numbers in a list with commas, of which there must be as many as one of `counts` says."""
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in counts:
        raise ConfigError(f"{what}={text}: must be {form} in µm")
    return values


def _sides(what: str, text: str) -> tuple[float, float]:
    values = _numbers(what, text, (1, 2), "one number, or two with a comma (across, up),")
    if min(values) < 0:
        raise ConfigError(f"{what}={text}: must be at least 0 µm")
    return values[0], values[-1]


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
    if not (name and macros and len(rest) <= 3 and (columns or "0").isdecimal()):
        raise ConfigError(f"array={text}: must be NAME:MACROS, NAME:MACROS:COLUMNS or NAME:MACROS:COLUMNS:GAP_X,GAP_Y")
    return ArraySetting(
        name=name,
        macros=tuple(macros.split(",")),
        columns=int(columns or "0"),
        gap=_sides(f"array {name}: gap", gap) if gap else None,
    )


def _grid(text: str) -> SnapGrid:
    values = _numbers("snap", text, (2, 4), f"one of {', '.join(_SNAPS)}, or pitch_x,pitch_y[,offset_x,offset_y]")
    try:
        return SnapGrid(*values)
    except DesignError as error:
        raise ConfigError(f"snap={text}: {error}") from None
