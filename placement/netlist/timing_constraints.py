"""What paths must meet: clocks, delays outside of the chip, and exceptions. Times in ps."""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple


class Object(NamedTuple):
    """What a constraint is about: a port, pin (`cell/pin`), cell or clock, by its unescaped name."""

    kind: Literal["port", "pin", "cell", "clock"]
    name: str


@dataclasses.dataclass(frozen=True)
class Clock:
    """An ideal clock: it reaches every register at the same time.

    Attributes:
        name: of the clock.
        period: ps.
        rise, fall: ps, when its edges are, in the first period.
        sources: ports and pins where it enters; empty: a clock of delays outside of the chip alone.
        latency: ps from its source to registers.
        uncertainty: ps that every check loses.
        transition: ps, its slew at registers, as the SDC file gives it.
        is_generated: whether it is made from another clock, which ends at its sources.
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
        port: its name; clock: the clock's.
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
    """Paths that count differently.

    Attributes:
        cycles: clock periods that they may take; 0: they do not count.
        begins: where they begin; empty: anywhere.
        ends: where they end; empty: anywhere.
    """

    cycles: int
    begins: tuple[Object, ...]
    ends: tuple[Object, ...]


@dataclasses.dataclass(frozen=True)
class TimingConstraints:
    """The constraints of a design; `notices` name what in the files was not understood or has no effect."""

    clocks: tuple[Clock, ...] = ()
    inputs: tuple[PortDelay, ...] = ()
    outputs: tuple[PortDelay, ...] = ()
    exceptions: tuple[PathException, ...] = ()
    notices: tuple[str, ...] = ()
