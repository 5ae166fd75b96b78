"""The flat check of each placement of a comparison: done once, and kept on disk with what its picture shows.

Axis legend: M standard cells, X gcells across, Y gcells up. Lengths in µm.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placement.evaluation.flat_evaluation import SETTINGS, FlatFound, FlatJudge
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.flat_design import FLAT_NAME
from placement.netlist.load import find
from placement.netlist.pdn_channel import DENSITY, PDN_CHANNEL
from placement.report.metrics import FlatMetrics

METRICS_NAME, DRAWN_NAME = "flat.json", "cells.npz"
_UNUSABLE = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)
"""What reading them raises where they are not there, or damaged."""


class Drawn(NamedTuple):
    """What a picture of a flat check shows.

    Attributes:
        x, y: float32 [M], the cells' centres from the canvas's lower left corner.
        cluster: int32 [M], -1: none.
        horizontal, vertical: float32 [X, Y], routing demand over capacity.
    """

    x: np.ndarray
    y: np.ndarray
    cluster: np.ndarray
    horizontal: np.ndarray
    vertical: np.ndarray

    @classmethod
    def of(cls, found: FlatFound) -> Drawn:
        """That of a check."""
        x, y, cluster = found.placed.drawn_cells
        maps = found.route.horizontal.astype(np.float32), found.route.vertical.astype(np.float32)
        return cls(x.astype(np.float32), y.astype(np.float32), cluster.astype(np.int32), *maps)


class FlatChecks:
    """Checks placements of a design, or reads what an earlier check of the same placement has left.

    Args:
        name: of the design, as `load` takes it.
        design: the same, loaded.

    Raises:
        DesignError: as `FlatJudge`.
    """

    def __init__(self, name: str, design: Design) -> None:
        self._judge = FlatJudge(name, design)
        self._design = design
        rules = design.constraints
        parts = (
            repr((design.canvas, SETTINGS, DENSITY, PDN_CHANNEL)).encode(),
            rules.halo.tobytes(),
            rules.blockages.tobytes(),
        )
        self._about = hashlib.sha256(b"".join([(find(name).parent / FLAT_NAME).read_bytes(), *parts]))

    def check(
        self,
        placement: Placement,
        folder: Path,
        *,
        whose: str,
        report: Callable[[float, float], None],
        stopped: Callable[[], bool],
    ) -> FlatMetrics | None:
        """What a placement is worth; None where it was stopped before.

        Args:
            placement: its hard macros are read.
            folder: where the check is kept.
            whose: the placement's name, for messages.
            report: is called with the density overflow, and how much of the check is done, in [0, 1].
            stopped: is asked as often.

        Raises:
            DesignError: the cells cannot be placed around the macros.
            OSError: a file cannot be written.
        """
        about = self._identity(placement)
        known = _read(folder, about)
        if known is not None:
            return known
        if stopped():
            return None
        try:
            found = self._judge.check(placement, report=report, stopped=stopped)
        except DesignError as error:
            raise DesignError(f"{whose}: {error}") from None
        if stopped() and not found.metrics.flat_converged:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **Drawn.of(found)._asdict())
        write_whole(folder / DRAWN_NAME, buffer.getvalue())
        described = {"about": about, "flat": found.metrics._asdict()}
        write_whole(folder / METRICS_NAME, json.dumps(described, indent=1) + "\n")
        return found.metrics

    def _identity(self, placement: Placement) -> str:
        """What tells this check from others, as a hash."""
        hard = self._design.netlist.hard
        text = self._about.copy()
        for part in (placement.x, placement.y, placement.orientation):
            text.update(part[hard].tobytes())
        return text.hexdigest()[:16]


def _read(folder: Path, about: str) -> FlatMetrics | None:
    """The check that was kept; None where there is none of this placement, or it is damaged."""
    try:
        kept = json.loads((folder / METRICS_NAME).read_text(encoding="utf-8"))
        if kept["about"] != about:
            return None
        read_drawn(folder)
        return FlatMetrics(**kept["flat"])
    except _UNUSABLE:  # check anew
        return None


def read_drawn(folder: Path) -> Drawn:
    """What the check in a folder shows.

    Raises:
        OSError: the file cannot be read.
        ValueError, KeyError, EOFError, BadZipFile: it is damaged.
    """
    with io.BytesIO((folder / DRAWN_NAME).read_bytes()) as file, np.load(file, allow_pickle=False) as arrays:
        return Drawn(**{name: arrays[name] for name in Drawn._fields})
