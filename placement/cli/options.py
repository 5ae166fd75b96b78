"""The arguments of every command: `key=value`, `--key value` and `--key=value` set a setting."""

import dataclasses
import difflib
import keyword
import os
import re
import types
import typing
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from placement.config import ConfigError, Text
from placement.netlist.errors import DesignError

LIKENESS = 0.75  # minimum similarity of a key's last component to a suggested one; 1 means equal
_PLAIN = re.compile(r"[\w./+~-]+")
# Characters that Hydra's grammar rejects in a text without quotes.
_NEEDS_QUOTES = re.compile(r"[^\x00-\x7f]|[()\[\]{}#'&=,]")
# Texts that Hydra's grammar interprets as something else.
_NO_TEXT = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(nan|inf)|true|false|null|~.*", re.IGNORECASE)


class UsageError(Exception):
    """Ends a command with one line on stderr and an exit status."""

    def __init__(self, message: str, *, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


MISTAKES = (ConfigError, DesignError, OSError)
"""Other errors that are reported in one line: wrong settings, unusable files."""


class Option(NamedTuple):
    """A setting on the command line: its dotted key, its text, and whether it has the form `key=text`."""

    key: str
    text: str
    is_assignment: bool


def setting_types(cls: type, at: str = "") -> dict[str, Any]:
    """The annotated type of each setting and group of a config dataclass, by dotted key."""
    found: dict[str, Any] = {}
    hints = typing.get_type_hints(cls, include_extras=True)
    for name in (field.name for field in dataclasses.fields(cls)):
        found[f"{at}{name}"] = hints[name]
        if dataclasses.is_dataclass(hints[name]):
            found |= setting_types(typing.cast(type, hints[name]), f"{at}{name}.")
    return found


def shown(key: str) -> str:
    """A key as users write it; a field whose name would be a Python keyword ends in `_`."""
    return key.removesuffix("_")


def read_options(arguments: Sequence[str], known: Mapping[str, Any], words: Sequence[str] = ()) -> Iterator[Option]:
    """The settings that arguments set, in their order.

    An option of a list may have several values and may occur several times; a Boolean option needs no value. `known`
    are the types of `setting_types`, `words` the settings that arguments without a key set, in their order; a list
    takes all that are left. Raises UsageError if a key is unknown, an option has no value, or there are too many words.
    """
    rest, places = deque(arguments), deque(words)
    while rest:
        word = rest.popleft()
        key, equals, text = word.removeprefix("--").partition("=")
        if word.startswith("--"):
            key = _known(key, known)
            if equals:
                yield Option(key, text, False)
            elif known[key] is bool:
                yield Option(key, rest.popleft() if rest and rest[0] in ("true", "false") else "true", False)
            elif not rest or rest[0].startswith("--"):
                raise UsageError(f"--{shown(key)}: needs a value")
            else:
                yield Option(key, rest.popleft(), False)
                while is_list(known[key]) and rest and not _begins(rest[0], known):
                    yield Option(key, rest.popleft(), False)
        elif equals and not (places and Path(word).exists()):
            yield Option(_known(key, known), text, True)
        elif places:
            yield Option(places[0] if is_list(known[places[0]]) else places.popleft(), word, False)
        else:
            raise UsageError(f"{word!r} is not a setting; give key=value or --key value")


def settings(arguments: Sequence[str], cls: type, words: Sequence[str] = ()) -> dict[str, Any]:
    """The nested values that arguments set for a config dataclass; raises the errors of `read_options`."""
    known, values = setting_types(cls), dict[str, Any]()
    for option in read_options(arguments, known, words):
        key = f"{option.key}.name" if f"{option.key}.name" in known else option.key
        path, hint = key.split("."), known[key]
        group = values
        for name in path[:-1]:
            group = group.setdefault(name, {})
        if is_list(hint):
            group[path[-1]] = [*group.get(path[-1], []), *_value(hint, option.text, option.key)]
        else:
            group[path[-1]] = _value(hint, option.text, option.key)
    return values


def hydra_words(
    arguments: Sequence[str], cls: type, groups: Mapping[str, Sequence[str]], words: Sequence[str] = ()
) -> list[str]:
    """The arguments of a command whose settings Hydra composes, as its overrides; Hydra's own options remain.

    `groups` are the options of each group that has files; raises UsageError also if a group has no such option.
    """
    known, result, own = setting_types(cls), list[str](), list[str]()
    types_of = {**known, **dict.fromkeys(groups, str)}
    rest = deque(arguments)
    while rest:
        word = rest.popleft()
        if word in ("--config-dir", "--config-name", "--config-path", "--cfg", "--info", "--package") and rest:
            result += [word, rest.popleft()]
        elif re.match(r"-[^-]|--(multirun|resolve|cfg|info|config-\w+|package|hydra-help)\b|[+~]|\+*hydra[./]", word):
            result.append(word)
        else:
            own.append(word)
    is_sweep = {"-m", "--multirun"} & set(result)
    for key, text, is_assignment in read_options(own, types_of, words):
        if key in groups:
            if not is_sweep and text not in groups[key] and not text.startswith("["):
                raise UsageError(f"{key}={text!r}: must be one of {', '.join(groups[key])}")
        elif f"{key}.name" in known:
            key = f"{key}.name"
        is_path = not is_sweep and not text.startswith(("'", '"')) and _NEEDS_QUOTES.search(text) is not None
        is_raw = is_sweep or text.startswith("[") or (is_assignment and not (is_path and _bare(types_of[key]) is str))
        if is_list(types_of[key]) and is_path and os.path.exists(text):
            text, is_raw = f"[{quoted(text, is_text=True)}]", True
        elif is_list(types_of[key]) and "," in text and not is_raw:
            text, is_raw = f"[{text}]", True
        result.append(f"{key}={text if is_raw else quoted(text, is_text=types_of[key] is str)}")
    return result


def is_list(hint: Any) -> bool:
    """Whether a setting's annotated type is a list."""
    return typing.get_origin(_bare(hint)) is tuple


def quoted(value: str, *, is_text: bool = False) -> str:
    """`value` in quotes if Hydra's grammar needs them; with `is_text` also if Hydra reads it as a number or null."""
    if _PLAIN.fullmatch(value) and not (is_text and _NO_TEXT.fullmatch(value) and value != "null"):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def nearest(key: str, known: Sequence[str]) -> str | None:
    """The known dotted key with a last component similar to that of `key`, or None; groups only break ties."""
    names = {name.rpartition(".")[2] for name in known}
    alike = difflib.get_close_matches(key.rpartition(".")[2], names, n=1, cutoff=LIKENESS)
    candidates = [name for name in known if name.rpartition(".")[2] in alike]
    return next(iter(difflib.get_close_matches(key, candidates, n=1, cutoff=0.0)), None)


def _known(key: str, known: Mapping[str, Any]) -> str:
    """The setting that a key on the command line refers to."""
    name = _name(key)
    if name in known:
        return name
    near = nearest(name, list(known))
    suggestion = f" Did you mean {shown(near)!r}?" if near else ""
    raise UsageError(f"unknown setting {key!r}.{suggestion} (--help lists the settings)")


def _begins(word: str, known: Mapping[str, Any]) -> bool:
    """Whether a word is the next option or `key=value`, and not a further value of a list."""
    key, equals, _ = word.partition("=")
    return word.startswith("--") or (bool(equals) and _name(key) in known)


def _name(key: str) -> str:
    """The name of the field that a key would refer to."""
    name = key.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def _bare(hint: Any) -> Any:
    """An annotated type without its rules and without None."""
    if typing.get_origin(hint) is typing.Annotated:
        return _bare(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return _bare(next(option for option in typing.get_args(hint) if option is not type(None)))
    return hint


def _value(hint: Any, text: str, key: str) -> Any:
    """Converts `text` to an annotated type; other text remains text, which `build` rejects."""
    bare = _bare(hint)
    if text == "null" and (bare is not hint and type(None) in typing.get_args(hint)):
        return None
    if typing.get_origin(bare) is tuple:
        return _items(typing.get_args(bare)[0], text, key)
    if bare is bool:
        return {"true": True, "false": False}.get(text, text)
    if bare in (int, float):
        try:
            return bare(text)
        except ValueError:
            return text
    return text


def _items(hint: Any, text: str, key: str) -> list[Any]:
    """The items of a list, `a,b` or `[a, b]`, or of lists, `[[1, 2], [3, 4]]`."""
    if hint in (str, Text, str | os.PathLike[str]) and "," in text and os.path.exists(text):
        return [text]
    if not text.startswith("["):
        return [_value(hint, item, key) for item in ([text] if hint is Text else text.split(","))]
    try:
        items = yaml.safe_load(text)
    except yaml.YAMLError:
        raise UsageError(f"{shown(key)}={text}: must be a list, such as [a,b]") from None
    return [item if isinstance(item, list) else _value(hint, str(item), key) for item in items]
