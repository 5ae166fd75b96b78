from __future__ import annotations

import dataclasses
import io
import re
from importlib.resources import files

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from placement.engine.costs import DEFAULT_WEIGHTS, PROXY_WEIGHTS, CostWeights, cost_maps
from placement.flat.timing import GroupSlack, TimingEstimate, TimingPath
from placement.netlist.design import Design, Orientation
from placement.report import drawing, plots, style
from tests.support.designs import four_macros, random_design


def _pixels(figure: Figure) -> np.ndarray:
    """Returns the picture from its top, uint8 [height, width, 3]."""
    return np.array(Image.open(io.BytesIO(style.png_bytes(figure))).convert("RGB"))


def _colour_at(figure: Figure, pixels: np.ndarray, x: float, y: float) -> np.ndarray:
    """Returns the pixel at the position (x, y) µm of the figure's first axes."""
    column, row = figure.axes[0].transData.transform((x, y))
    return pixels[round(pixels.shape[0] - row), round(column)]


def _is(pixel: np.ndarray, colour: str) -> bool:
    return bool(np.abs(pixel / 255 - np.array(to_rgb(colour))).max() < 0.02)


def test_macros_are_drawn_where_they_stand():
    figure = plots.plot_placement(four_macros())
    pixels = _pixels(figure)
    assert _is(_colour_at(figure, pixels, 15, 15), drawing.MOVABLE.face)  # `large`
    assert _is(_colour_at(figure, pixels, 24, 15), drawing.MOVABLE.face)  # it is 20 µm wide
    assert _is(_colour_at(figure, pixels, 15, 21), style.CANVAS)  # and 10 µm high
    assert _is(_colour_at(figure, pixels, 45, 5), drawing.FIXED.face)  # `kept`
    assert _is(_colour_at(figure, pixels, 12, 35), drawing.MOVABLE.face)  # `small`, rotated to E: 8 µm wide
    assert _is(_colour_at(figure, pixels, 0, 25), drawing.PORT_FACE)
    soft = _colour_at(figure, pixels, 27, 25)
    assert soft[1] > max(soft[0], soft[2]) + 5, "the soft macro is green over the canvas"


def test_orientation_marks_turn_with_the_macro():
    design = four_macros()
    nodes = np.array([4])  # `small`, 6 × 8 µm at (15, 35)
    corners = {}
    for orientation in Orientation:
        turned = np.where(np.arange(7) == 4, orientation, design.initial.orientation)
        placement = dataclasses.replace(design.initial, orientation=turned)
        corners[orientation.name] = tuple(drawing.orientation_marks(design, placement, nodes)[0, 0])
        outline = drawing.outlines(design.netlist, placement, nodes)[0]
        sides = np.ptp(outline, axis=0)
        assert tuple(sides) == ((8, 6) if orientation.swaps_sides else (6, 8))
        assert corners[orientation.name] in {tuple(corner) for corner in outline}
    assert corners["N"] == (12, 31)
    assert corners["FN"] == (18, 31)
    assert corners["S"] == (18, 39)
    assert corners["FS"] == (12, 39)
    # Rotated clockwise by a right angle (E), the lower left corner becomes the upper left one.
    assert corners["E"] == (11, 38)
    assert corners["W"] == (19, 32)


@pytest.mark.parametrize("weights", [PROXY_WEIGHTS, DEFAULT_WEIGHTS])
def test_maps_show_the_values_of_the_cost_on_a_fixed_scale(weights: CostWeights):
    design = four_macros()
    figure = plots.plot_maps(design, weights=weights)
    pixels = _pixels(figure)
    density = cost_maps(design, weights=weights).density
    bins = density.shape[0] // design.canvas.rows
    for row, column in ((1, 1), (4, 4), (0, 4)):
        shown = _colour_at(figure, pixels, column * 10 + 2.3, row * 10 + 2.3)
        value = density[row * bins + int(0.23 * bins), column * bins + int(0.23 * bins)]
        expected = np.array(plots.map_colours()(value / plots.MAP_LIMIT)[:3])
        assert np.abs(shown / 255 - expected).max() < 0.02, (row, column)
    assert len(figure.axes) == 6, "three maps with a colour bar each"
    assert {image.get_clim() for axes in figure.axes[::2] for image in axes.images} == {(0, plots.MAP_LIMIT)}
    assert figure.texts[1].get_text().startswith(f"{weights.name} cost "), "the maps' own cost is named"


