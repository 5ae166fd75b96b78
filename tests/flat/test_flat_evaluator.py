"""The full evaluation: where its cells begin, and its figures."""

from __future__ import annotations

import dataclasses
import itertools
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

from placement.annealing.finishing import anneal_for_full_evaluation
from placement.flat import flat_evaluator, global_placement
from placement.flat.correspondence import core_of, macros_on_flat
from placement.flat.electrostatic import PlacerSettings
from placement.flat.flat_evaluator import FlatEvaluator
from placement.flat.global_placement import CellPlacement, place_cells
from placement.netlist.errors import DesignError
from placement.netlist.generators.flat import FlatOptions, flat_on_floorplan
from placement.netlist.importing import ImportedDesign, import_flat
from placement.netlist.pdn_channel import DENSITY

OPTIONS = FlatOptions(cells=1500, macros=4, ports=8, macro_pins=12, macro_utilization=0.3, cell_utilization=0.15)


@pytest.fixture(scope="module")
def imported() -> ImportedDesign:
    return import_flat(flat_on_floorplan("made", OPTIONS, seed=3))


def evaluator(imported: ImportedDesign, cluster: np.ndarray | None = None, anneal: Any = None) -> FlatEvaluator:
    clusters = imported.clustering.cluster if cluster is None else cluster
    return FlatEvaluator(imported.flat, clusters, imported.design, anneal=anneal)


def test_dense_cells_are_shorter_than_spread_ones_and_as_short_as_begun_in_the_middle(
    imported: ImportedDesign,
) -> None:
    found = evaluator(imported).evaluate(imported.design.initial)
    macros = macros_on_flat(imported.flat, imported.design.netlist, imported.design.initial)
    core = core_of(imported.flat, imported.design)
    middle = place_cells(imported.flat.netlist, macros, core)
    assert found.dense.converged and found.spread.converged
    assert 0.95 * middle.wirelength < found.dense.wirelength <= middle.wirelength
    assert found.dense.wirelength < found.spread.wirelength < found.route.routed_wirelength
    assert found.legal is not None and found.legal.without_place == 0
    assert found.route.tree_wirelength >= 0.95 * found.legal.wirelength
    assert found.route.routed_wirelength != found.global_route.routed_wirelength
    assert 0 < found.cell_utilization < DENSITY


