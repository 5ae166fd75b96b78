"""Who played an episode: the first number of its identity says which actor, and which start of its process.

An identity is int64 [2]: (actor's number << 40 | its process's incarnation, the episode's count in it). The evaluator
has a number of its own among the actors.
"""

from __future__ import annotations

from placement.episode import Episode

INCARNATION_BITS = 40
EVALUATOR = 1 << 22
"""Stands where an episode's identity has its actor's number: not to be learned from."""


def actor_of(identity: int) -> int:
    """The actor's number, or `EVALUATOR`, from an identity's first number."""
    return identity >> INCARNATION_BITS


def is_evaluation(episode: Episode) -> bool:
    """Whether an episode was played to see how good the policy is, not to learn from."""
    return actor_of(int(episode.identity[0])) == EVALUATOR
