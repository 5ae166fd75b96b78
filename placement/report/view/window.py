"""A window: one design, the placements that are open, and the pages that look at them.

All of it is used from one thread, the server's. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from placement.netlist.constraints import SnapGrid
from placement.netlist.constraints_file import CONSTRAINTS_NAME, constraints_text
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import placement_text
from placement.report.view.actions import Action, Job, Outcome, Task
from placement.report.view.cells import Cells
from placement.report.view.recovery import Recovery
from placement.report.view.run_watch import Curve, News, RunWatch, curve_values
from placement.report.view.scene import constraint_values, design_values, opened_values, places_values, session_values
from placement.report.view.session import Session
from placement.report.view.steps import Step, steps_text

Send = Callable[[dict[str, Any]], None]
Export = Callable[[Placement, str], bytes]
"""Makes a file's bytes of a placement and the file's name."""
_TOLD = ("name", "title", "hint", "command", "can_stop", "fixes_chosen")
"""Of an action, to the page."""
UNSAVED = "SAVED.plc"
"""Stands in command lines for a placement that is in no file."""


@dataclasses.dataclass(frozen=True)
class Services:
    """What a window has from other parts of the program.

    Attributes:
        actions: what can be done to a placement.
        exports: other forms than `.plc` that a placement is saved in, by name.
        watch: the run folder that is looked at, whose best placements are opened as they come.
        recovery: where unsaved steps are kept; None: nowhere.
        read_cells: reads the standard cells of the flat netlist; None: there is none.
        read_tracks: reads the routing tracks of the flat netlist; None: there is none.
        constraints_path: the file that the commands take the design's constraints from.
    """

    actions: Sequence[Action] = ()
    exports: Mapping[str, Export] = dataclasses.field(default_factory=dict)
    watch: RunWatch | None = None
    recovery: Recovery | None = None
    read_cells: Callable[[], Cells | None] | None = None
    constraints_path: Path | None = None
    read_tracks: Callable[[], SnapGrid] | None = None


class Window:
    """One design and its open placements.

    Attributes:
        design: what is placed.
        sessions: the placements, at least one.
        folder: where files without a folder are saved.
        title: of the page.
        services: what it has from other parts of the program.
        later: has a function called in the thread that the window is used from.
    """

    def __init__(
        self,
        design: Design,
        sessions: Sequence[Session],
        *,
        folder: Path,
        title: str = "",
        services: Services = Services(),
    ) -> None:
        self.design, self.sessions, self.folder = design, list(sessions), folder
        self.title = title or design.name
        self.services = services
        self.actions = {action.name: action for action in services.actions}
        self.exports, self.watch, self.recovery = services.exports, services.watch, services.recovery
        self.later: Callable[[Callable[[], None]], None] = lambda call: call()
        self._cells: Cells | None = None
        self._curve: Curve | None = None
        self._of_run: list[int] = []
        self._jobs: dict[int, Job] = {}
        self._files: dict[int, str] = {}
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
            "sessions": [opened_values(one) for one in self.sessions],
            "folder": str(self.folder),
            "exports": list(self.exports),
            "constraints_path": str(self.services.constraints_path or CONSTRAINTS_NAME),
            "has_cells": self.services.read_cells is not None,
            "run": self._run_values(),
            "actions": [
                {
                    **{
                        name: getattr(action, name)
                        for name in ("name", "title", "hint", "command", "can_stop", "fixes_chosen")
                    },
                    "parameters": [dataclasses.asdict(one) for one in action.parameters],
                }
                for action in self.actions.values()
            ],
            "running": {str(index): job.action.name for index, job in self._jobs.items()},
            "files": {str(index): file for index, file in self._files.items()},
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
        """Raises DesignError if another page is dragging in a placement, or a job is at work on it."""
        if index in self._jobs:
            raise DesignError(f"{self._jobs[index].action.title} is at work on this placement; stop it, or wait")
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
            self.tell("changed", {"session": index, **opened_values(session)})

    def changed(self, index: int, step: Step | None, *, back: bool = False) -> None:
        """Tells every page how a placement stands now, after a step or `back` before it; keeps its unsaved steps."""
        session = self.sessions[index]
        values: dict[str, Any] = {"session": index, "state": session_values(session)}
        if step is not None:
            values["places"] = places_values(step.before if back else step.after)
            if step.new is not None:
                values["constraints"] = constraint_values(session.constraints)
        self.tell("changed", values)
        if self.recovery is not None:
            try:
                self.recovery.keep(self.sessions[index])
            except OSError as error:
                self.tell("trouble", {"text": f"unsaved steps cannot be kept: {error}"})

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
        text: str | bytes
        if form == "plc":
            text = placement_text(path.name, self.design, session.placement)
        elif form == "steps":
            text = steps_text(self.design, session.name, session.steps)
        elif form == "constraints":
            text = constraints_text(self.design.netlist, session.constraints)
        elif form in self.exports:
            text = self.exports[form](session.placement, path.name)
        else:
            raise DesignError(
                f"form {form!r}: must be one of {', '.join(['plc', 'steps', 'constraints', *self.exports])}"
            )
        write_whole(path, text)
        if form == "plc":
            session.mark_saved()
            self._files[index] = str(path)
            self.tell("changed", {"session": index, "state": session_values(session), "file": str(path)})
            self.changed(index, None)
        return {"path": str(path)}

    def take_news(self, news: News) -> None:
        """Takes over what is new in the run folder, and tells every page."""
        opened = []
        self._curve = news.curve or self._curve
        for name, placement in news.best:
            session = Session(self.design, placement, name=name, weights=self.sessions[0].weights)
            self._of_run.append(len(self.sessions))
            self.sessions.append(session)
            opened.append(opened_values(session))
        if news.curve is not None or opened:
            self.tell("run", {"run": self._run_values(), "opened": opened})

    def _run_values(self) -> dict[str, Any] | None:
        if self.watch is None:
            return None
        return {"folder": str(self.watch.folder), "curve": curve_values(self._curve), "sessions": list(self._of_run)}

    def start(self, index: int, name: str, values: Mapping[str, Any]) -> None:
        """Starts an action on a placement; its result becomes a step; raises DesignError."""
        session, action = self.session(index), self.actions.get(name)
        if action is None:
            raise DesignError(f"action {name!r}: there are {', '.join(self.actions) or 'none'}")
        checked = action.checked(values)
        design = session.design_now()
        command = action.line(self._files.get(index, UNSAVED), checked)

        def task(stopped: Callable[[], bool], report: Callable[[float, str], None]) -> Task:
            return Task(design, session.placement, session.weights, checked, stopped, report)

        def report(progress: float, text: str) -> None:
            self.later(lambda: self._tell_job(index, action, "running", progress=progress, text=text))

        self._tell_job(index, action, "running", progress=0.0, text="")
        self._jobs[index] = Job(
            action,
            task,
            report=report,
            finished=lambda result: self.later(lambda: self._finish(index, action, command, result)),
        )

    def cells(self) -> dict[str, Any]:
        """The standard cells as they were placed last; raises DesignError where none are."""
        if self._cells is None and self.services.read_cells is not None:
            self._cells = self.services.read_cells()
        if self._cells is None:
            raise DesignError(f"{self.design.name}: no standard cells are placed; the flat check places them")
        return self._cells.values()

    def tracks(self) -> dict[str, float]:
        """The routing tracks, as a grid; raises DesignError where the design has none."""
        if self.services.read_tracks is None:
            raise DesignError(f"{self.design.name}: has no routing tracks: it was not imported with a floorplan")
        return dataclasses.asdict(self.services.read_tracks())

    def stop(self, index: int) -> None:
        """Asks the job that is at work on a placement to end; nothing where there is none."""
        if index in self._jobs:
            self._jobs[index].stop()

    def end(self) -> None:
        """Ends all jobs, and waits for them for a while."""
        for job in list(self._jobs.values()):
            job.join()

    def _finish(self, index: int, action: Action, command: str, result: Outcome | str) -> None:
        """Takes over what came of a job."""
        self._jobs.pop(index, None)
        if isinstance(result, str):
            self._tell_job(index, action, "failed", text=result)
            return
        if result.cells is not None:
            self._cells = result.cells
            self.tell("cells", {})
        session, before = self.sessions[index], self.sessions[index].costs
        step = None
        if result.placement is not None:
            fixed = session.placement.fixed  # a job may not know of what a person released
            after = dataclasses.replace(result.placement, fixed=fixed)
            step = session.change(action.title.lower(), after, command)
        if step is not None:
            self.changed(index, step)
        costs = {"before": before.total, "after": session.costs.total}
        self._tell_job(index, action, "done", text=result.text, changed=step is not None, **costs)

    def _tell_job(self, index: int, action: Action, state: str, **values: Any) -> None:
        self.tell("job", {"session": index, "name": action.name, "title": action.title, "state": state, **values})
