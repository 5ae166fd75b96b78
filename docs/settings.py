"""Writes docs/reference/settings.md from the dataclasses of the settings: `python docs/settings.py` (`make reference`).

Their docstrings say what each setting means. `tests/test_docs.py` checks that the page is up to date.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from placement.cli.help import Setting, listed
from placement.cli.main import COMMANDS
from placement.config import RoleConfig, TrainConfig
from placement.runtimes.public import DEFAULTS

PAGE = Path(__file__).resolve().parent / "reference" / "settings.md"
HEAD = """# Settings

<!-- Written by docs/settings.py from the dataclasses of the settings; change those, then run `make reference`. -->

`key=value`, `--key value` or `--key=value` on the command line sets a setting ([Command line](command-line.md)).
`null` means none. A setting of several commands is listed once; `env.cost` of `train` is `cost` of the others.
"""
TABLE = "| setting | default | meaning |\n|---|---|---|\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def page() -> str:
    """The whole page."""
    owners: dict[type, dict[str, Setting]] = {}
    commands: dict[type, list[str]] = {}
    for command in COMMANDS.values():
        cls = TrainConfig if command.name == "train" else command.settings
        for one in listed(cls, defaults=DEFAULTS if command.name == "train" else {}):
            key = one.key.replace(".roles.learner.", ".roles.<role>.")
            owners.setdefault(one.owner, {}).setdefault(key.rpartition(".")[2], one._replace(key=key))
            if command.name not in commands.setdefault(one.owner, []):
                commands[one.owner].append(command.name)
    texts: dict[str, str] = {}
    rows: dict[str, list[str]] = {}
    for owner, found in owners.items():
        group = "runtime.roles.<role>" if owner is RoleConfig else getattr(owner, "_group", "").rstrip(".")
        title = f"`{group}`" if group else ", ".join(f"`{name}`" for name in commands[owner])
        text = inspect.cleandoc(owner.__doc__ or "").partition("\n\nAttributes")[0]
        texts[title] = "" if text.startswith("Settings of") else f"{text}\n\n"
        rows.setdefault(title, []).extend(
            f"| `{one.key}` | `{one.default}` | {_cell(one.meaning)} |\n" for one in found.values()
        )
    sections = (f"## {title}\n\n{text}{TABLE}{''.join(rows[title])}" for title, text in texts.items())
    return "\n".join([HEAD, *sections])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
