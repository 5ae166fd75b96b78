"""The pool: both modes, automatic reset, several designs, seeds, snapshots, memory."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from placement.config import EnvConfig
from placement.engine.costs import compute_costs, legality
from placement.engine.observation import Result
from placement.engine.pool import EnvironmentPool, make_pool
from placement.netlist.design import Design
from tests.support.designs import Net, Node, NodeKind, build, four_macros, random_design, square_canvas

NONE = EnvConfig(soft_placer="none")


def designs():
    return [four_macros(), random_design(3, canvas=square_canvas(9, 7)), random_design(8, canvas=square_canvas(4, 11))]


def flat(result: Result) -> dict[str, np.ndarray]:
    """Returns a copy of everything in a result by name."""
    observation, reward, terminated, truncated, info = result
    assert not truncated.any()
    arrays = {**observation, "reward": reward, "terminated": terminated, **info}
    return {name: array.copy() for name, array in arrays.items()}


def play(pool: EnvironmentPool, calls: int) -> list[dict[str, np.ndarray]]:
    """Returns the results of `calls` calls of random legal actions in synchronous mode."""
    pool.reset(seed=5)
    return [flat(pool.step(pool.sample_actions())) for _ in range(calls)]


def assert_same(left: dict[str, np.ndarray], right: dict[str, np.ndarray], *, but: tuple[str, ...] = ()) -> None:
    assert left.keys() == right.keys()
    for name in left:
        if name not in but:
            assert left[name].tobytes() == right[name].tobytes(), name


def episode_of(pool: EnvironmentPool, actions: list[int]) -> list[dict[str, np.ndarray]]:
    """Returns one environment's results of the given actions, played alone."""
    return [flat(pool.step(np.array([action], np.int32))) for action in actions]


def test_the_public_face() -> None:
    with placement.make_pool("toy6", 3, num_threads=1) as pool:
        assert len(pool) == pool.num_envs == pool.batch_size == 3
        assert pool.synchronous and pool.config.designs == ("toy6",)
        observation, info = pool.reset()
        assert {name: (array.shape[1:], array.dtype) for name, array in observation.items()} == {
            name: (spec.shape, spec.dtype) for name, spec in pool.spec.observation.items()
        }
        assert info["env_id"].tolist() == [0, 1, 2]
        assert pool.spec.num_actions == pool.spec.rows * pool.spec.columns
    assert pool.closed


@pytest.mark.parametrize("threads", [2, 5])
def test_synchronous_results_do_not_depend_on_the_threads(threads: int) -> None:
    with make_pool(designs(), 12, num_threads=1) as one, make_pool(designs(), 12, num_threads=threads) as several:
        for left, right in zip(play(one, 30), play(several, 30), strict=True):
            assert_same(left, right)
        assert all(one.placement(env) == several.placement(env) for env in range(12))


def test_asynchronous_episodes_are_those_played_alone() -> None:
    chosen = designs()
    with make_pool(chosen, 7, batch_size=3, num_threads=3, seed=1) as pool:
        pool.async_reset()
        seen: dict[int, list[dict[str, np.ndarray]]] = {env: [] for env in range(7)}
        sent: dict[int, list[int]] = {env: [] for env in range(7)}
        for _ in range(60):
            result = flat(pool.recv(timeout=120))
            assert len(result["env_id"]) == 3 and pool.in_flight == 4
            for row, env in enumerate(result["env_id"]):
                seen[env].append({name: array[row : row + 1] for name, array in result.items()})
            actions = pool.sample_actions(result["env_id"])
            for env, action in zip(result["env_id"], actions, strict=True):
                sent[env].append(int(action))
            pool.send(actions, result["env_id"])
    assert sum(map(len, seen.values())) == 180
    for env in range(7):
        index = env % 3
        with make_pool(chosen, 1, num_threads=1, design_of_env=[index]) as alone:
            alone.reset()
            results = episode_of(alone, sent[env][: len(seen[env]) - 1])
            for left, right in zip(seen[env][1:], results, strict=True):
                assert_same(left, right, but=("env_id",))


def test_a_subset_may_be_stepped_and_reset_in_synchronous_mode() -> None:
    with make_pool(designs(), 5, num_threads=2) as pool:
        pool.reset()
        some = np.array([4, 1], np.int32)
        result = flat(pool.step(pool.sample_actions(some), some))
        assert result["env_id"].tolist() == [4, 1] and result["elapsed_step"].tolist() == [1, 1]
        assert flat(pool.observe())["elapsed_step"].tolist() == [0, 1, 0, 0, 1]
        info = pool.reset(np.array([4], np.int32))[1]
        assert info["env_id"].tolist() == [4]
        assert flat(pool.observe())["elapsed_step"].tolist() == [0, 1, 0, 0, 0]


