"""`macro-placement fetch`: downloads public designs that the project does not ship."""

import dataclasses
import shlex
from pathlib import Path

from rich.console import Console

from placement.netlist.public_designs import PUBLIC_DESIGNS, SOURCE, PublicFile, fetch, public_design
from placement.report.progress_bar import progress_bars


@dataclasses.dataclass(frozen=True, kw_only=True)
class FetchConfig:
    """Settings of `fetch`.

    Attributes:
        name: the design; null: list all designs
        out: folder for the files; null: where commands find the design by name
        source: address of a copy of the MacroPlacement repository's files (http, https or file); {ref} in it is
            replaced by a branch or commit
    """

    name: str | None = None
    out: str | None = None
    source: str = SOURCE


def fetch_design(config: FetchConfig, console: Console) -> None:
    """Downloads a public design and prints how to use it, or lists all."""
    if config.name is None:
        for name, design in PUBLIC_DESIGNS.items():
            _say(console, f"{name:<18} {design.size / 1e6:5.1f} MB  {design.about}")
        return
    design = public_design(config.name)
    arrived = dict.fromkeys(design.files, 0)
    with progress_bars(console, config.name) as (bar,):

        def progress(file: PublicFile, done: int) -> None:
            arrived[file] = done
            bar(sum(arrived.values()) / design.size, file.name)

        out = None if config.out is None else Path(config.out)
        folder = fetch(config.name, out, source=config.source, progress=progress)
    _say(console, f"{config.name}: {len(design.files)} files, {design.size / 1e6:.1f} MB, verified: {folder}")
    if design.importing:
        arguments = design.importing.replace("{}", shlex.quote(str(folder)))
        _say(console, f"next: macro-placement import {arguments} --out designs/{config.name}")
    elif out is None:
        _say(console, f"next: macro-placement search design={config.name}")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
