"""A run's metrics: one row per iteration in `metrics.csv`, in TensorBoard's event files and on the console.

TensorBoard also receives the settings as hyperparameters, and pictures. A run that is resumed at iteration k drops rows
past k, and continues.
"""

from __future__ import annotations

import csv
import io
import math
import re
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.summary import hparams

from placement.engine.costs import Costs
from placement.episode import Episode
from placement.netlist.files import csv_text, write_whole

FILE_NAME = "metrics.csv"
TENSORBOARD_FOLDER = "tensorboard"

# TensorBoard's section → its columns, by the first pattern that matches; a section's name is removed from its columns.
_SECTIONS = (
    ("speed", r"\w+_per_second|infeed_wait_\w+|learner_seconds"),
    ("data", r"staleness_\w+|(stale|orphaned|refused)_episodes|learner_(refused|stale|orphaned|duplicates)"),
    ("ppo", r"learner_\w+"),
    ("cost", r"wirelength_\w+|(\w+_)?cost(_\w+)?|best_so_far"),
    ("episodes", r"reward_mean|dead_ends"),
    ("progress", r"iteration|episodes|steps|seconds|greedy_iteration"),
    ("replay", r"(replay|shard)\w+"),
    ("processes", r"\w+"),
)

Row = Mapping[str, float]


def tag(column: str) -> str:
    """A column's name in TensorBoard, `section/name`, so that related columns are shown together."""
    section = next(name for name, pattern in _SECTIONS if re.fullmatch(pattern, column))
    return f"{section}/{column.removeprefix('learner_') if section == 'ppo' else column}"


def episode_metrics(episodes: Sequence[Episode], *, version: int, by_design: bool = True) -> dict[str, float]:
    """Metrics of an iteration's episodes: costs (of those that placed every macro), dead ends, staleness.

    If there are several designs and `by_design`, each has a `design<number>_cost_mean`, numbered as in the settings.
    `version` is that of the parameters at the beginning of the iteration.
    """
    costs = np.array([episode.costs for episode in episodes if not episode.dead_end])
    row: dict[str, float] = {"reward_mean": float(np.mean([episode.reward for episode in episodes]))}
    for position, field in enumerate(Costs._fields):
        name = "cost" if field == "total" else field
        values = costs[:, position] if len(costs) else np.array([math.nan])
        row[f"{name}_mean"], row[f"{name}_std"] = float(values.mean()), float(values.std())
        row[f"{name}_best"] = float(values.min())
    designs = np.array([int(episode.design) for episode in episodes])
    for which in np.unique(designs) if by_design and designs.any() else ():
        mine = [one.costs[4] for one in episodes if one.design == which and not one.dead_end]
        row[f"design{which}_cost_mean"] = float(np.mean(mine)) if mine else math.nan
    staleness = version - np.array([episode.version for episode in episodes])
    row["dead_ends"] = float(sum(bool(episode.dead_end) for episode in episodes))
    row["staleness_mean"], row["staleness_max"] = float(staleness.mean()), float(staleness.max())
    return row


