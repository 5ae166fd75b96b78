"""Clusters placed electrostatically, in NumPy: with the hard macros, where a search may begin, in a second or so; and
around hard macros that stand, what the flat check will find, in a tenth of one.

The method is `global_placement`'s, at the size of a clustered netlist. JAX takes longer to be imported and to compile
than this takes to run, and a search knows nothing of JAX.

Axis legend: N nodes, M movable macros, J fillers, X bins across, Y bins up; the leading axis 2 is x, y. Lengths in µm.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.fft

from placement.flat import _sums
from placement.flat.core import Core
from placement.flat.fillers import fill, first_places
from placement.flat.grid import Grid, blocked_share, grid_for
from placement.flat.problem import FlatProblem, as_turned, flat_problem, with_room
from placement.netlist.design import Design, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.pdn_channel import CELL_SHARE, DENSITY

OVERFLOW = 0.05
"""Stops when no more than this share of the macros' area stands in bins beyond their free area."""
APART_STILL = 0.2
"""The same, above which the legaliser would move macros far: then it is tried again."""
AROUND = 0.15
"""`OVERFLOW` of `spread_clusters`: clusters are too coarse to fill corners, and scatter where they are made to."""
AROUND_STANDING = 0.10
"""The same where clusters begin as they stand: they scatter less."""
ITERATIONS = 1200
"""At most, of each attempt."""
GROWTH = (1.08, 1.04)
"""The most by which the density's weight grows in one iteration, of each attempt."""
SMOOTHING = 0.6
"""Bins, γ of the wirelength at an overflow of 0.1."""
BALANCE = 1e-3
"""The density's first force over the wirelength's."""
HOLDING = 0.1
"""The same where clusters begin as they stand, as `_holding` of the flat check has it for cells."""
SLOWEST = 0.95
"""The least by which the density's weight changes in one iteration."""
RISE = 0.01
"""Of the wirelength in one iteration, at which the density's weight stands still."""
APART = 2e-3
"""Momentum is lost where the wirelength rises by more than this share in one iteration and the overflow rises, too."""
BACKTRACK = 0.95
"""A step is taken again, shorter, where the gradient at its end allows less than this part of it."""


def place_clusters(netlist: Netlist, placement: Placement, core: Core, *, seed: int = 0) -> Placement:
    """Places the hard and soft macros that are not fixed; they may overlap a little, and a legaliser has to follow.

    Args:
        netlist: the clustered one; a soft macro needs `CELL_SHARE` of its area at `DENSITY`.
        placement: ports and fixed macros; macros keep their orientation.
        core: where macros may stand, with the hard macros' halos, of each as it is turned now.
        seed: of the first places and the fillers, at least 0.

    Raises:
        DesignError: there are no macros to place, they have no room, or found none.
    """
    problem, model, begin = _begin(netlist, placement, core, seed)
    for growth in GROWTH:
        at, overflow = _Descent(model, growth, OVERFLOW).run(begin)
        if overflow <= APART_STILL:
            return _moved(placement, problem, at)
    raise DesignError(f"the macros still overlapped by {overflow:.0%} of their area after {ITERATIONS} iterations")


def place_design(
    design: Design, *, spacing: float = 0.0, blockages: Sequence[Sequence[float]] = (), seed: int = 0
) -> Placement:
    """As `place_clusters`, of a design with its halos and blockages.

    Args:
        design: what is placed; macros keep the orientation that they have initially.
        spacing: µm between macros, where their halos are narrower.
        blockages: beside the design's, (x low, y low, x high, y high) in µm.
        seed: as of `place_clusters`.

    Raises:
        DesignError: as `place_clusters`.
    """
    kept, canvas = design.constraints, design.canvas
    halo = np.stack(kept.sides(design.initial.orientation) * 2, axis=1)  # left, bottom, right, top
    rectangles = np.concatenate([kept.blockages, np.reshape(blockages, (-1, 4))])
    core = Core(
        canvas.width,
        canvas.height,
        blockages=tuple(map(tuple, rectangles.tolist())),
        halo=np.maximum(halo, spacing / 2),
    )
    return place_clusters(design.netlist, design.initial, core, seed=seed)


def spread_clusters(
    netlist: Netlist, placement: Placement, core: Core, *, standing: bool = False, seed: int = 0
) -> Placement:
    """Places the soft macros that are not fixed around hard macros as they stand: the flat check, coarse and quick.

    Over placements of one design the routed wirelength of its result ranks as the flat check's does.

    Args:
        netlist: the clustered one; a soft macro needs `CELL_SHARE` of its area at `DENSITY`.
        placement: ports and hard macros; the soft macros, too, if `standing`.
        core: where clusters may stand, with what they keep clear of hard macros, of each as it is turned now.
        standing: the soft macros begin where `placement` has them, with more force to hold them apart.
        seed: of the first places and the fillers, at least 0.

    Raises:
        DesignError: there are no soft macros to place, they have no room, or flew apart.
    """
    held = placement.fixed | (netlist.kind == NodeKind.HARD)
    problem, model, begin = _begin(netlist, dataclasses.replace(placement, fixed=held), core, seed)
    if standing:
        begin[0, : model.movable] = placement.x[problem.cells] - core.x
        begin[1, : model.movable] = placement.y[problem.cells] - core.y
    goal, balance = (AROUND_STANDING, HOLDING) if standing else (AROUND, BALANCE)
    at, overflow = _Descent(model, GROWTH[-1 if standing else 0], goal, balance).run(begin)
    if not np.isfinite(overflow):
        raise DesignError("the clusters flew apart")
    return _moved(placement, problem, at)


