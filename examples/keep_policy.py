"""Copies the files of a training run that are needed to place designs (about 100 kB), to share or commit a policy.

    python examples/keep_policy.py runs/mine policies/mine
    macro-placement sample design=DESIGN checkpoint=policies/mine

The project's own policy, checkpoint=base, was made in this way (policies/base/README.md).
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
from pathlib import Path

from placement.config import ConfigError
from placement.training.checkpoint import CheckpointError, Checkpoints
from placement.training.run_folder import CHECKPOINTS_NAME, SETTINGS_NAME, VERSIONS_NAME, read_settings
from placement.training.trained_policy import parameter_shapes

DONE_NAME = "commit_success.txt"
"""Marks a folder that Orbax wrote completely. Orbax writes the folder's path into this file, but does not read it."""


def keep_policy(run: Path, folder: Path) -> int:
    """Copies the files of a run that are needed to place designs: settings, versions and only the newest parameters.

    Returns the parameters' iteration. Raises ConfigError if `run` is not a run folder or the new `folder` is not empty,
    and CheckpointError.
    """
    settings = read_settings(run, key="run")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"folder={str(folder)!r}: is not empty")
    like = {"parameters": parameter_shapes(settings.policy)}
    with (
        contextlib.closing(Checkpoints(run / CHECKPOINTS_NAME, read_only=True)) as old,
        contextlib.closing(Checkpoints(folder / CHECKPOINTS_NAME)) as new,
    ):
        restored = old.restore(like)
        new.save(restored.step, restored.tree, {})
    for name in (SETTINGS_NAME, VERSIONS_NAME):
        shutil.copyfile(run / name, folder / name)
    for path in folder.rglob(DONE_NAME):  # The file contains a path of this machine.
        path.write_text("complete\n", encoding="utf-8")
    return restored.step


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
