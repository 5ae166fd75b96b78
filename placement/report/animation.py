"""An animation of one episode as a GIF: the hard macros appear one at a time, the soft macros at the end.

Frames are drawn onto one another on the Agg canvas (each adds one macro to what is there already), so that a
design of a hundred macros takes about a second.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image

from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights
from placement.netlist.design import Design, Placement
from placement.netlist.files import write_whole
from placement.report import drawing, plots, style
from placement.report.metrics import measure

WIDTH = 6.4  # inches
DOTS_PER_INCH = 100
MOST_STEPS = 150  # frames that show macros being placed; larger designs place several macros per frame
SECONDS = 8.0  # that placing takes to watch, about
SHORTEST_FRAME, LONGEST_FRAME = 40, 500  # ms
HOLD_HARD, HOLD_END = 800, 3500  # ms
COLOURS = 64
EXACT_COLOURS = (style.PAPER, style.CANVAS, drawing.MOVABLE.face, drawing.NEWEST.face, drawing.FIXED.face)


def save_episode(
    path: str | os.PathLike[str],
    design: Design,
    placement: Placement,
    *,
    order: np.ndarray | None = None,
    weights: CostWeights = DEFAULT_WEIGHTS,
    title: str = "",
) -> Path:
    """Writes the animation, whole or not at all; returns the path.

    Args:
        path: a `.gif`.
        design: the netlist and the canvas.
        placement: how the episode ended, all nodes placed.
        order: int [T], the hard macros in the order in which they were placed; the design's placing order when None.
        weights: of the cost shown at the end.
        title: the heading; the design's name when empty.

    Raises:
        DesignError: a node has no place.
        OSError: the file cannot be written.
    """
    order = design.placing_order if order is None else np.asarray(order)
    costs = measure(design, placement, weights=weights).costs
    ending = (
        f"{weights.name} cost {costs.total:.4f}: wirelength {costs.wirelength_cost:.4f}, "
        f"density {costs.density_cost:.4f}, congestion {costs.congestion_cost:.4f}"
    )
    drawn = _EpisodeFigure(design, placement, title or design.name)
    images, milliseconds = zip(*drawn.frames(order, ending), strict=True)
    write_whole(path, _gif(images, milliseconds))
    return Path(path)


class _EpisodeFigure:
    """The canvas that an episode is drawn on."""

    def __init__(self, design: Design, placement: Placement, title: str) -> None:
        self.design = design
        self.placement = placement
        self.figure, self.axes = plots.canvas_figure(design, placement, width=WIDTH)
        self.figure.set_dpi(DOTS_PER_INCH)
        self.canvas = FigureCanvasAgg(self.figure)
        style.head(self.figure, title)
        self.line = style.head_line(self.figure, "")
        self.line.set_animated(True)
        movable, fixed = drawing.split_hard(design, placement)
        soft, ports = design.netlist.soft, design.netlist.ports
        plots.placement_legend(
            self.figure, movable=len(movable), fixed=len(fixed), soft=len(soft), ports=len(ports), marks=False
        )
        drawing.draw_ports(self.axes, design, placement)
        for body in drawing.hard_bodies(design, placement, fixed, drawing.FIXED):
            self.axes.add_collection(body)

    def frames(self, order: np.ndarray, ending: str) -> Iterator[tuple[Image.Image, int]]:
        """The frames with the milliseconds that each is shown."""
        self.canvas.draw()
        self.clean = self.canvas.copy_from_bbox(self.figure.bbox)
        steps = np.array_split(order, min(len(order), MOST_STEPS)) if len(order) else []
        shown = int(np.clip(1000 * SECONDS / max(len(steps), 1), SHORTEST_FRAME, LONGEST_FRAME))
        yield self._frame(f"0 of {len(order)} hard macros placed"), max(shown, HOLD_HARD // 2)
        placed = 0
        for number, nodes in enumerate(steps, start=1):
            placed += len(nodes)
            newest = drawing.hard_bodies(self.design, self.placement, nodes, drawing.NEWEST)
            text = f"{placed} of {len(order)} hard macros placed"
            yield self._frame(text, newest), shown if number < len(steps) else HOLD_HARD
            self._keep(drawing.hard_bodies(self.design, self.placement, nodes, drawing.MOVABLE))
        yield self._finished(ending), HOLD_END

    def _keep(self, artists: tuple[Artist, ...]) -> None:
        """Adds `artists` to what all later frames show."""
        self.canvas.restore_region(self.clean)
        self._draw(artists)
        self.clean = self.canvas.copy_from_bbox(self.figure.bbox)

    def _frame(self, text: str, artists: tuple[Artist, ...] = ()) -> Image.Image:
        """What is there already, with `artists` and a line of text, on this frame only."""
        self.canvas.restore_region(self.clean)
        self.line.set_text(text)
        self._draw((*artists, self.line))
        return self._image()

    def _draw(self, artists: tuple[Artist, ...]) -> None:
        for artist in artists:
            if not isinstance(artist, Text) and artist.axes is None:
                self.axes.add_collection(artist)  # type: ignore[arg-type]
                artist.set_animated(True)
            self.axes.draw_artist(artist)

    def _finished(self, ending: str) -> Image.Image:
        """Everything drawn anew, with the soft macros."""
        design, placement = self.design, self.placement
        self.axes.add_collection(drawing.soft_bodies(design, placement, design.netlist.soft))
        for body in drawing.hard_bodies(design, placement, drawing.split_hard(design, placement)[0]):
            self.axes.add_collection(body)
        self.line.set_text(ending)
        self.line.set_animated(False)
        self.canvas.draw()
        return self._image()

    def _image(self) -> Image.Image:
        return Image.fromarray(np.array(self.canvas.buffer_rgba())).convert("RGB")


def _gif(images: tuple[Image.Image, ...], milliseconds: tuple[int, ...]) -> bytes:
    """The frames as a GIF that repeats for ever, all with the same palette."""
    # The last frame has the soft macros' colours, the middle one the newest macro's.
    width, height = images[0].size
    sample = Image.new("RGB", (width, 2 * height))
    sample.paste(images[len(images) // 2], (0, 0))
    sample.paste(images[-1], (0, height))
    palette = _with_exact_colours(sample.quantize(COLOURS, dither=Image.Dither.NONE))
    frames = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    buffer = io.BytesIO()
    frames[0].save(
        buffer,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=list(milliseconds),
        loop=0,
        optimize=False,
    )
    return buffer.getvalue()


def _with_exact_colours(image: Image.Image) -> Image.Image:
    """`image` with those of its palette's colours that are almost one of the large areas' made exactly that.

    Quantizing averages neighbours, and its look-up is approximate: white would come out as a light grey.
    """
    palette = np.array(image.getpalette(), dtype=np.int64).reshape(-1, 3)
    exact = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in EXACT_COLOURS])
    distance = np.abs(palette[:, None] - exact[None]).max(axis=-1)
    palette = np.where((distance.min(axis=1) <= 6)[:, None], exact[distance.argmin(axis=1)], palette)
    image.putpalette(palette.astype(np.uint8).tobytes())
    return image
