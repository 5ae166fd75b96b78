"""What of a training run is kept to hand its policy on: the settings and the parameters."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from placement.config import ConfigError
from placement.training.checkpoint import Checkpoints
from placement.training.run_record import SETTINGS_NAME, VERSIONS_NAME, read_settings
from placement.training.saving import FOLDER_NAME
from placement.training.trained_run import parameter_shapes

DONE_NAME = "commit_success.txt"
"""By which Orbax knows that it wrote a folder whole; it writes the folder's path into it, and does not read it."""


def keep_policy(run: Path, folder: Path) -> int:
    """Writes of a run what placing designs needs: its settings, its versions, and its newest parameters alone.

    Args:
        run: the run folder.
        folder: the new run folder; not there yet, or empty.

    Returns:
        The parameters' iteration.

    Raises:
        ConfigError: `run` is no run folder, or something stands in `folder`.
        CheckpointError: the run has no checkpoint, or a damaged one.
    """
    settings = read_settings(run, key="run")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"folder={str(folder)!r}: is not empty")
    like = {"parameters": parameter_shapes(settings.policy)}
    with (
        contextlib.closing(Checkpoints(run / FOLDER_NAME, read_only=True)) as old,
        contextlib.closing(Checkpoints(folder / FOLDER_NAME)) as new,
    ):
        restored = old.restore(like)
        new.save(restored.step, restored.tree, {})
    for name in (SETTINGS_NAME, VERSIONS_NAME):
        shutil.copyfile(run / name, folder / name)
    for path in folder.rglob(DONE_NAME):  # has this machine's path
        path.write_text("complete\n", encoding="utf-8")
    return restored.step
