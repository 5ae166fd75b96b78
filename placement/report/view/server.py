"""Serving a window on this machine until somebody ends it."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable

import uvicorn

from placement.netlist.errors import DesignError
from placement.report.view.application import LARGEST_REQUEST, make_application
from placement.report.view.window import Window

PING_SECONDS = 20.0
"""Between two pings of a page, and that it may take to answer."""
CLOSE_SECONDS = 3
"""That pages may take to hear that the server ends."""
EVERYWHERE = ("0.0.0.0", "::")
LOCAL = ("127.0.0.1", "localhost")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0: any that is free. Raises DesignError where it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise DesignError(f"{host}:{port}: cannot listen there: {error}; port=0 takes any that is free") from None
    return listening


def serve(
    window: Window,
    listening: socket.socket,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serves a window until Ctrl-C or SIGTERM.

    Args:
        window: to serve.
        listening: as `listen` makes it.
        host: the name in the address.
        token: the secret in the address; None: a new one.
        ready: is told the address once the server answers.
    """
    port = listening.getsockname()[1]
    secret = secrets.token_urlsafe(24) if token is None else token
    everywhere = host in EVERYWHERE
    name = socket.gethostname() if everywhere else host
    named = f"[{name}]" if ":" in name else name
    hosts = frozenset(f"{name}:{port}".lower() for name in (named, *LOCAL))
    config = uvicorn.Config(
        make_application(window, token=secret, hosts=hosts, port=port if everywhere else 0),
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        ws="websockets-sansio",
        ws_max_size=LARGEST_REQUEST,
        ws_per_message_deflate=False,  # packing takes longer than the way within a machine
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )
    server = _Server(config, lambda: ready(f"http://{named}:{port}/{secret}/"))
    try:
        server.run(sockets=[listening])
    finally:
        window.end()


class _Server(uvicorn.Server):
    """Tells when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()
