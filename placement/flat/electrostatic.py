"""Electrostatic placement of standard cells, macros or clusters around fixed objects.

Nodes are charges that repel each other and attract the pins of their nets; fillers are charges without nets that fill
the whitespace, so that nodes may stay close together (Lu et al.: "ePlace", ACM TODAES 2015; Lin et al.: "DREAMPlace",
DAC 2019). The sums over pins and bins run in C++, everything else in NumPy.

Axis legend: M movable nodes, J fillers, X bins across, Y bins up; the leading axis 2 is x, y. Lengths in µm.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.fft

from placement.flat import _native
from placement.flat.grid import Charges, Grid, blocked_share, grid_for, used_share
from placement.flat.problem import FlatProblem, inflated
from placement.netlist.errors import DesignError

SMOOTHING = 0.6  # smoothing γ of the wirelength at an overflow of 0.1, in bins
SLOWEST = 0.95  # minimum factor of the density weight per iteration
RISE = 0.01  # relative rise of the wirelength per iteration at which the density weight does not change
DRIFT = 2e-3
"""Relative rise of the wirelength per iteration beyond which momentum is dropped if the overflow rises, too."""
BACKTRACK = 0.95  # a step is retried, shorter, if the gradient at its end allows less than this share of it
ATTEMPTS = 3  # maximum number of attempts; each halves the growth of the density weight
WARM_ITERATIONS = 60  # minimum number of iterations from given positions, which may have no overflow at once
_REPORT_EACH = 10  # iterations


@dataclasses.dataclass(frozen=True)
class PlacerSettings:
    """Settings of the electrostatic placer. Raises DesignError if a value is out of range."""

    overflow: float = 0.07  # target: maximum share of the nodes' area beyond the free area of the bins
    accepted: float = 1.0  # maximum final overflow of a successful attempt
    density: float = 1.0  # share of the whitespace that standard cells may fill
    iterations: int = 2000  # maximum number of iterations of each attempt
    # maximum factor of the density weight per iteration. Slower growth gives shorter wires: Ariane's wirelength grows
    # by 4% from 1.03 to 1.05, at 70% of the time.
    growth: float = 1.03
    # initial force of the density relative to that of the wirelength: low in the middle of the core, higher from given
    # positions that nodes should keep
    balance: float = 1e-4
    seed: int = 0  # seed of the initial positions and the fillers

    def __post_init__(self) -> None:
        if not 0 < self.overflow < 1:
            raise DesignError(f"overflow: {self.overflow} must be between 0 and 1")
        if not 0 < self.density <= 1:
            raise DesignError(f"density: {self.density} must be above 0 and at most 1")
        if self.iterations < 1:
            raise DesignError(f"iterations: {self.iterations} must be at least 1")
        if not 1 < self.growth <= 2:
            raise DesignError(f"growth: {self.growth} must be above 1 and at most 2")
        if not self.balance > 0:
            raise DesignError(f"balance: {self.balance} must be above 0")


class Progress(NamedTuple):
    """Progress of the placer."""

    iteration: int  # current iteration, at most `PlacerSettings.iterations`
    wirelength: float  # weighted half-perimeter wirelength of the counted nets that have a movable node, in µm
    overflow: float  # share of the nodes' area beyond the free area of the bins


class Placed(NamedTuple):
    """Final positions of the nodes."""

    x: np.ndarray  # x, y: float64 [M], centres in µm, relative to the core
    y: np.ndarray
    progress: Progress  # progress at the last iteration
    converged: bool  # whether the overflow reached the target


def place(
    problem: FlatProblem,
    settings: PlacerSettings,
    *,
    cells: np.ndarray | None = None,
    start: np.ndarray | None = None,
    report: Callable[[Progress], None] | None = None,
    stopped: Callable[[], bool] | None = None,
) -> Placed:
    """Places the movable nodes of `problem`.

    Args:
        problem: the nodes, their nets and the fixed objects.
        settings: settings of the placer.
        cells: bool [M], which nodes are standard cells if there are macros, too: the cells are sized to fill `density`
            of the whitespace, and they determine the bins. None: all nodes are cells, and at most `density` of each bin
            is filled.
        start: float [2, M], initial positions in µm, relative to the core. None: the middle of the core.
        report: called with the progress after every ten iterations; each attempt starts from scratch.
        stopped: called as often; once it returns True, the current positions are returned.

    Returns:
        The positions; deterministic for a seed on one machine.

    Raises:
        DesignError: the nodes do not fit at this density, `start` has another shape or is not finite, or every attempt
            failed.
    """
    model, at = _prepared(problem, settings, cells, start)
    growth, least = settings.growth, 0 if start is None else min(WARM_ITERATIONS, settings.iterations)
    for _ in range(ATTEMPTS):
        placed = _descend(_Descent(model, at, growth, settings.balance), settings, least, report, stopped)
        if placed and (placed.progress.overflow <= settings.accepted or (stopped and stopped())):
            return placed
        last, growth = growth, 1 + (growth - 1) / 2
    if placed:
        raise DesignError(
            f"the macros still overlapped by {placed.progress.overflow:.0%} of their area after "
            f"{settings.iterations} iterations"
        )
    raise DesignError(
        f"the cells diverged {ATTEMPTS} times, the last time at a growth of {last:.4f}: the whitespace between "
        f"macros, halos and blockages may be too narrow for a density of {settings.density:g}; leave more of it"
    )


def _prepared(
    problem: FlatProblem, settings: PlacerSettings, cells: np.ndarray | None, start: np.ndarray | None
) -> tuple[_Model, np.ndarray]:
    """Returns the model and the initial positions of nodes and fillers, float64 [2, M+J]."""
    grid, density = grid_for(problem), settings.density
    if cells is not None:
        if cells.any():
            grid = grid_for(problem.only(cells))
        problem, density = inflated(problem, cells, density), 1.0
    rng = np.random.default_rng(settings.seed)
    if start is None:
        core = np.array([[problem.core.width], [problem.core.height]])
        at = core / 2 + 0.005 * core * rng.normal(size=(2, len(problem.cells)))
    else:
        at = _checked(start, len(problem.cells))
    free = density * (1 - blocked_share(problem.fixed, grid))
    side = 1.5 * float(np.sqrt(grid.bin_area))
    whitespace = free if start is None else free - used_share(problem, at, grid)
    fillers = _fillers(problem, free, whitespace, grid, side, rng)
    model = _Model(problem, grid, free, density - free, np.full(fillers.shape[1], side))
    return model, np.concatenate([at, fillers], axis=1)


def _checked(start: np.ndarray, nodes: int) -> np.ndarray:
    if start.shape != (2, nodes):
        raise DesignError(f"start: shape {start.shape}, expected (2, {nodes}), one position per movable cell")
    if not np.isfinite(start).all():
        raise DesignError("start: every coordinate must be finite")
    return start


def _fillers(
    problem: FlatProblem, free: np.ndarray, whitespace: np.ndarray, grid: Grid, side: float, rng: np.random.Generator
) -> np.ndarray:
    """Draws positions of square fillers of `side` µm in `whitespace` (share of each bin, float [X, Y]), float64 [2, J].

    Their area is what the nodes leave of `free`. Raises DesignError if the nodes need more than is free.
    """
    spare = float(free.sum()) * grid.bin_area - problem.cell_area
    if spare < 0:
        raise DesignError(
            f"the {len(problem.cells)} cells cover {problem.cell_area:.1f} µm², more than the "
            f"{spare + problem.cell_area:.1f} µm² that they may fill"
        )
    chance = np.cumsum(np.maximum(whitespace, 0.0).ravel())
    count = int(spare / side**2) if chance[-1] > 0 else 0
    # Evenly spaced draws give every bin its share to within one.
    chosen = np.searchsorted(chance, (np.arange(count) + rng.random(count)) / max(count, 1) * chance[-1], side="right")
    i, j = np.divmod(np.minimum(chosen, free.size - 1), grid.up)
    return np.stack([(i + rng.random(count)) * grid.bin_width, (j + rng.random(count)) * grid.bin_height])


def _descend(
    descent: _Descent,
    settings: PlacerSettings,
    least: int,
    report: Callable[[Progress], None] | None,
    stopped: Callable[[], bool] | None,
) -> Placed | None:
    """Iterates, at least `least` times, until the target, the last iteration, or `stopped`; None if nodes diverge."""
    best: Progress | None = None
    for iteration in range(settings.iterations + 1):
        forces = descent.forces
        progress = Progress(iteration, forces.length, forces.overflow)
        converged = progress.overflow <= settings.overflow and iteration >= least
        ends = converged or iteration == settings.iterations
        if iteration and (ends or iteration % _REPORT_EACH == 0):
            if report:
                report(progress)
            if best is None or progress.overflow < best.overflow:
                best = progress
            if diverged(progress, best):
                return None
            ends = ends or bool(stopped and stopped())
        if ends:
            break
        if not descent.advance():
            return None
    x, y = descent.reference[:, : descent.model.movable].astype(np.float64)
    return Placed(x, y, progress, converged)


def diverged(now: Progress, best: Progress) -> bool:
    """Returns whether nodes diverge: the overflow rises again by 0.1 while the wirelength doubles."""
    return now.overflow > best.overflow + 0.1 and now.wirelength > 2 * best.wirelength


class _Forces(NamedTuple):
    """The forces at one set of positions."""

    wirelength: np.ndarray  # float32 [2, M+J], gradient of the weighted-average wirelength
    density: np.ndarray  # float32 [2, M+J], gradient of the potential energy, µm³
    length: float  # half-perimeter wirelength, µm
    overflow: float  # share of the nodes' area in bins beyond their free area


class _Model:
    """All that the forces depend on besides the positions: the nets, the charges, and the fixed objects in each bin.

    `free` and `fixed` (float [X, Y]) have the same sum in every bin; `fillers` (float [J]) are sides in µm.
    """

    def __init__(
        self, problem: FlatProblem, grid: Grid, free: np.ndarray, fixed: np.ndarray, fillers: np.ndarray
    ) -> None:
        self.movable, self.grid = len(problem.cells), grid
        self.charges = Charges(
            np.concatenate([problem.width, fillers]), np.concatenate([problem.height, fillers]), grid
        )
        self._charge = self.charges.charge[: self.movable].sum()
        self._free, self._fixed = free.astype(np.float32), fixed.astype(np.float32)
        self._nets, self._poisson = _native.Wirelength(self.movable, *problem.nets), Poisson(grid)
        weight = np.repeat(problem.nets.weight, np.diff(problem.nets.start))
        pins = np.bincount(problem.nets.pin_cell, weight, self.movable + 1)[:-1]
        self._pins = np.concatenate([pins, np.zeros(len(fillers))]).astype(np.float32)

    def forces(self, at: np.ndarray, per_gamma: float) -> _Forces:
        """Returns the forces at positions `at` (float32 [2, M+J], µm); `per_gamma` is in 1/µm."""
        movable, charges = slice(self.movable), self.charges
        wirelength = np.zeros_like(at)
        (x, y), gradient = at[:, movable], wirelength[:, movable]
        length = self._nets.gradient(x, y, per_gamma, gradient[0], gradient[1])
        there = charges.in_bins(at)
        used = np.zeros_like(self._free)
        charges.add(there, used, movable)
        overflow = float(np.maximum(used - self._free, 0).sum() / self._charge)
        used += self._fixed
        charges.add(there, used, slice(self.movable, None))
        density = charges.force(there, *self._poisson.field(used))
        density *= np.float32(-self.grid.bin_area)
        return _Forces(wirelength, density, length, overflow)

    def preconditioned(self, forces: _Forces, weight: float) -> np.ndarray:
        """Divides the gradient by an estimate of the Hessian's diagonal (ePlace, section 5.3); float32 [2, M+J]."""
        found = np.empty_like(forces.density)
        _native.preconditioned(forces.wirelength, forces.density, self._pins, self.charges.area, weight, found)
        return found


