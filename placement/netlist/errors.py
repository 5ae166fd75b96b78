"""The error that every rejected design, netlist file or placement file raises, and its message for many faults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SHOWN = 10  # maximum number of faults of one kind that a message lists
Finding = tuple[str, int, Sequence[tuple[int, str]]]
"""The fault, its number of cases, and (line, name) of the first cases; line 0 if it is unknown."""


class DesignError(ValueError):
    """A design cannot be used; the message names the file, the line if known, and a valid alternative.

    Example:
        >>> try:
        ...     placement.load("nowhere")
        ... except placement.DesignError as error:
        ...     print(str(error).split(":")[0])
        no design 'nowhere'
    """

    @classmethod
    def at(cls, path: object, line: int, message: str) -> DesignError:
        """Makes an error at a line of a file: ``path:line: message``."""
        return cls(f"{path}:{line}: {message}")


def listing(path: object, what: str, count: int, first: Iterable[tuple[int, str]]) -> str:
    """One `Finding` in a file as text: ``path:line: 12 WHAT: NAME, NAME (line 7), … and 2 more``."""
    entries = list(first)[:SHOWN]
    place = f"{path}:{entries[0][0]}" if entries and entries[0][0] else f"{path}"
    names = [entries[0][1]] if entries else []
    names += [f"{name} (line {line})" if line else name for line, name in entries[1:]]
    more = f", … and {count - len(entries):,} more" if count > len(entries) else ""
    return f"{place}: {count:,} {what}: {', '.join(names)}{more}"


def reject(path: object, findings: Sequence[Finding]) -> None:
    """Raises DesignError if there are any findings."""
    if findings:
        raise DesignError("\n".join(listing(path, what, count, first) for what, count, first in findings))
