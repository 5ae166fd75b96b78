"""The placers to run and the command lines of their processes: names, Python callables, command templates, two
adapters.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from placement.benchmark.benchmark_config import BenchmarkConfig
from placement.benchmark.built_in import BUILT_IN, REQUEST_NAME, Request, import_placer
from placement.config import ConfigError
from placement.evaluation.placements import placement_labels
from placement.netlist.errors import DesignError
from placement.netlist.files import unpacked_bytes, write_whole
from placement.netlist.load import DEF_NAME, check_placement_file

FIELDS = ("design", "def", "out", "seed", "seconds")
INPUT_NAME, SCRIPT_NAME, OUTPUT_DEF = "input.def", "place.tcl", "placement.def"
PARAMETERS_NAME = "parameters.json"


@dataclasses.dataclass(frozen=True)
class Placer:
    """A placer with its CPU seconds, or a placement that the user gives."""

    kind: str  # one of `NAMES`, package.module:callable, or the name of a command or of a given placement
    seconds: float  # CPU seconds
    command: str | None = None  # the template of a command; None: the placer is not a command
    file: Path | None = None  # file of the given placement

    @property
    def name(self) -> str:
        """Name in tables and results, with its seconds."""
        return self.kind if self.is_placement else f"{self.kind}@{self.seconds:g}"

    @property
    def is_placement(self) -> bool:
        """Whether this is a placement, whose time and seed do not matter."""
        return self.kind == "supplied" or self.file is not None

    @property
    def folder(self) -> str:
        """Name of the folder of its results."""
        return re.sub(r"[^\w.+@-]", "-", self.name)


def placers_of(config: BenchmarkConfig, seconds: float) -> tuple[Placer, ...]:
    """Returns the placers that the settings name; raises ConfigError if one is unknown or named twice."""
    found = [*_given(config), *(_placer(text, seconds) for text in config.chosen)]
    for text in config.commands:
        name, equals, template = text.partition("=")
        if not equals or not template.strip():
            raise ConfigError(f"commands: {text!r}: must be NAME=COMMAND, such as 'mine=./place {{design}} {{out}}'")
        found.append(dataclasses.replace(_timed(name, seconds), command=template))
        for field in re.findall(r"\{(\w+)\}", template):
            if field not in FIELDS:
                known = ", ".join(f"{{{one}}}" for one in FIELDS)
                raise ConfigError(f"commands: {name}: unknown field {{{field}}}; the fields are {known}")
    names = [one.name for one in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"placers: {twice[0]} is listed twice; seeds=N runs each placer N times")
    return tuple(found)


def _given(config: BenchmarkConfig) -> list[Placer]:
    """Returns the given placements, named by the user or after their files."""
    named = [("", text) if Path(text).exists() else text.rpartition("=")[::2] for text in config.placements]
    for _, file in named:
        check_placement_file("placements", file)
    labels = placement_labels([file for _, file in named])
    return [Placer(name or label, 0.0, file=Path(file)) for (name, file), label in zip(named, labels, strict=True)]


def _placer(text: str, seconds: float) -> Placer:
    placer = _timed(text, seconds)
    if ":" in placer.kind:
        import_placer(placer.kind)  # rejected before anything starts
    elif placer.kind not in NAMES:
        raise ConfigError(
            f"placers: unknown placer {placer.kind!r}; give one of {', '.join(NAMES)}, package.module:callable, or "
            "commands=NAME=COMMAND"
        )
    return placer


def _timed(text: str, seconds: float) -> Placer:
    """Parses NAME or NAME@SECONDS."""
    name, at, given = text.rpartition("@")
    if not at:
        return Placer(text, seconds)
    try:
        value = float(given)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise ConfigError(f"placers: {text}: what follows @ must be CPU seconds above 0")
    return Placer(name, value)


def arguments(placer: Placer, design: Path, seed: int, folder: Path, config: BenchmarkConfig) -> list[str]:
    """Returns the command line of a run's process, which starts in `folder`; writes its input files there.

    Raises DesignError if a file that the placer needs is missing, or its program is not installed.
    """
    if placer.command is not None:
        values = {"design": str(design), "out": str(folder), "seed": str(seed), "seconds": f"{placer.seconds:g}"}
        if "{def}" in placer.command:
            values["def"] = str(_def_of(design, folder, placer))
        return _filled(placer.command, values)
    if placer.kind in ADAPTERS:
        return ADAPTERS[placer.kind](_def_of(design, folder, placer), folder, _lefs(placer, config.lef))
    request = Request(str(design), placer.kind, seed, placer.seconds, _path_or_name(config.checkpoint))
    write_whole(folder / REQUEST_NAME, json.dumps(dataclasses.asdict(request)) + "\n")
    return [sys.executable, "-m", "placement.benchmark.placer_process", str(folder / REQUEST_NAME)]


def _filled(template: str, values: Mapping[str, str]) -> list[str]:
    """Returns the words of a command; paths relative to the current folder become absolute."""
    words = []
    for word in shlex.split(template):
        for field, value in values.items():
            word = word.replace(f"{{{field}}}", value)
        words.append(_path_or_name(word))
    return words


def _path_or_name(word: str) -> str:
    return str(Path(word).absolute()) if Path(word).exists() else word


def _def_of(design: Path, folder: Path, placer: Placer) -> Path:
    """Returns the path of the user's DEF file, unpacked."""
    if not (design / DEF_NAME).is_file():
        raise DesignError(f"{design.name}: was not imported from a DEF file, which {placer.kind} reads")
    path = folder / INPUT_NAME
    write_whole(path, unpacked_bytes(design / DEF_NAME))
    return path


