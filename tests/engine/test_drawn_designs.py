"""A pool that draws its designs: which environment plays which, independent of the threads, and errors."""

from __future__ import annotations

import dataclasses
import gc
import threading

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import placement
from placement.config import EnvConfig
from placement.engine.costs import compute_costs, legality
from placement.engine.pool import WorkerError, make_pool
from placement.netlist.design import Design
from placement.netlist.distribution import DesignBounds, DesignDistribution
from placement.netlist.errors import DesignError
from tests.support.designs import random_design, square_canvas

NONE = EnvConfig(soft_placer="none")
ENVS = 3
BOUNDS = DesignBounds(rows=9, columns=9, macros=12, nodes=60)


@dataclasses.dataclass
class Numbered:
    """Makes `random_design(n)` as design n and records n; raises an error for number `broken`."""

    count: int | None = None
    episodes_per_design: int = 1
    broken: int = -1
    bounds: DesignBounds = BOUNDS
    made: list[int] = dataclasses.field(default_factory=list)

    def __getitem__(self, number: int, /) -> Design:
        self.made.append(number)
        if number == self.broken:
            raise DesignError("this one is broken")
        return random_design(number, canvas=square_canvas(4 + number % 5, 9 - number % 3))


def first_legal(observation: dict[str, np.ndarray]) -> np.ndarray:
    return observation["mask"].reshape(len(observation["step"]), -1).argmax(axis=1)


def episodes(pool, count: int) -> list[list[tuple[int, float]]]:
    """Returns the design and the reward of the first `count` episodes of each environment."""
    found: list[list[tuple[int, float]]] = [[] for _ in range(pool.num_envs)]
    pool.async_reset()
    while min(map(len, found)) < count:
        observation, reward, terminated, _, info = pool.recv(60)
        for row in np.flatnonzero(terminated):
            found[info["env_id"][row]].append((int(observation["design"][row]), float(reward[row])))
        pool.send(first_legal(observation), info["env_id"].copy())
    return [one[:count] for one in found]


@pytest.fixture(scope="module")
def expected() -> list[float]:
    """Returns the reward of each design's episode of first legal gcells, played by a pool of that design alone."""
    rewards = []
    for number in range(12):
        with make_pool(Numbered()[number], 1, config=NONE, num_threads=1) as pool:
            observation, terminated = pool.reset()[0], [False]
            while not terminated[0]:
                observation, reward, terminated, _, _ = pool.step(first_legal(observation))
            rewards.append(float(reward[0]))
    return rewards


@pytest.mark.parametrize(("threads", "batch"), [(1, 3), (3, 3), (1, 2), (2, 1)])
def test_environment_i_plays_every_bth_design(threads: int, batch: int, expected: list[float]) -> None:
    assert isinstance(Numbered(), DesignDistribution)
    with make_pool(Numbered(), ENVS, config=NONE, num_threads=threads, batch_size=batch) as pool:
        for env, played in enumerate(episodes(pool, 4)):
            assert [number for number, _ in played] == [env, env + 3, env + 6, env + 9]
            assert [reward for _, reward in played] == pytest.approx([expected[number] for number, _ in played])


def test_a_design_may_be_played_several_times_and_come_again() -> None:
    with make_pool(Numbered(count=4, episodes_per_design=2), ENVS, config=NONE) as pool:
        numbers = [[number for number, _ in played] for played in episodes(pool, 6)]
    assert numbers == [[0, 0, 3, 3, 2, 2], [1, 1, 0, 0, 3, 3], [2, 2, 1, 1, 0, 0]]


def test_every_reset_but_the_first_draws() -> None:
    with make_pool(Numbered(), ENVS, config=NONE, num_threads=1) as pool:
        drawn = [pool.reset()[0]["design"].tolist() for _ in range(3)]
        assert drawn == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
        assert pool.reset([1])[0]["design"].tolist() == [10]
        assert pool.observe()[0]["design"].tolist() == [6, 10, 8]


def test_at_most_one_design_is_generated_ahead() -> None:
    designs = Numbered()
    with make_pool(designs, ENVS, config=NONE) as pool:
        for _ in range(4):
            pool.reset()
    assert len(set(designs.made)) == len(designs.made)  # each once
    assert set(range(4 * ENVS)) <= set(designs.made) <= set(range(5 * ENVS))


