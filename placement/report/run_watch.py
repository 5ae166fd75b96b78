"""Reads the metrics and the best placements in the folder of a training run or a search while it grows.

A run keeps its best placements in `best_history/`, one file per iteration that improved on the one before, thinned to a
few dozen. A search keeps only its newest, so a watcher knows only those found while it watched.

Axis legend: I iterations (rows of `metrics.csv`).
"""

import csv
import json
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from placement.engine.costs import DEFAULT_WEIGHTS
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import read_text
from placement.netlist.formats.plc import read_placement

METRICS_NAME, SEARCH_NAME, BEST_NAME, INDEX_NAME = "metrics.csv", "search.csv", "best.plc", "best.json"
HISTORY_FOLDER, SETTINGS_NAME = "best_history", "config.yaml"
MOST_KEPT = 32
"""Maximum number of placements of a design in the history; beyond it, every second one but the ends is deleted."""
MOST_POINTS = 1000  # maximum number of points of a curve
# File → its column of the abscissa, the title of that axis, and the plotted columns with their titles.
_CURVES = {
    METRICS_NAME: ("iteration", "iteration", {"cost_mean": "mean", "cost_best": "best"}),
    SEARCH_NAME: ("seconds", "CPU time (s)", {"cost": "best"}),
}

Columns = dict[str, np.ndarray]
Curve = dict[str, Any]
"""Costs over the course of a run: `title` of the abscissa with its unit, `x`, and `series`: costs (or None) by name."""


def read_metrics(path: str | os.PathLike[str]) -> Columns:
    """The columns of a `metrics.csv`, each float64 [I]; empty fields are NaN.

    Raises DesignError if the file is missing or has no rows, a column is missing, or a field is not a number.
    """
    columns = _read_columns(path, ("iteration", "episodes", "cost_mean", "cost_best"))
    if not len(columns["episodes"]):
        raise DesignError(f"{path}: contains no iteration yet")
    return columns


def best_so_far(columns: Columns) -> np.ndarray:
    """The lowest cost up to each iteration, float64 [I]; NaN before the first."""
    return np.fmin.accumulate(columns["cost_best"])


def _read_columns(path: str | os.PathLike[str], required: Sequence[str], *, others: bool = True) -> Columns:
    """The columns of a CSV file as float64, empty fields as NaN; without `others`, only the `required` ones."""
    reader = csv.DictReader(read_text(path).splitlines())
    missing = [name for name in required if name not in (reader.fieldnames or ())]
    if missing:
        raise DesignError(f"{path}:1: the columns {', '.join(missing)} are missing")
    names = list(reader.fieldnames or ()) if others else required
    rows = [[_number(row[name], path, reader.line_num, name) for name in names] for row in reader]
    return dict(zip(names, np.array(rows, dtype=np.float64).reshape(-1, len(names)).T, strict=True))


def _number(text: str | None, path: object, line: int, name: str) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise DesignError.at(path, line, f"{name} is {text!r}; must be a number") from None


def best_placements(folder: Path, name: str) -> list[tuple[int, Path]]:
    """The iterations and files in the history of the best placement's file `name`, in order; empty for a search."""
    history, stem = folder / HISTORY_FOLDER, Path(name).stem
    if not history.is_dir():
        return []
    found = [(re.fullmatch(rf"{re.escape(stem)}-(\d+)\.plc", path.name), path) for path in history.iterdir()]
    return sorted((int(match[1]), path) for match, path in found if match is not None)


def next_best_path(folder: Path, name: str, iteration: int) -> Path:
    """Returns the path for the best placement of an iteration; makes the folder and thins its files; raises OSError."""
    history = folder / HISTORY_FOLDER
    history.mkdir(exist_ok=True)
    path = history / f"{Path(name).stem}-{iteration:06}.plc"
    known = [file for _, file in best_placements(folder, name) if file != path]
    if len(known) >= MOST_KEPT:
        for file in known[1::2]:
            file.unlink(missing_ok=True)
    return path


def is_run(path: str | Path) -> bool:
    """Whether a path is the folder of a run or a search."""
    return Path(path).is_dir() and any((Path(path) / name).exists() for name in (*_CURVES, BEST_NAME, INDEX_NAME))


def searched_cost(folder: Path) -> str:
    """The name of the cost in a search's folder; the default cost's if the folder names none."""
    path = folder / SEARCH_NAME
    rows = csv.DictReader(read_text(path).splitlines()) if path.is_file() else ()
    return next((row["cost_name"] for row in rows if row.get("cost_name")), DEFAULT_WEIGHTS.name)


class RunWatch:
    """Finds news in the folder of a run or a search."""

    def __init__(self, folder: str | Path, design: Design) -> None:
        self.folder, self.design = Path(folder), design
        self._seen: dict[Path, tuple[int, int]] = {}
        self._last = ""

    def poll(self) -> tuple[Curve | None, list[tuple[str, Placement]]]:
        """Returns the news since the last call: the curve, if it has changed, and named placements, oldest first."""
        curve = None
        for file, (column, title, names) in _CURVES.items():
            if self._is_new(self.folder / file):
                curve = _read_curve(self.folder / file, column, title, names)
                if curve["x"]:
                    self._last = f", {column} {curve['x'][-1]:g}"
        name = self._best_name()
        kept = [(f"{name}, iteration {iteration}", file) for iteration, file in best_placements(self.folder, name)]
        files = kept or [(f"{name}{self._last}", self.folder / name)]
        netlist, initial = self.design.netlist, self.design.initial
        new = [(title, file) for title, file in files if self._is_new(file)]
        return curve, [(title, read_placement(file, netlist, located=initial)[1]) for title, file in new]

    def _best_name(self) -> str:
        """The file of the best placement; a run of several designs has one for each."""
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
        known, self._seen[file] = self._seen.get(file), now
        return known != now and status.st_size > 0


def _read_curve(path: Path, column: str, title: str, names: dict[str, str]) -> Curve:
    columns = _read_columns(path, (column, *names), others=False)
    step = max(1, math.ceil(len(columns[column]) / MOST_POINTS))
    shown = {
        name: [value if math.isfinite(value) else None for value in values[::step].tolist()]
        for name, values in columns.items()
    }
    return {"title": title, "x": shown[column], "series": {label: shown[name] for name, label in names.items()}}
