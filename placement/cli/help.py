"""What `--help` prints: the files in configs/ hold every setting with its default and its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf

from placement.netlist.load import data_folder


def command_help(title: str, config: str, arguments: Sequence[str] = (), *, form: str = "[key=value …]") -> str:
    """What a command does, and its settings.

    Args:
        title: the words that start it.
        config: the name of its file in configs/.
        arguments: of the command line; those of the form `group=option` choose what is shown of a group.
        form: of the arguments, for the line of usage.
    """
    lines = [f"usage: {title} {form}", "", *_introduction(config), "", "Settings, defaults and meanings:", ""]
    return "\n".join([*lines, *_settings(config, _chosen(arguments))])


def about(config: str) -> str:
    """What a command does, in a line."""
    return _introduction(config)[0]


def setting_keys(config: str, arguments: Sequence[str] = ()) -> list[str]:
    """The dotted keys of a command's settings and of their groups; arguments as `command_help` takes them."""
    values: Any = OmegaConf.to_container(OmegaConf.create("\n".join(_settings(config, _chosen(arguments)))))
    return list(_keys(values))


def options_with(key: str) -> list[str]:
    """The options `group=name` of a dotted key's group whose files have the key."""
    group, _, name = key.partition(".")
    found = []
    for path in sorted((data_folder("configs") / group).glob("*.yaml")):
        values: Any = OmegaConf.to_container(OmegaConf.create(_read(f"{group}/{path.stem}")))
        if name in _keys(values):
            found.append(f"{group}={path.stem}")
    return found


def _keys(values: Mapping[str, Any], at: str = "") -> Iterator[str]:
    for key, value in values.items():
        yield f"{at}{key}"
        if isinstance(value, Mapping):
            yield from _keys(value, f"{at}{key}.")


def _chosen(arguments: Sequence[str]) -> dict[str, str]:
    """The values of `key=value` by their keys."""
    return dict(argument.split("=", 1) for argument in arguments if "=" in argument)


def _read(name: str) -> str:
    return (data_folder("configs") / f"{name}.yaml").read_text(encoding="utf-8")


def _introduction(config: str) -> list[str]:
    """The comment that begins a file."""
    return [line.removeprefix("# ") for line in re.match(r"(?:#.*\n)*", _read(config))[0].splitlines()]  # type: ignore[index]


def _settings(name: str, chosen: Mapping[str, str]) -> list[str]:
    """The settings of a file and of the files that it is composed of, a line each."""
    text = _read(name)
    values: Any = OmegaConf.to_container(OmegaConf.create(text))
    lines = []
    for entry in values.get("defaults", ["_self_"]):
        group, option = (None, entry) if isinstance(entry, str) else next(iter(entry.items()))
        if entry == "_self_":
            text = re.sub(r"\A(?:#.*\n)+|^(?:defaults|hydra):\n(?: +.*\n|\n)*", "", text, flags=re.MULTILINE)
            lines += [line for line in text.splitlines() if line]
        elif group is None:
            lines += _settings(option, chosen)
        elif not group.startswith("override"):
            lines += _group(group, option, chosen)
    return lines


def _group(group: str, option: str, chosen: Mapping[str, str]) -> list[str]:
    """The settings of a group's chosen option, indented, below the group's name."""
    options = sorted(path.stem for path in (data_folder("configs") / group).glob("*.yaml"))
    option = chosen[group] if chosen.get(group) in options else option
    others = f"  # {option}; {group}=… chooses one of {', '.join(options)}" if len(options) > 1 else ""
    return [f"{group}:{others}", *(f"  {line}" for line in _settings(f"{group}/{option}", chosen))]
