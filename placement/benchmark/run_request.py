"""What a run of a placer is asked for, and the names of the files in its folder."""

from __future__ import annotations

import dataclasses
import time

REQUEST_NAME, CURVE_NAME, PLACEMENT_NAME = "request.json", "curve.json", "placement.plc"
LEAST_SHARE = 0.1
"""Of the CPU time, which a placer is given even if loading took longer."""


@dataclasses.dataclass(frozen=True)
class Request:
    """What a run is asked for.

    Attributes:
        design: the design's folder.
        placer: a name of `placement.benchmark.built_in`, or package.module:callable.
        seed: of everything random.
        seconds: of CPU time since the process began.
        checkpoint: of placers that use a policy.
    """

    design: str
    placer: str
    seed: int
    seconds: float
    checkpoint: str = "base"

    def left(self) -> float:
        """CPU seconds that are left; at least `LEAST_SHARE` of all."""
        return max(self.seconds - time.process_time(), LEAST_SHARE * self.seconds)
