"""Who decides for the actors of a process: `LocalInference`, each actor for itself, or `CentralInference`, one loop.

Parameters go to the device once per version, whoever asks for them and however often.

Axis legend: B environments.
"""

from __future__ import annotations

import collections
import concurrent.futures
import threading
from typing import Any, NamedTuple, Protocol

import jax

from placement.engine.observation import Observation
from placement.modelcache.store import Snapshot
from placement.policy.agent import Decision, Request
from placement.training.rollout import Acting, EmbeddedParameters

ANSWER_SECONDS = 600.0
"""That an actor waits for the inference loop's answer."""
SLICE_SECONDS = 0.1
"""A wait for requests is cut into pieces of this length, to see whether to stop."""


class InferenceClosed(RuntimeError):
    """The run is ending: nobody decides any more."""


class Embedding(Acting, Protocol):
    """The part of `placement.policy.agent.Agent` that is used here."""

    def embed(self, params: Any) -> Any:
        """See `Agent.embed`."""

    def act_together(
        self, params: Any, embeddings: Any, requests: Any, *, greedy: bool = False, temperature: float = 1.0
    ) -> list[Decision]:
        """See `Agent.act_together`."""


class Inference(Acting, Protocol):
    """What an actor asks for actions. May be used by several threads at once."""

    def network(self, snapshot: Snapshot) -> EmbeddedParameters:
        """The snapshot's parameters and embeddings, on the device."""


class LocalInference(Inference):
    """Each caller waits for a pass of the network with its own environments alone.

    Args:
        agent: the policy.
    """

    def __init__(self, agent: Embedding) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._newest: tuple[int, EmbeddedParameters] | None = None

    def network(self, snapshot: Snapshot) -> EmbeddedParameters:
        """See `Inference`; the newest version's are kept."""
        with self._lock:
            if self._newest is not None and self._newest[0] == snapshot.version:
                return self._newest[1]
            parameters = jax.device_put(snapshot.parameters)
            network = EmbeddedParameters(parameters, self._agent.embed(parameters))
            if self._newest is None or self._newest[0] < snapshot.version:
                self._newest = snapshot.version, network
            return network

    def act(
        self,
        params: Any,
        embeddings: Any,
        observation: Observation,
        key: Any,
        *,
        greedy: bool = False,
        held: Any = None,
    ) -> Decision:
        """See `Agent.act`."""
        return self._agent.act(params, embeddings, observation, key, greedy=greedy, held=held)


class _Waiting(NamedTuple):
    """A request, with which parameters it is to be decided, and where the answer goes."""

    network: EmbeddedParameters
    greedy: bool
    request: Request
    answer: concurrent.futures.Future[Decision]

    def goes_with(self, other: _Waiting) -> bool:
        """Whether one pass of the network can decide both."""
        return self.network.embeddings is other.network.embeddings and self.greedy == other.greedy


class CentralInference(LocalInference):
    """One loop decides for all actors: what waits when the device is free goes through the network together.

    After Espeholt et al. 2020, "SEED RL", but whole episodes are drawn with one version, as everywhere here: requests
    with different parameters are not mixed. A pass takes 1, 2, 4, … requests, or all actors', so that few programs are
    compiled. Each request's random numbers are its own, so what is drawn does not depend on who waits beside it, but
    for the last bits of the network's arithmetic.

    Args:
        agent: the policy.
        actors: that may wait at once.

    Attributes:
        passes, requests: how many there were.
    """

    def __init__(self, agent: Embedding, *, actors: int) -> None:
        super().__init__(agent)
        self._actors = actors
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._under_way: list[_Waiting] = []
        self._changed = threading.Condition()
        self._closed = False
        self.passes = self.requests = 0

    def act(
        self,
        params: Any,
        embeddings: Any,
        observation: Observation,
        key: Any,
        *,
        greedy: bool = False,
        held: Any = None,
    ) -> Decision:
        """As `Agent.act`, by the thread that is in `run`.

        Raises:
            InferenceClosed: `close` was called.
            TimeoutError: the loop did not answer within `ANSWER_SECONDS`.
        """
        answer: concurrent.futures.Future[Decision] = concurrent.futures.Future()
        request = Request(observation, key, held)
        with self._changed:
            if self._closed:
                raise self._ended()
            self._waiting.append(_Waiting(EmbeddedParameters(params, embeddings), greedy, request, answer))
            self._changed.notify_all()
        try:
            return answer.result(ANSWER_SECONDS)
        except concurrent.futures.CancelledError:
            raise self._ended() from None
        except concurrent.futures.TimeoutError:
            raise TimeoutError(
                f"{threading.current_thread().name} waited {ANSWER_SECONDS:g} s for the inference loop to decide for "
                f"{len(observation.step)} environments: it is stuck, or the device is"
            ) from None

    def run(self, stop: threading.Event) -> None:
        """Decides until `stop` is set; whatever goes wrong ends the loop, and `close` is to tell those who wait."""
        while not stop.is_set():
            together = self._next()
            if not together:
                continue
            first = together[0]
            requests = [one.request for one in together]
            decisions = self._agent.act_together(*first.network, requests, greedy=first.greedy)
            self.passes, self.requests = self.passes + 1, self.requests + len(together)
            for one, decision in zip(together, decisions, strict=True):
                if one.answer.set_running_or_notify_cancel():
                    one.answer.set_result(decision)

    def close(self) -> None:
        """Wakes all who wait (they get InferenceClosed). May be called twice."""
        with self._changed:
            self._closed = True
            for one in [*self._waiting, *self._under_way]:
                one.answer.cancel()
            self._waiting.clear()
            self._changed.notify_all()

    def _next(self) -> list[_Waiting]:
        """What is decided next, the oldest request among it; nothing if none came for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting, SLICE_SECONDS)
            if not self._waiting:
                return []
            oldest = self._waiting[0]
            fitting = [one for one in self._waiting if one.goes_with(oldest)]
            together = fitting[: self._size(len(fitting))]
            self._under_way = together
            taken = {id(one.answer) for one in together}
            self._waiting = collections.deque(one for one in self._waiting if id(one.answer) not in taken)
            return together

    def _size(self, waiting: int) -> int:
        """How many of so many requests one pass takes."""
        return waiting if waiting >= self._actors else 1 << (waiting.bit_length() - 1)

    def _ended(self) -> InferenceClosed:
        return InferenceClosed(f"{threading.current_thread().name} cannot go on: central inference is closed")
