"""The record in a run folder: settings, versions, seed; and the lock that keeps other processes out."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import fcntl
import hashlib
import importlib.metadata
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from omegaconf import OmegaConf

from placement.config import ConfigError, TrainConfig, build
from placement.netlist.design import Design
from placement.netlist.files import check_output_folder, write_whole

PACKAGES = (
    *("macro-placement", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy"),
    *("hydra-core", "gymnasium", "dm-reverb", "tensorflow-cpu"),
)
SETTINGS_NAME = "config.yaml"
VERSIONS_NAME = "versions.json"
GIT_SECONDS = 5.0
LOCK_POLL_SECONDS = 0.1
# What may be changed when a run is resumed: how long, how fast and where, not what is learned.
FREE = ("run_dir", "runtime", "replay", "ppo", "flips", "tracking")


@contextlib.contextmanager
def locked(folder: Path, *, name: str = ".lock", timeout: float = 0.0) -> Iterator[None]:
    """Makes the run folder and holds it for this process.

    Args:
        folder: the run folder.
        name: of the lock's file in it.
        timeout: seconds to wait for another process to let go.

    Raises:
        ConfigError: another process holds it.
        DesignError: it cannot be written.
    """
    check_output_folder("run_dir", folder)
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout
    with (folder / name).open("w") as stream:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the process's end gives it back
                break
            if time.monotonic() >= deadline:
                raise ConfigError(f"run_dir={str(folder)!r}: another process is training in this folder")
            time.sleep(LOCK_POLL_SECONDS)
        yield


def write_record(folder: Path, config: TrainConfig) -> None:
    """Writes `config.yaml` and `versions.json`."""
    settings = OmegaConf.to_yaml(OmegaConf.create(plain(config)))
    write_whole(folder / SETTINGS_NAME, settings)
    path = folder / VERSIONS_NAME
    starts = []
    if path.exists():
        with contextlib.suppress(json.JSONDecodeError, KeyError, TypeError):
            starts = json.loads(path.read_text(encoding="utf-8"))["starts"]
    write_whole(path, json.dumps({"seed": config.seed, "starts": [*starts, _start()]}, indent=2) + "\n")


def read_settings(run: Path, *, key: str) -> TrainConfig:
    """The settings that a run folder was trained with.

    Args:
        run: the folder.
        key: the setting that names it, for messages.

    Raises:
        ConfigError: the folder holds no run.
    """
    path = run / SETTINGS_NAME
    if not path.is_file():
        what = f"it has no {SETTINGS_NAME}" if run.is_dir() else "there is no such folder"
        raise ConfigError(f"{key}={str(run)!r}: must be the folder of a training run: {what}")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: must be a mapping of settings")
    try:
        return build(TrainConfig, values)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def plain(config: Any) -> dict[str, Any]:
    """A config dataclass as nested dictionaries, lists and numbers."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def fingerprint(design: Design) -> str:
    """A digest of everything in a design, so that a changed file is not taken for the one trained on."""
    digest = hashlib.sha256()
    for part in (design.netlist, design.canvas, design.initial):
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            digest.update(field.name.encode())
            digest.update(value.tobytes() if hasattr(value, "tobytes") else repr(value).encode())
    digest.update(design.constraints.as_bytes())
    return digest.hexdigest()[:16]


def identity(config: TrainConfig, designs: Sequence[Design]) -> dict[str, Any]:
    """What must stay the same for a run to be resumed."""
    settings = {key: value for key, value in plain(config).items() if key not in FREE}
    return {"settings": settings, "designs": {design.name: fingerprint(design) for design in designs}}


def refuse_if_other(folder: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raises ConfigError naming the keys in which the run found in `folder` differs from the one wanted.

    A setting that there was not yet when the run began had what is its default now.
    """
    defaults = _flat(plain(TrainConfig(design=("any",), run_dir="any")))
    now = _flat(wanted["settings"])
    before = {key: value for key, value in defaults.items() if key in now} | _flat(saved["settings"])
    differences = [
        f"{key}={now.get(key)!r} (was {before.get(key)!r})"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key)
    ]
    if not differences and saved["designs"] != wanted["designs"]:
        changed = [name for name, digest in wanted["designs"].items() if saved["designs"].get(name) != digest]
        differences = [f"the files of design {name!r} have changed" for name in changed]
    if differences:
        raise ConfigError(
            f"run_dir={str(folder)!r} holds a run that cannot go on with other settings: {'; '.join(differences)}. "
            "Give the settings that it began with, or another run_dir"
        )


def _flat(values: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """Nested settings by their dotted keys."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        result.update(_flat(value, f"{at}{key}.") if isinstance(value, Mapping) else {f"{at}{key}": value})
    return result


def _start() -> dict[str, Any]:
    """One start of a run: when, by which command, with which versions."""
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "git_commit": _git_commit(),
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    """The commit of the code that runs, with `+changes` where files differ from it; None outside a repository."""
    folder = Path(__file__).resolve().parents[2]
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return commit + ("+changes" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_SECONDS)
    return done.stdout.strip()
