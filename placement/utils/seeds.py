"""All randomness of a run comes from one seed, with a named split for each role, so that no two roles draw the same."""

from __future__ import annotations

import enum

import jax
import numpy as np


class SeedRole(enum.IntEnum):
    """The roles that draw random numbers. The values are part of a run's reproducibility; never change them."""

    LEARNER = 0
    ACTOR = 1
    EVALUATOR = 2


def role_key(seed: int, role: SeedRole, index: int = 0) -> jax.Array:
    """The JAX random key of the `index`-th process of a role."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), int(role)), index)


def role_seed(seed: int, role: SeedRole, index: int = 0) -> int:
    """A seed in [0, 2³²) for the `index`-th process of a role."""
    return int(np.random.SeedSequence([seed, int(role), index]).generate_state(1)[0])
