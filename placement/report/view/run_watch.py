"""A run folder, or a search's, as it grows: its curve, and the best placements that it came to.

A search keeps only its newest best placement, so a window knows those of the time that it was open.
"""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from placement.engine.costs import DEFAULT_WEIGHTS
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import read_text
from placement.netlist.formats.plc import read_placement
from placement.report import best_history

METRICS_NAME, HISTORY_NAME, BEST_NAME, INDEX_NAME = "metrics.csv", "search.csv", "best.plc", "best.json"
SETTINGS_NAME = "config.yaml"
MOST_POINTS = 1000
"""Of a curve that are shown."""
# File → its column of the abscissa with a title, and the columns that are drawn with theirs.
_CURVES = {
    METRICS_NAME: ("iteration", "iteration", {"cost_mean": "mean", "cost_best": "best"}),
    HISTORY_NAME: ("seconds", "CPU time (s)", {"cost": "best"}),
}


class Curve(NamedTuple):
    """Costs over the course of a run.

    Attributes:
        title: of the abscissa, with its unit.
        x: of each point.
        series: costs of each point by what they are of; None where there is none.
    """

    title: str
    x: list[float]
    series: dict[str, list[float | None]]


class News(NamedTuple):
    """What is new in a folder.

    Attributes:
        curve: None where it has not changed.
        best: placements with their names, the oldest first.
    """

    curve: Curve | None
    best: list[tuple[str, Placement]]


def is_run(path: str | Path) -> bool:
    """Whether a path is a folder of a run or a search."""
    return Path(path).is_dir() and any((Path(path) / name).exists() for name in (*_CURVES, BEST_NAME, INDEX_NAME))


def searched_cost(folder: Path) -> str:
    """Name of the cost that a search's folder went by; the proxy cost where it does not say."""
    path = folder / HISTORY_NAME
    rows = csv.DictReader(read_text(path).splitlines()) if path.is_file() else ()
    return next((row["cost_name"] for row in rows if row.get("cost_name")), DEFAULT_WEIGHTS.name)


class RunWatch:
    """One folder, looked at again and again."""

    def __init__(self, folder: str | Path, design: Design) -> None:
        self.folder, self.design = Path(folder), design
        self._times: dict[Path, tuple[int, int]] = {}
        self._last = ""

    def poll(self) -> News:
        """What is new since the last call; raises DesignError for a file that cannot be read."""
        curve = None
        for name, columns in _CURVES.items():
            if self._is_new(self.folder / name):
                curve = _read_curve(self.folder / name, *columns)
                if curve.x:
                    self._last = f"{columns[0]} {curve.x[-1]:g}"
        name = self._best_name()
        kept = best_history.entries(self.folder, name)
        if kept:
            files = [(f"{name}, iteration {iteration}", file) for iteration, file in kept]
        else:
            files = [(f"{name}{', ' if self._last else ''}{self._last}", self.folder / name)]
        best = [(title, self._read(file)) for title, file in files if self._is_new(file)]
        return News(curve, best)

    def _read(self, file: Path) -> Placement:
        return read_placement(file, self.design.netlist, located=self.design.initial)[1]

    def _best_name(self) -> str:
        """The file of the best placement: a run of several designs has one for each."""
        index = self.folder / INDEX_NAME
        try:
            entry = json.loads(index.read_text(encoding="utf-8")).get(self.design.name, {}) if index.exists() else {}
        except (OSError, ValueError) as error:
            raise DesignError(f"{index}: cannot be read: {error}") from None
        return str(entry.get("file", BEST_NAME))

    def _is_new(self, file: Path) -> bool:
        try:
            status = file.stat()
        except FileNotFoundError:
            return False
        now = (status.st_mtime_ns, status.st_size)
        if self._times.get(file) == now:
            return False
        self._times[file] = now
        return True


def _read_curve(path: Path, column: str, title: str, names: dict[str, str]) -> Curve:
    rows = list(csv.DictReader(read_text(path).splitlines()))
    if rows and not {column, *names} <= rows[0].keys():
        raise DesignError(f"{path}:1: the columns {column}, {', '.join(names)} are missing")
    rows = rows[:: max(1, math.ceil(len(rows) / MOST_POINTS))]
    try:
        series = {shown: [_number(row[name]) for row in rows] for name, shown in names.items()}
        return Curve(title, [float(row[column]) for row in rows], series)
    except (TypeError, ValueError) as error:
        raise DesignError(f"{path}: a field is no number: {error}") from None


def _number(text: str | None) -> float | None:
    value = float(text) if text else math.nan
    return value if math.isfinite(value) else None


def curve_values(curve: Curve | None) -> dict[str, Any] | None:
    """A curve as the page takes it."""
    return None if curve is None else curve._asdict()
