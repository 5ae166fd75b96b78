"""Starts Reverb servers: quietly, one to a port, with a deadline, and by default kept off the network.

Importing this module imports Reverb and TensorFlow (seconds, some 300 MB), which is configured not to use accelerators;
the modules that may use Reverb import it from here. Reverb 0.14 itself cannot be configured in these respects: it
listens on every network interface, shares a port with any other server that requests it, and prints its start-up to
standard error at any log level.
"""

import contextlib
import ipaddress
import os
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before TensorFlow is imported: no start-up messages

import psutil
import reverb
import tensorflow as tf

from placement.transport.addresses import PortTaken, is_loopback, join
from placement.transport.event_loop import within

__all__ = ["NotPrivate", "PortTaken", "ReverbServer", "ServerTimeout", "reverb", "start_server", "tf"]

with contextlib.suppress(RuntimeError):  # TensorFlow already runs with another configuration.
    tf.config.set_visible_devices([], "GPU")

START_SECONDS = 60.0  # timeout for a server to start, in seconds (restoring has been known to hang)
_ATTEMPTS = 20
_LISTEN = "0A"  # the state of a listening socket in /proc/net/tcp
_starting = threading.Lock()
"""Serialises starts in this process, since the system may assign a port twice that may be shared."""
_redirected = threading.RLock()
"""Standard error belongs to the process; two threads that redirect it at once would lose it."""


class ServerTimeout(TimeoutError):
    """A server did not start in time."""


class NotPrivate(OSError):
    """A server for this machine only cannot be kept off the network."""


class ReverbServer:
    """A running Reverb server; made by `start_server`.

    Attributes:
        port, address: TCP port, and `host:port`, by which others reach it.
        client: a client for this process.
    """

    def __init__(self, server: reverb.Server, bind: str, temporary: tempfile.TemporaryDirectory | None) -> None:
        self._server: reverb.Server | None = server
        self._temporary = temporary
        self._stopping = threading.Lock()
        self.port: int = server.port
        self.address = join(bind, server.port)
        self.client: reverb.Client = server.localhost_client()

    def stop(self) -> None:
        """Ends the server; clients that wait on it get errors. May be called twice."""
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
    private: bool = False,
) -> ReverbServer:
    """Starts a Reverb server.

    Args:
        tables: its tables.
        port: TCP port; 0 = any free one.
        bind: the address by which others reach it. With a loopback address only this machine does; with any other it
            listens on all interfaces.
        checkpoint_folder: the folder of checkpoints, from which it starts if there is one; None = a temporary folder,
            removed when it stops.
        restore: the checkpoint that it starts from if `checkpoint_folder` has none; None = empty.
        private: whether to raise NotPrivate if a loopback address as `bind` cannot keep other machines out.

    Raises:
        PortTaken: something listens on `port` already (Reverb itself would share the port silently).
        ServerTimeout: it did not start in time.
        NotPrivate: other machines can reach it, or one did before it was restricted to loopback.
    """
    temporary = None if checkpoint_folder is not None else tempfile.TemporaryDirectory(prefix="reverb-")
    folder = str(checkpoint_folder) if temporary is None else temporary.name
    try:
        with _starting, _reserved(port) as reserved:
            server = ReverbServer(_launch(tables, reserved, folder, restore), bind, temporary)
    except BaseException:
        if temporary is not None:
            temporary.cleanup()
        raise
    try:
        if count_listeners(server.port) > 1:
            raise PortTaken(f"port {server.port}: another server took it at the same moment; start this one again")
        restricted = is_loopback(bind) and restrict_to_loopback(server.port)
        if private and not restricted:
            raise NotPrivate(
                f"port {server.port} of a Reverb server is public: restricting it requires Linux 5.7 or root"
            )
        if private and (peers := remote_peers(server.port)):  # They came between its start and its restriction.
            raise NotPrivate(f"{peers[0]} connected to a Reverb server before it was restricted to this machine")
    except BaseException:
        server.stop()
        raise
    return server


