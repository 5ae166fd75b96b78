"""The parts that pictures of a placement are made of: shapes of macros, and the canvas that they stand on.

Axis legend: M macros drawn, K corners of one. Lengths are in µm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from placement.netlist.design import TURN, Canvas, Design, Placement
from placement.report import style


class Look(NamedTuple):
    """How one kind of macro is drawn."""

    face: str
    edge: str
    alpha: float = 1.0


MOVABLE = Look("#8DBFDD", "#0B3C5D")
NEWEST = Look(style.VERMILION, "#6B2F00")
FIXED = Look("#B9BEC4", "#3C434A")
SOFT = Look(style.ORANGE, "#A06A00", 0.45)
PORT_FACE = style.VERMILION

MARK_SHARE = 0.3  # of the macro's shorter side: its orientation mark
MARK_LIMIT = 0.018  # of the canvas's shorter side: the largest mark


def outlines(design: Design, placement: Placement, nodes: np.ndarray) -> np.ndarray:
    """float64 [M, 4, 2]: the corners of `nodes` (int [M]) as they stand, beginning with N's lower left one."""
    half_width, half_height = design.netlist.width[nodes] / 2, design.netlist.height[nodes] / 2
    dx = half_width[:, None] * np.array([-1.0, 1.0, 1.0, -1.0])
    dy = half_height[:, None] * np.array([-1.0, -1.0, 1.0, 1.0])
    return _standing(placement, nodes, dx, dy)


def orientation_marks(design: Design, placement: Placement, nodes: np.ndarray) -> np.ndarray:
    """float64 [M, 3, 2]: a small triangle in the corner of each macro that is its lower left one in orientation N."""
    canvas = design.canvas
    width, height = design.netlist.width[nodes], design.netlist.height[nodes]
    limit = MARK_LIMIT * min(canvas.width, canvas.height)
    size = np.minimum(MARK_SHARE * np.minimum(width, height), limit)[:, None]
    dx = -width[:, None] / 2 + size * np.array([0.0, 1.0, 0.0])
    dy = -height[:, None] / 2 + size * np.array([0.0, 0.0, 1.0])
    return _standing(placement, nodes, dx, dy)


