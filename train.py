"""Trains a macro placement policy: `python train.py design=clustered40 seed=1`; `--help` lists every setting.

The same command resumes an interrupted run. `python train.py -m design=a,b seed=1,2` sweeps.
The same as `macro-placement train`.
"""

from __future__ import annotations

import sys

from placement.cli.main import main

if __name__ == "__main__":
    if status := main(["train", *sys.argv[1:]]):
        sys.exit(status)
