"""What a search is asked to do, as frozen dataclasses; the docstrings say what each setting means.

Lengths are in µm, temperatures in multiples of the start's proxy cost per macro that may move.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from placement.config import Amount, ConfigError, Count, Rule, Settings, one_of, require
from placement.engine import _native
from placement.engine.soft import SOFT_PLACERS

MOVES: tuple[str, ...] = tuple(_native.move_names())
"""The kinds of moves; docs/explanation/search.md says what each does."""
HOT = {"proxy": 0.1, "chip": 0.4}
"""Temperature at the beginning, by cost: parts of the proxy cost are large whatever one does, none of the chip cost."""
REFINE_SHARE = 0.2
"""Of it, where a placement is refined."""
STARTS = ("packed", "electrostatic", "greedy", "spiral", "random", "initial")


def _is_rectangle(corners: tuple[float, ...]) -> bool:
    return len(corners) == 4 and corners[0] < corners[2] and corners[1] < corners[3]


_Corners = Annotated[
    tuple[float, ...], Rule("[left, low, right, high] in µm, left < right and low < high", _is_rectangle)
]


@dataclasses.dataclass(frozen=True)
class AnnealConfig(Settings, group="anneal."):
    """How a placement is annealed. Lengths in µm, temperatures in cost of the start per movable macro.

    Attributes:
        soft_moves: false: soft macros are placed by the soft placer only
        soft_placer: of the search
        soft_every: rounds between its calls if soft macros are not moved
        starts: of packed, electrostatic, greedy, spiral, random, initial: they compete by successive halving
        electrostatic_starts: at most; as many as take 30% of `time`, or of `moves` at 150,000 a second
        repack: a policy's best sample also competes set out in rows with gaps
        race: share of the budget, less the making of the starts, that the successive halving takes
        schedule: geometric or adaptive
        hot: the initial temperature; null: 0.1, of the chip cost 0.4, to refine a fifth
        cold: the final temperature
        adaptive_mix: moves that save more are tried more often
        without: kinds of moves to leave out (docs/explanation/search.md)
        rotate: also try orientations that swap width and height
        spacing: that hard macros keep from each other and from blockages
        blockages: rectangles that hard macros keep off: [[left, low, right, high], …]
        grid: at the end lower left corners of hard macros are put on multiples of this; 0: they stay
        round_moves: moves of a thread between two exchanges
        exchange: temperatures behind the best thread at which a thread continues from the best one's placement
    """

    soft_moves: bool = True
    soft_placer: Annotated[str, one_of(SOFT_PLACERS)] = "analytic"
    soft_every: Count = 4
    starts: tuple[Annotated[str, one_of(STARTS)], ...] = ("packed", "electrostatic")
    electrostatic_starts: Count = 4
    repack: bool = True
    race: Annotated[float, Rule("at least 0 and below 1", lambda value: 0 <= value < 1)] = 0.15
    schedule: Literal["geometric", "adaptive"] = "geometric"
    hot: float | None = None
    cold: float = 0.003
    adaptive_mix: bool = True
    without: tuple[Annotated[str, one_of(MOVES)], ...] = ()
    rotate: bool = False
    spacing: Amount = 0.0
    blockages: tuple[_Corners, ...] = ()
    grid: Amount = 0.0
    round_moves: Count = 20_000
    exchange: Amount = 40.0

    def __post_init__(self) -> None:
        require("shelves" not in self.starts, "anneal.starts", "shelves", "packed, its new name")
        super().__post_init__()
        require(len(self.starts) > 0, "anneal.starts", self.starts, f"at least one of {', '.join(STARTS)}")
        hottest = REFINE_SHARE * min(HOT.values()) if self.hot is None else self.hot
        require(0 < self.cold <= hottest, "anneal.cold", self.cold, f"above 0 and at most hot={hottest:g}")


@dataclasses.dataclass(frozen=True)
class Budget:
    """How long a search goes on; exactly one of the two is given.

    Attributes:
        seconds: CPU seconds of each thread.
        moves: moves drawn by each thread; the result then depends on nothing but the settings and the seed.
    """

    seconds: float | None = None
    moves: int | None = None

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.moves is None):
            raise ConfigError("give either time=SECONDS or moves=N")
        require(self.seconds is None or self.seconds > 0, "time", self.seconds, "above 0 seconds")
        require(self.moves is None or self.moves > 0, "moves", self.moves, "at least 1")
