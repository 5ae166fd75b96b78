"""Timing constraints on paths: clocks, delays outside of the chip, and exceptions. Times in ps."""

import dataclasses
from typing import Literal, NamedTuple


class Object(NamedTuple):
    """The subject of a constraint: a port, pin (`cell/pin`), cell or clock, by its unescaped name."""

    kind: Literal["port", "pin", "cell", "clock"]
    name: str


@dataclasses.dataclass(frozen=True)
class Clock:
    """An ideal clock, which reaches every register at the same time.

    Attributes:
        name: the clock's name.
        period: ps.
        rise, fall: ps, the times of its edges in the first period.
        sources: ports and pins where it enters; empty: a virtual clock, for delays outside of the chip.
        latency: ps from its source to registers.
        uncertainty: ps subtracted from every check.
        transition: ps, its slew at registers from the SDC file.
        is_generated: whether it is generated from another clock, which ends at its sources.
    """

    name: str
    period: float
    rise: float
    fall: float
    sources: tuple[Object, ...] = ()
    latency: float = 0.0
    uncertainty: float = 0.0
    transition: float = 0.0
    is_generated: bool = False


@dataclasses.dataclass(frozen=True)
class PortDelay:
    """The delay outside of the chip at a port, after (an input) or before (an output) a clock's edge.

    Attributes:
        port: the port's name; clock: the clock's name.
        is_falling: whether the edge is the falling one.
        rise, fall: ps, of a rising and a falling signal.
    """

    port: str
    clock: str
    is_falling: bool
    rise: float
    fall: float


@dataclasses.dataclass(frozen=True)
class PathException:
    """Paths with an exception.

    Attributes:
        cycles: clock periods that they may take; 0: they are not checked.
        begins: objects where they begin; empty: anywhere.
        ends: objects where they end; empty: anywhere.
    """

    cycles: int
    begins: tuple[Object, ...]
    ends: tuple[Object, ...]


@dataclasses.dataclass(frozen=True)
class TimingConstraints:
    """The constraints of a design; `notices` name the commands that were not understood or have no effect."""

    clocks: tuple[Clock, ...] = ()
    inputs: tuple[PortDelay, ...] = ()
    outputs: tuple[PortDelay, ...] = ()
    exceptions: tuple[PathException, ...] = ()
    notices: tuple[str, ...] = ()
