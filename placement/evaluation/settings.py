"""The settings of `evaluate`, `sample`, `search`, `legalise` and `compare`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from placement.annealing.config import AnnealConfig
from placement.config import (
    COSTS,
    ConfigError,
    CostConfig,
    CostWeights,
    Count,
    DesignSettings,
    EpisodeSoftPlacer,
    OrNone,
    Seed,
    one_of,
    require,
)
from placement.engine.soft import SOFT_PLACERS
from placement.netlist.design import Design

TRAINED = "trained"
DEFAULT_COST, DEFAULT_ANNEAL = CostConfig(), AnnealConfig()
PLACERS = ("random", "greedy", "anneal", "mixed_size", "policy", "policy+refine")
DEFAULT_PLACERS = ("random", "greedy", "anneal")
SoftPlacer = Annotated[str, one_of(SOFT_PLACERS)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationSettings(DesignSettings):
    """The settings of all five commands.

    Attributes:
        json: end with one JSON object on the last line of standard output
        out: folder of all files that are written; null: runs/evaluate/<design>/<a name>
        plots: draw the placement and its maps; null: only with checkpoint
    """

    cost: CostConfig = DEFAULT_COST
    json: bool = False
    out: str | None = None
    plots: bool | None = False

    @property
    def weights(self) -> CostWeights:
        """The cost's weights as the engine takes them."""
        return self.cost.weights()

    def folder(self, design: Design, name: str) -> Path:
        """The folder that files are written to: by default, one of that name."""
        return Path(self.out) if self.out is not None else Path("runs") / "evaluate" / design.name / name

    @property
    def draws_plots(self) -> bool:
        """Whether pictures are drawn: by default, only of a policy's placements."""
        return getattr(self, "checkpoint", None) is not None if self.plots is None else self.plots

    @property
    def draws_animation(self) -> bool:
        """Whether an animation is drawn: by default, with the pictures."""
        wanted: bool | None = getattr(self, "animation", None)
        return self.draws_plots if wanted is None else wanted


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlacementSettings(EvaluationSettings):
    """The settings of the commands that take one placement.

    Attributes:
        placement: the .plc or .def; null: the placement that the design comes with
        animation: draw the macros being placed one by one; null: as plots
    """

    placement: str | None = None
    animation: bool | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PolicySettings(EvaluationSettings):
    """The settings of the commands that can use a trained policy.

    Attributes:
        checkpoint: the run folder of a trained policy, or base: the one that comes with the project; design is then its
            run's unless another is given
        samples: placements drawn from the policy, beside the greedy one
        soft_placer: of soft macros: force_directed, analytic or analytic_fast, for a policy's episodes also annealed or
            none; null: its run's, and where a placement is measured, they stay
        seed: of all that is random
    """

    checkpoint: str | None = None
    samples: Count = 16
    soft_placer: EpisodeSoftPlacer | None = None
    seed: Seed = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateConfig(PlacementSettings):
    """Settings of `evaluate`.

    Attributes:
        soft_placer: places the soft macros first: force_directed, analytic or analytic_fast; null: they stay
        full: place all standard cells around the macros, and estimate their routing; needs an imported design
        flips: mirror hard macros in place where that is cheaper
    """

    soft_placer: SoftPlacer | None = None
    full: bool = False
    flips: bool = False


@dataclasses.dataclass(frozen=True)
class TrainedCost(CostConfig, group="cost."):
    """As `CostConfig`; the cost called `TRAINED` is the one that the policy was trained on.

    Attributes:
        name: trained, the cost that the policy, run or search goes by; chip or proxy
    """

    name: Annotated[str, one_of((TRAINED, *COSTS))] = TRAINED

    def of(self, trained: CostConfig) -> CostConfig:
        """The cost that is meant if a policy was trained on `trained`; weights that are given count."""
        if self.name != TRAINED:
            return CostConfig(**vars(self))
        given = {name: value for name, value in vars(self).items() if value != getattr(type(self), name)}
        return dataclasses.replace(trained, **given)


