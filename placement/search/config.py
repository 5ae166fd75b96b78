"""What a search is asked to do, as a frozen dataclass.

Lengths are in µm, temperatures in multiples of the start's proxy cost per macro that may move.
"""

from __future__ import annotations

import dataclasses

from placement.config import ConfigError
from placement.engine import _native
from placement.engine.soft import SOFT_PLACERS

MOVES: tuple[str, ...] = tuple(_native.move_names())
"""The kinds of moves; docs/explanation/search.md says what each does."""
SCHEDULES = ("geometric", "adaptive")
HOT = 0.1
REFINE_HOT = 0.02
STARTS = ("shelves", "greedy", "spiral", "random", "initial")


@dataclasses.dataclass(frozen=True)
class AnnealConfig:
    """How a placement is annealed.

    Attributes:
        soft_moves: soft macros are moved too; otherwise only the soft placer moves them.
        soft_placer: an engine placer's name: places the soft macros of the starts and, where they are not moved, again
            at intervals (kept only if that is better).
        soft_every: rounds between those.
        starts: the kinds of placements to begin with, raced against each other; ignored where one is given.
        shelve: the best sample of a policy is raced against itself set out on shelves, too.
        race: share of the budget that goes into racing the starts.
        schedule: `geometric`: the temperature falls by the clock; `adaptive`: so that the share of accepted moves does.
        hot: the temperature at the beginning; None: HOT, or REFINE_HOT where a start is given.
        cold: the temperature at the end.
        adaptive_mix: moves that save more are tried more often.
        without: kinds of moves that are left out.
        rotate: also try orientations that swap width and height.
        spacing: µm that hard macros keep from each other and from blockages.
        blockages: rectangles that hard macros keep off: left, low, right, high in µm.
        grid: µm; at the end the lower left corners of hard macros are put on multiples of this; 0: they stay.
        round_moves: moves of a thread between two exchanges with the others.
        exchange: a thread that is this many temperatures worse than the best one goes on from that one's placement.
    """

    soft_moves: bool = True
    soft_placer: str = "analytic"
    soft_every: int = 4
    starts: tuple[str, ...] = ("shelves",)
    shelve: bool = True
    race: float = 0.15
    schedule: str = "geometric"
    hot: float | None = None
    cold: float = 0.003
    adaptive_mix: bool = True
    without: tuple[str, ...] = ()
    rotate: bool = False
    spacing: float = 0.0
    blockages: tuple[tuple[float, ...], ...] = ()
    grid: float = 0.0
    round_moves: int = 20_000
    exchange: float = 40.0

    def __post_init__(self) -> None:
        _require(self.soft_placer in SOFT_PLACERS, "soft_placer", self.soft_placer, f"one of {', '.join(SOFT_PLACERS)}")
        _require(self.schedule in SCHEDULES, "schedule", self.schedule, f"one of {', '.join(SCHEDULES)}")
        _require(len(self.starts) > 0, "starts", self.starts, f"at least one of {', '.join(STARTS)}")
        for start in self.starts:
            _require(start in STARTS, "starts", start, f"one of {', '.join(STARTS)}")
        for move in self.without:
            _require(move in MOVES, "without", move, f"one of {', '.join(MOVES)}")
        hottest = REFINE_HOT if self.hot is None else self.hot
        _require(0 < self.cold <= hottest, "cold", self.cold, f"above 0 and at most hot={hottest}")
        _require(0 <= self.race < 1, "race", self.race, "at least 0 and below 1")
        for blockage in self.blockages:
            ok = len(blockage) == 4 and blockage[0] < blockage[2] and blockage[1] < blockage[3]
            _require(ok, "blockages", list(blockage), "[left, low, right, high] in µm, left < right and low < high")
        for key in ("spacing", "grid", "exchange"):
            _require(getattr(self, key) >= 0, key, getattr(self, key), "at least 0")
        for key in ("soft_every", "round_moves"):
            _require(getattr(self, key) >= 1, key, getattr(self, key), "at least 1")


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
        _require(self.seconds is None or self.seconds > 0, "time", self.seconds, "above 0 seconds", group="")
        _require(self.moves is None or self.moves > 0, "moves", self.moves, "at least 1", group="")


def _require(ok: bool, key: str, value: object, right: str, *, group: str = "anneal.") -> None:
    if not ok:
        raise ConfigError(f"{group}{key}={value!r}: must be {right}")
