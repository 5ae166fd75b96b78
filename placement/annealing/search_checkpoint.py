"""A search on disk: what it needs to go on where it was stopped, the best placement so far, and how its cost fell."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from placement.annealing.annealer import Annealer, AnnealerState
from placement.netlist.design import Design, Placement
from placement.netlist.files import csv_text, write_whole
from placement.netlist.formats.plc import write_placement

STATE_NAME = "search.npz"
BEST_NAME = "best.plc"
HISTORY_NAME = "search.csv"
HISTORY_COLUMNS = ("seconds", "moves", "cost", "cost_name")
"""CPU seconds and moves of each thread, the best cost until then, and which cost: a line per round."""
FORMAT = 3


@dataclasses.dataclass(frozen=True)
class Saved:
    """A search that was stopped.

    Attributes:
        about: what the search is of; another search must not go on from it.
        progress: where it stood, as plain values.
        current, best: of each annealer.
        states: of each annealer.
    """

    about: dict[str, Any]
    progress: dict[str, Any]
    current: tuple[Placement, ...]
    best: tuple[Placement, ...]
    states: tuple[AnnealerState, ...]


def save(
    folder: Path, design: Design, annealers: Sequence[Annealer], *, about: dict[str, Any], progress: dict[str, Any]
) -> None:
    """Writes the search, its course and its best placement into `folder`, each whole or not at all; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    for index, annealer in enumerate(annealers):
        for name, placement in (("current", annealer.placement), ("best", annealer.best)):
            arrays[f"{name}_{index}"] = np.stack([placement.x, placement.y, placement.orientation])
        state = annealer.state
        arrays[f"counters_{index}"] = np.array([state.random, state.moves], dtype=np.uint64)
        arrays[f"values_{index}"] = state.values
    described = {"format": FORMAT, "about": about, "progress": progress, "annealers": len(annealers)}
    arrays["described"] = np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_whole(folder / STATE_NAME, buffer.getvalue())
    rows = [(*point, about["weights"][-1]) for point in progress["history"]]
    write_whole(folder / HISTORY_NAME, csv_text([HISTORY_COLUMNS, *rows]))
    best = min(annealers, key=lambda annealer: annealer.best_cost)
    write_placement(folder / BEST_NAME, design, best.best, comments=[f"best so far of a search, {best.best_cost:.6f}"])


def load(folder: Path, design: Design, about: dict[str, Any]) -> Saved | None:
    """The search in `folder` that is of `about`; None where there is none, or only one that cannot be read."""
    path = folder / STATE_NAME
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            described = json.loads(arrays["described"].tobytes())
            if described["format"] != FORMAT or described["about"] != about:
                return None
            count = int(described["annealers"])
            current, best = (
                tuple(_placement(design, arrays[f"{name}_{index}"]) for index in range(count))
                for name in ("current", "best")
            )
            counters = [arrays[f"counters_{index}"].tolist() for index in range(count)]
            states = tuple(AnnealerState(a, b, arrays[f"values_{at}"]) for at, (a, b) in enumerate(counters))
            return Saved(about, described["progress"], current, best, states)
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def forget(folder: Path) -> None:
    """Removes the state of a search that has ended; its best placement stays."""
    (folder / STATE_NAME).unlink(missing_ok=True)


def _placement(design: Design, values: np.ndarray) -> Placement:
    if values.shape != (3, design.netlist.num_nodes):
        raise ValueError(f"a placement of shape {values.shape}")
    placed = np.ones(design.netlist.num_nodes, dtype=np.bool_)
    return Placement(values[0], values[1], values[2].astype(np.int8), placed, design.initial.fixed)
