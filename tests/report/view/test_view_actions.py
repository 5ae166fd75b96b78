"""Jobs of the window: each creates a step; failures and interruptions are reported; command lines are accepted."""

from __future__ import annotations

import queue
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placement.cli.main import COMMANDS, main
from placement.cli.options import settings
from placement.cli.viewing import view_actions
from placement.config import CostConfig
from placement.engine.costs import compute_costs, legality
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import load
from placement.report.view.session import Session
from placement.report.view.window import Action, Outcome, Parameter, Services, Task, Window

SECONDS = 60.0


class Watched:
    """A window whose jobs end in the test's own thread, as they do in the server's."""

    def __init__(self, folder: Path, *actions: Action, design: str = "toy6") -> None:
        self.design = load(design)
        self.session = Session(self.design, self.design.initial, name="initial.plc")
        self.window = Window(self.design, [self.session], folder=folder, services=Services(actions))
        self.calls: queue.Queue[Callable[[], None]] = queue.Queue()
        self.window.later = self.calls.put
        self.events: list[dict[str, Any]] = []
        self.window.join("page", self.events.append)

    def until(self, state: str) -> dict[str, Any]:
        """Processes reports of jobs until one of them is in a state."""
        while True:
            found = [event for event in self.events if event["event"] == "job" and event["state"] == state]
            if found:
                return found[-1]
            self.calls.get(timeout=SECONDS)()

    def run(self, name: str, **values: float | str) -> dict[str, Any]:
        self.window.start(0, name, values)
        return self.until("done")


def own_actions() -> dict[str, Action]:
    return {action.name: action for action in view_actions("toy6", CostConfig())}


def test_legalise_is_one_step_and_keeps_what_is_fixed(tmp_path: Path) -> None:
    watched = Watched(tmp_path, *own_actions().values())
    session = watched.session
    first, second = (int(node) for node in watched.design.placing_order[:2])
    x, y = float(session.placement.x[second]), float(session.placement.y[second])
    session.drag({first: (x, y)})
    session.drop()
    session.fix([first], fixed=True)
    assert legality(watched.design, session.placement).overlaps
    done = watched.run("legalise")
    assert legality(watched.design, session.placement) == (0, 0)
    assert (session.placement.x[first], session.placement.y[first]) == (x, y)
    assert bool(session.placement.fixed[first])
    assert [step.what for step in session.steps][-1] == "legalise"
    assert done["after"] == session.costs.total == compute_costs(watched.design, session.placement).total


def test_refine_flip_and_soft_lower_the_cost_or_say_that_nothing_changed(tmp_path: Path) -> None:
    watched = Watched(tmp_path, *own_actions().values(), design="clustered40")
    before = watched.session.costs.total
    for name, values in (("refine", {"time": 0.3}), ("flip", {})):
        watched.events.clear()
        done = watched.run(name, **values)
        assert done["after"] <= done["before"]
        assert watched.session.costs == compute_costs(watched.design, watched.session.placement)
    assert watched.session.costs.total < before
    while watched.session.undo() is not None:
        pass
    assert watched.session.placement == watched.design.initial


def test_a_policy_places_what_is_not_fixed_as_the_command_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.evaluation.test_policies import make_run

    monkeypatch.chdir(tmp_path)
    make_run(Path("run"), "toy6")
    watched = Watched(tmp_path, *own_actions().values())
    session, design = watched.session, watched.design
    stays = int(design.placing_order[2])
    session.fix([stays], fixed=True)
    watched.window.save({"path": "mine.plc"})
    watched.run("policy", checkpoint="run", samples=2)
    after = session.placement
    assert (after.x[stays], after.y[stays]) == (design.initial.x[stays], design.initial.y[stays])
    assert legality(design, after) == (0, 0)
    command = session.steps[-1].command
    assert command is not None
    assert main([*shlex.split(command)[1:], "plots=false", "out=sampled"]) == 0
    assert after == read_placement("sampled/placement.plc", design.netlist)[1]


def test_a_missing_policy_is_reported(tmp_path: Path) -> None:
    watched = Watched(tmp_path, *own_actions().values())
    with pytest.raises(DesignError, match="run folder: is missing"):
        watched.window.start(0, "policy", {})
    watched.window.start(0, "policy", {"checkpoint": str(tmp_path)})
    assert "checkpoint" in watched.until("failed")["text"]


def test_a_job_runs_alone_stops_and_its_failure_is_reported(tmp_path: Path) -> None:
    waits: queue.Queue[None] = queue.Queue()

    def wait(task: Task) -> Outcome:
        task.report(0.5, "half")
        waits.get(timeout=SECONDS)
        return Outcome(None, f"stopped: {task.stopped()}")

    def fail(task: Task) -> Outcome:
        raise DesignError("no room")

    def crash(task: Task) -> Outcome:
        raise RuntimeError("a bug")

    actions = [Action(run.__name__, run.__name__, "", run, "") for run in (wait, fail, crash)]
    watched = Watched(tmp_path, *actions)
    watched.window.start(0, "wait", {})
    assert watched.until("running")["progress"] == 0.0
    with pytest.raises(DesignError, match="wait is running"):
        watched.window.check_free("page", 0)
    watched.window.stop(0)
    waits.put(None)
    assert watched.until("done")["text"] == "stopped: True"
    watched.window.check_free("page", 0)
    for name, text in (("fail", "no room"), ("crash", "crash failed: RuntimeError('a bug')")):
        watched.events.clear()
        watched.window.start(0, name, {})
        assert watched.until("failed")["text"] == text
    with pytest.raises(DesignError, match="action 'dance'"):
        watched.window.start(0, "dance", {})
    assert watched.session.placement == watched.design.initial


def test_parameters_are_checked() -> None:
    action = Action(
        "a", "A", "", lambda task: Outcome(None, ""), "a {file} {time}", (Parameter("time", "s", 1, 0.5, 9),)
    )
    assert action.checked({"time": 2}) == {"time": 2.0}
    assert action.checked({}) == {"time": 1.0}
    assert action.line("x.plc", {"time": 2.5}) == "a x.plc 2.5"
    for wrong in (0.1, 10, float("nan")):
        with pytest.raises(DesignError, match="must be in"):
            action.checked({"time": wrong})


@pytest.mark.parametrize("name", list(own_actions()))
def test_the_command_lines_are_accepted(name: str) -> None:
    action = {one.name: one for one in view_actions("toy6", CostConfig(density=0.7))}[name]
    given = {"checkpoint": "runs/one"} if name == "policy" else {}
    words = shlex.split(action.line("mine.plc", action.checked(given)))
    assert words[0] == "macro-placement"
    command = COMMANDS[words[1]]
    composed = settings(words[2:], command.settings)
    assert composed["design"] == "toy6"
    assert composed["initial" if name == "policy" else "placement"] == "mine.plc"
    assert composed["cost"]["density"] == 0.7
