"""Faults that are listed together: the first ten of a kind, and how many there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placement.netlist.errors import DesignError

SHOWN = 10
Finding = tuple[str, int, Sequence[tuple[int, str]]]
"""What is wrong, how many are, and (line, name) of the first ones."""


def listing(path: object, what: str, count: int, first: Iterable[tuple[int, str]]) -> str:
    """``path:line: 12 WHAT: NAME, NAME (line 7), … and 2 more``.

    Args:
        path: the file.
        what: what is wrong with them, in the plural.
        count: how many there are.
        first: (line, name) of the first ten; line 0 where it is not known.
    """
    entries = list(first)[:SHOWN]
    place = f"{path}:{entries[0][0]}" if entries and entries[0][0] else f"{path}"
    names = [entries[0][1]] if entries else []
    names += [f"{name} (line {line})" if line else name for line, name in entries[1:]]
    more = f", … and {count - len(entries):,} more" if count > len(entries) else ""
    return f"{place}: {count:,} {what}: {', '.join(names)}{more}"


def refuse(path: object, findings: Sequence[Finding]) -> None:
    """Raises DesignError if there are findings."""
    if findings:
        raise DesignError("\n".join(listing(path, what, count, first) for what, count, first in findings))
