"""How the temperature decays during a search.

Temperatures are in units of the proxy cost, progress is the share of the budget that is spent, in [0, 1].
"""

from __future__ import annotations

import math

from placement.annealing.config import HOT, REFINE_SHARE, AnnealConfig


class Geometric:
    """Falls from `hot` to `cold` by the same factor for each equal share of the budget.

    Attributes:
        temperature: of the next round of moves.
        memory: what, beside the arguments of `advance`, the next temperatures depend on; may be set to another one's.
    """

    def __init__(self, hot: float, cold: float) -> None:
        self._hot, self._cold = hot, cold
        self.temperature = hot
        self.memory: list[float] = []

    def advance(self, progress: float, accepted: float) -> None:
        """Sets `temperature` for the next round; `accepted` is the share of the last round's moves that was."""
        self.temperature = self._hot * (self._cold / self._hot) ** min(1.0, progress)


class Adaptive(Geometric):
    """Steers the temperature so that the share of accepted moves falls evenly, from that at `hot` to a tenth of it.

    After Lam and Delosme (1988), who found this schedule most efficient. The temperature stays between the two given;
    the last tenth of the budget is at `cold`.
    """

    GAIN = 0.05  # change of the temperature's logarithm in a round, for each halving of the acceptance to be made up
    LAST = 0.9

    def __init__(self, hot: float, cold: float) -> None:
        super().__init__(hot, cold)
        self.memory = [0.0, hot]

    def advance(self, progress: float, accepted: float) -> None:
        """As the base's."""
        first, self.temperature = self.memory
        first = first or accepted
        if progress >= self.LAST:
            self.temperature = self._cold
        elif accepted > 0 and first > 0:
            wanted = first * 10 ** (-progress / self.LAST)
            self.temperature *= math.exp(self.GAIN * math.log2(wanted / accepted))
            self.temperature = min(self._hot, max(self._cold, self.temperature))
        self.memory = [first, self.temperature]


def make_schedule(
    config: AnnealConfig, *, cost: float, macros: int, given: bool = False, name: str = "proxy"
) -> Geometric:
    """The schedule that `config` asks for.

    Args:
        config: the schedule and its ends, relative.
        cost: of the start.
        macros: that may move.
        given: whether the start is one to be refined.
        name: of the cost.
    """
    unit = cost / max(1, macros)
    hot = HOT[name] * (REFINE_SHARE if given else 1.0) if config.hot is None else config.hot
    hot, cold = hot * unit, config.cold * unit
    return Geometric(hot, cold) if config.schedule == "geometric" else Adaptive(hot, cold)
