"""The data set on disk: a folder per design, in it the design as an import writes it, and a file per checked placement.

    OUT/<design>/netlist.pb.txt.gz, …       the design as an import writes it
    OUT/<design>/samples/<recipe>.npz       a placement, soft macros annealed, and what the check said of it

Every file is written whole or not at all, so whoever was stopped goes on with the file that is missing. Nothing is
pickled.

Axis legend: N nodes of the clustered netlist, X gcells across, Y gcells up. Lengths in µm.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placement.judge.truth import Truth
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import csv_text, write_whole
from placement.netlist.flat_design import DAMAGED_NPZ
from placement.netlist.load import NETLIST_NAMES, load

SAMPLES_NAME = "samples"
TABLE_NAME = "checks.csv"
FORM = 2
_MAPS = ("horizontal", "vertical")
_SCALARS = tuple(field for field in Truth._fields if field not in _MAPS)


class Sample(NamedTuple):
    """A placement, soft macros annealed as the flat check begins its cells, and what the check said of it.

    Where macros overlap nothing could anneal the soft ones, and they are as they were given.
    """

    name: str
    placement: Placement
    truth: Truth


def design_folders(out: Path) -> list[Path]:
    """The designs of a data set, by name.

    Raises:
        DesignError: there is none.
    """
    # A process that was killed while it wrote a design leaves a folder whose name begins with a dot.
    found = [path for path in out.iterdir() if not path.name.startswith(".")] if out.is_dir() else []
    folders = sorted(path for path in found if is_design(path))
    if not folders:
        raise DesignError(f"{out}: no data set: no folder in it is a design; judge data makes one")
    return folders


def is_design(folder: Path) -> bool:
    """Whether a design was written there to the end."""
    return any((folder / name).is_file() for name in NETLIST_NAMES)


def write_sample(folder: Path, sample: Sample) -> None:
    """Writes a sample to its design's folder; raises OSError."""
    path = folder / SAMPLES_NAME / f"{sample.name}.npz"
    path.parent.mkdir(exist_ok=True)
    out = io.BytesIO()
    np.savez_compressed(
        out,
        form=np.int64(FORM),
        x=sample.placement.x,
        y=sample.placement.y,
        orientation=sample.placement.orientation,
        scalars=np.array([getattr(sample.truth, field) for field in _SCALARS]),
        horizontal=sample.truth.horizontal,
        vertical=sample.truth.vertical,
    )
    write_whole(path, out.getvalue())


def read_sample(path: Path, design: Design) -> Sample:
    """A sample of `design`.

    Raises:
        DesignError: the file cannot be read, is cut or damaged, is of another form, or of another design.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        form = int(arrays["form"])
    except OSError as error:
        raise DesignError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (*DAMAGED_NPZ, TypeError) as error:
        raise _damaged(path, error) from None
    if form != FORM:
        raise DesignError(
            f"{path}: is of form {form}; this version reads form {FORM}: "
            f"remove {path.parent}, and judge data makes all of it again"
        )
    initial = design.initial
    try:
        placement = Placement(
            x=arrays["x"],
            y=arrays["y"],
            orientation=arrays["orientation"],
            placed=np.ones_like(initial.placed),
            fixed=initial.fixed,
        )
        scalars = dict(zip(_SCALARS, arrays["scalars"].tolist(), strict=True))
        return Sample(path.stem, placement, Truth(**scalars, **{name: arrays[name] for name in _MAPS}))
    except (*DAMAGED_NPZ, TypeError) as error:
        if isinstance(error, DesignError):
            raise DesignError(f"{path}: {error}; is it of another design?") from None
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> DesignError:
    return DesignError(f"{path}: no sample, or a damaged one: {error}; remove it, and judge data makes it again")


def read_samples(folder: Path) -> tuple[Design, list[Sample]]:
    """A design of a data set and all its samples, by name; raises DesignError."""
    design = load(str(folder))
    return design, [read_sample(path, design) for path in sorted((folder / SAMPLES_NAME).glob("*.npz"))]


def write_table(folder: Path) -> None:
    """Writes a design's figures, a line for each sample, for people and spreadsheets; raises DesignError, OSError."""
    _, samples = read_samples(folder)
    rows = [[sample.name, *(f"{getattr(sample.truth, field):.8g}" for field in _SCALARS)] for sample in samples]
    write_whole(folder / TABLE_NAME, csv_text([["placement", *_SCALARS], *rows]))
