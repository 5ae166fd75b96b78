"""Tells a tracker of a run, beside it: a thread reads `metrics.csv` and sends its new rows.

Training never waits for the tracker. While it does not answer, rows stay in `metrics.csv` and are sent later.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from placement.config import TrainConfig
from placement.netlist.files import write_whole
from placement.training.metrics import FILE_NAME, read_rows
from placement.training.run_folder import design_label, working_folder
from placement.training.run_record import plain
from placement.training.trackers import Tracker, TrackingError, make_tracker

_log = logging.getLogger(__name__)
RECORD_NAME = "tracking.json"
KEPT = ("config.yaml", "best*.plc", "best.json", "plots/*.png", "plots/*.gif", "report.html")
"""What of a run folder goes to the tracker at the end."""
INTERVAL = 5.0
"""Seconds between two looks at `metrics.csv`."""
STOP_SECONDS = 60.0
"""That the thread may take to send what is left, results included, and to end the tracker's run."""


@contextlib.contextmanager
def tracked(config: TrainConfig, *, make: Callable[..., Tracker] = make_tracker) -> Iterator[None]:
    """Tells the tracker of `config.tracking` of the run while the body runs, and of its results at the end.

    A run that is resumed goes on with the tracker's run of before; iterations sent then are not sent again.

    Raises:
        ConfigError: the tracker's library is not installed.
        TrackingError: the tracker does not take the run. Nothing has begun.
    """
    if config.tracking.name == "none":
        yield
        return
    folder = working_folder(config.run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    follower = Follower(config, folder, make)
    follower.start()
    finished = False
    try:
        yield
        finished = True
    finally:
        follower.end(finished=finished)


class Follower:
    """Sends a run folder's new rows of metrics from a thread of its own.

    Args:
        config: the run's settings.
        folder: the run folder.
        make: makes the tracker.
    """

    def __init__(self, config: TrainConfig, folder: Path, make: Callable[..., Tracker]) -> None:
        settings = config.tracking
        self._folder = folder
        self._place = {"name": settings.name, "uri": settings.uri, "project": settings.project}
        before = _record(folder / RECORD_NAME)
        same = all(before.get(key) == value for key, value in self._place.items())
        self._sent = before["iteration"] if same else 0
        parameters = dict(_dotted(plain(config)))
        name = f"{design_label(config.design)} seed {config.seed}"
        self._tracker = make(settings, name, parameters, before["run"] if same else None, folder=folder)
        self._stop, self._down, self._finished = threading.Event(), False, False
        self._thread = threading.Thread(target=self._follow, name="tracking", daemon=True)
        self._note()

    def start(self) -> None:
        """Begins to follow."""
        self._thread.start()

    def end(self, *, finished: bool) -> None:
        """Sends what is left and, where the run is `finished`, its results; says what could not be sent."""
        self._finished = finished
        self._stop.set()
        self._thread.join(timeout=STOP_SECONDS)
        if self._thread.is_alive():
            _log.warning(
                "tracking: no answer in %g s; iterations after %d, or the results, were not sent",
                STOP_SECONDS,
                self._sent,
            )

    def _follow(self) -> None:
        while not self._stop.wait(INTERVAL):
            try:
                self._send()
            except TrackingError as error:
                if not self._down:
                    _log.warning("tracking: training goes on, rows will be sent later: %s", error)
                self._down = True
            else:
                self._down = False
        try:
            self._send()
            if self._finished:
                self._tracker.artefacts(sorted({path for kept in KEPT for path in self._folder.glob(kept)}))
            self._tracker.end(finished=self._finished)
        except TrackingError as error:
            _log.warning("tracking: not everything was sent (iterations up to %d were): %s", self._sent, error)

    def _send(self) -> None:
        """Sends the rows that were not sent yet, and notes how far it is."""
        for row in read_rows(self._folder / FILE_NAME)[1]:
            iteration = int(float(row["iteration"]))
            if iteration > self._sent:
                numbers = {name: float(text) for name, text in row.items() if text}
                finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
                self._tracker.metrics(finite, step=iteration)
                self._sent = iteration
                self._note()

    def _note(self) -> None:
        record = {**self._place, "run": self._tracker.run, "iteration": self._sent}
        write_whole(self._folder / RECORD_NAME, json.dumps(record) + "\n")


def _record(path: Path) -> dict[str, Any]:
    """What an earlier start noted; empty where there was none, or where it cannot be read, which is said."""
    if not path.exists():
        return {}
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
        return {**noted, "run": str(noted["run"]), "iteration": int(noted["iteration"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("tracking: %s is damaged (%r): the tracker gets a new run, with all iterations", path, error)
        return {}


def _dotted(values: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings with dotted keys."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value
