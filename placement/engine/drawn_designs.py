"""Designs drawn from a distribution for a pool, made in a thread before the environments need them."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Sequence
from typing import Any, overload

from placement.config import EnvConfig
from placement.engine.native_design import native_design
from placement.engine.state import naming_unplayable
from placement.netlist.design import Design
from placement.netlist.distribution import ENDLESS, DesignDistribution
from placement.netlist.feasibility import turned_design

_LOOK_SECONDS = 0.5
_CLOSE_SECONDS = 60.0


class DrawnDesigns(Sequence[Design]):
    """The designs of a distribution by number, as environments of `env` play them; the last `kept` are in memory.

    Attributes:
        distribution: the distribution that the designs are drawn from.
        shape: rows, columns and macros of every observation.
    """

    def __init__(self, distribution: DesignDistribution, env: EnvConfig, *, kept: int) -> None:
        self.distribution, self._env = distribution, env
        bounds = distribution.bounds
        scale = env.action_scale or bounds.action_scale
        self.shape = (scale * bounds.rows, scale * bounds.columns, bounds.macros)
        self._made = functools.lru_cache(maxsize=kept)(self._make)

    def __len__(self) -> int:
        return self.distribution.count or ENDLESS

    @overload
    def __getitem__(self, number: int) -> Design: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Design]: ...

    def __getitem__(self, number: int | slice) -> Design | Sequence[Design]:
        if isinstance(number, slice):
            return [self[index] for index in range(*number.indices(len(self)))]
        return self._made(int(number))

    def _make(self, number: int) -> Design:
        design = turned_design(self.distribution[number])
        return design.with_actions(self._env.action_scale, off_grid=self._env.off_grid)


class DesignMaker:
    """Thread that supplies a pool's environments with their next designs until `close`.

    Environment i of B plays the designs i, i + B, i + 2·B … modulo their number, in any interleaving of the
    environments. The next step that needs a design raises the thread's failure.
    """

    def __init__(self, native: Any, designs: DrawnDesigns, num_envs: int) -> None:
        """Starts the thread for `native`, the engine's pool; each environment already has its first design."""
        self._thread = threading.Thread(target=_bring, args=(native, designs, num_envs), name="designs", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Waits for the thread to end, after the engine's pool is closed."""
        self._thread.join(_CLOSE_SECONDS)


def _bring(native: Any, designs: DrawnDesigns, num_envs: int) -> None:
    """Body of the thread; holds no reference to the Python pool, so that the pool can be collected and closed."""
    numbers = [itertools.count(env + num_envs, num_envs) for env in range(num_envs)]
    try:
        while not native.closed:
            env = native.wanted_design(_LOOK_SECONDS)
            if env >= 0:
                number = next(numbers[env]) % len(designs)
                design = designs[number]
                with naming_unplayable([design]):
                    native.bring_design(env, number, native_design(design))
    except Exception as error:  # noqa: BLE001  raised where the design is needed
        native.fail_designs(f"its next design cannot be generated: {error}")
