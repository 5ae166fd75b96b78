"""Options as most programs have them, `--key value`, as Hydra's overrides."""

from __future__ import annotations

import keyword
import re
import typing
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from placement.cli.refusal import Refusal

_PLAIN = re.compile(r"[\w./+~-]+")
# What Hydra's grammar takes for something else than text.
_NO_TEXT = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(nan|inf)|true|false|null|~.*", re.IGNORECASE)
_WITH_COMMAS = frozenset(("halo", "blockage", "region", "fence"))
"""Lists whose values have commas of their own."""
_HYDRA = re.compile(r"--?(cfg|config-(name|path|dir)|help|hydra-help|info|package|resolve|c|h|p|i)(=.*)?")


def option_overrides(arguments: Sequence[str], hints: Mapping[str, Any], words: Sequence[str]) -> list[str]:
    """The arguments as Hydra's overrides.

    `--key value` sets a setting, as does `key=value`. A setting that is a list takes several values behind its option,
    and the option several times; one that is true or false needs none. A setting's name that is a word of Python ends
    in `_`, which its option leaves out.

    Args:
        arguments: of the command line.
        hints: the settings' types by their names.
        words: the settings that arguments without a key give, in their order; a list takes all that are left.

    Raises:
        Refusal: an option is unknown or has no value, or there are too many words.
    """
    return _Reader(arguments, hints, words).read()


class _Reader:
    """The arguments as far as they have been read."""

    def __init__(self, arguments: Sequence[str], hints: Mapping[str, Any], words: Sequence[str]) -> None:
        self.rest = deque(arguments)
        self.hints = hints
        self.words = deque(words)
        self.lists: dict[str, list[str]] = {}
        self.result: list[str] = []

    def read(self) -> list[str]:
        """All of them."""
        while self.rest:
            word = self.rest.popleft()
            if word.startswith("-") and not word[1:2].isdigit():
                self.option(word)
            else:
                self.word(word)
        return [*self.result, *(f"{name}=[{','.join(values)}]" for name, values in self.lists.items())]

    def word(self, word: str) -> None:
        """`key=value`, or a value alone."""
        key, equals, value = word.partition("=")
        name = self.setting(key)
        if equals and name in self.hints:
            self.enter(name, value, raw=True)
        elif equals and (not self.words or key.partition(".")[0] in self.hints):
            self.result.append(word)
        elif self.words:
            name = self.words[0] if self.is_list(self.words[0]) else self.words.popleft()
            self.enter(name, word)
        else:
            raise Refusal(f"{word!r}: is no option; give --key value (--help lists the keys)")

    def option(self, word: str) -> None:
        """`--key value`, `--key=value`, `--flag`, or an option of Hydra."""
        key, equals, value = word.partition("=")
        name = self.setting(key.removeprefix("--"))
        if not key.startswith("--") or name not in self.hints:
            if _HYDRA.fullmatch(word):
                self.result.append(word)
                return
            known = ", ".join(f"--{self.shown(name)}" for name in self.hints)
            raise Refusal(f"no option {key!r}; there are {known}")
        if equals:
            self.enter(name, value)
        elif self.hints[name] is bool:
            flag = self.rest.popleft() if self.rest and self.rest[0] in ("true", "false") else "true"
            self.result.append(f"{name}={flag}")
        elif not self.rest or self.rest[0].startswith("--"):
            raise Refusal(f"{key}: needs a value")
        else:
            self.enter(name, self.rest.popleft())
            while self.is_list(name) and self.rest and not self.begins(self.rest[0]):
                self.enter(name, self.rest.popleft())

    def begins(self, word: str) -> bool:
        """Whether a word is the next option or `key=value`, and no further value of a list."""
        key, equals, _ = word.partition("=")
        return word.startswith("-") or (bool(equals) and self.setting(key) in self.hints)

    def enter(self, name: str, value: str, *, raw: bool = False) -> None:
        """Sets a setting; `raw` values may be lists in Hydra's grammar."""
        if self.is_list(name) and not (raw and value.startswith("[")):
            values = value.split(",") if raw and "=" not in value and name not in _WITH_COMMAS else [value]
            self.lists.setdefault(name, []).extend(quoted(one, text=self.is_text(name)) for one in values)
        elif raw and value.startswith(("[", "{", "'", '"')):
            self.result.append(f"{name}={value}")
        else:
            self.result.append(f"{name}={quoted(value, text=self.is_text(name) and value != 'null')}")

    def is_list(self, name: str) -> bool:
        return typing.get_origin(self.hints[name]) is tuple

    def is_text(self, name: str) -> bool:
        hint = self.hints[name]
        return hint is str or str in typing.get_args(hint)  # also of the values of a list

    def setting(self, key: str) -> str:
        """The setting that a key means."""
        name = key.replace("-", "_")
        return f"{name}_" if keyword.iskeyword(name) else name

    def shown(self, name: str) -> str:
        """The option of a setting."""
        return name.removesuffix("_").replace("_", "-")


def quoted(value: str, *, text: bool = False) -> str:
    """`value` as an override's value, in quotes where Hydra's grammar needs them.

    Args:
        value: to quote.
        text: quote what Hydra would take for a number, a truth value or null, too.
    """
    if _PLAIN.fullmatch(value) and not (text and _NO_TEXT.fullmatch(value)):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
