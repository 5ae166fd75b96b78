"""`import` and `export` as commands: folders are written whole or not at all, rejections take one line, round trips
work.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.made_chip import Options, write_chip
from placement.cli.import_command import ImportConfig
from placement.cli.main import main
from placement.cli.options import settings
from placement.engine.costs import violations
from placement.netlist.clustering import cluster
from placement.netlist.clustering.partition import _even
from placement.netlist.flat_design import read_flat
from placement.netlist.formats.def_file import PlacementStatus, read_def
from placement.netlist.formats.plc import read_canvas, read_placement, write_placement
from placement.netlist.importing import ChipFiles, read_chip
from placement.netlist.load import CLUSTERS_NAME, DEF_NAME, PICTURE_NAME, SOURCE_NAME, load, read_clusters
from tests.support.array_chip import array_flat
from tests.support.small_lef_def import DEF, LEF

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "netlist.pb.txt.gz",
    "initial.plc",
    "constraints.json",
    "flat.npz",
    CLUSTERS_NAME,
    SOURCE_NAME,
    DEF_NAME,
    PICTURE_NAME,
}


@pytest.fixture(scope="module")
def chip(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_chip(tmp_path_factory.mktemp("chip"), Options(cells=400, macros=6, ports=12))


@pytest.fixture(scope="module")
def folder(chip: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of the imported chip."""
    out = tmp_path_factory.mktemp("designs") / "chip"
    assert run("import", "--lef", chip[0], "--def", chip[1], "--out", out, "--clusters", 10) == 0
    return out


def run(*words: object) -> int:
    return main([str(word) for word in words])


def placed(folder: Path, path: Path) -> Path:
    """Writes a placement of the design with its macros in a row as a `.plc` file."""
    design = load(folder)
    macros = design.netlist.hard
    x = np.cumsum(design.netlist.width[macros]) - design.netlist.width[macros] / 2
    placement = design.initial.moved(macros, x / 3 + 20, np.linspace(20, design.canvas.height - 20, len(macros)))
    write_placement(path, design, placement)
    return path


