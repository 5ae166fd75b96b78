"""Macro placement as a Gymnasium environment.

    env = PlacementEnv(placement.load("ariane133_ng45"))
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample(info["action_mask"]))

Also ``gymnasium.make("MacroPlacement-v0", design="…")`` once `placement` is imported. Axis legend: K maps, R
grid rows, C grid columns, T macros to place.
"""

from __future__ import annotations

import copy
import operator
from typing import Any, SupportsIndex

import gymnasium
import numpy as np
from gymnasium import spaces

from placement.config import EnvConfig
from placement.engine.costs import Costs
from placement.engine.pool import EnvironmentPool, make_pool
from placement.engine.state import IllegalAction, PlacementState
from placement.netlist.design import Design, Placement
from placement.netlist.distribution import DesignDistribution
from placement.netlist.load import load

ENVIRONMENT_ID = "MacroPlacement-v0"
_METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}
_PIXELS = 512


class PlacementEnv(gymnasium.Env[dict[str, Any], np.int64]):
    """Places the movable hard macros of one design one by one, largest area first, each centred on a gcell.

    - **Action**: Discrete(R · C), row · C + column; with `config.action_scale`, on a finer grid. Illegal actions raise;
      sampling `action_space` draws legal ones.
    - **Observation**: see `observation_space`.
    - **Reward**: 0 before the end; after the last macro the soft macros are placed and the reward is minus the exact
      cost, or what the function `config.reward` pays. When the next macro has no legal gcell the episode ends with
      `config.dead_end_penalty`.
    - **info**: ``action_mask`` (int8 [R·C]) always; ``costs`` (the cost's terms by name) when all macros are placed;
      ``reason`` (a sentence) at a dead end.

    Episodes are deterministic functions of their actions; `seed` only seeds `np_random`.

    Example:
        >>> env = gymnasium.make("MacroPlacement-v0", design="toy6")  # or PlacementEnv("toy6")
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample(info["action_mask"]))
    """

    metadata = _METADATA

    def __init__(
        self,
        design: Design | str | DesignDistribution,
        *,
        config: EnvConfig | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Creates the environment.

        Args:
            design: a design, or the name or path of one; or a distribution, from which each episode plays the next
                design.
            config: reward weights, dead-end penalty, soft placer.
            render_mode: None or `rgb_array`.

        Raises:
            DesignError: the design cannot be read or played.
            ValueError: an unknown soft placer or render mode.
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode={render_mode!r}: must be None or rgb_array")
        self.render_mode = render_mode
        self._pool = make_pool(load(design) if isinstance(design, str) else design, 1, config=config)
        self.design = self._pool.designs[0]
        self._batch, _ = self._pool.reset()
        self._mask = self._batch["mask"][0].copy()  # the current mask, for the action space
        self._ended = False
        self._cells: list[int] = []  # actions of the episode
        self.observation_space = observation_space(self._pool)
        self.action_space = GridCells(self._mask)
        self.spec = copy.deepcopy(gymnasium.spec(ENVIRONMENT_ID))
        self.spec.kwargs = {"design": design if self._pool.draws_designs else self.design, "config": config}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Begins an episode; `options` is ignored."""
        super().reset(seed=seed)
        self._batch, _ = self._pool.reset()
        self.design = self._pool.designs[int(self._batch["design"][0])]
        self._ended = False
        self._cells.clear()
        return _observation_of(self._batch, 0), self._info()

    def step(self, action: SupportsIndex) -> tuple[dict, float, bool, bool, dict]:
        """Centres the current macro on a gcell.

        Raises:
            IllegalAction: (a ValueError) the message names the macro, the gcell and the reason; nothing has changed.
            RuntimeError: the episode has ended.
        """
        if self._ended:
            raise RuntimeError("step: the episode has ended; call reset() first")
        index = operator.index(action)
        if not 0 <= index < self._pool.spec.num_actions:
            raise IllegalAction(
                f"action {index}: must be in [0, {self._pool.spec.num_actions}), row · columns + column"
            )
        self._batch, reward, terminated, _, brought = self._pool.step(np.array([index], np.int32))
        self._cells.append(index)
        self._ended = bool(terminated[0])
        info = self._info()
        if brought["dead_end"][0]:
            info["reason"] = self._dead_end()
        elif self._ended:
            info["costs"] = dict(zip(Costs._fields, brought["costs"][0].tolist(), strict=True))
        return _observation_of(self._batch, 0), float(reward[0]), self._ended, False, info

    @property
    def placement(self) -> Placement:
        """Returns the current placement from the engine's state: unplaced nodes are at 0 with `placed` False.

        Soft macros are placed once all hard macros are.
        """
        netlist, order, initial = self.design.netlist, self.design.placing_order, self.design.initial
        if len(self._cells) == len(order):
            return self._pool.placement(0)
        state = PlacementState(self.design)
        for cell in self._cells:
            state.place(*divmod(cell, self.design.action_canvas.columns))
        x, y, placed = initial.x.copy(), initial.y.copy(), initial.placed.copy()
        macros, unplaced = order[: state.step], np.union1d(netlist.soft, order[state.step :])
        unplaced = unplaced[~initial.fixed[unplaced]]
        x[macros], y[macros] = state.centres().T
        placed[macros] = True
        x[unplaced], y[unplaced], placed[unplaced] = 0.0, 0.0, False
        return Placement(x=x, y=y, orientation=initial.orientation, placed=placed, fixed=initial.fixed)

    def render(self) -> np.ndarray | None:
        """Returns uint8 [height, width, 3], longer side 512 pixels: hard macros dark, area under soft macros light."""
        if self.render_mode is None:
            return None
        canvas, netlist, placement = self.design.canvas, self.design.netlist, self.placement
        scale = _PIXELS / max(canvas.width, canvas.height)
        image = np.full((round(canvas.height * scale), round(canvas.width * scale), 3), 255, np.uint8)
        for nodes, colour in ((netlist.soft, (205, 222, 240)), (netlist.hard, (63, 98, 140))):
            width, height = (side[nodes] for side in netlist.sides(placement.orientation))
            x, y = placement.x[nodes], placement.y[nodes]
            edges = np.stack([x - width / 2, x + width / 2, y - height / 2, y + height / 2], axis=1) * scale
            edges = np.maximum(np.rint(edges), 0).astype(int)[placement.placed[nodes]]
            for left, right, bottom, top in edges:
                image[bottom:top, left:right] = 255
                image[bottom : max(top - 1, bottom + 1), left : max(right - 1, left + 1)] = colour
        return image[::-1].copy()

    def _dead_end(self) -> str:
        """Explains why the episode ended before all macros were placed."""
        placed, order = int(self._batch["step"][0]), self.design.placing_order
        name = self.design.netlist.names[order[placed]]
        return f"macro {name!r} has no legal gcell left; {placed} of {len(order)} macros were placed"

    def _info(self) -> dict[str, Any]:
        self._mask[...] = self._batch["mask"][0]
        return {"action_mask": self._mask.reshape(-1).astype(np.int8)}


def observation_space(pool: EnvironmentPool) -> spaces.Dict:
    """Observation space of `PlacementEnv` for the single design of its pool.

    - ``step``: Discrete(T + 1), macros placed so far; the current macro is ``design.placing_order[step]``.
    - ``mask``: uint8 [R, C], 1 where the current macro may be centred; all 0 when the episode has ended.
    - ``maps``: float32 [K, R, C], see `placement.engine.observation.MAPS`: occupancy in [0, 1], density from 0 to the
      number of nodes, wire mask in [0, 1].
    - ``x``, ``y``: float32 [T] in [0, 1], centres of the macros in placing order in fractions of the canvas; 0 while
      unplaced.
    """
    shown = {name: pool.observation_space[name] for name in ("mask", "maps", "x", "y")}
    return spaces.Dict({"step": spaces.Discrete(pool.spec.steps + 1), **shown})


def _observation_of(observation: dict[str, np.ndarray], index: int) -> dict[str, Any]:
    """Returns a copy of one environment's slice of a batch, as an element of `observation_space`."""
    shown = {name: observation[name][index].copy() for name in ("mask", "maps", "x", "y")}
    return {"step": np.int64(observation["step"][index]), **shown}


class GridCells(spaces.Discrete):
    """The gcells as actions, row · C + column. Sampling without an explicit mask draws a legal gcell.

    The sample right after `seed` can be an episode's first action: callers that seed, sample, reset and then step, as
    Gymnasium's checker does, take a legal action.
    """

    def __init__(self, mask: np.ndarray) -> None:
        """Takes the initial legal mask of an episode, uint8 [R, C]; the array is read again at every sample."""
        self._legal = mask
        self._legal_first = mask.copy()
        self._seeded = False
        super().__init__(int(mask.size))

    def seed(self, seed: int | None = None) -> Any:
        """Seeds the sampling."""
        self._seeded = True
        return super().seed(seed)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Samples an action that `mask` (int8 [R·C]) or `probability` allows, by default a legal one."""
        seeded, self._seeded = self._seeded, False
        if mask is not None or probability is not None:
            return super().sample(mask=mask, probability=probability)
        choices = [self._legal & self._legal_first, self._legal_first] if seeded else [self._legal]
        legal = next((choice for choice in choices if choice.any()), self._legal_first)
        return super().sample(mask=legal.reshape(-1).astype(np.int8))
