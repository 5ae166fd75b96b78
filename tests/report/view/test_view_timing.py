"""The timing estimate in the window: figures, histogram, paths and macros' slack, also while a macro is dragged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placement.flat.placement_timer import PlacementTimer
from placement.netlist.load import load
from placement.report.view.requests import answer
from placement.report.view.session import Session
from placement.report.view.window import Services, Window
from tests.cli.test_timing_commands import imported
from tests.report.view.conftest import Server
from tests.report.view.test_view_browser import Person, person
from tests.support.small_timing import SDC

__all__ = ["person"]


@pytest.fixture
def chip(tmp_path: Path) -> str:
    """Returns a design with failing paths."""
    (tmp_path / "fast.sdc").write_text(SDC.replace("period 200", "period 60"))
    words = ("--liberty", str(tmp_path / "chip.lib"), "--sdc", str(tmp_path / "fast.sdc"))
    assert imported(tmp_path, *words) == 0
    return str(tmp_path / "chip")


def request(window: Window, what: str, **values: Any) -> dict[str, Any]:
    found: dict[str, Any] = answer(window, "page", {"id": 1, "do": what, **values})["ok"]
    return found


def test_the_estimate_and_its_update_while_a_macro_is_dragged(chip: str, tmp_path: Path) -> None:
    design = load(chip)
    services = Services(read_timer=lambda: PlacementTimer(chip, design))
    window = Window(design, [Session(design, design.initial, name="initial")], folder=tmp_path, services=services)
    assert window.values()["has_timing"]
    ram = int(design.netlist.hard[0])
    expected = PlacementTimer(chip, design).evaluate(design.initial, paths=6)
    found = request(window, "timing")
    assert (found["worst"], found["tns"], found["endpoints"]) == (expected.wns, expected.tns, 6)
    assert (sum(found["histogram"]["counts"]), found["failing"]) == (6, expected.total.failing)
    assert [path["slack"] for path in found["paths"]] == [path.slack for path in expected.paths]
    assert found["paths"][0]["macros"] == [ram] and found["macros"] == {str(ram): pytest.approx(expected.wns, abs=1e-3)}
    place = {"nodes": [ram], "x": [30.0], "y": [20.0]}
    dragged = request(window, "drag", **place, timing=True)["timing"]
    moved = design.initial.moved(np.array([ram]), np.array([30.0]), np.array([20.0]))
    after = PlacementTimer(chip, design).evaluate(moved, paths=6)
    assert (dragged["worst"], dragged["tns"]) == (after.wns, after.tns) and after.wns != expected.wns
    assert "timing" not in request(window, "drag", **place)
    request(window, "let_go")
    assert request(window, "timing") == found


def test_a_macro_is_dragged_where_no_clock_is_defined(tmp_path: Path) -> None:
    assert imported(tmp_path, "--liberty", str(tmp_path / "chip.lib")) == 0
    design = load(str(tmp_path / "chip"))
    services = Services(read_timer=lambda: PlacementTimer(str(tmp_path / "chip"), design))
    window = Window(design, [Session(design, design.initial, name="initial")], folder=tmp_path, services=services)
    assert "no clock" in answer(window, "page", {"id": 1, "do": "timing"})["error"]
    ram = int(design.netlist.hard[0])
    dragged = request(window, "drag", nodes=[ram], x=[30.0], y=[20.0], timing=True)
    assert "costs" in dragged and "timing" not in dragged and "no clock" in dragged["timing_error"]


def test_a_design_without_timing_has_none(tmp_path: Path) -> None:
    design = load("clustered40")
    window = Window(design, [Session(design, design.initial, name="initial")], folder=tmp_path)
    assert not window.values()["has_timing"]
    assert "has no timing" in answer(window, "page", {"id": 1, "do": "timing"})["error"]


@pytest.mark.browser
def test_slack_is_updated_while_dragging(
    serve: Callable[..., Server], person: Callable[..., Person], chip: str
) -> None:
    one = person(serve(f"design={chip}"))
    ram = int(load(chip).netlist.hard[0])
    page = one.page
    assert page.query_selector("label.layer:has-text('worst paths')") is None
    page.check("#timing-on")
    page.wait_for_selector("#timing svg.histogram rect.fails")
    page.wait_for_selector("label.layer:has-text('worst paths')")
    worst = page.inner_text("#timing-worst td.now")
    assert worst.startswith("-") and page.inner_text("#timing-failing td.now") != "0"
    page.click("#timing button:has-text('ram/CK')")
    assert page.evaluate("[...viewer.model.chosen]") == [ram]
    one.drag(ram, 60, -40, drop=False)
    one.until(f"document.querySelector('#timing-worst td.now').textContent !== '{worst}'")
    while_dragged = page.inner_text("#timing-worst td.now")
    page.mouse.up()
    one.steps(1)
    one.until(f"document.querySelector('#timing-worst td.now').textContent === '{while_dragged}'")
    page.keyboard.press("Control+z")
    one.until(f"document.querySelector('#timing-worst td.now').textContent === '{worst}'")
    page.uncheck("#timing-on")
    one.until("document.querySelector('#timing-found').children.length === 0 && viewer.model.timing === null")


@pytest.mark.browser
def test_a_timing_failure_shows_while_the_macro_is_dragged(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    assert imported(tmp_path, "--liberty", str(tmp_path / "chip.lib")) == 0
    one = person(serve(f"design={tmp_path / 'chip'}"))
    ram = int(load(str(tmp_path / "chip")).netlist.hard[0])
    one.page.evaluate("viewer.model.timed = true")
    one.drag(ram, 60, -40, drop=False)
    one.page.wait_for_selector("#timing-found .bad:has-text('no clock')")
    assert one.page.evaluate("viewer.model.drag.moved") and not one.page.is_checked("#timing-on")
    one.page.mouse.up()
    one.steps(1)
