"""The placement that a command is given: a `.plc` file, a DEF file of an imported design, or the design's own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from placement.evaluation.settings import EvaluateConfig, LegaliseConfig, SearchConfig
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import check_placement_file, find, load
from placement.netlist.user_placement import canvas_note, is_def, read_clustered_def

SOFT_PLACER = "analytic"
"""Of soft macros that no file places."""


def load_placement(
    config: EvaluateConfig | SearchConfig | LegaliseConfig, design: Design | None = None
) -> tuple[Design, Placement, str]:
    """The design on the canvas that the settings name, the placement, and its name.

    Args:
        config: says which.
        design: where it was loaded already with `config.initial` and no placement is named; None: it is loaded.

    Raises:
        DesignError: the design or the placement cannot be found or read.
    """
    assert config.design is not None
    for key, path in (("placement", config.placement), ("initial", config.initial)):
        if path is not None:
            check_placement_file(key, path)
    if config.placement is not None and is_def(config.placement):
        design = load(config.design, config.initial)
        return design, placed_by_def(config.placement, config.design, design), Path(config.placement).name
    canvas_file = config.initial if config.initial is not None else config.placement
    if design is None or config.placement is not None:
        design = load(config.design, canvas_file)
    if config.placement is None:
        return design, _own(design), Path(canvas_file).name if canvas_file else "initial.plc"
    if config.initial is None:
        return design, design.initial, Path(config.placement).name
    return design, placed_by_file(config.placement, config.design, design), Path(config.placement).name


def load_placements(paths: Sequence[str], name: str, design: Design) -> dict[str, Placement]:
    """Several placements of one design, by their files' names; where two are alike, by what differs in their paths.

    Args:
        paths: `.plc` and DEF files.
        name: of the design, as `load` takes it.
        design: the same, loaded; its canvas counts.

    Raises:
        DesignError: a file is named twice, cannot be found or read, or is of another design.
    """
    real = [Path(path).resolve() for path in paths]
    for path, file in zip(paths, real, strict=True):
        check_placement_file("placement", path)
        if real.count(file) > 1:
            raise DesignError(f"placement={path}: is given {real.count(file)} times; once is enough")
    return {label: placed_by_file(path, name, design) for label, path in zip(_labels(real), paths, strict=True)}


def _labels(files: Sequence[Path]) -> list[str]:
    """A short name for each file, no two alike."""
    if len({file.name for file in files}) == len(files):
        return [file.name for file in files]
    parts = [file.parts for file in files]
    while len({own[0] for own in parts}) == 1:
        parts = [own[1:] for own in parts]
    while len({own[-1] for own in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [own[:-1] for own in parts]
    return ["/".join(own) for own in parts]


def placed_by_file(path: str, name: str, design: Design) -> Placement:
    """The placement in a `.plc` or DEF file, on the canvas of `design`; a note says where it was made for another.

    Raises:
        DesignError: as `read_placement` and `placed_by_def`.
    """
    if is_def(path):
        return placed_by_def(path, name, design)
    canvas, placement = read_placement(path, design.netlist, located=design.initial)
    if note := canvas_note(path, canvas, design.canvas, done="evaluated"):
        print(note, file=sys.stderr)
    return placement


def placed_by_def(path: str, name: str, design: Design) -> Placement:
    """Where a DEF file puts the macros; soft macros without placed cells are placed, with a note.

    Args:
        path: the DEF file.
        name: of the design, as `load` takes it.
        design: the same, loaded.

    Raises:
        DesignError: as `read_clustered_def`.
    """
    placement, has_cells = read_clustered_def(path, find(name).parent, design)
    return placement if has_cells else _with_soft(design, placement, f"{path} places no standard cells")


def has_macro_places(design: Design) -> bool:
    """Whether the design came with places for its movable macros: an import puts those without one into one point."""
    macros = design.placing_order
    if len(macros) < 2:
        return True
    points = np.stack((design.initial.x[macros], design.initial.y[macros]), axis=1)
    _, member, count = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    return 2 * int((count[member.reshape(-1)] > 1).sum()) <= len(macros)


def _own(design: Design) -> Placement:
    """The placement that the design came with; soft macros that all stand in one point are placed."""
    if not has_macro_places(design):
        print(f"note: the macros of {design.name} have no places yet: they stand in one point", file=sys.stderr)
    soft = design.netlist.soft
    if len(soft) < 2 or np.ptp(design.initial.x[soft]) > 0 or np.ptp(design.initial.y[soft]) > 0:
        return design.initial
    return _with_soft(design, design.initial, f"the standard cells of {design.name} have no places")


def _with_soft(design: Design, placement: Placement, why: str) -> Placement:
    if not len(design.netlist.soft):
        return placement
    from placement.engine.soft import place_soft_macros

    print(f"note: {why}: soft macros are placed by {SOFT_PLACER}", file=sys.stderr)
    return place_soft_macros(design, placement, SOFT_PLACER)
