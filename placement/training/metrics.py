"""A run's metrics: one row per iteration in `metrics.csv` and in TensorBoard's event files.

A run that is resumed at iteration k forgets rows past k, and goes on.
"""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary

from placement.engine.costs import Costs
from placement.episode import Episode
from placement.netlist.files import csv_text, write_whole

FILE_NAME = "metrics.csv"
TENSORBOARD_FOLDER = "tensorboard"

Row = Mapping[str, float]


def episode_metrics(episodes: Sequence[Episode], *, version: int) -> dict[str, float]:
    """What an iteration's episodes say: costs (of those that placed everything), dead ends, length, staleness.

    Where there are several designs, `design<number>_cost_mean` tells them apart, numbered as in the settings.

    Args:
        episodes: that the iteration learned from; at least one.
        version: of the parameters that it began with.
    """
    costs = np.array([episode.costs for episode in episodes if not episode.dead_end])
    row: dict[str, float] = {"reward_mean": float(np.mean([episode.reward for episode in episodes]))}
    for position, field in enumerate(Costs._fields):
        name = "cost" if field == "total" else field
        values = costs[:, position] if len(costs) else np.array([math.nan])
        row[f"{name}_mean"], row[f"{name}_std"] = float(values.mean()), float(values.std())
        row[f"{name}_best"] = float(values.min())
    designs = np.array([int(episode.design) for episode in episodes])
    for which in np.unique(designs) if designs.any() else ():
        mine = [one.costs[4] for one in episodes if one.design == which and not one.dead_end]
        row[f"design{which}_cost_mean"] = float(np.mean(mine)) if mine else math.nan
    staleness = version - np.array([episode.version for episode in episodes])
    row["dead_ends"] = float(sum(bool(episode.dead_end) for episode in episodes))
    row["staleness_mean"], row["staleness_max"] = float(staleness.mean()), float(staleness.max())
    return row


class MetricsWriter:
    """Writes rows to the files of a run folder; use it in a `with` statement.

    Args:
        folder: the run folder.
        iteration: iterations already done; rows past it are dropped.

    Attributes:
        path: of `metrics.csv`.
    """

    def __init__(self, folder: str | Path, *, iteration: int = 0) -> None:
        self.path = Path(folder) / FILE_NAME
        self._columns, rows = read_rows(self.path)
        kept = [row for row in rows if int(float(row["iteration"])) <= iteration]
        if self._columns:
            self._rewrite(kept)
        (Path(folder) / TENSORBOARD_FOLDER).mkdir(exist_ok=True)
        # Not tensorboardX's `SummaryWriter`: its thread dies of a full disk, and every later call waits for it forever.
        # Its files are read in the order of their names, which must not hang on the clocks of the machines in turn.
        name = f"events_{iteration:09d}"
        self._events = EventsWriter(str(Path(folder) / TENSORBOARD_FOLDER / name), f".{iteration}")
        self._add_event(iteration + 1, session_log=SessionLog(status=SessionLog.START))  # drops what lies past it

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, row: Row) -> None:
        """Adds a row; it must have the key `iteration`. New keys become new columns; NaN is an empty field."""
        new = [name for name in row if name not in self._columns]
        if new:
            _, rows = read_rows(self.path)
            self._columns += new
            self._rewrite(rows)
        with self.path.open("a", encoding="utf-8", newline="") as stream:
            stream.write(csv_text([[_text(row.get(name, math.nan)) for name in self._columns]]))
        finite = {name: value for name, value in row.items() if math.isfinite(value)}
        values = [Summary.Value(tag=name, simple_value=value) for name, value in finite.items()]
        self._add_event(int(row["iteration"]), summary=Summary(value=values))

    def close(self) -> None:
        """Closes TensorBoard's file."""
        self._events.close()

    def _add_event(self, step: int, **what: Any) -> None:
        self._events.write_event(Event(wall_time=time.time(), step=step, **what))
        self._events.flush()

    def _rewrite(self, rows: Sequence[Mapping[str, str]]) -> None:
        kept = [[row.get(name, "") for name in self._columns] for row in rows]
        write_whole(self.path, csv_text([self._columns, *kept]))


def read_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Columns and whole rows of a metrics file; a last line cut off by a power failure is dropped."""
    if not path.exists():
        return [], []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    reader = csv.reader(io.StringIO(whole))
    columns = next(reader, [])
    return columns, [dict(zip(columns, row, strict=True)) for row in reader if len(row) == len(columns)]


def _text(value: float) -> str:
    """A number with nine significant digits, integers without a point; NaN as an empty field."""
    if math.isnan(value):
        return ""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else f"{value:.9g}"
