"""Builds the text of `--help` from the dataclasses, which contain every setting with its default and its meaning."""

import dataclasses
import inspect
import re
import textwrap
import typing
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from placement.cli.options import shown

WIDTH = 110


class Setting(NamedTuple):
    """A setting for users: its dotted key, its default, its meaning, and the dataclass that declares it."""

    key: str
    default: str
    meaning: str
    owner: type


def command_help(title: str, summary: str, cls: type, words: Sequence[str] = ()) -> str:
    """The help of a command: its purpose, its usage, and its settings."""
    usage = " ".join([title, *(f"[{word.upper()}]" for word in words), "[key=value | --key value …]"])
    return "\n".join(
        [f"usage: {usage}", "", summary, "", "Settings, their defaults and meanings:", *lines(listed(cls))]
    )


def lines(found: Sequence[Setting]) -> list[str]:
    """One paragraph per setting."""
    texts = []
    for one in found:
        texts.append(f"  --{one.key.replace('_', '-')} {one.default}")
        texts += textwrap.wrap(one.meaning, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return texts


def listed(cls: type, at: str = "", defaults: Mapping[str, Any] = {}) -> list[Setting]:
    """All settings of a config dataclass; those of its nested groups have dotted keys, except the group's `name`.

    Keys begin with `at`; `defaults` are the command's values of required settings. Raises ValueError if the docstrings
    do not explain a setting.
    """
    found: list[Setting] = []
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        key, hint = f"{at}{shown(field.name)}".removesuffix(".name"), hints[field.name]
        if dataclasses.is_dataclass(hint):
            found += listed(typing.cast(type, hint), f"{key}.")
            continue
        owner, meaning = _meaning(cls, field.name)
        found.append(Setting(key, _text(defaults.get(key, field.default)), meaning, owner))
    return found


def _meaning(cls: type, name: str) -> tuple[type, str]:
    """The class that declares a setting, and the setting's text in the docstrings of it or of a class below."""
    bases = [base for base in cls.__mro__ if name in inspect.get_annotations(base)]
    for base in cls.__mro__:
        attributes = inspect.cleandoc(base.__doc__ or "")
        for names, text in re.findall(r"^    ([\w, ]+): ((?:.|\n {8})+)", attributes, re.MULTILINE):
            if name in names.split(", "):
                return bases[-1], " ".join(text.split())
    raise ValueError(f"{cls.__name__}.{name}: its docstring needs to say what the setting means")


def _text(value: Any) -> str:
    if value is dataclasses.MISSING:
        return "(required)"
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return "[" + ", ".join(map(_text, value)) + "]" if isinstance(value, tuple) else str(value)
