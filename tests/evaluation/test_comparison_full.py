"""`compare full=true`: placers and given placements, all cells placed around each."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from placement.cli.main import main
from placement.engine.costs import compute_costs
from placement.evaluation import comparison, full_evaluation
from placement.evaluation.comparison import compare
from placement.evaluation.placements import readable_name
from placement.evaluation.settings import CompareConfig
from placement.netlist.formats.plc import write_placement
from placement.netlist.load import load

FLAT_KEYS = {"flat_wirelength", "routed_wirelength", "overflow", "density_overflow", "hot_spots", "flat_seconds"}
WORDS = ["placers=random,greedy", "seeds=2", "time=0.1", "full=true", "json=true"]


@pytest.fixture(scope="module")
def compared(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    assert main(["compare", f"design={made}", *WORDS, "plots=true", f"out={folder}"]) == 0
    return folder


def compared_by(*words: str) -> int:
    return main(["compare", *words])


def shifted(made: Path, path: Path, way: float) -> Path:
    """The design's own placement with one macro moved along x by `way` µm."""
    design = load(str(made))
    macro = design.placing_order[:1]
    own = design.initial
    write_placement(path, design, own.moved(macro, own.x[macro] + way, own.y[macro]))
    return path


def test_the_flat_checks_figures_are_in_table_json_and_csv(made: Path, compared: Path) -> None:
    described = json.loads((compared / "comparison.json").read_text())
    runs = described["runs"]
    assert [(run["placer"], run["seed"]) for run in runs] == [
        (placer, seed) for placer in ("random", "greedy") for seed in (0, 1)
    ]
    assert set(runs[0]) >= FLAT_KEYS
    for row in described["summary"]:
        own = [run for run in runs if run["placer"] == row["placer"]]
        for key in FLAT_KEYS:
            assert row[key] == pytest.approx(np.mean([run[key] for run in own]))
        assert row["best_routed_wirelength"] == min(run["routed_wirelength"] for run in own)
        assert row["flat_converged"] is True
    table = list(csv.DictReader((compared / "comparison.csv").read_text().splitlines()))
    assert [float(row["routed_wirelength"]) for row in table] == [run["routed_wirelength"] for run in runs]
    assert (compared / "full.png").stat().st_size > 0


