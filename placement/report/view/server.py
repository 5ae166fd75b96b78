"""The server of a window: the page, its files, and a WebSocket for its requests.

Every path begins with a secret token. Requests for another host (a foreign name that resolves to this machine) or from
a page of another origin are rejected.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import ipaddress
import itertools
import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from placement.netlist.errors import DesignError
from placement.report.run_watch import RunWatch
from placement.report.view.page import static_names, static_text
from placement.report.view.requests import answer
from placement.report.view.window import Window

# A page that is slower, or that more messages wait for, is disconnected; it reconnects by itself.
SEND_SECONDS, MOST_UNSENT = 10.0, 256
WATCH_SECONDS = 1.0  # interval between checks of a run folder
LARGEST_REQUEST = 4 * 2**20  # bytes
PING_SECONDS = 20.0  # interval between pings of a page, and its time to answer
CLOSE_SECONDS = 3  # time for pages to close when the server ends
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def listen(host: str, port: int) -> socket.socket:
    """A listening socket (port 0: any that is free); raises DesignError if it cannot be opened.

    Pages may connect at once; they are answered when the window is served.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except (OSError, OverflowError) as error:
        listening.close()
        raise DesignError(f"{host}:{port}: cannot listen: {error}; port=0 selects a free port") from None
    return listening


def serve(window: Window, listening: socket.socket, *, host: str, ready: Callable[[str], None]) -> None:
    """Serves a window until Ctrl-C or SIGTERM; `ready` is called with its address, with `host` as the name."""
    port, token = listening.getsockname()[1], secrets.token_urlsafe(24)
    everywhere = host in ("0.0.0.0", "::")
    name = socket.gethostname() if everywhere else host
    named = f"[{name}]" if ":" in name else name
    hosts = frozenset(f"{name}:{port}".lower() for name in (named, "127.0.0.1", "localhost"))
    config = uvicorn.Config(
        make_application(window, token=token, hosts=hosts, port=port if everywhere else 0),
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        ws="websockets-sansio",
        ws_max_size=LARGEST_REQUEST,
        ws_per_message_deflate=False,  # Compression takes longer than the transfer within a machine.
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PING_SECONDS,
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )
    ready(f"http://{named}:{port}/{token}/")
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        window.end()


def make_application(window: Window, *, token: str, hosts: frozenset[str], port: int = 0) -> Starlette:
    """The window as an ASGI application.

    Every path begins with `token`; `hosts` are the allowed `name:port` of the page's address. With a port above 0, any
    IP address with this port is allowed, too; names that resolve to this machine are not.
    """
    app = Starlette(
        lifespan=lambda app: _watching(window),
        routes=[
            Route("/{token}/", _index),
            Route("/{token}/static/{name}", _static),
            WebSocketRoute("/{token}/socket", functools.partial(_connect, window, itertools.count(1))),
        ],
    )
    app.add_middleware(_Guard, token=token, hosts=hosts, port=port)
    return app


@contextlib.asynccontextmanager
async def _watching(window: Window) -> AsyncIterator[None]:
    """Polls the window's run folder while the server runs."""
    watch = window.services.watch
    async with _running(_watch(window, watch)) if watch is not None else contextlib.nullcontext():
        yield


async def _watch(window: Window, watch: RunWatch) -> None:
    trouble = ""
    while True:
        try:
            window.take_news(*await asyncio.to_thread(watch.poll))
            trouble = ""
        except (DesignError, OSError) as error:  # A file may disappear, or come back.
            if str(error) != trouble:
                trouble = str(error)
                window.tell("trouble", {"text": trouble})
        await asyncio.sleep(WATCH_SECONDS)


@contextlib.asynccontextmanager
async def _running(work: Any) -> AsyncIterator[asyncio.Task[None]]:
    """Runs a coroutine during the block, and cancels it at its end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class _Guard:
    """Rejects requests without the token, for another host, or from a page of another origin."""

    def __init__(self, app: ASGIApp, *, token: str, hosts: frozenset[str], port: int) -> None:
        self.app, self.token, self.hosts, self.port = app, token, hosts, port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = self.reason(HTTPConnection(scope)) if scope["type"] in ("http", "websocket") else None
        if reason is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close(code=4403, reason=reason)
        else:
            await PlainTextResponse(f"{reason}\n", 403, headers=_HEADERS)(scope, receive, send)

    def reason(self, connection: HTTPConnection) -> str | None:
        """The reason for rejecting a request; None if it is accepted."""
        host, origin = connection.headers.get("host", ""), connection.headers.get("origin")
        if host.lower() not in self.hosts and not (self.port and _is_address(host, self.port)):
            return f"host {host[:80]!r}: the window is at {', '.join(sorted(self.hosts))}"
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return f"origin {origin[:80]!r}: only the window's own page may send requests"
        given = connection.url.path.split("/")[1]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return "the address does not contain the window's token: use the address that the command printed"
        return None


def _is_address(host: str, port: int) -> bool:
    name, _, number = host.rpartition(":")
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return number == str(port)


async def _index(request: Request) -> Response:
    """The page, which names its modules, so that the browser loads all of them at once."""
    modules = [name for name in static_names() if name.endswith(".js")]
    links = "".join(f'<link rel="modulepreload" href="static/{name}">\n' for name in modules)
    page = static_text("index.html").replace("</head>", f"{links}</head>")
    return Response(page, media_type=_TYPES[".html"], headers=_HEADERS)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in static_names():
        return PlainTextResponse(f"{name}: no such file\n", 404, headers=_HEADERS)
    return Response(static_text(name), media_type=_TYPES[name[name.rindex(".") :]], headers=_HEADERS)


async def _connect(window: Window, numbers: itertools.count[int], connection: WebSocket) -> None:
    """Serves one page until it leaves: answers its requests in turn, and sends it the events for all pages."""
    await connection.accept()
    loop = asyncio.get_running_loop()

    def later(call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(call)

    window.later = later
    page = f"page {next(numbers)}"
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MOST_UNSENT)
    async with _running(_send(connection, queue)) as sending:

        def put(message: dict[str, Any]) -> None:
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:  # the page does not read
                sending.cancel()

        window.join(page, put)
        try:
            await _listen(window, page, connection, queue)
        except (WebSocketDisconnect, asyncio.QueueFull):
            pass  # The page has gone or no longer reads; it will reconnect and request everything again.
        finally:
            window.leave(page)


async def _listen(window: Window, page: str, connection: WebSocket, queue: asyncio.Queue[dict[str, Any]]) -> None:
    """Answers a page; it may be silent indefinitely, since the server's pings detect whether it is alive."""
    while True:
        text = await connection.receive_text()
        if len(text) > LARGEST_REQUEST:
            await connection.close(code=1009, reason=f"a request of more than {LARGEST_REQUEST} bytes")
            return
        try:
            request = json.loads(text)
        except json.JSONDecodeError:
            request = None
        queue.put_nowait(answer(window, page, request if isinstance(request, dict) else {"do": "not a JSON object"}))


async def _send(connection: WebSocket, queue: asyncio.Queue[dict[str, Any]]) -> None:
    """Sends the messages in the queue."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError, TimeoutError, OSError):  # `_listen` notices it, too.
        while True:
            message = await queue.get()
            await asyncio.wait_for(connection.send_text(json.dumps(message, allow_nan=False)), SEND_SECONDS)
