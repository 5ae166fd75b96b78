"""What the clustering of a flat netlist may be told."""

from __future__ import annotations

import dataclasses

from placement.netlist.errors import DesignError


@dataclasses.dataclass(frozen=True)
class ClusteringSettings:
    """Defaults are Circuit Training's, but for the soft macros' shape, `refine` and `imbalance` (there 0.05).

    Attributes:
        parts: of the partition, beside the fixed groups; fewer where there are not eight cells for each.
        fixed_levels: levels of logic around a macro or a group of ports that stay with it.
        most_sinks: nets of more sinks are cut.
        imbalance: by which a part may be larger than the mean. Parts are broken up and merged afterwards, so that they
            are not of one size anyway; with 0.3 some 2% fewer nets run between as many clusters as with 0.05.
        utilization: of a soft macro's area by its cells, above 0, at most 1.
        aspect: width over height of soft macros; None: as wide as a gcell, which is Circuit Training's shape.
        runs: partitions tried, of which the best is taken.
        seed: of the partitioner.
        use_positions: whether cells' positions are used where there are any.
        use_hierarchy: whether names' hierarchy is a hint where there are no positions.
        refine: whether cells change groups at the end where that saves nets, which is not in the published recipe.
    """

    parts: int = 500
    fixed_levels: int = 1
    most_sinks: int = 500
    imbalance: float = 0.3
    utilization: float = 0.5
    aspect: float | None = 1.0
    runs: int = 1
    seed: int = 0
    use_positions: bool = True
    use_hierarchy: bool = True
    refine: bool = True

    def __post_init__(self) -> None:
        for field, least in (("parts", 1), ("fixed_levels", 0), ("most_sinks", 1), ("runs", 1), ("seed", 0)):
            value = getattr(self, field)
            if int(value) != value or value < least:
                raise DesignError(f"clustering {field}: {value} must be a whole number of at least {least}")
        if not 0 < self.utilization <= 1:
            raise DesignError(f"clustering utilization: {self.utilization} must be above 0 and at most 1")
        if not self.imbalance > 0:
            raise DesignError(f"clustering imbalance: {self.imbalance} must be above 0")
        if self.aspect is not None and not self.aspect > 0:
            raise DesignError(f"clustering aspect: {self.aspect} must be above 0")