def test_calls_may_overlap_in_synchronous_mode_and_come_in_their_order() -> None:
    with make_pool(designs(), 6, num_threads=2) as pool:
        pool.reset()
        for part in ([5, 0], [3], [1, 2, 4]):
            ids = np.array(part, np.int32)
            pool.send(pool.sample_actions(ids), ids)
        assert [pool.recv()[4]["env_id"].tolist() for _ in range(3)] == [[5, 0], [3], [1, 2, 4]]
        assert pool.in_flight == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_the_call_after_the_end_begins_the_next_episode(threads: int) -> None:
    with make_pool(four_macros(), 2, num_threads=threads) as pool:
        first = pool.reset()[0]
        first = {name: array.copy() for name, array in first.items()}
        results = [flat(pool.step(pool.sample_actions())) for _ in range(3)]
        results.append(flat(pool.step([-5, 10**6])))  # ignored, whatever their values
    assert [result["terminated"].tolist() for result in results] == [[False] * 2] * 2 + [[True] * 2, [False] * 2]
    assert results[2]["step"].tolist() == [3, 3] and not results[2]["mask"].any()
    assert results[3]["elapsed_step"].tolist() == [0, 0] and not results[3]["reward"].any()
    assert np.isnan(results[3]["costs"]).all()
    assert all(np.array_equal(first[name], results[3][name]) for name in first)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_reward_is_minus_the_exact_cost_of_the_placement(threads: int) -> None:
    design = four_macros()
    with make_pool(design, 3, num_threads=threads) as pool:
        pool.reset()
        results = [flat(pool.step(pool.sample_actions())) for _ in range(3)]
        assert [result["terminated"].tolist() for result in results] == [[False] * 3, [False] * 3, [True] * 3]
        assert all((result["reward"] == 0).all() and np.isnan(result["costs"]).all() for result in results[:2])
        for env in range(3):
            placement = pool.placement(env)
            costs = compute_costs(design, placement)
            assert results[-1]["costs"][env].tolist() == list(costs)
            assert results[-1]["reward"][env] == np.float32(-costs.total)
            assert legality(design, placement) == (0, 0)


def dead_ending() -> Design:
    """Two macros; the second has no legal gcell once the first is in the middle."""
    nodes = [
        Node("port", NodeKind.PORT, 0.0, 5.0),
        Node("wide", NodeKind.HARD, 15.0, 15.0, 20.0, 12.0),
        Node("tall", NodeKind.HARD, 15.0, 15.0, 8.0, 28.0),
    ]
    return build("dead_ending", square_canvas(3, 3), nodes, [Net([("port", 0, 0), ("wide", 0, 0), ("tall", 0, 0)])])


def test_a_dead_end_pays_the_penalty() -> None:
    pool = make_pool(dead_ending(), 1, config=EnvConfig(dead_end_penalty=-7.0))
    result = flat(pool.step([4]))
    assert (result["terminated"][0], result["dead_end"][0], result["reward"][0]) == (True, True, -7.0)
    assert np.isnan(result["costs"]).all()
    assert result["step"][0] == 1 and not result["mask"].any()
    with pytest.raises(RuntimeError, match="has not placed all macros of 'dead_ending'"):
        pool.placement(0)


def test_a_pool_begins_with_the_first_observations() -> None:
    with make_pool(designs(), 3) as pool:
        shown = flat(pool.observe())
        pool.reset()
        assert_same(shown, flat(pool.observe()))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64, list])
def test_actions_and_numbers_of_environments_are_integers_of_any_dtype(dtype) -> None:
    def cast(values: list[int]):
        return values if dtype is list else np.array(values, dtype)

    with make_pool(four_macros(), 3, num_threads=1) as pool:
        observation, _, _, _, info = pool.step(cast([12, 7]), cast([2, 0]))
        assert info["env_id"].tolist() == [2, 0] and observation["step"].tolist() == [1, 1]
        assert pool.reset(cast([2]))[1]["env_id"].tolist() == [2]


def test_the_spaces_hold_what_the_pool_shows_and_takes() -> None:
    with make_pool(designs(), 3, num_threads=1) as pool:
        pool.reset()
        for _ in range(12):
            actions = pool.sample_actions()
            observation = pool.step(actions)[0]
            for env in range(3):
                shown = {name: array[env] for name, array in observation.items()}
                assert pool.observation_space.contains(shown), shown
                assert actions[env] == -1 or pool.action_space.contains(actions[env])
        assert pool.action_space.n == pool.spec.num_actions
        assert not pool.observation_space.contains({**shown, "step": np.int32(pool.spec.steps + 1)})


