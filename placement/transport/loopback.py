"""Keeps a server that lives in this process off the network, and its chatter off the terminal.

Reverb 0.14 listens on every network interface and cannot be told otherwise, and prints its start-up to standard error
whatever the log level.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import psutil

_LISTEN = "0A"
"""The state of a listening socket in /proc/net/tcp."""
_redirected = threading.RLock()
"""Standard error is the process's: two threads that redirect it at once would lose it."""


def restrict_to_loopback(port: int) -> bool:
    """Binds this process's sockets that listen on TCP `port` to the loopback interface (Linux ≥ 5.7, or root).

    Returns:
        Whether that was done; a warning says why where it was not.
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


def count_listeners(port: int) -> int:
    """Sockets that listen on TCP `port` in this network namespace, whoever owns them; -1 where that cannot be read.

    A table that is read while others open and close sockets may have one twice: each inode counts once.
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
    return [peer for peer in peers if not _is_loopback(ipaddress.ip_address(peer))]


def _is_loopback(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def own_listeners(port: int) -> list[socket.socket]:
    """Further handles, which the caller closes, of this process's sockets that listen on TCP `port`."""
    found = []
    for connection in psutil.Process().net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            with contextlib.suppress(OSError):  # closed by another thread meanwhile
                found.append(socket.socket(fileno=os.dup(connection.fd)))
    return found


@contextlib.contextmanager
def quiet_standard_error() -> Iterator[None]:
    """Holds back what is printed to standard error meanwhile; of Reverb's own lines only an exception shows any."""
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
