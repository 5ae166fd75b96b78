"""The settings and constants of a search.

Lengths are in µm, temperatures in multiples of the start's cost per movable macro.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from placement.config import Amount, Rule, Settings, one_of, require
from placement.engine import _native
from placement.netlist.design import Design

MOVES: tuple[str, ...] = tuple(_native.MOVES)  # names of the moves, described in docs/explanation/search.md
STARTS = ("packed", "electrostatic", "initial")
DEFAULT_STARTS = ("packed", "electrostatic")
INITIAL_TEMPERATURE = {"proxy": 0.1, "chip": 0.4}
"""Initial temperature by cost. Most of the proxy cost is unavoidable, none of the chip cost is."""
FINAL_TEMPERATURE = 0.003
REFINE_SHARE = 0.2
"""Initial temperature for refining a placement, or one electrostatic start, as a fraction of the usual one."""
SOFT_PLACER = "analytic"  # soft placer for the starts and for soft macros that the search does not move
ROUND_MOVES = 20_000  # moves of a thread between two changes of the temperature


@dataclasses.dataclass(frozen=True)
class AnnealConfig(Settings, group="anneal."):
    """Settings of simulated annealing.

    Attributes:
        soft_moves: false: only the soft placer places soft macros
        starts: any of packed, electrostatic and initial; successive halving chooses among them; null: packed and
            electrostatic, or for the chip cost and fewer than 4,000 moves per macro, one electrostatic start
        schedule: geometric, or adaptive: the temperature follows the share of accepted moves
        initial_temperature: in units of the start's cost per movable macro; null: 0.4 (chip cost) or 0.1 (proxy cost),
            and a fifth of that when refining a placement or one electrostatic start
        rotate: also try orientations that swap width and height
        spacing: minimum gap between hard macros, and to blockages, in µm; null: the import's choice, which leaves space
            for cells
        tidy: weight of tidiness, as the share of the cost that straightening may add at the end; null: do not
            straighten

    Example:
        >>> found = placement.search("toy6", moves=2000, config=placement.AnnealConfig(spacing=1.0))
    """

    soft_moves: bool = True
    starts: tuple[Annotated[str, one_of(STARTS)], ...] | None = None
    schedule: Literal["geometric", "adaptive"] = "geometric"
    initial_temperature: Annotated[float, Rule("above 0", lambda value: value > 0)] | None = None
    rotate: bool = False
    spacing: Amount | None = None
    tidy: Annotated[float, Rule("in [0, 1]", lambda value: 0 <= value <= 1)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.starts != (), "anneal.starts", self.starts, f"at least one of {', '.join(STARTS)}")

    def spacing_in(self, design: Design) -> float:
        """Returns the spacing in µm; by default the design's own."""
        return design.constraints.spacing if self.spacing is None else self.spacing
