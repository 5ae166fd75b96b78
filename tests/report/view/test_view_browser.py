"""A user of the window: opens, drags, undoes, legalises, saves, reloads, compares, in a real browser."""

from __future__ import annotations

import dataclasses
import itertools
import re
import shutil
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from benchmarks.made_chip import Options, write_chip
from placement.annealing import search as search_module
from placement.annealing.search import Watch, search
from placement.cli.main import main
from placement.engine.costs import compute_costs, legality
from placement.netlist.constraints_file import read_constraints
from placement.netlist.design import Design, Placement
from placement.netlist.files import write_whole
from placement.netlist.flat_design import read_flat, write_flat
from placement.netlist.floorplan import Tracks
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import load, save
from placement.report.run_watch import next_best_path
from tests.report.view.conftest import Server

pytest.importorskip("starlette", reason="the window needs Starlette: the extra `view`")
pytestmark = pytest.mark.browser
DESIGN = "clustered40"
SECONDS = 30_000  # time limit for every action on the page, ms


class Person:
    """A user who looks at a page and operates it."""

    def __init__(self, browser: Any, address: str, *, wait: bool = True) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 800})
        self.context.set_default_timeout(SECONDS)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self.requested)
        self.address = address
        self.page.goto(address)
        if wait:
            self.ready()

    def requested(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.errors.append(f"asks {request.url}")

    def ready(self) -> None:
        self.until("Boolean(globalThis.viewer) && performance.getEntriesByName('painted').length > 0")

    def until(self, expression: str) -> None:
        """Waits until a JavaScript expression is true. Playwright's own wait needs `eval`, which the page forbids."""
        deadline = time.monotonic() + SECONDS / 1000
        while not self.page.evaluate(expression):
            assert time.monotonic() < deadline, f"{expression} did not become true: {self.page.inner_text('#status')}"
            self.page.wait_for_timeout(30)

    def centre(self, node: int) -> tuple[float, float]:
        """Returns the position of a node on the page, in pixels."""
        x, y = self.page.evaluate(
            """node => {
                const { model, viewport, canvases } = viewer, edge = canvases[0].getBoundingClientRect();
                const [px, py] = viewport.toScreen(model.placement.x[node], model.placement.y[node]);
                return [px + edge.left, py + edge.top];
            }""",
            node,
        )
        return x, y

    def drag(self, node: int, dx: float, dy: float, *, drop: bool = True) -> None:
        px, py = self.centre(node)
        mouse = self.page.mouse
        mouse.move(px, py)
        mouse.down()
        mouse.move(px + dx, py + dy, steps=12)
        if drop:
            mouse.up()

    def steps(self, count: int) -> None:
        """Waits until this many steps are listed."""
        self.until(f"viewer.model.session.state.steps.length === {count}")

    def shown(self, name: str) -> str:
        return str(self.page.inner_text(f"#cost-{name} td.now"))

    def save(self, name: str) -> None:
        self.page.keyboard.press("Control+s")
        self.page.fill("dialog input", name)
        self.page.click("dialog button.main")


@pytest.fixture
def person(browser: Any) -> Iterator[Callable[..., Person]]:
    there: list[Person] = []

    def come(server: Server, **options: Any) -> Person:
        there.append(Person(browser, server.address, **options))
        return there[-1]

    yield come
    for one in there:
        one.context.close()
        assert one.errors == []


def saved(path: Path, design: Design) -> Placement:
    return read_placement(path, design.netlist)[1]


def hard(design: Design, at: int = 0) -> int:
    return int(design.placing_order[at])


def test_drag_cost_undo_save_reload(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    design = load(DESIGN)
    one = person(serve(DESIGN))
    before = one.shown("total")
    assert before == f"{compute_costs(design).total:.6f}"
    one.drag(hard(design), 60, 40)
    one.steps(1)
    assert one.shown("total") != before
    one.save("mine.plc")
    one.page.wait_for_selector("#message:has-text('saved:')")
    placement = saved(tmp_path / "mine.plc", design)
    costs = compute_costs(design, placement)
    for name in ("wirelength_cost", "density_cost", "congestion_cost", "total"):
        assert one.shown(name) == f"{getattr(costs, name):.6f}"
    assert one.shown("wirelength") == f"{costs.wirelength:,.1f}"
    one.page.reload()
    one.ready()
    one.steps(1)
    assert one.shown("total") == f"{costs.total:.6f}"
    one.page.keyboard.press("Control+z")
    one.steps(0)
    assert one.shown("total") == before
    one.page.keyboard.press("Control+Shift+z")
    one.steps(1)
    one.drag(hard(design), 30, 10)
    one.steps(2)
    one.save("mine.plc")
    one.page.wait_for_selector("dialog:has-text('already exists')")
    one.page.click("dialog button:has-text('Cancel')")
    assert saved(tmp_path / "mine.plc", design) == placement


def test_an_illegal_position_shows_the_reason_and_legalise_repairs_it(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    design = load(DESIGN)
    one = person(serve(DESIGN))
    first, second = hard(design), hard(design, 1)
    (px, py), (qx, qy) = one.centre(first), one.centre(second)
    one.page.keyboard.down("Control")  # without snapping
    one.drag(first, qx - px, qy - py, drop=False)
    one.page.wait_for_selector(f"#chosen .bad:has-text('overlaps {design.netlist.names[second]}')")
    one.page.mouse.up()
    one.page.keyboard.up("Control")
    one.steps(1)
    one.page.click("#do-legalise")
    one.steps(2)
    one.page.wait_for_selector("#faults:has-text('legal: no macro breaks a rule')")
    one.page.click("#keep")
    one.save("legal.plc")
    one.page.wait_for_selector("#message:has-text('saved:')")
    assert legality(design, saved(tmp_path / "legal.plc", design)) == (0, 0)
    one.page.evaluate("document.querySelectorAll('#doing details').forEach(one => { one.open = true; })")
    assert f"design={DESIGN} placement={tmp_path / 'legal.plc'}" in one.page.inner_text("#doing")


def test_refine_shows_its_progress_stops_and_is_discarded(
    serve: Callable[..., Server], person: Callable[..., Person]
) -> None:
    one = person(serve(DESIGN))
    before = one.shown("total")
    one.page.fill("[name=refine-time]", "600")
    one.page.click("#do-refine")
    one.page.wait_for_selector("#job:has-text('best cost')")
    other = person(serve(DESIGN))  # independent of the first one
    assert other.shown("total") == before
    one.page.click("#stop")
    one.page.wait_for_selector("#discard")
    assert float(one.shown("total")) < float(before)
    one.page.click("#discard")
    one.steps(0)
    assert one.shown("total") == before


def test_two_windows_see_each_other_and_a_dead_server_is_reported(
    serve: Callable[..., Server], person: Callable[..., Person]
) -> None:
    design, server = load(DESIGN), serve(DESIGN)
    one, other = person(server), person(server)
    one.drag(hard(design), 50, 30)
    other.steps(1)
    assert other.shown("total") == one.shown("total")
    server.end(kill=True)
    for page in (one, other):
        page.page.wait_for_selector("#message.bad:has-text('The server does not answer')")
        assert page.page.is_disabled("button:has-text('Save…')")


def test_unsaved_changes_outlive_a_killed_server(serve: Callable[..., Server], person: Callable[..., Person]) -> None:
    design, server = load(DESIGN), serve(DESIGN)
    one = person(server)
    one.drag(hard(design), 50, 30)
    one.steps(1)
    cost = one.shown("total")
    server.end(kill=True)
    other = person(serve(DESIGN))
    other.steps(1)
    assert other.shown("total") == cost
    other.page.keyboard.press("Control+z")
    other.steps(0)
    assert other.shown("total") == f"{compute_costs(design).total:.6f}"


def test_two_placements_are_compared(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    design = load(DESIGN)
    folder = Path(__file__).resolve().parents[3] / "netlists" / DESIGN
    shutil.copy(folder / "initial.plc", tmp_path / "one.plc")
    shutil.copy(folder / "initial.plc", tmp_path / "two.plc")
    one = person(serve(DESIGN, "one.plc", "two.plc"))
    one.drag(hard(design), 50, 30)
    one.steps(1)
    one.page.select_option("#compare-with", "1")
    one.page.wait_for_selector("#moved:has-text('1 hard and 0 soft')")
    assert one.page.inner_text("#cost-total td.other") == f"{compute_costs(design).total:.6f}"
    for how in ("fade", "sides", "lines"):
        one.page.select_option("#compare-how", how)
    one.page.click("button:has-text('exchange')")
    one.until("viewer.model.active === 1 && viewer.model.other === 0")


def test_a_run_is_watched_while_it_runs(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    design, run = load(DESIGN), tmp_path / "run"
    run.mkdir()
    head = "iteration,cost_mean,cost_best\n"
    write_whole(run / "metrics.csv", f"{head}1,1.5,1.25\n")
    write_placement(run / "best.plc", design, design.initial)
    one = person(serve(DESIGN, "run"))
    one.page.wait_for_selector("#run svg text:has-text('1.250')")
    one.page.wait_for_selector("#run:has-text('of 1')")
    node = hard(design)
    better = design.initial.moved(np.array([node]), design.initial.x[[node]] + 3.0, design.initial.y[[node]])
    write_whole(run / "metrics.csv", f"{head}1,1.5,1.25\n2,1.25,1.125\n")
    write_placement(run / "best.plc", design, better)
    one.page.wait_for_selector("#run:has-text('of 2')")
    one.page.wait_for_selector("#run svg text:has-text('1.125')")
    newest = f"#cost-total td.now:has-text('{compute_costs(design, better).total:.6f}')"
    one.page.wait_for_selector(newest)
    one.page.focus("#run-slider")
    one.page.keyboard.press("ArrowLeft")
    one.page.wait_for_selector("#run:has-text('best placement 1 of 2')")
    assert one.shown("total") == f"{compute_costs(design).total:.6f}"
    one.page.click("#run button:has-text('show the newest')")
    one.page.wait_for_selector(newest)
    third = better.moved(np.array([node]), design.initial.x[[node]] + 6.0, design.initial.y[[node]])
    for iteration, placement in ((1, design.initial), (2, better), (7, third)):
        write_placement(next_best_path(run, "best.plc", iteration), design, placement)
    later = person(serve(DESIGN, "run"))
    later.page.wait_for_selector("#run:has-text('best placement 3 of 3')")
    assert later.shown("total") == f"{compute_costs(design, third).total:.6f}"
    names = later.page.evaluate("viewer.model.run.sessions.map((at) => viewer.model.sessions[at].state.name)")
    assert names == ["best.plc, iteration 1", "best.plc, iteration 2", "best.plc, iteration 7"]
    (run / "best.plc").unlink()
    write_whole(run / "metrics.csv", "iteration,nothing\n1,2\n")
    one.page.wait_for_selector("#message.bad:has-text('metrics.csv:1')")


def test_a_search_is_watched_while_it_runs(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "SAVE_SECONDS", 0.0)  # each round
    design, found, seen = load(DESIGN), tmp_path / "found", []

    def look(progress: float, point: object) -> None:
        seen.append(progress)
        if len(seen) == 2:  # the first round is on disk
            one = person(serve(DESIGN, "found"))
            one.page.wait_for_selector("#run svg text:has-text('CPU time (s)')")
            pages.append(one)

    pages: list[Person] = []
    result = search(design, moves=20_000, round_moves=2000, watch=Watch(found, on_progress=look))
    [one] = pages
    one.until(f"viewer.model.run.curve.x.length === {len(result.history)}")
    assert one.page.evaluate("viewer.model.run.curve.series.best.at(-1)") == result.history[-1].cost
    one.page.wait_for_selector(f"#run svg text:has-text('{result.history[-1].cost:.3f}')")
    one.page.wait_for_selector(f"#cost-total td.now:has-text('{result.costs.total:.6f}')")


def test_a_broken_connection_is_restored_with_the_changes_made_during_the_outage(
    serve: Callable[..., Server], person: Callable[..., Person]
) -> None:
    server = serve(DESIGN)
    one, other = person(server), person(server)
    one.drag(hard(load(DESIGN)), 50, 30, drop=False)
    one.until("viewer.model.drag?.costs")
    one.page.evaluate("viewer.link.wait = 1500, viewer.link.socket.close()")
    one.page.wait_for_selector("#message.bad:has-text('The server does not answer')")
    one.page.mouse.up()
    other.drag(hard(load(DESIGN), 1), 40, 20)  # the dragged macro is back, and nobody holds it
    other.steps(1)
    one.page.wait_for_selector("#message:has-text('connected again')")
    one.steps(1)
    assert one.shown("total") == other.shown("total")


def test_labels_do_not_overlap_and_keys_align(serve: Callable[..., Server], person: Callable[..., Person]) -> None:
    design = load(DESIGN)
    one = person(serve(DESIGN))
    first, second, third = (hard(design, at) for at in range(3))
    (px, py), (qx, qy) = one.centre(first), one.centre(second)
    one.page.keyboard.down("Control")  # without snapping
    one.drag(first, qx - px + 4, qy - py + 3)
    one.page.keyboard.up("Control")
    one.steps(1)
    one.page.evaluate("viewer.zoom(3)")
    labels = one.page.evaluate(
        """() => {
            const { painter } = viewer, { context } = painter, boxes = [], plain = painter.text;
            painter.text = (text, px, py, colour, align) => { if (align === "center") {
                const wide = context.measureText(text).width;
                boxes.push([px - wide / 2, py - 9, px + wide / 2, py + 2]);
            } };
            viewer.paint();
            painter.text = plain;
            return boxes;
        }"""
    )
    assert len(labels) > 3
    for at, (left, top, right, low) in enumerate(labels):
        for other in labels[:at]:
            assert other[0] >= right or left >= other[2] or other[1] >= low or top >= other[3]
    one.page.evaluate("nodes => viewer.model.choose(nodes)", [first, second, third])
    one.page.keyboard.press("Alt+ArrowLeft")
    one.steps(2)
    sides = one.page.evaluate(
        "viewer.model.macros().map(node => viewer.model.placement.x[node] - viewer.model.design.width[node] / 2)"
    )
    assert sides == pytest.approx([min(sides)] * 3)
    one.page.keyboard.press("v")
    one.steps(3)
    edges = sorted(
        one.page.evaluate(
            "viewer.model.macros().map(node => [-1, 1].map(way => viewer.model.placement.y[node]"
            " + (way * viewer.model.placement.sides(viewer.model.design, node)[1]) / 2))"
        )
    )
    gaps = [above[0] - below[1] for below, above in itertools.pairwise(edges)]
    assert gaps == pytest.approx([gaps[0]] * 2)
    one.page.keyboard.press("?")
    keys = one.page.inner_text("dialog")
    assert all(words in keys for words in ("align left", "equal gaps", "undo, redo", "find by name"))


def test_a_def_is_handed_back_with_nothing_but_its_macros_moved(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    lef, chip = write_chip(tmp_path / "made", Options(cells=400, macros=6, ports=12))
    words = ["--lef", str(lef), "--def", str(chip), "--out", str(tmp_path / "chip"), "--clusters", "10"]
    assert main(["import", *words]) == 0
    design = load(tmp_path / "chip")
    one = person(serve("chip"))
    one.page.click("#do-legalise")
    one.steps(1)
    one.page.click("#keep")

    def export(name: str, answer: str) -> None:
        one.page.select_option("#export", "def")
        one.page.fill("dialog input", name)
        one.page.click("dialog button.main")
        one.page.wait_for_selector(answer)

    export("moved.def", "#message:has-text('saved:')")
    before, after = chip.read_text().splitlines(), (tmp_path / "moved.def").read_text().splitlines()
    changed = [old for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) == len(design.netlist.hard)
    assert all("RAM" in line for line in changed)
    (tmp_path / "chip" / "flat.npz").unlink()  # the window continues with the rest
    export("again.def", "#message.bad:has-text('flat.npz')")
    assert not (tmp_path / "again.def").exists()
    one.drag(hard(design), 20, 10)
    one.steps(2)


def test_a_wrong_token_shows_why(serve: Callable[..., Server], person: Callable[..., Person], browser: Any) -> None:
    server = serve(DESIGN)
    page = browser.new_page()
    answer = page.goto(server.address.rsplit("/", 2)[0] + "/wrong/")
    assert answer.status == 403
    assert "does not contain the window's token" in page.inner_text("body")
    page.close()


def test_search_layers_map_ruler_and_theme(serve: Callable[..., Server], person: Callable[..., Person]) -> None:
    one = person(serve(DESIGN))
    count = one.page.evaluate("viewer.model.search('*').length")
    one.page.keyboard.press("/")
    one.page.keyboard.type("*_1*")
    found = one.page.evaluate("viewer.model.search('*_1*').length")
    assert 0 < found < count
    one.page.keyboard.press("Enter")
    assert one.page.evaluate("viewer.model.chosen.size") == found
    one.page.select_option("#map", "horizontal")
    one.until("viewer.model.map?.name === 'horizontal'")
    with one.page.expect_download() as download:
        one.page.click("button:has-text('SVG')")
    names = ElementTree.parse(download.value.path()).getroot()
    assert names.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(names.findall(".//{http://www.w3.org/2000/svg}rect")) > len(load(DESIGN).netlist.hard)
    node = hard(load(DESIGN))
    one.page.mouse.move(*one.centre(node))
    x, y = re.findall(r"-?[\d.]+", one.page.inner_text("#place"))
    pixel = 1 / one.page.evaluate("viewer.viewport.scale")
    assert [float(x), float(y)] == pytest.approx(
        one.page.evaluate("node => [viewer.model.placement.x[node], viewer.model.placement.y[node]]", node), abs=pixel
    )
    one.page.click("button:has-text('Measure')")
    box = one.page.evaluate(
        "(() => { const b = viewer.canvases[0].getBoundingClientRect(); return [b.left, b.top]; })()"
    )
    one.page.mouse.move(box[0] + 100, box[1] + 100)
    one.page.mouse.down()
    one.page.mouse.move(box[0] + 200, box[1] + 100)
    length = one.page.evaluate("viewer.pointers[0].ruler[1][0] - viewer.pointers[0].ruler[0][0]")
    assert length == pytest.approx(100 / one.page.evaluate("viewer.viewport.scale"))
    one.page.mouse.up()
    theme = one.page.evaluate("document.documentElement.dataset.theme")
    one.page.click("button:has-text('Dark / light')")
    assert one.page.evaluate("document.documentElement.dataset.theme") != theme


def test_a_blockage_a_region_and_a_halo_are_drawn_and_kept_to(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    design = load(DESIGN)
    one = person(serve(DESIGN))
    mouse, node = one.page.mouse, hard(design)

    def draw(kind: str, half: float) -> None:
        one.page.click(f"#draw-{kind}")
        px, py = one.centre(node)
        mouse.move(px - half, py - half)
        mouse.down()
        mouse.move(px + half, py + half, steps=3)
        mouse.up()

    draw("blockage", 6)
    one.steps(1)
    one.page.wait_for_selector("#faults:has-text('1 macro is not legal')")
    one.page.wait_for_selector("label.layer:has-text('blockages')")
    one.page.click("#do-legalise")
    one.steps(2)
    one.page.wait_for_selector("#faults:has-text('legal: no macro breaks a rule')")
    one.page.click("#keep")
    for count in (1, 0):
        one.page.keyboard.press("Control+z")
        one.steps(count)
    assert one.page.query_selector_all("#constraints li") == []
    px, py = one.centre(node)
    mouse.click(px, py)
    draw("region", 200)
    one.page.fill("dialog input", "middle")
    one.page.click("dialog button.main")
    one.steps(1)
    one.page.wait_for_selector("#constraints:has-text('middle: 1 macro')")
    draw("halo", 90)
    one.page.fill("dialog input", "3, 4")
    one.page.click("dialog button.main")
    one.steps(2)
    one.page.click("#save-constraints")
    one.page.fill("dialog input", str(tmp_path / "constraints.json"))
    one.page.click("dialog button.main")
    one.page.wait_for_selector("#message:has-text('saved:')")
    kept = read_constraints(tmp_path / "constraints.json", design.netlist)
    assert kept.halo[node].tolist() == [3.0, 4.0, 3.0, 4.0]
    assert [(region.name, region.nodes.tolist()) for region in kept.regions] == [("middle", [node])]
    one.page.reload()
    one.ready()
    one.page.wait_for_selector("#constraints:has-text('middle: 1 macro')")


def test_an_imported_design_is_exported_fully_evaluated_and_snapped_to_its_tracks(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    words = ["--cells", "400", "--macros", "5", "--ports", "12"]
    assert main(["generate", "flat", str(tmp_path / "chip"), *words]) == 0
    flat = read_flat(tmp_path / "chip" / "flat.npz")
    tracks = (Tracks("metal2", True, 0.05, 0.5, 4000), Tracks("metal1", False, 0.1, 0.7, 4000))
    plan = dataclasses.replace(flat.floorplan, tracks=tracks)
    write_flat(tmp_path / "chip" / "flat.npz", dataclasses.replace(flat, floorplan=plan))
    design = load(tmp_path / "chip")
    one = person(serve("chip"))
    one.page.click("#snap-tracks")
    one.page.wait_for_selector("#message:has-text('tracks of 0.5 × 0.7 µm')")
    node = hard(design)
    one.drag(node, 37, -23)
    one.steps(1)
    x, y = one.page.evaluate("n => [viewer.model.placement.x[n], viewer.model.placement.y[n]]", node)
    left, low = x - design.netlist.width[node] / 2, y - design.netlist.height[node] / 2
    for corner, start, step in ((left + plan.core.x_low, 0.05, 0.5), (low + plan.core.y_low, 0.1, 0.7)):
        assert (corner - start) / step == pytest.approx(round((corner - start) / step), abs=1e-4)
    one.page.select_option("#export", "openroad")
    one.page.fill("dialog input", "chip.tcl")
    one.page.click("dialog button.main")
    one.page.wait_for_selector("#message:has-text('saved:')")
    assert (tmp_path / "chip.tcl").read_text().count("place_macro") == len(design.netlist.hard)
    one.page.click("#do-full")
    one.page.wait_for_selector("#job:has-text('flat wirelength')", timeout=2 * SECONDS)
    one.page.click("label:has-text('standard cells')")
    one.page.wait_for_selector("#message:has-text('standard cells, placed by the full evaluation')")


def test_flylines_join_what_is_chosen_and_the_view_is_a_picture(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    """The lines' weights by hand: a net of k pins joins each pair of its nodes by its weight / (k - 1)."""
    design = load(DESIGN)
    one, node, netlist = person(serve(DESIGN)), hard(design), design.netlist
    expected = np.zeros(netlist.num_nodes)
    for net, weight in enumerate(netlist.net_weight):
        pins = netlist.net_pins[netlist.net_start[net] : netlist.net_start[net + 1]]
        on = netlist.pin_node[pins]
        np.add.at(expected, on[on != node], (on == node).sum() * weight / max(1, len(on) - 1))
    one.page.evaluate("node => viewer.model.choose([node])", node)
    lines = one.page.evaluate("viewer.model.lines")
    assert lines and all(line["from"] == node for line in lines)
    for line in lines:
        assert line["weight"] == pytest.approx(expected[line["to"]])
    assert lines[0]["weight"] == pytest.approx(expected.max())
    with one.page.expect_download() as download:
        one.page.click("button:has-text('SVG')")
    drawn = Path(download.value.path()).read_text()
    ends = one.page.evaluate(
        """line => [line.from, line.to].map(at => viewer.viewport.toScreen(viewer.model.placement.x[at],
            viewer.model.placement.y[at]).map(value => Number(value.toFixed(2))))""",
        lines[0],
    )
    (px, py), (qx, qy) = ends
    assert f"M{px:g},{py:g}L{qx:g},{qy:g}" in drawn
    with one.page.expect_download() as download:
        one.page.click("button:has-text('PNG')")
    picture = imread(download.value.path(), format="png")
    assert picture.shape[0] > 300 and picture.shape[1] > 300
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 20


def test_one_placement_fades_into_the_other(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    shutil.copy(Path(__file__).resolve().parents[3] / "netlists" / DESIGN / "initial.plc", tmp_path / "one.plc")
    shutil.copy(tmp_path / "one.plc", tmp_path / "two.plc")
    one = person(serve(DESIGN, "one.plc", "two.plc"))
    node = hard(load(DESIGN))
    one.drag(node, 90, 60)
    one.steps(1)
    one.page.select_option("#compare-with", "1")
    one.page.select_option("#compare-how", "fade")
    seen: list[str] = []
    for share in ("0", "0.5", "1"):
        one.page.evaluate(
            "share => { const range = document.getElementById('fade'); range.value = share; "
            "range.dispatchEvent(new Event('input')); }",
            share,
        )
        one.until(f"!{seen!r}.includes(viewer.canvases[0].toDataURL())")
        seen.append(one.page.evaluate("viewer.canvases[0].toDataURL()"))
    assert len(set(seen)) == 3


def test_keys_swap_turn_fix_and_release(serve: Callable[..., Server], person: Callable[..., Person]) -> None:
    design = load(DESIGN)
    one = person(serve(DESIGN))
    nodes = [hard(design, 0), hard(design, 1)]
    press = one.page.keyboard.press
    place = "nodes => nodes.map(node => [viewer.model.placement.x[node], viewer.model.placement.y[node]])"
    before = one.page.evaluate(place, nodes)
    one.page.evaluate("nodes => viewer.model.choose(nodes)", nodes)
    press("s")
    one.steps(1)
    assert one.page.evaluate(place, nodes) == before[::-1]
    one.page.evaluate("node => viewer.model.choose([node])", nodes[0])
    press("l")
    one.steps(2)
    one.drag(nodes[0], 60, 40)
    one.page.wait_for_timeout(200)
    assert one.page.evaluate(place, nodes) == before[::-1]
    press("u")
    one.steps(3)
    press("r")
    one.steps(4)
    quarter = one.page.evaluate("node => viewer.model.placement.orientation[node]", nodes[0])
    press("x")
    one.steps(5)
    mirrored = one.page.evaluate("node => viewer.model.placement.orientation[node]", nodes[0])
    assert len({0, quarter, mirrored}) == 3
    for _ in range(5):
        press("Control+z")
    one.steps(0)
    assert one.page.evaluate(place, nodes) == before


def test_a_design_that_vanished_is_still_moved_and_saved(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    """The window holds the design; operations that need its files report the missing one."""
    assert main(["generate", "flat", str(tmp_path / "chip"), "--cells", "300", "--macros", "4", "--ports", "9"]) == 0
    design = load(tmp_path / "chip")
    one = person(serve("chip"))
    shutil.rmtree(tmp_path / "chip")
    one.drag(hard(design), 40, 30)
    one.steps(1)
    one.save("mine.plc")
    one.page.wait_for_selector("#message:has-text('saved:')")
    assert one.shown("total") == f"{compute_costs(design, saved(tmp_path / 'mine.plc', design)).total:.6f}"
    one.page.click("#do-full")
    one.page.wait_for_selector("#job:has-text('chip')")
    assert "Traceback" not in one.page.inner_text("#job")


@pytest.mark.parametrize("size", [(1400, 900), (1920, 1080), (1024, 400)])
def test_the_list_of_keys_is_whole_on_any_page(
    serve: Callable[..., Server], person: Callable[..., Person], size: tuple[int, int]
) -> None:
    one = person(serve(DESIGN))
    one.page.set_viewport_size({"width": size[0], "height": size[1]})
    one.page.keyboard.press("?")
    box, cells, (width, inner), (height, tall), scrolls = one.page.evaluate(
        """() => {
            const dialog = document.getElementById("dialog"), edges = (one) => one.getBoundingClientRect().toJSON();
            return [edges(dialog), [...dialog.querySelectorAll("td, h2, button")].map(edges), [dialog.clientWidth,
                dialog.scrollWidth], [dialog.clientHeight, dialog.scrollHeight], getComputedStyle(dialog).overflowY];
        }"""
    )
    assert box["left"] >= 0 and box["right"] <= size[0] and box["top"] >= 0 and box["bottom"] <= size[1]
    assert inner <= width and all(box["left"] <= one["left"] and one["right"] <= box["right"] for one in cells)
    assert tall <= height or scrolls == "auto"


def test_ports_outside_the_core_are_seen_at_first_and_after_fit(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    design = load(DESIGN)
    ports, placed = design.netlist.ports, design.initial
    x, y = placed.x[ports] - 0.3 * design.canvas.width, 1.5 * design.canvas.height - placed.y[ports]
    outside = placed.moved(ports, x, y)
    save(tmp_path / "moved", dataclasses.replace(design, initial=outside))
    one = person(serve("moved"))
    seen = """() => viewer.model.design.of[2].every((node) => {
        const [px, py] = viewer.viewport.toScreen(viewer.model.placement.x[node], viewer.model.placement.y[node]);
        return px > 0 && px < viewer.viewport.width && py > 0 && py < viewer.viewport.height;
    })"""
    assert len(ports) and one.page.evaluate(seen)
    one.page.evaluate("viewer.zoom(8)")
    assert not one.page.evaluate(seen)
    one.page.click("button:has-text('Fit')")
    assert one.page.evaluate(seen)


def test_a_macro_snapped_to_an_edge_of_a_canvas_in_odd_units_is_legal(
    serve: Callable[..., Server], person: Callable[..., Person], tmp_path: Path
) -> None:
    """Sizes that float32 cannot represent: the page must not round what it snaps by."""
    design, scale = load(DESIGN), 7.654321
    netlist, canvas, placed = design.netlist, design.canvas, design.initial
    lengths = {name: getattr(netlist, name) * scale for name in ("width", "height", "pin_dx", "pin_dy")}
    large = dataclasses.replace(canvas, width=canvas.width * scale, height=canvas.height * scale)
    placed = dataclasses.replace(placed, x=placed.x * scale, y=placed.y * scale)
    save(tmp_path / "odd", Design("odd", dataclasses.replace(netlist, **lengths), large, placed))
    design, one = load(tmp_path / "odd"), person(serve("odd"))
    node = hard(design)
    px, py = one.centre(node)
    right, top = one.page.evaluate(
        """node => {
            const { design, placement } = viewer.model, [width, height] = placement.sides(design, node);
            const { canvas } = design, edge = viewer.canvases[0].getBoundingClientRect();
            const [px, py] = viewer.viewport.toScreen(canvas.width - width / 2, canvas.height - height / 2);
            return [px + edge.left, py + edge.top];
        }""",
        node,
    )
    one.drag(node, right - px + 2, top - py - 2)  # the edges attract
    one.steps(1)
    width, height = (float(side[node]) for side in design.netlist.sides(design.initial.orientation))
    x, y = one.page.evaluate("node => [viewer.model.placement.x[node], viewer.model.placement.y[node]]", node)
    assert [x + width / 2, y + height / 2] == pytest.approx([design.canvas.width, design.canvas.height], abs=1e-9)
    reasons = one.page.evaluate("node => viewer.model.faults.get(node) ?? []", node)
    assert not [reason for reason in reasons if "beyond the canvas" in reason]