def test_the_folder_holds_the_design_and_a_picture(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == FILES
    assert [path.name for path in folder.parent.iterdir()] == ["chip"]
    design = load(folder)
    assert (len(design.netlist.hard), len(design.netlist.ports)) == (6, 13)
    clusters = read_clusters(folder)
    assert clusters.max() + 1 == len(design.netlist.soft)
    source = json.loads((folder / SOURCE_NAME).read_text())
    assert [file["name"] for file in source["files"]] == ["chip.lef", "chip.def"]
    assert str(folder.parent) not in (folder / SOURCE_NAME).read_text()
    with Image.open(folder / PICTURE_NAME) as picture:
        assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 20


def test_the_table_says_what_was_read(chip: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("import", "--lef", chip[0], "--def", chip[1], "--out", tmp_path / "d", "--columns", 12, "--rows", 9) == 0
    output = capsys.readouterr().out
    for phase in ("reading", "grid and routing capacity", "clustering", "clustered netlist", "picture", "writing"):
        assert any(line.startswith(phase) and line.endswith(" s") for line in output.splitlines()), phase
    for text in ("400 (0 placed)", "6 (0 placed, 0 fixed)", "12 × 9 gcells", "nets by pins", "met2", "ports", "13"):
        assert text in output, text


def test_constraints_are_those_of_the_options(chip: tuple[Path, Path], tmp_path: Path) -> None:
    words = ("--halo", 2, "--halo", "core/u1/*=4,3,2,1", "--blockage", "30,30,40,50", "--port-keepout", 1.5)
    words += ("--region", "low:core/u2/*,core/u3/*:28,28,90,60", "--snap", "0.5,0.25")
    assert run("import", "--lef", chip[0], "--def", chip[1], "--out", tmp_path / "d", "--clusters", 4, *words) == 0
    design = load(tmp_path / "d")
    constraints, names = design.constraints, design.netlist.names
    halos = {names[node]: tuple(constraints.halo[node].tolist()) for node in design.netlist.hard}
    assert halos["core/u1/mem[1]"] == (4, 3, 2, 1) and halos["core/u0/mem[0]"] == (2, 2, 2, 2)
    # The core starts ten rows of 2.72 µm inside the die.
    np.testing.assert_allclose(constraints.blockages, [[2.8, 2.8, 12.8, 22.8]])
    assert [names[node] for node in constraints.regions[0].nodes] == ["core/u2/mem[2]", "core/u3/mem[3]"]
    assert (constraints.port_keepout, constraints.grid.pitch_x, constraints.grid.pitch_y) == (1.5, 0.5, 0.25)


def test_an_existing_folder_is_kept_unless_forced(chip: tuple[Path, Path], tmp_path: Path, capsys) -> None:
    out = tmp_path / "design"
    words = ("import", "--lef", chip[0], "--def", chip[1], "--out", out, "--clusters", 4)
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    for name in ("source.pl.gz", "timing.npz"):
        (out / name).write_text("of an older import")
    assert run(*words) == 2
    printed = capsys.readouterr().err
    assert "not empty; --force" in printed and printed.count("\n") == 1
    assert run(*words, "--force") == 0
    assert {path.name for path in out.iterdir()} == FILES | {"notes.txt"}
    assert (out / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no netlist is given"),
        (["--def", "chip.def"], "def needs the sizes of its masters"),
        (["--protobuf", "a.pb.txt"], "protobuf needs a floorplan"),
        (["--bookshelf", "a.aux", "--lef", "a.lef"], "a Bookshelf design is complete"),
        (["--lef", "a.lef", "--def", "b.def", "--clusters", "0"], "clusters=0: must be a whole number of at least 1"),
        (["--lef", "a.lef", "--def", "b.def", "--columns", "x"], "columns='x': must be of type int"),
        (["--lef", "a.lef", "--def"], "--def: needs a value"),
        (["--bookshelf", "a.aux", "--halo", "5,x"], "halo=5,x: must be 1, 2 (x, y) or 4 numbers"),
        (
            ["--bookshelf", "a.aux", "--halo", "5", "--halo", "3"],
            "halo=5, 3: is given 2 times for all macros",
        ),
        (["--bookshelf", "a.aux", "halo=5,3", "blockage=5,5,1,9"], "blockage=5,5,1,9: the rectangle"),
        (["--bookshelf", "a.aux", "region=left:a,b:0,0,5"], "region left=0,0,5: must be x_low"),
        (["--bookshelf", "a.aux", "--halo", "mem*=-1"], "halo=mem*=-1: must be at least 0 µm"),
        (["--bookshelf", "a.aux", "--halo", "1,2,3"], "halo=1,2,3: must be 1, 2 (x, y) or 4 numbers"),
        (["--bookshelf", "a.aux", "--halo", "nan"], "halo=nan: must be at least 0 µm, and finite"),
        (["--bookshelf", "a.aux", "--blockage", "5,5,1,9"], "blockage=5,5,1,9: the rectangle"),
        (["--bookshelf", "a.aux", "--region", "left:0,0,5,5"], "must be NAME:MACROS:x_low"),
        (["--bookshelf", "a.aux", "--array", "block"], "array=block: must be NAME:MACROS, NAME:MACROS:COLUMNS or"),
        (["--bookshelf", "a.aux", "--array", "block:ram*:two"], "array=block:ram*:two: must be NAME:MACROS,"),
        (["--bookshelf", "a.aux", "--array", "block:ram*:0"], "array=block:ram*:0: COLUMNS must be at least 1"),
        (["--bookshelf", "a.aux", "--array", "block:ram*:2:x"], "array block: gap=x: must be one number, or two"),
        (["--bookshelf", "a.aux", "--array", "block:ram*:2:1:1"], "array=block:ram*:2:1:1: must be NAME:MACROS,"),
        (["--bookshelf", "a.aux", "--snap", "coarse"], "snap=coarse: must be one of manufacturing, tracks, none"),
        (["--lef", "a.lef", "--dfe", "b.def"], "unknown setting 'dfe'."),
        (["chip.def"], "'chip.def' is not a setting; give key=value or --key value"),
        (["--lef", "none.lef", "--def", "b.def"], "none.lef: cannot be read"),
    ],
)
def test_mistakes_end_in_one_line_and_write_nothing(words, message, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("import", *words, "--out", "d") == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lef", "a.lef", "--def", "b.def", "--out", "file/x"], "out=file/x: "),
        (["--lef", "a.lef", "def=b.def", "--out", "file/x/y"], "out=file/x/y: "),
    ],
)
def test_folders_that_cannot_be_created_are_rejected_first(words, message, tmp_path, monkeypatch, capsys) -> None:
    """Rejected before anything is read: there is no a.lef."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    assert run("import", *words) == 2
    printed = capsys.readouterr().err
    assert f"{message}cannot be written: {tmp_path / 'file'} is a file" in printed and printed.count("\n") == 1


def test_a_setting_behind_a_list_is_a_setting() -> None:
    words = ["--lef", "a.lef", "b=1.lef", "seed", "out=d", "--halo", "1", "mem*=2", "def=a.def"]
    assert settings(words, ImportConfig) == {
        "lef": ["a.lef", "b=1.lef", "seed"],
        "out": "d",
        "halo": ["1", "mem*=2"],
        "def_": "a.def",
    }


def test_notices_lose_folders_and_nothing_else(tmp_path: Path, monkeypatch) -> None:
    """The folder `mem/` is also a part of the cells' names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mem").mkdir()
    nodes = [f"mem/u{number} 2 10" for number in range(20)]
    files = {
        "nodes": "\n".join(("NumNodes : 22", "NumTerminals : 1", "mem/ram 20 30", *nodes, "p 1 1 terminal", "")),
        "nets": "".join(f"NetDegree : 2 n{number}\n mem/u{number} O\n mem/ram I\n" for number in range(20)),
        "wts": "other 1\n",
    }
    for suffix, text in files.items():
        (tmp_path / "mem" / f"d.{suffix}").write_text(text)
    (tmp_path / "mem/d.aux").write_text("RowBasedPlacement : d.nodes d.nets d.wts")
    notices = read_chip(ChipFiles(bookshelf="mem/d.aux")).flat.notices
    assert "d.wts: 1 weights are not for nets and are ignored" in notices


