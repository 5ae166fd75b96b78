"""The content of LEF files: layers, sites, and the masters that components are instances of.

Axis legend: K rectangles, each (x_low, y_low, x_high, y_high). Lengths are in µm; a master's shapes are measured from
the lower left corner of its box, in orientation N.
"""

import dataclasses
import enum
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

BLOCK_KINDS = ("BLOCK", "PAD", "RING")  # classes (LEF CLASS) of masters whose instances are macros
_PAD_CORNERS = ("TOPLEFT", "TOPRIGHT", "BOTTOMLEFT", "BOTTOMRIGHT")


class LayerDirection(enum.Enum):
    """The preferred direction of a layer's wires; NONE if the file gives none."""

    HORIZONTAL = "HORIZONTAL"
    VERTICAL = "VERTICAL"
    DIAGONAL = "DIAGONAL"
    NONE = "NONE"


@dataclasses.dataclass(frozen=True)
class RoutingLayer:
    """A routing layer."""

    name: str  # the name in the LEF file
    direction: LayerDirection  # its preferred direction
    pitch_x: float  # pitch_x, pitch_y: µm between neighbouring wires in x and in y; 0 if the file gives none
    pitch_y: float
    width: float  # wire width in µm; 0 if the file gives none
    number: int  # its index among the routing layers, lowest first
    resistance: float = 0.0  # Ω per µm of a wire of that width; 0 if the file gives none
    capacitance: float = 0.0  # fF per µm of such a wire to its surroundings; 0 if the file gives none

    @property
    def pitch(self) -> float:
        """Distance in µm between wires that run in the preferred direction."""
        return self.pitch_x if self.direction is LayerDirection.VERTICAL else self.pitch_y


@dataclasses.dataclass(frozen=True)
class Site:
    """The unit that rows of cells consist of: `width` × `height` µm; `kind` is CORE or PAD."""

    name: str
    kind: str
    width: float
    height: float


@dataclasses.dataclass(frozen=True)
class MasterPin:
    """A pin of a master."""

    name: str  # the name in the LEF file
    direction: str  # INPUT, OUTPUT, INOUT or FEEDTHRU; "" if the file gives none
    use: str  # SIGNAL, CLOCK, POWER, GROUND, ANALOG …; SIGNAL if the file gives none
    x: float  # x, y: µm, the centre of the box around all its ports
    y: float
    layer: str  # the layer of its first shape; "" if it has no shape
    # layer name → float64 [K, 4] µm, its shapes; kept for blocks only
    shapes: Mapping[str, np.ndarray] = dataclasses.field(
        default_factory=lambda: MappingProxyType({}), compare=False, repr=False
    )

    @property
    def is_signal(self) -> bool:
        """Whether it is neither a power nor a ground pin."""
        return self.use not in ("POWER", "GROUND")


@dataclasses.dataclass(frozen=True, eq=False)
class Master:
    """A cell or block that components are instances of."""

    name: str  # the name that components refer to
    kind: str  # the first word of CLASS: CORE, BLOCK, PAD, COVER, RING, ENDCAP
    subkind: str  # the second word of CLASS (TIEHIGH, WELLTAP, SPACER …), or ""
    # width, height: µm; 0 if the file gives none, as for covers, or for masters that only other designs use
    width: float
    height: float
    symmetry: frozenset[str]  # words of SYMMETRY: X, Y, R90
    site: str  # the site of its rows; "" if the file gives none
    pins: tuple[MasterPin, ...]  # its pins in file order
    obstructions: Mapping[str, np.ndarray]  # layer name → float64 [K, 4] µm, the shapes of OBS
    pin_shapes: Mapping[str, np.ndarray]  # layer name → float64 [K, 4] µm, the shapes of the pins; kept for blocks only

    @property
    def has_size(self) -> bool:
        """Whether it has a width and a height."""
        return self.width > 0 and self.height > 0

    @property
    def has_signals(self) -> bool:
        """Whether it has a pin other than power and ground."""
        return any(pin.is_signal for pin in self.pins)

    @property
    def is_block(self) -> bool:
        """Whether its instances are macros: blocks, rings, pads and the corners between pads."""
        return self.kind in BLOCK_KINDS or self.is_pad

    @property
    def is_pad(self) -> bool:
        """Whether its instances belong to the pad ring, which is fixed before macros are placed."""
        return self.kind == "PAD" or (self.kind == "ENDCAP" and self.subkind in _PAD_CORNERS)

    @property
    def is_cover(self) -> bool:
        """Whether its instances lie above others, as bumps do, and occupy no area."""
        return self.kind == "COVER"


@dataclasses.dataclass(frozen=True, eq=False)
class Technology:
    """The content of a set of LEF files."""

    units: float = 0.0  # database units per µm that LEF requires; 0 if no file gives them
    manufacturing_grid: float = 0.0  # µm; 0 if no file gives it
    layers: tuple[RoutingLayer, ...] = ()  # the routing layers, lowest first
    sites: Mapping[str, Site] = dataclasses.field(default_factory=lambda: MappingProxyType({}))  # name → site
    masters: Mapping[str, Master] = dataclasses.field(default_factory=lambda: MappingProxyType({}))  # name → master
    notices: tuple[str, ...] = ()  # the parts of the files that were skipped


def merged(technologies: list[Technology]) -> Technology:
    """Merges several LEF files; the first of two definitions holds, with a notice if the sizes or pins differ."""
    layers: dict[str, RoutingLayer] = {}
    sites: dict[str, Site] = {}
    masters: dict[str, Master] = {}
    notices = [notice for technology in technologies for notice in technology.notices]
    for technology in technologies:
        for layer in technology.layers:
            layers.setdefault(layer.name, dataclasses.replace(layer, number=len(layers)))
        sites = {**technology.sites, **sites}
        for master in technology.masters.values():
            notices += conflict(masters.setdefault(master.name, master), master)
    return Technology(
        units=next((technology.units for technology in technologies if technology.units), 0.0),
        manufacturing_grid=next((t.manufacturing_grid for t in technologies if t.manufacturing_grid), 0.0),
        layers=tuple(layers.values()),
        sites=MappingProxyType(sites),
        masters=MappingProxyType(masters),
        notices=tuple(notices),
    )


def conflict(known: Master, other: Master) -> list[str]:
    """Returns a notice if two definitions of a master, of which the first holds, have different sizes or pins."""
    sizes = f"{known.width:g} × {known.height:g} µm, then {other.width:g} × {other.height:g} µm"
    if (known.width, known.height) == (other.width, other.height):
        single = {pin.name for pin in known.pins} ^ {pin.name for pin in other.pins}
        if not single:
            return []
        sizes = f"once without pin {min(single)!r}"
    return [f"macro {known.name!r} is defined twice in the LEF files, {sizes}: the first definition is used"]


def with_brackets(name: str, bus_bits: str) -> str:
    """A pin's name with square brackets in place of the BUSBITCHARS of a file, unless they are square or angular."""
    return name if bus_bits in ("[]", "<>") else name.translate(str.maketrans(bus_bits, "[]"))
