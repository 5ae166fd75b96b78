"""The settings of `evaluate`, `sample`, `search` and `legalise`."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from placement.annealing.anneal_config import AnnealConfig
from placement.config import (
    COSTS,
    Amount,
    ConfigError,
    CostConfig,
    CostWeights,
    Count,
    DesignSettings,
    EpisodeSoftPlacer,
    GivenPlacement,
    OrNone,
    Seeded,
    Settings,
    one_of,
    require,
)
from placement.engine.soft import SOFT_PLACERS
from placement.netlist.design import Design

TRAINED = "trained"
DEFAULT_COST, DEFAULT_ANNEAL = CostConfig(), AnnealConfig()
SoftPlacer = Annotated[str, one_of(SOFT_PLACERS)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationSettings(DesignSettings):
    """The output of these commands.

    Attributes:
        json: print a JSON object as the last line
        out: output folder; null: runs/evaluate/<design>/<a name>
        plots: draw the placement and its maps; null: only if checkpoint is given
    """

    cost: CostConfig = DEFAULT_COST
    json: bool = False
    out: str | None = None
    plots: bool | None = False

    @property
    def weights(self) -> CostWeights:
        """The cost's weights in the engine's form."""
        return self.cost.weights()

    def folder(self, design: Design, name: str) -> Path:
        """The output folder; by default, one called `name`."""
        return Path(self.out) if self.out is not None else Path("runs") / "evaluate" / design.name / name

    @property
    def draws_plots(self) -> bool:
        """Whether pictures are drawn; by default, only of a policy's placements."""
        return getattr(self, "checkpoint", None) is not None if self.plots is None else self.plots


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlacementSettings(EvaluationSettings, GivenPlacement):
    """The placement of these commands."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PolicySettings(EvaluationSettings, Seeded):
    """The trained policy of these commands.

    Attributes:
        checkpoint: run folder of a trained policy, or base, the shipped one; design defaults to its run's
        samples: placements sampled from the policy, in addition to the greedy one
        soft_placer: force_directed, analytic or analytic_fast; for a policy's episodes also annealed or none; null: its
            run's, or none if a placement is measured
    """

    checkpoint: str | None = None
    samples: Count = 16
    soft_placer: EpisodeSoftPlacer | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlipSettings(Settings):
    """Mirroring of macros by these commands.

    Attributes:
        flips: mirror hard macros in place if that lowers the cost; default of sample: true
    """

    flips: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateConfig(PlacementSettings, FlipSettings):
    """Settings of `evaluate`.

    Attributes:
        soft_placer: place the soft macros first, by force_directed, analytic or analytic_fast; null: keep them
        full: full evaluation, for imported designs
        timing: static timing, for designs that were imported with liberty and sdc; uses placed cells with full=true,
            otherwise cells in their clusters
        sta: path of OpenSTA, to compare its timing with that of timing=true
    """

    soft_placer: SoftPlacer | None = None
    full: bool = False
    timing: bool = False
    sta: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sta is not None and not self.timing:
            raise ConfigError(f"sta={self.sta}: needs timing=true")


@dataclasses.dataclass(frozen=True)
class TrainedCost(CostConfig, group="cost."):
    """`CostConfig` with a further cost, `TRAINED`, which is the one that the policy was trained on.

    Attributes:
        name: trained, the cost of the policy, run or search; chip or proxy
    """

    name: Annotated[str, one_of((TRAINED, *COSTS))] = TRAINED

    def of(self, trained: CostConfig) -> CostConfig:
        """Resolves the cost for a policy that was trained on `trained`; given weights take precedence."""
        if self.name != TRAINED:
            return CostConfig(**vars(self))
        given = {name: value for name, value in vars(self).items() if value != getattr(type(self), name)}
        return dataclasses.replace(trained, **given)


TRAINED_COST = TrainedCost()


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleConfig(PolicySettings, FlipSettings):
    """Settings of `sample`.

    Attributes:
        annealed: number of placements, those with the lowest cost, whose soft macros are annealed
    """

    cost: TrainedCost = TRAINED_COST
    annealed: OrNone = 8
    flips: bool = True
    plots: bool | None = True

    def _check_given(self) -> None:
        if self.checkpoint is None:
            raise ConfigError("checkpoint: is required: a run folder, or base")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnnealSettings(PolicySettings):
    """The budget of annealing.

    Attributes:
        time: CPU seconds per thread
        threads: number of threads
    """

    time: float = 60.0
    threads: Count = 1
    anneal: AnnealConfig = DEFAULT_ANNEAL
    plots: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.time > 0, "time", self.time, "above 0 seconds")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig(AnnealSettings, PlacementSettings):
    """Settings of `search`.

    Attributes:
        method: refine: improve the placement, by default the design's, or the policy's best samples; anneal: start
            from the search's own starts; mixed_size: place cells and macros together, then anneal the macros among the
            cells (imported designs); null: refine with placement or checkpoint, else anneal
        moves: moves per thread instead of time, for reproducible results
        candidates: number of searches with different seeds, each of `time`; the full evaluation chooses (imported
            designs)
        timing: weight of negative slack relative to wirelength in the choice among candidates, for example 0.07, for
            designs that were imported with liberty and sdc; 0: ignore slack
    """

    method: Literal["refine", "anneal", "mixed_size"] | None = None
    moves: Count | None = None
    candidates: Count = 1
    timing: Amount = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.timing > 0:
            require(
                self.candidates > 1,
                "candidates",
                self.candidates,
                "above 1 with timing, which chooses among candidates, such as 4",
            )
        if self.candidates > 1 and self.design is None:
            raise ConfigError(f"candidates={self.candidates}: needs design=, the folder of an imported design")
        if self.checkpoint is not None and self.placement is not None:
            raise ConfigError("placement and checkpoint exclude each other: give only one of them")
        if self.chosen_method != "refine" and (self.checkpoint is not None or self.placement is not None):
            raise ConfigError(
                f"method={self.method} has its own starts: method=refine improves a placement or a checkpoint's"
            )
        if self.method == "mixed_size" and self.design is None:
            raise ConfigError(f"method={self.method}: needs design=, the folder of an imported design")

    @property
    def chosen_method(self) -> str:
        """`method`; by default a given placement or checkpoint is refined, and a design is searched from own starts."""
        if self.method is not None:
            return self.method
        return "anneal" if self.placement is None and self.checkpoint is None else "refine"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LegaliseConfig(PlacementSettings):
    """Settings of `legalise`.

    Attributes:
        spacing: minimum gap between hard macros, and to blockages, in µm
    """

    spacing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.rules  # This raises if a setting is invalid.

    @property
    def rules(self) -> AnnealConfig:
        """The spacing in the legaliser's form."""
        return AnnealConfig(spacing=self.spacing)
