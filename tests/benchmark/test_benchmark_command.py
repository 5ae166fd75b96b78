"""`macro-placement benchmark` on built-in designs, with stand-ins for external placers."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.submissions import check, write_page
from placement.benchmark import command, running
from placement.benchmark.benchmark_config import BenchmarkConfig
from placement.benchmark.leaderboard import read_results
from placement.benchmark.running import run_process
from placement.cli.main import main
from placement.engine.costs import cost
from placement.netlist.errors import DesignError
from placement.netlist.load import data_folder, load
from tests.support.array_chip import MEMORIES, array_def
from tests.support.small_lef_def import LEF

TOY = data_folder("netlists") / "toy6"
COPY = "copy=cp {design}/initial.plc {out}/placement.plc"
"""A placer without Python, which starts immediately: the design's own placement."""
OPTIMUM = "optimum=cp {design}/optimum.plc placement.plc"


def call(folder: Path, *words: str) -> int:
    return main(["benchmark", "smoke", "designs=toy6", "seeds=1", f"out={folder}", "plots=false", *words])


def result_of(folder: Path, placer: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / placer / "toy6" / "seed0.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs the whole suite with a built-in placer and a program; on one design also a callable and another program."""
    folder = tmp_path_factory.mktemp("benchmark")
    words = ["benchmark", "smoke", "seeds=1", f"out={folder}", "parallel=2"]
    assert main([*words, "placers=greedy@0.5", "plots=false", "--commands", COPY]) == 0
    heap = "placers=greedy@0.5,tests.benchmark.stand_ins:heap"
    assert main([*words, "designs=toy6", heap, "--commands", COPY, OPTIMUM]) == 0
    return folder


def test_the_whole_suite_was_run(smoke: Path) -> None:
    ended = {(one["placer"], one["design"]): one["status"] for one in read_results(smoke)}
    designs = ("toy6", "planted20", "clustered40")
    assert {(placer, name) for placer in ("greedy@0.5", "copy@2") for name in designs} < set(ended)
    assert [key for key, status in ended.items() if status != "ok"] == [("tests.benchmark.stand_ins:heap@2", "toy6")]


def test_a_result_says_what_was_run_and_what_it_scores(smoke: Path) -> None:
    found = result_of(smoke, "greedy@0.5")
    assert (found["status"], found["schema"], found["suite"], found["suite_version"]) == ("ok", 1, "smoke", 1)
    assert found["scores"]["chip_cost"] > 0 and found["curve"][-1][1] == found["scores"]["chip_cost"]
    assert found["cpu_seconds"] > 0.05, "an interpreter and the engine were loaded"
    assert found["memory_mb"] > 20 and found["machine"]["cores"] >= 1 and found["versions"]["macro-placement"]
    assert found["command"] == (
        "macro-placement benchmark suite=smoke designs=toy6 placers=greedy@0.5 time=0.5 seeds=1 seed=0"
    )
    assert str(Path.home()) not in json.dumps(found) and str(smoke) not in json.dumps(found)


def test_a_program_is_scored_as_the_placement_it_writes(smoke: Path) -> None:
    design = load("toy6")
    found = result_of(smoke, "copy@2")
    assert found["scores"]["chip_cost"] == cost(design, design.initial).total
    assert found["template"] == COPY.partition("=")[2]
    assert found["cpu_seconds"] < result_of(smoke, "greedy@0.5")["cpu_seconds"], "cp needs no interpreter"


def test_an_illegal_placement_does_not_count(smoke: Path) -> None:
    found = result_of(smoke, "tests.benchmark.stand_ins-heap@2")
    assert (found["status"], found["scores"]) == ("illegal", {})
    assert found["reason"] == "overlaps: 15", "all pairs of six macros"


def test_the_table_the_page_and_the_plots(smoke: Path) -> None:
    rows = {row["placer"]: row for row in json.loads((smoke / "leaderboard.json").read_text())["rows"]}
    assert rows["greedy@0.5"]["score"] == [1.0, 1.0, 1.0], "the baseline"
    copied = result_of(smoke, "copy@2")["scores"]["chip_cost"] / result_of(smoke, "greedy@0.5")["scores"]["chip_cost"]
    assert rows["copy@2"]["score"][0] == pytest.approx(copied)
    assert rows["tests.benchmark.stand_ins:heap@2"]["failed"] == 1
    page = (smoke / "benchmark.md").read_text()
    assert "| tests.benchmark.stand_ins:heap@2 | `toy6` | illegal | 1 | overlaps: 15 |" in page
    assert (smoke / "profiles.png").is_file() and (smoke / "time_to_quality.png").is_file()


def test_a_second_call_runs_only_what_is_new(smoke: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "again"
    shutil.copytree(smoke, folder)
    before = result_of(folder, "copy@2")
    called = []
    own = running.run
    monkeypatch.setattr(command, "run", lambda job, *rest: called.append(job.title) or own(job, *rest))
    assert call(folder, "placers=[]", "--commands", COPY, OPTIMUM, "new=cp {design}/initial.plc placement.plc") == 0
    assert called == ["new@2 on toy6, seed 0"]
    assert result_of(folder, "copy@2") == before
    damaged = folder / "copy@2" / "toy6" / "seed0.json"
    damaged.write_text(damaged.read_text().replace('"schema": 1', '"schema": 0'))
    assert call(folder, "placers=[]", "--commands", COPY) == 0
    assert called[1:] == ["copy@2 on toy6, seed 0"], "a result of another schema does not count"


def test_what_is_stopped_leaves_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()
    stopped.set()
    assert run_process(["sleep", "60"], tmp_path, stopped, cpu_seconds=1) is None


@pytest.mark.parametrize(
    ("program", "status", "reason"),
    [
        ("true", "failed", "wrote neither placement.plc nor placement.def into its folder"),
        ("sh -c 'echo no licence >&2; exit 3'", "failed", "exit status 3: no licence"),
        ("sh -c 'echo nonsense > placement.plc'", "failed", "placement.plc:1: expected"),
        ("no_such_program {seed}", "failed", "exit status 127"),
    ],
)
def test_a_program_that_fails(program: str, status: str, reason: str, tmp_path: Path) -> None:
    assert call(tmp_path, "placers=[]", "--commands", COPY, f"mine={program}") == 0
    found = result_of(tmp_path, "mine@2")
    assert found["status"] == status
    assert found["reason"].startswith(reason) or reason in found["reason"]
    assert str(tmp_path) not in found["reason"]


def test_a_program_that_takes_too_long_is_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LATE_SECONDS", 0.0)
    assert call(tmp_path, "placers=[]", "--commands", "mine@0.1=sh -c 'while :; do :; done'") == 0
    found = result_of(tmp_path, "mine@0.1")
    assert found["status"] == "late" and found["reason"].endswith("CPU-s of 0.1")


def test_a_program_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "WAIT_SHARE", 0.0)
    monkeypatch.setattr(running, "WAIT_SECONDS", 0.1)
    assert call(tmp_path, "placers=[]", "--commands", "mine=sleep 600") == 0
    assert "was killed" in result_of(tmp_path, "mine@2")["reason"]


def test_a_fixed_node_that_was_moved_is_illegal(tmp_path: Path) -> None:
    """The ports of toy6 are fixed; the first one is at (0, 150)."""
    program = """sh -c 'sed "s/^0 0.0 150.0/0 9.0 150.0/" $0/initial.plc > placement.plc' {design}"""
    assert call(tmp_path, "placers=[]", "--commands", f"mine={program}") == 0
    assert result_of(tmp_path, "mine@2")["reason"] == "fixed: 1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["placers=serch"], "placers: unknown placer 'serch'; give one of supplied, random"),
        (["placers=search@x"], "search@x: what follows @ must be CPU seconds above 0"),
        (["placers=greedy,greedy@2"], "greedy@2 is listed twice"),
        (["placers=tests.benchmark.stand_ins:none"], "tests.benchmark.stand_ins:none: cannot be imported"),
        (["--commands", "cp a b"], "'cp a b': must be NAME=COMMAND"),
        (["--commands", "mine=cp {plc}"], "mine: unknown field {plc}; the fields are {design}, {def}"),
        (["suite=other"], "suite=other: is neither one of public, smoke, synthetic"),
        (["designs=toy7"], "the suite smoke-1 does not contain 'toy7'; it contains toy6"),
        (["split=train", "designs=[]"], "split=train: the suite smoke-1 has no designs in this split"),
    ],
)
def test_wrong_settings_end_with_a_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"suite": "smoke", **dict(word.split("=", 1) for word in words if "=" in word and words[0] != "--commands")}
    assert main(["benchmark", *(f"{key}={value}" for key, value in given.items()), f"out={tmp_path}", *words]) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) == 1


