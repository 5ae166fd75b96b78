"""Request for a run of a placer, and the names of the files in its folder."""

from __future__ import annotations

import dataclasses
import time

REQUEST_NAME, CURVE_NAME, PLACEMENT_NAME = "request.json", "curve.json", "placement.plc"
LEAST_SHARE = 0.1
"""Minimum share of the CPU time that a placer is given, even if loading took longer."""


@dataclasses.dataclass(frozen=True)
class Request:
    """Request for a run.

    Attributes:
        design: the design's folder.
        placer: a name of `placement.benchmark.built_in`, or package.module:callable.
        seed: seed of all random numbers.
        seconds: CPU seconds since the start of the process.
        checkpoint: checkpoint for placers that use a policy.
    """

    design: str
    placer: str
    seed: int
    seconds: float
    checkpoint: str = "base"

    def left(self) -> float:
        """Remaining CPU seconds; at least `LEAST_SHARE` of all."""
        return max(self.seconds - time.process_time(), LEAST_SHARE * self.seconds)
