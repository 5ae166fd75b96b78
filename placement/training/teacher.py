"""The teacher: mixed-size placements of a run's designs, played as episodes; the policy imitates them before it plays.

Cells and macros placed together make short wires that no policy finds by itself in minutes. What a lesson costs is what
it costs as an episode of the policy's: its macros stand where the grid of actions lets them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from placement.config import EnvConfig, TrainConfig
from placement.engine.pool import make_pool
from placement.episode import Episode
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.search.config import AnnealConfig
from placement.training.expert import onto_grid
from placement.training.mixed_size import mixed_size_start

ACTOR = -2
"""In the identity of the teacher's episodes."""


def make_teacher(config: TrainConfig, designs: Sequence[Design]) -> Teacher | None:
    """The teacher that the settings ask for, if any; `designs` are the run's."""
    if not config.expert.mixed_size:
        return None
    return Teacher(config.design, designs, config.env, count=config.expert.mixed_size, seed=config.seed)


class Teacher:
    """Makes lessons of designs that have their flat netlist.

    Args:
        names: of the designs, as `load` takes them.
        designs: the same, as they are played.
        env: the environment's settings.
        count: placements that are made of each design.
        seed: of the first placement; the others take the numbers that follow.
    """

    def __init__(
        self, names: Sequence[str], designs: Sequence[Design], env: EnvConfig, *, count: int, seed: int
    ) -> None:
        self._names, self._designs, self._env = tuple(names), tuple(designs), env
        self._count, self._seed = count, seed

    def lessons(self, *, stopped: Callable[[], bool], note: Callable[[str], None]) -> list[Episode]:
        """The cheapest episode of each design; none of a design where all placements failed.

        Args:
            stopped: is asked between the placer's iterations.
            note: is told each design's lessons, and placements that were none, in a line.

        Raises:
            KeyboardInterrupt: `stopped` said True.
        """
        found: list[Episode] = []
        for design in range(len(self._designs)):
            made = [self._lesson(design, number, stopped, note) for number in range(self._count)]
            mine = sorted((one for one in made if one is not None), key=lambda one: -float(one.reward))
            costs = ", ".join(f"{-float(one.reward):.4f}" for one in mine)
            taught = f"a placement of mixed size: the first of {costs}" if mine else "nothing"
            note(f"{self._designs[design].name}: the policy is taught {taught}")
            found += mine[:1]
        return found

    def _lesson(
        self, design: int, number: int, stopped: Callable[[], bool], note: Callable[[str], None]
    ) -> Episode | None:
        """One placement as an episode; None where it cannot be made, or a macro finds no cell."""
        played, weights = self._designs[design], self._env.cost.weights()
        try:
            start = mixed_size_start(
                self._names[design], played, AnnealConfig(), weights=weights, seed=self._seed + number, stopped=stopped
            )
        except DesignError as error:
            note(f"{played.name}: a placement of mixed size was left out: {error}")
            return None
        pool = make_pool(self._designs, 1, config=self._env, design_of_env=[design])
        episode = onto_grid(pool, start.placement)
        if episode is None:
            note(f"{played.name}: a placement of mixed size was left out: it does not fit the grid of actions")
            return None
        return episode._replace(identity=np.array([ACTOR, number], np.int64))
