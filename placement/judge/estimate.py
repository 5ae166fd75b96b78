"""What a trained judge expects of placements of one design, for those who choose among them before any check."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from placement.annealing.settle import settle_for_check
from placement.config import ConfigError
from placement.judge.ensemble import Ensemble, read
from placement.judge.geometry import Viewer
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.load import data_folder
from placement.utils.compilation import keep_compilations

SHIPPED = "base"
"""The name of the judge that comes with the project, `judges/base.npz`."""


class Estimator:
    """Estimates the routed wirelength of a design's placements; threads take turns with the networks.

    Args:
        design: whose.
        ensemble: the judge.

    Attributes:
        digest: tells the judge from others, whatever its file is called.
    """

    def __init__(self, design: Design, ensemble: Ensemble) -> None:
        keep_compilations()
        self._viewer, self._ensemble, self._lock = Viewer(design), ensemble, threading.Lock()
        self.digest = ensemble.digest
        self._unit = self._viewer.scale * float(design.netlist.net_weight.sum())

    def routed_wirelength(self, placement: Placement) -> float:
        """µm; hard macros are read only: soft macros are annealed around them, as in what the judge learned from.

        Raises:
            DesignError: the placement is of another number of nodes, or lacks a macro; or macros overlap.
        """
        settled = settle_for_check(self._viewer.design, placement)
        with self._lock:
            (level,) = self._ensemble.levels(self._viewer, [settled])
        return self._unit * float(np.exp(level))


def read_judge(judge: str, *, optional: bool = False) -> Ensemble:
    """A judge by its file, or the one that comes with the project by its name.

    Args:
        judge: a path, or `SHIPPED`; what is there under that path comes first.
        optional: whether whoever names it may do without one.

    Raises:
        ConfigError: there is none, or the file is no judge.
    """
    path = Path(judge)
    if not path.is_file():
        if judge != SHIPPED:
            none = ", or none" if optional else ""
            raise ConfigError(
                f"judge={judge!r}: must be a file of `judge train`, or {SHIPPED}{none}: there is no such file"
            )
        path = data_folder("judges") / f"{SHIPPED}.npz"
    try:
        return read(path)
    except DesignError as error:
        raise ConfigError(f"judge={judge!r}: {error}") from None
