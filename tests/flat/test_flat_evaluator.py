"""The full evaluation: the starting positions of its cells, and its results."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pytest

from placement.annealing.finishing import anneal_for_full_evaluation
from placement.flat import flat_evaluator
from placement.flat.electrostatic import PlacerSettings
from placement.flat.flat_evaluator import FlatEvaluation, FlatEvaluator
from placement.flat.global_placement import CellPlacement
from placement.netlist.design import Placement
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


@pytest.fixture(scope="module")
def middle(imported: ImportedDesign) -> CellPlacement:
    """Returns dense cells, started in the middle of the core."""
    return evaluator(imported).dense(imported.design.initial)


@pytest.fixture(scope="module")
def found(imported: ImportedDesign) -> FlatEvaluation:
    """Returns an evaluation started in annealed clusters."""
    return evaluator(imported, anneal=anneal_for_full_evaluation).evaluate(imported.design.initial)


def test_dense_cells_are_shorter_than_spread_ones_and_as_short_as_begun_in_the_middle(
    found: FlatEvaluation, middle: CellPlacement
) -> None:
    assert found.dense.converged and found.spread.converged
    assert 0.95 * middle.wirelength < found.dense.wirelength < 1.02 * middle.wirelength
    assert found.dense.wirelength < found.spread.wirelength < found.route.routed_wirelength
    assert found.legal is not None and found.legal.without_place == 0
    assert found.route.tree_wirelength >= 0.95 * found.legal.wirelength
    assert found.route.routed_wirelength != found.global_route.routed_wirelength
    assert 0 < found.cell_utilization < DENSITY


class Begun(NamedTuple):
    """A stage and the starting positions of its cells."""

    spread: bool
    start: Placement | None
    settings: PlacerSettings


def recorded(monkeypatch: pytest.MonkeyPatch, result: CellPlacement, diverge: Any = lambda _: False) -> list[Begun]:
    """Records the stages of the following evaluations; each ends at `result`, or raises if `diverge(Begun)`."""
    begun: list[Begun] = []

    def end() -> CellPlacement:
        if diverge(begun[-1]):
            raise DesignError("diverged")
        return result

    def spread(
        *_: object, attempts: list[PlacerSettings], start: Placement | None = None, **__: object
    ) -> CellPlacement:
        begun.append(Begun(True, start, attempts[0]))
        return end()

    def dense(*_: object, settings: PlacerSettings, start: Placement | None = None, **__: object) -> CellPlacement:
        begun.append(Begun(False, start, settings))
        return end()

    monkeypatch.setattr(flat_evaluator, "spread_cells", spread)
    monkeypatch.setattr(flat_evaluator, "place_cells", dense)
    return begun


def test_spread_cells_begin_in_annealed_clusters_and_the_middle_and_dense_ones_where_those_ended(
    imported: ImportedDesign, middle: CellPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = imported.design
    placed = anneal_for_full_evaluation(design, design.initial)
    begun = recorded(monkeypatch, middle)
    found = evaluator(imported, anneal=lambda *_: placed).evaluate(design.initial)
    (_, start, settings), again, dense = begun
    assert again.spread and again.start is None
    assert start is not None and settings.growth < PlacerSettings().growth
    assert not dense.spread and dense.start is middle.placement is found.dense.placement
    # Each cell starts inside its cluster's annealed soft macro.
    cells, cluster = imported.flat.cells, imported.clustering.cluster
    index = {name: node for node, name in enumerate(design.netlist.names)}
    soft = np.array([index[f"Grp_{number}"] for number in range(cluster.max() + 1)])
    core, held = imported.flat.floorplan.core, cells[cluster[cells] >= 0]
    nodes = soft[cluster[held]]
    assert np.all(abs(start.x[held] - core.x_low - placed.x[nodes]) <= design.netlist.width[nodes] / 2)
    assert np.all(abs(start.y[held] - core.y_low - placed.y[nodes]) <= design.netlist.height[nodes] / 2)


def test_without_clusters_or_where_they_cannot_be_annealed_cells_begin_in_the_middle(
    imported: ImportedDesign, middle: CellPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(*_: object) -> NoReturn:
        raise DesignError("macros overlap")

    begun = recorded(monkeypatch, middle)
    none = np.full_like(imported.clustering.cluster, -1)
    for one in (
        evaluator(imported, cluster=none, anneal=anneal_for_full_evaluation),
        evaluator(imported, anneal=reject),
        evaluator(imported),
    ):
        one.evaluate(imported.design.initial)
    assert [one.start for one in begun if one.spread] == [None] * 3
    assert begun[0].settings == PlacerSettings()


@pytest.mark.parametrize("shorter", ["clusters", "middle"])
def test_the_shorter_spread_cells_count(
    imported: ImportedDesign, middle: CellPlacement, shorter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = middle._replace(wirelength=1.1 * middle.wirelength)
    recorded(monkeypatch, middle)

    def spread(*_: object, start: Placement | None = None, **__: object) -> CellPlacement:
        return middle if (start is None) == (shorter == "middle") else long

    monkeypatch.setattr(flat_evaluator, "spread_cells", spread)
    found = evaluator(imported, anneal=anneal_for_full_evaluation).evaluate(imported.design.initial)
    assert found.spread.wirelength == middle.wirelength


def test_cells_that_diverge_begin_in_the_middle(
    imported: ImportedDesign, middle: CellPlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = recorded(monkeypatch, middle, lambda one: one.start is not None)
    evaluator(imported, anneal=anneal_for_full_evaluation).evaluate(imported.design.initial)
    assert [(one.spread, one.start is None) for one in begun] == [
        (True, False), (True, True), (False, False), (False, True),
    ]  # fmt: skip
    recorded(monkeypatch, middle, lambda _: True)
    with pytest.raises(DesignError, match="diverged"):
        evaluator(imported).evaluate(imported.design.initial)


def test_what_does_not_fit_the_netlist_is_rejected(imported: ImportedDesign) -> None:
    with pytest.raises(DesignError, match=r"clusters of 3 nodes for a flat netlist of \d+"):
        evaluator(imported, cluster=np.zeros(3, np.int32))
    lacking = dataclasses.replace(imported.design.initial, placed=np.zeros_like(imported.design.initial.placed))
    with pytest.raises(DesignError, match="has no position"):
        evaluator(imported).evaluate(lacking)


def test_one_placement_one_result(imported: ImportedDesign, middle: CellPlacement) -> None:
    assert evaluator(imported).dense(imported.design.initial).placement == middle.placement
