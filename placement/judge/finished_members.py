"""Networks of an ensemble that is still in training, kept on disk beside the judge that they will be part of."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from placement.judge.ensemble import FORM, Member, arrays_of, members_of
from placement.judge.examples import Example
from placement.judge.settings import JudgeTrainConfig
from placement.netlist.files import write_whole
from placement.netlist.flat_design import DAMAGED_NPZ

SUFFIX = ".part"
_NOT_ASKED = ("data", "out", "workers", "verbose", "holdout")


class FinishedMembers:
    """Keeps members as they are trained, in `<out>.part`.

    Args:
        config: of the training.
        examples: what it learns from; members of other settings or examples are not taken back.

    Attributes:
        path: of the file.
    """

    def __init__(self, config: JudgeTrainConfig, examples: Sequence[Example]) -> None:
        self.path = Path(config.out + SUFFIX)
        self._about = _identity(config, examples)

    def load(self) -> list[Member]:
        """Those of the same training that was stopped; none where there was none, or the file is damaged."""
        try:
            with np.load(io.BytesIO(self.path.read_bytes()), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays.pop("header").tobytes())
            return members_of(header["widths"], arrays) if header["about"] == self._about else []
        except (OSError, TypeError, *DAMAGED_NPZ):
            return []

    def keep(self, members: Sequence[Member]) -> None:
        """Writes them, whole or not at all; raises OSError."""
        header = {"about": self._about, "widths": [member.width for member in members]}
        out = io.BytesIO()
        np.savez_compressed(out, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays_of(members))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, out.getvalue())

    def forget(self) -> None:
        """Once the judge is written."""
        self.path.unlink(missing_ok=True)


def _identity(config: JudgeTrainConfig, examples: Sequence[Example]) -> str:
    asked = {name: value for name, value in dataclasses.asdict(config).items() if name not in _NOT_ASKED}
    digest = hashlib.sha256(json.dumps([FORM, asked], sort_keys=True).encode())
    for example in examples:
        digest.update(example.name.encode())
        for array in (*example.geometry, *example.targets):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
