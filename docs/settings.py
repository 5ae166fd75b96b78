"""Writes docs/reference/settings.md from the files of configs/: `python docs/settings.py` (`make reference`).

The files of configs/ hold every setting with its default and, in a comment behind it or above it, its meaning. A
setting without a meaning is an error. `tests/test_docs.py` checks that the page is up to date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ROOT / "configs"
PAGE = ROOT / "docs" / "reference" / "settings.md"
HEAD = """# Settings

<!-- Written by docs/settings.py from the files of configs/; change those, then run `make reference`. -->

`key=value` on the command line sets a setting ([Command line](command-line.md)). Each table is a file of
`configs/`: its settings, their defaults and their meanings. `null` means none.

"""
_LINE = re.compile(r"^(?P<indent> *)(?P<key>[\w]+):(?: +(?P<value>[^#\s].*?))?(?: *#+ (?P<meaning>.*))?$")
_INTRODUCTION = re.compile(r"\A(?:#.*\n)+")
_VARIANTS = ("test", "base")  # of `config`, with other values of its settings
_UNSEEN = ("defaults", "hydra")


class Setting(NamedTuple):
    """One setting: its full key, its default as YAML text, its meaning."""

    key: str
    default: str
    meaning: str


def settings(path: Path) -> list[Setting]:
    """The settings of a file of configs/, in its order."""
    group = path.parent.relative_to(CONFIGS).as_posix()
    prefix = [] if group in (".", "shared") else [group]
    return [
        Setting(".".join([*prefix, *keys]), default, meaning)
        for keys, value, meaning in _entries(_INTRODUCTION.sub("", path.read_text(encoding="utf-8")))
        for keys, default in _flat(keys, value)
    ]


def _entries(text: str) -> Iterator[tuple[list[str], str, str]]:
    """Key (as a path), value and meaning of each line that sets something; a group hands its meaning down."""
    path: list[tuple[int, str, str]] = []
    above: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            above.append(line.lstrip().lstrip("# "))
            continue
        found = _LINE.match(line)
        comments, above = above, []
        if found is None:
            continue
        indent = len(found["indent"])
        path = [parent for parent in path if parent[0] < indent]
        if (path[0][1] if path else found["key"]) in _UNSEEN:
            path = path or [(indent, found["key"], "")]
            continue
        meaning = found["meaning"] or " ".join(comments) or (path[-1][2] if path else "")
        if found["value"] is None:
            path.append((indent, found["key"], meaning))
        else:
            yield [*(key for _, key, _ in path), found["key"]], found["value"], meaning


def _flat(keys: list[str], value: str) -> Iterator[tuple[list[str], str]]:
    """A value in braces as the settings inside."""
    if not (value.startswith("{") and value.endswith("}")):
        yield keys, value
        return
    for item in value[1:-1].split(","):
        key, _, inner = item.partition(":")
        yield [*keys, key.strip()], inner.strip()


def files() -> list[Path]:
    """The files that have settings, those of `train` first."""
    first = ["config", "env", "policy", "ppo", "replay", "runtime", "tracking", "shared"]
    names = {path.relative_to(CONFIGS): path for path in CONFIGS.rglob("*.yaml") if path.stem not in _VARIANTS}
    order = sorted(names, key=lambda name: (*_place(name.parts[0].removesuffix(".yaml"), first), name))
    return [names[name] for name in order if settings(names[name])]


def _place(name: str, first: list[str]) -> tuple[int, str]:
    return (first.index(name), "") if name in first else (len(first), name)


def section(path: Path) -> str:
    """A file's part of the page; raises ValueError for a setting without a meaning."""
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for one in settings(path):
        if not one.meaning and not _speaks_for_itself(one.key):
            raise ValueError(f"{path}: {one.key}: needs a comment that says what it means")
        meaning = one.meaning.replace("|", "\\|")
        lines.append(f"| `{one.key}` | `{one.default}` | {meaning} |")
    return f"## {_title(path)}\n\n{_introduction(path)}" + "\n".join(lines) + "\n"


def _speaks_for_itself(key: str) -> bool:
    return key.split(".")[-1] in ("name", "seed", "ports", "actors", "threads", "multi_pin_nets")


def _title(path: Path) -> str:
    name = path.relative_to(CONFIGS).with_suffix("")
    if len(name.parts) == 2 and name.parts[0] != "shared" and name.stem != "default":
        return f"`{name.parts[0]}={name.stem}`"
    if len(name.parts) == 2 and name.parts[0] != "shared":
        return f"`{name.parts[0]}`"
    return f"Shared by several commands: {name.stem}" if len(name.parts) == 2 else f"`{_command(name.stem)}`"


def _command(stem: str) -> str:
    return "train" if stem == "config" else stem.replace("_", " ")


def _introduction(path: Path) -> str:
    found = _INTRODUCTION.match(path.read_text(encoding="utf-8"))
    lines = [line.lstrip("# ") for line in (found[0] if found else "").splitlines()]
    text = "\n".join(line for line in lines if not line.startswith("@package"))
    return f"{text}\n\n" if text else ""


def page() -> str:
    """The whole page."""
    return HEAD + "\n".join(section(path) for path in files())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