class Poisson:
    """Electric field of a charge density on a grid, by cosine and sine transforms.

    Poisson's equation ∇²ψ = −ρ with no field across the boundary is diagonal in the cosine basis (ePlace, section 5).
    """

    def __init__(self, grid: Grid) -> None:
        u = np.pi * np.arange(grid.across)[:, None] / grid.width
        v = np.pi * np.arange(grid.up)[None, :] / grid.height
        square = u**2 + v**2
        square[0, 0] = 1.0  # the mean has no field
        # Sine series begin with k = 1; SciPy's transforms omit the factor 1 / 2N.
        self._across = (u / square / (2 * grid.across)).astype(np.float32)[1:]
        self._up = (v / square / (2 * grid.up)).astype(np.float32)[:, 1:]

    def field(self, density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the field −∇ψ of a density (float32 [X, Y]), across and up; float32 [X, Y] each, density · µm."""
        cosines = scipy.fft.dctn(density, type=2)
        across, up = np.zeros_like(cosines), np.zeros_like(cosines)
        np.multiply(cosines[1:], self._across, out=across[:-1])
        np.multiply(cosines[:, 1:], self._up, out=up[:, :-1])
        across = scipy.fft.dst(scipy.fft.idct(across, axis=1, overwrite_x=True), type=3, axis=0, overwrite_x=True)
        up = scipy.fft.dst(scipy.fft.idct(up, axis=0, overwrite_x=True), type=3, axis=1, overwrite_x=True)
        return across, up


class _Descent:
    """Nesterov's method with a step predicted from the gradient's Lipschitz constant (ePlace, algorithms 1 and 2).

    Attributes:
        major, reference: float32 [2, M+J], u and v of the method.
        forces: the forces at `reference`.
        momentum: a of the method.
        weight: weight of the density.
    """

    def __init__(self, model: _Model, at: np.ndarray, growth: float, balance: float) -> None:
        self.model, self._growth = model, growth
        bin_side = float(np.sqrt(model.grid.bin_area))
        self._gamma = SMOOTHING * bin_side
        self.major = self.reference = model.charges.within(at.astype(np.float32))
        found = model.forces(self.reference, self._per_gamma(1.0))
        self.forces = found = model.forces(self.reference, self._per_gamma(found.overflow))
        push = float(np.abs(found.density[:, : model.movable]).sum())
        self.weight = balance * float(np.abs(found.wirelength).sum()) / max(push, 1e-30)
        self._gradient = model.preconditioned(found, self.weight)
        # The first step moves by a tenth of a bin on average.
        self._step = 0.1 * bin_side / max(float(np.abs(self._gradient).mean()), 1e-30)
        self.momentum = 1.0

    def advance(self) -> bool:
        """Performs one iteration; returns False if it leads to positions that are not finite."""
        model, gradient, before = self.model, self._gradient, self.forces
        smoothing = self._per_gamma(before.overflow)
        momentum = (1 + math.sqrt(4 * self.momentum**2 + 1)) / 2
        carry, step = (self.momentum - 1) / momentum, self._step
        major, reference = np.empty_like(gradient), np.empty_like(gradient)
        low, high = model.charges.low, model.charges.high
        for _ in range(3):
            slope = _native.nesterov_step(
                self.major, self.reference, gradient, low, high, step, carry, major, reference
            )
            found = model.forces(reference, smoothing)
            change = _native.distance(model.preconditioned(found, self.weight), gradient)
            allowed = _native.distance(reference, self.reference) / max(change, 1e-30)
            if allowed >= BACKTRACK * step:
                break
            step = allowed
        if not np.isfinite([found.length, allowed]).all():
            return False
        # Momentum that runs uphill is dropped, else nodes held back by macros oscillate ever wider (O'Donoghue, Candès
        # 2015). They may be too few to change the sign of the sum; then wirelength and overflow rise together.
        uphill = slope > 0
        uphill |= found.length > (1 + DRIFT) * before.length and found.overflow > before.overflow
        rise = (found.length - before.length) / (RISE * max(found.length, 1e-30))
        self.weight *= max(SLOWEST, self._growth ** min(1.0, 1 - rise))
        self.major, self.reference, self.forces, self._step = major, reference, found, allowed
        self.momentum = 1.0 if uphill else momentum
        self._gradient = model.preconditioned(found, self.weight)
        return True

    def _per_gamma(self, overflow: float) -> float:
        """Returns 1/γ in 1/µm: the smoothing falls tenfold as the overflow falls by 0.45 (ePlace, equation 38)."""
        return float(1 / (self._gamma * 10 ** (20 / 9 * (min(max(overflow, 0.0), 1.0) - 0.1))))
