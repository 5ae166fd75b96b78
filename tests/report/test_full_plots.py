"""Plots of full evaluations: their axes and data, not their pixels."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection

from placement.netlist.load import load
from placement.report import style
from placement.report.placement_metrics import FullMetrics
from placement.report.plots import DrawnCells, FullPanel, plot_cells, plot_full_side_by_side

DESIGN = load("clustered40")
FULL = FullMetrics(
    flat_wirelength=2.6541e6,
    density_overflow=0.07,
    routed_wirelength=3.1e6,
    overflow=0.0031,
    hot_spots=4,
    flat_seconds=50.0,
)


def panel(name: str, seed: int, full: FullMetrics = FULL) -> FullPanel:
    draw = np.random.default_rng(seed)
    cells = DrawnCells(
        *(draw.random(30) * side for side in (DESIGN.canvas.width, DESIGN.canvas.height)), np.arange(30) - 1
    )
    return FullPanel(name, DESIGN.initial, full, cells, draw.random((4, 3)), draw.random((4, 3)))


def shown(axes: Axes) -> np.ndarray:
    """Returns the centres of the drawn cells, float [M, 2]."""
    dots = [one for one in axes.collections if isinstance(one, PathCollection)]
    assert len(dots) == 1
    return np.asarray(dots[0].get_offsets())


@pytest.mark.parametrize("count", [1, 3, 8])
def test_every_placement_has_its_cells_and_its_routes(count: int) -> None:
    panels = [panel(f"p{number}", number) for number in range(count)]
    figure = plot_full_side_by_side(DESIGN, panels, title="compared")
    *pairs, bar = figure.axes
    assert len(pairs) == 2 * count
    assert bar.get_xlabel() == "demand / capacity; overflow above 1"
    for one, above, below in zip(panels, pairs[::2], pairs[1::2], strict=True):
        assert np.array_equal(shown(above), np.stack([one.cells.x, one.cells.y], axis=1))
        (image,) = below.images
        assert np.array_equal(image.get_array(), np.maximum(one.horizontal, one.vertical).T)
        assert image.get_clim() == (0.0, 1.5)
        macros = len(DESIGN.netlist.hard)
        assert len(above.patches) == 2, "the canvas's area and edge"
        assert sum(len(bodies.get_paths()) for bodies in above.collections[1:]) == macros
        assert {len(edges.get_paths()) for edges in below.collections} == {macros}
        assert above.get_title("left").splitlines() == [
            one.name,
            "routed 3.100 m, overflow 0.31%",
            "flat wirelength 2.654 m",
        ]
        upper, lower = above.get_position(), below.get_position()
        assert upper.y0 > lower.y1 and upper.x0 == pytest.approx(lower.x0)
    limits = {(axes.get_xlim(), axes.get_ylim()) for axes in pairs}
    assert len(limits) == 1, "the same part of the plane"
    assert len({tuple(np.round(axes.get_position().size, 9)) for axes in pairs}) == 1, "of the same size"


def test_no_texts_or_pictures_lie_upon_each_other() -> None:
    panels = [panel("placement_" * 6, number) for number in range(8)]
    figure = plot_full_side_by_side(DESIGN, panels, title="compared")
    figure.draw_without_rendering()
    titles = [axes.get_tightbbox() for axes in figure.axes] + [text.get_window_extent() for text in figure.texts]
    for number, box in enumerate(titles):
        assert box is not None
        assert figure.bbox.contains(box.x0, box.y0) and figure.bbox.contains(box.x1, box.y1)
        assert box.count_overlaps(titles[:number]) == 0


def test_a_placement_outside_the_canvas_is_on_all_pictures_to_scale() -> None:
    macro = DESIGN.placing_order[:1]
    width = DESIGN.canvas.width
    outside = DESIGN.initial.moved(macro, np.array([1.1 * width]), DESIGN.initial.y[macro])
    figure = plot_full_side_by_side(DESIGN, [panel("in", 0), panel("out", 1)._replace(placement=outside)])
    assert {axes.get_xlim()[1] > 1.1 * width for axes in figure.axes[:-1]} == {True}


def test_short_wires_are_reported_in_mm_and_what_did_not_converge_is_marked() -> None:
    full = FULL._replace(flat_wirelength=1460.7, routed_wirelength=1513.4, overflow=0.0, flat_converged=False)
    figure = plot_full_side_by_side(DESIGN, [panel("small", 0, full)])
    lines = figure.axes[0].get_title("left").splitlines()
    assert lines == [
        "small",
        "routed 1.51 mm, overflow 0.00%",
        "flat wirelength 1.46 mm; not converged",
    ]
    assert style.png_bytes(figure).startswith(b"\x89PNG")


def test_cells_without_a_cluster_are_grey() -> None:
    cells = DrawnCells(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([-1, 0]))
    figure = plot_cells(DESIGN, DESIGN.initial, cells)
    (dots,) = (one for one in figure.axes[0].collections if isinstance(one, PathCollection))
    grey, coloured = dots.get_facecolors()[:, :3]
    assert np.ptp(grey) == 0 and np.ptp(coloured) > 0
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        f"hard macros ({len(DESIGN.netlist.hard)})",
        "standard cells, a colour per cluster",
        "cells without a cluster",
    ]
