"""Shows a training run: a live table on a terminal, a line per iteration elsewhere."""

from __future__ import annotations

import math
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from placement.training.metrics import Row

COMPONENTS = {"wirelength_cost": "wirelength", "density_cost": "density", "congestion_cost": "congestion"}


class ProgressSink(Protocol):
    """Receives what the learner's loop reports: rows of `metrics.csv`, and lines of text to be read now."""

    def iteration(self, row: Row) -> None: ...

    def note(self, text: str) -> None: ...


class TrainingProgress(ProgressSink, Protocol):
    """Shows a run to people, and the state of its processes where there are several. Used in a `with` statement."""

    def __enter__(self) -> TrainingProgress: ...

    def __exit__(self, *error: object) -> None: ...

    def processes(self, table: Table) -> None: ...


class Remaining:
    """Estimates how long a run will still take. The arguments are those of `make_progress`."""

    def __init__(self, iterations: int, minutes: float) -> None:
        self._iterations, self._limit = iterations, minutes * 60 if minutes else math.inf
        self._first: tuple[float, float] | None = None

    def seconds(self, row: Row) -> float:
        """Seconds left after the iteration of `row`; NaN while there is nothing to estimate from."""
        now = row["iteration"], row["seconds"]
        if self._first is None or now[1] < self._first[1]:  # the learner died and resumed from an earlier checkpoint
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
        """Shows nothing: `metrics.csv` has the numbers."""


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
    """The live table on a terminal, plain lines elsewhere, for a run of so many iterations or minutes (0: no limit).

    `cost` is the name of the cost that is trained on.
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
