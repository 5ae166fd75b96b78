"""Generated designs: reproducible, realistic, and, if planted, with the optimum that they claim."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from placement.netlist.design import Design, Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import read_text
from placement.netlist.formats.plc import write_placement
from placement.netlist.generators.clustered import clustered
from placement.netlist.load import OPTIMUM_NAME, load, save
from tests.support.planted import MACRO_SIDE, Planted, least_span, planted

SHIPPED: dict[str, Callable[[], Design | Planted]] = {
    "toy6": lambda: planted(seed=6, block_columns=3, block_rows=2, columns=4, rows=4, multi_pin_nets=4, name="toy6"),
    "planted20": lambda: planted(
        seed=20, block_columns=5, block_rows=4, columns=8, rows=8, multi_pin_nets=30, name="planted20"
    ),
    "clustered40": lambda: clustered(seed=40, hard=40, soft=250, ports=120, name="clustered40"),
    "clustered120": lambda: clustered(seed=120, hard=120, soft=800, ports=400, name="clustered120"),
}
SHIPPED_FOLDER = Path(__file__).resolve().parents[3] / "netlists"


def wirelength(design: Design, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the weighted HPWL in µm of placements x, y (float [B, N]), all macros in orientation N."""
    netlist = design.netlist
    starts = netlist.net_start[:-1]
    total = np.zeros(len(x))
    for centre, offset in ((x, netlist.pin_dx), (y, netlist.pin_dy)):
        at = (centre[:, netlist.pin_node] + offset)[:, netlist.net_pins]
        spans = np.maximum.reduceat(at, starts, axis=1) - np.minimum.reduceat(at, starts, axis=1)
        total += spans @ netlist.net_weight
    return total


def wirelength_of(design: Design, placement: Placement) -> float:
    return float(wirelength(design, placement.x[None], placement.y[None])[0])


def equal(first: Netlist, second: Netlist) -> bool:
    pairs = [(getattr(first, field.name), getattr(second, field.name)) for field in dataclasses.fields(Netlist)]
    return all(a == b if isinstance(a, tuple) else np.array_equal(a, b) for a, b in pairs)


def overlapping_pairs(design: Design, placement: Placement) -> int:
    hard, netlist = design.netlist.hard, design.netlist
    x, y, width, height = placement.x[hard], placement.y[hard], netlist.width[hard], netlist.height[hard]
    wide = np.abs(x[:, None] - x) < (width[:, None] + width) / 2 - 1e-6
    high = np.abs(y[:, None] - y) < (height[:, None] + height) / 2 - 1e-6
    return int(np.triu(wide & high, 1).sum())


