"""Critical wires as nets: which they are and what they weigh, and cells that they pull together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placement.flat.critical_wires import LATENESS, MARGIN, MOST_WEIGHT, with_critical_wires
from placement.flat.flat_evaluator import FlatEvaluator
from placement.flat.timing import TimingEvaluator
from placement.netlist.importing import import_flat
from tests.flat.test_timing import SDC, chip

PERIOD = 75.0


def weights(tmp_path: Path, period: float) -> tuple[dict[tuple[str, str], float], dict[str, float], TimingEvaluator]:
    """The weight of each critical wire by the names of its cells, the slack of each endpoint, and the evaluator."""
    timing, flat = chip(tmp_path, sdc=SDC.replace("period 200", f"period {period:g}"))
    evaluator = TimingEvaluator(timing, flat)
    longer, before = with_critical_wires(evaluator, flat.placement), flat.netlist
    assert (longer.net_start[: before.num_nets + 1] == before.net_start).all()
    new = range(before.num_nets, longer.num_nets)
    pins = [longer.net_pins[longer.net_start[net] : longer.net_start[net + 1]] for net in new]
    names = [tuple(before.names[node] for node in longer.pin_node[two]) for two in pins]
    found = evaluator.evaluate(flat.placement)
    slack = {
        timing.pin_name(pin, flat): float(one) for pin, one in zip(found.endpoint, found.slack_at_end, strict=True)
    }
    return dict(zip(names, longer.net_weight[before.num_nets :].tolist(), strict=True)), slack, evaluator


def test_a_wire_weighs_what_its_critical_paths_do(tmp_path: Path) -> None:
    found, slack, _ = weights(tmp_path, PERIOD)
    second, ram, out = ((MARGIN - slack[end] / PERIOD) / LATENESS for end in ("second/D", "ram/D[0]", "out"))
    assert min(second, ram) > 0 and second + ram < MOST_WEIGHT
    shared = pytest.approx(second + ram, rel=1e-5)
    assert found[("first", "one")] == shared and found[("one", "two")] == shared
    assert found[("two", "second")] == pytest.approx(second, rel=1e-5)
    assert found[("two", "ram")] == pytest.approx(ram, rel=1e-5)
    assert (("second", "out") in found) == (out > 0)
    assert ("ram", "third") in found


def test_no_wire_weighs_more_than_the_most_and_none_without_critical_paths(tmp_path: Path) -> None:
    assert max(weights(tmp_path, 20)[0].values()) == MOST_WEIGHT
    found, _, evaluator = weights(tmp_path, 1000)
    assert not found
    assert with_critical_wires(evaluator, evaluator.flat.placement) is evaluator.flat.netlist


def test_they_pull_their_cells_together(tmp_path: Path) -> None:
    _, _, timing = weights(tmp_path, 40)
    flat = timing.flat
    imported = import_flat(flat)
    none = np.full(flat.netlist.num_nodes, -1, dtype=np.int32)
    plain, driven = (
        FlatEvaluator(flat, none, imported.design, timing=one).evaluate(imported.design.initial)
        for one in (None, timing)
    )
    assert driven.dense.wirelength == plain.dense.wirelength  # timing does not change where dense cells begin
    assert driven.spread.converged and driven.spread.wirelength != plain.spread.wirelength
    slack = [timing.evaluate(one.spread.placement).tns for one in (plain, driven)]
    assert slack[1] > slack[0]