TRAINED_COST = TrainedCost()


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleConfig(PolicySettings):
    """Settings of `sample`.

    Attributes:
        settled: of this many of the cheapest placements the soft macros are annealed for the cost; 0: of none
        flips: mirror hard macros in place where that is cheaper
        animation: draw the macros being placed one by one; null: as plots
    """

    cost: TrainedCost = TRAINED_COST
    settled: OrNone = 8
    flips: bool = True
    plots: bool | None = True
    animation: bool | None = None

    def _check_given(self) -> None:
        if self.checkpoint is None:
            raise ConfigError("checkpoint: is required: a run folder, or base")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnnealSettings(PolicySettings):
    """The settings of the commands that anneal.

    Attributes:
        time: CPU seconds of each thread
        threads: that search
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
        method: refine: improve the placement, that of the design where none is given, or the policy's best samples;
            anneal: begin with the search's own starts; mixed_size: place cells and macros together, then anneal the
            macros among the placed cells for the time (an imported design); null: refine with placement or
            checkpoint, else anneal
        moves: moves of each thread, instead of time: the result then depends on the settings only
        candidates: searches, each of `time` and with a seed of its own; of several, the full evaluation chooses (an
            imported design)
    """

    method: Literal["refine", "anneal", "mixed_size"] | None = None
    moves: Count | None = None
    candidates: Count = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates > 1 and self.design is None:
            raise ConfigError(f"candidates={self.candidates}: needs design=, the folder of an imported design")
        if self.checkpoint is not None and self.placement is not None:
            raise ConfigError("placement and checkpoint cannot be refined together: give one of them")
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
        spacing: µm that hard macros keep from each other and from blockages
        blockages: rectangles that hard macros keep off: [[left, low, right, high], …] in µm
        grid: µm; lower left corners of hard macros are put on multiples of this; 0: anywhere
    """

    spacing: float = 0.0
    blockages: tuple[tuple[float, ...], ...] = ()
    grid: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.rules  # raises if one is wrong

    @property
    def rules(self) -> AnnealConfig:
        """Spacing, blockages and grid as the legaliser and its callers take them."""
        return AnnealConfig(spacing=self.spacing, blockages=self.blockages, grid=self.grid)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompareConfig(AnnealSettings):
    """Settings of `compare`.

    Attributes:
        placers: of random, greedy, anneal, mixed_size, policy, policy+refine; null: the first three, none where
            placements are given; mixed_size needs an imported design, policy a checkpoint
        placement: the .plc or .def files that are compared, beside the placers
        labels: their names in tables and pictures, in the same order; by default from the files' names
        full: place all standard cells around the macros of each placement, and estimate their routing
        seeds: runs of each placer, from seed on
    """

    placers: tuple[Annotated[str, one_of(PLACERS)], ...] | None = None
    placement: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    full: bool = False
    seeds: Count = 3
    plots: bool | None = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.chosen and not self.placement:
            raise ConfigError(f"placers: at least one of {', '.join(PLACERS)}")
        for placer in self.chosen:
            if placer.startswith("policy") and self.checkpoint is None:
                raise ConfigError(f"placers: {placer!r} needs checkpoint=RUN, the run folder of a trained policy")
        if len(set(self.chosen)) < len(self.chosen):
            raise ConfigError(f"placers: {', '.join(self.chosen)}: name each once; seeds=N runs each N times")
        if self.labels and len(self.labels) != len(self.placement):
            raise ConfigError(
                f"labels: {len(self.labels)} for {len(self.placement)} placements; give one for each, in the same order"
            )
        names = (*self.labels, *self.chosen)
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f"labels: {twice[0]!r} is the name of two placements or placers; no two may be alike")
        needs = {"full=true": self.full, "placement": self.placement, "placers=mixed_size": self.needs_cells}
        if self.design is None and any(needs.values()):
            what = next(name for name, needed in needs.items() if needed)
            raise ConfigError(f"{what}: needs design=, also with a checkpoint")

    @property
    def chosen(self) -> tuple[str, ...]:
        """The placers to run: by default, the usual ones, and none where placements are given."""
        if self.placers is not None:
            return self.placers
        return () if self.placement else DEFAULT_PLACERS

    @property
    def needs_cells(self) -> bool:
        """Whether the design's flat netlist is read."""
        return self.full or "mixed_size" in self.chosen
