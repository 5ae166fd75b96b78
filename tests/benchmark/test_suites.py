"""Frozen suites: their designs, the checksums that detect changes, and the message for a missing design."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from placement.benchmark.suites import SuiteDesign, content_checksum, design_path, generated, read_suite, suite_names
from placement.engine.costs import violations
from placement.netlist.errors import DesignError
from placement.netlist.load import data_folder, load
from placement.netlist.public_designs import PUBLIC_DESIGNS

SMALL = read_suite("synthetic").designs[0]
RULED = read_suite("synthetic").designs[1]


def test_the_suites_that_come_with_the_project() -> None:
    assert suite_names() == ["public", "smoke", "synthetic"]
    assert [len(read_suite("synthetic").chosen(split)) for split in ("train", "validation", "test")] == [24, 6, 16]
    sizes = [one.options["hard"] for one in read_suite("synthetic").chosen("test")]
    assert (min(sizes), max(sizes)) == (20, 1000)
    assert {one.options["rent_exponent"] for one in read_suite("synthetic").chosen("test")} == {0.55, 0.7, 0.9}
    assert {one.name for one in read_suite("public").designs} >= set(PUBLIC_DESIGNS)


def test_no_seed_is_in_two_splits() -> None:
    seeds = [one.options["seed"] for one in read_suite("synthetic").designs]
    assert len(set(seeds)) == len(seeds) == 46


@pytest.mark.parametrize("one", [SMALL, RULED], ids=lambda one: one.name)
def test_a_generated_design_is_the_frozen_one_also_from_its_folder(one: SuiteDesign, tmp_path: Path) -> None:
    path = design_path(one, tmp_path)
    assert path == tmp_path / one.name
    assert content_checksum(load(path)) == content_checksum(generated(one)) == one.checksum


def test_every_other_design_has_constraints() -> None:
    assert not generated(SMALL).constraints.any
    kept = generated(RULED).constraints
    assert kept.halo.max() == 1.0 and kept.grid.pitch_x == 0.2 and len(kept.blockages) == 1
    assert any(violations(generated(RULED))), "the generator packs macros into the corner that is blocked"


@pytest.mark.parametrize("field", ["initial", "netlist", "constraints"])
def test_the_checksum_sees_every_change(field: str) -> None:
    design = generated(RULED)
    if field == "initial":
        macro = design.placing_order[:1]
        changed: object = design.initial.moved(macro, design.initial.x[macro] + 0.01, design.initial.y[macro])
    elif field == "netlist":
        pins = design.netlist.net_pins.copy()
        pins[:2] = pins[1::-1]
        changed = dataclasses.replace(design.netlist, net_pins=pins)
    else:
        changed = dataclasses.replace(design.constraints, halo=design.constraints.halo * np.float64(1.01))
    assert content_checksum(dataclasses.replace(design, **{field: changed})) != content_checksum(design)


def test_a_design_that_drifted_is_rejected(tmp_path: Path) -> None:
    other = dataclasses.replace(SMALL, options={**SMALL.options, "seed": 1})
    with pytest.raises(DesignError, match=rf"{SMALL.name}: differs from the design in the suite.*{SMALL.checksum}"):
        design_path(other, tmp_path)


def test_a_missing_public_design_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLACEMENT_PATH", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    suite = {one.name: one for one in read_suite("public").designs}
    with pytest.raises(DesignError, match="macro-placement fetch ct_ariane downloads it"):
        design_path(suite["ct_ariane"], tmp_path)
    with pytest.raises(DesignError, match=r"nvdla: is missing; import it \(docs/import.md\) to a folder"):
        design_path(suite["nvdla"], tmp_path)


def test_a_public_design_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(data_folder("netlists") / "toy6", tmp_path / "nvdla")
    monkeypatch.setenv("PLACEMENT_PATH", str(tmp_path))
    one = next(one for one in read_suite("public").designs if one.name == "nvdla")
    assert design_path(one, tmp_path / "made") == tmp_path / "nvdla"
    (tmp_path / "nvdla" / "initial.plc").unlink()
    with pytest.raises(DesignError, match=r"has no initial\.plc in its folder"):
        design_path(one, tmp_path / "made")


def test_an_imported_design_must_be_made_of_the_frozen_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(data_folder("netlists") / "toy6", tmp_path / "chip")
    monkeypatch.setenv("PLACEMENT_PATH", str(tmp_path))
    one = SuiteDesign("chip", "public", sources=("aa", "bb"))
    with pytest.raises(DesignError, match=r"source\.json"):
        design_path(one, tmp_path / "made")
    source = tmp_path / "chip" / "source.json"
    names = {"bb": "chip.def", "cc": "chip.lef", "aa": "chip.v"}
    source.write_text(json.dumps({"files": [{"name": name, "sha256": key} for key, name in names.items()]}))
    assert design_path(one, tmp_path / "made") == tmp_path / "chip"
    with pytest.raises(DesignError, match=r"none of chip\.def, chip\.lef, chip\.v has the SHA-256 dd"):
        design_path(dataclasses.replace(one, sources=("aa", "dd")), tmp_path / "made")
    source.write_text("{}")
    with pytest.raises(DesignError, match="does not list the files of an import"):
        design_path(one, tmp_path / "made")


def test_a_suite_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    known = {"name": "mine", "version": 3, "about": "one", "time": 1, "designs": [{"name": "toy6", "kind": "built_in"}]}
    path.write_text(json.dumps(known))
    assert read_suite(str(path)).title == "mine-3"
    path.write_text(json.dumps({**known, "designs": [{"name": "toy6", "kind": "other"}]}))
    with pytest.raises(DesignError, match="toy6: kind 'other' must be one of built_in, clustered, public"):
        read_suite(str(path))
    for wrong, message in (
        ({"name": 7, "kind": "built_in"}, "7: the name must be a string"),
        ({"name": "a", "kind": "clustered", "options": None}, "'a': the name must be a string, and the options"),
        ({"name": "a", "kind": "public", "sources": "abc"}, "a: sources must be a list of SHA-256"),
    ):
        path.write_text(json.dumps({**known, "designs": [wrong]}))
        with pytest.raises(DesignError, match=message):
            read_suite(str(path))
    with pytest.raises(DesignError, match="a: options of the generator: "):
        generated(SuiteDesign("a", "clustered", options={"hard": 20, "colour": 1}))
    path.write_text("{}")
    with pytest.raises(DesignError, match="is not a suite file: 'designs'"):
        read_suite(str(path))
    with pytest.raises(DesignError, match="is neither one of public, smoke, synthetic nor a file"):
        read_suite("other")
