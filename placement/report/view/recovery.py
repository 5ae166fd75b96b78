"""Unsaved steps on disk, so that they outlive a server that was killed.

They are kept by what they began with: the same placement of the same design gets them back, no other one does.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from placement.netlist.files import write_whole
from placement.report.view.session import Session
from placement.report.view.steps import read_steps, steps_text

STATE_VARIABLE = "XDG_STATE_HOME"


def state_folder() -> Path:
    """Where programs keep what should outlive them (XDG Base Directory Specification)."""
    home = os.environ.get(STATE_VARIABLE)
    return (Path(home) if home else Path.home() / ".local" / "state") / "macro-placement" / "view"


class Recovery:
    """The unsaved steps of sessions, in a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = state_folder() if folder is None else folder

    def keep(self, session: Session) -> None:
        """Writes a session's steps, or removes their file where nothing is unsaved; raises OSError."""
        file = self._file(session)
        if session.is_saved or not session.steps:
            file.unlink(missing_ok=True)
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(file, steps_text(session.design, session.name, session.steps))

    def bring_back(self, session: Session) -> int:
        """Does the steps that are kept to a session that has just been opened; returns how many.

        Raises:
            DesignError: the file is damaged.
        """
        file = self._file(session)
        if not file.is_file():
            return 0
        steps = read_steps(file, session.design)
        for step in steps:
            session.redo_read(step)
        return len(steps)

    def _file(self, session: Session) -> Path:
        digest = hashlib.sha256(f"{session.design.name}\n{session.name}\n".encode())
        for array in (session.start.x, session.start.y, session.start.orientation, session.start.fixed):
            digest.update(array.tobytes())
        return self.folder / f"{digest.hexdigest()[:32]}.json"
