"""Training that has broken down: noticed before anything bad is published or saved."""

from __future__ import annotations

from collections.abc import Mapping


class Diverged(RuntimeError):
    """The network came to values that are not finite; the message says since when and what to try."""


class SkippedSteps:
    """Counts the gradient steps that were skipped in a row, because loss or gradient was not finite.

    Args:
        most: skipped steps in a row before training stops.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._in_a_row = 0

    def note(self, learned: Mapping[str, float]) -> None:
        """Takes note of an iteration's metrics, as `Learner.learn` gives them."""
        skipped = int(learned.get("skipped_steps", 0))
        self._in_a_row = 0 if learned.get("gradient_steps", 1) > 0 else self._in_a_row + skipped

    @property
    def going_on(self) -> bool:
        """Whether the last iteration's steps were all skipped, so that nothing was learned."""
        return self._in_a_row > 0

    @property
    def too_many(self) -> bool:
        """Whether it is time to stop."""
        return self._in_a_row >= self._most

    def __str__(self) -> str:
        return f"{self._in_a_row} gradient steps in a row were skipped, for loss or gradient was not finite"
