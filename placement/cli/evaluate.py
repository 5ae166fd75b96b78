"""`evaluate.py`: hands over to the command of `macro-placement` that its settings ask for.

    placers=a,b,…            compare
    placement=[a.plc,b.plc]  compare
    search=refine, anneal, …  search
    search=legalise          legalise
    checkpoint=RUN           sample
    else                     evaluate

`macro-placement COMMAND --help` lists the settings of each.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from placement.cli.command import execute
from placement.cli.main import COMMANDS

SEARCHES = {"refine": "search", "anneal": "search", "mixed_size": "search", "legalise": "legalise"}
"""The command for each value of `search`."""
RENAMED = {
    "search": {"search": "method"},
    "legalise": {f"anneal.{name}": name for name in ("spacing", "blockages", "grid")},
}
"""Settings of `evaluate.py` that have another name in a command."""


def main(arguments: Sequence[str], *, program: str) -> int:
    """Runs the command that the arguments ask for; returns the exit status, 2 for a user's mistake."""
    if "-h" in arguments or "--help" in arguments:
        print(__doc__)
        return 0
    given = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    given = {key: value for key, value in given.items() if value not in ("null", "[]", "")}
    if (mistake := _mistake(given)) is not None:
        print(f"{Path(program).name}: {mistake}", file=sys.stderr)
        return 2
    name = _chosen(given)
    names = RENAMED.get(name, {})
    command = COMMANDS[name]
    told = {**command.names, **{f"{ours}=": f"{theirs}=" for theirs, ours in names.items()}}
    return execute(command._replace(names=told), _translated(arguments, name, names), [program])


def _mistake(given: dict[str, str]) -> str | None:
    """What is wrong with the settings together, if anything."""
    search = given.get("search")
    if search is not None and search not in SEARCHES:
        return f"search={search!r}: must be one of {', '.join(SEARCHES)}"
    if search is not None and "placers" in given:
        return "search and placers cannot be asked for together: give one of them"
    if given.get("flips") == "true" and ("search" in given or _compares(given)):
        return "flips=true: a search mirrors macros itself, and placers and placements are compared without"
    if "placement" in given and "checkpoint" in given and not _compares(given):
        return "placement and checkpoint cannot be evaluated together: give one of them"
    return None


def _compares(given: dict[str, str]) -> bool:
    """Whether placers, or several placements, are given."""
    several = given.get("placement", "").startswith("[") or "," in given.get("placement", "")
    return "placers" in given or (several and "search" not in given)


def _chosen(given: dict[str, str]) -> str:
    """The command's name."""
    if _compares(given):
        return "compare"
    if "search" in given:
        return SEARCHES[given["search"]]
    return "sample" if given.keys() & {"checkpoint", "beam", "samples"} else "evaluate"


def _translated(arguments: Sequence[str], name: str, names: dict[str, str]) -> list[str]:
    """The arguments under the command's names, without those that chose it."""
    dropped = {"search", "placers", "flips"}
    dropped -= {"compare": {"placers"}, "evaluate": {"flips"}, "sample": {"flips"}}.get(name, set())
    result = []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if equals and key in names:
            result.append(f"{names[key]}={value}")
        elif not equals or key not in dropped:
            result.append(argument)
    return result
