"""The process of one run of a placer: `python -m placement.benchmark.placer_process request.json`.

It loads the design, lets the placer work for what is left of the CPU time, and writes the placement beside the request.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

from placement.config import ConfigError
from placement.netlist.design import Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import write_placement

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


def main(path: str) -> int:
    """Runs the request in a file; 2: the placer or the design cannot be used, and stderr says why."""
    request = Request(**json.loads(Path(path).read_text(encoding="utf-8")))
    folder = Path(path).resolve().parent
    # late: the clock runs, and a design is loaded once
    from placement.benchmark.built_in import place

    try:
        found = place(request, folder)
    except (DesignError, ConfigError) as error:
        print(error, file=sys.stderr)
        return 2
    write_found(folder, found.design, found.placement, found.curve)
    return 0


def write_found(folder: Path, design: Any, placement: Placement, curve: tuple[tuple[float, float], ...]) -> None:
    """Writes the placement, and the curve of (CPU seconds since the process began, best chip cost)."""
    write_placement(folder / PLACEMENT_NAME, design, placement)
    write_whole(folder / CURVE_NAME, json.dumps(curve) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
