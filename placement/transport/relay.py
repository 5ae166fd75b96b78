"""Passes bytes between two connections, both ways, until either ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket

PIECE = 256 * 1024
"""Bytes that are read at once; as many wait for a slow reader before the sender is held."""
SILENCE_SECONDS = 20
"""After so long without a word the system asks whether the other machine is still there."""
LOST_SECONDS = 60
"""After so long without an answer from the other machine a connection is given up."""


async def relay(
    here: tuple[asyncio.StreamReader, asyncio.StreamWriter], there: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    """Passes bytes both ways until one side ends or its machine is lost; closes both."""
    ways = [asyncio.ensure_future(_pass(here[0], there[1])), asyncio.ensure_future(_pass(there[0], here[1]))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        for writer in (here[1], there[1]):
            end(writer)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()


def end(writer: asyncio.StreamWriter) -> None:
    """Closes a connection, once what was written is sent; does not wait."""
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()


def watch(writer: asyncio.StreamWriter) -> None:
    """Has the system give a TCP connection up when the other machine is lost, and send small messages at once."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in (
        ("TCP_KEEPIDLE", SILENCE_SECONDS),
        ("TCP_KEEPINTVL", SILENCE_SECONDS // 4),
        ("TCP_USER_TIMEOUT", LOST_SECONDS * 1000),
    ):
        if hasattr(socket, name):  # Linux
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
