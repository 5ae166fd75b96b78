"""How both ends of a connection prove that they have the run's token, which itself is not sent.

    gate → client    16 bytes that name the protocol, 32 random bytes
    client → gate    32 random bytes, HMAC-SHA256 of "client" and both random parts
    gate → client    HMAC-SHA256 of "server" and both random parts

Both ends are proved at the start of each connection. What follows is neither encrypted nor signed: who can change bytes
on the way can still do so.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets

MAGIC = b"placement gate 1"
RANDOM = 32
DIGEST = hashlib.sha256().digest_size
PROOF_SECONDS = 10.0
"""That the other end may take to prove itself."""


class TokenRefused(ConnectionError):
    """The other end does not have the run's token, or is no gate."""


def new_token() -> str:
    """A secret for one run: 64 hexadecimal digits."""
    return secrets.token_hex(32)


def derived(token: str, purpose: str) -> str:
    """A secret for one purpose, from which `token` cannot be found; hexadecimal."""
    return hmac.new(token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


async def demand(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """The gate's part.

    Raises:
        TokenRefused: the proof is wrong.
        TimeoutError, EOFError, OSError: none came.
    """
    mine = secrets.token_bytes(RANDOM)
    writer.write(MAGIC + mine)
    answer = await asyncio.wait_for(reader.readexactly(RANDOM + DIGEST), PROOF_SECONDS)
    both = mine + answer[:RANDOM]
    if not hmac.compare_digest(answer[RANDOM:], _proof(token, b"client", both)):
        raise TokenRefused("a client does not have the run's token")
    writer.write(_proof(token, b"server", both))


async def prove(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
    """The client's part.

    Raises:
        TokenRefused: the other end is no gate, or refuses the token, or does not have it.
        TimeoutError, EOFError, OSError: it does not answer.
    """
    asked = await asyncio.wait_for(reader.readexactly(len(MAGIC) + RANDOM), PROOF_SECONDS)
    if asked[: len(MAGIC)] != MAGIC:
        raise TokenRefused(f"no gate answers: it begins with {asked[: len(MAGIC)]!r}, must begin with {MAGIC!r}")
    mine = secrets.token_bytes(RANDOM)
    both = asked[len(MAGIC) :] + mine
    writer.write(mine + _proof(token, b"client", both))
    try:
        answer = await asyncio.wait_for(reader.readexactly(DIGEST), PROOF_SECONDS)
    except asyncio.IncompleteReadError:
        raise TokenRefused("the gate refuses this run's token") from None
    if not hmac.compare_digest(answer, _proof(token, b"server", both)):
        raise TokenRefused("the gate does not have this run's token")


def _proof(token: str, role: bytes, both: bytes) -> bytes:
    return hmac.new(token.encode(), role + both, hashlib.sha256).digest()