def test_a_synchronous_pool_of_one_thread_is_the_callers_thread_until_it_sends() -> None:
    before = len(os.listdir("/proc/self/task"))
    with make_pool(four_macros(), 4, num_threads=1) as pool:
        pool.reset()
        pool.step(pool.sample_actions())
        assert len(os.listdir("/proc/self/task")) == before
        pool.send(pool.sample_actions())
        assert len(os.listdir("/proc/self/task")) == before + 1
        assert pool.recv(timeout=60)[4]["elapsed_step"].tolist() == [2] * 4
    assert len(os.listdir("/proc/self/task")) == before


def test_true_sizes_come_with_padded_observations() -> None:
    chosen = designs()
    with make_pool(chosen, 3, num_threads=1) as pool:
        info = pool.reset()[1]
        assert info["rows"].tolist() == [design.canvas.rows for design in chosen]
        assert info["columns"].tolist() == [design.canvas.columns for design in chosen]
        assert info["macros"].tolist() == [len(design.placing_order) for design in chosen]


def test_seeds_govern_the_sampled_actions() -> None:
    def drawn(pool: EnvironmentPool, seed) -> list[int]:
        pool.reset(seed=seed)
        return pool.sample_actions().tolist()

    design = random_design(3, canvas=square_canvas(9, 7))
    with make_pool(design, 4, num_threads=1, seed=3) as pool, make_pool(design, 4, num_threads=2, seed=3) as same:
        pool.reset(), same.reset()
        assert pool.sample_actions().tolist() == same.sample_actions().tolist()
        assert drawn(pool, 7) == drawn(pool, 7) == drawn(same, 7) == drawn(same, [7, 8, 9, 10])
        assert drawn(pool, 7) != drawn(pool, 8)
        assert len(set(drawn(pool, 7))) > 1
        assert drawn(pool, 7)[1:] == drawn(pool, 8)[:3]


def test_sampled_actions_reach_every_legal_gcell_and_no_other() -> None:
    with make_pool(four_macros(), 1, num_threads=1) as pool:
        mask = pool.reset()[0]["mask"][0].reshape(-1)
        drawn = {int(pool.sample_actions()[0]) for _ in range(500)}
        assert drawn == set(np.flatnonzero(mask).tolist())


def test_a_snapshot_resumes_where_it_was_taken() -> None:
    design = random_design(3, canvas=square_canvas(9, 7))
    with make_pool(design, 2, num_threads=2, seed=1) as pool, make_pool([four_macros(), design], 2) as other:
        pool.reset(), other.reset()
        for _ in range(3):
            pool.step(pool.sample_actions())
        state = pool.snapshot(0)
        assert isinstance(state, bytes)
        pool.restore(1, state)
        other.restore(1, state)
        assert pool.snapshot(1) == other.snapshot(1) == state
        for _ in range(12):
            actions = pool.sample_actions()
            assert actions[0] == actions[1]
            both = flat(pool.step(actions))
            assert all(array[0].tobytes() == array[1].tobytes() for name, array in both.items() if name != "env_id")
        assert pool.snapshot(0) == pool.snapshot(1)


def test_a_snapshot_of_a_finished_episode_holds_its_placement() -> None:
    with make_pool(four_macros(), 2, num_threads=1) as pool:
        pool.reset()
        for _ in range(3):
            result = flat(pool.step(pool.sample_actions()))
        state = pool.snapshot(0)
    with make_pool(four_macros(), 1, num_threads=1) as pool:
        pool.restore(0, state)
        observed = flat(pool.observe())
        assert_same(observed, {name: array[:1] for name, array in result.items()})
        assert compute_costs(four_macros(), pool.placement(0)).total == observed["costs"][0, 4]


def test_the_snapshot_format_stays_as_it_is() -> None:
    """Version 1, byte by byte as placement/engine/native/env/snapshot.hpp defines it, of an episode's second step."""
    with make_pool(four_macros(), 1, num_threads=1, seed=9) as pool:
        pool.reset()
        pool.step(np.array([12], np.int32))
        state = pool.snapshot(0)
    assert state[:12] == b"PLACEENV\x01\0\0\0"
    assert state[28:38] == b"\0\0\x01\0\0\0\x0c\0\0\0"  # neither ended nor dead end; one macro, on gcell 12
    assert np.frombuffer(state[38:46], "<f8")[0] == 0 and np.isnan(np.frombuffer(state[46:86], "<f8")).all()
    assert state[86:90] == bytes(4) and len(state) == 98
    checksum = 0xCBF29CE484222325
    for byte in state[:-8]:
        checksum = (checksum ^ byte) * 0x100000001B3 % 2**64
    assert int.from_bytes(state[-8:], "little") == checksum


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "empty", "longer"])
def test_a_damaged_snapshot_is_rejected_and_changes_nothing(damage: str) -> None:
    with make_pool([four_macros(), designs()[1]], 2, num_threads=1) as pool:
        pool.reset()
        pool.step(pool.sample_actions())
        before, state = pool.snapshot(0), bytearray(pool.snapshot(0))
        if damage == "flipped":
            state[30] ^= 1
        spoilt = {"cut": state[:-1], "flipped": state, "empty": b"", "longer": state + b"\0"}
        with pytest.raises(ValueError, match="snapshot"):
            pool.restore(0, pool.snapshot(1) if damage == "foreign" else bytes(spoilt[damage]))
        assert pool.snapshot(0) == before


