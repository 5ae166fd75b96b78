"""Timing constraints on paths: clocks, delays outside of the chip, and exceptions. Times in ps."""

import dataclasses
from typing import Literal, NamedTuple


class Object(NamedTuple):
    """The subject of a constraint: a port, pin (`cell/pin`), cell or clock, by its unescaped name; or all registers."""

    kind: Literal["port", "pin", "cell", "clock", "registers"]
    name: str


@dataclasses.dataclass(frozen=True)
class Clock:
    """An ideal clock, which reaches every register at the same time."""

    name: str  # the clock's name
    period: float  # ps
    rise: float  # rise, fall: ps, the times of its edges in the first period
    fall: float
    # ports and pins where it enters; empty: a virtual clock, for delays outside of the chip
    sources: tuple[Object, ...] = ()
    latency: float = 0.0  # ps from its source to registers
    uncertainty: float = 0.0  # ps subtracted from every check
    transition: float = 0.0  # ps, its slew at registers from the SDC file
    is_generated: bool = False  # whether it is generated from another clock, which ends at its sources


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """The uncertainty of checks from one clock to another, instead of the capturing clock's."""

    launch: str  # launch, capture: the clocks' names
    capture: str
    value: float  # ps


@dataclasses.dataclass(frozen=True)
class PortDelay:
    """The delay outside of the chip at a port, after (an input) or before (an output) a clock's edge."""

    port: str  # the port's name; clock: the clock's name
    clock: str
    is_falling: bool  # whether the edge is the falling one
    rise: float  # rise, fall: ps, of a rising and a falling signal
    fall: float


@dataclasses.dataclass(frozen=True)
class PortTransition:
    """The slew of the signals at an input port."""

    port: str  # the port's name
    slew: float  # ps, of the whole swing


@dataclasses.dataclass(frozen=True)
class PortLoad:
    """The capacitance outside of the chip at a port."""

    port: str  # the port's name
    load: float  # fF


@dataclasses.dataclass(frozen=True)
class Derating:
    """Factors by which the delays of cells and wires are multiplied."""

    cells: float = 1.0
    wires: float = 1.0


@dataclasses.dataclass(frozen=True)
class PathException:
    """Paths with an exception."""

    cycles: int  # clock periods that they may take; 0: they are not checked
    begins: tuple[Object, ...] = ()  # objects where they begin; empty: anywhere
    ends: tuple[Object, ...] = ()  # objects where they end; empty: anywhere
    delay: float | None = None  # ps that they may take instead, from the launching edge
    ignores_latency: bool = False  # whether `delay` counts from the register, without the capturing clock's latency

    @property
    def command(self) -> str:
        """The command that defines it."""
        if self.delay is not None:
            return "set_max_delay"
        return "set_multicycle_path" if self.cycles else "set_false_path"


@dataclasses.dataclass(frozen=True)
class TimingConstraints:
    """The constraints of a design; `notices` name the commands that were not understood or have no effect."""

    clocks: tuple[Clock, ...] = ()
    inputs: tuple[PortDelay, ...] = ()
    outputs: tuple[PortDelay, ...] = ()
    exceptions: tuple[PathException, ...] = ()
    notices: tuple[str, ...] = ()
    transitions: tuple[PortTransition, ...] = ()
    derating: Derating = Derating()
    uncertainties: tuple[Uncertainty, ...] = ()
    loads: tuple[PortLoad, ...] = ()
    blocked: tuple[Object, ...] = ()  # ports and pins at which no path begins, and through which none passes
