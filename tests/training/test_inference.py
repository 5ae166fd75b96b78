"""Local and central inference: the same episodes, parameters transferred to the device once, and clean ends."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from placement.config import EnvConfig, PolicyConfig, PPOConfig
from placement.engine.observation import Observation
from placement.engine.pool import make_pool
from placement.episode import Episode
from placement.modelcache.store import Snapshot
from placement.policy.agent import Agent, Decision
from placement.policy.features import FLOAT32, product_dtype
from placement.ppo.learner import Learner
from placement.training import inference as module
from placement.training.actor import Actor, ActorContext
from placement.training.inference import CentralInference, Inference, InferenceClosed, LocalInference
from placement.utils.worker_threads import Supervisor, WorkerFailed
from tests.support.designs import four_macros, random_design, square_canvas
from tests.support.fakes import FakeAgent
from tests.support.observations import random_observation

LONG = 90.0
DESIGNS = [four_macros(), random_design(1, hard=9, soft=5, ports=4, nets=30, canvas=square_canvas(9, 7))]
ENV = EnvConfig(soft_placer="none")
SMALL = PolicyConfig(node_width=8, rounds=1, grid_width=8)


def _actor(number: int, inference: Inference, *, envs: int = 4, config: PolicyConfig = SMALL, **options: Any) -> Actor:
    context = ActorContext(inference, None, None, None, best=None)  # type: ignore[arg-type]
    compact = product_dtype(config) != FLOAT32
    pool = make_pool(DESIGNS, envs, num_threads=options.pop("threads", 1), config=ENV, compact_maps=compact)
    return Actor(number, context, pool, key=jax.random.key(number), **options)


class _Loop:
    """A central loop in a thread, for the duration of a `with`."""

    def __init__(self, agent: Any, actors: int) -> None:
        self.central, self.supervisor = CentralInference(agent, actors=actors), Supervisor()
        self.supervisor.on_stop(self.central.close)

    def __enter__(self) -> CentralInference:
        self.supervisor.start("central inference", self.central.run)
        return self.central

    def __exit__(self, *error: object) -> None:
        self.supervisor.shut_down(timeout=LONG)


def _same(one: list[Episode], other: list[Episode]) -> None:
    jax.tree.map(np.testing.assert_array_equal, list(one), list(other))


@pytest.fixture(scope="module")
def agent() -> Agent:
    return Agent(SMALL, DESIGNS)


@pytest.fixture(scope="module")
def snapshot(agent: Agent) -> Snapshot:
    return Snapshot(3, jax.tree.map(np.asarray, agent.init(0)))


def test_parameters_go_to_the_device_once_per_version(snapshot: Snapshot) -> None:
    agent = FakeAgent()
    local = LocalInference(agent)
    networks = [local.network(Snapshot(version, {"version": np.array(version)})) for version in (0, 0, 1, 1, 0, 1)]
    assert agent.embedded == [0, 1, 0]
    assert networks[0] is networks[1] and networks[2] is networks[3] is networks[5]
    assert all(isinstance(network.parameters["version"], jax.Array) for network in networks)


def test_a_step_moves_nothing_to_the_device_but_what_is_new(agent: Agent, snapshot: Snapshot) -> None:
    """Neither parameters nor constants are transferred, and one array is returned."""
    network = LocalInference(agent).network(snapshot)
    seen = random_observation(DESIGNS, 0, 4)
    given = jax.tree.leaves((network, agent.network.inputs))
    assert given and all(isinstance(leaf, jax.Array) for leaf in given)
    decision = agent.act(*network, seen, np.zeros(2, np.uint32), energy=np.zeros((4, 2), np.float32))
    assert decision.actions.base is decision.log_probabilities.base
    assert decision.actions.base is not None
    assert isinstance(decision.energy, jax.Array), "stays on the device"


def test_one_actor_plays_the_same_with_central_inference(agent: Agent, snapshot: Snapshot) -> None:
    local = _actor(0, LocalInference(agent)).play_round(snapshot)
    with _Loop(agent, actors=1) as central:
        _same(local, _actor(0, central).play_round(snapshot))
        assert central.batches == central.requests > 0


def test_threads_and_batches_do_not_change_what_is_played(agent: Agent, snapshot: Snapshot) -> None:
    local = LocalInference(agent)
    _same(_actor(0, local).play_round(snapshot), _actor(0, local, threads=3).play_round(snapshot))
    batches = [_actor(0, local, threads=threads, envs=8, batches=2).play_round(snapshot) for threads in (1, 3)]
    _same(*batches)
    assert [int(episode.design) for episode in batches[0]] == [0, 1] * 4
    assert not np.array_equal(batches[0][0].actions, batches[0][4].actions), "the batches drew the same"


class Both(NamedTuple):
    """Both sides of a policy: the learner, and the agent with the learner's parameters."""

    config: PolicyConfig
    learner: Learner
    agent: Agent
    snapshot: Snapshot
    log_probabilities: Callable[[Any, Any, Observation], jax.Array]
    """Log-probabilities of all actions, from parameters, inputs and observations; compiled."""


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def both(request: pytest.FixtureRequest) -> Both:
    config = dataclasses.replace(SMALL, dtype=request.param)
    learner = Learner(config, PPOConfig(minibatch_size=64), ENV, DESIGNS, seed=0)
    agent = Agent(config, DESIGNS)

    def found(params: Any, inputs: Any, seen: Observation) -> jax.Array:
        logits = agent.network.decide(params, agent.network.embed(params, inputs), inputs, seen)
        return jax.nn.log_softmax(logits.reshape(len(logits), -1))

    return Both(config, learner, agent, Snapshot(0, learner.parameters()), jax.jit(found))


