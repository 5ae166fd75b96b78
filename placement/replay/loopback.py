"""Keeps a server that lives in this process off the network, and its chatter off the terminal.

Reverb 0.14 listens on every network interface and cannot be told otherwise, and prints its start-up to standard error
whatever the log level.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path


def restrict_to_loopback(port: int) -> bool:
    """Binds this process's sockets that listen on TCP `port` to the loopback interface (Linux ≥ 5.7, or root).

    Returns:
        Whether that was done; a warning says why where it was not.
    """
    found = False
    try:
        for descriptor in _socket_descriptors():
            with socket.socket(fileno=os.dup(descriptor)) as listener:
                if _listens_on(listener, port):
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
                    found = True
    except (OSError, AttributeError) as error:
        found, reason = False, str(error)
    else:
        reason = "its socket was not found"
    if not found:
        warnings.warn(f"port {port} is reachable from other machines: {reason}", RuntimeWarning, stacklevel=2)
    return found


def _socket_descriptors() -> list[int]:
    """This process's open file descriptors that are sockets."""
    descriptors = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the directory's own descriptor is gone by now
            if os.readlink(entry).startswith("socket:"):
                descriptors.append(int(entry.name))
    return descriptors


def _listens_on(candidate: socket.socket, port: int) -> bool:
    if candidate.family not in (socket.AF_INET, socket.AF_INET6) or candidate.type != socket.SOCK_STREAM:
        return False
    if not candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return False
    return candidate.getsockname()[1] == port


@contextlib.contextmanager
def quiet_standard_error() -> Iterator[None]:
    """Holds back what native code prints to standard error meanwhile; it is shown if an exception passes through."""
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        failed = True
        try:
            yield
            failed = False
        finally:
            sys.stderr.flush()
            os.dup2(saved, 2)
            os.close(saved)
            if failed:
                held.seek(0)
                sys.stderr.write(held.read().decode(errors="replace"))
