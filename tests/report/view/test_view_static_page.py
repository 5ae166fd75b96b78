"""The window as one file."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from placement.engine.costs import compute_costs
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load
from placement.report.view.page import framed, static_page
from placement.report.view.session import Session
from tests.support.designs import four_macros

MOST_BYTES = 3_000_000


def test_it_holds_its_data_and_program_and_asks_for_nothing() -> None:
    design = four_macros()
    page = static_page(design, [Session(design, design.initial, name="</script><b>.plc")], title="<mine>")
    assert "<title>&lt;mine&gt;</title>" in page
    data = json.loads(re.search(r'id="embedded">(.*?)</script>', page, re.DOTALL)[1])
    assert data["sessions"][0]["state"]["name"] == "</script><b>.plc"
    assert data["sessions"][0]["state"]["costs"] == compute_costs(design)._asdict()
    modules = json.loads(re.search(r'type="importmap">(.*?)</script>', page)[1])["imports"]
    for text in (base64.b64decode(address.split(",", 1)[1]).decode() for address in modules.values()):
        assert 'from "./' not in text
        for name in re.findall(r'from "([^"]+)"', text):
            assert name in modules
    assert not re.search(r'(src|href)="(?!data:)', page)


def test_ariane_is_small_enough_to_send(ariane_folder: Path) -> None:
    design = load(ariane_folder)
    legal = read_placement(ariane_folder / "legalized.plc", design.netlist)[1]
    sessions = [Session(design, one, name=name) for one, name in ((legal, "legalized"), (design.initial, "initial"))]
    assert len(static_page(design, sessions).encode()) < MOST_BYTES


@pytest.mark.browser
def test_it_opens_from_disk_in_a_frame(browser: Any, tmp_path: Path) -> None:
    design = load("clustered40")
    page = static_page(design, [Session(design, design.initial, name=name) for name in ("a.plc", "b.plc")])
    (tmp_path / "report.html").write_text(f"<!DOCTYPE html><meta charset=utf-8>{framed(page, 'x')}", encoding="utf-8")
    seen = browser.new_page(viewport={"width": 1280, "height": 800})
    requested: list[str] = []
    seen.on("request", lambda request: requested.append(request.url))
    seen.goto(f"file://{tmp_path}/report.html")
    frame = seen.frame_locator("iframe")
    frame.locator("#cost-total td.now").wait_for(timeout=30_000)
    assert frame.locator("#cost-total td.now").inner_text() == f"{compute_costs(design).total:.6f}"
    assert frame.locator("button:has-text('Save')").count() == 0
    frame.locator("#map").select_option("density")
    assert all(url.startswith(("file:", "data:", "about:")) for url in requested)
    seen.close()
