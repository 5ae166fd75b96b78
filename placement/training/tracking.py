"""Reports a run to a tracker (MLflow, Weights & Biases): a thread reads `metrics.csv` and sends its new rows.

Training never waits for the tracker. While it does not answer, rows stay in `metrics.csv` and are sent later.
"""

import contextlib
import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from placement.config import ConfigError, TrackingConfig, TrainConfig
from placement.netlist.files import write_whole
from placement.training.metrics import FILE_NAME, read_rows
from placement.training.run_folder import design_label, dotted, plain, working_folder

_log = logging.getLogger(__name__)
RECORD_NAME = "tracking.json"
RESULTS = ("config.yaml", "best*.plc", "best.json", "plots/*.png", "report.html")
"""Files of a run folder that the tracker receives at the end."""
INTERVAL = 5.0  # interval between checks of `metrics.csv`, in seconds
STOP_SECONDS = 60.0
"""Timeout in seconds for sending the remaining rows and the results, and for ending the tracker's run."""
MLFLOW_WAITS = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
"""Timeout and retries of MLflow's client, unless the environment sets them."""
MLFLOW_BATCH = 100  # maximum number of parameters in one MLflow request


class TrackingError(Exception):
    """A tracker could not be reached; the message names the tracker and the reason."""


class Tracker(Protocol):
    """One run in a tracker's list, with its identifier there. Every method may raise TrackingError."""

    run: str

    def metrics(self, row: Mapping[str, float], *, step: int) -> None:
        """Sends finite numbers of iteration `step`, by name."""

    def artefacts(self, files: Sequence[Path]) -> None:
        """Sends files to keep with the run."""

    def end(self, *, finished: bool) -> None:
        """Ends the run; `finished` tells whether its work is done."""


class MlflowTracker:
    """A run on an MLflow server: a new one called `name`, with dotted settings, or an earlier start's `run`."""

    def __init__(self, config: TrackingConfig, name: str, parameters: Mapping[str, Any], run: str | None) -> None:
        try:
            import mlflow
        except ImportError:
            raise ConfigError("tracking=mlflow: needs the extra mlflow (pip install '.[mlflow]')") from None
        for variable, value in MLFLOW_WAITS.items():
            os.environ.setdefault(variable, value)
        self._entities, self._errors = mlflow.entities, (mlflow.MlflowException, OSError)
        self._client = mlflow.MlflowClient(tracking_uri=config.uri)
        self.run = run or ""
        if run:
            self._call("update_run", run, "RUNNING")
            return
        experiment = self._call("get_experiment_by_name", config.project)
        number = experiment.experiment_id if experiment else self._call("create_experiment", config.project)
        self.run = self._call("create_run", number, run_name=name).info.run_id
        named = [self._entities.Param(key, str(value)) for key, value in parameters.items()]
        for first in range(0, len(named), MLFLOW_BATCH):
            self._call("log_batch", self.run, params=named[first : first + MLFLOW_BATCH])

    def metrics(self, row: Mapping[str, float], *, step: int) -> None:
        now = int(time.time() * 1000)
        numbers = [self._entities.Metric(name, value, now, step) for name, value in row.items()]
        self._call("log_batch", self.run, metrics=numbers)

    def artefacts(self, files: Sequence[Path]) -> None:
        for file in files:
            self._call("log_artifact", self.run, str(file))

    def end(self, *, finished: bool) -> None:
        self._call("set_terminated", self.run, "FINISHED" if finished else "KILLED")

    def _call(self, method: str, *arguments: Any, **named: Any) -> Any:
        try:
            return getattr(self._client, method)(*arguments, **named)
        except self._errors as error:
            raise TrackingError(f"MLflow at {self._client.tracking_uri}: {error}") from None


