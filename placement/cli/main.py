"""The command `macro-placement`: `macro-placement COMMAND [key=value …]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import placement
from placement.cli.command import Command, execute, say
from placement.cli.help import about

_UNGROUPED = {"env.": "", "anneal.": ""}
_COMMANDS = (
    Command("train", "placement.cli.train:main", "config", names={}),
    Command("evaluate", "placement.evaluation.placement_evaluation:evaluate_placement", "evaluate"),
    Command("sample", "placement.evaluation.policy_evaluation:evaluate_policy", "sample"),
    Command("search", "placement.evaluation.search_evaluation:evaluate_search", "search"),
    Command("legalise", "placement.evaluation.search_evaluation:evaluate_legalised", "legalise", names=_UNGROUPED),
    Command("compare", "placement.evaluation.comparison:compare", "compare"),
    Command("import", "placement.cli.importing:import_chip", "import", words=()),
    Command("export", "placement.cli.exporting:export", "export", words=("design", "placement")),
    Command("describe", "placement.cli.netlists:describe", "describe", words=("design",)),
    Command("view", "placement.cli.viewing:view", "view", words=("design", "placement")),
    Command("generate clustered", "placement.cli.netlists:generate_clustered", "generate_clustered", words=("out",)),
    Command("generate flat", "placement.cli.netlists:generate_flat", "generate_flat", words=("out",)),
    Command("generate planted", "placement.cli.netlists:generate_planted", "generate_planted", words=("out",)),
    Command("generate shipped", "placement.cli.netlists:generate_shipped", "generate_shipped", words=("out",)),
    Command("judge data", "placement.runtimes.judge_data:make_data", "judge_data", words=("out",)),
    Command("judge train", "placement.judge.training:train_judge", "judge_train", words=("data",)),
    Command("judge rank", "placement.judge.ranking:rank", "judge_rank", words=("data",)),
    Command("plan", "placement.cli.plan:plan", "plan"),
)
COMMANDS = {command.name: command for command in _COMMANDS}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command that the arguments name; returns the exit status, 2 for a user's mistake."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    program = sys.argv[0]
    for length in (1, 2):
        command = COMMANDS.get(" ".join(words[:length]))
        if command is not None:
            return execute(command, words[length:], [program, *words[:length]])
    if words == ["--version"]:
        say(f"macro-placement {placement.__version__}")
        return 0
    asked = not words or words[-1] in ("--help", "-h")
    if asked or any(name.split()[0] == words[0] for name in COMMANDS):
        listed = "".join(f"  {name:<20}{about(command.config)}\n" for name, command in COMMANDS.items())
        say(f"usage: macro-placement COMMAND [key=value …]\n\n{listed}")
        say("macro-placement COMMAND --help lists the settings of a command. Settings are Hydra overrides.")
        return 0 if asked else 2
    print(f"{Path(program).name}: no command {words[0]!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
