"""The Ariane RISC-V core: costs computed by the open evaluator (MacroPlacement, BSD-3), fourteen placements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from placement.engine.costs import legality, proxy_cost
from placement.netlist.design import Design, Netlist
from placement.netlist.formats.plc import read_placement
from placement.netlist.formats.protobuf import read_netlist

REFERENCE = ("legalized.plc", "initial.plc")
CASES = tuple(f"golden/case_{number}.plc" for number in range(100, 112))
PARTS = ("wirelength", "wirelength_cost", "density_cost", "congestion_cost")


@pytest.fixture(scope="module")
def netlist(ariane_folder: Path) -> Netlist:
    return read_netlist(ariane_folder / "netlist.pb.txt.gz")


@pytest.fixture(scope="module")
def golden(ariane_folder: Path) -> dict[str, dict[str, float]]:
    values = json.loads((ariane_folder / "golden.json").read_text())
    result = {name: values[name]["open_evaluator"] for name in REFERENCE}
    for case in json.loads((ariane_folder / "golden" / "costs.json").read_text()):
        result["golden/" + case["placement"]] = case
    return result


@pytest.mark.parametrize("name", REFERENCE + CASES)
def test_all_parts_agree(name: str, ariane_folder: Path, netlist: Netlist, golden: dict) -> None:
    design = Design(name, netlist, *read_placement(ariane_folder / name, netlist))
    costs = proxy_cost(design)
    # The values of the reference placements have ten digits, those of the cases have all.
    tolerance = 1e-9 if name in REFERENCE else 2e-12
    for part in PARTS:
        assert getattr(costs, part) == pytest.approx(golden[name][part], rel=tolerance), part
    expected = costs.wirelength_cost + 0.5 * costs.density_cost + 0.5 * costs.congestion_cost
    assert costs.total == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("name", "outside"), [("legalized.plc", 0), ("initial.plc", 18)])
def test_legality_of_the_reference_placements(name: str, outside: int, ariane_folder: Path, netlist: Netlist) -> None:
    design = Design(name, netlist, *read_placement(ariane_folder / name, netlist))
    assert legality(design) == (0, outside)
