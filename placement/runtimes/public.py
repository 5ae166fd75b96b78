"""`placement.train`: a training run from Python, with the settings and the runtimes of `macro-placement train`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placement.config import ConfigError, TrainConfig, build
from placement.netlist.load import data_folder
from placement.training.run_folder import (
    Run,
    check_designs,
    default_run_dir,
    default_settings,
    named_designs,
    working_folder,
)

if TYPE_CHECKING:
    from placement.training.metrics import TrainingProgress

REPORT_NAME = "report.html"
DEFAULTS = {"design": "clustered40", "run_dir": None}
"""Defaults of settings that have none in their dataclass; `run_dir` is derived from the design and the settings."""


def train(
    design: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    run_dir: str | os.PathLike[str] | None = None,
    seed: int = 0,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> Run:
    """Trains a policy on one or more designs; the same call resumes an interrupted run.

    Args:
        design: the name or path of a design, or several; or `synthetic:20-60`, new designs with 20 to 60 macros.
        run_dir: the output folder; None: ``runs/<design>/seed<seed>-<hash of the settings>``.
        seed: seed of all random numbers.
        preset: a named set of settings, like the command's `preset=NAME`.
        settings: changed settings, by dotted keys, such as ``{"ppo.iterations": 100, "runtime": "ray"}``;
            docs/reference/settings.md lists them.
        quiet: whether to show nothing, instead of a live table on a terminal and plain lines elsewhere.

    Returns:
        The run: its folder, which `load_policy` takes, its best cost and placements.

    Example:
        >>> run = placement.train("toy6", run_dir="run", preset="test", settings={"ppo.iterations": 2}, quiet=True)
        >>> cost = placement.cost(placement.load("toy6"), run.placements()["toy6"])
        >>> run.iterations, round(cost.total - run.best_cost, 9)
        (2, 0.0)

    Raises:
        ConfigError: a setting is wrong.
        DesignError: a design cannot be used.
        CheckpointError, DiskFull, Diverged, ReplayTimeout, WorkerFailed: training cannot continue; the last good state
            is saved.
    """
    from rich.console import Console

    from placement.training.metrics import PlainProgress

    names = [design] if isinstance(design, (str, os.PathLike)) else list(design)
    given = {"design": [str(name) for name in names], "seed": seed, **(settings or {})}
    if run_dir is not None:
        given["run_dir"] = str(run_dir)
    config = compose(given, preset=preset)
    return run(config, progress=PlainProgress(config.ppo.iterations, console=Console(quiet=True)) if quiet else None)


def compose(settings: Mapping[str, Any], *, preset: str | None = None) -> TrainConfig:
    """Composes the default settings with these changes, by dotted keys; `runtime` selects a file of configs/runtime/.

    Raises ConfigError if there is no such setting, or its value is wrong.
    """
    import hydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    folder = data_folder("configs").absolute()
    chosen = {key: value for key, value in settings.items() if isinstance(value, str) and (folder / key).is_dir()}
    groups = [f"{key}={value}" for key, value in {**chosen, **({"preset": preset} if preset else {})}.items()]
    try:
        store_defaults()
        with hydra.initialize_config_dir(str(folder), version_base="1.3"):
            composed = hydra.compose("config", groups)
        values: dict[str, Any] = OmegaConf.to_container(composed, resolve=True)  # type: ignore[assignment]
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"{' '.join(groups)}: {str(error).splitlines()[0]}") from None
    for key, value in settings.items():
        if key not in chosen:
            _set(values, key, value)
    return build(TrainConfig, {**values, "run_dir": values.get("run_dir") or default_run_dir(values)})


def store_defaults() -> None:
    """Registers the defaults of the dataclasses with Hydra; the files in configs/ build on them."""
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(name="defaults", node=default_settings() | DEFAULTS)


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    """Sets a dotted key; a mapping changes only the keys that it has."""
    first, _, rest = key.partition(".")
    if rest:
        value = {rest: value}
    if isinstance(value, Mapping) and isinstance(values.get(first), dict):
        for inner, each in value.items():
            _set(values[first], inner, each)
    else:
        values[first] = value


def run(config: TrainConfig, *, progress: TrainingProgress | None = None) -> Run:
    """Trains on the runtime that the settings name, reports to the tracker, and draws the result.

    Without `progress` it shows a live table on a terminal, plain lines elsewhere. Raises the errors of the runtimes'
    `run`, StorageError if object storage does not answer, and TrackingError if the tracker rejects the run.
    """
    check_designs(config)  # before JAX is imported, which takes seconds
    from placement.flat.placement_timer import timer_or_none
    from placement.report.run_report import write_report
    from placement.training.stored_run import refresh, stored
    from placement.training.tracking import tracked

    with stored(config), tracked(config):
        if config.runtime.name == "ray":
            from placement.runtimes.ray import driver

            result = driver.run(config, progress=progress)
            refresh(config)  # The learner may have run on another node.
            result = dataclasses.replace(result, folder=working_folder(config.run_dir))
        else:
            from placement.runtimes import local

            result = local.run(config, progress=progress)
        drawn = result.already_complete and (result.folder / REPORT_NAME).exists()
        if not result.interrupted and not drawn:
            shown = [] if config.drawn else named_designs(config)
            names = {design.name: name for name, design in zip(config.design, shown, strict=False)}
            write_report(
                result.folder, shown, weights=config.env.cost.weights(),
                read_timer=lambda design: timer_or_none(names[design.name], design),
            )  # fmt: skip
    return result