def test_lef_and_def_files_are_read_once(tmp_path: Path, monkeypatch) -> None:
    """A file may be a pipe, or change meanwhile: the stored content is the one that was read."""
    opened: list[str] = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: opened.append(self.name) or read(self))
    (tmp_path / "a.lef").write_text(LEF)
    (tmp_path / "a.def").write_text(DEF)
    chip = read_chip(ChipFiles(lef=[tmp_path / "a.lef"], def_=tmp_path / "a.def"))
    assert opened == ["a.lef", "a.def"]
    assert (chip.def_data, chip.positions_data) == (DEF.encode(), None)
    assert [source.sha256 for source in chip.flat.sources] == [
        hashlib.sha256(text.encode()).hexdigest() for text in (LEF, DEF)
    ]


def test_bookshelf_files_are_read_once(tmp_path: Path, monkeypatch) -> None:
    files = {
        "d.aux": "RowBasedPlacement : d.nodes d.nets d.pl",
        "d.nodes": "a 2 2\nb 2 2\np 1 1 terminal\n",
        "d.nets": "NetDegree : 2\na I\nb O\nNetDegree : 2\nb I\np O\n",
        "d.pl": "a 0 0\nb 4 4\np 0 8 : N /FIXED\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    opened: list[str] = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: opened.append(self.name) or read(self))
    chip = read_chip(ChipFiles(bookshelf=tmp_path / "d.aux"))
    assert opened == list(files)
    assert (chip.def_data, chip.positions_data) == (None, files["d.pl"].encode())
    assert {source.name: source.sha256 for source in chip.flat.sources} == {
        name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()
    }


def test_the_plc_of_an_import_is_read_once(tmp_path: Path, monkeypatch) -> None:
    write_placement(tmp_path / "c.plc", load("toy6"), load("toy6").initial)
    data = (tmp_path / "c.plc").read_bytes()
    opened: list[str] = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: opened.append(self.name) or read(self))
    canvas, source = read_canvas(tmp_path / "c.plc")
    assert canvas == load("toy6").canvas
    assert opened.count("c.plc") == 1
    assert (source.name, source.sha256) == ("c.plc", hashlib.sha256(data).hexdigest())


