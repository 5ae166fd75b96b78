"""`python -m placement` is the command `macro-placement`."""

from __future__ import annotations

import sys

from placement.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
