"""The equations of a JAX program, including those of its loops and branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def equations(jaxpr: Any) -> Iterator[Any]:
    """Yields all equations of a jaxpr, each before those inside it."""
    for line in jaxpr.eqns:
        yield line
        for value in line.params.values():
            for one in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(one, "jaxpr", one)  # a closed jaxpr contains its jaxpr
                if hasattr(inner, "eqns"):
                    yield from equations(inner)
