"""Extracts from a training run the files that placing designs needs, about 100 kB, to share or commit a policy.

    python examples/keep_policy.py runs/mine policies/mine
    macro-placement sample design=DESIGN checkpoint=policies/mine

The project's own policy, checkpoint=base, was made in this way (policies/base/README.md).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from placement.config import ConfigError
from placement.training.checkpoint import CheckpointError
from placement.training.trained_policy import keep_policy


def main() -> None:
    """Parses the command line and extracts the policy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a training run")
    parser.add_argument("folder", type=Path, help="the new folder")
    args = parser.parse_args()
    try:
        iteration = keep_policy(args.run, args.folder)
    except (ConfigError, CheckpointError) as error:
        raise SystemExit(str(error)) from None
    print(f"{args.folder}: the policy after iteration {iteration}")


if __name__ == "__main__":
    main()
