"""MLflow and Weights & Biases, each behind the interface `Tracker`; each is imported when it is asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from placement.config import ConfigError, TrackingConfig

FIRST_SECONDS = "10"
"""That MLflow's client waits for an answer, where MLFLOW_HTTP_REQUEST_TIMEOUT says nothing else."""
TRIES = "2"
"""How often it asks again, where MLFLOW_HTTP_REQUEST_MAX_RETRIES says nothing else."""


class TrackingError(Exception):
    """A tracker could not be told; the message says which and why."""


class Tracker(Protocol):
    """One run on somebody's list of runs. Every method may raise TrackingError.

    Attributes:
        run: the run's identifier there, with which a later start goes on with it.
    """

    run: str

    def metrics(self, row: Mapping[str, float], *, step: int) -> None:
        """Finite numbers of iteration `step`, by name."""

    def artefacts(self, files: Sequence[Path]) -> None:
        """Files to keep with the run."""

    def end(self, *, finished: bool) -> None:
        """The run has ended, with its work done or not."""


class MlflowTracker:
    """A run on an MLflow server.

    Args:
        config: where.
        name: of the run, for people.
        parameters: dotted settings and their values.
        run: an earlier start's, to go on with; None makes a new one.
    """

    def __init__(self, config: TrackingConfig, name: str, parameters: Mapping[str, Any], run: str | None) -> None:
        try:
            import mlflow
        except ImportError:
            raise ConfigError("tracking=mlflow: needs the extra mlflow (pip install '.[mlflow]')") from None
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", FIRST_SECONDS)
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", TRIES)
        self._entities, self._refused = mlflow.entities, (mlflow.MlflowException, OSError)
        self._client = mlflow.MlflowClient(tracking_uri=config.uri)
        self.run = run or ""
        if run:
            self._told(self._client.update_run, run, "RUNNING")
            return
        experiment = self._told(self._client.get_experiment_by_name, config.project)
        number = experiment.experiment_id if experiment else self._told(self._client.create_experiment, config.project)
        self.run = self._told(self._client.create_run, number, run_name=name).info.run_id
        named = [self._entities.Param(key, str(value)) for key, value in parameters.items()]
        for first in range(0, len(named), 100):  # as many as MLflow takes at once
            self._told(self._client.log_batch, self.run, params=named[first : first + 100])

    def metrics(self, row: Mapping[str, float], *, step: int) -> None:
        """See `Tracker`."""
        now = int(time.time() * 1000)
        self._told(
            self._client.log_batch,
            self.run,
            metrics=[self._entities.Metric(name, value, now, step) for name, value in row.items()],
        )

    def artefacts(self, files: Sequence[Path]) -> None:
        """See `Tracker`."""
        for file in files:
            self._told(self._client.log_artifact, self.run, str(file))

    def end(self, *, finished: bool) -> None:
        """See `Tracker`."""
        self._told(self._client.set_terminated, self.run, "FINISHED" if finished else "KILLED")

    def _told(self, method: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except self._refused as error:
            raise TrackingError(f"MLflow at {self._client.tracking_uri}: {error}") from None


class WandbTracker:
    """A run of Weights & Biases. Its own environment variables hold (WANDB_MODE=offline, WANDB_API_KEY, …).

    Only what `Tracker` is told is sent: no console output, no code, no state of the repository or the machine.

    Args:
        config: where.
        name: of the run, for people.
        parameters: dotted settings and their values.
        run: an earlier start's, to go on with; None makes a new one.
        folder: where its own files go.
    """

    def __init__(
        self, config: TrackingConfig, name: str, parameters: Mapping[str, Any], run: str | None, *, folder: Path
    ) -> None:
        try:
            import wandb
        except ImportError:
            raise ConfigError("tracking=wandb: needs the extra wandb (pip install '.[wandb]')") from None
        self._wandb = wandb
        base = {"base_url": config.uri} if config.uri else {}
        settings = wandb.Settings(
            console="off",
            disable_git=True,
            disable_code=True,
            save_code=False,
            x_disable_stats=True,
            x_disable_meta=True,
            x_save_requirements=False,
            **base,
        )
        try:
            self._run = wandb.init(
                project=config.project, name=name, config=dict(parameters), id=run, resume="allow", dir=str(folder),
                settings=settings,
            )  # fmt: skip
        except wandb.Error as error:
            raise TrackingError(f"Weights & Biases: {error}") from None
        self.run = self._run.id

    def metrics(self, row: Mapping[str, float], *, step: int) -> None:
        """See `Tracker`."""
        self._told(self._run.log, dict(row), step=step)

    def artefacts(self, files: Sequence[Path]) -> None:
        """See `Tracker`."""
        artefact = self._wandb.Artifact(f"result-{self.run}", type="result")
        for file in files:
            self._told(artefact.add_file, str(file))
        self._told(self._run.log_artifact, artefact)

    def end(self, *, finished: bool) -> None:
        """See `Tracker`."""
        self._told(self._run.finish, exit_code=0 if finished else 1)

    def _told(self, method: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except (self._wandb.Error, OSError) as error:
            raise TrackingError(f"Weights & Biases: {error}") from None


def make_tracker(
    config: TrackingConfig, name: str, parameters: Mapping[str, Any], run: str | None, *, folder: Path
) -> Tracker:
    """The tracker that `config` names; raises ConfigError without its library, TrackingError without an answer."""
    if config.name == "mlflow":
        return MlflowTracker(config, name, parameters, run)
    return WandbTracker(config, name, parameters, run, folder=folder)