def test_the_figures_are_those_of_evaluate(made: Path, compared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = json.loads((compared / "comparison.json").read_text())["runs"][3]
    file = compared / "greedy" / "seed1" / "placement.plc"
    assert main(["evaluate", f"design={made}", f"placement={file}", "full=true", "json=true"]) == 0
    alone = json.loads(capsys.readouterr().out.splitlines()[-1])
    for key in FLAT_KEYS - {"flat_seconds"}:
        assert run[key] == pytest.approx(alone[key], rel=1e-6), key


def test_nothing_is_done_twice_and_placements_can_be_added(
    made: Path, compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    shutil.copytree(compared, out)
    given = shifted(made, tmp_path / "given.plc", 2.0)
    checked = []
    evaluate = full_evaluation.FullEvaluator.evaluate

    def counted(evaluator, placement, **rest):
        checked.append(placement)
        return evaluate(evaluator, placement, **rest)

    monkeypatch.setattr(full_evaluation.FullEvaluator, "evaluate", counted)
    words = [f"design={made}", *WORDS, f"out={out}", "plots=false"]
    assert compared_by(*words, f"placement={given}") == 0
    text = capsys.readouterr().out
    assert len(checked) == 1, "of the new placement only"
    before = json.loads((compared / "comparison.json").read_text())
    after = json.loads((out / "comparison.json").read_text())
    assert after["runs"][1:] == before["runs"]
    assert after["runs"][0]["placer"] == "given"
    assert (after["runs"][0]["seed"], after["runs"][0]["start"]) == (None, str(given))
    assert "given" in text
    best = min(after["runs"], key=lambda run: run["routed_wirelength"])
    assert json.loads(text.splitlines()[-1])["routed_wirelength"] == best["routed_wirelength"]

    shifted(made, given, 3.0)  # another placement of the same name
    assert compared_by(*words, f"placement={given}") == 0
    assert len(checked) == 2


def test_several_placements_alone_are_compared(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for number in (1, 2):
        (tmp_path / f"run{number}").mkdir()
        files.append(shifted(made, tmp_path / f"run{number}" / "placement.plc", float(number)))
    words = [f"design={made}", f"placement={files[0]},{files[1]}", f"out={tmp_path / 'out'}", "plots=true"]
    assert compared_by(*words) == 0
    assert "CPU seconds" not in capsys.readouterr().out, "nothing was placed"
    runs = json.loads((tmp_path / "out" / "comparison.json").read_text())["runs"]
    assert [run["placer"] for run in runs] == ["run1", "run2"], "their folders: both are called placement.plc"
    for run, file in zip(runs, files, strict=True):
        assert run["cost"] == compute_costs(load(str(made), file)).total
    assert (tmp_path / "out" / "placements.png").is_file()
    assert not (tmp_path / "out" / "cost_over_time.png").exists()
    assert compared_by(*words[:-1], "labels=a minute of search,engineer", "plots=false") == 0
    runs = json.loads((tmp_path / "out" / "comparison.json").read_text())["runs"]
    assert [run["placer"] for run in runs] == ["a minute of search", "engineer"]


def test_a_placement_is_not_taken_for_a_placer_of_its_name(made: Path, tmp_path: Path) -> None:
    file = shifted(made, tmp_path / "random.plc", 1.0)
    words = [f"design={made}", f"placement={file}", "placers=random", "seeds=1", "time=0.1", "plots=false"]
    assert compared_by(*words, f"out={tmp_path / 'out'}") == 0
    runs = json.loads((tmp_path / "out" / "comparison.json").read_text())["runs"]
    assert [run["placer"] for run in runs] == ["random.plc", "random"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("placed/CMP.def.gz", "CMP"),
        ("a/search-0.plc", "search-0"),
        ("first/best.plc", "first"),
        ("second/placement.plc.gz", "second"),
        ("chip.v2.def", "chip.v2"),
    ],
)
def test_a_file_has_a_readable_name(path: str, name: str) -> None:
    assert readable_name(path) == name


def test_ctrl_c_keeps_what_was_done_and_the_same_command_goes_on(
    made: Path, compared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CompareConfig(design=str(made), placers=("random", "greedy"), seeds=2, time=0.1, full=True, plots=False)
    config = CompareConfig(**{**vars(config), "out": str(tmp_path)})
    told: list[str] = []
    console = Console(quiet=True)
    monkeypatch.setattr(console, "print", lambda text, **look: told.append(str(text)))
    stop = []

    class Stopping(comparison.Interruption):
        def __enter__(self) -> comparison.Interruption:
            stop.append(self.requested)
            return super().__enter__()

    evaluate = full_evaluation.FullEvaluator.evaluate

    def stopped_in_the_second(evaluator, placement, *, report, stopped):
        if list(tmp_path.rglob("full.json")):
            report = lambda overflow, share: stop[0].set()  # noqa: E731
        return evaluate(evaluator, placement, report=report, stopped=stopped)

    with monkeypatch.context() as patched:
        patched.setattr(comparison, "Interruption", Stopping)
        patched.setattr(full_evaluation.FullEvaluator, "evaluate", stopped_in_the_second)
        compare(config, console)
    assert "stopped before all was done; the same command resumes" in told
    runs = json.loads((tmp_path / "comparison.json").read_text())["runs"]
    assert [(run["placer"], run["seed"]) for run in runs] == [("random", 0)]
    compare(config, console)
    assert len(json.loads((tmp_path / "comparison.json").read_text())["runs"]) == 4


def test_damaged_checks_are_made_anew(made: Path, compared: Path) -> None:
    own = compared / "random" / "seed0"
    drawn = full_evaluation.read_drawn(own)
    assert len(drawn.x) == len(drawn.y) == len(drawn.cluster) > 200
    assert drawn.horizontal.shape == drawn.vertical.shape
    about = json.loads((own / "full.json").read_text())["about"]
    assert full_evaluation._read(own, about) is not None
    assert full_evaluation._read(own, "other") is None
    whole = (own / "cells.npz").read_bytes()
    for damaged in (b"", whole[: len(whole) // 2]):
        (own / "cells.npz").write_bytes(damaged)
        assert full_evaluation._read(own, about) is None
    (own / "cells.npz").write_bytes(whole)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["design=toy6", "placers=random", "full=true"], "has no flat netlist (flat.npz): import the design from"),
        (["design=toy6", "placers=random,mixed_size"], "has no flat netlist"),
        (["design=toy6", "placers=random,random"], "placers: random, random: name each once"),
        (["checkpoint=run", "placers=policy", "full=true"], "full=true: needs design="),
        (["design=toy6", "placement=a.plc,b.plc", "labels=one"], "labels: 1 for 2 placements"),
        (["design=toy6", "placement=a.plc,b.plc", "labels=one,one"], "labels: 'one' is the name of two"),
        (["design=toy6", "placement=a.plc", "labels=anneal", "placers=anneal"], "labels: 'anneal' is the name of two"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_starts(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compared_by(*words, f"out={tmp_path / 'out'}") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("missing.plc", "there is no such file"),
        ("nan.plc", "x of node 12 is 'nan'; must be a finite number"),
        ("other.plc", "is no port, macro or standard cell of the netlist"),
        ("cut.plc", "the file ends without lines for"),
        ("good.plc", "is given 2 times; once is enough"),
    ],
)
def test_a_wrong_placement_among_several_is_refused_before_the_first_check(
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    second: str,
    message: str,
) -> None:
    good = shifted(made, tmp_path / "good.plc", 1.0)
    lines = good.read_text().splitlines(keepends=True)
    last = lines[-1].split()
    (tmp_path / "nan.plc").write_text("".join(lines[:-1]) + f"{last[0]} nan {' '.join(last[2:])}\n")
    (tmp_path / "cut.plc").write_text("".join(lines[:-1]))
    other = load("clustered120")
    write_placement(tmp_path / "other.plc", other, other.initial)
    monkeypatch.setattr(full_evaluation.FullEvaluator, "evaluate", lambda *_, **__: pytest.fail("a check was begun"))
    words = [f"design={made}", f"placement=[{good},{tmp_path / second}]", "full=true", f"out={tmp_path / 'out'}"]
    assert compared_by(*words) == 2
    error = capsys.readouterr().err
    assert message.replace("node 12", f"node {last[0]}") in error
    assert second in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
