"""Process of one run of a placer: `python -m placement.benchmark.placer_process request.json`.

It loads the design, runs the placer for the remaining CPU time, and writes the placement beside the request.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from placement.benchmark.built_in import CURVE_NAME, PLACEMENT_NAME, Request, place
from placement.config import ConfigError
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import write_placement


def main(path: str) -> int:
    """Runs the request in a file; returns 2, with the reason on stderr, if the placer or the design cannot be used."""
    request = Request(**json.loads(Path(path).read_text(encoding="utf-8")))
    folder = Path(path).resolve().parent
    try:
        found = place(request, folder)
    except (DesignError, ConfigError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # the time of a training was spent before it could begin
        print(f"found no placement in {request.seconds:g} CPU-s", file=sys.stderr)
        return 2
    write_placement(folder / PLACEMENT_NAME, found.design, found.placement)
    write_whole(folder / CURVE_NAME, json.dumps(found.curve) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
