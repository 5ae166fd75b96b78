"""A window: one design, the placements that are open, and the pages that look at them.

All of it is used from one thread, the server's. Lengths are in µm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import placement_text
from placement.report.view.scene import design_values, placement_values, session_values
from placement.report.view.session import Session
from placement.report.view.steps import steps_text

Send = Callable[[dict[str, Any]], None]


class Window:
    """One design and its open placements.

    Attributes:
        design: what is placed.
        sessions: the placements, at least one.
        folder: where files without a folder are saved.
        title: of the page.
    """

    def __init__(self, design: Design, sessions: Sequence[Session], *, folder: Path, title: str = "") -> None:
        self.design, self.sessions, self.folder = design, list(sessions), folder
        self.title = title or design.name
        self._pages: dict[str, Send] = {}
        self._dragging: dict[str, int] = {}

    def session(self, index: int) -> Session:
        """An open placement; raises DesignError for an unknown one."""
        if not 0 <= index < len(self.sessions):
            raise DesignError(f"session {index}: the window has placements 0 to {len(self.sessions) - 1}")
        return self.sessions[index]

    def values(self) -> dict[str, Any]:
        """All that a page needs to begin."""
        return {
            "title": self.title,
            "design": design_values(self.design),
            "sessions": [
                {"placement": placement_values(one.placement), "state": session_values(one)} for one in self.sessions
            ],
            "folder": str(self.folder),
        }

    def join(self, page: str, send: Send) -> None:
        """Tells a page of everything from now on."""
        self._pages[page] = send

    def leave(self, page: str) -> None:
        """Forgets a page; what it was dragging goes back."""
        self._pages.pop(page, None)
        self.release(page)

    def tell(self, event: str, values: Mapping[str, Any], *, but: str = "") -> None:
        """Sends an event to every page, or to all but one."""
        for page, send in list(self._pages.items()):
            if page != but:
                send({"event": event, **values})

    def check_free(self, page: str, index: int) -> None:
        """Raises DesignError if another page is dragging in a placement."""
        if any(other != page and at == index for other, at in self._dragging.items()):
            raise DesignError("another window is dragging a macro of this placement; wait for it to drop it")

    def hold(self, page: str, index: int) -> None:
        """Takes note that a page is dragging in a placement, until it is released."""
        self._dragging[page] = index

    def release(self, page: str) -> None:
        """Ends a page's change; what it has not dropped goes back, for all to see."""
        index = self._dragging.pop(page, None)
        if index is None:
            return
        session = self.sessions[index]
        if session.is_dragging:
            session.let_go()
            state = {"placement": placement_values(session.placement), "state": session_values(session)}
            self.tell("changed", {"session": index, **state})

    def save(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Writes a placement, or its steps, to a file: whole or not at all, over a file only where told to.

        Returns:
            `{"path": …}`, or `{"exists": path}` where there is a file that may not be replaced.

        Raises:
            DesignError: the name is none of a file.
            OSError: the file cannot be written.
        """
        index = int(request.get("session", 0))
        session, form = self.session(index), str(request.get("form", "plc"))
        name = str(request["path"]).strip()
        path = self.folder / Path(name).expanduser()
        if not name or path.is_dir():
            raise DesignError(f"{name!r}: give the name of a file")
        if path.exists() and request.get("replace") is not True:
            return {"exists": str(path)}
        if form == "plc":
            text = placement_text(path.name, self.design, session.placement)
        elif form == "steps":
            text = steps_text(self.design, session.name, session.steps)
        else:
            raise DesignError(f"form {form!r}: must be plc or steps")
        write_whole(path, text)
        if form == "plc":
            session.mark_saved()
            self.tell("changed", {"session": index, "state": session_values(session)})
        return {"path": str(path)}
