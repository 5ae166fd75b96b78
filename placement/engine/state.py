"""Partial placements: macros placed one by one, episodes replayed from their actions, and explanations of illegal
actions.

An action is row · columns + column over the grid of the observation (the largest of the designs in a pool). Axis
legend: B episodes, R grid rows, C grid columns, T macros to place. Lengths are in µm.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

import numpy as np

from placement.engine import _native
from placement.engine.native_design import native_design
from placement.engine.observation import Integers, Observation, int32_array, pool_spec
from placement.netlist.design import Design
from placement.netlist.errors import DesignError

Rejection = tuple[int, int, int, "_native.Verdict", int]
"""Index of the environment or episode, macros placed, index of the design, the verdict, and the obstructing node."""


class IllegalAction(ValueError):
    """An illegal action; the message names the environment or episode, the macro, the gcell and the reason."""


def explain(design: Design, step: int, action: int, columns: int, rejection: Rejection) -> str:
    """Explains in one sentence why `action`, row · columns + column, is illegal in `design` after `step` macros."""
    verdict, obstacle = rejection[3], rejection[4]
    canvas, names, order = design.action_canvas, design.netlist.names, design.placing_order
    if verdict == _native.Verdict.all_placed:
        return f"action {action}: all {len(order)} macros of {design.name!r} are placed"
    macro = f"macro {names[order[step]]!r} (step {step} of {design.name!r})"
    row, column = divmod(action, columns)
    at = f"action {action} (row {row}, column {column}) for {macro}"
    if verdict == _native.Verdict.out_of_range:
        at = at if action >= 0 else f"action {action} for {macro}"
        grid = f"the grid of {canvas.rows} × {canvas.columns}"
        return f"{at}: it is not a cell of {grid} (an action is row · {columns} + column)"
    if verdict == _native.Verdict.outside_canvas:
        return f"{at}: it would extend beyond the canvas of {canvas.width:g} × {canvas.height:g} µm"
    return f"{at}: {_reason(design, int(order[step]), verdict, obstacle)}"


def _reason(design: Design, macro: int, verdict: _native.Verdict, obstacle: int) -> str:
    """Explains why a macro may not be placed on a gcell inside the canvas."""
    names, constraints = design.netlist.names, design.constraints
    if verdict == _native.Verdict.off_lines:
        grid = constraints.grid_of(macro, int(design.initial.orientation[macro]))
        return f"the snapping grid of {grid.pitch_x:g} × {grid.pitch_y:g} µm has no free position there"
    if verdict == _native.Verdict.on_blockage:
        return "it would lie on a placement blockage"
    if verdict == _native.Verdict.near_port:
        return f"it would be closer to a port than the keep-out of {constraints.port_keepout:g} µm"
    if verdict == _native.Verdict.off_region:
        own = [region.name for region in constraints.regions if macro in region.nodes]
        others = [region.name for region in constraints.regions if region.is_exclusive and macro not in region.nodes]
        inside = [f"it must stay in region {name!r}" for name in own]
        outside = [f"it must stay out of the exclusive region {name!r}" for name in others]
        return " and ".join(inside + outside)
    if verdict == _native.Verdict.narrow_channel:
        beside = "the canvas's edge" if obstacle < 0 else f"macro {names[obstacle]!r}"
        widths = "{:g} µm in x, {:g} µm in y".format(*constraints.channel)
        return f"its gap to {beside} would be narrower than a channel ({widths})"
    if verdict == _native.Verdict.too_close:
        halo = constraints.turned_halo(design.initial.orientation)[[macro, obstacle]]
        if constraints.spacing and halo.max() < constraints.spacing / 2:
            return (
                f"it would be too close to macro {names[obstacle]!r}: macros keep {constraints.spacing:g} µm from each "
                "other, the design's spacing"
            )
        if not halo.any():
            return f"it would be too close to macro {names[obstacle]!r}: on the snapping grid they may overlap"
        (across, their_across), (up, their_up) = ([_sides(*one) for one in halo[:, axis::2]] for axis in range(2))
        return (
            f"it would be too close to macro {names[obstacle]!r}: their halos are {across} and {their_across} µm in x, "
            f"{up} and {their_up} µm in y"
        )
    return (
        f"it would overlap macro {names[obstacle]!r} by more than the threshold of "
        f"{design.canvas.overlap_threshold:g} µm"
    )


def _sides(low: float, high: float) -> str:
    """Formats two opposite sides of a halo, the lower one first."""
    return f"{low:g}" if low == high else f"{low:g}/{high:g}"


class PlacementState:
    """The movable hard macros of a design placed on gcell centres one by one, in `design.placing_order`.

    Every macro keeps the orientation of the design's initial placement; soft macros count as unplaced, ports, cells and
    fixed nodes as placed. Not thread-safe.
    """

    def __init__(self, design: Design) -> None:
        """Begins with no macro placed; raises ValueError if the design cannot be played."""
        self.design = design
        self._native = _native.PlacementState(native_design(design))

    @property
    def step(self) -> int:
        """Number of macros placed; the current macro is `design.placing_order[step]`."""
        return self._native.step

    @property
    def legal_cells(self) -> int:
        """Number of legal gcells for the current macro; 0 when all macros are placed."""
        return self._native.legal_cells

    def reset(self) -> None:
        self._native.reset()

    def place(self, row: int, column: int) -> None:
        """Centres the current macro on a gcell; raises IllegalAction, which names macro, gcell and reason."""
        verdict, obstacle = self._native.place(row, column)
        if verdict != _native.Verdict.legal:
            columns = self.design.action_canvas.columns
            rejection = (0, self.step, 0, verdict, obstacle)
            raise IllegalAction(explain(self.design, self.step, row * columns + column, columns, rejection))

    def undo(self) -> None:
        """Removes the last macro and restores the previous state bit for bit. Raises ValueError if none is placed."""
        self._native.undo()

    def mask(self) -> np.ndarray:
        """Returns the legal gcells of the current macro, bool [R, C]."""
        mask = np.empty((self.design.action_canvas.rows, self.design.action_canvas.columns), np.uint8)
        self._native.write_mask(mask)
        return mask.view(np.bool_)

    def wire_mask(self) -> np.ndarray:
        """Returns the weighted µm that the current macro adds on each gcell, float64 [R, C]; 0 when complete."""
        columns, rows = np.empty(self.design.action_canvas.columns), np.empty(self.design.action_canvas.rows)
        self._native.write_wire(columns, rows)
        return columns[None, :] + rows[:, None]

    def occupancy(self) -> np.ndarray:
        """Returns the fraction of each gcell under fixed and placed macros, float64 [R, C]; overlaps count twice."""
        return self._native.occupancy()

    def density(self) -> np.ndarray:
        """Returns the area of everything placed over the gcell's area, float64 [R, C]."""
        return self._native.density()

    def centres(self) -> np.ndarray:
        """Returns x and y of the placed macros in placing order, float64 [step, 2], in µm."""
        return np.array([self._native.centre(index) for index in range(self.step)]).reshape(-1, 2)