def test_a_placement_is_of_the_design_that_ended() -> None:
    """Also after the environment has continued with its next design."""
    with make_pool(Numbered(), 1, config=NONE, num_threads=1) as pool:
        observation, terminated = pool.reset()[0], [False]
        while not terminated[0]:
            observation, _, terminated, _, info = pool.step(first_legal(observation))
        total = info["costs"][0, 4]
        pool.step([0])
        assert pool.observe()[0]["design"].tolist() == [1]
        design, found = pool.designs[0], pool.placement(0)
        assert legality(design, found) == (0, 0)
        assert compute_costs(design, found, weights=NONE.cost.weights()).total == pytest.approx(total)


def test_a_snapshot_belongs_to_its_design() -> None:
    with make_pool(Numbered(), 2, config=NONE, num_threads=1) as pool:
        pool.reset()
        pool.step(first_legal(pool.observe()[0]))
        state = pool.snapshot(0)
        before = {name: values.copy() for name, values in pool.observe([0])[0].items()}
        with pytest.raises(ValueError, match="a different design"):
            pool.restore(1, state)
        pool.step(first_legal(pool.observe()[0]))
        pool.restore(0, state)
        assert all(np.array_equal(values, before[name]) for name, values in pool.observe([0])[0].items())


@pytest.mark.parametrize(
    ("designs", "message"),
    [
        (Numbered(broken=4), "its next design cannot be generated: this one is broken"),
        (
            Numbered(bounds=BOUNDS._replace(columns=7)),
            r"8 columns.* was drawn, which exceeds the bounds of 9 rows, 7 col",
        ),
    ],
)
def test_a_design_that_cannot_be_made_fails_the_step_that_needs_it(designs: Numbered, message: str) -> None:
    with make_pool(designs, ENVS, config=NONE, num_threads=1) as pool:
        pool.reset()
        with pytest.raises(WorkerError, match=message):
            pool.reset()


def test_the_first_designs_fail_at_once() -> None:
    with pytest.raises(DesignError, match="broken"):
        make_pool(Numbered(broken=2), ENVS)
    with pytest.raises(ValueError, match="design_of_env: must be None with a distribution"):
        make_pool(Numbered(), 2, design_of_env=[0, 1])


def test_the_thread_ends_with_the_pool() -> None:
    def makers() -> int:
        return sum(thread.name == "designs" for thread in threading.enumerate())

    before = makers()
    pool = make_pool(Numbered(), ENVS, config=NONE)
    assert makers() == before + 1
    pool.close()
    assert makers() == before
    pool = make_pool(Numbered(), ENVS, config=NONE)
    maker = pool._maker
    del pool
    gc.collect()
    maker.join()
    assert makers() == before


def test_in_a_jax_program(expected: list[float]) -> None:
    with make_pool(Numbered(), 2, config=NONE, num_threads=1) as pool:
        handle, _, _, step = pool.xla()
        mask = jnp.asarray(pool.reset()[0]["mask"])

        @jax.jit
        def run(handle, mask):
            def turn(carry, _):
                handle, mask = carry
                action = jnp.argmax(mask.reshape(len(mask), -1), axis=1).astype(jnp.int32)
                handle, (observation, reward, terminated, _, _) = step(handle, action)
                return (handle, observation["mask"]), (observation["design"], reward, terminated)

            return jax.lax.scan(turn, (handle, mask), None, length=40)[1]

        design, reward, terminated = map(np.asarray, run(handle, mask))
    for env in range(2):
        ended = np.flatnonzero(terminated[:, env])
        assert design[ended, env].tolist()[:4] == [env, env + 2, env + 4, env + 6]
        assert reward[ended, env][:4] == pytest.approx([expected[number] for number in design[ended, env][:4]])


def test_gymnasium() -> None:
    designs = placement.SyntheticDesigns(macros=(3, 5), soft_macros=(1, 2))
    envs = gymnasium.make_vec("MacroPlacement-v0", num_envs=2, design=designs, num_threads=1)
    names = []
    for _ in range(3):
        observation, _ = envs.reset()
        assert envs.observation_space.contains(observation)
        names.append(observation["design"].tolist())
    assert names == [[0, 1], [2, 3], [4, 5]]
    envs.close()
    env = placement.PlacementEnv(designs)
    for number in (1, 2):  # the constructor's reset began episode 0
        observation, _ = env.reset()
        assert env.design.name == f"train_0_{number}" and env.observation_space.contains(observation)
    env.close()
