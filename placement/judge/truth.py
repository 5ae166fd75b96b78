"""What the flat check says of a placement: what a judge is to learn.

Axis legend: X gcells across, Y gcells up, of the routing estimate. Lengths in µm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placement.flat.full_evaluation import FullEvaluator
from placement.netlist.design import Design, Placement
from placement.netlist.flat_file import FLAT_NAME, read_flat
from placement.netlist.importing import clusters_or_none
from placement.search.settle import settle_for_check
from placement.training.compilation import keep_compilations


class Truth(NamedTuple):
    """What became of a placement once all its cells were placed.

    Attributes:
        flat_wirelength: half perimeters of all nets, cells as near to each other as they may be.
        spread_wirelength: the same, cells spread as a flow leaves them.
        routed_wirelength: the routing estimate of the spread cells, detours included.
        overflow: share of the demand above capacity.
        horizontal_overflow, vertical_overflow: of each direction.
        converged: 1 where the cells spread as they should in both placements, else 0.
        seconds: of the processor.
        horizontal, vertical: float32 [X, Y], demand over capacity.
    """

    flat_wirelength: float
    spread_wirelength: float
    routed_wirelength: float
    overflow: float
    horizontal_overflow: float
    vertical_overflow: float
    converged: float
    seconds: float
    horizontal: np.ndarray
    vertical: np.ndarray


class FlatTruth:
    """Checks placements of one design, as `evaluate flat=true` does; packed cells begin from the clusters only.

    Args:
        folder: of the imported or generated design.
        design: what was loaded from it.

    Raises:
        DesignError: the folder has no flat netlist, or it cannot be read.
    """

    def __init__(self, folder: Path, design: Design) -> None:
        keep_compilations()
        flat = read_flat(folder / FLAT_NAME)
        self._checker = FullEvaluator(flat, clusters_or_none(folder, flat), design, anneal=settle_for_check)

    def check(self, placement: Placement, *, stopped: Callable[[], bool] | None = None) -> tuple[Truth, Placement]:
        """What a placement is worth, and the placement with its soft macros annealed as the check begins its cells.

        Args:
            placement: of the clustered design; its hard macros are read.
            stopped: is asked meanwhile; once it says True, the result is what was reached, and to be thrown away.

        Returns:
            Soft macros are as `placement` has them where nothing could anneal them (macros that overlap).

        Raises:
            DesignError: the cells do not fit around the macros, or flew apart.
        """
        begun = time.process_time()
        found = self._checker.evaluate(placement, middle=False, stopped=stopped)
        dense, spread, route = found.dense, found.spread, found.route
        truth = Truth(
            flat_wirelength=dense.wirelength,
            spread_wirelength=spread.wirelength,
            routed_wirelength=route.routed_wirelength,
            overflow=route.overflow,
            horizontal_overflow=route.horizontal_overflow,
            vertical_overflow=route.vertical_overflow,
            converged=float(dense.converged and spread.converged),
            seconds=time.process_time() - begun,
            horizontal=route.horizontal.astype(np.float32),
            vertical=route.vertical.astype(np.float32),
        )
        return truth, placement if found.annealed is None else found.annealed