def least_wirelength(design: Design) -> float:
    """Returns the least wirelength over all assignments of the hard macros to distinct gcells, by enumeration."""
    canvas, hard = design.canvas, design.netlist.hard
    ways = np.array(list(itertools.permutations(range(canvas.columns * canvas.rows), len(hard))))
    least = np.inf
    for part in np.array_split(ways, max(1, len(ways) // 5000)):
        x = np.repeat(design.initial.x[None], len(part), axis=0)
        y = np.repeat(design.initial.y[None], len(part), axis=0)
        x[:, hard] = (part % canvas.columns + 0.5) * canvas.cell_width
        y[:, hard] = (part // canvas.columns + 0.5) * canvas.cell_height
        least = min(least, wirelength(design, x, y).min())
    return float(least)


@pytest.mark.parametrize(
    ("block_columns", "block_rows", "columns", "rows"), [(2, 2, 3, 3), (3, 2, 3, 3), (1, 4, 3, 4), (2, 1, 4, 4)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_optimum_by_trying_every_placement(
    seed: int, block_columns: int, block_rows: int, columns: int, rows: int
) -> None:
    solved = planted(
        seed=seed, block_columns=block_columns, block_rows=block_rows, columns=columns, rows=rows, multi_pin_nets=5
    )
    assert wirelength_of(solved.design, solved.optimum) == solved.wirelength
    assert least_wirelength(solved.design) == solved.wirelength


def test_planted_optimum_is_not_beaten_off_the_grid() -> None:
    """Random placements without overlaps, off the gcells, also respect the bound."""
    solved = planted(seed=3, block_columns=2, block_rows=2, columns=3, rows=3, multi_pin_nets=6)
    design, random = solved.design, np.random.default_rng(0)
    hard = design.netlist.hard
    centre = random.uniform(0.5, 2.5, (400_000, 2, len(hard))) * MACRO_SIDE
    apart = np.abs(centre[..., :, None] - centre[..., None, :]).max(axis=1) >= MACRO_SIDE
    first, second = np.triu_indices(len(hard), 1)
    legal = centre[apart[:, first, second].all(axis=1)]
    assert len(legal) > 100
    x = np.repeat(design.initial.x[None], len(legal), axis=0)
    y = np.repeat(design.initial.y[None], len(legal), axis=0)
    x[:, hard], y[:, hard] = legal[:, 0], legal[:, 1]
    assert wirelength(design, x, y).min() > solved.wirelength


@pytest.mark.parametrize(("count", "span"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (9, 4), (10, 5)])
def test_least_span(count: int, span: int) -> None:
    assert least_span(count) == span


@pytest.mark.parametrize("seed", range(3))
def test_planted_nets_attain_their_bounds_and_initial_is_worse(seed: int) -> None:
    solved = planted(seed=seed)
    assert wirelength_of(solved.design, solved.optimum) == solved.wirelength
    assert wirelength_of(solved.design, solved.design.initial) > solved.wirelength
    assert overlapping_pairs(solved.design, solved.optimum) == 0
    assert overlapping_pairs(solved.design, solved.design.initial) == 0
    assert {2, 3, 9} <= set(np.diff(solved.design.netlist.net_start))


def test_planted_rejects_a_block_larger_than_the_grid() -> None:
    with pytest.raises(DesignError, match="at most the 4 × 4 gcells"):
        planted(seed=0, block_columns=5, block_rows=1, columns=4, rows=4)
    with pytest.raises(DesignError, match="at least 2 macros"):
        planted(seed=0, block_columns=1, block_rows=1)


@pytest.mark.parametrize("seed", range(3))
def test_clustered_is_like_ariane(seed: int) -> None:
    design = clustered(seed=seed, hard=60, soft=300, ports=150)
    netlist, canvas = design.netlist, design.canvas
    assert [len(netlist.hard), len(netlist.soft), len(netlist.ports)] == [60, 300, 150]
    area = netlist.width * netlist.height / (canvas.width * canvas.height)
    assert area[netlist.hard].sum() == pytest.approx(0.5, abs=0.05)
    assert area[netlist.soft].sum() == pytest.approx(0.21, abs=0.01)
    degrees = np.diff(netlist.net_start)
    assert (degrees == 2).mean() == pytest.approx(0.49, abs=0.05)
    assert (degrees == 3).mean() == pytest.approx(0.19, abs=0.05)
    assert 3.2 < degrees.mean() < 3.8
    assert degrees.max() < 20
    assert 1 < len(np.unique(netlist.width[netlist.hard] * 1000 + netlist.height[netlist.hard])) <= 3
    assert netlist.net_weight.max() > 8
    ports = netlist.ports
    x, y = design.initial.x[ports], design.initial.y[ports]
    assert ((x == 0) | (x == canvas.width) | (y == 0) | (y == canvas.height)).all()
    assert len(set(zip(x, y, strict=True))) == len(ports)


def test_clustered_starts_legal_and_every_node_has_a_net() -> None:
    design = clustered(seed=0, hard=40, soft=250, ports=120)
    netlist, initial = design.netlist, design.initial
    assert overlapping_pairs(design, initial) == 0
    hard = netlist.hard
    assert (initial.x[hard] - netlist.width[hard] / 2 >= 0).all()
    assert (initial.x[hard] + netlist.width[hard] / 2 <= design.canvas.width).all()
    assert (initial.y[hard] + netlist.height[hard] / 2 <= design.canvas.height).all()
    assert len(np.unique(netlist.pin_node[netlist.net_pins])) == netlist.num_nodes


def test_rent_exponent_makes_nets_local() -> None:
    """Soft macros are leaves in file order, so distance in that order reflects the hierarchy."""

    def mean_distance(rent_exponent: float) -> float:
        netlist = clustered(seed=0, hard=20, soft=256, ports=10, rent_exponent=rent_exponent).netlist
        ends = netlist.pin_node[netlist.net_pins]
        starts = netlist.net_start[:-1]
        low, high = np.minimum.reduceat(ends, starts), np.maximum.reduceat(ends, starts)
        soft = (netlist.kind[low] == NodeKind.SOFT) & (netlist.kind[high] == NodeKind.SOFT)
        return float((high - low)[soft].mean())

    assert mean_distance(0.2) < 0.6 * mean_distance(0.6) < 0.6 * mean_distance(1.0)


@pytest.mark.parametrize(("key", "value"), [("hard", 0), ("soft", 15), ("ports", 0)])
def test_clustered_rejects_too_few(key: str, value: int) -> None:
    with pytest.raises(DesignError, match=f"{key}={value}: must be at least"):
        clustered(**{"seed": 0, "hard": 10, "soft": 20, "ports": 5, key: value})  # type: ignore[arg-type]


def test_clustered_rejects_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DesignError, match="rent_exponent=2"):
        clustered(seed=0, hard=30, soft=20, ports=5, rent_exponent=2)
    monkeypatch.setattr("placement.netlist.generators.clustered._HARD_UTILIZATION", 0.999)
    with pytest.raises(DesignError, match="hard=30: the macros do not fit"):
        clustered(seed=0, hard=30, soft=20, ports=5)


def test_other_seeds_give_other_designs() -> None:
    first, again, other = (clustered(seed=seed, hard=10, soft=40, ports=8) for seed in (0, 0, 1))
    assert equal(first.netlist, again.netlist)
    assert not equal(first.netlist, other.netlist)


@pytest.mark.parametrize("name", list(SHIPPED))
def test_shipped_files_are_what_the_generator_makes(name: str, tmp_path: Path) -> None:
    """Compares the texts, not the archives, because compressors differ between releases of zlib."""
    made = SHIPPED[name]()
    design = made.design if isinstance(made, Planted) else made
    save(tmp_path / name, design)
    if isinstance(made, Planted):
        comments = [f"Least wirelength : {made.wirelength!r}"]
        write_placement(tmp_path / name / OPTIMUM_NAME, design, made.optimum, comments=comments)
    files = sorted(file.name for file in (tmp_path / name).iterdir())
    assert files == sorted(file.name for file in (SHIPPED_FOLDER / name).iterdir())
    for file in files:
        assert read_text(tmp_path / name / file) == read_text(SHIPPED_FOLDER / name / file), file
    loaded = load(name)
    assert equal(loaded.netlist, design.netlist)
    assert (loaded.canvas, loaded.initial, loaded.name) == (design.canvas, design.initial, name)
    if isinstance(made, Planted):
        optimum = load(name, SHIPPED_FOLDER / name / "optimum.plc")
        assert wirelength_of(optimum, optimum.initial) == made.wirelength < wirelength_of(design, design.initial)


def test_shipped_files_are_small() -> None:
    assert sum(file.stat().st_size for file in SHIPPED_FOLDER.rglob("*") if file.is_file()) < 1_000_000
