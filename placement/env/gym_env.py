"""Macro placement as a Gymnasium environment.

    env = PlacementEnv(placement.load("ariane133_ng45"))
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample(info["action_mask"]))

Also ``gymnasium.make("MacroPlacement-v0", design="…")`` once `placement` is imported. Axis legend: R grid rows, C grid
columns, T macros to place, N nodes.
"""

from __future__ import annotations

import copy
import operator
from typing import Any, SupportsIndex

import gymnasium
import numpy as np

from placement.config import EnvConfig
from placement.engine.costs import Costs
from placement.engine.pool import make_pool
from placement.engine.state import IllegalAction
from placement.env.observation import GridCells, observation_of, observation_space
from placement.netlist.design import Design, Placement
from placement.netlist.load import load

ENVIRONMENT_ID = "MacroPlacement-v0"
_METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}
_PIXELS = 512
LENGTH_TOLERANCE = 1e-6
"""µm; `kLengthTolerance` of the engine."""


class PlacementEnv(gymnasium.Env[dict[str, Any], np.int64]):
    """Places the movable hard macros of one design one by one, largest area first, each centred on a gcell (with
    `config.action_scale` on a cell of a finer grid).

    - **Action**: Discrete(R · C), row · C + column. Illegal ones raise; sampling `action_space` draws legal ones.
    - **Observation**: see `placement.env.observation.observation_space`.
    - **Reward**: 0 before the end; when the last macro stands, the soft macros are placed and the reward is minus the
      exact proxy cost. When the next macro has no legal gcell the episode ends with `config.dead_end_penalty`.
    - **info**: ``action_mask`` (int8 [R·C]) always; ``costs`` (the cost's parts by name) when all macros stand;
      ``reason`` (a sentence) at a dead end.

    Nothing is random: an episode is a pure function of its actions, and `seed` only seeds `np_random`.

    Example:
        >>> env = gymnasium.make("MacroPlacement-v0", design="toy6")  # or PlacementEnv("toy6")
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample(info["action_mask"]))
    """

    metadata = _METADATA

    def __init__(
        self, design: Design | str, *, config: EnvConfig | None = None, render_mode: str | None = None
    ) -> None:
        """Makes the environment.

        Args:
            design: a design, or the name or path of one.
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
        self._mask = self._batch["mask"][0].copy()  # the current one at any time, for the action space
        self._ended = False
        self._cells: list[int] = []  # the episode's actions
        self.observation_space = observation_space(self._pool)
        self.action_space = GridCells(self._mask)
        self.spec = copy.deepcopy(gymnasium.spec(ENVIRONMENT_ID))
        self.spec.kwargs = {"design": self.design, "config": config}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Begins an episode; `options` has no meaning here."""
        super().reset(seed=seed)
        self._batch, _ = self._pool.reset()
        self._ended = False
        self._cells.clear()
        return observation_of(self._batch, 0), self._info()

    def step(self, action: SupportsIndex) -> tuple[dict, float, bool, bool, dict]:
        """Centres the current macro on a gcell.

        Raises:
            IllegalAction: (a ValueError) names the macro, the gcell and why; nothing has changed.
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
        return observation_of(self._batch, 0), float(reward[0]), self._ended, False, info

    @property
    def placement(self) -> Placement:
        """The placement as it stands: what is not placed yet stands at 0 with `placed` False.

        Once all macros are placed, the soft macros are placed too.
        """
        order, initial = self.design.placing_order, self.design.initial
        placed = int(self._batch["step"][0])
        if placed == len(order):
            return self._pool.placement(0)
        unplaced = np.union1d(self.design.netlist.soft, order[placed:])
        unplaced = unplaced[~initial.fixed[unplaced]]
        x, y, standing = initial.x.copy(), initial.y.copy(), initial.placed.copy()
        canvas, grid, macros = self.design.action_canvas, self.design.constraints.grid, order[:placed]
        row, column = np.divmod(np.array(self._cells[:placed], dtype=np.int64), canvas.columns)
        width, height = (side[macros] for side in self.design.netlist.sides(initial.orientation))
        x[macros] = _snapped((column + 0.5) * canvas.cell_width, width, grid.pitch_x, grid.offset_x)
        y[macros] = _snapped((row + 0.5) * canvas.cell_height, height, grid.pitch_y, grid.offset_y)
        standing[order[:placed]] = True
        x[unplaced], y[unplaced], standing[unplaced] = 0.0, 0.0, False
        return Placement(x=x, y=y, orientation=initial.orientation, placed=standing, fixed=initial.fixed)

    def render(self) -> np.ndarray | None:
        """uint8 [height, width, 3], the longer side 512 pixels: hard macros dark, what soft macros cover light."""
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
        """Why the episode ended before there was a legal placement."""
        placed, order = int(self._batch["step"][0]), self.design.placing_order
        name = self.design.netlist.names[order[placed]]
        return f"macro {name!r} has no legal gcell left; {placed} of {len(order)} macros were placed"

    def _info(self) -> dict[str, Any]:
        self._mask[...] = self._batch["mask"][0]
        return {"action_mask": self._mask.reshape(-1).astype(np.int8)}


def _snapped(centre: np.ndarray, side: np.ndarray, pitch: float, offset: float) -> np.ndarray:
    """Centres whose macros' lower corners are on the grid, the nearest below; as the engine does it (legality.hpp)."""
    if pitch <= 0:
        return centre
    return offset + pitch * np.floor((centre - side / 2 - offset + LENGTH_TOLERANCE) / pitch) + side / 2