class EpisodeRenderer:
    """Replays episodes of the given designs, without environments or threads.

    `spec` has shape and dtype of each array of an observation; `spec.steps` is T.
    """

    def __init__(self, designs: Sequence[Design], shape: tuple[int, int, int] = (0, 0, 0)) -> None:
        """`shape` is R, C and T; zeros: of the largest design. Raises DesignError if a design cannot be played."""
        self.designs = tuple(designs)
        with naming_unplayable(self.designs):
            natives = [native_design(design) for design in self.designs]
            self._native = _native.EpisodeRenderer(natives, shape)
        self.spec = pool_spec(self.designs, self._native.shape)

    def render(
        self, design_index: Integers, actions: Integers, lengths: Integers, *, out: Observation | None = None
    ) -> Observation:
        """Replays episodes and returns the observations before each action; axes [B, T] precede those of a step.

        B is any number of episodes and T the length of the `actions` axis; entries past an episode's length are zero.
        No soft macro is placed and no cost is computed. Several threads may call this concurrently if each passes its
        own `out`.

        Args:
            design_index: integers [B], in [0, number of designs).
            actions: integers [B, T].
            lengths: integers [B], number of actions taken, at most T.
            out: output arrays from `arrays(B, T)`, compact or not; None: new ones.

        Raises:
            IllegalAction: an action is illegal in its episode; the message names the episode and step.
            ValueError, TypeError, IndexError: another shape or dtype, or an index or a length out of range.
        """
        actions = int32_array("actions", actions, (None, None))
        episodes, steps = actions.shape
        design_index = int32_array("design_index", design_index, (episodes,))
        lengths = int32_array("lengths", lengths, (episodes,))
        if episodes and not 0 <= lengths.min() <= lengths.max() <= steps:
            raise ValueError(f"lengths: every value must be in [0, {steps}]")
        if episodes and not 0 <= design_index.min() <= design_index.max() < len(self.designs):
            raise IndexError(f"design_index: every value must be in [0, {len(self.designs)})")
        out = self.arrays(episodes, steps) if out is None else out
        compact = out.maps.dtype.itemsize == np.dtype(np.uint16).itemsize
        into = out._replace(maps=out.maps.view(np.uint16)) if compact else out
        rejection = self._native.render(design_index, actions, lengths, **into._asdict())
        if rejection is not None:
            episode, step, design = rejection[:3]
            reason = explain(self.designs[design], step, int(actions[episode, step]), self.spec.columns, rejection)
            raise IllegalAction(f"episode {episode}: {reason}")
        return out

    def arrays(self, episodes: int, steps: int, *, compact_maps: bool = False) -> Observation:
        """Returns arrays for `render`: an observation's with leading axes [episodes, steps]; compact maps bfloat16.

        They are aligned so that JAX on a CPU uses their memory instead of copying it.
        """
        arrays = pool_spec(self.designs, self._native.shape, compact_maps=compact_maps).observation.items()
        return Observation(**{name: _aligned((episodes, steps, *spec.shape), spec.dtype) for name, spec in arrays})


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns zeros at an address divisible by 64."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + 63, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


@contextlib.contextmanager
def naming_unplayable(designs: Sequence[Design]) -> Iterator[None]:
    """Turns the engine's rejection of a design into a DesignError that names the design and the node."""
    try:
        yield
    except _native.UnplayableDesign as error:
        index, node, reason = error.args
        design = designs[index]
        where = f"node {design.netlist.names[node]!r} " if node >= 0 else ""
        raise DesignError(f"design {design.name!r} cannot be played: {where}{reason}") from None
