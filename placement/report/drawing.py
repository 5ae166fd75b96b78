"""The elements of a placement's picture: the shapes of macros and ports, and the canvas.

Axis legend: M macros drawn, K corners of each. Lengths are in µm.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.path import Path
from matplotlib.transforms import IdentityTransform

from placement.netlist.design import TURN, Canvas, Design, Netlist, Placement
from placement.report import style


class Look(NamedTuple):
    """The colours of one kind of macro."""

    face: str
    edge: str
    alpha: float = 1.0


# The light colours of the window (placement/report/view/static/style.css).
MOVABLE = Look("#9cc7e4", "#0072b2")
FIXED = Look("#c3c8cd", "#5b646d")
SOFT = Look("#b9e3d4", "#6fbf9f", 0.7)
PORT_FACE = "#b97f00"
CLUSTER_COLOURS = colormaps["tab20"](np.arange(20))
NO_CLUSTER = (0.467, 0.467, 0.467, 1.0)  # grey

X_LABEL, Y_LABEL = "x from the canvas's left edge (µm)", "y from its lower edge (µm)"

WIDTH = 7.4  # width of a picture of one placement, in inches
MARK_SHARE = 0.3  # size of an orientation mark, as a fraction of the macro's shorter side
MARK_LIMIT = 0.018  # its upper limit, as a fraction of the canvas's shorter side


def outlines(netlist: Netlist, placement: Placement, nodes: np.ndarray) -> np.ndarray:
    """Corners of the oriented `nodes` (int [M]), starting at the lower left corner of N; float64 [M, 4, 2]."""
    half_width, half_height = netlist.width[nodes] / 2, netlist.height[nodes] / 2
    dx = half_width[:, None] * np.array([-1.0, 1.0, 1.0, -1.0])
    dy = half_height[:, None] * np.array([-1.0, -1.0, 1.0, 1.0])
    return _oriented(placement, nodes, dx, dy)


def orientation_marks(design: Design, placement: Placement, nodes: np.ndarray) -> np.ndarray:
    """A small triangle in the corner of each macro that is its lower left one in orientation N; float64 [M, 3, 2]."""
    canvas = design.canvas
    width, height = design.netlist.width[nodes], design.netlist.height[nodes]
    limit = MARK_LIMIT * min(canvas.width, canvas.height)
    size = np.minimum(MARK_SHARE * np.minimum(width, height), limit)[:, None]
    dx = -width[:, None] / 2 + size * np.array([0.0, 1.0, 0.0])
    dy = -height[:, None] / 2 + size * np.array([0.0, 0.0, 1.0])
    return _oriented(placement, nodes, dx, dy)


def _oriented(placement: Placement, nodes: np.ndarray, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Positions on the canvas of the offsets `dx`, `dy` ([M, K], in orientation N) of `nodes`; float64 [M, K, 2]."""
    turn = TURN[placement.orientation[nodes]][:, None, :]
    x = placement.x[nodes][:, None] + turn[..., 0] * dx + turn[..., 1] * dy
    y = placement.y[nodes][:, None] + turn[..., 2] * dx + turn[..., 3] * dy
    return np.stack([x, y], axis=-1)


