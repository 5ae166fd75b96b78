"""A run's best placements over its iterations: a file for each, thinned so that a long run keeps a few dozen.

They stand in `best_history/`, named after the file of the best placement and the iteration: `best-000120.plc`.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER_NAME = "best_history"
MOST_KEPT = 32
"""Placements of one design; beyond that every second one goes. The first and the newest stay."""


def entries(folder: Path, name: str) -> list[tuple[int, Path]]:
    """The iterations and files that a run folder holds of a best placement's file, in order; none in older runs."""
    history, stem = folder / FOLDER_NAME, Path(name).stem
    if not history.is_dir():
        return []
    found = [(re.fullmatch(rf"{re.escape(stem)}-(\d+)\.plc", path.name), path) for path in history.iterdir()]
    return sorted((int(match[1]), path) for match, path in found if match is not None)


def next_path(folder: Path, name: str, iteration: int) -> Path:
    """Where the best placement of an iteration goes. Makes the folder, and room in it; raises OSError."""
    history = folder / FOLDER_NAME
    history.mkdir(exist_ok=True)
    path = history / f"{Path(name).stem}-{iteration:06}.plc"
    known = [file for _, file in entries(folder, name) if file != path]
    if len(known) >= MOST_KEPT:
        for file in known[1::2]:
            file.unlink(missing_ok=True)
    return path
