"""What a window can have done to a placement by other parts of the program, and the job that does it.

The actions themselves are given to the window: nothing here knows of search or flat placement.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from placement.config import ConfigError
from placement.engine.costs import CostWeights
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.report.view.cells import Cells

_log = logging.getLogger(__name__)
JOIN_SECONDS = 30.0
"""That a job may take to stop when the window ends."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A number or a text that an action takes.

    Attributes:
        name: of it.
        title: for people, with its unit.
        default: what it is; where that is a text, it takes texts.
        least, most: that a number may be.
    """

    name: str
    title: str
    default: float | str
    least: float = 0.0
    most: float = 0.0

    def checked(self, value: Any) -> float | str:
        """A value of it; raises DesignError for a number that is out of range, and for no text."""
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
    """What an action works on.

    Attributes:
        design: with the placement as its initial one, what a person has fixed fixed.
        placement: as it stands.
        weights: of the cost.
        values: the action's parameters.
        stopped: whether it is to end with what it has.
        report: takes the progress in [0, 1] and a text.
    """

    design: Design
    placement: Placement
    weights: CostWeights
    values: Mapping[str, float | str]
    stopped: Callable[[], bool]
    report: Callable[[float, str], None]

    def number(self, name: str) -> float:
        """A parameter that is a number."""
        return float(self.values[name])


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of an action: a placement, or only a text; and where it put standard cells."""

    placement: Placement | None
    text: str
    cells: Cells | None = None


@dataclasses.dataclass(frozen=True)
class Action:
    """One of them.

    Attributes:
        name: of it.
        title: on its button.
        hint: what it does.
        run: does it; raises DesignError where it cannot.
        command: the command line that does the same to the file `{file}`, with `{name}` for each parameter.
        parameters: what it takes.
        can_stop: whether `Task.stopped` is heard.
        fixes_chosen: whether what is chosen in the window is fixed before.
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
        """The parameters' values; raises DesignError as `Parameter.checked`."""
        return {one.name: one.checked(values.get(one.name, one.default)) for one in self.parameters}

    def line(self, file: str, values: Mapping[str, float | str]) -> str:
        """The command line."""
        shown = {name: value if isinstance(value, str) else f"{value:g}" for name, value in values.items()}
        return self.command.format(file=file, **shown)


class Job:
    """An action at work in a thread of its own.

    Args:
        action: that is done.
        task: makes what it works on of `stopped` and `report`.
        report: takes the progress and a text; called in the job's thread.
        finished: takes what came of it, or why nothing did; called in the job's thread, once.
    """

    def __init__(
        self,
        action: Action,
        task: Callable[[Callable[[], bool], Callable[[float, str], None]], Task],
        *,
        report: Callable[[float, str], None],
        finished: Callable[[Outcome | str], None],
    ) -> None:
        self.action = action
        self._stop = threading.Event()
        self._finished = finished
        self._task = task(self._stop.is_set, report)
        self._thread = threading.Thread(target=self._work, name=f"window: {action.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Asks it to end with what it has."""
        self._stop.set()

    def join(self) -> None:
        """Stops it and waits for its end, for a while."""
        self.stop()
        self._thread.join(JOIN_SECONDS)

    def _work(self) -> None:
        result: Outcome | str = f"{self.action.title}: has ended without a result"
        try:
            result = self.action.run(self._task)
        except (DesignError, ConfigError, OSError) as error:
            result = str(error)
        except Exception as error:  # noqa: BLE001  (whatever it is, the window is told, and lives on)
            _log.exception("%s failed", self.action.name)
            result = f"{self.action.title} failed: {error!r}"
        finally:
            self._finished(result)