def test_designs_that_are_missing_are_named_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(TOY, tmp_path / "path" / "nvdla")
    monkeypatch.setenv("PLACEMENT_PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    words = ["designs=nvdla,ct_ariane", "placers=[]", "seeds=1", f"out={tmp_path / 'out'}", "plots=false"]
    assert main(["benchmark", "public", *words, "--commands", COPY]) == 0
    assert "skipped: ct_ariane: is missing; macro-placement fetch ct_ariane" in capsys.readouterr().out
    assert (tmp_path / "out/copy@60/nvdla/seed0.json").is_file()


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(scope="module")
def chip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Imports a design of seven memories in a row to a path of designs; returns it and its LEF file."""
    folder = tmp_path_factory.mktemp("chip")
    (folder / "chip.lef").write_text(LEF)
    places = {name: f"PLACED ( {4000 + 13000 * number} 20000 ) N" for number, name in enumerate(MEMORIES)}
    (folder / "chip.def").write_text(array_def(places))
    words = ["--lef", f"{folder}/chip.lef", "--def", f"{folder}/chip.def", f"out={folder}/nvdla"]
    assert main(["import", *words]) == 0
    return folder


@pytest.mark.parametrize("placer", ["openroad", "dreamplace"])
def test_programs_of_others_read_the_users_def_and_write_one(
    placer: str, chip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in checks the inputs of the real program, and writes the DEF file that it read."""
    stand_in = {
        "openroad": '#!/bin/sh\ngrep -q "^rtl_macro_placer" "$3" && grep -q "^read_lef {.*chip.lef}" "$3" &&\n'
        '[ "$2" = -exit ] && cp input.def placement.def\n',
        "dreamplace": '#!/bin/sh\ngrep -q "macro_place_flag" "$1" && mkdir chip && cp input.def chip/chip.gp.def\n',
    }
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / placer, stand_in[placer])
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PLACEMENT_PATH", str(chip))
    words = [f"placers={placer}", "designs=nvdla", "seeds=1", f"out={tmp_path / 'out'}", "plots=false"]
    assert main(["benchmark", "public", *words, f"lef={chip}/chip.lef"]) == 0
    found = json.loads((tmp_path / f"out/{placer}@60/nvdla/seed0.json").read_text())
    assert found["status"] == "ok", found["reason"]
    assert found["placement"] == "seed0.plc.gz"
    (tmp_path / "bin" / placer).unlink()
    shutil.rmtree(tmp_path / "out")
    assert main(["benchmark", "public", *words, f"lef={chip}/chip.lef"]) == 0
    found = json.loads((tmp_path / f"out/{placer}@60/nvdla/seed0.json").read_text())
    assert found["reason"].startswith(f"{placer}: no such program on the PATH")


