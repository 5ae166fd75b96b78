"""Clustered designs of random sizes, by number: a distribution to train on, and others to validate and test on."""

import dataclasses
import functools
import random
from typing import Literal, get_args

from placement.netlist.design import Design
from placement.netlist.distribution import ENDLESS, DesignBounds
from placement.netlist.errors import DesignError
from placement.netlist.generators.clustered import clustered, largest_grid
from placement.netlist.generators.draws import Draws

Split = Literal["train", "validation", "test"]
_LEAST_SOFT = 16
_MOST_ATTEMPTS = 100
# A clustered design's memories are one or two gcells wide.
_ACTION_SCALE = 2


@dataclasses.dataclass(frozen=True)
class SyntheticDesigns:
    """Clustered designs (`placement.netlist.generators.clustered`) whose sizes are drawn for each.

    Design n depends on the seed, the split and n alone, on every machine. No design is in two splits.

    Attributes:
        macros: minimum and maximum number of hard macros.
        seed: seed of all designs.
        split: train, validation or test.
        count: number of different designs; None: endless.
        episodes_per_design: episodes that an environment of a pool plays with a design before it gets another.
        soft_macros, ports: minimum and maximum number for each hard macro; at least 16 soft macros.
        rent_exponent: minimum and maximum exponent of Rent's rule.

    Example:
        >>> with placement.make_pool(placement.SyntheticDesigns(macros=(6, 12)), num_envs=4) as pool:
        ...     first, second = (pool.reset()[0] for _ in range(2))
        >>> first["design"].tolist(), second["design"].tolist()
        ([0, 1, 2, 3], [4, 5, 6, 7])
        >>> first, second = placement.SyntheticDesigns(split="validation", count=2)
        >>> first.name, second.name
        ('validation_0_0', 'validation_0_1')

    Raises:
        ValueError: a range is empty or below 1, or `split`, `count` or `episodes_per_design` is invalid.
    """

    macros: tuple[int, int] = (20, 60)
    seed: int = 0
    split: Split = "train"
    count: int | None = None
    episodes_per_design: int = 1
    soft_macros: tuple[float, float] = (4.0, 8.0)
    ports: tuple[float, float] = (2.0, 4.0)
    rent_exponent: tuple[float, float] = (0.6, 0.8)

    def __post_init__(self) -> None:
        for field, least, most in (("macros", 1, None), ("soft_macros", 0, None), ("ports", 1, None),
                                   ("rent_exponent", 0, 1)):  # fmt: skip
            low, high = getattr(self, field)
            if not least <= low <= high or (most is not None and high > most):
                right = f"a minimum and a maximum of at least {least}" + (f" and at most {most}" if most else "")
                raise ValueError(f"{field}={(low, high)}: must be {right}")
        if self.split not in get_args(Split):
            raise ValueError(f"split={self.split!r}: must be one of {', '.join(get_args(Split))}")
        if self.count is not None and not 1 <= self.count <= ENDLESS:
            raise ValueError(f"count={self.count}: must be in [1, {ENDLESS}], or None")
        if self.episodes_per_design < 1:
            raise ValueError(f"episodes_per_design={self.episodes_per_design}: must be at least 1")

    def __getitem__(self, number: int) -> Design:
        """Returns design `number`; raises IndexError if there is none."""
        if not 0 <= number < (self.count or ENDLESS):
            raise IndexError(f"design {number}: must be in [0, {self.count or ENDLESS})")
        for attempt in range(_MOST_ATTEMPTS):
            try:
                return self._drawn(number, attempt)
            except DesignError as error:  # This is rare: the macros do not fit in rows.
                reason = error
        raise DesignError(f"{self}: design {number} was drawn {_MOST_ATTEMPTS} times without success: {reason}")

    @functools.cached_property
    def bounds(self) -> DesignBounds:
        most = self.macros[1]
        rows, columns = largest_grid(self.macros)
        soft, ports = max(_LEAST_SOFT, round(most * self.soft_macros[1])), max(1, round(most * self.ports[1]))
        return DesignBounds(rows, columns, most, most + soft + ports, _ACTION_SCALE)

    def _drawn(self, number: int, attempt: int) -> Design:
        draws = Draws(random.Random(f"synthetic {self.seed} {self.split} {number} {attempt}"))
        low, high = self.macros
        hard = low + draws.below(high - low + 1)
        spans = (self.soft_macros, self.ports, self.rent_exponent)
        soft, ports, exponent = (draws.quantile(span, draws.uniform()) for span in spans)
        return clustered(
            seed=draws.below(2**53),
            hard=hard,
            soft=max(_LEAST_SOFT, round(hard * soft)),
            ports=max(1, round(hard * ports)),
            name=f"{self.split}_{self.seed}_{number}",
            rent_exponent=round(exponent, 3),
        )
