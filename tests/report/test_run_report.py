from __future__ import annotations

import dataclasses
import html.parser
import json
import re

from placement.config import TrainConfig
from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs, costs_object
from placement.flat.placement_timer import PlacementTimer
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import write_placement
from placement.netlist.load import load
from placement.report import plots
from placement.report.run_report import DRAWN, write_report
from placement.runtimes import local, public
from placement.training.run_folder import Run
from tests.cli.test_timing_commands import imported
from tests.support.designs import four_macros, random_design
from tests.support.small_timing import SDC


def _run_folder(folder, designs):
    """Writes a run folder as training does."""
    folder.mkdir()
    header = "iteration,episodes,steps,seconds,cost_mean,cost_best,cost_std,wirelength_cost_mean"
    (folder / "metrics.csv").write_text(f"{header}\n1,8,24,1.5,1.25,1.1,0.1,0.2\n2,16,48,3.0,1.0,0.9,0.1,0.1\n")
    best = {}
    for index, design in enumerate(designs):
        file = "best.plc" if len(designs) == 1 else f"best-{index}-{design.name}.plc"
        write_placement(folder / file, design, design.initial)
        best[design.name] = {"file": file, "origin": "test", **costs_object(compute_costs(design), DEFAULT_WEIGHTS)}
    (folder / "best.json").write_text(json.dumps(best))
    (folder / "config.yaml").write_text("design: [four_macros]\nnote: <b>&\n")
    return folder


class _Links(html.parser.HTMLParser):
    """Collects whatever a browser would fetch, and unclosed tags."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.sources += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_report_holds_everything_and_fetches_nothing(tmp_path):
    design = four_macros()
    page = write_report(_run_folder(tmp_path / "seed1", [design]), [design])
    pictures = list((tmp_path / "seed1" / "plots").iterdir())
    assert {path.name for path in pictures} == {"training.png", "placement.png", "maps.png"}
    assert all(path.stat().st_size > 1000 for path in pictures)
    text = page.read_text(encoding="utf-8")
    links = _Links()
    links.feed(text)
    assert links.open == []
    assert len(links.sources) == 3
    assert all(source.startswith("data:image/") for source in links.sources)
    assert not re.search(r"https?://|url\(|@import|<script", text)
    assert f"{compute_costs(design).total:.6f}" in text
    assert "1.2500" in text and "&lt;b&gt;&amp;" in text


def test_several_designs_have_pictures_of_their_own(tmp_path):
    designs = [four_macros(), random_design(3)]
    write_report(_run_folder(tmp_path / "run", designs), designs)
    names = {path.name for path in (tmp_path / "run" / "plots").iterdir()}
    assert names == {
        "training.png",
        *(f"{kind}-{design.name}.png" for kind in ("placement", "maps") for design in designs),
    }


def test_of_many_designs_the_first_are_drawn_and_the_page_says_so(tmp_path):
    designs = [dataclasses.replace(random_design(number), name=f"d{number:02}") for number in range(DRAWN + 2)]
    page = write_report(_run_folder(tmp_path / "run", designs), designs)
    drawn = {path.name for path in (tmp_path / "run" / "plots").glob("placement-*.png")}
    assert drawn == {f"placement-{design.name}.png" for design in designs[:DRAWN]}
    text = page.read_text(encoding="utf-8")
    assert "The placements of the other 2 designs are in the run folder, not drawn" in text
    assert all(f"<td>{design.name}</td>" in text for design in designs), "the table has all"


def test_the_worst_paths_of_a_timed_design_are_drawn(tmp_path, monkeypatch):
    (tmp_path / "fast.sdc").write_text(SDC.replace("period 200", "period 60"))
    assert imported(tmp_path, "--liberty", str(tmp_path / "chip.lib"), "--sdc", str(tmp_path / "fast.sdc")) == 0
    name = str(tmp_path / "chip")
    designs = [load(name), four_macros()]
    folder = _run_folder(tmp_path / "run", designs)
    monkeypatch.setattr(local, "run", lambda config, progress: Run(folder))
    monkeypatch.setattr(public, "named_designs", lambda config: designs)
    monkeypatch.setattr(public, "check_designs", lambda config: None)
    drawn, plot = [], plots.plot_paths
    monkeypatch.setattr(plots, "plot_paths", lambda *given, title: (drawn.append(given), plot(*given, title=title))[1])
    public.run(TrainConfig((name, "four_macros"), str(folder)))
    [(design, placement, timing)] = drawn
    assert design is designs[0]
    assert timing.wns == PlacementTimer(name, design).evaluate(placement).wns < 0 and len(timing.paths) == 6
    assert [path.name for path in (folder / "plots").glob("paths*")] == ["paths-chip.png"]
    assert (folder / "report.html").read_text().count("its worst paths") == 2  # alternative text and caption


def test_a_design_that_cannot_be_timed_is_drawn_all_the_same(tmp_path):
    def fail(design):
        raise DesignError("<damaged>")

    design = four_macros()
    page = write_report(_run_folder(tmp_path / "run", [design]), [design], read_timer=fail)
    assert "not timed: &lt;damaged&gt;" in page.read_text() and (tmp_path / "run/plots/maps.png").exists()


def test_an_empty_run_folder_makes_an_empty_report(tmp_path):
    (tmp_path / "run").mkdir()
    page = write_report(tmp_path / "run", [four_macros()])
    assert not list((tmp_path / "run" / "plots").iterdir())
    assert "four_macros" in page.read_text(encoding="utf-8")
