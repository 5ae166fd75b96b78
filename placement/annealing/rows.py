"""Hard macros in rows or columns with gaps between them; which macro stands where follows from another placement.

Axis legend: N nodes. Lengths are in µm. In columns, read x for y and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import linear_sum_assignment

from placement.annealing.config import AnnealConfig
from placement.annealing.legaliser import NoRoom, legalise
from placement.netlist.design import Design, Placement

HALVINGS = 20
"""Of the interval in which the largest pitch for a number of rows lies."""
WIDEST = 3.0
"""Largest pitch of the macros of a row over their widths."""
MOST_ASSIGNED = 150
"""Macros of equal size that are assigned to their places at once."""


class RowPacker:
    """Sets the movable hard macros of a design out in rows, or in columns.

    Args:
        design: whose macros.
        config: what macros keep clear of.
        upright: columns instead of rows.
    """

    def __init__(self, design: Design, config: AnnealConfig, *, upright: bool = False) -> None:
        self._design, self._config, self._upright = design, config, upright
        sides = design.netlist.sides(design.initial.orientation)
        halos = design.constraints.sides(design.initial.orientation)
        canvas = design.canvas
        axes = (1, 0) if upright else (0, 1)
        self._width, self._height = (sides[axis] for axis in axes)
        gaps = [max(config.spacing, 2 * float(halo[design.placing_order].max(initial=0.0))) for halo in halos]
        self._gap, self._row_gap = (gaps[axis] for axis in axes)
        self._across, self._up = ((canvas.width, canvas.height)[axis] for axis in axes)
        self._cell = canvas.cell_width if upright else canvas.cell_height
        self._tallest_first = _tallest_first(design.placing_order, self._height)

    def stretches(self) -> list[float]:
        """The largest pitch of each number of rows that has room, over the macros' widths; the narrowest first."""
        found: list[float] = []
        least = len(list(self._rows(self._tallest_first, 1.0)))
        for count in range(least, len(self._tallest_first) + 1):
            low, high = 1.0, WIDEST
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                low, high = (
                    (middle, high) if len(list(self._rows(self._tallest_first, middle))) <= count else (low, middle)
                )
            rows = list(self._rows(self._tallest_first, low))
            if self._row_heights(rows) is None or low >= WIDEST - 1e-3:
                break
            if not found or low > found[-1] + 1e-3:
                found.append(low)
        return found

    def pack(
        self, stretch: float, generator: np.random.Generator, *, like: Placement | None = None
    ) -> Placement | None:
        """The movable hard macros in rows, from the lower and the upper edge inwards.

        Without `like` the tallest stand at the edges, and those of equal height in random order.

        Args:
            stretch: a row takes macros of 1 / `stretch` of the canvas's width, spread evenly.
            generator: of the order.
            like: rows are made and stacked in the order in which their macros stand here; macros of equal size change
                places so that the sum of their squared distances to where they stand here is the least.

        Returns:
            None where they do not fit, or what they must keep off is in the way.
        """
        design = self._design
        rows = self._random_rows(stretch, generator) if like is None else self._rows_like(stretch, like)
        heights = self._row_heights(rows)
        if heights is None:
            return None
        half = (len(rows) + 1) // 2
        lows, highs = (rows[::2], rows[1::2]) if like is None else (rows[:half], rows[: half - 1 : -1])
        places = np.stack([design.initial.x, design.initial.y])
        along, up = places[::-1] if self._upright else places
        tall = {id(row): height for row, height in zip(rows, heights, strict=True)}
        low, high = 0.0, self._up
        for row in lows:
            self._spread(row, along)
            up[row] = low + tall[id(row)] / 2
            low += tall[id(row)]
        for row in highs:
            self._spread(row, along)
            up[row] = high - tall[id(row)] / 2
            high -= tall[id(row)]
        x, y = places
        if like is not None:
            _exchange(design, x, y, like)
        order = design.placing_order
        try:
            return legalise(
                design,
                design.initial.moved(order, x[order], y[order]),
                spacing=self._config.spacing,
                blockages=self._config.blockages,
            )
        except NoRoom:
            return None

    def _random_rows(self, stretch: float, generator: np.random.Generator) -> list[np.ndarray]:
        order = _tallest_first(generator.permutation(self._design.placing_order), self._height)
        return list(self._rows(order, stretch))

    def _rows_like(self, stretch: float, like: Placement) -> list[np.ndarray]:
        """Rows of macros that are about as tall and stand about as high, the lowest first; each from left to right."""
        along, up = (like.y, like.x) if self._upright else (like.x, like.y)
        order = self._design.placing_order
        rows = list(self._rows(order[np.lexsort((up[order], -self._height[order]))], stretch))
        rows = [row[np.argsort(along[row], kind="stable")] for row in rows]
        return sorted(rows, key=lambda row: float(up[row].mean()))

    def _row_heights(self, rows: list[np.ndarray]) -> list[float] | None:
        """Of each row, on whole gcells where there is room; None where there is none at all."""
        heights = [float(self._height[row].max()) + self._row_gap for row in rows]
        whole = [float(np.ceil(tall / self._cell - 1e-9) * self._cell) for tall in heights]
        heights = whole if sum(whole) <= self._up else heights
        return heights if sum(heights) <= self._up + self._row_gap else None

    def _rows(self, order: np.ndarray, stretch: float) -> Iterator[np.ndarray]:
        widths = (self._width[order] + self._gap).tolist()
        most = (self._across + self._gap) / stretch
        begin, filled = 0, 0.0
        for index, width in enumerate(widths):
            if index > begin and filled + width > most:
                yield order[begin:index]
                begin, filled = index, 0.0
            filled += width
        yield order[begin:]

    def _spread(self, row: np.ndarray, along: np.ndarray) -> None:
        """Puts a row's macros evenly over the canvas's width, half a gap at the edges."""
        width = self._width[row]
        free = self._across - width.sum()
        gap = free / len(row)
        left, right = (gap / 2, gap) if gap >= self._gap else (0.0, free / max(1, len(row) - 1))
        along[row] = left + np.concatenate([[0.0], np.cumsum(width + right)[:-1]]) + width / 2


