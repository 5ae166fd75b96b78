"""A process's connection to the coordinator: a thread sends heartbeats at intervals and keeps the newest answer."""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from placement.config import RuntimeConfig
from placement.runtimes.ray.messages import Heartbeat, HeartbeatReply, Rendezvous, ServerLocation, Shortfall, Who
from placement.runtimes.ray.processes import resident_mb

_log = logging.getLogger(__name__)
ANSWER_SECONDS = 5.0
"""That the coordinator may take to answer before the heartbeat is given up; the next one follows."""
RENDEZVOUS_SECONDS = 0.1
OUT_OF_MEMORY = 75
"""Exit code of a process that takes more memory than it may."""

Measure = Callable[[], Mapping[str, float]]


class CoordinatorClient:
    """Sends one process's heartbeats until it is closed.

    Args:
        coordinator: handle of the coordinator.
        who: this process.
        runtime: how often to send one, how many servers there are, how much memory the process may take.

    Attributes:
        host: this machine, as Ray knows it.
        reply: the newest answer.
        incarnation: a number that no other start of any process has (40 random bits).
        measure: returns the numbers to send; may be replaced.
        on_stop: called once when the coordinator says that the run ends; may be replaced.
        on_too_large: called before a process that takes too much memory is ended; may be replaced.
    """

    def __init__(self, coordinator: Any, who: Who, runtime: RuntimeConfig) -> None:
        import ray  # only processes of Ray have one

        self._ray, self._coordinator, self._who = ray, coordinator, who
        self._seconds = runtime.timing.heartbeat
        self._memory_mb = getattr(runtime.roles, who.role.value).memory_mb
        self.incarnation = secrets.randbits(40)
        self.measure: Measure = dict
        self.on_stop: Callable[[], None] = lambda: None
        self.on_too_large: Callable[[], None] = lambda: None
        self.host = ray.util.get_node_ip_address()
        self._address, self._ready, self._rendezvous = "", False, Rendezvous()
        self.reply = HeartbeatReply()
        self._shards = (ServerLocation(),) * runtime.shards
        self._caches = (ServerLocation(),) * runtime.caches
        self._wake, self._closed = threading.Event(), threading.Event()
        self._told_to_stop = False
        self._thread = threading.Thread(target=self._run, name=f"{who} heartbeat", daemon=True)
        self._thread.start()

    def serve(self, address: str) -> None:
        """From now on heartbeats say that this process serves at `address`; the first one goes at once."""
        self._address = address
        self.ready()

    def ready(self) -> None:
        """From now on heartbeats say that the process has started."""
        self._ready = True
        self._wake.set()

    def offer_rendezvous(self, rendezvous: Rendezvous) -> None:
        """From now on heartbeats say where the learner hosts meet; the first one goes at once."""
        self._rendezvous = rendezvous
        self._wake.set()

    def wait_for_rendezvous(self, number: int, *, timeout: float) -> Rendezvous:
        """The learner hosts' rendezvous of that number; raises TimeoutError if nobody asks to it in time."""
        deadline = time.monotonic() + timeout
        while self.reply.rendezvous.number != number:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._who} waited {timeout:g} s for the first learner to say where they meet")
            if self._closed.wait(RENDEZVOUS_SECONDS):
                raise TimeoutError(f"{self._who} does not meet the other learners: the run is ending")
            self._wake.set()
        return self.reply.rendezvous

    def shards(self, numbers: Sequence[int] | None = None) -> tuple[str, ...]:
        """The present address of each shard, or of these; "" = down."""
        places = self._shards
        return tuple(places[number].address for number in (range(len(places)) if numbers is None else numbers))

    def caches(self) -> tuple[str, ...]:
        """The present address of each cache; "" = down."""
        return tuple(place.address for place in self._caches)

    def cache_hosts(self) -> tuple[str, ...]:
        """Each cache's machine."""
        return tuple(place.host for place in self._caches)

    def shard_hosts(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """These shards' machines."""
        return tuple(self._shards[number].host for number in numbers)

    def cache_addresses(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The present addresses of these caches (`tree.ROOT`: the learner's own) that are up, in their order."""
        places = [self.reply.root if number < 0 else self._caches[number] for number in numbers]
        return tuple(place.address for place in places if place.address)

    def report_shortfall(self, shortfall: Shortfall) -> None:
        """Tells the coordinator; does not wait."""
        self._coordinator.report_shortfall.remote(shortfall, self._who.number)

    def iteration(self, row: Mapping[str, float]) -> None:
        """Sends a row of metrics to the coordinator; does not wait."""
        self._coordinator.row.remote(dict(row))

    def note(self, text: str) -> None:
        """Sends a line for people to the coordinator; does not wait."""
        self._coordinator.note.remote(text)

    def close(self) -> None:
        """Ends the heartbeats. May be called twice."""
        self._closed.set()
        self._wake.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(ANSWER_SECONDS + self._seconds)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._send()
            self._bound_memory()
            self._wake.wait(self._seconds)
            self._wake.clear()

    def _send(self) -> None:
        try:
            measures = {**self.measure(), "resident_mb": resident_mb()}
        except Exception:  # noqa: BLE001  a failing measurement must not stop the heartbeats
            _log.exception("%s cannot measure itself", self._who)
            measures = {}
        who, served = self._who, (self._address, self._ready)
        heartbeat = Heartbeat(who, self.incarnation, self.host, os.getpid(), *served, measures, self._rendezvous)
        try:
            reply = self._ray.get(
                self._coordinator.heartbeat.remote(heartbeat, self.reply.edition), timeout=ANSWER_SECONDS
            )
        except self._ray.exceptions.RayError as error:  # the coordinator is being restarted
            _log.debug("%s sent a heartbeat that got no answer: %s", self._who, error)
            return
        self._shards = self._shards if reply.shards is None else reply.shards
        self._caches = self._caches if reply.caches is None else reply.caches
        self.reply = reply
        if reply.stop and not self._told_to_stop:
            self._told_to_stop = True
            self.on_stop()

    def _bound_memory(self) -> None:
        taken = resident_mb()
        if self._memory_mb and taken > self._memory_mb:
            self.note(f"{self._who} takes {taken:.0f} MB, more than its {self._memory_mb} MB: it is restarted")
            self.on_too_large()
            time.sleep(self._seconds)  # so that the note gets out
            os._exit(OUT_OF_MEMORY)


def nearest(hosts: tuple[str, ...], host: str, number: int) -> int:
    """Which of the servers on `hosts` process `number` on machine `host` uses: one of its own machine, else by number.

    Raises:
        ValueError: there is none.
    """
    if not hosts:
        raise ValueError("nearest: there is no server")
    here = [index for index, other in enumerate(hosts) if other == host]
    return here[number % len(here)] if here else number % len(hosts)