def test_rescoring_finds_what_was_changed(smoke: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "submitted"
    shutil.copytree(smoke, folder)
    check(folder)
    assert "7 placements checked, 0 results without a placement, 0 wrong" in capsys.readouterr().out
    file = folder / "copy@2/toy6/seed0.json"
    good = json.loads(file.read_text())
    file.write_text(json.dumps({**good, "scores": {**good["scores"], "chip_cost": 0.01}}))
    with pytest.raises(DesignError, match=r"chip_cost is 0\."):
        check(folder)
    file.write_text(json.dumps(good))
    placed = folder / "copy@2/toy6" / good["placement"]
    placed.write_bytes(gzip.compress((TOY / "optimum.plc").read_bytes()))
    with pytest.raises(DesignError, match=r"seed0\.plc\.gz differs from the file that was scored"):
        check(folder)
    placed.unlink()
    check(folder)
    assert "1 results without a placement" in capsys.readouterr().out


def test_the_page_is_written_from_results_of_many_folders(smoke: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    write_page(smoke, page)
    text = page.read_text()
    assert text.startswith("# Benchmark\n") and "## smoke, version 1, test" in text
    with pytest.raises(DesignError, match="contains no results"):
        write_page(tmp_path / "empty", page)
    assert page.read_text() == text


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "seed0.json").write_text("{}")
    with pytest.raises(DesignError, match=r"seed0\.json: not a benchmark result: it has no schema, suite"):
        write_page(tmp_path, tmp_path / "page.md")


def test_nothing_runs_once_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during the first run: no result, no running program, and the same command runs it."""

    def stop(words: list[str], folder: Path, stopped: threading.Event, **limits: float) -> None:
        stopped.set()

    config = BenchmarkConfig(
        suite="smoke", designs=("toy6",), placers=(), commands=(COPY, OPTIMUM), seeds=1, out=str(tmp_path), plots=False
    )
    with monkeypatch.context() as patch:
        patch.setattr(running, "run_process", stop)
        with pytest.raises(KeyboardInterrupt):
            command.benchmark(config, Console(quiet=True))
    assert not read_results(tmp_path)
    command.benchmark(config, Console(quiet=True))
    assert len(read_results(tmp_path)) == 2


def test_results_of_missing_public_designs_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "path" / "nvdla"
    shutil.copytree(TOY, own)
    monkeypatch.setenv("PLACEMENT_PATH", str(tmp_path / "path"))
    words = ["designs=nvdla", "placers=[]", "seeds=1", f"out={tmp_path / 'out'}", "plots=false"]
    assert main(["benchmark", "public", *words, "--commands", COPY]) == 0
    check(tmp_path / "out")
    assert "1 placements checked, 0 results without a placement, 0 wrong" in capsys.readouterr().out
    shutil.copy(own / "optimum.plc", own / "initial.plc")
    check(tmp_path / "out")
    output = capsys.readouterr().out
    assert (
        "skipped: nvdla: was scored on a different version of the design" in output and "0 placements checked" in output
    )
    shutil.rmtree(own)
    check(tmp_path / "out")
    assert "skipped: nvdla: is missing; import it" in capsys.readouterr().out
