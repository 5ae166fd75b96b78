"""Global placement of standard cells around fixed macros, electrostatically, in JAX.

Cells are charges that repel each other and attract the pins of their nets; fillers are cells without nets that fill
the room to spare, so that cells may stay close together (Lu et al.: "ePlace", ACM TODAES 2015; Lin et al.:
"DREAMPlace", DAC 2019).

Axis legend: M movable cells, J fillers, X bins across, Y bins up. Lengths in µm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from placement.flat import native_sums, nesterov
from placement.flat.fillers import fill, first_places
from placement.flat.grid import blocked_share, grid_for
from placement.flat.objective import Model, model
from placement.flat.problem import FlatProblem
from placement.netlist.errors import DesignError

_BURST = 10  # iterations between two looks at the clock and the keyboard
_ATTEMPTS = 3  # each with half the growth, where the cells fly apart


@dataclasses.dataclass(frozen=True)
class PlacerSettings:
    """How the cells are placed.

    Attributes:
        overflow: stops when no more than this share of the cells' area stands in bins beyond their free area.
        density: share of the free room that cells may fill.
        iterations: at most.
        bins: across and up, each a power of two; None: about as many as make a bin two mean cells wide.
        growth: the most by which the density's weight grows in one iteration. Slower is shorter: Ariane's wirelength
            grows by 4% from 1.03 to 1.05, at 70% of the time.
        smoothing: bins, γ of the wirelength at an overflow of 0.1.
        balance: the density's first force over the wirelength's, from the middle of the core.
        warm_balance: the same, where the cells begin at given places.
        warm_growth: of the weight, where the cells begin at given places.
        warm_iterations: at least, where the cells begin at given places; these may have no overflow at once.
        native: sums by the C++ engine; None: on a CPU, where the engine was built with XLA's headers.
        seed: of the first places.

    Raises:
        DesignError: a value is out of range.
    """

    overflow: float = 0.07
    density: float = 1.0
    iterations: int = 2000
    bins: tuple[int, int] | None = None
    growth: float = 1.03
    smoothing: float = 0.6
    balance: float = 1e-4
    warm_balance: float = 0.1
    warm_growth: float = 1.05
    warm_iterations: int = 60
    native: bool | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.overflow < 1:
            raise DesignError(f"overflow: {self.overflow} must be between 0 and 1")
        if not 0 < self.density <= 1:
            raise DesignError(f"density: {self.density} must be above 0 and at most 1")
        if self.iterations < 1:
            raise DesignError(f"iterations: {self.iterations} must be at least 1")
        for field in ("growth", "warm_growth"):
            if not 1 < getattr(self, field) <= 2:
                raise DesignError(f"{field}: {getattr(self, field)} must be above 1 and at most 2")
        for count in self.bins or ():
            if count < 8 or count & (count - 1):
                raise DesignError(f"bins: {count} must be a power of two of at least 8")
        for field in ("smoothing", "balance", "warm_balance"):
            if not getattr(self, field) > 0:
                raise DesignError(f"{field}: {getattr(self, field)} must be above 0")


class Progress(NamedTuple):
    """How far the placer is.

    Attributes:
        iteration: of at most `PlacerSettings.iterations`.
        wirelength: half perimeters of the counted nets that have a movable cell, µm.
        overflow: share of the cells' area in bins beyond their free area.
    """

    iteration: int
    wirelength: float
    overflow: float


class PlacedCells(NamedTuple):
    """Where the cells ended.

    Attributes:
        x, y: float64 [M], centres, µm, relative to the core.
        progress: of the last iteration.
        converged: whether the overflow came down to the goal.
    """

    x: np.ndarray
    y: np.ndarray
    progress: Progress
    converged: bool


def place_cells(
    problem: FlatProblem,
    settings: PlacerSettings | None = None,
    *,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    report: Callable[[Progress], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> PlacedCells:
    """Places the cells of `problem`.

    Args:
        problem: the cells, nets and what stands.
        settings: default: `PlacerSettings()`.
        start: x and y, float [M], µm, relative to the core: where the cells begin, as from a neighbouring placement.
            None: in the middle of the core.
        report: is called with the progress after every ten iterations, from this thread. Where the cells fly apart,
            the iterations begin anew with half the growth of the density's weight.
        stopped: is asked as often; once it says True the cells stay where they are.

    Returns:
        The places; one seed gives the same ones on one machine.

    Raises:
        DesignError: the cells do not fit at the density asked for, `start` has another number of cells or is not
            finite, or the cells flew apart at every attempt.
    """
    settings = settings or PlacerSettings()
    whole, at = _prepared(problem, settings, start)
    growth = settings.growth if start is None else settings.warm_growth
    for _ in range(_ATTEMPTS):
        schedule = nesterov.Schedule(
            gamma=settings.smoothing * np.sqrt(float(whole.bin_area)),
            fastest=growth,
            slowest=0.95,
            rise=0.01,
            stop=settings.overflow,
            least=0 if start is None else min(settings.warm_iterations, settings.iterations),
            most=settings.iterations,
        )
        balance = settings.balance if start is None else settings.warm_balance
        state = nesterov.begin(whole, at, schedule, jnp.float32(balance))
        placed = _iterate(whole, schedule, state, report=report, stopped=stopped)
        if placed is not None:
            return placed
        growth = 1 + (growth - 1) / 2
    raise DesignError(
        f"the cells flew apart {_ATTEMPTS} times, the last time at a growth of {2 * growth - 1:.4f}: what macros, "
        f"halos and blockages leave free may be too narrow for a density of {settings.density:g}; give cells "
        "more room between the macros"
    )


def _prepared(
    problem: FlatProblem, settings: PlacerSettings, start: tuple[np.ndarray, np.ndarray] | None
) -> tuple[Model, jax.Array]:
    """The model, and the first places of cells and fillers, float32 [2, M+J]."""
    grid = grid_for(problem, settings.bins)
    rng = np.random.default_rng(settings.seed)
    begin_at = first_places(problem, rng) if start is None else _given_places(problem, start)
    free = settings.density * (1 - blocked_share(problem.fixed, grid))
    side = 1.5 * float(np.sqrt(grid.bin_area))
    fillers = fill(problem, begin_at if start is not None else None, free, grid=grid, side=side, rng=rng)
    sides = np.zeros(_bucket(fillers.shape[1], len(problem.cells)))
    sides[: fillers.shape[1]] = side
    idle = np.repeat([[grid.width / 2], [grid.height / 2]], len(sides) - fillers.shape[1], axis=1)
    whole = model(
        problem,
        grid,
        fillers=sides,
        density_limit=settings.density,
        native=use_native(settings.native),
    )
    return whole, jnp.asarray(np.concatenate([begin_at, fillers, idle], axis=1), jnp.float32)


def _bucket(fillers: int, cells: int) -> int:
    """How many fillers the arrays have, those without area too: one program serves many placements of a design."""
    return 1 << int(np.ceil(np.log2(max(fillers, cells / 8, 1))))


def _iterate(
    whole: Model,
    schedule: nesterov.Schedule,
    state: nesterov.State,
    *,
    report: Callable[[Progress], None] | None,
    stopped: Callable[[], bool] | None,
) -> PlacedCells | None:
    """Bursts of iterations until the goal, the last iteration, or `stopped`; None where the cells fly apart."""
    cells = whole.cells.charge.shape[0]
    best: Progress | None = None
    while True:
        state = nesterov.advance(whole, schedule, state, jnp.int32(_BURST))
        progress = Progress(int(state.iteration), float(state.forces.length), float(state.forces.overflow))
        if report:
            report(progress)
        if best is None or progress.overflow < best.overflow:
            best = progress
        if diverged(progress, best):
            return None
        converged = progress.overflow <= schedule.stop and progress.iteration >= schedule.least
        if converged or progress.iteration >= schedule.most or (stopped and stopped()):
            break
    # The gradient's place, not the major one: the overflow was measured there.
    x, y = np.asarray(state.reference[:, :cells], np.float64)
    return PlacedCells(x, y, progress, converged)


def diverged(now: Progress, best: Progress) -> bool:
    """Whether the cells fly apart: the overflow rises again (by 0.1) while the wirelength doubles, or is no number."""
    if not np.isfinite([now.wirelength, now.overflow]).all():
        return True
    return now.overflow > best.overflow + 0.1 and now.wirelength > 2 * best.wirelength


def use_native(wanted: bool | None) -> bool:
    """Whether the engine does the sums; raises DesignError where it is wanted and cannot."""
    possible = jax.default_backend() == "cpu" and native_sums.available()
    if wanted and not possible:
        raise DesignError(
            f"native: the engine's sums need a CPU and an engine built with XLA's headers, not {jax.default_backend()}"
        )
    return possible if wanted is None else wanted


def _given_places(problem: FlatProblem, start: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    at = np.array(start, dtype=np.float64)
    if at.shape != (2, len(problem.cells)):
        raise DesignError(f"start: shape {at.shape}, expected (2, {len(problem.cells)}), one place per movable cell")
    if not np.isfinite(at).all():
        raise DesignError("start: every coordinate must be finite")
    return at
