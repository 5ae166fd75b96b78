"""The settings of the commands that judge: `evaluate`, `sample`, `search`, `legalise`, `compare`.

The command's file in configs/ says what each setting means; here are their types and what is refused.
"""

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
    EpisodeSoftPlacer,
    OrNone,
    Seed,
    Settings,
    one_of,
    require,
)
from placement.engine.soft import SOFT_PLACERS
from placement.netlist.design import Design

DEFAULT_COST = CostConfig()
TRAINED = "trained"
DEFAULT_ANNEAL = AnnealConfig()
PLACERS = ("random", "greedy", "anneal", "mixed_size", "policy", "policy+refine")
DEFAULT_PLACERS = ("random", "greedy", "anneal")
SoftPlacer = Annotated[str, one_of(SOFT_PLACERS)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class JudgingSettings(Settings):
    """What all five commands share."""

    design: str | None = None
    initial: str | None = None
    cost: CostConfig = DEFAULT_COST
    json: bool = False
    out: str | None = None
    plots: bool | None = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_given()

    def _check_given(self) -> None:
        """Raises ConfigError where nothing says what to judge."""
        if self.design is None and getattr(self, "checkpoint", None) is None:
            raise ConfigError("design: is required: a name, or the path of a .pb.txt or .pb.txt.gz file")

    @property
    def weights(self) -> CostWeights:
        """The proxy cost's weights as the engine takes them."""
        return self.cost.weights()

    def folder(self, design: Design, name: str) -> Path:
        """Where files are written: by default, in a folder of that name."""
        return Path(self.out) if self.out is not None else Path("runs") / "evaluate" / design.name / name

    @property
    def draws_plots(self) -> bool:
        """Whether pictures are drawn: by default, only of a policy's placements."""
        return getattr(self, "checkpoint", None) is not None if self.plots is None else self.plots

    @property
    def draws_animation(self) -> bool:
        """Whether an animation is drawn: by default, wherever pictures are."""
        asked: bool | None = getattr(self, "animation", None)
        return self.draws_plots if asked is None else asked


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointSettings(JudgingSettings):
    """What the commands share that can use a trained policy."""

    checkpoint: str | None = None
    samples: Count = 16
    soft_placer: EpisodeSoftPlacer | None = None
    seed: Seed = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateConfig(JudgingSettings):
    """Of `evaluate`: a placement is measured."""

    placement: str | None = None
    soft_placer: SoftPlacer | None = None
    flat: bool = False
    flips: bool = False
    animation: bool | None = None


@dataclasses.dataclass(frozen=True)
class SampledCost(CostConfig, group="cost."):
    """As `CostConfig`; where it is called `TRAINED`, the cost that the policy was trained on."""

    name: Annotated[str, one_of((TRAINED, *COSTS))] = TRAINED

    def of(self, trained: CostConfig) -> CostConfig:
        """The cost that is meant, where a policy was trained on `trained`; weights that are given count."""
        if self.name != TRAINED:
            return CostConfig(**vars(self))
        given = {name: value for name, value in vars(self).items() if value != getattr(SampledCost(), name)}
        return dataclasses.replace(trained, **given)


TRAINED_COST = SampledCost()


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleConfig(CheckpointSettings):
    """Of `sample`: a trained policy places a design."""

    cost: SampledCost = TRAINED_COST
    settled: OrNone = 8
    flips: bool = True
    plots: bool | None = True
    animation: bool | None = None

    def _check_given(self) -> None:
        if self.checkpoint is None:
            raise ConfigError("checkpoint: is required: a run folder, or base")


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnnealSettings(CheckpointSettings):
    """What the commands share that anneal: for how long, and how."""

    time: float = 60.0
    threads: Count = 1
    anneal: AnnealConfig = DEFAULT_ANNEAL
    plots: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.time > 0, "time", self.time, "above 0 seconds")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig(AnnealSettings):
    """Of `search`: a placement, or a policy's best samples, are improved by annealing."""

    cost: CostConfig = DEFAULT_COST
    method: Literal["refine", "anneal", "mixed_size"] | None = None
    placement: str | None = None
    moves: Count | None = None
    candidates: Count | None = None
    animation: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count > 1 and self.design is None:
            raise ConfigError(f"candidates={self.count}: needs design=, the folder of an imported design")
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
        """`method`; where that is open, what is given is refined, and with nothing given the search has own starts."""
        if self.method is not None:
            return self.method
        return "anneal" if self.placement is None and self.checkpoint is None else "refine"

    @property
    def count(self) -> int:
        """Of searches."""
        return self.candidates or 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class LegaliseConfig(JudgingSettings):
    """Of `legalise`: hard macros are moved as little as possible."""

    placement: str | None = None
    spacing: float = 0.0
    blockages: tuple[tuple[float, ...], ...] = ()
    grid: float = 0.0
    animation: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.rules  # raises where one is wrong

    @property
    def rules(self) -> AnnealConfig:
        """Spacing, blockages and grid as the legaliser and its callers take them."""
        return AnnealConfig(spacing=self.spacing, blockages=self.blockages, grid=self.grid)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompareConfig(AnnealSettings):
    """Of `compare`: placers are run for the same time, and compared, also with placements that files hold."""

    placers: tuple[Annotated[str, one_of(PLACERS)], ...] | None = None
    placement: tuple[str, ...] = ()
    flat: bool = False
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
        needs = {"flat=true": self.flat, "placement": self.placement, "placers=mixed_size": self.needs_flat}
        if self.design is None and any(needs.values()):
            what = next(name for name, needed in needs.items() if needed)
            raise ConfigError(f"{what}: needs design=, also with a checkpoint")

    @property
    def chosen(self) -> tuple[str, ...]:
        """The placers to run: where nothing is said and no placements are given, the usual ones."""
        if self.placers is not None:
            return self.placers
        return () if self.placement else DEFAULT_PLACERS

    @property
    def needs_flat(self) -> bool:
        """Whether the design's flat netlist is read."""
        return self.flat or "mixed_size" in self.chosen