class WandbTracker:
    """A run of Weights & Biases. Its own environment variables apply (WANDB_MODE=offline, WANDB_API_KEY, …).

    Only the data that `Tracker` receives are sent: no console output, no code, no state of the repository or the
    machine. Its own files are written to `folder`.
    """

    def __init__(
        self, config: TrackingConfig, name: str, parameters: Mapping[str, Any], run: str | None, *, folder: Path
    ) -> None:
        try:
            import wandb
        except ImportError:
            raise ConfigError("tracking=wandb: needs the extra wandb (pip install '.[wandb]')") from None
        self._wandb = wandb
        settings = wandb.Settings(
            console="off",
            disable_git=True,
            disable_code=True,
            save_code=False,
            x_disable_stats=True,
            x_disable_meta=True,
            x_save_requirements=False,
            **({"base_url": config.uri} if config.uri else {}),
        )
        options = {"project": config.project, "name": name, "config": dict(parameters), "dir": str(folder)}
        self._run = self._call(wandb.init, id=run, resume="allow", settings=settings, **options)
        self.run = self._run.id

    def metrics(self, row: Mapping[str, float], *, step: int) -> None:
        self._call(self._run.log, dict(row), step=step)

    def artefacts(self, files: Sequence[Path]) -> None:
        artefact = self._wandb.Artifact(f"result-{self.run}", type="result")
        for file in files:
            self._call(artefact.add_file, str(file))
        self._call(self._run.log_artifact, artefact)

    def end(self, *, finished: bool) -> None:
        self._call(self._run.finish, exit_code=0 if finished else 1)

    def _call(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except (self._wandb.Error, OSError) as error:
            raise TrackingError(f"Weights & Biases: {error}") from None


def make_tracker(
    config: TrackingConfig, name: str, parameters: Mapping[str, Any], run: str | None, *, folder: Path
) -> Tracker:
    """Makes the tracker of `config`; raises ConfigError without its library, TrackingError without an answer."""
    if config.name == "mlflow":
        return MlflowTracker(config, name, parameters, run)
    return WandbTracker(config, name, parameters, run, folder=folder)


@contextlib.contextmanager
def tracked(config: TrainConfig, *, make: Callable[..., Tracker] = make_tracker) -> Iterator[None]:
    """Reports the run to the tracker of `config.tracking` while the body runs, and sends its results at the end.

    A resumed run continues the tracker's earlier run; rows sent then are not sent again. Before the run begins,
    ConfigError is raised without the tracker's library, and TrackingError if the tracker does not accept the run.
    """
    if config.tracking.name == "none":
        yield
        return
    folder = working_folder(config.run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    follower = Follower(config, folder, make)
    finished = False
    try:
        yield
        finished = True
    finally:
        follower.end(finished=finished)


class Follower:
    """Sends a run folder's new rows of metrics, from its own thread, to the tracker that `make` makes."""

    def __init__(self, config: TrainConfig, folder: Path, make: Callable[..., Tracker]) -> None:
        settings = config.tracking
        self._folder = folder
        self._place = {"name": settings.name, "uri": settings.uri, "project": settings.project}
        before = _record(folder / RECORD_NAME)
        same = all(before.get(key) == value for key, value in self._place.items())
        self._sent, self._row = before["iteration"] if same else 0, dict[str, float]()
        name = f"{design_label(config.design)} seed {config.seed}"
        self._tracker = make(settings, name, dotted(plain(config)), before["run"] if same else None, folder=folder)
        self._stop, self._down, self._finished = threading.Event(), False, False
        self._thread = threading.Thread(target=self._follow, name="tracking", daemon=True)
        self._note()
        self._thread.start()

    def end(self, *, finished: bool) -> None:
        """Sends the remaining rows and, if the run is `finished`, its results; warns of data that could not be sent."""
        self._finished = finished
        self._stop.set()
        self._thread.join(timeout=STOP_SECONDS)
        if self._thread.is_alive():
            lost = f"iterations after {self._sent}, or the results, were not sent"
            _log.warning("tracking: no answer in %g s; %s", STOP_SECONDS, lost)

    def _follow(self) -> None:
        while not self._stop.wait(INTERVAL):
            try:
                self._send()
                self._down = False
            except TrackingError as error:
                if not self._down:
                    _log.warning("tracking: training continues, rows will be sent later: %s", error)
                self._down = True
        try:
            self._send()
            if self._finished:
                self._tracker.artefacts(sorted({path for kept in RESULTS for path in self._folder.glob(kept)}))
            self._tracker.end(finished=self._finished)
        except TrackingError as error:
            _log.warning("tracking: not everything was sent (iterations up to %d were): %s", self._sent, error)

    def _send(self) -> None:
        """Sends the rows that were not sent yet, and the changes in the last one that was sent."""
        for row in read_rows(self._folder / FILE_NAME)[1]:
            iteration = int(float(row["iteration"]))
            if iteration < self._sent:
                continue
            numbers = {name: float(text) for name, text in row.items() if text}
            finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
            if iteration > self._sent:
                self._tracker.metrics(finite, step=iteration)
            elif self._row and (changed := dict(finite.items() - self._row.items())):
                self._tracker.metrics({"iteration": iteration, **changed}, step=iteration)
            self._sent, self._row = iteration, finite
            self._note()

    def _note(self) -> None:
        record = {**self._place, "run": self._tracker.run, "iteration": self._sent}
        write_whole(self._folder / RECORD_NAME, json.dumps(record) + "\n")


def _record(path: Path) -> dict[str, Any]:
    """The record of an earlier start; empty if there was none, or, with a warning, if it cannot be read."""
    if not path.exists():
        return {}
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
        return {**noted, "run": str(noted["run"]), "iteration": int(noted["iteration"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("tracking: %s is damaged (%r): the tracker gets a new run, with all iterations", path, error)
        return {}