def split_hard(design: Design, placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    """The movable and the fixed hard macros, int32 [·] each."""
    hard = design.netlist.hard
    return hard[~placement.fixed[hard]], hard[placement.fixed[hard]]


def hard_bodies(
    design: Design, placement: Placement, nodes: np.ndarray, look: Look = MOVABLE
) -> tuple[PolyCollection, PolyCollection]:
    """The bodies of hard macros and their orientation marks."""
    corners, marks = outlines(design.netlist, placement, nodes), orientation_marks(design, placement, nodes)
    colours: dict[str, Any] = {"facecolors": look.face, "edgecolors": look.edge}
    return (
        PolyCollection(list(corners), **colours, linewidths=0.8, alpha=look.alpha, zorder=3),
        PolyCollection(list(marks), facecolors=look.edge, linewidths=0, zorder=4),
    )


def soft_bodies(design: Design, placement: Placement, nodes: np.ndarray) -> PolyCollection:
    """The bodies of soft macros, translucent and above the hard ones, so that overlaps are visible."""
    corners, width = list(outlines(design.netlist, placement, nodes)), 0.3 if len(nodes) > 100 else 0.8
    look: dict[str, Any] = {"facecolors": SOFT.face, "edgecolors": SOFT.edge, "alpha": SOFT.alpha}
    return PolyCollection(corners, **look, linewidths=width, zorder=4.2)


def draw_hard(axes: Axes, design: Design, placement: Placement, *, alpha: float = 1.0, marks: bool = False) -> None:
    """Draws the hard macros, with or without their orientation marks."""
    for nodes, look in zip(split_hard(design, placement), (MOVABLE, FIXED), strict=True):
        bodies, corners = hard_bodies(design, placement, nodes, look._replace(alpha=alpha))
        axes.add_collection(bodies)
        if marks:
            axes.add_collection(corners)


def draw_placement(axes: Axes, design: Design, placement: Placement) -> None:
    """Draws all macros and ports."""
    axes.add_collection(soft_bodies(design, placement, design.netlist.soft))
    draw_hard(axes, design, placement, marks=True)
    ports = design.netlist.ports
    draw_ports(axes, placement.x[ports], placement.y[ports])


def draw_ports(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Draws ports as small squares at their positions; those beyond the axes' limits are omitted."""
    size = 2.6 if len(x) > 100 else 4.5
    look: dict[str, Any] = {"linestyle": "none", "marker": "s", "markersize": size, "markeredgewidth": 0}
    axes.plot(x, y, **look, markerfacecolor=PORT_FACE, zorder=5)


def macro_keys(kinds: Iterable[tuple[int, Look, str]]) -> list[Artist]:
    """Legend entries for kinds of macros: their number, look and name; absent kinds are omitted."""
    return [
        Patch(facecolor=look.face, edgecolor=look.edge, alpha=look.alpha, label=f"{name} ({count:,})", linewidth=0.8)
        for count, look, name in kinds
        if count
    ]


def marker_key(label: str, face: Any, marker: Any, size: float = 5) -> Artist:
    """A legend entry that shows a marker."""
    look: dict[str, Any] = {"marker": marker, "markersize": size, "markerfacecolor": face, "markeredgewidth": 0}
    return Line2D([], [], linestyle="none", label=label, **look)


def draw_cells(axes: Axes, x: np.ndarray, y: np.ndarray, cluster: np.ndarray, *, scale: float = 1.0) -> None:
    """Draws standard cells as dots, `scale` times the usual size, in the colours of their clusters (-1: grey)."""
    order = np.random.default_rng(0).permutation(int(cluster.max(initial=0)) + 1)
    colours = CLUSTER_COLOURS[order[np.maximum(cluster, 0)] % len(CLUSTER_COLOURS)]
    colours = np.where((cluster >= 0)[:, None], colours, NO_CLUSTER)
    size = scale * float(np.clip(3e4 / max(1, len(x)), 0.2, 6.0))
    axes.scatter(x, y, s=size, c=colours, linewidths=0, rasterized=True, zorder=2)


def cells_key() -> Artist:
    """A legend entry for standard cells in their clusters' colours: dots in three of them."""
    look: dict[str, Any] = {"sizes": (6,), "facecolors": CLUSTER_COLOURS[[0, 4, 2]], "linewidths": 0}
    look["transform"] = IdentityTransform()
    return PathCollection([Path.unit_circle()], **look, label="standard cells, a colour per cluster")


class View(NamedTuple):
    """The rectangle of the plane that a picture shows, in µm."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def aspect(self) -> float:
        """Height over width."""
        return (self.top - self.bottom) / (self.right - self.left)


def view_of(design: Design, placement: Placement) -> View:
    """The canvas with a thin margin, widened (by a fifth at most) to show hard macros and ports outside of it."""
    size, ports = np.array([design.canvas.width, design.canvas.height]), design.netlist.ports
    corners = outlines(design.netlist, placement, design.netlist.hard).reshape(-1, 2)
    points = np.stack([placement.x[ports], placement.y[ports]], axis=1)
    shown = np.concatenate([corners, points, [[0.0, 0.0], size]])
    margin = 0.012 * size.max()
    left, bottom = (np.maximum(shown.min(axis=0), -0.2 * size) - margin).tolist()
    right, top = (np.minimum(shown.max(axis=0), 1.2 * size) + margin).tolist()
    return View(left, right, bottom, top)


def union_view(views: Sequence[View]) -> View:
    """The smallest view that shows all of `views`, of which there must be one."""
    left, right, bottom, top = zip(*views, strict=True)
    return View(min(left), max(right), min(bottom), max(top))


def view_figure(view: View, width: float) -> tuple[Figure, Axes]:
    """A figure `width` inches wide with one axes of the view's shape, and space for a heading and a legend."""
    plot_width = width - style.MARGIN - 0.2
    plot_height = min(max(plot_width * view.aspect, 1.5), 1.2 * plot_width)
    plot_width = min(plot_width, plot_height / view.aspect)
    height = plot_height + 1.85
    figure = style.new_figure(width, height)
    place = (style.MARGIN / width, 1.12 / height, plot_width / width, plot_height / height)
    return figure, figure.add_axes(place)


def dress_view(axes: Axes, view: View) -> None:
    """Limits `axes` to `view` and labels the sides in µm."""
    style.dress(axes)
    axes.set(xlim=(view.left, view.right), ylim=(view.bottom, view.top), xlabel=X_LABEL, ylabel=Y_LABEL)
    axes.set_aspect("equal")
    axes.spines[:].set_visible(False)


def dress_canvas(axes: Axes, canvas: Canvas, view: View) -> None:
    """Does the same as `dress_view`, and draws the canvas's area and edge."""
    dress_view(axes, view)
    looks: tuple[dict[str, Any], ...] = ({"facecolor": style.CANVAS, "zorder": 0}, {"fill": False, "zorder": 4.5})
    for look in looks:
        box = Rectangle((0, 0), canvas.width, canvas.height, edgecolor=style.MUTED, linewidth=1.0, **look)
        axes.add_patch(box)