def _launch(
    tables: Sequence[reverb.Table], port: int, folder: str, restore: str | os.PathLike[str] | None
) -> reverb.Server:
    def launch() -> reverb.Server:
        fallback = None if restore is None else str(restore)
        checkpointer = reverb.checkpointers.DefaultCheckpointer(path=folder, fallback_checkpoint_path=fallback)
        return reverb.Server(list(tables), port=port, checkpointer=checkpointer)

    with quiet_standard_error():
        try:
            return within(START_SECONDS, launch, name="Reverb server start")
        except TimeoutError:
            message = f"a Reverb server with checkpoints in {folder} did not start within {START_SECONDS:g} s"
            raise ServerTimeout(message) from None


@contextlib.contextmanager
def _reserved(port: int) -> Iterator[int]:
    """Reserves a port, bound but not listening, so that no other process gets it; Reverb may share it (SO_REUSEPORT).

    The system may give it to another process that shares its ports, which an abstract socket named after it prevents.
    """
    for _ in range(_ATTEMPTS):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                holder.bind(("", port))
            except OSError as error:
                raise PortTaken(f"port {port} cannot be used: {error}") from error
            chosen = holder.getsockname()[1]
            with _claimed(chosen) as is_own:
                if is_own and count_listeners(chosen) <= 0:
                    yield chosen
                    return
            if port:
                raise PortTaken(f"port {port} is taken by another server; stop that one, or use port=0")
    raise PortTaken(f"no free port was found in {_ATTEMPTS} attempts: too many servers start at once")


@contextlib.contextmanager
def _claimed(port: int) -> Iterator[bool]:
    """Claims the port among this machine's processes (an abstract socket, Linux); False: another process has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as name:
        try:
            name.bind(f"\0macro-placement-reverb-{port}")
        except OSError:
            yield False
            return
        yield True


def restrict_to_loopback(port: int) -> bool:
    """Binds this process's sockets that listen on TCP `port` to the loopback interface (Linux ≥ 5.7, or root).

    Returns:
        Whether that succeeded; otherwise a warning gives the reason.
    """
    found, reason = False, "its socket was not found"
    try:
        for listener in own_listeners(port):
            with listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
                found = True
    except (OSError, AttributeError, psutil.Error) as error:
        found, reason = False, str(error)
    if not found:
        warnings.warn(f"port {port} is reachable from other machines: {reason}", RuntimeWarning, stacklevel=2)
    return found


def own_listeners(port: int) -> list[socket.socket]:
    """Duplicates, which the caller closes, of this process's sockets that listen on TCP `port`."""
    found = []
    for connection in psutil.Process().net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            with contextlib.suppress(OSError):  # already closed by another thread
                found.append(socket.socket(fileno=os.dup(connection.fd)))
    return found


def count_listeners(port: int) -> int:
    """Number of sockets of any process that listen on TCP `port` in this network namespace; -1 if it cannot be read.

    A table that is read while others open and close sockets may list one twice, so each inode counts once.
    """
    found = set[str]()
    try:
        for name in ("tcp", "tcp6"):
            table = Path("/proc/net", name)
            lines = table.read_text().splitlines()[1:] if table.exists() else []
            fields = [line.split() for line in lines]
            found |= {row[9] for row in fields if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port}
    except OSError:
        return -1
    return len(found)


def remote_peers(port: int) -> list[str]:
    """Addresses of other machines that are connected, or connecting, to TCP `port` of this process."""
    found = psutil.Process().net_connections("tcp")
    peers = [each.raddr.ip for each in found if each.laddr and each.laddr.port == port and each.raddr]
    return [peer for peer in peers if not ipaddress.ip_address(peer.removeprefix("::ffff:")).is_loopback]


@contextlib.contextmanager
def quiet_standard_error() -> Iterator[None]:
    """Suppresses output to standard error within the block; Reverb's own lines are shown only after an exception."""
    with _redirected, tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        saved = os.dup(2)
        os.dup2(held.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            held.seek(0)
            lines = held.read().decode(errors="replace").splitlines(keepends=True)
            sys.stderr.write("".join(line for line in lines if failed or not line.startswith("[reverb/")))