class MetricsWriter:
    """Writes rows to the files of a run folder, and drops those past `iteration`; use it in a `with` statement.

    Args:
        folder: the run's folder.
        iteration: the last iteration whose row is kept.
        hyperparameters: the run's hyperparameters by name; values other than numbers and Booleans are written as text.
    """

    def __init__(
        self, folder: str | Path, *, iteration: int = 0, hyperparameters: Mapping[str, Any] | None = None
    ) -> None:
        self.path = Path(folder) / FILE_NAME
        self._columns, rows = read_rows(self.path)
        kept = [row for row in rows if int(float(row["iteration"])) <= iteration]
        if self._columns:
            self._rewrite(kept)
        (Path(folder) / TENSORBOARD_FOLDER).mkdir(exist_ok=True)
        # Not tensorboardX's `SummaryWriter`: its thread dies of a full disk, and every later call waits for it forever.
        name = f"events_{iteration:09d}"
        self._events = EventsWriter(str(Path(folder) / TENSORBOARD_FOLDER / name), f".{iteration}")
        self._add_event(iteration + 1, session_log=SessionLog(status=SessionLog.START))  # This drops later points.
        if hyperparameters:
            values = {
                key: value if isinstance(value, bool | int | float) else str(value)
                for key, value in hyperparameters.items()
            }
            for summary in hparams(values, {tag("best_so_far"): 0}):
                self._add_event(iteration, summary=summary)

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._events.close()

    def write(self, row: Row) -> None:
        """Adds a row; it must have the key `iteration`. New keys become new columns; NaN is an empty field."""
        new = [name for name in row if name not in self._columns]
        if new:
            _, rows = read_rows(self.path)
            self._columns += new
            self._rewrite(rows)
        with self.path.open("a", encoding="utf-8", newline="") as stream:
            stream.write(csv_text([[_text(row.get(name, math.nan)) for name in self._columns]]))
        self._add_scalars(int(row["iteration"]), row)

    def amend(self, **values: float) -> None:
        """Replaces numbers of the last row, if there is one and they have changed."""
        _, rows = read_rows(self.path)
        changed = {name: value for name, value in values.items() if rows and rows[-1].get(name) != _text(value)}
        if changed:
            rows[-1].update({name: _text(value) for name, value in changed.items()})
            self._rewrite(rows)
            self._add_scalars(int(float(rows[-1]["iteration"])), changed)

    def add_pictures(self, iteration: int, pictures: Mapping[str, bytes]) -> None:
        """Adds PNG files to TensorBoard's files, by their names."""
        values = []
        for name, png in pictures.items():
            width, height = struct.unpack(">II", png[16:24])  # from the header
            image = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
            values.append(Summary.Value(tag=f"placement/{name}", image=image))
        if values:
            self._add_event(iteration, summary=Summary(value=values))

    def _add_scalars(self, iteration: int, row: Row) -> None:
        finite = {name: value for name, value in row.items() if math.isfinite(value)}
        values = [Summary.Value(tag=tag(name), simple_value=value) for name, value in finite.items()]
        self._add_event(iteration, summary=Summary(value=values))

    def _add_event(self, step: int, **what: Any) -> None:
        self._events.write_event(Event(wall_time=time.time(), step=step, **what))
        self._events.flush()

    def _rewrite(self, rows: Sequence[Mapping[str, str]]) -> None:
        kept = [[row.get(name, "") for name in self._columns] for row in rows]
        write_whole(self.path, csv_text([self._columns, *kept]))


def read_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Columns and complete rows of a metrics file; a last line cut off by a power failure is dropped."""
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


# --- Showing a run ---------------------------------------------------------------------------------------------------

COMPONENTS = {"wirelength_cost": "wirelength", "density_cost": "density", "congestion_cost": "congestion"}


class ProgressSink(Protocol):
    """Receives the reports of the learner's loop: rows of `metrics.csv`, and lines of text to be read now."""

    def iteration(self, row: Row) -> None: ...

    def note(self, text: str) -> None: ...


class TrainingProgress(ProgressSink, Protocol):
    """Shows a run to people, and the state of its processes if there are several. Used in a `with` statement."""

    def __enter__(self) -> TrainingProgress: ...

    def __exit__(self, *error: object) -> None: ...

    def processes(self, table: Table) -> None: ...


class Remaining:
    """Estimates the remaining time of a run. The arguments are those of `make_progress`."""

    def __init__(self, iterations: int, minutes: float) -> None:
        self._iterations, self._limit = iterations, minutes * 60 if minutes else math.inf
        self._first: tuple[float, float] | None = None

    def seconds(self, row: Row) -> float:
        """Seconds left after the iteration of `row`; NaN while there is no basis for an estimate."""
        now = row["iteration"], row["seconds"]
        if self._first is None or now[1] < self._first[1]:  # The learner died and resumed from an earlier checkpoint.
            self._first = now
        done, spent = now[0] - self._first[0], now[1] - self._first[1]
        by_iterations = (self._iterations - now[0]) * spent / done if done else math.nan
        by_clock = max(self._limit - now[1], 0.0)
        return by_clock if math.isnan(by_iterations) and by_clock < math.inf else min(by_iterations, by_clock)


