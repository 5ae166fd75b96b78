"""Policies that come with the project, so that a new design is placed without any training: `policies/`."""

from __future__ import annotations

from pathlib import Path

from placement.config import ConfigError
from placement.netlist.load import data_folder
from placement.training.object_storage.store import is_address
from placement.training.run_record import SETTINGS_NAME
from placement.training.stored_run import fetched


def policy_folder(run: str | Path, *, key: str) -> Path:
    """The run folder that a setting means: a folder of the user's own, or a shipped policy's by its name.

    Args:
        run: a path, or a name as `base`, or an address of object storage, whose run is copied for this program. What
            is there under that path comes first.
        key: the setting, for messages.

    Raises:
        ConfigError: there is none.
    """
    if is_address(str(run)):
        return fetched(str(run), key=key)
    path = Path(run)
    if path.exists():
        return path
    shipped = data_folder("policies") / path.name
    if len(path.parts) == 1 and (shipped / SETTINGS_NAME).is_file():
        return shipped
    known = ", ".join(shipped_policies())
    raise ConfigError(
        f"{key}={str(run)!r}: must be the folder of a training run, or a policy that comes with the project"
        f" ({known}): there is no such folder"
    )


def shipped_policies() -> list[str]:
    """The names that `policy_folder` knows."""
    return sorted(found.parent.name for found in data_folder("policies").glob(f"*/{SETTINGS_NAME}"))
