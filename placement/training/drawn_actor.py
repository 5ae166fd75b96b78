"""An actor that plays each round with new designs, drawn from a distribution.

`EPISODES_PER_DESIGN` environments play each design, so that the learner can compare their episodes. Round r of actor a
of A has the designs numbered (r · G + g) · A + a, which depend on nothing else. A thread makes them, their environments
and the network's inputs while the previous round is played and learned from.

Axis legend: B environments, G designs of a round.
"""

import concurrent.futures
import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from placement.config import EPISODES_PER_DESIGN, EnvConfig
from placement.engine.drawn_designs import DrawnDesigns
from placement.engine.pool import EnvironmentPool, make_pool
from placement.episode import Episode
from placement.modelcache.store import Snapshot
from placement.policy.agent import Agent
from placement.policy.inputs import GraphInputs, stack_drawn
from placement.training.actor import LEARNER_SECONDS, Actor, ActorContext, batches_for
from placement.training.inference import LocalInference

_LOOK_SECONDS = 0.5


@dataclasses.dataclass(frozen=True)
class DrawnEnvironments:
    """The designs that the actors of a run draw, and the settings that they play them with."""

    designs: DrawnDesigns  # the distribution
    env: EnvConfig  # the environments' settings
    envs: int  # B, divisible by `EPISODES_PER_DESIGN`
    threads: int  # number of threads that step an actor's environments
    compact_maps: bool  # see `make_pool`
    electrostatic: bool  # see `graph_inputs`
    actors: int  # A


class _Round(NamedTuple):
    """The numbers of a round's designs, and their environments and inputs in this order."""

    numbers: list[int]
    pool: EnvironmentPool
    inputs: GraphInputs


class DrawnActor(Actor):
    """An `Actor` whose designs are drawn; `agent` picks the actions, in place of the context's inference."""

    def __init__(
        self,
        number: int,
        context: ActorContext,
        drawn: DrawnEnvironments,
        agent: Agent,
        *,
        key: jax.Array,
        count: int = 0,
    ) -> None:
        self._drawn, self._agent, self._ended = drawn, agent, threading.Event()
        self._maker = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix=f"designs of actor {number}")
        first = self._made(number, count)
        super().__init__(number, context, first.pool, key=key, count=count, batches=batches_for(drawn.envs))
        self._next: concurrent.futures.Future[_Round] = concurrent.futures.Future()
        self._next.set_result(first)

    def run(self, stop: threading.Event) -> None:
        """See `Actor`."""
        try:
            super().run(stop)
        finally:
            self._ended.set()
            self._maker.shutdown(wait=False, cancel_futures=True)

    def play_round(self, snapshot: Snapshot, stopped: Callable[[], bool] = lambda: False) -> Sequence[Episode]:
        """See `Actor`; the episodes name their designs by their numbers in the distribution."""
        deadline = time.monotonic() + LEARNER_SECONDS
        while not concurrent.futures.wait([self._next], _LOOK_SECONDS).done:
            if stopped():
                return []
            if time.monotonic() > deadline:
                raise TimeoutError(f"actor {self._number} waited {LEARNER_SECONDS:g} s for the designs of its round")
        numbers, self._pool, inputs = self._next.result()
        self._next = self._maker.submit(self._made, self._number, self._count + self._drawn.envs)
        self._context = self._context._replace(inference=LocalInference(self._agent.on(inputs)))
        with self._pool:
            played = super().play_round(snapshot, stopped)
        return [episode._replace(design=np.array(numbers[int(episode.design)], np.int32)) for episode in played]

    def _made(self, number: int, count: int) -> _Round:
        """Makes the round whose first episode is the actor's `count`-th; raises CancelledError after its end."""
        drawn, groups = self._drawn, self._drawn.envs // EPISODES_PER_DESIGN
        first = count // EPISODES_PER_DESIGN
        numbers = [(first + group) * drawn.actors + number for group in range(groups)]
        designs = []
        for one in numbers:
            if self._ended.is_set():
                raise concurrent.futures.CancelledError
            designs.append(drawn.designs[one])
        pool = make_pool(
            designs,
            drawn.envs,
            config=drawn.env,
            num_threads=drawn.threads,
            design_of_env=np.repeat(np.arange(groups), EPISODES_PER_DESIGN).tolist(),
            compact_maps=drawn.compact_maps,
            shape=drawn.designs.shape,
        )
        bounds = drawn.designs.distribution.bounds
        inputs = stack_drawn(designs, bounds, count=groups, electrostatic=drawn.electrostatic)
        return _Round(numbers, pool, jax.tree.map(jnp.asarray, inputs))