def _standing(placement: Placement, nodes: np.ndarray, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """float64 [M, K, 2]: where the offsets `dx`, `dy` ([M, K], in orientation N) of `nodes` lie on the canvas."""
    turn = TURN[placement.orientation[nodes]][:, None, :]
    x = placement.x[nodes][:, None] + turn[..., 0] * dx + turn[..., 1] * dy
    y = placement.y[nodes][:, None] + turn[..., 2] * dx + turn[..., 3] * dy
    return np.stack([x, y], axis=-1)


def split_hard(design: Design, placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    """The movable and the fixed hard macros, each int32 [·]."""
    hard = design.netlist.hard
    return hard[~placement.fixed[hard]], hard[placement.fixed[hard]]


def hard_bodies(
    design: Design, placement: Placement, nodes: np.ndarray, look: Look = MOVABLE
) -> tuple[PolyCollection, PolyCollection]:
    """The bodies of hard macros and their orientation marks."""
    bodies = PolyCollection(
        list(outlines(design, placement, nodes)),
        facecolors=look.face,
        edgecolors=look.edge,
        linewidths=0.8,
        alpha=look.alpha,
        zorder=3,
    )
    marks = PolyCollection(
        list(orientation_marks(design, placement, nodes)), facecolors=look.edge, linewidths=0, zorder=4
    )
    return bodies, marks


def soft_bodies(design: Design, placement: Placement, nodes: np.ndarray) -> PolyCollection:
    """The bodies of soft macros: translucent and above the hard ones, so that whatever overlaps is seen."""
    return PolyCollection(
        list(outlines(design, placement, nodes)),
        facecolors=SOFT.face,
        edgecolors=SOFT.edge,
        linewidths=0.3 if len(nodes) > 100 else 0.8,
        alpha=SOFT.alpha,
        zorder=4.2,
    )


def draw_placement(axes: Axes, design: Design, placement: Placement) -> None:
    """All macros and ports."""
    axes.add_collection(soft_bodies(design, placement, design.netlist.soft))
    for nodes, look in zip(split_hard(design, placement), (MOVABLE, FIXED), strict=True):
        for bodies in hard_bodies(design, placement, nodes, look):
            axes.add_collection(bodies)
    draw_ports(axes, design, placement)


def draw_ports(axes: Axes, design: Design, placement: Placement) -> None:
    """Ports as small squares at their places."""
    ports = design.netlist.ports
    axes.plot(
        placement.x[ports],
        placement.y[ports],
        linestyle="none",
        marker="s",
        markersize=2.6 if len(ports) > 100 else 4.5,
        markerfacecolor=PORT_FACE,
        markeredgewidth=0,
        zorder=5,
        clip_on=False,
    )


class View(NamedTuple):
    """The rectangle of the plane that a picture shows, µm."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def aspect(self) -> float:
        """Height over width."""
        return (self.top - self.bottom) / (self.right - self.left)


def view_of(design: Design, placement: Placement) -> View:
    """The canvas with a thin margin, widened (at most by a fifth) to show hard macros and ports that stand outside."""
    width, height = design.canvas.width, design.canvas.height
    corners = outlines(design, placement, design.netlist.hard).reshape(-1, 2)
    ports = design.netlist.ports
    points = np.stack([placement.x[ports], placement.y[ports]], axis=1)
    corners = np.concatenate([corners, points, [[0.0, 0.0], [width, height]]])
    margin = 0.012 * max(width, height)
    low = np.maximum(corners.min(axis=0), [-0.2 * width, -0.2 * height]) - margin
    high = np.minimum(corners.max(axis=0), [1.2 * width, 1.2 * height]) + margin
    return View(left=float(low[0]), right=float(high[0]), bottom=float(low[1]), top=float(high[1]))


def union_view(views: Sequence[View]) -> View:
    """The smallest view that shows all of `views`, at least one."""
    return View(
        left=min(view.left for view in views),
        right=max(view.right for view in views),
        bottom=min(view.bottom for view in views),
        top=max(view.top for view in views),
    )


def view_figure(view: View, width: float) -> tuple[Figure, Axes]:
    """A figure `width` inches wide with one axes of the view's shape, room for a heading and a legend around it."""
    plot_width = width - style.MARGIN - 0.2
    plot_height = min(max(plot_width * view.aspect, 1.5), 1.2 * plot_width)
    plot_width = min(plot_width, plot_height / view.aspect)
    height = plot_height + 1.85
    figure = style.new_figure(width, height)
    place = (style.MARGIN / width, 1.12 / height, plot_width / width, plot_height / height)
    return figure, figure.add_axes(place)


def dress_view(axes: Axes, view: View) -> None:
    """Shows `view` in `axes` and labels the sides in µm."""
    style.dress(axes)
    axes.set_xlim(view.left, view.right)
    axes.set_ylim(view.bottom, view.top)
    axes.set_aspect("equal")
    axes.set_xlabel("x (µm)")
    axes.set_ylabel("y (µm)")
    for spine in axes.spines.values():
        spine.set_visible(False)


def dress_canvas(axes: Axes, canvas: Canvas, view: View) -> None:
    """Shows `view` in `axes`, draws the canvas's area and edge and labels the sides in µm."""
    dress_view(axes, view)
    corner, edge = (0, 0), {"edgecolor": style.MUTED, "linewidth": 1.0}
    axes.add_patch(Rectangle(corner, canvas.width, canvas.height, facecolor=style.CANVAS, zorder=0, **edge))  # type: ignore[arg-type]
    axes.add_patch(Rectangle(corner, canvas.width, canvas.height, fill=False, zorder=4.5, **edge))  # type: ignore[arg-type]
