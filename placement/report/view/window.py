"""A window: one design, its open placements, the pages that show them, and the actions that run on them.

All of it is used from one thread, the server's; an action runs in its own thread. The actions are passed to the window,
which knows nothing of search or of the full evaluation. Lengths are in µm.
"""

import dataclasses
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from placement.config import ConfigError
from placement.engine.costs import CostWeights
from placement.flat.timing import TimingEstimate
from placement.netlist.constraints import SnapGrid
from placement.netlist.constraints_file import CONSTRAINTS_NAME, constraints_text
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import placement_text
from placement.report.run_watch import Curve, RunWatch
from placement.report.view.page import (
    Cells,
    changed_values,
    design_values,
    opened_values,
    session_values,
    timing_values,
)
from placement.report.view.session import Recovery, Session, Step

Send = Callable[[dict[str, Any]], None]
Export = Callable[[Placement, str], bytes]  # makes the bytes of a file from a placement and the file's name
UNSAVED = "SAVED.plc"  # the file name in command lines while the placement has no file
SHOWN_PATHS = 20  # number of worst paths that are drawn
JOIN_SECONDS = 30.0  # time for a job to stop when the window ends


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter: a number from `least` to `most`, or a text if the default is one; its unit is in the title."""

    name: str
    title: str
    default: float | str
    least: float = 0.0
    most: float = 0.0

    def checked(self, value: Any) -> float | str:
        """Returns a valid value; raises DesignError for a number out of range, and for an empty text."""
        if isinstance(self.default, str):
            text = str(value).strip()
            if not text or not text.isprintable():
                raise DesignError(f"{self.title}: is missing")
            return text
        number = float(value)
        if not self.least <= number <= self.most:
            raise DesignError(f"{self.title}: {number:g} must be in [{self.least:g}, {self.most:g}]")
        return number


@dataclasses.dataclass(frozen=True)
class Task:
    """The input of an action: the current placement, and the design with it as its initial one.

    `stopped` returns whether to end with the current result; `report` takes the progress in [0, 1] and a text.
    """

    design: Design
    placement: Placement
    weights: CostWeights
    values: Mapping[str, float | str]
    stopped: Callable[[], bool]
    report: Callable[[float, str], None]

    def number(self, name: str) -> float:
        return float(self.values[name])


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of an action: a placement (None: unchanged), a text, and the standard cells if it placed any."""

    placement: Placement | None
    text: str
    cells: Cells | None = None


@dataclasses.dataclass(frozen=True)
class Action:
    """An operation on a placement, which `run` performs; it raises DesignError on failure.

    `title` is on its button and `hint` explains it. `command` is a command line with the same effect on the file
    `{file}`, with `{name}` for each parameter. `can_stop`: it heeds `Task.stopped`; `fixes_chosen`: the selected macros
    are fixed first.
    """

    name: str
    title: str
    hint: str
    run: Callable[[Task], Outcome]
    command: str
    parameters: tuple[Parameter, ...] = ()
    can_stop: bool = False
    fixes_chosen: bool = False

    def checked(self, values: Mapping[str, Any]) -> dict[str, float | str]:
        """The parameters' values; raises DesignError like `Parameter.checked`."""
        return {one.name: one.checked(values.get(one.name, one.default)) for one in self.parameters}

    def line(self, file: str, values: Mapping[str, float | str]) -> str:
        shown = {name: value if isinstance(value, str) else f"{value:g}" for name, value in values.items()}
        return self.command.format(file=file, **shown)

    def described(self) -> dict[str, Any]:
        names = ("name", "title", "hint", "command", "can_stop", "fixes_chosen")
        parameters = [dataclasses.asdict(one) for one in self.parameters]
        return {**{name: getattr(self, name) for name in names}, "parameters": parameters}


class _Job(NamedTuple):
    """An action that runs in its own thread until it ends or heeds `stop`."""

    action: Action
    stop: threading.Event
    thread: threading.Thread


def _outcome(action: Action, task: Task) -> Outcome | str:
    """The outcome of an action, or the reason why it has none."""
    try:
        return action.run(task)
    except (DesignError, ConfigError, OSError) as error:
        return str(error)
    except Exception as error:
        logging.getLogger(__name__).exception("%s failed", action.name)
        return f"{action.title} failed: {error!r}"


class Timer(Protocol):
    """Times placements of the window's design; each call is fast if little has moved since the last one."""

    def update(self, placement: Placement, *, paths: int) -> TimingEstimate: ...

    def macro_slack(self, found: TimingEstimate) -> dict[int, float]:
        """Slack in ps of hard macros by their nodes."""