def test_cells_begin_from_the_clusters_spread_ones_from_the_dense_and_both_in_the_middle_too(
    imported: ImportedDesign, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, result = (
        [],
        place_cells(
            imported.flat.netlist,
            macros_on_flat(imported.flat, imported.design.netlist, imported.design.initial),
            core_of(imported.flat, imported.design),
        ),
    )

    def check(*_: object, start: Any, **__: object) -> CellPlacement:
        starts.append(start)
        return result

    for module in (flat_evaluator, global_placement):
        monkeypatch.setattr(module, "place_cells", check)
    evaluator(imported).evaluate(imported.design.initial)
    first, middle, dense, last = starts
    assert middle is None and dense is result.placement and last is None
    cells, cluster = imported.flat.cells, imported.clustering.cluster
    apart = [np.ptp(first.x[cells[cluster[cells] == number]]) for number in range(cluster.max() + 1)]
    assert max(apart) < 0.6 * np.ptp(first.x[cells])  # each cluster is in one place, not all in the middle
    starts.clear()
    evaluator(imported).evaluate(imported.design.initial, middle=False)
    assert len(starts) == 3 and starts[0] is not None and starts[1] is result.placement and starts[2] is None
    starts.clear()
    evaluator(imported, cluster=np.full_like(cluster, -1)).evaluate(imported.design.initial)
    assert starts == [None, result.placement, None]


def test_the_shorter_of_the_spread_beginnings_counts(imported: ImportedDesign, monkeypatch: pytest.MonkeyPatch) -> None:
    begins: list[CellPlacement | None] = []
    true = evaluator(imported).dense(imported.design.initial)
    assert true.wirelength > 3.0
    lengths = iter((3.0, 2.0, 2.0, 3.0))

    def spread(*_: object, dense: CellPlacement | None, **__: object) -> CellPlacement:
        begins.append(dense)
        return true._replace(wirelength=next(lengths), seconds=1.0)

    monkeypatch.setattr(flat_evaluator, "spread_cells", spread)
    for _ in range(2):
        found = evaluator(imported).evaluate(imported.design.initial, middle=False)
        assert (found.spread.wirelength, found.spread.seconds) == (2.0, 2.0)
    assert [begin is None for begin in begins] == [False, True, False, True]


def test_cells_that_scatter_from_the_middle_have_not_converged(
    imported: ImportedDesign, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = evaluator(imported).dense(imported.design.initial)
    far = 1.01 * flat_evaluator.SCATTERED * true.wirelength

    def spread(*_: object, dense: CellPlacement | None, **__: object) -> CellPlacement:
        return true._replace(converged=dense is None, wirelength=far)

    monkeypatch.setattr(flat_evaluator, "spread_cells", spread)
    assert not evaluator(imported).evaluate(imported.design.initial, middle=False).spread.converged


def test_spread_cells_that_diverge_from_the_dense_count_from_the_middle(
    imported: ImportedDesign, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = evaluator(imported).dense(imported.design.initial)

    def spread(*_: object, dense: CellPlacement | None, **__: object) -> CellPlacement:
        if dense is not None:
            raise DesignError("diverged")
        return true

    monkeypatch.setattr(flat_evaluator, "spread_cells", spread)
    assert evaluator(imported).evaluate(imported.design.initial, middle=False).spread.placement is true.placement


def test_the_shorter_of_the_dense_beginnings_counts_if_it_converged(
    imported: ImportedDesign, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = evaluator(imported, cluster=np.full_like(imported.clustering.cluster, -1)).dense(imported.design.initial)
    for lengths, converged, expected in (((3.0, 2.0), (True, True), 2.0), ((3.0, 2.0), (True, False), 3.0)):
        left = [true._replace(wirelength=w, converged=c, seconds=1.0) for w, c in zip(lengths, converged, strict=True)]
        monkeypatch.setattr(flat_evaluator, "place_cells", lambda *_, left=left, **__: left.pop(0))
        clock = itertools.count(0.0, 0.5)
        monkeypatch.setattr(flat_evaluator, "time", SimpleNamespace(process_time=lambda clock=clock: next(clock)))
        found = evaluator(imported).dense(imported.design.initial)
        assert (found.wirelength, found.seconds) == (expected, 2.5)  # of both, and of spreading the clusters


def test_cells_that_diverge_from_the_clusters_begin_in_the_middle(
    imported: ImportedDesign, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = evaluator(imported, cluster=np.full_like(imported.clustering.cluster, -1)).dense(imported.design.initial)
    bad: list[bool] = []  # whether a beginning from clusters fails, and one in the middle

    def check(*_: object, start: Any, **__: object) -> CellPlacement:
        if bad[start is None]:
            raise DesignError("diverged")
        return true

    monkeypatch.setattr(flat_evaluator, "place_cells", check)
    bad[:] = True, False
    assert evaluator(imported).dense(imported.design.initial).placement is true.placement
    bad[:] = True, True
    with pytest.raises(DesignError, match="diverged"):
        evaluator(imported).evaluate(imported.design.initial, middle=False)


def test_where_clusters_find_too_full_cells_begin_in_the_middle(
    imported: ImportedDesign, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[object] = []
    true = evaluator(imported).dense(imported.design.initial)

    def place(*_: object, start: object, **__: object) -> CellPlacement:
        starts.append(start)
        return true

    def too_full(*_: object) -> None:
        raise DesignError("too full")

    monkeypatch.setattr(flat_evaluator, "spread_clusters", too_full)
    monkeypatch.setattr(flat_evaluator, "place_cells", place)
    assert evaluator(imported).dense(imported.design.initial) is not None
    assert starts == [None]


def test_what_does_not_fit_the_netlist_is_rejected(imported: ImportedDesign) -> None:
    with pytest.raises(DesignError, match=r"clusters of 3 nodes for a flat netlist of \d+"):
        evaluator(imported, cluster=np.zeros(3, np.int32))
    lacking = dataclasses.replace(imported.design.initial, placed=np.zeros_like(imported.design.initial.placed))
    with pytest.raises(DesignError, match="has no position"):
        evaluator(imported).evaluate(lacking)


def test_one_placement_one_result(imported: ImportedDesign) -> None:
    once, again = (evaluator(imported).dense(imported.design.initial) for _ in range(2))
    assert once.placement == again.placement


def test_spread_cells_begin_in_annealed_clusters_as_well_and_more_slowly(
    imported: ImportedDesign, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = imported.design
    placed = anneal_for_full_evaluation(design, design.initial)
    true = evaluator(imported).dense(design.initial)
    begins: list[tuple[CellPlacement | None, float]] = []
    lengths = iter((3.0, 2.0, 4.0))

    def spread(*_: object, dense: CellPlacement | None, attempts: list[PlacerSettings], **__: object) -> CellPlacement:
        begins.append((dense, attempts[0].growth))
        return true._replace(wirelength=next(lengths), seconds=1.0)

    monkeypatch.setattr(flat_evaluator, "spread_cells", spread)
    found = evaluator(imported, anneal=lambda *_: placed).evaluate(design.initial, middle=False)
    assert found.spread.wirelength == 2.0 and found.spread.seconds >= 3.0
    (dense, fast), (annealed, slow), (middle, _) = begins
    assert dense is not None and annealed is not None and middle is None
    assert annealed.wirelength == dense.wirelength and 1 < slow < fast
    # Each cell begins within its cluster's soft macro as it was annealed.
    cells, cluster = imported.flat.cells, imported.clustering.cluster
    index = {name: node for node, name in enumerate(design.netlist.names)}
    soft = np.array([index[f"Grp_{number}"] for number in range(cluster.max() + 1)])
    core, held = imported.flat.floorplan.core, cells[cluster[cells] >= 0]
    nodes = soft[cluster[held]]
    assert np.all(abs(annealed.placement.x[held] - core.x_low - placed.x[nodes]) <= design.netlist.width[nodes] / 2)
    assert np.all(abs(annealed.placement.y[held] - core.y_low - placed.y[nodes]) <= design.netlist.height[nodes] / 2)


def test_where_clusters_cannot_be_annealed_cells_begin_elsewhere(imported: ImportedDesign) -> None:
    def reject(*_: object) -> NoReturn:
        raise DesignError("macros overlap")

    found, without = (
        evaluator(imported, anneal=anneal).evaluate(imported.design.initial, middle=False) for anneal in (reject, None)
    )
    assert found.spread.wirelength == without.spread.wirelength
