"""Distributions of designs that environments draw from; `placement.make_pool` takes one instead of a list."""

from typing import NamedTuple, Protocol, runtime_checkable

from placement.netlist.design import Design

ENDLESS = 2**31 - 1  # upper limit on the number of a design, which is an int32, in a distribution without a count


class DesignBounds(NamedTuple):
    """Upper bounds on all designs of a distribution."""

    rows: int  # rows, columns: gcells up and across
    columns: int
    macros: int  # macros to place
    nodes: int  # nodes of the netlist
    action_scale: int = 4  # `Design.own_action_scale`


@runtime_checkable
class DesignDistribution(Protocol):
    """Designs by number, made on demand; `placement.SyntheticDesigns` is one.

    Attributes:
        count: number of different designs, numbered from 0; None: one for each number below `ENDLESS`.
        episodes_per_design: episodes that an environment plays with a design before it gets another.
        bounds: upper bounds on all designs.
    """

    @property
    def count(self) -> int | None: ...

    @property
    def episodes_per_design(self) -> int: ...

    @property
    def bounds(self) -> DesignBounds: ...

    def __getitem__(self, number: int, /) -> Design:
        """Returns the design of a number, which is always the same; called by a thread of the pool."""
