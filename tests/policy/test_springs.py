"""The springs' solution compared with plain minimisation."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import diags

from placement.netlist.design import Design
from placement.policy import springs as module
from placement.policy.springs import spring_targets, springs
from tests.support.designs import Net, Node, NodeKind, build, four_macros, random_design, square_canvas


def _system(design: Design) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the movable nodes, and matrix and right-hand side of the springs' energy, assembled slowly."""
    netlist, initial, canvas = design.netlist, design.initial, design.canvas
    soft = [node for node in netlist.soft if not initial.fixed[node]]
    movable = [*design.placing_order, *soft]
    place = {int(node): index for index, node in enumerate(movable)}
    matrix, right = np.zeros((len(movable),) * 2), np.zeros((len(movable), 2))
    for i, j, weight in zip(*springs(design), strict=True):
        for here, there in ((int(i), int(j)), (int(j), int(i))):
            if here not in place:
                continue
            matrix[place[here], place[here]] += weight
            if there in place:
                matrix[place[here], place[there]] -= weight
            else:
                spot = np.array([initial.x[there] / canvas.width, initial.y[there] / canvas.height])
                right[place[here]] += weight * spot
    anchor = 1e-3 * np.diagonal(matrix).mean()
    return np.array(movable), matrix + anchor * np.eye(len(movable)), right + anchor * 0.5


@pytest.fixture(params=["hand", "random"])
def design(request: pytest.FixtureRequest) -> Design:
    if request.param == "hand":
        return four_macros()
    return random_design(3, hard=9, soft=7, ports=6, nets=30, canvas=square_canvas(6, 7))


def test_sequential_target_minimises_over_all_that_is_not_placed(design: Design) -> None:
    _, matrix, right = _system(design)
    solved, macros = spring_targets(design), len(design.placing_order)
    spots = np.random.default_rng(0).random((macros, 2))
    for step in range(macros):
        free = np.arange(step, len(matrix))
        pulled = right[free] - matrix[np.ix_(free, np.arange(step))] @ spots[:step]
        best = np.linalg.solve(matrix[np.ix_(free, free)], pulled)[0]
        placed = np.where(np.arange(macros)[:, None] < step, spots, 0)
        np.testing.assert_allclose(solved.weights[1, step] @ placed + solved.fixed[1, step], best, atol=1e-9)


def test_direct_target_minimises_over_the_soft_macros_when_the_others_are_placed(design: Design) -> None:
    _, matrix, right = _system(design)
    solved, macros = spring_targets(design), len(design.placing_order)
    spots = np.random.default_rng(1).random((macros, 2))
    free = np.array([macros - 1, *range(macros, len(matrix))])
    pulled = right[free] - matrix[np.ix_(free, np.arange(macros - 1))] @ spots[:-1]
    best = np.linalg.solve(matrix[np.ix_(free, free)], pulled)[0]
    spots[-1] = 0
    np.testing.assert_allclose(solved.weights[0, -1] @ spots + solved.fixed[0, -1], best, atol=1e-9)


@pytest.mark.parametrize(("hard", "soft", "nets"), [(9, 12, 40), (50, 300, 500), (9, 40, 8)])
def test_conjugate_gradients_agree_with_dense(monkeypatch: pytest.MonkeyPatch, hard: int, soft: int, nets: int) -> None:
    design = random_design(5, hard=hard, soft=soft, ports=6, nets=nets, canvas=square_canvas(50, 50))
    dense = spring_targets(design)
    monkeypatch.setattr(module, "_LARGEST_DENSE", 0)
    for ours, theirs in zip(spring_targets(design), dense, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_conjugate_gradients_stop_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_ROUNDS", 3)
    chain = diags([np.full(40, 2.001), np.full(39, -1.0), np.full(39, -1.0)], [0, 1, -1]).tocsr()
    found = module.conjugate_gradients(chain, np.eye(40)[:, :2])
    assert np.isfinite(found).all() and (found != 0).sum() <= 2 * 5, "more rounds than allowed"


def test_nothing_is_as_large_as_the_soft_macros_squared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory grows with the springs and with soft macros times the columns solved at once."""
    design = random_design(2, hard=30, soft=3000, ports=6, nets=6000, canvas=square_canvas(300, 300))
    tracemalloc.start()
    spring_targets(design)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3000 * 3000 * 8 / 2


def test_a_large_net_becomes_a_star_and_a_clique_shares_its_weight() -> None:
    names = [f"m{number}" for number in range(30)]
    nodes = [Node(name, NodeKind.HARD, 25.0, 25.0, 1.0, 1.0) for name in names]
    nets = [Net([(name, 0, 0) for name in names], 2.0), Net([(name, 0, 0) for name in names[:3]], 2.0)]
    i, j, weight = springs(build("star", square_canvas(), nodes, nets))
    assert len(i) == 29 + 3
    assert sorted(weight)[:3] == [1.0, 1.0, 1.0]
    assert (i[weight == 2.0] == 0).all()
    assert (i != j).all()


def test_without_nets_everything_rests_at_the_centre() -> None:
    nodes = [Node(f"m{number}", NodeKind.HARD, 5.0, 5.0, 1.0, 1.0) for number in range(3)]
    solved = spring_targets(build("alone", square_canvas(), nodes, []))
    np.testing.assert_allclose(solved.fixed, 0.5)
