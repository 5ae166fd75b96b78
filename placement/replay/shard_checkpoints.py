"""A shard's checkpoints on disk, numbered by the shard: the newest is the highest number, whatever any clock says.

Reverb names its checkpoints by the time, takes back the last name, and keeps the last name only. Where a shard starts
anew on a machine whose clock is behind, that is an older one. So each of Reverb's goes into a folder of its own, and
is renamed to the next number once it is whole.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path

COMPLETE = "DONE"
"""The file that Reverb writes last into a checkpoint's folder."""
_BEGUN = ".saving-"


class ShardCheckpoints:
    """The checkpoints in a folder. What a process that was killed had begun there is removed.

    Args:
        folder: is made if it is not there; for one shard.

    Attributes:
        begun: where Reverb is to write; nothing is in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for path in (*folder.glob(f"{_BEGUN}*"), *(path for path in self._numbered() if not _whole(path))):
            shutil.rmtree(path, ignore_errors=True)
        self.begun = Path(tempfile.mkdtemp(prefix=_BEGUN, dir=folder))

    def newest(self) -> Path | None:
        """The last whole checkpoint; None where there is none."""
        saved = [path for path in self._numbered() if _whole(path)]
        return saved[-1] if saved else None

    def add(self, written: Path) -> Path:
        """Makes what Reverb wrote into `begun` the newest, and removes all others; returns where it is now.

        Raises:
            OSError: it cannot be renamed. The newest is the one of before.
        """
        before = self._numbered()
        number = int(before[-1].name) + 1 if before else 1
        added = written.rename(self._folder / f"{number:09d}")
        for path in before:
            shutil.rmtree(path, ignore_errors=True)
        return added

    def put_aside(self, checkpoint: Path) -> Path:
        """Moves one that cannot be read out of the way; returns where it is now."""
        aside = self._folder.with_name(f"{self._folder.name}-damaged")
        aside.mkdir(exist_ok=True)
        places = (aside / f"{checkpoint.name}-{count}" for count in itertools.count(1))
        return checkpoint.rename(next(place for place in places if not place.exists()))

    def _numbered(self) -> list[Path]:
        """Oldest first."""
        found = [path for path in self._folder.iterdir() if path.name.isdigit() and path.is_dir()]
        return sorted(found, key=lambda path: int(path.name))


def _whole(checkpoint: Path) -> bool:
    return (checkpoint / COMPLETE).exists()
