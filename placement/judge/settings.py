"""The settings of `judge data`, `judge train` and `judge rank`; the files in configs/ say what each means."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from placement.config import Amount, ConfigError, Count, Positive, Rule, Seed, Settings, require
from placement.transport.addresses import is_host_port


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig(Settings):
    """Of `judge data`."""

    out: str
    designs: tuple[str, ...] = ()
    count: Count = 50
    placements: Count = 16
    given: tuple[str, ...] = ()
    moves: Count = 100_000
    spacings: tuple[Amount, ...] = (0.0, 0.0, 2.0, 5.0)
    least_cells: Count = 3000
    most_cells: Count = 10_000
    least_macros: Count = 10
    most_macros: Count = 60
    workers: Count = 1
    address: str | None = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.spacings:
            raise ConfigError("spacings=[]: must be at least one number of µm")
        if self.given and len(self.designs) != 1:
            count = len(self.designs) or "none"
            raise ConfigError(f"given: needs designs to be the one design whose placements these are, not {count}")
        if self.address is not None and self.address != "auto":
            right = "auto or host:port, of a Ray cluster that runs already; left out, this machine has the processes"
            require(is_host_port(self.address), "address", self.address, right)
        for least, most in (("least_cells", "most_cells"), ("least_macros", "most_macros")):
            right = f"at least {least}={getattr(self, least)}"
            require(getattr(self, most) >= getattr(self, least), most, getattr(self, most), right)


@dataclasses.dataclass(frozen=True, kw_only=True)
class JudgeTrainConfig(Settings):
    """Of `judge train`."""

    data: str
    out: str = "judge.npz"
    members: Annotated[int, Rule("at least 2", lambda value: value >= 2)] = 5
    epochs: Count = 30
    width: Count = 16
    learning_rate: Positive = 3e-3
    weight_decay: Amount = 1e-3
    holdout: Annotated[float, Rule("at least 0 and below 1", lambda value: 0 <= value < 1)] = 0.2
    workers: Count = 1
    verbose: bool = False
    seed: Seed = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class RankConfig(Settings):
    """Of `judge rank`."""

    data: str
    judge: str = "judge.npz"
    workers: Count = 1
    all: bool = False
