"""Measures a placement: `python evaluate.py design=ariane133_ng45 placement=file.plc json=true`.

The same as `macro-placement evaluate`; `--help` lists every setting.
"""

from __future__ import annotations

import sys

from placement.cli.main import main

if __name__ == "__main__":
    if status := main(["evaluate", *sys.argv[1:]]):
        sys.exit(status)