class PlainProgress:
    """Prints a line per iteration. The arguments are those of `make_progress`."""

    def __init__(
        self, iterations: int, minutes: float = 0.0, *, cost: str = "proxy", console: Console | None = None
    ) -> None:
        self._iterations, self._cost = iterations, cost
        self._remaining = Remaining(iterations, minutes)
        self._console = console or Console()

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def iteration(self, row: Row) -> None:
        components = ", ".join(f"{title} {_cost(row, f'{name}_mean')}" for name, title in COMPONENTS.items())
        self.note(
            f"iteration {int(row['iteration'])}/{self._iterations} · {int(row['episodes'])} episodes · "
            f"{self._cost} cost {_cost(row, 'cost_mean')}, best {_cost(row, 'best_so_far')} ({components}) · "
            f"{_number(row, 'steps_per_second')} steps/s · {clock(row['seconds'])}, "
            f"{clock(self._remaining.seconds(row))} left"
        )

    def note(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def processes(self, table: Table) -> None:
        """Shows nothing, since `metrics.csv` has the numbers."""


class LiveProgress(PlainProgress):
    """A bar and a table that are redrawn in place. The arguments are those of `make_progress`."""

    def __init__(
        self, iterations: int, minutes: float = 0.0, *, cost: str = "proxy", console: Console | None = None
    ) -> None:
        super().__init__(iterations, minutes, cost=cost, console=console)
        self._bar = Progress(
            TextColumn("iteration {task.completed:.0f}/{task.total:.0f}"),
            BarColumn(bar_width=40),
            TextColumn("{task.fields[text]}"),
        )
        self._task = self._bar.add_task("training", total=iterations, text="starting …")
        self._live = Live(Group(self._bar), console=self._console, refresh_per_second=4)
        self._first: Row = {}
        self._shown: dict[str, Table] = {}

    def __enter__(self) -> LiveProgress:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def iteration(self, row: Row) -> None:
        self._first = self._first or dict(row)
        elapsed, left = clock(row["seconds"]), clock(self._remaining.seconds(row))
        self._bar.update(self._task, completed=row["iteration"], text=f"{elapsed} elapsed, {left} left")
        self._show("episodes", self._table(row))

    def processes(self, table: Table) -> None:
        self._show("processes", table)

    def _show(self, name: str, table: Table) -> None:
        self._shown[name] = table
        self._live.update(Group(self._bar, *(self._shown[key] for key in sorted(self._shown))))

    def _table(self, row: Row) -> Table:
        rates = (
            f"{int(row['episodes'])} episodes · {_number(row, 'steps_per_second')} steps/s · "
            f"staleness {_number(row, 'staleness_mean')} · dead ends {_number(row, 'dead_ends')} · "
            f"best so far {_cost(row, 'best_so_far')}"
        )
        table = Table(caption=rates, caption_justify="left")
        table.add_column("sampled episodes")
        for title in ("first mean", "mean", "best"):
            table.add_column(title, justify="right")
        for name, title in {"cost": f"{self._cost} cost", **COMPONENTS}.items():
            first = _cost(self._first, f"{name}_mean")
            style = "bold" if name == "cost" else ""
            table.add_row(title, first, _cost(row, f"{name}_mean"), _cost(row, f"{name}_best"), style=style)
        return table


def make_progress(iterations: int, minutes: float = 0.0, *, cost: str = "proxy") -> TrainingProgress:
    """A live table on a terminal, plain lines elsewhere, for a run with limits on iterations and minutes (0: no limit).

    `cost` is the name of the training cost.
    """
    console = Console()
    kind = LiveProgress if console.is_terminal else PlainProgress
    return kind(iterations, minutes, cost=cost, console=console)


def clock(seconds: float) -> str:
    """Seconds as minutes:seconds or hours:minutes:seconds; NaN as `--:--`."""
    if not math.isfinite(seconds):
        return "--:--"
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute:02d}:{second:02d}"


def _cost(row: Row, name: str) -> str:
    value = row.get(name, math.nan)
    return f"{value:.4f}" if math.isfinite(value) else "–"


def _number(row: Row, name: str) -> str:
    value = row.get(name, math.nan)
    return f"{value:.3g}" if math.isfinite(value) and abs(value) < 1000 else f"{value:,.0f}"
