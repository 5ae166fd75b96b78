"""Many environments stepped together in the engine, on the caller's thread.

Axis legend as in `placement.engine.observation`: B environments, K maps, R grid rows, C grid columns, T macros to
place, each of the largest design in the pool; N nodes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from placement.config import EnvConfig
from placement.engine import _native
from placement.engine.actions import IllegalAction, explain
from placement.engine.arrays import int32_array
from placement.engine.native_design import native_design
from placement.engine.observation import MAPS, Observation
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError


class Step(NamedTuple):
    """What a step brought, one entry per environment; the arrays are the pool's memory, overwritten by its next step.

    Attributes:
        observation: after the action. Where an episode has ended it is the last one: no legal gcell, `step` macros
            placed; the next call begins the next episode.
        reward: float32 [B], 0 before the end, then -proxy cost or the dead-end penalty.
        terminated: bool [B], whether the episode has ended.
        dead_end: bool [B], whether it ended because a macro had no legal gcell.
        costs: float64 [B, 5], wirelength (µm), wirelength, density, congestion and proxy cost where all macros were
            placed with this step; NaN elsewhere.
        elapsed_step: int32 [B], actions taken in the episode.
    """

    observation: Observation
    reward: np.ndarray
    terminated: np.ndarray
    dead_end: np.ndarray
    costs: np.ndarray
    elapsed_step: np.ndarray


class EnvironmentPool:
    """A batch of environments, each playing one of the given designs over and over.

    **Automatic reset, next-step semantics** (as Gymnasium's vector environments have): the step that ends an
    environment's episode returns its last observation, its reward and its costs. The *next* call ignores that
    environment's action, begins its next episode and returns the first observation with reward 0, `terminated` False
    and `elapsed_step` 0. So an episode of T macros takes T + 1 calls.

    An action is row · C + column over the grid of the observation, C being the largest design's columns. Actions are
    checked before any is taken: a call that raises has changed nothing.

    Environments hold no randomness: an episode is a pure function of its actions.
    """

    def __init__(
        self,
        designs: Sequence[Design],
        num_envs: int,
        *,
        env: EnvConfig | None = None,
        seed: int = 0,
        design_of_env: Sequence[int] | None = None,
    ) -> None:
        """Builds the environments; `reset` begins.

        Args:
            designs: the designs played.
            num_envs: B.
            env: weights, dead-end penalty, soft placer.
            seed: kept for the record; nothing here is random.
            design_of_env: index into `designs` of each environment; in turn when None.

        Raises:
            DesignError: a design cannot be played: no movable hard macro, a port without position, a macro that fits
                on no gcell, no legal gcell for the first macro.
            ValueError: no design, no environment, an index out of range, or an unknown soft placer.
        """
        env = EnvConfig() if env is None else env
        if not designs:
            raise ValueError("designs: at least one is needed")
        if num_envs < 1:
            raise ValueError(f"num_envs={num_envs}: must be at least 1")
        if design_of_env is None:
            design_of_env = [index % len(designs) for index in range(num_envs)]
        if len(design_of_env) != num_envs:
            raise ValueError(f"design_of_env: {len(design_of_env)} entries for {num_envs} environments")
        for index in design_of_env:
            if not 0 <= index < len(designs):
                raise ValueError(f"design_of_env: {index} is not in [0, {len(designs)})")
        self.designs = tuple(designs)
        self.design_of_env = tuple(int(index) for index in design_of_env)
        self.num_envs = num_envs
        self.env = env
        self.seed = seed
        with refusing_unplayable(self.designs):
            self._native = _native.EnvironmentPool(
                designs=[native_design(design) for design in self.designs],
                design_of_env=list(self.design_of_env),
                weights=(env.cost.wirelength, env.cost.density, env.cost.congestion),
                dead_end_penalty=env.dead_end_penalty,
                soft_placer=env.soft_placer,
            )
        self.rows, self.columns, self.steps = self._native.shape
        arrays = dict(zip(_native.BATCH_FIELDS, _native.batch_arrays(self._native.batch), strict=True))
        self._observation = Observation(**{name: arrays[name] for name in Observation._fields})
        self._step = Step(self._observation, *(arrays[name] for name in Step._fields[1:]))
        self._begun = False
        self._rendered: Observation | None = None

    @property
    def num_actions(self) -> int:
        """R · C."""
        return self.rows * self.columns

    def __len__(self) -> int:
        return self.num_envs

    def reset(self) -> Observation:
        """Begins an episode in every environment and returns the first observations."""
        self._native.reset()
        self._begun = True
        return self._observation

    def step(self, actions: np.ndarray) -> Step:
        """Takes one action in every environment.

        Args:
            actions: int32 [B]. That of an environment whose episode has ended is ignored.

        Raises:
            IllegalAction: (a ValueError) an action is out of range or not legal; names the environment, macro, gcell
                and why. Nothing has changed.
            ValueError, TypeError: another shape or dtype.
            RuntimeError: `reset` was never called.
        """
        actions = int32_array("actions", actions, (self.num_envs,))
        if not self._begun:
            raise RuntimeError("step: call reset() first")
        refusal = self._native.step(actions)
        if refusal is not None:
            env, step, design = refusal[:3]
            reason = explain(self.designs[design], step, int(actions[env]), self.columns, refusal)
            raise IllegalAction(f"environment {env}: {reason}")
        return self._step

    def placement(self, env_id: int) -> Placement:
        """The placement of environment `env_id`'s last episode that placed every macro, soft macros included.

        Raises:
            IndexError: no such environment.
            RuntimeError: it has not finished an episode yet.
        """
        if not 0 <= env_id < self.num_envs:
            raise IndexError(f"environment {env_id} is not in [0, {self.num_envs})")
        design = self.designs[self.design_of_env[env_id]]
        x, y = np.empty((2, design.netlist.num_nodes))
        if not self._native.last_placement(env_id, x, y):
            raise RuntimeError(f"environment {env_id} has not placed all macros of {design.name!r} in any episode yet")
        initial = design.initial
        return Placement(x=x, y=y, orientation=initial.orientation, placed=np.ones(len(x), bool), fixed=initial.fixed)

    def cells(self, env_id: int) -> np.ndarray:
        """int32 [placed]: the gcells, row · columns + column over the design's own grid, in placing order."""
        if not 0 <= env_id < self.num_envs:
            raise IndexError(f"environment {env_id} is not in [0, {self.num_envs})")
        return np.array(self._native.cells(env_id), np.int32)

    def render_episodes(
        self, design_index: np.ndarray, actions: np.ndarray, lengths: np.ndarray, *, out: Observation | None = None
    ) -> Observation:
        """Plays episodes again and returns what was seen before each action: axes [B, T] before those of a step.

        B is any number of episodes here and T the length of the `actions` axis; past an episode's length everything is
        zero. No soft macro is placed and no cost computed. Environments are left alone; several threads may call this
        at once if each gives its own `out`.

        Args:
            design_index: int32 [B].
            actions: int32 [B, T].
            lengths: int32 [B], actions taken, at most T.
            out: arrays to write to, from `rendered_arrays(B, T)`. When None the pool's own are used, and overwritten by
                the next such call.

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
        if out is None:
            if self._rendered is None or self._rendered.step.shape != actions.shape:
                self._rendered = self.rendered_arrays(episodes, steps)
            out = self._rendered
        refusal = self._native.render(design_index, actions, lengths, **out._asdict())
        if refusal is not None:
            episode, step, design = refusal[:3]
            reason = explain(self.designs[design], step, int(actions[episode, step]), self.columns, refusal)
            raise IllegalAction(f"episode {episode}: {reason}")
        return out

    def rendered_arrays(self, episodes: int, steps: int) -> Observation:
        """Arrays for `render_episodes`: an observation's with leading axes [episodes, steps]."""
        lead, grid = (episodes, steps), (self.rows, self.columns)
        return Observation(
            design=np.zeros(lead, np.int32),
            step=np.zeros(lead, np.int32),
            mask=np.zeros((*lead, *grid), np.uint8),
            maps=np.zeros((*lead, len(MAPS), *grid), np.float32),
            x=np.zeros((*lead, self.steps), np.float32),
            y=np.zeros((*lead, self.steps), np.float32),
        )


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