def test_the_colours_of_maps_change_from_blue_to_red_where_overflow_begins():
    shades = plots.map_colours()(np.array([0.0, 0.5, 0.99, 1.0, 1.01, 1.2, 1.5, 9.0]) / plots.MAP_LIMIT)
    assert (shades[:, 2] > shades[:, 0]).tolist() == [True] * 4 + [False] * 4


def test_the_window_and_the_plots_have_the_same_colours():
    sheet = (files("placement.report.view") / "static/style.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--([\w-]+): (#\w{6})", sheet.split("}")[0]))
    for name, look in (("hard", drawing.MOVABLE), ("fixed", drawing.FIXED), ("soft", drawing.SOFT)):
        assert (light[name], light[f"{name}-edge"]) == (look.face, look.edge)
    assert light["port"] == drawing.PORT_FACE


def test_ports_far_outside_are_not_drawn_over_the_labels():
    design = four_macros()
    port = design.netlist.ports[:1]
    placement = design.initial.moved(port, np.array([25.0]), np.array([-40.0]))
    axes = plots.plot_placement(design, placement).axes[0]
    (ports,) = (line for line in axes.get_lines() if line.get_marker() == "s")
    assert ports.get_clip_on() and axes.get_ylim()[0] > -40


def test_macros_outside_are_shown():
    design = four_macros()
    placement = design.initial.moved(np.array([2]), np.array([55.0]), np.array([25.0]))
    figure = plots.plot_placement(design, placement)
    assert figure.axes[0].get_xlim()[1] >= 60
    assert _is(_colour_at(figure, _pixels(figure), 58, 25), drawing.MOVABLE.face)
    assert any("outside" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize("draw", [plots.plot_placement, plots.plot_maps])
def test_any_design_can_be_drawn(draw):
    for seed in (0, 3):
        pixels = _pixels(draw(random_design(seed)))
        assert pixels.std() > 10


def test_a_design_of_hard_macros_only_can_be_drawn():
    design = four_macros()
    kinds = np.where(design.netlist.kind == 2, 1, design.netlist.kind)  # no ports
    bare = Design("bare", dataclasses.replace(design.netlist, kind=kinds), design.canvas, design.initial)
    assert _pixels(plots.plot_placement(bare)).std() > 10


def test_drawing_changes_no_global_settings(tmp_path):
    before = dict(matplotlib.rcParams)
    path = style.save_figure(plots.plot_placement(four_macros()), tmp_path / "placement.png")
    assert dict(matplotlib.rcParams) == before
    assert path.read_bytes() == style.png_bytes(plots.plot_placement(four_macros())), "the same bytes each time"
    assert [file.name for file in tmp_path.iterdir()] == ["placement.png"]


@pytest.mark.parametrize("title", ["short", "a placement of a design whose name goes on and on " * 3])
def test_a_long_title_ends_within_the_figure(title):
    figure = plots.plot_placement(four_macros(), title=title)
    box = figure.texts[0].get_window_extent()
    assert box.x1 <= figure.get_size_inches()[0] * figure.dpi
    assert (figure.texts[0].get_fontsize() < style.TITLE_SIZE) == (title != "short")


def test_paths_have_the_colour_of_their_slack():
    design = four_macros()
    path = TimingPath(-90.0, "registers", "a", "b", "clock rising", (), ("a", "b"), (0.0, 1.0), (5, 35), (45, 45), 1.0)
    mild = dataclasses.replace(path, slack=-10.0, y=(50, 50))
    none = np.zeros(0)
    timing = TimingEstimate(GroupSlack(2, 2, -90.0, -100.0), {}, (path, mild), none, none, none, 0.0, ())
    figure = plots.plot_paths(design, design.initial, timing)
    (lines,) = [one for one in figure.axes[0].collections if isinstance(one, LineCollection)]
    assert [segment.tolist() for segment in lines.get_segments()] == [[[5, 50], [35, 50]], [[5, 45], [35, 45]]]
    assert lines.get_array().tolist() == [-10.0, -90.0]
    worst, other = lines.to_rgba([-90.0, -10.0])
    assert worst[0] < other[0] and worst[1] < other[1]  # dark red, and orange
