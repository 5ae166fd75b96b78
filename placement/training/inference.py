"""Picks actions for the actors of a process: `LocalInference` for each actor separately, `CentralInference` in one
loop.

Parameters are moved to the device once per version, regardless of the number of callers and calls.

Axis legend: B environments.
"""

from __future__ import annotations

import abc
import concurrent.futures
import threading
from collections.abc import Sequence
from typing import NamedTuple

import jax

from placement.modelcache.store import Snapshot
from placement.policy.agent import Acting, Agent, Decision, EmbeddedParameters, Request

ANSWER_SECONDS = 600.0  # timeout of an actor's wait for the inference loop, in seconds
SLICE_SECONDS = 0.1  # waits for requests are split into slices of this many seconds, to check whether to stop


class InferenceClosed(RuntimeError):
    """The run is ending, and no more actions are picked."""


class Inference(Acting):
    """The interface that actors request actions from."""

    @abc.abstractmethod
    def network(self, snapshot: Snapshot) -> EmbeddedParameters:
        """The snapshot's parameters and embeddings, on the device."""


class LocalInference(Inference):
    """Each caller evaluates the network with its own environments alone; `agent` is the policy."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._newest: tuple[int, EmbeddedParameters] | None = None

    def network(self, snapshot: Snapshot) -> EmbeddedParameters:
        """See `Inference`; those of the newest version are kept."""
        with self._lock:
            if self._newest is not None and self._newest[0] == snapshot.version:
                return self._newest[1]
            parameters = jax.device_put(snapshot.parameters)
            network = EmbeddedParameters(parameters, self._agent.embed(parameters))
            if self._newest is None or self._newest[0] < snapshot.version:
                self._newest = snapshot.version, network
            return network

    def act_together(
        self, network: EmbeddedParameters, requests: Sequence[Request], *, greedy: bool = False, temperature: float = 1
    ) -> list[Decision]:
        return self._agent.act_together(network, requests, greedy=greedy, temperature=temperature)


class _Waiting(NamedTuple):
    """A request, its parameters, and the queue of its answer."""

    network: EmbeddedParameters
    greedy: bool
    request: Request
    answer: concurrent.futures.Future[Decision]

    def goes_with(self, other: _Waiting) -> bool:
        return self.network.embeddings is other.network.embeddings and self.greedy == other.greedy


class CentralInference(LocalInference):
    """One loop decides for all actors: requests that wait when the device is free are evaluated together.

    This follows Espeholt et al. 2020, "SEED RL", but whole episodes are drawn with one version, as everywhere here:
    requests with different parameters are not mixed. A batch contains 1, 2, 4, … requests, or all actors', so that few
    programs are compiled. Each request has its own random numbers, so its actions do not depend on the other requests,
    except for the last bits of the network's arithmetic. At most `actors` wait at once.
    """

    def __init__(self, agent: Agent, *, actors: int) -> None:
        super().__init__(agent)
        self._actors = actors
        self._waiting: list[_Waiting] = []
        self._under_way: list[_Waiting] = []
        self._changed = threading.Condition()
        self._closed = False
        self.batches = self.requests = 0

    def act_together(
        self, network: EmbeddedParameters, requests: Sequence[Request], *, greedy: bool = False, temperature: float = 1
    ) -> list[Decision]:
        """See `Acting`; the thread in `run` decides, at temperature 1.

        Raises InferenceClosed after `close`, and TimeoutError if no answer arrives in `ANSWER_SECONDS`.
        """
        waiting = [_Waiting(network, greedy, request, concurrent.futures.Future()) for request in requests]
        with self._changed:
            if self._closed:
                raise self._ended()
            self._waiting.extend(waiting)
            self._changed.notify_all()
        try:
            return [one.answer.result(ANSWER_SECONDS) for one in waiting]
        except concurrent.futures.CancelledError:
            raise self._ended() from None
        except concurrent.futures.TimeoutError:
            raise TimeoutError(
                f"{threading.current_thread().name} waited {ANSWER_SECONDS:g} s for the inference loop to decide for "
                f"{sum(len(one.observation.step) for one in requests)} environments: it is stuck, or the device is"
            ) from None

    def run(self, stop: threading.Event) -> None:
        """Decides until `stop` is set; an error ends the loop, and `close` must then wake the waiting actors."""
        while not stop.is_set():
            together = self._next()
            if not together:
                continue
            first = together[0]
            requests = [one.request for one in together]
            decisions = self._agent.act_together(first.network, requests, greedy=first.greedy)
            self.batches, self.requests = self.batches + 1, self.requests + len(together)
            for one, decision in zip(together, decisions, strict=True):
                if one.answer.set_running_or_notify_cancel():
                    one.answer.set_result(decision)

    def close(self) -> None:
        """Wakes all waiting actors with InferenceClosed. May be called twice."""
        with self._changed:
            self._closed = True
            for one in [*self._waiting, *self._under_way]:
                one.answer.cancel()
            self._waiting.clear()
            self._changed.notify_all()

    def _next(self) -> list[_Waiting]:
        """The requests to decide next, including the oldest; empty if none arrived for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting, SLICE_SECONDS)
            if not self._waiting:
                return []
            fitting = [one for one in self._waiting if one.goes_with(self._waiting[0])]
            count = len(fitting) if len(fitting) >= self._actors else 1 << (len(fitting).bit_length() - 1)
            self._under_way = fitting[:count]
            taken = {id(one.answer) for one in self._under_way}
            self._waiting = [one for one in self._waiting if id(one.answer) not in taken]
            return self._under_way

    def _ended(self) -> InferenceClosed:
        return InferenceClosed(f"{threading.current_thread().name} cannot continue: central inference is closed")
