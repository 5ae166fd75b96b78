"""Critical wires as nets: their selection and weights, and cells that they pull together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placement.flat.critical_wires import LATENESS, MARGIN, MOST_WEIGHT, CriticalWires
from placement.flat.flat_evaluator import FlatEvaluator
from placement.flat.global_placement import CellPlacement
from placement.flat.legalisation import LegalCells
from placement.flat.problem import half_perimeter
from placement.flat.timing import TimingEvaluator
from placement.netlist.design import Netlist, Placement
from placement.netlist.importing import import_flat
from tests.flat.test_timing import SDC, chip

PERIOD = 75.0


def evaluator(tmp_path: Path, period: float) -> TimingEvaluator:
    return TimingEvaluator(*chip(tmp_path, sdc=SDC.replace("period 200", f"period {period:g}")))


def weights(critical: CriticalWires, before: Netlist) -> dict[tuple[str, str], float]:
    """Returns the weight of each critical wire, by the names of its cells."""
    after = critical.netlist()
    assert (after.net_start[: before.num_nets + 1] == before.net_start).all()
    ends = after.pin_node[after.net_pins[before.net_start[-1] :]].reshape(-1, 2).tolist()
    names = [(before.names[driver], before.names[driven]) for driver, driven in ends]
    return dict(zip(names, after.net_weight[before.num_nets :].tolist(), strict=True))


def test_a_wire_weighs_what_its_critical_paths_do(tmp_path: Path) -> None:
    timing = evaluator(tmp_path, PERIOD)
    flat, critical = timing.flat, CriticalWires(timing)
    estimate = timing.evaluate(flat.placement)
    assert critical.add(flat.placement) == pytest.approx(estimate.tns, rel=1e-5)
    found = weights(critical, flat.netlist)
    ends = zip(estimate.endpoint, estimate.slack_at_end, strict=True)
    slack = {timing.timing.pin_name(pin, flat): float(one) for pin, one in ends}
    second, ram, out = ((MARGIN - slack[end] / PERIOD) / LATENESS for end in ("second/D", "ram/D[0]", "out"))
    assert min(second, ram) > 0 and second + ram < MOST_WEIGHT
    assert found["first", "one"] == found["one", "two"] == pytest.approx(second + ram, rel=1e-5)
    assert found["two", "second"] == pytest.approx(second, rel=1e-5)
    assert found["two", "ram"] == pytest.approx(ram, rel=1e-5)
    assert (("second", "out") in found) == (out > 0)
    critical.add(flat.placement)
    assert weights(critical, flat.netlist)["two", "ram"] == pytest.approx(min(2 * ram, MOST_WEIGHT), rel=1e-5)


def test_no_wire_weighs_more_than_the_most_and_none_without_critical_paths(tmp_path: Path) -> None:
    timing = evaluator(tmp_path, 20)
    critical = CriticalWires(timing)
    critical.add(timing.flat.placement)
    assert max(weights(critical, timing.flat.netlist).values()) == MOST_WEIGHT
    critical = CriticalWires(evaluator(tmp_path, 1000))
    assert critical.add(timing.flat.placement) == 0 and not weights(critical, timing.flat.netlist)


def test_a_round_counts_if_it_has_less_negative_slack_and_is_hardly_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timing = evaluator(tmp_path, 20)
    flat = timing.flat
    none = np.full(flat.netlist.num_nodes, -1, dtype=np.int32)
    placer = FlatEvaluator(flat, none, import_flat(flat).design, timing=timing)
    near = flat.placement.moved(flat.cells, np.full(len(flat.cells), 20.0), np.full(len(flat.cells), 10.0))
    assert timing.evaluate(near).tns > timing.evaluate(flat.placement).tns
    monkeypatch.setattr(placer, "legalised", lambda cells: None)  # as without rows

    def chosen(before: Placement, after: Placement, longer: float) -> Placement:
        cells = CellPlacement(half_perimeter(flat.netlist, after) / longer, 0.0, True, 1, 1.0, before)
        found, legal = placer.legal_rounds(cells, lambda netlist: cells._replace(placement=after))
        assert found.seconds == 3.0 and legal is None  # both rounds count
        return found.placement

    assert chosen(flat.placement, near, 1.01) is near
    assert chosen(flat.placement, near, 1.03) is flat.placement
    assert chosen(near, flat.placement, 0.5) is near


@pytest.mark.parametrize(("keeps", "without_place"), [("slack", 0), ("wires", 0), ("slack", 1)])
def test_a_round_counts_by_its_legal_cells(
    keeps: str, without_place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timing = evaluator(tmp_path, 20)
    flat = timing.flat
    none = np.full(flat.netlist.num_nodes, -1, dtype=np.int32)
    placer = FlatEvaluator(flat, none, import_flat(flat).design, timing=timing)
    near = flat.placement.moved(flat.cells, np.full(len(flat.cells), 20.0), np.full(len(flat.cells), 10.0))
    far = flat.placement.moved(flat.cells, flat.placement.x[flat.cells] * 1.5, flat.placement.y[flat.cells])
    slack = [timing.evaluate(one).tns for one in (far, flat.placement, near)]
    assert slack == sorted(set(slack))
    legalised = []

    def legalise(cells: CellPlacement) -> LegalCells:
        """Moves the near cells far away unless `keeps` is slack."""
        driven = cells.placement is near
        legalised.append(driven)
        placement = far if driven and keeps == "wires" else cells.placement
        return LegalCells(placement, 1.0, without_place if driven else 0, 0.0, 0.0, seconds=0.5)

    monkeypatch.setattr(placer, "legalised", legalise)
    cells = CellPlacement(1.0, 0.0, True, 1, 1.0, flat.placement)
    found, legal = placer.legal_rounds(cells, lambda netlist: cells._replace(placement=near))
    kept = near if (keeps, without_place) == ("slack", 0) else flat.placement
    assert found.placement is kept and legal is not None and legal.placement is kept
    assert legalised == [False, True, True] and legal.seconds == 1.5  # each round once


def test_they_pull_their_cells_together(tmp_path: Path) -> None:
    timing = evaluator(tmp_path, 40)
    flat = timing.flat
    imported = import_flat(flat)
    none = np.full(flat.netlist.num_nodes, -1, dtype=np.int32)
    plain, driven = (
        FlatEvaluator(flat, none, imported.design, timing=one).evaluate(imported.design.initial)
        for one in (None, timing)
    )
    assert driven.dense.wirelength == plain.dense.wirelength  # timing does not move the starts of dense cells
    assert driven.spread.converged and driven.spread.wirelength != plain.spread.wirelength
    assert plain.legal is not None and driven.legal is not None
    slack = [timing.evaluate(one.placement).tns for one in (plain.legal, driven.legal)]
    assert slack[1] > slack[0]
