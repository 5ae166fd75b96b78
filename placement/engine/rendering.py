"""Episodes played again from their actions, for what was seen before each action: `EpisodeRenderer`.

Axis legend as in `placement.engine.observation`: B episodes, T steps, at most as many as the largest design has macros
to place.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from placement.engine import _native
from placement.engine.actions import IllegalAction, explain
from placement.engine.arrays import Integers, int32_array
from placement.engine.native_design import native_design
from placement.engine.observation import Observation
from placement.engine.pool_types import pool_spec
from placement.netlist.design import Design
from placement.netlist.errors import DesignError


class EpisodeRenderer:
    """Plays episodes of the given designs again; holds no environment and no thread.

    Attributes:
        designs: that `design_index` counts.
        spec: shape and dtype of each array of an observation; `spec.steps` is T.
    """

    def __init__(self, designs: Sequence[Design]) -> None:
        """Raises DesignError where a design cannot be played."""
        self.designs = tuple(designs)
        with refusing_unplayable(self.designs):
            self._native = _native.EpisodeRenderer([native_design(design) for design in self.designs])
        self.spec = pool_spec(self.designs, self._native.shape)

    def render(
        self, design_index: Integers, actions: Integers, lengths: Integers, *, out: Observation | None = None
    ) -> Observation:
        """Plays episodes again and returns what was seen before each action: axes [B, T] before those of a step.

        B is any number of episodes here and T the length of the `actions` axis; past an episode's length everything is
        zero. No soft macro is placed and no cost is computed. Several threads may call this at once if each gives its
        own `out`.

        Args:
            design_index: integers [B], in [0, number of designs).
            actions: integers [B, T].
            lengths: integers [B], actions taken, at most T.
            out: arrays to write to, from `arrays(B, T)`, compact or not; new ones when None.

        Raises:
            IllegalAction: an action may not be taken in its episode; names the episode and step.
            ValueError, TypeError, IndexError: another shape or dtype, an index or a length out of range.
        """
        actions = int32_array("actions", actions, (None, None))
        episodes, steps = actions.shape
        design_index = int32_array("design_index", design_index, (episodes,))
        lengths = int32_array("lengths", lengths, (episodes,))
        if episodes and not 0 <= lengths.min() <= lengths.max() <= steps:
            raise ValueError(f"lengths: every one must be in [0, {steps}]")
        if episodes and not 0 <= design_index.min() <= design_index.max() < len(self.designs):
            raise IndexError(f"design_index: every one must be in [0, {len(self.designs)})")
        out = self.arrays(episodes, steps) if out is None else out
        compact = out.maps.dtype.itemsize == np.dtype(np.uint16).itemsize
        into = out._replace(maps=out.maps.view(np.uint16)) if compact else out
        refusal = self._native.render(design_index, actions, lengths, **into._asdict())
        if refusal is not None:
            episode, step, design = refusal[:3]
            reason = explain(self.designs[design], step, int(actions[episode, step]), self.spec.columns, refusal)
            raise IllegalAction(f"episode {episode}: {reason}")
        return out

    def arrays(self, episodes: int, steps: int, *, compact_maps: bool = False) -> Observation:
        """Arrays for `render`: an observation's with leading axes [episodes, steps]; compact maps are bfloat16."""
        arrays = pool_spec(self.designs, self._native.shape, compact_maps=compact_maps).observation.items()
        return Observation(**{name: np.zeros((episodes, steps, *spec.shape), spec.dtype) for name, spec in arrays})


@contextlib.contextmanager
def refusing_unplayable(designs: Sequence[Design]) -> Iterator[None]:
    """Turns the engine's refusal of a design into a DesignError that names the design and the node."""
    try:
        yield
    except _native.UnplayableDesign as error:
        index, node, reason = error.args
        design = designs[index]
        where = f"node {design.netlist.names[node]!r} " if node >= 0 else ""
        raise DesignError(f"design {design.name!r} cannot be played: {where}{reason}") from None
