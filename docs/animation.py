"""An animation of one episode as a GIF: the hard macros appear one at a time, the soft macros at the end.

Placements that a search made of it can follow.

Frames are drawn on top of one another on the Agg canvas: each adds one macro to the frame before. So a design of a
hundred macros takes about a second.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from PIL import Image

from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights, compute_costs
from placement.netlist.design import Design, Placement
from placement.netlist.files import write_whole
from placement.report import drawing, plots, style

NEWEST = drawing.Look(style.VERMILION, "#6B2F00")
"""The macro that a frame places."""
MOST_STEPS = 150  # frames that show macros being placed; larger designs place several macros per frame

_WIDTH, _DOTS_PER_INCH = 6.4, 100  # inches, dots
_SECONDS = 8.0  # approximate duration of all placing steps
_SHORTEST_FRAME, _LONGEST_FRAME = 40, 500  # ms
_HOLD_HARD, _HOLD_POLICY, _HOLD_IMPROVED, _HOLD_END = 800, 1800, 300, 3500  # ms
_COLOURS = 64
_BAND = 8  # pixels: height of an exact colour's band in the sample that the palette is made of
_EXACT_COLOURS = (
    style.PAPER,
    style.CANVAS,
    drawing.MOVABLE.face,
    NEWEST.face,
    drawing.FIXED.face,
    drawing.PORT_FACE,
)


def save_episode(
    path: str | os.PathLike[str],
    design: Design,
    placement: Placement,
    *,
    weights: CostWeights = DEFAULT_WEIGHTS,
    title: str = "",
    improved: Sequence[tuple[str, Placement]] = (),
    last_first: bool = False,
) -> Path:
    """Writes the animation of a whole placement to a `.gif`, atomically; returns the path.

    The cost under `weights` is shown at the end; an empty title is replaced by the design's name. The placements
    `improved` follow, each with a few words on what it is. `last_first` begins with the last frame, for readers that
    show the first one alone. Raises DesignError where a node has no position.
    """
    followed = [(_costs_line(design, placement, weights), placement)]
    followed += [(f"{words}: {_costs_line(design, later, weights)}", later) for words, later in improved]
    frames = list(_Episode(design, placement, title or design.name).frames(followed))
    if last_first:
        frames = [frames[-1], *frames[:-1]]
    images, milliseconds = zip(*frames, strict=True)
    write_whole(path, _gif(images, milliseconds))
    return Path(path)


def _costs_line(design: Design, placement: Placement, weights: CostWeights) -> str:
    costs = compute_costs(design, placement, weights=weights)
    return (
        f"{weights.name} cost {costs.total:.4f}: wirelength {costs.wirelength_cost:.4f}, "
        f"density {costs.density_cost:.4f}, congestion {costs.congestion_cost:.4f}"
    )


class _Episode:
    """The canvas that an episode is drawn on."""

    def __init__(self, design: Design, placement: Placement, title: str) -> None:
        self.design, self.placement = design, placement
        self.figure, self.axes = plots.canvas_figure(design, placement, width=_WIDTH)
        self.figure.set_dpi(_DOTS_PER_INCH)
        self.canvas = FigureCanvasAgg(self.figure)
        style.head(self.figure, title)
        self.line = style.head_line(self.figure, "")
        self.line.set_animated(True)
        self.movable, fixed = drawing.split_hard(design, placement)
        plots.placement_legend(self.figure, design, placement, marks=False)
        ports = design.netlist.ports
        drawing.draw_ports(self.axes, placement.x[ports], placement.y[ports])
        for body in drawing.hard_bodies(design, placement, fixed, drawing.FIXED):
            self.axes.add_collection(body)
        self.whole: list[PolyCollection] = []

    def frames(self, followed: Sequence[tuple[str, Placement]]) -> Iterator[tuple[Image.Image, int]]:
        """The frames, each with its duration in ms: the episode's, and whole placements with a line of text each."""
        self.canvas.draw()
        self.clean = self.canvas.copy_from_bbox(self.figure.bbox)
        order = self.design.placing_order
        steps = np.array_split(order, min(len(order), MOST_STEPS)) if len(order) else []
        shown = int(np.clip(1000 * _SECONDS / max(len(steps), 1), _SHORTEST_FRAME, _LONGEST_FRAME))
        yield self._frame(f"0 of {len(order)} hard macros placed"), max(shown, _HOLD_HARD // 2)
        placed = 0
        for number, nodes in enumerate(steps, start=1):
            placed += len(nodes)
            newest = self._bodies(nodes, NEWEST)
            text = f"{placed} of {len(order)} hard macros placed"
            yield self._frame(text, newest), shown if number < len(steps) else _HOLD_HARD
            self.canvas.restore_region(self.clean)
            for body in self._bodies(nodes, drawing.MOVABLE):
                self.axes.draw_artist(body)
            self.clean = self.canvas.copy_from_bbox(self.figure.bbox)
        for number, (text, placement) in enumerate(followed, start=1):
            shown = _HOLD_END if number == len(followed) else _HOLD_POLICY if number == 1 else _HOLD_IMPROVED
            yield self._finished(text, placement), shown

    def _bodies(self, nodes: np.ndarray, look: drawing.Look) -> tuple[PolyCollection, ...]:
        """The bodies of hard macros, which are drawn by themselves and not with the rest of the figure."""
        bodies = drawing.hard_bodies(self.design, self.placement, nodes, look)
        for body in bodies:
            self.axes.add_collection(body)
            body.set_animated(True)
        return bodies

    def _frame(self, text: str, artists: tuple[Artist, ...] = ()) -> Image.Image:
        """What is drawn already, with `artists` and a line of text in this frame only."""
        self.canvas.restore_region(self.clean)
        self.line.set_text(text)
        for artist in (*artists, self.line):
            self.axes.draw_artist(artist)
        return self._image()

    def _finished(self, text: str, placement: Placement) -> Image.Image:
        """A whole placement, drawn anew with the soft macros."""
        for body in self.whole:
            body.remove()
        soft = drawing.soft_bodies(self.design, placement, self.design.netlist.soft)
        self.whole = [soft, *drawing.hard_bodies(self.design, placement, self.movable)]
        for body in self.whole:
            self.axes.add_collection(body)
        self.line.set_text(text)
        self.line.set_animated(False)
        self.canvas.draw()
        return self._image()

    def _image(self) -> Image.Image:
        return Image.fromarray(np.array(self.canvas.buffer_rgba())).convert("RGB")


def _gif(images: Sequence[Image.Image], milliseconds: Sequence[int]) -> bytes:
    """The frames as an endless GIF with one palette for all."""
    # The last frame has the soft macros' colours, the middle one the newest macro's.
    width, height = images[0].size
    sample = Image.new("RGB", (width, 2 * height + _BAND * len(_EXACT_COLOURS)))
    sample.paste(images[len(images) // 2], (0, 0))
    sample.paste(images[-1], (0, height))
    for number, colour in enumerate(_EXACT_COLOURS):  # small areas in them would get another's colour
        top = 2 * height + _BAND * number
        sample.paste(colour, (0, top, width, top + _BAND))
    palette = _with_exact_colours(sample.quantize(_COLOURS, dither=Image.Dither.NONE))
    first, *others = (image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images)
    buffer = io.BytesIO()
    look = {"duration": list(milliseconds), "loop": 0, "optimize": False}
    first.save(buffer, format="GIF", save_all=True, append_images=others, **look)
    return buffer.getvalue()


def _with_exact_colours(image: Image.Image) -> Image.Image:
    """`image` with palette colours that nearly match one of the large areas' colours set to exactly that colour.

    Quantizing averages similar colours and its look-up is approximate: white would become a light grey.
    """
    palette = np.array(image.getpalette(), dtype=np.int64).reshape(-1, 3)
    exact = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in _EXACT_COLOURS])
    distance = np.abs(palette[:, None] - exact[None]).max(axis=-1)
    palette = np.where((distance.min(axis=1) <= 6)[:, None], exact[distance.argmin(axis=1)], palette)
    image.putpalette(palette.astype(np.uint8).tobytes())
    return image
