"""Drawn blockages, regions and halos: enforced, undone, recovered, saved for the commands."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placement.annealing.legaliser import legalise
from placement.engine.costs import violations
from placement.netlist.errors import DesignError
from placement.netlist.load import data_folder, load
from placement.report.view.edits import constrain
from placement.report.view.requests import answer
from placement.report.view.session import Recovery, Session
from placement.report.view.window import Window


def opened(folder: Path) -> tuple[Window, Session]:
    design = load("toy6")
    session = Session(design, design.initial, name="initial.plc")
    return Window(design, [session], folder=folder), session


def ask(window: Window, what: str, **values: Any) -> dict[str, Any]:
    return answer(window, "page", {"id": 1, "do": "constrain", "session": 0, "what": what, **values})


def around(session: Session, node: int, margin: float) -> list[float]:
    width, height = (float(side[node]) for side in session.design.netlist.sides(session.placement.orientation))
    x, y = float(session.placement.x[node]), float(session.placement.y[node])
    across, up = width / 2 + margin, height / 2 + margin
    return [x - across, y - up, x + across, y + up]


def test_a_blockage_is_kept_to_undone_and_done_again(tmp_path: Path) -> None:
    window, session = opened(tmp_path)
    node = int(session.design.placing_order[0])
    events: list[dict[str, Any]] = []
    window.join("page", events.append)
    assert ask(window, "blockage", rectangle=around(session, node, -1.0)) == {"id": 1, "ok": {}}
    assert session.faults()[node] == ["is on a blockage"]
    assert events[-1]["constraints"]["blockages"] == session.design.constraints.blockages.tolist()
    assert len(events[-1]["constraints"]["blockages"]) == 1
    after = legalise(session.design_now(), session.placement)
    assert violations(session.design, after).blockages == 0
    session.undo()
    assert session.faults() == {} and not session.has_drawn
    session.redo()
    assert violations(session.design, session.placement).blockages == 1
    assert ask(window, "remove_blockage", index=0) == {"id": 1, "ok": {}}
    assert session.faults() == {}


def test_a_region_and_a_halo_are_kept_to(tmp_path: Path) -> None:
    window, session = opened(tmp_path)
    first, second = (int(node) for node in session.design.placing_order[:2])
    ask(window, "region", rectangle=around(session, second, 0.5), nodes=[first], name="left", exclusive=True)
    (region,) = session.design.constraints.regions
    assert (region.name, region.nodes.tolist(), region.is_exclusive) == ("left", [first], True)
    assert "is outside its region" in session.faults()[first][0]
    assert set(session.faults()) >= {first, second}  # it excludes others
    ask(window, "remove_region", index=0)
    ask(window, "halo", halo=[500.0, 500.0], nodes=[first])
    assert session.design.constraints.halo[first].tolist() == [500.0] * 4
    assert "than their halos allow" in session.faults()[first][0]


def test_what_is_drawn_is_recovered_and_saved_for_the_commands(tmp_path: Path) -> None:
    shutil.copytree(data_folder("netlists") / "toy6", tmp_path / "toy6")
    window, session = opened(tmp_path)
    node = int(session.design.placing_order[0])
    ask(window, "blockage", rectangle=around(session, node, -1.0))
    session.drag({node: (3.0, 4.0)})
    session.drop()
    recovery = Recovery(tmp_path / "state")
    recovery.keep(session)
    back = Session(load("toy6"), session.start, name="initial.plc")
    assert recovery.bring_back(back)
    assert back.design.constraints.as_bytes() == session.design.constraints.as_bytes() != b""
    assert back.placement == session.placement
    window.save({"path": "toy6/constraints.json", "form": "constraints"})
    assert np.array_equal(load(tmp_path / "toy6").constraints.blockages, session.design.constraints.blockages)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"what": "moat"}, "must be one of blockage, region"),
        ({"what": "blockage", "rectangle": [-9, 0, -1, 5]}, "is outside the canvas"),
        ({"what": "blockage", "rectangle": [1, 1, 1, 5]}, "is empty"),
        ({"what": "region", "rectangle": [0, 0, 5, 5], "nodes": []}, "select hard macros first"),
        ({"what": "remove_blockage", "index": 0}, "blockages 0: there are 0"),
        ({"what": "remove_region", "index": -1}, "regions -1: there are 0"),
    ],
)
def test_what_cannot_be_drawn_is_reported(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(DesignError, match=message):
        constrain(load("toy6"), request_)


def test_a_halo_that_is_no_length_changes_nothing(tmp_path: Path) -> None:
    window, session = opened(tmp_path)
    node = int(session.design.placing_order[0])
    assert "must be at least 0 µm" in ask(window, "halo", halo=[-1, 2], nodes=[node])["error"]
    assert "is not understood" in ask(window, "halo", halo=[1], nodes=[node])["error"]
    assert not session.has_drawn and not session.steps
