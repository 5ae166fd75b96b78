"""The shape of the tree: the parent of each cache under the learner's root, and the caches that a reader may use."""

import dataclasses
from collections.abc import Sequence

ROOT = -1  # the root cache, beside the learner; the other caches are numbered from 0


@dataclasses.dataclass(frozen=True)
class CacheTree:
    """The host and the parent of each cache."""

    hosts: tuple[str, ...]  # the host of each cache
    # number of each cache's parent, always lower than its own; ROOT for those that the root feeds
    parents: tuple[int, ...]

    @property
    def leaves(self) -> tuple[int, ...]:
        """The caches that feed no other one; ROOT if there are no caches."""
        inner = set(self.parents)
        return tuple(each for each in range(len(self.hosts)) if each not in inner) or (ROOT,)

    def ancestors(self, cache: int) -> tuple[int, ...]:
        """The caches that a cache may read from: its parent, the parent's parent …, ROOT; so no cycle can arise."""
        found = []
        while cache != ROOT:
            cache = self.parents[cache]
            found.append(cache)
        return tuple(found)

    def readable(self, host: str, reader: int) -> tuple[int, ...]:
        """The caches that a reader may use, the preferred one first.

        Args:
            host: the reader's host.
            reader: the reader's number, by which readers are spread evenly.

        Returns:
            A cache on its own host if there is one, else a leaf; then one further leaf, then the ancestors of the
            first, ROOT last.
        """
        near = [each for each, where in enumerate(self.hosts) if where == host]
        choice = near or list(self.leaves)
        first = choice[reader % len(choice)]
        others = [each for each in self.leaves if each != first]
        second = [others[reader // len(choice) % len(others)]] if others else []
        return tuple(dict.fromkeys([first, *second, *self.ancestors(first)]))


def plan_tree(hosts: Sequence[str], fan_out: int) -> CacheTree:
    """A tree as flat as the fan-out allows, filled level by level.

    Args:
        hosts: the host of each cache; several may share one.
        fan_out: maximum number of caches that the root or one cache feeds.

    Raises:
        ValueError: `fan_out` is below 1.
    """
    if fan_out < 1:
        raise ValueError(f"fan_out={fan_out}: must be at least 1")
    return CacheTree(tuple(hosts), tuple(number // fan_out - 1 for number in range(len(hosts))))
