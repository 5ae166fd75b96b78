"""A user-defined cost term, compiled as its page says and passed to the pool, compared with the same term in Python."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from placement.config import ConfigError, EnvConfig, build
from placement.engine.cost_terms import include_folder
from placement.engine.pool import WorkerError, make_pool
from placement.netlist.design import Design, Placement
from tests.support.designs import four_macros

SOURCE = Path(__file__).resolve().parents[2] / "examples/edge_term.cpp"
PLAIN = EnvConfig(soft_placer="none")


def compiled(source: str, folder: Path) -> Path:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    file, library = folder / "term.cpp", folder / "term.so"
    file.write_text(source)
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{include_folder()}"]
    subprocess.run([compiler, *flags, str(file), "-o", str(library)], check=True, timeout=120)
    return library


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(SOURCE.read_text(), tmp_path_factory.mktemp("edge"))


def edge_distance(design: Design, placement: Placement) -> float:
    """The example's term, as its comment defines it."""
    canvas, hard = design.canvas, design.netlist.hard
    width, height = (side[hard] for side in design.netlist.sides(placement.orientation))
    x, y = placement.x[hard], placement.y[hard]
    gaps = [x - width / 2, canvas.width - x - width / 2, y - height / 2, canvas.height - y - height / 2]
    return float(np.maximum(np.min(gaps, axis=0), 0).mean() / (min(canvas.width, canvas.height) / 2))


def last_step(design: Design, config: EnvConfig) -> tuple[np.ndarray, np.ndarray, list[Placement]]:
    """Returns rewards and costs at the ends of random episodes, and their placements."""
    with make_pool(design, 5, config=config, num_threads=2, seed=3) as pool:
        pool.reset()
        terminated = np.zeros(5, bool)
        while not terminated.any():
            _, reward, terminated, _, info = pool.step(pool.sample_actions())
        return reward.copy(), info["costs"][:, 4].copy(), [pool.placement(env) for env in range(5)]


def test_the_reward_loses_the_weighted_term_and_the_cost_stays(edge: Path) -> None:
    design = four_macros()
    plain, costs, placements = last_step(design, PLAIN)
    both = (f"{edge}:0.5", f"{edge}:-0.125")
    reward, costs_with, _ = last_step(design, dataclasses.replace(PLAIN, cost_terms=both))
    expected = [edge_distance(design, placement) for placement in placements]
    assert len(set(expected)) > 1 and costs_with == pytest.approx(costs)
    assert plain - reward == pytest.approx([0.375 * value for value in expected], abs=1e-6)


def test_the_worked_example_of_contributing_compiles_and_matches_the_page(tmp_path: Path) -> None:
    page = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (diff,) = re.findall(r"```diff\n--- .*\n\+\+\+ .*\n((?:.*\n)*?)```", page)
    lines = [(line[:1], f"{line[1:]}\n") for line in diff.splitlines()]
    before = "".join(text for mark, text in lines if mark != "+")
    after = "".join(text for mark, text in lines if mark != "-")
    source = SOURCE.read_text()
    assert source.count(before) == 1
    library = compiled(source.replace(before, after), tmp_path)
    design = four_macros()
    plain, _, placements = last_step(design, PLAIN)
    reward, _, _ = last_step(design, dataclasses.replace(PLAIN, cost_terms=(f"{library}:0.5",)))
    width, side = design.canvas.width, design.netlist.sides(placements[0].orientation)[0][design.netlist.hard]
    expected = []
    for placement in placements:
        x = placement.x[design.netlist.hard]
        gap = np.maximum(np.minimum(x - side / 2, width - x - side / 2), 0).mean()
        expected.append(0.5 * gap / (min(width, design.canvas.height) / 2))
    assert plain - reward == pytest.approx(expected, abs=1e-6)


def test_a_term_that_fails_is_the_steps_error(tmp_path: Path) -> None:
    body = re.compile(r"override \{.*?return [^;]*;", re.DOTALL)
    failing = body.sub('override { (void)x; (void)y; (void)orientation; throw "no";', SOURCE.read_text())
    library = compiled(failing, tmp_path)
    with pytest.raises(WorkerError, match="cost term 'edge distance' returned a value that is not finite"):
        last_step(four_macros(), dataclasses.replace(PLAIN, cost_terms=(f"{library}:1",)))


def test_a_library_without_a_cost_term_is_rejected(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("no library")
    other = compiled('extern "C" int other() { return 1; }', tmp_path)
    cases = {f"{text}:1": "must be a shared library", f"{other}:1": "has no cost term"}
    for given, message in cases.items():
        with pytest.raises(ConfigError, match=message):
            make_pool(four_macros(), 1, config=dataclasses.replace(PLAIN, cost_terms=(given,)))
    for given in ("term.so", "term.so:much", "term.so:nan", ":1"):
        with pytest.raises(ConfigError, match="path:weight"):
            build(EnvConfig, {"cost_terms": [given]}, "env.")


def test_a_library_for_another_version_is_rejected(tmp_path: Path) -> None:
    header = (include_folder() / "placement_cost_term.hpp").read_text().replace("#pragma once", "")
    header = header.replace("VERSION 1", "VERSION 2")
    library = compiled(header + SOURCE.read_text().replace('#include "placement_cost_term.hpp"', ""), tmp_path)
    with pytest.raises(ConfigError, match="has version 2; rebuild it for version 1"):
        make_pool(four_macros(), 1, config=dataclasses.replace(PLAIN, cost_terms=(f"{library}:1",)))
