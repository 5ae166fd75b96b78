"""What a trained judge expects of the placements that episodes end with, as their reward."""

from __future__ import annotations

from collections.abc import Sequence

from placement.config import NO_JUDGE
from placement.judge.ensemble import Ensemble
from placement.judge.estimate import read_judge
from placement.judge.geometry import Viewer
from placement.netlist.design import Design, Placement


class JudgedReward:
    """Minus the expected log of the routed wirelength over the design's scale (`placement.judge.examples.Targets`).

    Soft macros are read where the episode left them: annealed for the chip cost, with fewer moves than those that the
    judge learned from. For one thread.

    Args:
        designs: of the run, as the pool plays them.
        ensemble: the judge.
    """

    def __init__(self, designs: Sequence[Design], ensemble: Ensemble) -> None:
        self._viewers, self._ensemble = [Viewer(design) for design in designs], ensemble

    def __call__(self, design: int, placement: Placement) -> float:
        """See `placement.training.actor.EpisodeReward`."""
        (level,) = self._ensemble.levels(self._viewers[design], [placement])
        return -float(level)


def make_reward(judge: str, designs: Sequence[Design]) -> JudgedReward | None:
    """The reward that `judge` of a run's settings asks for; None: the cost pays.

    Raises:
        ConfigError: there is no such judge.
    """
    return None if judge == NO_JUDGE else JudgedReward(designs, read_judge(judge, optional=True))


def require_judge(judge: str) -> None:
    """Raises ConfigError unless the judge of a run's settings, if any, can be read."""
    if judge != NO_JUDGE:
        read_judge(judge, optional=True)
