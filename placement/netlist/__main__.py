"""`python -m placement.netlist …`: the same commands as `macro-placement`, under an older name."""

from __future__ import annotations

import sys

from placement.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