@pytest.mark.parametrize("how", ["local", "batches", "central"])
def test_the_learner_finds_the_log_probabilities_that_the_actions_were_drawn_with(both: Both, how: str) -> None:
    config, learner, agent, snapshot, log_probabilities = both
    if how == "central":
        episodes = _together(agent, snapshot, actors=2, config=config)
    else:
        batches = 2 if how == "batches" else 1
        actor = _actor(0, LocalInference(agent), envs=8, threads=2, batches=batches, config=config)
        episodes = list(actor.play_round(snapshot))
    prepared = learner.prepare(episodes)
    assert str(prepared.observation.maps.dtype) == config.dtype
    steps = len(prepared.observation.step) // len(episodes)
    chances = np.asarray(log_probabilities(snapshot.parameters, agent.network.inputs, prepared.observation))
    for number, episode in enumerate(episodes):
        length = int(episode.length)
        mine = chances[number * steps : number * steps + length]
        again = mine[np.arange(length), episode.actions[:length]]
        np.testing.assert_allclose(again, episode.log_probabilities[:length], atol=2e-5)


def _together(agent: Agent, snapshot: Snapshot, *, actors: int, config: PolicyConfig = SMALL) -> list[Episode]:
    """Plays a round of each actor, all served by one loop at the same time."""
    found: dict[int, list[Episode]] = {}
    with _Loop(agent, actors=actors) as central:
        players = [_actor(number, central, config=config) for number in range(actors)]

        def round_of(number: int) -> None:
            found[number] = list(players[number].play_round(snapshot))

        threads = [threading.Thread(target=round_of, args=(number,)) for number in range(actors)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
    return [episode for number in range(actors) for episode in found[number]]


def test_requests_that_wait_go_through_the_network_together() -> None:
    """Batches are powers of two, or all requests; the oldest first; different parameters separately."""
    central = CentralInference(FakeAgent(), actors=7)
    seen = random_observation(DESIGNS, 0, 2)
    networks = [central.network(Snapshot(version, {"version": np.array(version)})) for version in (0, 1)]
    threads = []
    answers: dict[int, Decision] = {}
    for number, network in enumerate([networks[0]] * 5 + [networks[1]] * 2):

        def ask(number: int = number, network: Any = network) -> None:
            answers[number] = central.act(*network, seen, np.array([0, number], np.uint32))

        threads.append(threading.Thread(target=ask))
        threads[-1].start()
        while len(central._waiting) <= number:
            threads[-1].join(0.001)
    stop = threading.Event()
    loop = threading.Thread(target=central.run, args=(stop,))
    loop.start()
    for thread in threads:
        thread.join(LONG)
    stop.set()
    loop.join(LONG)
    assert (central.batches, central.requests) == (3, 7)  # 4 and 1 of version 0, 2 of version 1
    assert [-answers[number].log_probabilities[0] for number in range(7)] == [0] * 5 + [1] * 2


def test_random_numbers_do_not_depend_on_other_waiting_actors(agent: Agent, snapshot: Snapshot) -> None:
    local = LocalInference(agent)
    alone = [episode for number in range(3) for episode in _actor(number, local).play_round(snapshot)]
    together = _together(agent, snapshot, actors=3)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.actions, other.actions)
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=1e-5)


class _Broken(FakeAgent):
    def act_together(self, *arguments: Any, **options: Any) -> list[Decision]:
        raise OSError("the device is gone")


def test_what_goes_wrong_in_the_loop_reaches_the_parent_and_ends_the_actors() -> None:
    loop = _Loop(_Broken(), actors=1)
    snapshot = Snapshot(0, {"version": np.array(0)})
    ended: list[type] = []

    def play() -> None:
        try:
            _actor(0, loop.central).play_round(snapshot)
        except InferenceClosed as error:
            ended.append(type(error))

    with loop:
        thread = threading.Thread(target=play)
        thread.start()
        thread.join(LONG)
    assert ended == [InferenceClosed]
    with pytest.raises(WorkerFailed, match=r"central inference failed: OSError: the device is gone"):
        loop.supervisor.check()


def test_waits_have_a_deadline_and_end_when_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    central = CentralInference(FakeAgent(), actors=1)  # no thread runs its loop
    seen = random_observation(DESIGNS, 0, 2)
    network = central.network(Snapshot(0, {"version": np.array(0)}))
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.05)
    with pytest.raises(TimeoutError, match=r"waited 0\.05 s for the inference loop to decide for 2 environments"):
        central.act(*network, seen, np.zeros(2, np.uint32))
    central.close()
    central.close()
    with pytest.raises(InferenceClosed):
        central.act(*network, seen, np.zeros(2, np.uint32))