def _begin(netlist: Netlist, placement: Placement, core: Core, seed: int) -> tuple[FlatProblem, _Model, np.ndarray]:
    """What is placed, what its forces are, and float64 [2, M+J], where all begins, relative to the core."""
    problem = _upright(netlist, placement, core)
    rng = np.random.default_rng(seed)
    soft = netlist.kind[problem.cells] == NodeKind.SOFT
    grid = grid_for(problem.only(soft) if soft.any() else problem)
    problem = with_room(problem, soft, DENSITY)
    free = 1 - blocked_share(problem.fixed, grid)
    side = 1.5 * float(np.sqrt(grid.bin_area))
    begin = np.concatenate(
        [first_places(problem, rng), fill(problem, None, free, grid=grid, side=side, rng=rng)], axis=1
    )
    return problem, _Model(problem, grid, free, side, begin.shape[1]), begin


def _moved(placement: Placement, problem: FlatProblem, at: np.ndarray) -> Placement:
    """`placement` with what was placed where it came to stand; `at` as the descent gives it."""
    at = at[:, : len(problem.cells)]
    return placement.moved(problem.cells, at[0] + problem.core.x, at[1] + problem.core.y)


def _upright(netlist: Netlist, placement: Placement, core: Core) -> FlatProblem:
    """The problem, with the netlist as it is turned: sides, pins and halos."""
    share = np.where(netlist.kind == NodeKind.SOFT, np.sqrt(CELL_SHARE), 1.0)
    kind = np.where(netlist.kind == NodeKind.SOFT, NodeKind.CELL, netlist.kind).astype(netlist.kind.dtype)
    as_is = as_turned(netlist, placement.orientation)
    as_is = dataclasses.replace(as_is, kind=kind, width=as_is.width * share, height=as_is.height * share)
    north = dataclasses.replace(placement, orientation=np.full_like(placement.orientation, Orientation.N))
    return flat_problem(as_is, north, core, mixed_size=True)


class _Forces(NamedTuple):
    """Forces at one place: float32 [2, M+J] of the wirelength and the density; µm; share of the macros' area."""

    wirelength: np.ndarray
    density: np.ndarray
    length: float
    overflow: float


