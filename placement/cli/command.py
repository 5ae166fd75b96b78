"""Running a command: Hydra composes its settings, `build` checks them, and its function gets them.

A user's mistake ends with one line on stderr and exit status 2, without a traceback; with `HYDRA_FULL_ERROR=1` in the
environment, what Hydra refuses shows its traceback all the same.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from placement.cli.composition import composition_message
from placement.cli.help import command_help
from placement.cli.options import option_overrides
from placement.cli.refusal import Refusal
from placement.config import ConfigError, build
from placement.netlist.errors import DesignError
from placement.netlist.load import data_folder
from placement.report.metrics import Metrics, json_line

MISTAKES = (ConfigError, DesignError, OmegaConfBaseException, OSError)
"""What is told in one line: wrong settings, unusable files."""
INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""
FULL_ERROR = "HYDRA_FULL_ERROR"
PLAIN_WIDTH = 120
"""Least characters of a line where the output is no terminal: a file has room."""


class Command(NamedTuple):
    """One command of `macro-placement`.

    Attributes:
        name: one word, or two.
        place: `module:name` of its function, which takes `config`, a dataclass of its settings, and a console, and
            returns Metrics where it measures a placement. The function of `train` takes the plain mapping of the
            settings.
        config: the name of its file in configs/.
        words: the settings that arguments without a key give, in their order; None: no such arguments. A command
            that has them, be they none, takes `--key value`, too.
        names: what messages say instead of the beginnings of settings' names.
    """

    name: str
    place: str
    config: str
    words: tuple[str, ...] | None = None
    names: Mapping[str, str] = {"env.": ""}  # cost.* stands under env only for `train`

    @property
    def function(self) -> Callable[..., Any]:
        """What runs it."""
        module, name = self.place.split(":")
        return getattr(importlib.import_module(module), name)

    def message(self, error: Exception) -> str:
        """An error in one line."""
        text = " ".join(str(error).split())
        for before, after in self.names.items():
            text = re.sub(rf"(?<![\w.]){re.escape(before)}", after, text)
        return text


def execute(command: Command, arguments: Sequence[str]) -> int:
    """Runs a command; returns the exit status.

    Args:
        command: to run.
        arguments: `key=value` settings and Hydra's own options.
    """
    title = f"macro-placement {command.name}"
    if "--help" in arguments or "-h" in arguments:
        say(command_help(title, command.config, arguments, form=_form(command)))
        return 0

    def task(settings: DictConfig) -> float | None:
        values: dict[str, Any] = OmegaConf.to_container(settings, resolve=True)  # type: ignore[assignment]
        function = command.function
        gc.enable()
        try:
            if command.name == "train":
                return function(values)
            return _call(function, values)
        except Refusal as error:
            sys.exit(_told(title, str(error), error.status))
        except MISTAKES as error:
            sys.exit(_told(title, command.message(error)))

    try:
        words = overrides(arguments, command)
    except Refusal as error:
        return _told(title, str(error), error.status)
    return _run_hydra(task, command.config, words, title)


def _call(function: Callable[..., Any], values: Mapping[str, Any]) -> float | None:
    """Calls a command's function; returns the proxy cost where it measures a placement, for Hydra's sweepers."""
    config = build(_settings(function), {key: value for key, value in values.items() if value is not None})
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, PLAIN_WIDTH)
    result = function(config, console)
    if not isinstance(result, Metrics):
        return None
    if config.json:
        sys.stdout.flush()
        print(json_line(result), flush=True)
    return result.costs.total


def _settings(function: Callable[..., Any]) -> Any:
    """The dataclass of a function's settings."""
    return typing.get_type_hints(function)["config"]


def _run_hydra(task: Callable[[DictConfig], float | None], config: str, arguments: list[str], title: str) -> int:
    """Lets Hydra compose the settings and call `task`, once or for each job of a sweep."""
    wants_traceback = os.environ.get(FULL_ERROR) == "1"
    before, sys.argv = sys.argv, [title, *arguments]
    os.environ[FULL_ERROR] = "1"  # else Hydra prints what it refuses itself, in several lines
    gc.disable()  # what Hydra composes and a command imports stays: looking for waste there takes a tenth of a start
    try:
        hydra.main(version_base="1.3", config_path=str(data_folder("configs")), config_name=config)(task)()
    except KeyboardInterrupt:  # before the command could take it
        return INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (HydraException, OmegaConfBaseException) as error:
        if wants_traceback:
            raise
        return _told(title, composition_message(error, title, config, arguments))
    finally:
        gc.enable()
        sys.argv = before
        if not wants_traceback:
            del os.environ[FULL_ERROR]
    return 0


def say(text: str) -> None:
    """Prints what was asked for; who has read enough of it and leaves, as `head` does, ends it quietly."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more as it ends


def _told(title: str, message: str, status: int = 2) -> int:
    print(f"{title}: {message}", file=sys.stderr)
    return status


def _form(command: Command) -> str:
    """What follows the command on its line of usage."""
    if command.words is None:
        return "[key=value …]"
    return " ".join([*(name.upper() for name in command.words), "[--key value …]"])


def overrides(arguments: Sequence[str], command: Command) -> list[str]:
    """The arguments as Hydra takes them.

    Except for `train` and in a sweep (`-m`), `key=a,b` becomes the list `key=[a,b]`; Hydra alone would take that for a
    sweep. `cost=NAME` becomes `cost.name=NAME`, so that the weights of that cost can be given beside it,
    and `policy=my_package.MyPolicy`, a network by its import path, `policy.name=my_package.MyPolicy`.

    Raises:
        Refusal: an option of a command that takes `--key value` is unknown or has no value.
    """
    cost = "env.cost" if command.name == "train" else "cost"
    arguments = [re.sub(rf"^{re.escape(cost)}=(?=[\w,]+$)", f"{cost}.name=", word) for word in arguments]
    arguments = [re.sub(r"^policy=(?=\w+\.[\w.]+$)", "policy.name=", word) for word in arguments]
    if command.name == "train" or {"-m", "--multirun"} & set(arguments):
        return arguments
    if command.words is not None:
        return option_overrides(arguments, typing.get_type_hints(_settings(command.function)), command.words)
    return [_listed(word) for word in arguments]


def _listed(word: str) -> str:
    """`key=a,b` as `key=[a,b]`, any other word as it is."""
    key, _, value = word.partition("=")
    return f"{key}=[{value}]" if re.fullmatch(r"[^,'\"\[{(]+(,[^,'\"\[{(]+)+", value) else word
