"""Request for a run of a placer, and the names of the files in its folder."""

from __future__ import annotations

import dataclasses
import time

REQUEST_NAME, CURVE_NAME, PLACEMENT_NAME = "request.json", "curve.json", "placement.plc"
LEAST_SHARE = 0.1  # minimum share of the CPU time that a placer is given, even if loading took longer


@dataclasses.dataclass(frozen=True)
class Request:
    """Request for a run."""

    design: str  # the design's folder
    placer: str  # a name of `placement.benchmark.built_in`, or package.module:callable
    seed: int  # seed of all random numbers
    seconds: float  # CPU seconds since the start of the process
    checkpoint: str = "base"  # checkpoint for placers that use a policy

    def left(self) -> float:
        """Remaining CPU seconds; at least `LEAST_SHARE` of all."""
        return max(self.seconds - time.process_time(), LEAST_SHARE * self.seconds)
