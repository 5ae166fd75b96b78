"""The server of a window: the page, its files, and a WebSocket for what it asks.

Everything stands below a path that begins with a secret token. A request for another host (a name that somebody points
at this machine) or from a page of another origin is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import ipaddress
import itertools
import json
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from placement.netlist.errors import DesignError
from placement.report.view.messages import answer
from placement.report.view.run_watch import RunWatch
from placement.report.view.window import Window

SEND_SECONDS = 10.0
"""That a page may take to receive a message; after that it is cut off, and finds back by itself."""
MOST_UNSENT = 256
"""Messages that wait for a page, for the same reason."""
WATCH_SECONDS = 1.0
"""Between two looks at a run folder."""
LARGEST_REQUEST = 4 * 2**20
"""Bytes."""
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def make_application(window: Window, *, token: str, hosts: frozenset[str], port: int = 0) -> Starlette:
    """The window as an ASGI application.

    Args:
        window: what it shows.
        token: the secret that every path begins with.
        hosts: `name:port` as the page's address may have them.
        port: above 0, any IP address with this port is a host, too: no name that somebody points here is one.
    """
    app = Starlette(
        lifespan=lambda app: _watching(window),
        routes=[
            Route("/{token}/", _page),
            Route("/{token}/static/{name}", _static),
            WebSocketRoute("/{token}/socket", _Socket(window)),
        ],
    )
    app.add_middleware(_Guard, token=token, hosts=hosts, port=port)
    return app


@contextlib.asynccontextmanager
async def _watching(window: Window) -> AsyncIterator[None]:
    """Looks at the window's run folder again and again, while the server lasts."""
    task = None if window.watch is None else asyncio.create_task(_watch(window, window.watch))
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _watch(window: Window, watch: RunWatch) -> None:
    trouble = ""
    while True:
        try:
            window.take_news(await asyncio.to_thread(watch.poll))
            trouble = ""
        except (DesignError, OSError) as error:  # a file may be gone, or come back
            if str(error) != trouble:
                trouble = str(error)
                window.tell("trouble", {"text": trouble})
        await asyncio.sleep(WATCH_SECONDS)


class _Guard:
    """Refuses requests without the token, for another host, or from a page of another origin."""

    def __init__(self, app: ASGIApp, *, token: str, hosts: frozenset[str], port: int) -> None:
        self.app, self.token, self.hosts, self.port = app, token, hosts, port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        reason = self.refusal(HTTPConnection(scope))
        if reason is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocket(scope, receive, send).close(code=4403, reason=reason)
        else:
            await PlainTextResponse(f"{reason}\n", 403, headers=_HEADERS)(scope, receive, send)

    def refusal(self, connection: HTTPConnection) -> str | None:
        """Why a request is refused; None where it is not."""
        host, origin = connection.headers.get("host", ""), connection.headers.get("origin")
        if host.lower() not in self.hosts and not (self.port and _is_address(host, self.port)):
            return f"host {host[:80]!r}: the window is at {', '.join(sorted(self.hosts))}"
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return f"origin {origin[:80]!r}: only the window's own page may ask"
        given = connection.url.path.split("/")[1]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return "the address lacks the window's token: use the address that the command printed"
        return None


def _is_address(host: str, port: int) -> bool:
    """Whether a host is an IP address with this port."""
    name, _, number = host.rpartition(":")
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return number == str(port)


async def _page(request: Request) -> Response:
    return Response(_index(), media_type=_TYPES[".html"], headers=_HEADERS)


async def _static(request: Request) -> Response:
    return _file(request.path_params["name"])


@functools.cache
def static_names() -> list[str]:
    """The page's own files."""
    return sorted(
        entry.name for entry in files("placement.report.view").joinpath("static").iterdir() if entry.is_file()
    )


@functools.cache
def _index() -> str:
    """The page; it names its modules, so that the browser asks for all at once and not for one after the other."""
    modules = [name for name in static_names() if name.endswith(".js")]
    links = "".join(f'<link rel="modulepreload" href="static/{name}">\n' for name in modules)
    return static_text("index.html").replace("</head>", f"{links}</head>")


@functools.cache
def static_text(name: str) -> str:
    """One of them."""
    return files("placement.report.view").joinpath("static", name).read_text(encoding="utf-8")


def _file(name: str) -> Response:
    suffix = name[name.rfind(".") :] if "." in name else ""
    if name not in static_names() or suffix not in _TYPES:
        return PlainTextResponse(f"{name}: there is no such file\n", 404, headers=_HEADERS)
    return Response(static_text(name), media_type=_TYPES[suffix], headers=_HEADERS)


class _Socket:
    """What pages ask, answered in turn; what is told to all, sent from a queue."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        await socket.accept()
        loop = asyncio.get_running_loop()
        self.window.later = lambda call: _call_later(loop, call)
        page = f"page {next(self.numbers)}"
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(MOST_UNSENT)
        async with _sender(socket, queue) as sending:
            self.window.join(page, _putter(queue, sending))
            try:
                await self.listen(socket, page, queue)
            except (WebSocketDisconnect, asyncio.QueueFull):
                pass  # the page has gone, or no longer reads: it comes back, and asks for everything anew
            finally:
                self.window.leave(page)

    async def listen(self, socket: WebSocket, page: str, queue: asyncio.Queue[dict[str, Any]]) -> None:
        """Answers a page until it goes.

        A page may be silent for as long as it likes: the server's pings find out whether it is still there.
        """
        while True:
            text = await socket.receive_text()
            if len(text) > LARGEST_REQUEST:
                await socket.close(code=1009, reason=f"a request of more than {LARGEST_REQUEST} bytes")
                return
            queue.put_nowait(answer(self.window, page, _request(text)))


def _call_later(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Has a function called in the loop's thread; not at all where the server has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


def _request(text: str) -> dict[str, Any]:
    try:
        request = json.loads(text)
    except json.JSONDecodeError:
        return {"do": "what is no JSON"}
    return request if isinstance(request, dict) else {"do": "what is no object"}


def _putter(queue: asyncio.Queue[dict[str, Any]], sending: asyncio.Task[None]) -> Callable[[dict[str, Any]], None]:
    """Puts a message into a page's queue; a page that does not read is cut off."""

    def put(message: dict[str, Any]) -> None:
        try:
            queue.put_nowait(message)
        except asyncio.QueueFull:
            sending.cancel()

    return put


@contextlib.asynccontextmanager
async def _sender(socket: WebSocket, queue: asyncio.Queue[dict[str, Any]]) -> AsyncIterator[asyncio.Task[None]]:
    """Sends what is in the queue, while it lasts."""

    async def work() -> None:
        try:
            while True:
                message = await queue.get()
                await asyncio.wait_for(socket.send_text(json.dumps(message, allow_nan=False)), SEND_SECONDS)
        except (WebSocketDisconnect, RuntimeError, TimeoutError, OSError):
            return  # `listen` hears that the page has gone

    task = asyncio.create_task(work())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
