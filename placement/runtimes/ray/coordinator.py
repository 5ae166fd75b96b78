"""The coordinator: every process sends it heartbeats with its address, and receives the other processes' addresses.

It is one small process, whose whole state is contained in the heartbeats: if it restarts, its state is complete after
two of them. No parameters and no episodes pass through it.
"""

import logging
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from placement.config import RuntimeConfig
from placement.runtimes.ray.messages import (
    Heartbeat,
    HeartbeatReply,
    Rendezvous,
    RoleName,
    RunView,
    ServerLocation,
    Shortfall,
    Timing,
    Who,
    host_of,
)
from placement.runtimes.ray.telemetry import resident_mb, summarise

_log = logging.getLogger(__name__)
COORDINATOR = "coordinator"
"""Its name, by which the processes of a run find it; Ray separates the names of different runs."""
OPTIONS = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": 0}
"""Ray's options for it: it reserves no processor and is restarted whenever it dies."""
LOST_HEARTBEATS = 10.0
"""Number of consecutive missed heartbeats after which a process counts as dead until it sends one again."""
NOTES = 200
EDITION_BITS = 62
ANSWER_SECONDS = 5.0  # timeout of the coordinator's answer to a heartbeat, in seconds; the next heartbeat follows
RENDEZVOUS_SECONDS = 0.1
OUT_OF_MEMORY = 75  # exit code of a process that exceeds its memory limit


