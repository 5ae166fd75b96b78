"""Numbers for what a run publishes: they rise through every restart of the learner, while iterations fall back.

A learner that died resumes from its last checkpoint, some iterations back; the parameters that it then publishes differ
from the dead one's of the same iteration. So whatever travels carries a number of its own. A learner takes numbers that
no earlier one took, and the number shows whether something was made with an earlier learner's parameters.
"""

from __future__ import annotations

import json
from pathlib import Path

from placement.netlist.files import write_whole

FILE_NAME = "publications.json"
BLOCK = 1000
"""Numbers that are reserved at once."""


class PublicationNumbers:
    """The numbers of one start of the learner, for learner hosts that do not publish.

    Args:
        first: the number of the first parameters.
        iteration: at which this learner starts.
        unseen: iterations beyond `newest` whose parameters may be published already.

    Attributes:
        begun: the iteration at which this learner started.
        newest: the last iteration known to be done; -1 before the first parameters are numbered.
    """

    def __init__(self, first: int, *, iteration: int, unseen: int = 1) -> None:
        self.first, self.begun, self.newest, self._unseen = first, iteration, -1, unseen

    @property
    def possible(self) -> int:
        """The last iteration whose parameters an episode can have been made with."""
        return self.newest + self._unseen

    def iteration(self, number: int) -> int | None:
        """The iteration whose parameters this learner published as `number`; None if another learner did."""
        return number - self.first + self.begun if number >= self.first else None


class Publications(PublicationNumbers):
    """The numbers of one start of the learner, for the host that publishes.

    Args:
        folder: the run folder, which records the numbers taken.
        iteration: at which this learner starts.
    """

    def __init__(self, folder: Path, *, iteration: int) -> None:
        self._path = folder / FILE_NAME
        # A file that cannot be read is an error, or numbers would be taken twice.
        known = json.loads(self._path.read_text(encoding="utf-8"))["reserved"] if self._path.exists() else 0
        self._reserved = int(known)
        super().__init__(self._reserved, iteration=iteration, unseen=0)
        self._reserve()

    def number(self, iteration: int) -> int:
        """The number of the parameters after `iteration` iterations; reserved in the run folder before it is used."""
        number = self.first + iteration - self.begun
        while number >= self._reserved:
            self._reserve()
        self.newest = iteration
        return number

    def _reserve(self) -> None:
        self._reserved += BLOCK
        write_whole(self._path, json.dumps({"reserved": self._reserved}) + "\n")
