"""`python -m placement.netlist …`: the netlist commands of `macro-placement` where it is not installed."""

from __future__ import annotations

import sys

from placement.cli.netlists import main

if __name__ == "__main__":
    sys.exit(main())