@pytest.mark.parametrize("batch_size", [4, 2])
def test_results_are_not_written_over_while_they_are_held(batch_size: int) -> None:
    with make_pool(designs(), 4, batch_size=batch_size, num_threads=2) as pool:
        pool.async_reset()
        held, copies = [], []
        for turn in range(40):
            result = pool.recv()
            copies.append(flat(result))
            if turn % 3 == 0:  # a view is enough to hold a batch
                held.append((result[0]["maps"][0], copies[-1]["maps"][0]))
            else:
                held.append((result[0]["maps"], copies[-1]["maps"]))
            ids = result[4]["env_id"].copy()
            del result
            pool.send(pool.sample_actions(ids), ids)
        assert all(np.array_equal(array, copy) for array, copy in held)
    assert all(np.array_equal(array, copy) for array, copy in held)  # and they outlive the pool, too


def test_batches_that_nobody_holds_are_used_again_without_a_copy() -> None:
    with make_pool(four_macros(), 4, num_threads=2) as pool:
        pool.reset()
        places = {pool.step(pool.sample_actions())[0]["maps"].ctypes.data for _ in range(30)}
        assert len(places) <= 3


@settings(max_examples=20, deadline=None)
@given(
    envs=st.integers(1, 9),
    data=st.data(),
    threads=st.integers(1, 4),
    seed=st.integers(0, 100),
)
def test_any_traffic_keeps_every_environment_whole(envs: int, data, threads: int, seed: int) -> None:
    """Random batch sizes, subsets and resets: each environment's number of steps equals the number sent to it."""
    batch = data.draw(st.integers(1, envs))
    generator = np.random.default_rng(seed)
    with make_pool(designs(), envs, batch_size=batch, num_threads=threads, config=NONE) as pool:
        pool.async_reset()
        expected, ended = np.zeros(envs, int), np.zeros(envs, bool)
        resting: list[int] = []
        for _ in range(40):
            while pool.in_flight >= (1 if pool.synchronous else batch):
                result = flat(pool.recv(timeout=120))
                for row, env in enumerate(result["env_id"]):
                    assert result["elapsed_step"][row] == expected[env]
                    ended[env] = result["terminated"][row]
                resting += result["env_id"].tolist()
            generator.shuffle(resting)
            least = max(1, batch - pool.in_flight) if not pool.synchronous else 1
            count = int(generator.integers(least, len(resting) + 1))
            ids, resting = np.array(resting[:count], np.int32), resting[count:]
            if generator.random() < 0.2:
                pool.async_reset(ids)
                expected[ids] = 0
            else:
                pool.send(pool.sample_actions(ids), ids)
                expected[ids] = np.where(ended[ids], 0, expected[ids] + 1)


@pytest.mark.parametrize("threads", [1, 3])
def test_compact_maps_are_the_maps_rounded_to_bfloat16(threads: int) -> None:
    designs = [four_macros(), random_design(1, hard=9, soft=5, ports=4, nets=30, canvas=square_canvas(9, 7))]
    pools = [make_pool(designs, 4, num_threads=threads, compact_maps=compact) for compact in (False, True)]
    shown = [pool.reset()[0] for pool in pools]
    for _ in range(pools[0].spec.steps):
        full, compact = shown
        assert compact["maps"].dtype == pools[1].spec.observation["maps"].dtype == "bfloat16"
        np.testing.assert_array_equal(compact["maps"], full["maps"].astype("bfloat16"))
        for name in ("design", "step", "mask", "x", "y"):
            np.testing.assert_array_equal(compact[name], full[name])
        np.testing.assert_array_equal(pools[1].observe()[0]["maps"], compact["maps"])
        actions = pools[0].sample_actions()
        shown = [pool.step(actions)[0] for pool in pools]
    with pytest.raises(ValueError, match="compact_maps"):
        pools[1].xla()


def test_a_pool_knows_what_its_threads_have_used() -> None:
    alone, helped = make_pool("toy6", 8, num_threads=1), make_pool("toy6", 8, num_threads=2, batch_size=4)
    assert alone.thread_seconds() == 0, "the caller's thread works"
    before = helped.thread_seconds()
    helped.async_reset()
    for _ in range(60):
        ready = helped.recv()[4]["env_id"]
        helped.send(helped.sample_actions(ready), ready)
    assert helped.thread_seconds() > before
    helped.close()
    with pytest.raises(RuntimeError, match="closed"):
        helped.thread_seconds()
