"""A run's folder and identity: its path, its records, the settings that must stay the same, and the run's result.

Every process of a run imports this module, so it imports nothing heavy at its top.
"""

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

from placement.config import ConfigError, TrainConfig, build
from placement.netlist.design import Design, Placement
from placement.netlist.files import check_output_folder, write_whole
from placement.netlist.generators.synthetic import SyntheticDesigns
from placement.netlist.load import find, load

PACKAGES = (  # packages whose versions are recorded at each start
    *("macro-placement", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy"),
    *("hydra-core", "gymnasium", "dm-reverb", "tensorflow-cpu"),
)
SETTINGS_NAME = "config.yaml"
VERSIONS_NAME = "versions.json"
BEST_NAME = "best.json"
CHECKPOINTS_NAME = "checkpoints"
GIT_SECONDS, LOCK_POLL_SECONDS = 5.0, 0.1
UNNAMED = ("run_dir", "tracking")  # settings that do not affect the identity of a run
FREE = (*UNNAMED, "runtime", "replay", "ppo", "flips")
"""Settings that a resumed run may change: how long, how fast and where it runs, but not what it learns."""
VALIDATION_DESIGNS = 16
"""Number of evaluation designs of a run whose own designs are drawn; they are the same for all seeds."""
STOPPING = "stopping …"  # shown as soon as a run is requested to stop


@dataclasses.dataclass(frozen=True)
class Run:
    """The result of a training run.

    Attributes:
        iterations, episodes, seconds: totals.
        best_cost: the lowest cost found (the mean over the designs, if there are several); NaN if there is none.
        mean_cost: mean cost of the last iteration's sampled episodes; NaN if this start did no iteration.
        best_files: placement files of the best placements, one for each design that has one.
        interrupted: whether the run was stopped before it was complete.
        already_complete: whether the run was complete before this start.
    """

    folder: Path
    iterations: int = 0
    episodes: int = 0
    seconds: float = 0.0
    best_cost: float = float("nan")
    mean_cost: float = float("nan")
    best_files: tuple[Path, ...] = ()
    interrupted: bool = False
    already_complete: bool = False

    def placements(self) -> dict[str, Placement]:
        """The best placement of each design that has one, by the design's name; raises DesignError."""
        from placement.netlist.formats.plc import read_placement

        path = self.folder / BEST_NAME
        best = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        found = {}
        for design in named_designs(read_settings(self.folder, key="folder")):
            if design.name in best:
                file = self.folder / best[design.name]["file"]
                found[design.name] = read_placement(file, design.netlist, located=design.initial)[1]
        return found


def default_run_dir(values: Mapping[str, Any]) -> str:
    """The run folder for all settings, a nested mapping: ``runs/<design>/seed<seed>-<hash of those not in UNNAMED>``.

    The same command therefore finds its own run again.
    """
    settings = {key: value for key, value in values.items() if key not in UNNAMED}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    return str(Path("runs") / design_label(values["design"]) / f"seed{values['seed']}-{digest}")


def working_folder(run_dir: str) -> Path:
    """The folder that processes write to: `run_dir`, or ``runs/remote/s3/BUCKET/PATH`` for ``s3://BUCKET/PATH``."""
    scheme, separator, path = run_dir.partition("://")
    if not separator:
        return Path(run_dir)
    return Path("runs", "remote", scheme, *(part for part in path.split("/") if part not in ("", ".", "..")))


def design_label(design: object) -> str:
    """A folder name for one design (its name, or that of its file or folder) or several (joined by +)."""
    items = design if isinstance(design, (list, tuple)) else [design]
    return "+".join(_short_name(str(item)) for item in items)


def _short_name(design: str) -> str:
    path = Path(design)
    if path.name.startswith("netlist.pb.txt") and path.parent.name:
        return path.parent.name
    return path.name.removesuffix(".gz").removesuffix(".pb.txt").replace(":", "-") or "design"


def named_designs(config: TrainConfig) -> list[Design]:
    """The run's designs as on disk; if they are drawn, those of the distribution's validation split.

    Raises DesignError.
    """
    if config.drawn is None:
        return [load(name) for name in config.design]
    validation = SyntheticDesigns(macros=config.drawn, split="validation")
    return [validation[number] for number in range(VALIDATION_DESIGNS)]


def check_designs(config: TrainConfig) -> None:
    """Raises DesignError if a named design does not exist."""
    for name in config.design if config.drawn is None else ():
        find(name)


def load_designs(config: TrainConfig) -> list[Design]:
    """Does the same as `named_designs`, and sets their grid of actions and their preferred orientations.

    Raises DesignError, and ConfigError if two designs have the same name.
    """
    from placement.netlist.feasibility import ready

    env = config.env
    found = named_designs(config)
    designs = [ready(design).with_actions(env.action_scale, off_grid=env.off_grid) for design in found]
    if len({design.name for design in designs}) < len(designs):
        raise ConfigError(f"design={list(config.design)}: designs must have different names")
    return designs


def newest_checkpoint(folder: Path) -> int:
    """The number of a run's newest checkpoint, by the folders' names alone; 0 without one."""
    found = (folder / CHECKPOINTS_NAME).glob("*")
    return max((int(path.name) for path in found if path.name.isdigit()), default=0)


def steps(designs: Sequence[Design]) -> int:
    """The number of actions in the longest design's episode."""
    return max(len(design.placing_order) for design in designs)


@contextlib.contextmanager
def locked(folder: Path, *, name: str = ".lock", timeout: float = 0.0) -> Iterator[None]:
    """Makes the run folder and locks it for this process, by the lock's file `name` in it.

    Raises ConfigError if another process holds it for more than `timeout` seconds, and DesignError if it cannot be
    written.
    """
    check_output_folder("run_dir", folder)
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout
    with (folder / name).open("w") as stream:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released when the process ends
                break
            if time.monotonic() >= deadline:
                raise ConfigError(f"run_dir={str(folder)!r}: another process is training in this folder")
            time.sleep(LOCK_POLL_SECONDS)
        yield


def write_record(folder: Path, config: TrainConfig) -> None:
    """Writes `config.yaml` and `versions.json`."""
    from omegaconf import OmegaConf

    write_whole(folder / SETTINGS_NAME, OmegaConf.to_yaml(OmegaConf.create(plain(config))))
    path = folder / VERSIONS_NAME
    starts = []
    if path.exists():
        with contextlib.suppress(json.JSONDecodeError, KeyError, TypeError):
            starts = json.loads(path.read_text(encoding="utf-8"))["starts"]
    write_whole(path, json.dumps({"seed": config.seed, "starts": [*starts, _start()]}, indent=2) + "\n")


def read_settings(run: Path, *, key: str) -> TrainConfig:
    """The settings that a run folder was trained with, without the `FREE` ones that no longer exist.

    Raises ConfigError, for the setting `key`, if there are none or others no longer exist.
    """
    import yaml  # type: ignore[import-untyped]

    path = run / SETTINGS_NAME
    if not path.is_file():
        what = f"it has no {SETTINGS_NAME}" if run.is_dir() else "no such folder"
        raise ConfigError(f"{key}={str(run)!r}: must be the folder of a training run: {what}")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ConfigError("must be a mapping of settings")
        for group, known in default_settings().items():
            if group in FREE and isinstance(known, dict) and isinstance(values.get(group), dict):
                values[group] = {name: value for name, value in values[group].items() if name in known}
        check_names(run, values)
        return build(TrainConfig, values)
    except (ConfigError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None


def check_names(run: Path, settings: Mapping[str, Any]) -> None:
    """Raises ConfigError if a run's nested settings have names that no longer exist; the message suggests a remedy."""
    known = dotted(default_settings())
    gone = [f"{key}={value!r}" for key, value in dotted(settings).items() if key not in known]
    if gone:
        raise ConfigError(
            f"the settings {', '.join(gone)} no longer exist: the run in {run} was written by {writer_of(run)}, and "
            f"this is macro-placement {_version('macro-placement')}; start a new run, or use that version"
        )


def writer_of(run: Path) -> str:
    """The version and the commit that started a run, or resumed it last, in words."""
    try:
        start = json.loads((run / VERSIONS_NAME).read_text(encoding="utf-8"))["starts"][-1]
        commit = f" (commit {start['git_commit'][:12]})" if start["git_commit"] else ""
        return f"macro-placement {start['packages']['macro-placement']}{commit}"
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return "another version"


def default_settings() -> dict[str, Any]:
    """All settings of a run as nested dictionaries, with their defaults."""
    return plain(TrainConfig(design=("any",), run_dir="any"))


def plain(config: Any) -> dict[str, Any]:
    """A config dataclass as nested dictionaries, lists and numbers."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def dotted(values: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """Nested settings by their dotted keys."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        result.update(dotted(value, f"{at}{key}.") if isinstance(value, Mapping) else {f"{at}{key}": value})
    return result


def fingerprint(design: Design) -> str:
    """A digest of everything in a design, so that a changed file is noticed."""
    digest = hashlib.sha256()
    for part in (design.netlist, design.canvas, design.initial):
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            digest.update(field.name.encode())
            digest.update(value.tobytes() if hasattr(value, "tobytes") else repr(value).encode())
    digest.update(design.constraints.as_bytes())
    return digest.hexdigest()[:16]


def identity(config: TrainConfig, designs: Sequence[Design]) -> dict[str, Any]:
    """The values that must stay the same for a run to be resumed."""
    settings = {key: value for key, value in plain(config).items() if key not in FREE}
    return {"settings": settings, "designs": {design.name: fingerprint(design) for design in designs}}


def require_same(folder: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raises ConfigError naming the keys in which the run found in `folder` differs from the requested one.

    A setting that did not exist when the run began counts as having had its present default; one that no longer exists
    is named by `check_names`.
    """
    check_names(folder, saved["settings"])
    now = dotted(wanted["settings"])
    before = {key: value for key, value in dotted(default_settings()).items() if key in now} | dotted(saved["settings"])
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
            f"run_dir={str(folder)!r} holds a run that cannot be resumed with other settings: "
            f"{'; '.join(differences)}. Give its original settings, or another run_dir"
        )


def _start() -> dict[str, Any]:
    """The record of one start of a run: time, command, versions."""
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "git_commit": _git_commit(),
    }


def _version(package: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


def _git_commit() -> str | None:
    """The commit of the running code, with `+changes` if files differ from it; None outside a repository."""
    try:
        commit = _git("rev-parse", "HEAD")
        return commit + ("+changes" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).resolve().parents[2]), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_SECONDS)
    return done.stdout.strip()
