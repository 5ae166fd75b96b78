"""The way for a command to end with one line."""

from __future__ import annotations


class Refusal(Exception):
    """Ends a command with one line on stderr and an exit status."""

    def __init__(self, message: str, *, status: int = 2) -> None:
        super().__init__(message)
        self.status = status
