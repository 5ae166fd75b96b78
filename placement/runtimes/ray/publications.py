"""Numbers for what a run publishes: they rise through every restart of the learner, while iterations fall back.

A learner that died goes on from its last checkpoint, some iterations back; the parameters that it publishes then are
others than the dead one's of the same iteration. So what travels has a number of its own. A learner takes numbers that
none before it took, and whatever was made with an earlier learner's parameters shows it by its number.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from placement.modelcache.cache import ModelCache
from placement.modelcache.store import Layout, ParameterPublisher
from placement.netlist.files import write_whole

FILE_NAME = "publications.json"
BLOCK = 1000
"""PublicationNumbers that are reserved at once."""


class PublicationNumbers:
    """The numbers of one start of the learner, for who does not publish: other learner hosts.

    Args:
        first: the number of the first parameters.
        iteration: that this learner starts at.
        unseen: iterations beyond `newest` whose parameters may be published already.

    Attributes:
        begun: the iteration that this learner started at.
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
    """The numbers of one start of the learner, for who publishes.

    Args:
        folder: the run folder; keeps which numbers are taken.
        iteration: that this learner starts at.
    """

    def __init__(self, folder: Path, *, iteration: int) -> None:
        self._path = folder / FILE_NAME
        self._reserved = _read(self._path)
        super().__init__(self._reserved, iteration=iteration, unseen=0)
        self._reserve()

    def number(self, iteration: int) -> int:
        """Of the parameters after `iteration` iterations; reserves it in the run folder before it is used."""
        number = self.first + iteration - self.begun
        while number >= self._reserved:
            self._reserve()
        self.newest = iteration
        return number

    def _reserve(self) -> None:
        self._reserved += BLOCK
        write_whole(self._path, json.dumps({"reserved": self._reserved}) + "\n")


class RootStore(ParameterPublisher):
    """Publishes iterations under their numbers, at the root of the tree of caches.

    Args:
        cache: the root; it is the caller's to close.
        layout: of the parameters.
        publications: the numbers.
    """

    def __init__(self, cache: ModelCache, layout: Layout, publications: Publications) -> None:
        self._cache, self._layout, self._publications = cache, layout, publications

    def publish(self, iteration: int, parameters: Any) -> None:
        """Makes the parameters after `iteration` iterations the newest; SnapshotMismatch if not of the layout."""
        number = self._publications.number(iteration)
        self._cache.publish(self._layout.pack(number, parameters))


def _read(path: Path) -> int:
    """The first number that is free; a file that cannot be read is an error, or numbers would be taken twice."""
    if not path.exists():
        return 0
    return int(json.loads(path.read_text(encoding="utf-8"))["reserved"])
