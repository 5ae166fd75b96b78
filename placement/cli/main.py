"""The command `macro-placement`: its commands, their calls, and their exit statuses.

A user's mistake ends with one line on stderr and exit status 2, without a traceback.
"""

import difflib
import importlib
import os
import re
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.console import Console

import placement
from placement.cli.help import command_help
from placement.cli.options import MISTAKES, UsageError, settings
from placement.config import build
from placement.report.placement_metrics import Metrics, json_line

INTERRUPTED = 130  # the exit status after Ctrl-C, as in shells
PLAIN_WIDTH = 120  # minimum width of tables, in characters, if the output is not a terminal


class Command(NamedTuple):
    """One command of `macro-placement`; its name is one word, or two."""

    name: str
    # `module:name`, below this package, of its function, which takes `config`, a dataclass of its settings, and a
    # console, and returns Metrics if it evaluates a placement. The function of `train` takes the arguments.
    place: str
    about: str
    words: tuple[str, ...] = ()  # the settings that arguments without a key set, in their order

    @property
    def function(self) -> Callable[..., Any]:
        module, name = self.place.split(":")
        return getattr(importlib.import_module(f"placement.{module}"), name)

    @property
    def settings(self) -> Any:
        return typing.get_type_hints(self.function)["config"]


_PLACED = ("design", "placement")
_COMMANDS = (
    Command("train", "cli.train:main", "Train a policy on one or more designs; -m sweeps.", ("design",)),
    Command("evaluate", "evaluation.placements:evaluate_placement", "Measure a placement.", _PLACED),
    Command("sample", "evaluation.policies:evaluate_policy", "Place a design with a trained policy.", ("design",)),
    Command("search", "evaluation.searching:evaluate_search", "Place macros by simulated annealing.", _PLACED),
    Command("legalise", "evaluation.searching:evaluate_legalised", "Legalise with little displacement.", _PLACED),
    Command("dataset", "evaluation.datasets:write_dataset", "Write episodes from a policy or searches.", ("design",)),
    Command("benchmark", "benchmark.command:benchmark", "Compare placers on one or many designs.", ("suite",)),
    Command("import", "cli.import_command:import_chip", "Create a design from LEF and DEF, Bookshelf, or protobuf."),
    Command("export", "cli.exporting:export", "Write a placement as DEF, as Tcl, or as a table.", _PLACED),
    Command("fetch", "cli.netlists:fetch_design", "Download a public design.", ("name",)),
    Command("describe", "cli.netlists:describe", "Print the statistics of a design.", ("design",)),
    Command("view", "cli.viewing:view", "View and edit placements in the browser.", _PLACED),
    Command(
        "generate clustered", "cli.netlists:generate_clustered", "Generate banks of memories and clusters.", ("out",)
    ),
    Command("generate flat", "cli.netlists:generate_flat", "Generate standard cells and macros.", ("out",)),
    Command("plan", "cli.train:plan", "Compute how many model caches and replay shards a run needs, by simulation."),
)
COMMANDS = {command.name: command for command in _COMMANDS}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that the arguments name; returns the exit status, 2 for a user's mistake."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    for length in (2, 1):
        command = COMMANDS.get(" ".join(words[:length]))
        if command is not None:
            return execute(command, words[length:])
    if words == ["--version"]:
        say(f"macro-placement {placement.__version__}")
        return 0
    wants_help = not words or words[-1] in ("--help", "-h")
    group = [name for name in COMMANDS if words and name.split()[0] == words[0]]
    if group or not words or words[0] in ("--help", "-h"):
        listing = "".join(f"  {name:<20}{COMMANDS[name].about}\n" for name in group or COMMANDS)
        say(f"usage: macro-placement {words[0] if group else 'COMMAND'} [key=value | --key value …]\n\n{listing}")
        say(f"macro-placement {group[0] if group else 'COMMAND'} --help lists the settings of a command.")
        return 0 if wants_help else 2
    near = difflib.get_close_matches(words[0], [*COMMANDS, "generate"], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the commands are {', '.join(COMMANDS)}"
    return _reported("macro-placement", f"unknown command {words[0]!r}; {hint}")


def execute(command: Command, arguments: Sequence[str]) -> int:
    """Runs a command with its arguments; returns the exit status."""
    title = f"macro-placement {command.name}"
    try:
        if command.name == "train":
            command.function(list(arguments))
        elif "--help" in arguments or "-h" in arguments:
            say(command_help(title, command.about, command.settings, command.words))
        else:
            _call(command, arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:  # The job table of a sweep has failures.
        return int(end.code or 0)
    except UsageError as error:
        return _reported(title, str(error), error.status)
    except MISTAKES as error:
        return _reported(title, _message(error, command))
    return 0


def _call(command: Command, arguments: Sequence[str]) -> None:
    config = build(command.settings, settings(arguments, command.settings, command.words))
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, PLAIN_WIDTH)
    result = command.function(config, console)
    if isinstance(result, Metrics) and config.json:
        sys.stdout.flush()
        print(json_line(result), flush=True)


def _message(error: Exception, command: Command) -> str:
    """An error in one line; its keys have the command's groups."""
    text = " ".join(str(error).split())
    if command.name == "train":
        return text
    groups = [group for group in ("env", "anneal", "runtime") if group not in command.settings.__dataclass_fields__]
    return re.sub(rf"(?<![\w.])(?:{'|'.join(groups)})\.(?=\w+[=:.])|(?<=\w)_(?=[:=])", "", text)


def say(text: str) -> None:
    """Prints text; ends quietly if a reader leaves early, as `head` does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more as it ends.


def _reported(title: str, message: str, status: int = 2) -> int:
    print(f"{title}: {message}", file=sys.stderr)
    return status