class Coordinator:
    """The coordinator of a run's shards, caches and learners. It needs no lock: Ray calls one method at a time."""

    def __init__(
        self,
        *,
        shards: int,
        caches: int,
        heartbeat_seconds: float,
        learners: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._learners = learners
        self._counts = {RoleName.SHARD: shards, RoleName.CACHE: caches, RoleName.LEARNER: 1}
        self._lost_after = LOST_HEARTBEATS * heartbeat_seconds
        self._clock = clock
        self._heartbeats: dict[Who, Heartbeat] = {}
        self._heard: dict[Who, float] = {}
        self._rows: deque[Mapping[str, float]] = deque(maxlen=NOTES)
        self._notes: deque[str] = deque(maxlen=NOTES)
        self._restarts: dict[str, float] = {}
        self._shortfalls: dict[int, Shortfall] = {}
        self._locations: dict[RoleName, tuple[ServerLocation, ...]] = {}
        # A restarted coordinator must not repeat an edition that a process already has, whatever its clock reads.
        self._edition = secrets.randbits(EDITION_BITS)
        self._stop = False
        self._publish()

    def heartbeat(self, heartbeat: Heartbeat, edition: int) -> HeartbeatReply:
        """Receives a heartbeat from a process that has the addresses of `edition`."""
        before = self._heartbeats.get(heartbeat.who)
        self._heartbeats[heartbeat.who], self._heard[heartbeat.who] = heartbeat, self._clock()
        if before is None or (before.address, before.host) != (heartbeat.address, heartbeat.host):
            self._publish()
        self._forget_the_lost()
        return self._reply(heartbeat.who, edition)

    def report_shortfall(self, shortfall: Shortfall, host: int = 0) -> None:
        self._shortfalls[host] = shortfall

    def row(self, row: Mapping[str, float]) -> None:
        self._rows.append(row)

    def note(self, text: str) -> None:
        self._notes.append(text)

    def forget(self, who: Who) -> None:
        if self._heartbeats.pop(who, None) is not None:
            self._heard.pop(who)
            self._publish()

    def restarts(self, counts: dict[str, float]) -> None:
        self._restarts = counts

    def stop(self) -> None:
        """From now on, the answer to every heartbeat requests a stop."""
        self._stop = True

    def view(self) -> RunView:
        """The view for the driver; each row and note is returned once."""
        self._forget_the_lost()
        view = RunView(tuple(self._heartbeats.values()), tuple(self._rows), tuple(self._notes), os.getpid())
        self._rows.clear()
        self._notes.clear()
        return view

    def _reply(self, who: Who, edition: int) -> HeartbeatReply:
        known, to_learner = edition == self._edition, who.role is RoleName.LEARNER
        host = host_of(who.number, self._learners)
        first = self._heartbeats.get(Who(RoleName.LEARNER, 0))
        return HeartbeatReply(
            edition=self._edition,
            shards=None if known else self._locations[RoleName.SHARD],
            caches=None if known else self._locations[RoleName.CACHE],
            root=self._locations[RoleName.LEARNER][0],
            actors=sum(
                other.role is RoleName.ACTOR and host_of(other.number, self._learners) == host
                for other in self._heartbeats
            ),
            shortfall=self._shortfalls.get(host, Shortfall()),
            rendezvous=Rendezvous() if first is None else first.rendezvous,
            stop=self._stop,
            summary=summarise(list(self._heartbeats.values())) | self._restarts if to_learner else {},
        )

    def _publish(self) -> None:
        """Updates the addresses; if they changed, increases the edition."""
        locations = {role: self._locations_of(role, count) for role, count in self._counts.items()}
        if locations != self._locations:
            self._locations = locations
            self._edition += 1

    def _locations_of(self, role: RoleName, count: int) -> tuple[ServerLocation, ...]:
        newest = (self._heartbeats.get(Who(role, number)) for number in range(count))
        return tuple(ServerLocation() if one is None else ServerLocation(one.address, one.host) for one in newest)

    def _forget_the_lost(self) -> None:
        now = self._clock()
        for who in [who for who, heard in self._heard.items() if now - heard > self._lost_after]:
            self.forget(who)


class CoordinatorClient:
    """A process's connection to the coordinator through Ray's handle; a thread sends heartbeats.

    Attributes:
        host: this machine's name in Ray.
        reply: the newest answer.
        incarnation: a number that no other start of any process has (40 random bits).
        measure: returns the numbers to send; replaceable.
        on_stop: called once when the coordinator requests a stop; replaceable.
        on_too_large: called before a process that exceeds its memory limit is ended; replaceable.
    """

    def __init__(self, coordinator: Any, who: Who, runtime: RuntimeConfig, timing: Timing) -> None:
        import ray  # Only processes of Ray have one.

        self._ray, self._coordinator, self._who = ray, coordinator, who
        self._seconds = timing.heartbeat
        self._memory_mb = getattr(runtime.roles, who.role.value).memory_mb
        self.incarnation = secrets.randbits(40)
        self.measure: Callable[[], Mapping[str, float]] = dict
        self.on_stop: Callable[[], None] = lambda: None
        self.on_too_large: Callable[[], None] = lambda: None
        self.host = ray.util.get_node_ip_address()
        self._address, self._ready, self._rendezvous = "", False, Rendezvous()
        self.reply = HeartbeatReply()
        self._shards = (ServerLocation(),) * runtime.shards
        self.caches = (ServerLocation(),) * runtime.caches
        self._wake, self._closed = threading.Event(), threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=f"{who} heartbeat", daemon=True)
        self._thread.start()

    def serve(self, address: str) -> None:
        """Sends the address at which this process serves with all further heartbeats, the first one at once."""
        self._address = address
        self.ready()

    def ready(self) -> None:
        self._ready = True
        self._wake.set()

    def offer_rendezvous(self, rendezvous: Rendezvous) -> None:
        """Sends the learner hosts' meeting point with all further heartbeats, the first one at once."""
        self._rendezvous = rendezvous
        self._wake.set()

    def wait_for_rendezvous(self, number: int, *, timeout: float) -> Rendezvous:
        """Waits for the learner hosts' rendezvous of a number; raises TimeoutError if none is offered in time."""
        deadline = time.monotonic() + timeout
        while self.reply.rendezvous.number != number:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._who} waited {timeout:g} s for the first learner's rendezvous address")
            if self._closed.wait(RENDEZVOUS_SECONDS):
                raise TimeoutError(f"{self._who} cannot join the other learners: the run is ending")
            self._wake.set()
        return self.reply.rendezvous

    def shards(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The current addresses of these shards; "" means down."""
        return tuple(self._shards[number].address for number in numbers)

    def shard_hosts(self, numbers: Sequence[int]) -> tuple[str, ...]:
        return tuple(self._shards[number].host for number in numbers)

    def cache_hosts(self) -> tuple[str, ...]:
        return tuple(place.host for place in self.caches)

    def cache_addresses(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The current addresses of these caches (`tree.ROOT`: the learner's own) that are up, in their order."""
        places = [self.reply.root if number < 0 else self.caches[number] for number in numbers]
        return tuple(place.address for place in places if place.address)

    def report_shortfall(self, shortfall: Shortfall) -> None:
        self._coordinator.report_shortfall.remote(shortfall, self._who.number)

    def iteration(self, row: Mapping[str, float]) -> None:
        self._coordinator.row.remote(dict(row))

    def note(self, text: str) -> None:
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
            _log.exception("%s cannot measure its memory and CPU time", self._who)
            measures = {}
        who, served = self._who, (self._address, self._ready)
        heartbeat = Heartbeat(who, self.incarnation, self.host, os.getpid(), *served, measures, self._rendezvous)
        try:
            reply = self._ray.get(
                self._coordinator.heartbeat.remote(heartbeat, self.reply.edition), timeout=ANSWER_SECONDS
            )
        except self._ray.exceptions.RayError as error:  # The coordinator is being restarted.
            _log.debug("%s sent a heartbeat that got no answer: %s", self._who, error)
            return
        self._shards = self._shards if reply.shards is None else reply.shards
        self.caches = self.caches if reply.caches is None else reply.caches
        self.reply = reply
        if reply.stop and not self._stopped:
            self._stopped = True
            self.on_stop()

    def _bound_memory(self) -> None:
        taken = resident_mb()
        if self._memory_mb and taken > self._memory_mb:
            self.note(f"{self._who} uses {taken:.0f} MB, more than its limit of {self._memory_mb} MB: it is restarted")
            self.on_too_large()
            time.sleep(self._seconds)  # so that the note is sent
            os._exit(OUT_OF_MEMORY)