class _Model:
    """What the forces depend on besides the positions; as `objective.Model`, in NumPy."""

    def __init__(self, problem: FlatProblem, grid: Grid, free: np.ndarray, filler: float, count: int) -> None:
        self.movable, self.grid, self.free = len(problem.cells), grid, free.astype(np.float32)
        fillers = np.full(count - self.movable, filler)
        width, height = np.concatenate([problem.width, fillers]), np.concatenate([problem.height, fillers])
        across = np.maximum(width / grid.bin_width, np.sqrt(2.0)) / 2
        up = np.maximum(height / grid.bin_height, np.sqrt(2.0)) / 2
        self._half = np.stack([across, up]).astype(np.float32)  # bins
        self._scale = np.array([[grid.bin_width], [grid.bin_height]], np.float32)
        self._keep = np.minimum(self._half * self._scale, [[grid.width / 2], [grid.height / 2]]).astype(np.float32)
        self._side = np.array([[grid.width], [grid.height]], np.float32)
        self.area = (width * height).astype(np.float32)
        self._charge = self.area / np.float32(grid.bin_area)
        self._nets = problem.nets
        weight = np.repeat(problem.nets.weight, np.diff(problem.nets.start))
        pins = np.bincount(problem.nets.pin_cell, weight, self.movable + 1)[:-1]
        self.pins = np.concatenate([pins, np.zeros(count - self.movable)]).astype(np.float32)
        self._fixed = (1 - free).astype(np.float32)
        u = np.pi * np.arange(grid.across)[:, None] / grid.width
        v = np.pi * np.arange(grid.up)[None, :] / grid.height
        square = u**2 + v**2
        square[0, 0] = 1.0  # the mean has no field
        self._across, self._up = (u / square).astype(np.float32), (v / square).astype(np.float32)

    def within(self, at: np.ndarray) -> np.ndarray:
        """Positions [2, M+J] moved into the core."""
        found: np.ndarray = np.clip(at, self._keep, self._side - self._keep)
        return found

    def forces(self, at: np.ndarray, per_gamma: float) -> _Forces:
        """The forces at positions `at` (float32 [2, M+J], µm); `per_gamma`: 1/µm."""
        movable, nets = self.movable, self._nets
        pull = np.zeros_like(at)
        pull_x, pull_y = np.empty(movable, np.float32), np.empty(movable, np.float32)
        x, y = (np.append(one[:movable], np.float32(0)) for one in at)
        length = _sums.weighted_average(
            x,
            y,
            nets.start,
            nets.pin_cell,
            nets.pin_x,
            nets.pin_y,
            nets.weight,
            nets.cell_start,
            nets.cell_pins,
            per_gamma,
            pull_x,
            pull_y,
        )
        pull[0, :movable], pull[1, :movable] = pull_x, pull_y
        x, y = at / self._scale
        half_x, half_y = self._half
        used = np.zeros_like(self.free)
        _sums.spread(x[:movable], y[:movable], half_x[:movable], half_y[:movable], self._charge[:movable], used)
        overflow = float(np.maximum(used - self.free, 0).sum() / self._charge[:movable].sum())
        used += self._fixed
        _sums.spread(x[movable:], y[movable:], half_x[movable:], half_y[movable:], self._charge[movable:], used)
        push = np.empty_like(at)
        _sums.gather(x, y, half_x, half_y, self._charge, *self._field(used), push[0], push[1])
        return _Forces(pull, -push * np.float32(self.grid.bin_area), length, overflow)

    def _field(self, density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The field −∇ψ of a density, across and up; float32 [X, Y] each (`spectral.field`)."""
        coefficients = scipy.fft.dctn(density, type=2)
        across = _sines(scipy.fft.idct(coefficients * self._across, type=2, axis=1), 0)
        up = _sines(scipy.fft.idct(coefficients * self._up, type=2, axis=0), 1)
        return across, up


def _sines(coefficients: np.ndarray, axis: int) -> np.ndarray:
    """Σ over k of c_k sin(πk(2n+1)/2N) / N along an axis; float32 [X, Y]."""
    moved = np.roll(coefficients, -1, axis)  # the transform begins with k = 1
    np.moveaxis(moved, axis, 0)[-1] = 0
    found: np.ndarray = scipy.fft.dst(moved, type=3, axis=axis) / np.float32(2 * coefficients.shape[axis])
    return np.ascontiguousarray(found, np.float32)


class _Descent:
    """Nesterov's method and its schedule, as `placement.flat.nesterov`."""

    def __init__(self, model: _Model, growth: float, goal: float, balance: float = BALANCE) -> None:
        self._model, self._growth, self._goal, self._balance = model, growth, goal, balance
        self._gamma = SMOOTHING * float(np.sqrt(model.grid.bin_area))

    def run(self, begin: np.ndarray) -> tuple[np.ndarray, float]:
        """Positions, float64 [2, M+J], and the overflow, once that is the goal or after `ITERATIONS`."""
        model = self._model
        major = reference = model.within(begin.astype(np.float32))
        found = model.forces(reference, self._per_gamma(1.0))
        found = model.forces(reference, self._per_gamma(found.overflow))
        push = float(np.abs(found.density[:, : model.movable]).sum())
        weight = self._balance * float(np.abs(found.wirelength).sum()) / max(push, 1e-30)
        gradient = self._preconditioned(found, weight)
        step = 0.1 * float(np.sqrt(model.grid.bin_area)) / max(float(np.abs(gradient).mean()), 1e-30)
        momentum: float = 1.0
        for _ in range(ITERATIONS):
            if found.overflow <= self._goal:
                break
            smoothing = self._per_gamma(found.overflow)
            grown = (1 + math.sqrt(4 * momentum**2 + 1)) / 2
            carry = np.float32((momentum - 1) / grown)
            for _ in range(3):
                ahead = model.within(reference - np.float32(step) * gradient)
                then = model.within(ahead + carry * (ahead - major))
                at_end = model.forces(then, smoothing)
                change = float(np.linalg.norm(self._preconditioned(at_end, weight) - gradient))
                allowed = float(np.linalg.norm(then - reference)) / max(change, 1e-30)
                if allowed >= BACKTRACK * step:
                    break
                step = allowed
            if not np.isfinite([at_end.length, allowed]).all():
                return reference.astype(np.float64), np.inf
            uphill = float((gradient * (ahead - major)).sum()) > 0
            uphill |= at_end.length > (1 + APART) * found.length and at_end.overflow > found.overflow
            rise = (at_end.length - found.length) / (RISE * max(at_end.length, 1e-30))
            weight *= max(SLOWEST, self._growth ** min(1.0, 1 - rise))
            major, reference, found, step = ahead, then, at_end, allowed
            momentum = 1.0 if uphill else grown
            gradient = self._preconditioned(found, weight)
        return reference.astype(np.float64), found.overflow

    def _per_gamma(self, overflow: float) -> float:
        """1/γ, 1/µm: the smoothing falls tenfold as the overflow falls by 0.45 (ePlace, equation 38)."""
        return float(1 / (self._gamma * 10 ** (20 / 9 * (min(max(overflow, 0.0), 1.0) - 0.1))))

    def _preconditioned(self, at: _Forces, weight: float) -> np.ndarray:
        """The gradient over an estimate of the Hessian's diagonal (ePlace, section 5.3)."""
        push, model = np.float32(weight), self._model
        found: np.ndarray = (at.wirelength + push * at.density) / np.maximum(model.pins + push * model.area, 1.0)
        return found
