"""How a run ended."""

from __future__ import annotations

import dataclasses
from pathlib import Path

STOPPING = "stopping …"
"""What people are told as soon as a run is asked to stop."""


@dataclasses.dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Attributes:
        run_dir: the run folder.
        iterations, episodes: done in all.
        seconds: spent in all.
        best_cost: lowest proxy cost found (the designs' mean, where there are several); NaN if none.
        mean_cost: mean proxy cost of the last iteration's sampled episodes; NaN if none was done.
        best_files: placement files of the best, one for each design.
        interrupted: whether it was asked to stop before it was done.
    """

    run_dir: Path
    iterations: int = 0
    episodes: int = 0
    seconds: float = 0.0
    best_cost: float = float("nan")
    mean_cost: float = float("nan")
    best_files: tuple[Path, ...] = ()
    interrupted: bool = False
