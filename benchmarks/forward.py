"""Forwards TCP connections on loopback with a rate limit on answers: emulates a server's link, without root.

    python benchmarks/forward.py HOST:PORT MEGABITS      prints its own address and runs until it is ended

All connections share the rate, one piece at a time, first come, first served.
"""

from __future__ import annotations

import asyncio
import sys

PIECE = 16 * 1024  # bytes


class Bucket:
    """Lets bytes pass at a rate, in the order of the requests."""

    def __init__(self, megabits: float) -> None:
        self._bytes_per_second = megabits * 1e6 / 8
        self._free_at = 0.0

    async def take(self, size: int) -> None:
        """Waits until `size` bytes may pass."""
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now) + size / self._bytes_per_second
        await asyncio.sleep(self._free_at - now)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bucket: Bucket | None) -> None:
    try:
        while data := await reader.read(PIECE):
            if bucket is not None:
                await bucket.take(len(data))
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def forward(address: str, megabits: float) -> None:
    """Serves until cancelled."""
    host, _, port = address.rpartition(":")
    bucket = Bucket(megabits)

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, far_writer, None), _copy(far_reader, writer, bucket))

    server = await asyncio.start_server(connect, "127.0.0.1", 0, limit=4 * PIECE)
    print(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(forward(sys.argv[1], float(sys.argv[2])))
