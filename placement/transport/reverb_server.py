"""Starts Reverb servers: quietly, on this machine only unless told otherwise, one to a port, with a deadline.

Importing this module imports Reverb and TensorFlow (seconds, some 300 MB), which is told to leave accelerators alone;
the modules that may use Reverb take it from here. Reverb 0.14 itself listens on every interface, shares a port with any
other server that asks for it, and prints its start-up.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before TensorFlow is imported: no start-up chatter

import reverb
import tensorflow as tf

from placement.transport.addresses import PortTaken, is_loopback, join
from placement.transport.deadline import within
from placement.transport.loopback import count_listeners, quiet_standard_error, remote_peers, restrict_to_loopback

__all__ = ["NotPrivate", "PortTaken", "ReverbServer", "ServerTimeout", "reverb", "start_server", "tf"]

with contextlib.suppress(RuntimeError):  # TensorFlow already runs: whoever started it has chosen
    tf.config.set_visible_devices([], "GPU")


class ServerTimeout(TimeoutError):
    """A server did not start in time."""


class NotPrivate(OSError):
    """A server that must be reached by this machine only cannot be kept off the network."""


_ATTEMPTS = 20
_starting = threading.Lock()
"""One start at a time in this process: the system may give out a port twice that may be shared."""


class ReverbServer:
    """A running Reverb server; made by `start_server`.

    Attributes:
        port: TCP port that it listens on.
        address: `host:port` by which others reach it.
        client: for use in this process.
    """

    def __init__(self, server: reverb.Server, bind: str, temporary: tempfile.TemporaryDirectory | None) -> None:
        self._server: reverb.Server | None = server
        self._temporary = temporary
        self._stopping = threading.Lock()
        self.port: int = server.port
        self.address = join(bind, server.port)
        self.client: reverb.Client = server.localhost_client()

    def stop(self) -> None:
        """Ends the server; those who wait on it get errors. May be called twice."""
        with self._stopping:
            server, self._server = self._server, None
            if server is None:
                return
            with quiet_standard_error():
                server.stop()
                del server
            if self._temporary is not None:
                self._temporary.cleanup()


def start_server(
    tables: Sequence[reverb.Table],
    *,
    port: int = 0,
    bind: str = "127.0.0.1",
    checkpoint_folder: str | os.PathLike[str] | None = None,
    restore: str | os.PathLike[str] | None = None,
    timeout: float = 60.0,
    private: bool = False,
) -> ReverbServer:
    """Starts a Reverb server.

    Args:
        tables: what it holds.
        port: TCP port; 0 = any free one.
        bind: the address by which others reach it. A loopback address: this machine only. Any other: it listens on
            all interfaces, because the user said so.
        checkpoint_folder: where it saves, and what it starts from if there is a checkpoint; None = a temporary folder,
            removed when it stops.
        restore: the checkpoint that it starts from where `checkpoint_folder` has none; None = empty.
        timeout: seconds that it may take to start (restoring has been known to hang).
        private: refuse to serve where a loopback address as `bind` cannot keep other machines out.

    Raises:
        PortTaken: something listens on `port` already (Reverb itself would share the port silently).
        ServerTimeout: it did not start in time.
        NotPrivate: other machines reach it, or one did before it was kept to loopback, though it is to be private.
    """
    temporary = None if checkpoint_folder is not None else tempfile.TemporaryDirectory(prefix="reverb-")
    folder = str(checkpoint_folder) if temporary is None else temporary.name
    try:
        with _starting, _reserved(port) as reserved:
            server = ReverbServer(_launch(tables, reserved, folder, restore, timeout), bind, temporary)
    except BaseException:
        if temporary is not None:
            temporary.cleanup()
        raise
    try:
        if count_listeners(server.port) > 1:
            raise PortTaken(f"port {server.port}: another server took it at the same moment; start this one again")
        restricted = is_loopback(bind) and restrict_to_loopback(server.port)
        if private:
            _require_private(server.port, restricted=restricted)
    except BaseException:
        server.stop()
        raise
    return server


def _require_private(port: int, *, restricted: bool) -> None:
    if not restricted:
        raise NotPrivate(f"a Reverb server's port {port} cannot be kept to this machine: it needs Linux 5.7 or root")
    if strangers := remote_peers(port):  # they came between its start and its restriction
        raise NotPrivate(f"{strangers[0]} connected to a Reverb server as it started, before it was kept to loopback")


@contextlib.contextmanager
def _reserved(port: int) -> Iterator[int]:
    """Holds a port, bound but not listening, so that nobody else is given it; Reverb may share it (SO_REUSEPORT).

    The system may give it to another process that shares its ports; a name of the port keeps that one off.
    """
    for _ in range(_ATTEMPTS):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                holder.bind(("", port))
            except OSError as error:
                raise PortTaken(f"port {port} cannot be used: {error}") from error
            chosen = holder.getsockname()[1]
            with _named(chosen) as is_own:
                if is_own and count_listeners(chosen) <= 0:
                    yield chosen
                    return
            if port:
                raise PortTaken(f"port {port} is taken by another server; stop that one, or use port=0")
    raise PortTaken(f"no free port was found in {_ATTEMPTS} attempts: too many servers start at once")


@contextlib.contextmanager
def _named(port: int) -> Iterator[bool]:
    """Takes the port's name among this machine's processes (an abstract socket, Linux); False: another has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as name:
        try:
            name.bind(f"\0macro-placement-reverb-{port}")
        except OSError:
            yield False
            return
        yield True


def _launch(
    tables: Sequence[reverb.Table], port: int, folder: str, restore: str | os.PathLike[str] | None, timeout: float
) -> reverb.Server:
    def launch() -> reverb.Server:
        fallback = None if restore is None else str(restore)
        checkpointer = reverb.checkpointers.DefaultCheckpointer(path=folder, fallback_checkpoint_path=fallback)
        return reverb.Server(list(tables), port=port, checkpointer=checkpointer)

    with quiet_standard_error():
        try:
            return within(timeout, launch, name="Reverb server start")
        except TimeoutError:
            message = f"a Reverb server with checkpoints in {folder} did not start within {timeout:g} s"
            raise ServerTimeout(message) from None
