"""A million steps in pools of random sizes, threads and batches, with resets: nothing is lost, memory is bounded."""

from __future__ import annotations

import os

import numpy as np
import pytest

from placement.config import EnvConfig
from placement.engine.pool import make_pool
from tests.support.designs import four_macros, random_design, square_canvas

NONE = EnvConfig(soft_placer="none")


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def traffic(generator: np.random.Generator, designs: list, steps: int) -> None:
    envs = int(generator.integers(16, 257))
    batch = envs if generator.random() < 0.3 else int(generator.integers(envs // 4, envs))
    threads = int(generator.integers(1, 5))
    with make_pool(designs, envs, batch_size=batch, num_threads=threads, config=NONE) as pool:
        pool.async_reset()
        expected, ended, taken = np.zeros(envs, int), np.zeros(envs, bool), 0
        while taken < steps:
            _, _, terminated, _, info = pool.recv(timeout=60)
            ids = info["env_id"].copy()
            assert np.array_equal(info["elapsed_step"], expected[ids])
            ended[ids] = terminated
            if generator.random() < 0.02:
                pool.async_reset(ids)
                expected[ids] = 0
            else:
                pool.send(pool.sample_actions(ids), ids)
                expected[ids] = np.where(ended[ids], 0, expected[ids] + 1)
            taken += len(ids)


@pytest.mark.slow
def test_a_million_steps() -> None:
    generator = np.random.default_rng(0)
    designs = [four_macros(), random_design(3, canvas=square_canvas(9, 7))]
    for _ in range(4):
        traffic(generator, designs, 20_000)
    before = resident_bytes()
    for _ in range(20):
        traffic(generator, designs, 50_000)
    assert resident_bytes() - before < 32 * 2**20
