"""The style of every plot: colours for colour-blind readers, fonts, and figures without global state.

Figures are drawn through Matplotlib's object-oriented interface on the Agg canvas. No pyplot, no display and no global
settings are involved, so threads may draw at the same time.
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from placement.netlist.files import write_whole

# The palette of Okabe and Ito (2008).
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
SERIES = (BLUE, VERMILION, GREEN, "#CC79A7", ORANGE, "#56B4E9", "#000000")

INK = "#22262B"
MUTED = "#667079"
FAINT = "#D9DDE1"
PAPER = "#FFFFFF"
CANVAS = "#F7F8F9"

TITLE_SIZE = 13.0
TEXT_SIZE = 10.5
SMALL_SIZE = 9.5
DOTS_PER_INCH = 150
MARGIN = 0.85  # inches between a figure's left edge and its contents


def new_figure(width: float, height: float) -> Figure:
    """An empty white figure of the given size in inches, with its own Agg canvas."""
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def dress(axes: Axes, *, grid: bool = False) -> None:
    """Gives `axes` the common style: thin muted frame, outward ticks, readable labels."""
    axes.set_facecolor(PAPER)
    for spine in axes.spines.values():
        spine.set_color(MUTED)
        spine.set_linewidth(0.8)
    axes.tick_params(labelsize=SMALL_SIZE, labelcolor=INK, color=MUTED, length=3.5, width=0.8)
    axes.xaxis.label.set(size=TEXT_SIZE, color=INK)
    axes.yaxis.label.set(size=TEXT_SIZE, color=INK)
    if grid:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color=FAINT, linewidth=0.7)
        axes.set_axisbelow(True)


def head(figure: Figure, title: str, line: str = "", *, left: float = MARGIN) -> None:
    """Adds a bold title `left` inches from the figure's left edge, shrunk to fit, and a muted line of text below it."""
    width, height = figure.get_size_inches()
    text = figure.text(left / width, 1 - 0.2 / height, title, size=TITLE_SIZE, weight="bold", color=INK, va="top")
    excess = text.get_window_extent().width / ((width - left - MARGIN) * figure.dpi)
    if excess > 1:
        text.set_fontsize(TITLE_SIZE / excess)
    if line:
        head_line(figure, line, left=left)


def head_line(figure: Figure, line: str, *, left: float = MARGIN) -> Text:
    """Adds the muted line of text below a figure's title."""
    width, height = figure.get_size_inches()
    return figure.text(left / width, 1 - 0.48 / height, line, size=SMALL_SIZE, color=MUTED, va="top")


def foot_legend(
    figure: Figure, handles: Sequence[Artist], *, left: float = MARGIN, low: float = 0.16, **look: Any
) -> None:
    """Adds a frameless legend `left` and `low` inches from the figure's lower left corner; `look` is Matplotlib's."""
    width, height = figure.get_size_inches()
    dots = {"scatterpoints": 3, "scatteryoffsets": (0.5,)}
    place = {"bbox_to_anchor": (left / width, low / height), "borderaxespad": 0, "borderpad": 0, "frameon": False}
    figure.legend(handles=handles, loc="lower left", **place, **dots, fontsize=SMALL_SIZE, labelcolor=INK, **look)


def png_bytes(figure: Figure, *, dots_per_inch: int = DOTS_PER_INCH) -> bytes:
    """The figure as a PNG file; equal figures give equal bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dots_per_inch, facecolor=PAPER, metadata={"Software": None})
    return buffer.getvalue()


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Writes the figure atomically as a PNG file and returns its path; raises OSError."""
    write_whole(path, png_bytes(figure))
    return Path(path)
