"""Pictures of the window (`macro-placement view`) in a browser, for docs/figures.py."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from placement.netlist.design import Design
from placement.netlist.formats.plc import read_placement

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60
"""Until the page must be there."""
COLOURS = 128
_CENTRE = """node => {
    const { model, viewport, canvases } = viewer, edge = canvases[0].getBoundingClientRect();
    const [px, py] = viewport.toScreen(model.placement.x[node], model.placement.y[node]);
    return [px + edge.left, py + edge.top];
}"""


def browser() -> str | None:
    """The path of Chromium; None where it is not installed."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def drag(page: Any, node: int) -> None:
    """A macro that is being dragged."""
    x, y = page.evaluate(_CENTRE, node)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 90, y - 50, steps=12)


def choose(page: Any, node: int) -> None:
    """A macro's flylines."""
    page.mouse.click(*page.evaluate(_CENTRE, node))


def compare(page: Any, node: int) -> None:
    """A second placement, and lines to where the hard macros are there."""
    page.uncheck("label.layer:has-text('soft macros') input")
    page.select_option("#compare-with", "1")


PICTURES: dict[str, Callable[[Any, int], None]] = {
    "view.png": drag,
    "view_flylines.png": choose,
    "view_compare.png": compare,
}


def draw(path: Path, design: Design, placements: Sequence[str]) -> None:
    """Writes the picture that `path` names, of the window on placements (`.plc`) of a design that commands know.

    Raises:
        RuntimeError: the window did not open.
    """
    from playwright.sync_api import sync_playwright

    nets = np.zeros(design.netlist.num_nodes)
    np.add.at(nets, design.netlist.pin_node, 1)
    centre = np.hypot(*(at - side / 2 for at, side in _places(design, placements[0])))
    hard = design.netlist.hard
    node = int(hard[np.argmax(nets[hard] / nets[hard].max() - centre[hard] / centre[hard].max())])
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        words = [sys.executable, "-m", "placement", "view", design.name, *placements, "--browser", "false"]
        server = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            page = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox"]).new_page(
                viewport={"width": 1280, "height": 800}
            )
            page.set_default_timeout(1000 * SECONDS)
            page.goto(_address(server))
            page.wait_for_selector("#cost-total td.now")
            page.wait_for_timeout(1500)  # until the canvas is painted
            PICTURES[path.name](page, node)
            page.wait_for_timeout(1500)
            with Image.open(io.BytesIO(page.screenshot())) as shot:
                shot.convert("RGB").quantize(COLOURS).save(path, optimize=True)
        finally:
            server.terminate()
            server.wait(SECONDS)


def _places(design: Design, file: str) -> tuple[tuple[np.ndarray, float], tuple[np.ndarray, float]]:
    _, placement = read_placement(file, design.netlist, located=design.initial)
    return (placement.x, design.canvas.width), (placement.y, design.canvas.height)


def _address(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        if found := re.search(r"http://\S+", line):
            return found[0]
    raise RuntimeError("the window did not open")
