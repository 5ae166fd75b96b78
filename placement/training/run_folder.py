"""Where a run writes: one folder per design and settings, so that the same command finds its own run again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

UNNAMED = ("run_dir", "tracking")
"""What does not change which run it is."""


def default(values: Mapping[str, Any]) -> str:
    """The run folder for a composed configuration: ``runs/<design>/seed<seed>-<hash of all settings>``.

    Args:
        values: the nested plain mapping of all settings; those of `UNNAMED` do not count.
    """
    settings = {key: value for key, value in values.items() if key not in UNNAMED}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    return str(Path("runs") / design_label(values["design"]) / f"seed{values['seed']}-{digest}")


def working_folder(run_dir: str) -> Path:
    """Where a run's processes write: `run_dir`, or ``runs/remote/s3/BUCKET/PATH`` for ``s3://BUCKET/PATH``."""
    scheme, separator, path = run_dir.partition("://")
    if not separator:
        return Path(run_dir)
    return Path("runs", "remote", scheme, *(part for part in path.split("/") if part not in ("", ".", "..")))


def design_label(design: object) -> str:
    """A folder name for one design (its name, or its file's or folder's name) or several (joined by +)."""
    items = design if isinstance(design, (list, tuple)) else [design]
    return "+".join(_short_name(str(item)) for item in items)


def _short_name(design: str) -> str:
    path = Path(design)
    if path.name.startswith("netlist.pb.txt") and path.parent.name:
        return path.parent.name
    return path.name.removesuffix(".gz").removesuffix(".pb.txt") or "design"
