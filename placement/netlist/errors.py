"""The error that every refusal of a design, a netlist file or a placement file raises."""

from __future__ import annotations


class DesignError(ValueError):
    """A design cannot be used; the message names the file, the line where known, and what would be right.

    Example:
        >>> try:
        ...     placement.load("nowhere")
        ... except placement.DesignError as error:
        ...     print(str(error).split(":")[0])
        no design 'nowhere'
    """

    @classmethod
    def at(cls, path: object, line: int, message: str) -> DesignError:
        """An error at a place in a file: ``path:line: message``."""
        return cls(f"{path}:{line}: {message}")
