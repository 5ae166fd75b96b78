"""The typed face of the engine's annealer: one placement that is moved about, at a temperature, on the exact cost.

Axis legend: N nodes, K kinds of moves (`config.MOVES`). Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from placement.annealing.config import MOVES, AnnealConfig
from placement.engine import _native
from placement.engine.costs import DEFAULT_WEIGHTS, Costs, CostWeights, checked_placement
from placement.engine.native_design import native_design
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError

# How often each kind is tried, before the mix adapts.
WEIGHTS = {
    "hard_shift": 3.0,
    "hard_slide": 1.0,
    "hard_align": 1.0,
    "hard_jump": 0.5,
    "hard_pull": 0.5,
    "hard_abut": 0.5,
    "hard_swap": 2.0,
    "hard_permute": 0.3,
    "hard_roll": 1.0,
    "hard_mirror": 1.0,
    "hard_trade": 2.0,
    "soft_shift": 4.0,
    "soft_step": 0.5,
    "soft_median": 0.5,
    "soft_pull": 0.5,
    "soft_swap": 0.2,
    "soft_hot": 1.0,
    "soft_draw": 6.0,
}
# The adaptive mix pays kinds for what they save per draw. With the weight above, on the chip cost, drawn targets took
# the time of hard macros' moves where the canvas is full (docs/experiments/2026-11-search.md).
_WEIGHTS_OF_COST: dict[str, dict[str, float]] = {"proxy": {}, "chip": {"soft_draw": 2.0}}


class Tally(NamedTuple):
    """What became of the moves of one kind: drawn, legal and evaluated, accepted, and proxy cost saved by them."""

    drawn: int
    evaluated: int
    accepted: int
    saved: float


class AnnealerState(NamedTuple):
    """All that the next moves depend on, beside the placement.

    Attributes:
        random: state of the random number generator.
        moves: drawn so far.
        values: float64 [5, K], what was adapted and the recent experience that it is adapted to.
    """

    random: int
    moves: int
    values: np.ndarray


class Annealer:
    """One placement under annealing; equal arguments and calls give equal placements. Not for two threads at once.

    Args:
        design: what is placed.
        start: a legal placement: its hard macros do not overlap and stand inside the canvas.
        config: which moves are tried, and how.
        weights: of the cost's parts.
        seed: of all draws, below 2⁶⁴.

    Raises:
        DesignError: `start` is not whole, or not legal.
    """

    def __init__(
        self,
        design: Design,
        start: Placement,
        *,
        config: AnnealConfig,
        weights: CostWeights = DEFAULT_WEIGHTS,
        seed: int = 0,
    ) -> None:
        self._design = design
        self._start = checked_placement(design, start)
        try:
            self._native = _native.Annealer(
                native_design(design),
                self._start.x,
                self._start.y,
                self._start.orientation,
                tuple(weights),
                config.spacing,
                config.rotate,
                [list(blockage) for blockage in config.blockages],
                config.soft_moves,
                seed,
            )
        except ValueError as error:
            raise DesignError(f"{design.name}: {error}") from None

    def run(self, moves: int, temperature: float) -> None:
        """Draws `moves` moves at a temperature in units of the proxy cost; 0 accepts only what does not cost."""
        self._native.run(moves, temperature)

    def replace_soft(self) -> bool:
        """Has the soft placer place all soft macros anew, and keeps that only if it is better; returns whether."""
        return self._native.replace_soft('analytic')

    def restart(self, placement: Placement) -> None:
        """Goes on from another placement; the best so far is kept unless this one is better; raises DesignError."""
        placement = checked_placement(self._design, placement)
        try:
            self._native.restart(placement.x, placement.y, placement.orientation)
        except ValueError as error:
            raise DesignError(f"{self._design.name}: {error}") from None

    @property
    def costs(self) -> Costs:
        """Of the placement as it stands."""
        return Costs(*self._native.costs())

    @property
    def best_cost(self) -> float:
        """The lowest proxy cost that was met."""
        return self._native.best_cost

    @property
    def placement(self) -> Placement:
        """A copy of the placement as it stands."""
        return self._copy(best=False)

    @property
    def best(self) -> Placement:
        """A copy of the placement of `best_cost`."""
        return self._copy(best=True)

    @property
    def tallies(self) -> dict[str, Tally]:
        """What became of the moves, by kind."""
        return dict(zip(MOVES, map(Tally, *self._native.tally()), strict=True))

    @property
    def accepted(self) -> int:
        """Moves that were accepted."""
        return sum(self._native.tally()[2])

    @property
    def state(self) -> AnnealerState:
        """With `placement` and `best`, all that a new annealer needs to go on as this one would."""
        random, moves, values = self._native.state()
        return AnnealerState(random, moves, np.array(values))

    def go_on(self, state: AnnealerState) -> None:
        """Takes over another annealer's state; placement and best are to be given by `start` and `restart`."""
        self._native.set_state(state.random, state.moves, state.values.tolist())

    def _copy(self, *, best: bool) -> Placement:
        x, y = np.empty_like(self._start.x), np.empty_like(self._start.y)
        orientation = np.empty_like(self._start.orientation)
        self._native.write(best, x, y, orientation)
        return dataclasses.replace(self._start, x=x, y=y, orientation=orientation)


def _is_left_out(move: str, config: AnnealConfig) -> bool:
    moves_soft = move.startswith("soft_") or move == "hard_trade"
    return move in config.without or (moves_soft and not config.soft_moves)