def test_files_that_are_wrong_write_nothing(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "a.lef").write_text(LEF)
    (tmp_path / "a.def").write_text(DEF.replace("u1 INV", "u1 NAND").replace("u2 INV", "u2 NOR"))
    assert run("import", "--lef", tmp_path / "a.lef", "--def", tmp_path / "a.def", "--out", tmp_path / "d") == 2
    printed = capsys.readouterr().err
    assert "2 masters that no LEF file defines: NAND, NOR (line 23)" in printed and "a.def:22" in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.def", "a.lef"]


def test_an_interrupted_import_leaves_nothing(chip, tmp_path, monkeypatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("placement.netlist.importing.write_flat", interrupted)
    assert run("import", "--lef", chip[0], "--def", chip[1], "--out", tmp_path / "d") == 130
    assert list(tmp_path.iterdir()) == []


# Processes that a shell starts with & ignore Ctrl-C, and so do their children.
IMPORT_THAT_HEARS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from placement.cli.main import main
sys.exit(main())
"""


@pytest.mark.slow
def test_ctrl_c_ends_an_import_that_clusters(tmp_path: Path) -> None:
    """The partitioner ignores Ctrl-C: it runs in a process that is ended."""
    lef, chip = write_chip(tmp_path / "made", Options(cells=30_000, macros=6, ports=12))
    words = [
        "-u",
        "-c",
        IMPORT_THAT_HEARS,
        "import",
        "--lef",
        str(lef),
        "--def",
        str(chip),
        "--out",
        "d",
    ]
    process = subprocess.Popen(
        [sys.executable, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("grid and routing capacity"):
                break
        os.killpg(process.pid, signal.SIGINT)
        try:
            _, output = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:  # observed once: a signal between two phases was lost, so it is sent again
            os.killpg(process.pid, signal.SIGINT)
            _, output = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=30)
    assert (process.returncode, output) == (130, "")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_export_as_def_and_back(folder: Path, chip: tuple[Path, Path], tmp_path: Path) -> None:
    plc = placed(folder, tmp_path / "best.plc")
    out = tmp_path / "placed.def"
    assert run("export", folder, plc, "--format", "def", "--out", out) == 0
    before, after = chip[1].read_text().splitlines(), out.read_text().splitlines()
    changed = [number for number, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
    assert len(changed) == 6 and all("RAM" in before[number] for number in changed)
    theirs = read_def(out).components
    assert (theirs.status == PlacementStatus.FIXED).sum() == 6
    # The core's offset, computed by hand: lower left corners are 10 rows further right and up than on the canvas.
    design = load(folder)
    placement = read_placement(plc, design.netlist)[1]
    flat = read_flat(folder)
    first = design.netlist.hard[0]
    offset = 10 * 2.72
    at = theirs.names.index(design.netlist.names[first])
    expected = placement.x[first] - design.netlist.width[first] / 2 + offset
    assert theirs.x[at] == round(expected * flat.floorplan.units)
    # Imported and exported again: the same bytes.
    assert run("export", folder, out, "--out", tmp_path / "again.def.gz") == 0
    assert read_def(tmp_path / "again.def.gz").data == out.read_bytes()


def test_arrays_the_whole_way(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Imports, searches, evaluates fully, exports, and reads again."""
    array_flat(tmp_path)
    out, files = tmp_path / "design", ("--lef", tmp_path / "banks.lef", "--def", tmp_path / "banks.def")
    assert run("import", *files, "--out", out, "--array", "block:bank*:4:1,0", "--banks", "true", "--clusters", 2) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "macros by size │ 1 of 43 × 6 µm, 1 of 10 × 12 µm, 1 of 10 × 6 µm │" in output
    assert "arrays │ 2 of 2 to 4 macros, 6 macros in total" in output
    words = (f"design={out}", "method=anneal", "moves=2000", "cost=proxy", "plots=false", f"out={tmp_path / 'found'}")
    assert run("search", *words) == 0
    plc = tmp_path / "found" / "placement.plc"
    assert run("export", out, plc, "--out", tmp_path / "placed.def") == 0
    components = read_def(tmp_path / "placed.def").components
    at = {name: (components.x[number], components.y[number]) for number, name in enumerate(components.names)}
    bank = np.array([at[f"bank[{number}]"] for number in range(4)])
    # In one row, 11 µm apart, in any order and orientation.
    across, up = (np.sort(bank[:, axis]) - bank[:, axis].min() for axis in (0, 1))
    assert sorted((across.tolist(), up.tolist())) == [[0, 0, 0, 0], [0, 11000, 22000, 33000]]
    capsys.readouterr()
    assert run("evaluate", f"design={out}", f"placement={tmp_path / 'placed.def'}", "full=true", "json=true",
               f"out={tmp_path / 'checked'}") == 0  # fmt: skip
    values = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert values["flat_converged"] and values["overlaps"] == values["outside"] == 0
    assert run("export", out, tmp_path / "placed.def", "--out", tmp_path / "again.def") == 0
    assert (tmp_path / "again.def").read_bytes() == (tmp_path / "placed.def").read_bytes()


@pytest.mark.parametrize("form", ["openroad", "innovus", "icc2", "csv", "plc", "protobuf"])
def test_every_other_format_names_every_macro(form: str, folder: Path, tmp_path: Path) -> None:
    plc = placed(folder, tmp_path / "best.plc")
    assert run("export", folder, plc, "--format", form, "--out", tmp_path / "file") == 0
    text = (tmp_path / "file").read_text()
    if form == "plc":
        assert (
            read_placement(tmp_path / "file", load(folder).netlist)[1] == read_placement(plc, load(folder).netlist)[1]
        )
    else:
        plain = text.replace("\\", "")
        assert all(load(folder).netlist.names[node] in plain for node in load(folder).netlist.hard)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{folder}", "--out", "x"], "the macros of chip are unplaced"),
        (["{folder}", "none.plc", "--out", "x"], "placement=none.plc: no such file"),
        (["{folder}", "{folder}", "--out", "x"], "chip: is a folder; did you mean placement="),
        (["{folder}", "best.plc", "--out", "best.plc"], "out=best.plc: already exists"),
        (["{folder}", "best.plc", "--format", "gds", "--out", "x"], "format='gds': must be one of def,"),
        (["{folder}", "best.plc", "--format", "bookshelf", "--out", "x"], "was not imported from a Bookshelf design"),
        (["toy6", "--format", "openroad", "--out", "x"], "has no flat netlist (flat.npz)"),
        (["{folder}", "best.plc"], "out: is required"),
    ],
)
def test_exports_that_cannot_be_end_in_one_line(words, message, folder, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    placed(folder, tmp_path / "best.plc")
    assert run("export", *[word.format(folder=folder) for word in words]) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["best.plc"]


def test_channels_are_imported_kept_and_named(chip: tuple[Path, Path], tmp_path: Path, capsys) -> None:
    out = tmp_path / "chip"
    words = ("--lef", chip[0], "--def", chip[1], "--clusters", 10)
    assert run("import", *words, "--out", out, "--channel", "12,10") == 0
    design = load(out)
    assert design.constraints.channel == (12.0, 10.0)
    plc = placed(out, tmp_path / "row.plc")
    capsys.readouterr()
    assert run("evaluate", f"design={out}", f"placement={plc}", "json=true") == 0
    printed = capsys.readouterr().out
    count = json.loads(printed.splitlines()[-1])["channel_violations"]
    assert count == violations(design, read_placement(plc, design.netlist)[1]).channels > 0
    assert "less than a channel of 1" in printed
    assert run("search", f"design={out}", "time=1", f"out={tmp_path / 'found'}") == 0
    found = json.loads((tmp_path / "found" / "metrics.json").read_text())
    assert found["channel_violations"] == found["overlaps"] == 0
    assert run("import", *words, "--out", tmp_path / "wrong", "--channel", "12,x") == 2
    assert "channel=12,x: must be one number, or two with a comma" in capsys.readouterr().err


def test_commands_take_a_def_file(folder: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    plc = placed(folder, tmp_path / "best.plc")
    assert run("export", folder, plc, "--out", "placed.def.gz") == 0
    capsys.readouterr()
    assert run("evaluate", f"design={folder}", "placement=placed.def.gz", "out=measured") == 0
    printed = capsys.readouterr()
    assert "places no standard cells: soft macros are placed by analytic" in printed.err
    assert "soft macros: placed by analytic" in printed.out
    wirelengths = []
    for file in ("placed.def.gz", plc):  # both place the same macros
        assert run("evaluate", f"design={folder}", f"placement={file}", "soft_placer=analytic", "json=true") == 0
        printed = capsys.readouterr().out
        assert "soft macros: placed by analytic" in printed
        wirelengths.append(json.loads(printed.splitlines()[-1])["wirelength"])
    assert wirelengths[0] == pytest.approx(wirelengths[1], rel=1e-2), "placed alike, they are compared alike"
    assert run("evaluate", f"design={folder}", f"placement={plc}") == 0
    assert "soft macros: as in best.plc" in capsys.readouterr().out
    design = load(folder)
    ours, theirs = (read_placement(path, design.netlist)[1] for path in (plc, Path("measured/placement.plc")))
    macros = design.netlist.hard
    np.testing.assert_allclose(ours.x[macros], theirs.x[macros], atol=0.5 / 1000)
    assert run("legalise", f"design={folder}", "placement=placed.def.gz", "out=legal") == 0
    assert run("search", f"design={folder}", "placement=placed.def.gz", "moves=2000", "out=found") == 0


def test_a_search_without_places_begins_with_its_own(folder: Path, tmp_path: Path, capsys) -> None:
    assert run("search", f"design={folder}", "method=refine", "moves=2000", f"out={tmp_path / 'found'}") == 0
    assert "the macros of chip are unplaced: the search uses its own" in capsys.readouterr().out
    assert json.loads((tmp_path / "found/metrics.json").read_text())["overlaps"] == 0


def test_cells_that_a_def_places_place_the_soft_macros(tmp_path: Path, capsys) -> None:
    lef, chip = write_chip(tmp_path / "made", Options(cells=300, macros=4, ports=8, placed=True))
    out = tmp_path / "design"
    assert run("import", "--lef", lef, "--def", chip, "--out", out, "--clusters", 6) == 0
    full = tmp_path / "full.def"
    assert run("export", out, placed(out, tmp_path / "best.plc"), "--out", full) == 0
    capsys.readouterr()
    assert run("evaluate", f"design={out}", f"placement={full}", f"out={tmp_path / 'measured'}") == 0
    printed = capsys.readouterr()
    assert "soft macros are placed" not in printed.err
    assert "soft macros: at the centres of their cells in full.def" in printed.out
    design = load(out)
    theirs = read_placement(tmp_path / "measured/placement.plc", design.netlist)[1]
    np.testing.assert_allclose(theirs.x[design.netlist.soft], design.initial.x[design.netlist.soft])


@pytest.mark.slow
def test_published_placements_come_back_bit_for_bit(
    tmp_path: Path, real: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Round trip through the canvas coordinates by the commands; cells, which do not matter, are in any clusters."""
    monkeypatch.setattr(cluster, "partition", lambda *_, fixed, parts, **__: _even(fixed, parts))
    netlist, floorplan = real("ariane133_ng45_flat/netlist.pb.txt.gz"), real("ariane133_ng45_68/floorplan.def.gz")
    design = tmp_path / "ariane"
    files = ("--protobuf", netlist, "--def", floorplan)
    assert run("import", *files, "--out", design, "--clusters", 8, "--positions", "false") == 0
    empty = read_def(floorplan)
    for path in sorted(floorplan.parent.glob("placed/*.def.gz")):
        assert run("export", design, path, "--format", "plc", "--out", tmp_path / "a.plc", "--force") == 0
        assert run("export", design, tmp_path / "a.plc", "--format", "def", "--out", tmp_path / "a.def", "--force") == 0
        theirs, ours = read_def(path).components, read_def(tmp_path / "a.def")
        order = [ours.components.names.index(name) for name in theirs.names]
        for column in ("x", "y", "orientation"):
            np.testing.assert_array_equal(getattr(ours.components, column)[order], getattr(theirs, column), path.name)
        assert (ours.components.status == PlacementStatus.FIXED).all()
        changed = set(empty.data.split(b"\n")) - set(ours.data.split(b"\n"))
        assert len(changed) == len(theirs.names) == 133
