"""What Hydra refuses when it composes a command's settings, in one line that says what would be right."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from hydra.errors import MissingConfigException, OverrideParseException

from placement.cli.help import options_with, setting_keys
from placement.config import one_of

LIKENESS = 0.75
"""Of a key's last part to the one that is suggested, at least; 1: equal."""


def composition_message(error: Exception, title: str, config: str, arguments: Sequence[str]) -> str:
    """An error of Hydra in one line.

    Args:
        error: to tell.
        title: the words that started the command.
        config: the name of the command's file in configs/.
        arguments: as Hydra took them.
    """
    if isinstance(error, OverrideParseException):
        hint = "special characters need quotes: 'placement=\"a=b.plc\"'"
        return f"cannot read {error.override!r}; {hint}"
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, option = error.missing_cfg_file.rpartition("/")
        return f"{group}={option!r}: must be {one_of(error.options).right}"
    first = str(error).splitlines()[0]
    unknown = re.fullmatch(r"Could not override '([\w.]+)'\.", first)
    known = setting_keys(config, arguments)
    wrong = unknown[1] if unknown and unknown[1] not in known else None
    elsewhere = options_with(wrong) if wrong and wrong.partition(".")[0] in known else []
    if elsewhere:
        return f"{wrong}: is a setting of {' and '.join(elsewhere)} alone ({title} {elsewhere[0]} --help tells more)"
    near = nearest(wrong, known) if wrong else None
    suggestion = f" Did you mean {near!r}?" if near is not None else ""
    return f"{first}{suggestion} ({title} --help lists the settings)"


def nearest(key: str, known: Sequence[str]) -> str | None:
    """The known dotted key whose last part is like that of `key`, or None; groups before it only break ties."""
    names = {name.rpartition(".")[2] for name in known}
    alike = difflib.get_close_matches(key.rpartition(".")[2], names, n=1, cutoff=LIKENESS)
    candidates = [name for name in known if name.rpartition(".")[2] in alike]
    return next(iter(difflib.get_close_matches(key, candidates, n=1, cutoff=0.0)), None)
