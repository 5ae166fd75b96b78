"""Actors and evaluators over real environments, with a fake network."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import jax
import numpy as np
import pytest

from placement.config import EnvConfig, PolicyConfig
from placement.engine.costs import compute_costs, legality
from placement.engine.pool import make_pool
from placement.episode import Schema
from placement.modelcache.store import MemoryStore, Snapshot
from placement.netlist.design import Design
from placement.netlist.load import load
from placement.policy.agent import Agent, EmbeddedParameters
from placement.replay.in_process import MemoryReplay
from placement.training.actor import Actor, ActorContext, EpisodeSchedule
from placement.training.best import BestTracker
from placement.training.inference import LocalInference
from placement.training.rollout import Evaluator, play
from tests.support.fakes import FakeAgent

LONG = 90.0
KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def designs() -> list[Design]:
    return [load("toy6"), load("planted20")]


def _context(designs: list[Design], *, per_iteration: int = 4, staleness: int = 0, capacity: int = 64) -> Any:
    steps = max(len(design.placing_order) for design in designs)
    return ActorContext(
        inference=LocalInference(FakeAgent()),
        schedule=EpisodeSchedule(episodes_per_iteration=per_iteration, max_staleness=staleness),
        store=MemoryStore(),
        replay=MemoryReplay(capacity=capacity, steps=steps, designs=len(designs)),
        best=BestTracker(designs),
    )


def _actor(designs: list[Design], context: ActorContext, *, envs: int = 4, **options: Any) -> Actor:
    return Actor(0, context, make_pool(designs, envs, num_threads=1), key=KEY, **options)


def _snapshot(version: int) -> Snapshot:
    return Snapshot(version, {"version": np.array(version, np.int32)})


def test_a_round_of_two_designs_is_well_formed(designs: list[Design]) -> None:
    context = _context(designs)
    episodes = _actor(designs, context, count=8).play_round(_snapshot(3))
    assert [tuple(episode.identity) for episode in episodes] == [(0, 8), (0, 9), (0, 10), (0, 11)]
    assert [int(episode.design) for episode in episodes] == [0, 1, 0, 1]
    steps = max(len(design.placing_order) for design in designs)
    for episode in episodes:
        Schema(steps, 2).check(episode)
        design, length = designs[int(episode.design)], int(episode.length)
        assert length == len(design.placing_order)
        assert episode.version == 3 and not episode.dead_end
        assert (episode.log_probabilities[:length] == -3).all(), "an action was drawn with other parameters"
        assert episode.reward == np.float32(-episode.costs[4])


def test_the_actions_lead_to_the_costs(designs: list[Design]) -> None:
    episodes = _actor(designs, _context(designs)).play_round(_snapshot(0))
    for episode in episodes:
        pool = make_pool(designs[int(episode.design)], 1)
        pool.reset()
        columns = max(design.canvas.columns for design in designs)
        for action in episode.actions[: int(episode.length)]:
            row, column = divmod(int(action), columns)
            info = pool.step([row * pool.spec.columns + column])[4]
        np.testing.assert_array_equal(info["costs"][0], episode.costs)


def test_the_best_placement_of_a_round_is_reported_with_its_exact_cost(designs: list[Design]) -> None:
    context = _context(designs)
    episodes = _actor(designs, context, envs=12).play_round(_snapshot(0))
    for index, design in enumerate(designs):
        best = context.best.best(index)
        assert best is not None
        mine = [episode for episode in episodes if episode.design == index]
        assert best.costs.total == min(episode.costs[4] for episode in mine)
        assert compute_costs(design, best.placement) == pytest.approx(best.costs, rel=1e-12)
        assert legality(design, best.placement) == (0, 0)
        cheapest = min(mine, key=lambda episode: episode.costs[4])
        assert best.origin == f"actor 0, episode {cheapest.identity[1]}, parameters of iteration 0"


def test_rounds_depend_on_key_and_count_alone(designs: list[Design]) -> None:
    one, other = (_actor(designs, _context(designs)) for _ in range(2))
    first, second = one.play_round(_snapshot(0)), one.play_round(_snapshot(0))
    again = other.play_round(_snapshot(0))
    resumed = _actor(designs, _context(designs), count=4).play_round(_snapshot(0))
    _same(first, again)
    _same(second, resumed)
    assert not np.array_equal(first[0].actions, second[0].actions)


def _same(one: Any, other: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, list(one), list(other))


def test_a_stopped_round_gives_no_episode(designs: list[Design]) -> None:
    answers = iter([False, False, True])
    assert list(_actor(designs, _context(designs)).play_round(_snapshot(0), lambda: next(answers))) == []


def test_a_dead_end_is_an_episode_with_the_penalty() -> None:
    design = _tight()
    context = _context([design])
    pool = make_pool([design], 16, num_threads=1, config=EnvConfig(dead_end_penalty=-7.0))
    episodes = Actor(0, context, pool, key=KEY).play_round(_snapshot(0))
    dead = [episode for episode in episodes if episode.dead_end]
    assert 0 < len(dead) < 16, "the design must be tight but solvable"
    for episode in dead:
        Schema(len(design.placing_order)).check(episode)
        assert episode.reward == -7 and np.isnan(episode.costs).all()
        assert episode.length < len(design.placing_order)
        assert (episode.actions[int(episode.length) :] == -1).all()
    assert context.best.limit(0) == min(episode.costs[4] for episode in episodes if not episode.dead_end)


def _tight() -> Design:
    """Returns a design where the second macro does not fit if the first is in the middle."""
    from placement.netlist.design import NodeKind
    from tests.support.designs import Net, Node, build, square_canvas

    canvas = square_canvas(5, 5, cell=20.0)
    nodes = [
        Node("a", NodeKind.HARD, 50, 20, width=60, height=40),
        Node("b", NodeKind.HARD, 50, 80, width=60, height=39),
        Node("p", NodeKind.PORT, 0, 0),
    ]
    nets = [Net([("p", 0, 0), ("a", 0, 0), ("b", 0, 0)])]
    return build("tight", canvas, nodes, nets)


def test_in_lock_step_every_episode_has_the_learners_version(designs: list[Design]) -> None:
    context, stop = _context(designs, per_iteration=8), threading.Event()
    thread = threading.Thread(target=_actor(designs, context).run, args=(stop,), daemon=True)
    context.store.publish(0, {"version": np.array(0, np.int32)})
    thread.start()
    for version in range(3):
        episodes = context.replay.read(8, timeout=LONG)
        assert {int(episode.version) for episode in episodes} == {version}
        context.store.publish(version + 1, {"version": np.array(version + 1, np.int32)})
    _end(thread, stop, context)


def test_staleness_is_bounded_and_the_actor_waits_at_the_bound(designs: list[Design]) -> None:
    context, stop = _context(designs, per_iteration=4, staleness=1), threading.Event()
    thread = threading.Thread(target=_actor(designs, context).run, args=(stop,), daemon=True)
    context.store.publish(0, {"version": np.array(0, np.int32)})
    thread.start()
    versions = [{int(episode.version) for episode in context.replay.read(4, timeout=LONG)} for _ in range(2)]
    assert versions == [{0}, {0}]
    with pytest.raises(TimeoutError):
        context.replay.read(1, timeout=0.3)  # the third iteration's episodes need version 1
    context.store.publish(1, {"version": np.array(1, np.int32)})
    assert {int(episode.version) for episode in context.replay.read(4, timeout=LONG)} == {1}
    _end(thread, stop, context)


@pytest.mark.parametrize("waits_for", ["parameters", "room"])
def test_a_waiting_actor_ends_on_request(designs: list[Design], waits_for: str) -> None:
    context, stop = _context(designs, capacity=2, staleness=99), threading.Event()
    if waits_for == "room":
        context.store.publish(0, {"version": np.array(0, np.int32)})
    waits = _event_of(context.store, "wait_for") if waits_for == "parameters" else _event_of(context.replay, "write", 3)
    thread = threading.Thread(target=_actor(designs, context).run, args=(stop,), daemon=True)
    thread.start()
    assert waits.wait(LONG) and thread.is_alive()
    _end(thread, stop, context)


def _event_of(what: Any, name: str, call: int = 1) -> threading.Event:
    """Returns an event that is set as soon as the method is called `call` times."""
    called, calls, method = threading.Event(), itertools.count(1), getattr(what, name)

    def recording(*arguments: Any, **options: Any) -> Any:
        if next(calls) == call:
            called.set()
        return method(*arguments, **options)

    setattr(what, name, recording)
    return called


def _end(thread: threading.Thread, stop: threading.Event, context: ActorContext) -> None:
    stop.set()
    context.schedule.close()
    context.store.close()
    context.replay.close()
    thread.join(LONG)
    assert not thread.is_alive()


def test_a_closed_store_without_a_stop_is_an_error(designs: list[Design]) -> None:
    context = _context(designs)
    context.store.close()
    with pytest.raises(RuntimeError, match="store is closed"):
        _actor(designs, context).run(threading.Event())


def test_the_evaluator_plays_greedily_and_draws_samples_on_each_design(designs: list[Design]) -> None:
    evaluator = Evaluator(FakeAgent(), designs, env=EnvConfig(), samples=3)
    evaluations = evaluator.evaluate({"version": np.array(0, np.int32)}, KEY)
    assert [(found.design, found.greedy) for found in evaluations] == [
        *((0, True), (1, True)),
        *[(0, False)] * 3,
        *[(1, False)] * 3,
    ]
    for found in evaluations:
        assert found.costs is not None and found.placement is not None and not found.dead_end
        assert compute_costs(designs[found.design], found.placement) == pytest.approx(found.costs, rel=1e-12)
    again = evaluator.evaluate({"version": np.array(0, np.int32)}, jax.random.key(1))
    costs = [[found.costs for found in each] for each in (evaluations, again)]
    assert len(set(costs[0])) == len(costs[0])
    assert costs[0][:2] == costs[1][:2] and costs[0][2:] != costs[1][2:]


def test_the_check_for_finite_outputs_compiles_nothing_more() -> None:
    design = load("toy6")
    agent = Agent(PolicyConfig(node_width=8, grid_width=8, rounds=1), [design])
    evaluator, parameters = Evaluator(agent, [design], env=EnvConfig()), agent.init(0)
    assert evaluator.evaluate(parameters, KEY)
    count = agent.trace_count
    assert evaluator.finite(parameters)
    assert agent.trace_count == count


def test_a_stopped_evaluation_gives_nothing(designs: list[Design]) -> None:
    evaluator = Evaluator(FakeAgent(), designs, env=EnvConfig())
    assert evaluator.evaluate({"version": np.array(0, np.int32)}, KEY, stopped=lambda: True) == []


def test_play_gives_what_the_pool_gave(designs: list[Design]) -> None:
    pool = make_pool(designs, 3, num_threads=1)
    played = play(FakeAgent(), pool, EmbeddedParameters({"version": np.array(0, np.int32)}, 0), KEY)
    assert played is not None
    assert played.design.tolist() == list(pool.config.design_of_env)
    assert isinstance(played.costs, np.ndarray) and np.isfinite(played.costs).all()