def _tallest_first(order: np.ndarray, height: np.ndarray) -> np.ndarray:
    return order[np.argsort(-height[order], kind="stable")]


def _exchange(design: Design, x: np.ndarray, y: np.ndarray, like: Placement) -> None:
    """Gives the spots that macros of equal size have in `x`, `y` (µm, changed) to those of them that stand nearest."""
    macros = design.placing_order
    sides = np.stack(design.netlist.sides(design.initial.orientation), axis=1)[macros]
    for size in np.unique(sides, axis=0):
        equal = macros[(sides == size).all(axis=1)]
        want, spots = np.stack([like.x, like.y])[:, equal], np.stack([x, y])[:, equal]
        for mine, theirs in _parts(want, spots):
            distance = ((want[:, mine, None] - spots[:, None, theirs]) ** 2).sum(axis=0)
            who, spot = linear_sum_assignment(distance)
            x[equal[mine[who]]], y[equal[mine[who]]] = spots[:, theirs[spot]]


def _parts(want: np.ndarray, spots: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Cuts macros and spots, equally many of each, into parts of at most `MOST_ASSIGNED`, halving the longer axis.

    An assignment takes the cube of its macros.

    Args:
        want: [2, M] µm, where the macros want to be.
        spots: [2, M] µm.

    Yields:
        Indices of a part's macros and of its spots.
    """
    parts = [(np.arange(want.shape[1]), np.arange(want.shape[1]))]
    while parts:
        mine, theirs = parts.pop()
        if len(mine) <= MOST_ASSIGNED:
            yield mine, theirs
            continue
        axis = int(np.argmax(np.ptp(spots[:, theirs], axis=1)))
        mine, theirs = (part[np.argsort(at[axis, part], kind="stable")] for at, part in ((want, mine), (spots, theirs)))
        half = len(mine) // 2
        parts += [(mine[:half], theirs[:half]), (mine[half:], theirs[half:])]
