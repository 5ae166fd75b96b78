"""The rendezvous of learner hosts, after which they start from the same state."""

import dataclasses
import socket
from typing import Any

import jax
import numpy as np
from flax.serialization import msgpack_restore, msgpack_serialize
from jax.experimental import multihost_utils

from placement.ppo.learner import Hosts, join_hosts
from placement.runtimes.ray.coordinator import CoordinatorClient
from placement.runtimes.ray.messages import Rendezvous
from placement.transport.gate import Gate, NetworkAccess


def join(
    coordinator: CoordinatorClient, network: NetworkAccess, *, index: int, count: int, rendezvous: int, timeout: float
) -> Hosts:
    """Makes this process host `index` of the run's learner hosts; call it before JAX computes anything.

    Host 0 announces the meeting point through the coordinator; `rendezvous` is the number of this start of all hosts.
    Raises TimeoutError if it did not do so within `timeout` seconds, RuntimeError if the others did not arrive.
    """
    if count == 1:
        return Hosts()
    own = ""
    if index == 0:
        own, offered = _meeting_place(network)
        coordinator.offer_rendezvous(Rendezvous(rendezvous, offered))
    address = own or network.dial(coordinator.wait_for_rendezvous(rendezvous, timeout=timeout).address)
    return join_hosts(address, index=index, count=count, timeout=timeout, bind=network.bind)


def _meeting_place(network: NetworkAccess) -> tuple[str, str]:
    """The address that JAX's coordination service listens on, and the one by which other hosts reach it.

    JAX's service authenticates nobody. With a token it stays on loopback, behind a gate.
    """
    if network.token is None:
        address = f"{network.bind}:{_free_port(network.bind)}"
        return address, address
    port = _free_port("127.0.0.1")
    return f"127.0.0.1:{port}", Gate(port, bind=network.bind, token=network.token).address


@dataclasses.dataclass(frozen=True)
class InitialState:
    """The initial state of all hosts."""

    learner: Any  # the learner's state, a pytree of arrays
    learned: np.ndarray  # int64 [N, 3], episodes learned from before, in the format of `EpisodeIntervalSet.rows`
    # iteration, first: iterations done, and the number under which the parameters after them are published
    iteration: int
    first: int


def agree(hosts: Hosts, start: InitialState) -> InitialState:
    """Distributes host 0's state to every host; all must call this with the same structure of the learner's state.

    Raises JaxRuntimeError if another host is gone.
    """
    if hosts.count == 1:
        return start
    leaves, structure = jax.tree.flatten(start.learner)
    counts = np.array([start.iteration, start.first], np.int64)
    arrays = {str(at): np.asarray(array) for at, array in enumerate([counts, start.learned, *leaves])}
    received = msgpack_restore(_spread(msgpack_serialize(arrays)))
    (iteration, first), learned, *state = (received[str(at)] for at in range(len(arrays)))
    learner = jax.tree.unflatten(structure, [np.array(leaf) for leaf in state])
    return InitialState(learner, learned, int(iteration), int(first))


def _spread(data: bytes) -> bytes:
    counted = np.frombuffer(np.int64(len(data)).tobytes(), np.uint8)
    length = int(np.asarray(multihost_utils.broadcast_one_to_all(counted)).view(np.int64)[0])
    mine = np.zeros(length, np.uint8)
    if jax.process_index() == 0:
        mine[:] = np.frombuffer(data, np.uint8)
    return np.asarray(multihost_utils.broadcast_one_to_all(mine)).tobytes()


def _free_port(bind: str) -> int:
    with socket.socket() as found:
        found.bind((bind, 0))
        return int(found.getsockname()[1])