@dataclasses.dataclass(frozen=True)
class Services:
    """The services of other packages for a window: actions on a placement, and further formats to save it in, by name.

    The best placements in the folder of `watch` are opened as they appear; `recovery` keeps unsaved changes. The flat
    netlist's standard cells, routing tracks and timing are read on demand. Commands read the design's constraints from
    `constraints_path`.
    """

    actions: Sequence[Action] = ()
    exports: Mapping[str, Export] = dataclasses.field(default_factory=dict)
    watch: RunWatch | None = None
    recovery: Recovery | None = None
    read_cells: Callable[[], Cells | None] | None = None
    constraints_path: Path | None = None
    read_tracks: Callable[[], SnapGrid] | None = None
    read_timer: Callable[[], Timer] | None = None


class Window:
    """One design and its open placements, of which there is at least one.

    Files without a folder are saved in `folder`. `later` calls a function in the window's thread.
    """

    def __init__(
        self, design: Design, sessions: Sequence[Session], *, folder: Path, services: Services = Services()
    ) -> None:
        self.design, self.sessions, self.folder, self.title = design, list(sessions), folder, design.name
        self.services = services
        self._actions = {action.name: action for action in services.actions}
        self.later: Callable[[Callable[[], None]], None] = lambda call: call()
        self._cells: Cells | None = None
        self._timer: Timer | None = None
        self._curve: Curve | None = None
        self._of_run: list[int] = []
        self._jobs: dict[int, _Job] = {}
        self._files: dict[int, str] = {}
        self._pages: dict[str, Send] = {}
        self._dragging: dict[str, int] = {}

    def session(self, index: int) -> Session:
        """An open placement; raises DesignError for an unknown one."""
        if not 0 <= index < len(self.sessions):
            raise DesignError(f"session {index}: the window has placements 0 to {len(self.sessions) - 1}")
        return self.sessions[index]

    def values(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "design": design_values(self.design),
            "sessions": [opened_values(one) for one in self.sessions],
            "folder": str(self.folder),
            "exports": list(self.services.exports),
            "constraints_path": str(self.services.constraints_path or CONSTRAINTS_NAME),
            "has_cells": self.services.read_cells is not None,
            "has_timing": self.services.read_timer is not None,
            "run": self._run_values(),
            "actions": [action.described() for action in self._actions.values()],
            "running": {str(index): job.action.name for index, job in self._jobs.items()},
            "files": {str(index): file for index, file in self._files.items()},
        }

    def join(self, page: str, send: Send) -> None:
        """Sends every event to a page from now on."""
        self._pages[page] = send

    def leave(self, page: str) -> None:
        """Forgets a page and reverts its drag."""
        self._pages.pop(page, None)
        self.release(page)

    def tell(self, event: str, values: Mapping[str, Any], *, but: str = "") -> None:
        """Sends an event to every page except `but`."""
        for page, send in list(self._pages.items()):
            if page != but:
                send({"event": event, **values})

    def check_free(self, page: str, index: int) -> None:
        """Raises DesignError if another page is dragging in a placement, or a job is running on it."""
        if index in self._jobs:
            raise DesignError(f"{self._jobs[index].action.title} is running on this placement; stop it, or wait")
        if any(other != page and at == index for other, at in self._dragging.items()):
            raise DesignError("another window is dragging a macro of this placement; wait for it to drop it")

    def hold(self, page: str, index: int) -> None:
        """Notes that a page is dragging in a placement, until it is released."""
        self._dragging[page] = index

    def release(self, page: str) -> None:
        """Ends a page's drag and reverts it on every page unless it was dropped."""
        index = self._dragging.pop(page, None)
        if index is None:
            return
        session = self.sessions[index]
        if session.let_go():
            self.tell("changed", {"session": index, **opened_values(session)})

    def changed(self, index: int, step: Step | None, *, back: bool = False) -> None:
        """Sends a placement's state after a step, or `back` before it, to every page; keeps its unsaved changes."""
        session = self.sessions[index]
        self.tell("changed", {"session": index, **changed_values(session, step, back=back)})
        if self.services.recovery is not None:
            try:
                self.services.recovery.keep(session)
            except OSError as error:
                self.tell("trouble", {"text": f"unsaved changes cannot be kept: {error}"})

    def save(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Writes a placement or its constraints atomically to a file, over another one only on request.

        Returns `{"path": …}`, or `{"exists": path}` if there is a file that may not be replaced. Raises DesignError if
        the name is not that of a file, or the format is unknown.
        """
        index = int(request.get("session", 0))
        session, form, exports = self.session(index), str(request.get("form", "plc")), self.services.exports
        name = str(request["path"]).strip()
        path = self.folder / Path(name).expanduser()
        if not name or path.is_dir():
            raise DesignError(f"{name!r}: give the name of a file")
        if path.exists() and request.get("replace") is not True:
            return {"exists": str(path)}
        writers: dict[str, Callable[[], str | bytes]] = {
            "plc": lambda: placement_text(path.name, self.design, session.placement),
            "constraints": lambda: constraints_text(self.design.netlist, session.design.constraints),
        }
        if form in writers:
            write_whole(path, writers[form]())
        elif form in exports:
            write_whole(path, exports[form](session.placement, path.name))
        else:
            raise DesignError(f"form {form!r}: must be one of {', '.join([*writers, *exports])}")
        if form == "plc":
            session.mark_saved()
            self._files[index] = str(path)
            self.tell("changed", {"session": index, "state": session_values(session), "file": str(path)})
            self.changed(index, None)
        return {"path": str(path)}

    def take_news(self, curve: Curve | None, best: Iterable[tuple[str, Placement]]) -> None:
        """Takes over the news of the run folder from `RunWatch.poll`, and sends them to every page."""
        opened = []
        self._curve = curve or self._curve
        for name, placement in best:
            session = Session(self.design, placement, name=name, weights=self.sessions[0].weights)
            self._of_run.append(len(self.sessions))
            self.sessions.append(session)
            opened.append(opened_values(session))
        if curve is not None or opened:
            self.tell("run", {"run": self._run_values(), "opened": opened})

    def _run_values(self) -> dict[str, Any] | None:
        if self.services.watch is None:
            return None
        folder = str(self.services.watch.folder)
        return {"folder": folder, "curve": self._curve, "sessions": list(self._of_run)}

    def start(self, index: int, name: str, values: Mapping[str, Any]) -> None:
        """Starts an action on a placement, whose result becomes a step; raises DesignError."""
        session, action = self.session(index), self._actions.get(name)
        if action is None:
            raise DesignError(f"unknown action {name!r}; the actions are {', '.join(self._actions) or 'none'}")
        checked, stop = action.checked(values), threading.Event()
        command = action.line(self._files.get(index, UNSAVED), checked)

        def report(progress: float, text: str) -> None:
            self.later(lambda: self._tell_job(index, action, "running", progress=progress, text=text))

        task = Task(session.design_now(), session.placement, session.weights, checked, stop.is_set, report)

        def work() -> None:
            result = _outcome(action, task)
            self.later(lambda: self._finish(index, action, command, result))

        self._tell_job(index, action, "running", progress=0.0, text="")
        self._jobs[index] = _Job(action, stop, threading.Thread(target=work, name=f"window: {name}", daemon=True))
        self._jobs[index].thread.start()

    def stop(self, index: int) -> None:
        """Ends the job on a placement, if any, with its current result."""
        if index in self._jobs:
            self._jobs[index].stop.set()

    def end(self) -> None:
        """Stops all jobs and waits for them, at most `JOIN_SECONDS` each."""
        for job in list(self._jobs.values()):
            job.stop.set()
            job.thread.join(JOIN_SECONDS)

    def cells(self) -> dict[str, Any]:
        """The standard cells of the last placement of cells; raises DesignError if there are none."""
        if self._cells is None and self.services.read_cells is not None:
            self._cells = self.services.read_cells()
        if self._cells is None:
            raise DesignError(f"{self.design.name}: no standard cells are placed; the full evaluation places them")
        return self._cells.values()

    def timing(self, index: int) -> dict[str, Any]:
        """The timing of a placement, including dragged macros; raises DesignError if the design has none."""
        session = self.session(index)
        if self._timer is None:
            if self.services.read_timer is None:
                raise DesignError(f"{self.design.name}: has no timing: it was imported without Liberty and SDC files")
            self._timer = self.services.read_timer()
        found = self._timer.update(session.shown(), paths=SHOWN_PATHS)
        return timing_values(self.design, found, self._timer.macro_slack(found))

    def tracks(self) -> dict[str, float]:
        """The routing tracks as a grid; raises DesignError if the design has none."""
        if self.services.read_tracks is None:
            raise DesignError(f"{self.design.name}: has no routing tracks: it was not imported with a floorplan")
        return dataclasses.asdict(self.services.read_tracks())

    def _finish(self, index: int, action: Action, command: str, result: Outcome | str) -> None:
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
            # The job does not know which macros a person has since released.
            after = dataclasses.replace(result.placement, fixed=session.placement.fixed)
            step = session.change(action.title.lower(), after, command)
        if step is not None:
            self.changed(index, step)
        costs = {"before": before.total, "after": session.costs.total}
        self._tell_job(index, action, "done", text=result.text, changed=step is not None, **costs)

    def _tell_job(self, index: int, action: Action, state: str, **values: Any) -> None:
        self.tell("job", {"session": index, "name": action.name, "title": action.title, "state": state, **values})
