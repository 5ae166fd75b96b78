"""A distribution of designs that environments draw from: what `placement.make_pool` takes instead of a list."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from placement.netlist.design import Design

ENDLESS = 2**31 - 1
"""Designs of a distribution that has no number of them: their numbers are int32."""


class DesignBounds(NamedTuple):
    """What no design of a distribution exceeds.

    Attributes:
        rows, columns: gcells up and across.
        macros: macros to place.
        nodes: nodes of the netlist.
        action_scale: `Design.own_action_scale`.
    """

    rows: int
    columns: int
    macros: int
    nodes: int
    action_scale: int = 4


@runtime_checkable
class DesignDistribution(Protocol):
    """Designs by number, made when they are asked for; `placement.SyntheticDesigns` is one.

    Attributes:
        count: how many different designs there are, numbered from 0; None: one for each number below `ENDLESS`.
        episodes_per_design: episodes that an environment plays with a design before it gets another.
        bounds: of all designs.
    """

    @property
    def count(self) -> int | None: ...

    @property
    def episodes_per_design(self) -> int: ...

    @property
    def bounds(self) -> DesignBounds: ...

    def __getitem__(self, number: int, /) -> Design:
        """Always the same design for a number; called by a thread of the pool."""