def _lefs(placer: Placer, given: Sequence[str]) -> list[str]:
    if not given:
        raise DesignError(f"{placer.kind}: reads LEF files; name those of the design with lef=TECH.lef,MACROS.lef")
    missing = [path for path in given if not Path(path).is_file()]
    if missing:
        raise DesignError(f"lef={missing[0]}: no such file")
    return [str(Path(path).absolute()) for path in given]


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise DesignError(f"{name}: no such program on the PATH; docs/how-to/benchmark-suites.md says which")
    return found


def _openroad(source: Path, folder: Path, lefs: Sequence[str]) -> list[str]:
    """Returns the command line of OpenROAD's hierarchical macro placer."""
    lines = [*(f"read_lef {{{path}}}" for path in lefs), f"read_def {{{source}}}"]
    lines += ["rtl_macro_placer", f"write_def {{{folder / OUTPUT_DEF}}}", "exit"]
    write_whole(folder / SCRIPT_NAME, "\n".join(lines) + "\n")
    return [_program("openroad"), "-no_splash", "-exit", str(folder / SCRIPT_NAME)]


def _dreamplace(source: Path, folder: Path, lefs: Sequence[str]) -> list[str]:
    """Returns the command line of DREAMPlace, for macros and cells together; `collect` finds its DEF file."""
    parameters = {
        "lef_input": list(lefs),
        "def_input": str(source),
        "gpu": 0,
        "macro_place_flag": 1,
        "use_bb": 1,
        "legalize_flag": 1,
        "detailed_place_flag": 0,
        "result_dir": str(folder),
    }
    write_whole(folder / PARAMETERS_NAME, json.dumps(parameters, indent=1) + "\n")
    return [_program("dreamplace"), str(folder / PARAMETERS_NAME)]


ADAPTERS: dict[str, Callable[[Path, Path, Sequence[str]], list[str]]] = {
    "openroad": _openroad,
    "dreamplace": _dreamplace,
}
"""Third-party programs on the PATH, by the names of their placers."""
NAMES = (*BUILT_IN, *ADAPTERS)  # placers that need no module or command of the user's


def written_placement(folder: Path) -> Path:
    """Returns the placement file that a run left in its folder; raises DesignError if there is none."""
    for pattern in ("placement.plc", "placement.plc.gz", OUTPUT_DEF, f"{OUTPUT_DEF}.gz", "**/*.gp.def"):
        for path in sorted(folder.glob(pattern)):
            return path
    raise DesignError(f"wrote neither placement.plc nor {OUTPUT_DEF} into its folder")
