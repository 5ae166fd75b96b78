"""The window's server, in process: the requests of pages, authorisation, and closed windows."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placement.engine.costs import compute_costs
from placement.netlist.design import Design, NodeKind
from placement.netlist.formats.plc import read_placement
from placement.report.view.session import Session
from placement.report.view.window import Window
from tests.support.designs import four_macros

pytest.importorskip("starlette", reason="the window needs Starlette: the extra `view`")
pytest.importorskip("httpx2", reason="Starlette's test client needs httpx2")
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from placement.report.view.page import static_names
from placement.report.view.server import make_application

TOKEN, HOST = "secret", "127.0.0.1:5000"


@pytest.fixture
def window(tmp_path: Path) -> Window:
    design = four_macros()
    return Window(
        design, [Session(design, design.initial, name=name) for name in ("one.plc", "two.plc")], folder=tmp_path
    )


@pytest.fixture
def client(window: Window) -> Iterator[TestClient]:
    app = make_application(window, token=TOKEN, hosts=frozenset({HOST, "localhost:5000"}))
    with TestClient(app, base_url=f"http://{HOST}") as made:
        yield made


class Page:
    """A page that sends requests and stores the messages received meanwhile."""

    def __init__(self, socket: WebSocketTestSession) -> None:
        self.socket, self.number, self.events = socket, 0, []

    def ask(self, do: str, /, **values: Any) -> dict[str, Any]:
        self.number += 1
        self.socket.send_text(json.dumps({"id": self.number, "do": do, **values}))
        while True:
            message = json.loads(self.socket.receive_text())
            if message.get("id") == self.number:
                return message
            self.events.append(message)


@contextlib.contextmanager
def page(client: TestClient) -> Iterator[Page]:
    with client.websocket_connect(f"ws://{HOST}/{TOKEN}/socket", headers={"origin": f"http://{HOST}"}) as socket:
        yield Page(socket)


def test_the_page_and_its_files_are_served_and_load_nothing_from_elsewhere(client: TestClient) -> None:
    index = client.get(f"/{TOKEN}/")
    assert index.status_code == 200
    assert "default-src 'self'" in index.headers["content-security-policy"]
    for name in static_names():
        answer = client.get(f"/{TOKEN}/static/{name}")
        assert answer.status_code == 200
        assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in answer.text
    assert client.get(f"/{TOKEN}/static/../server.py").status_code == 404
    assert client.get(f"/{TOKEN}/static/none.js").status_code == 404


@pytest.mark.parametrize(
    ("path", "headers", "reason"),
    [
        ("/", {}, "does not contain the window's token"),
        ("/wrong/", {}, "does not contain the window's token"),
        (f"/{TOKEN}/", {"host": "evil.example:5000"}, "host 'evil.example:5000'"),
        (f"/{TOKEN}/", {"host": "127.0.0.1:5001"}, "host"),
        (f"/{TOKEN}/", {"origin": "http://evil.example"}, "origin 'http://evil.example'"),
        (f"/{TOKEN}/", {"origin": "null"}, "origin 'null'"),
        (f"/{TOKEN}/", {"origin": "http://localhost:5000"}, "origin"),
    ],
)
def test_unauthenticated_clients_are_rejected(
    client: TestClient, path: str, headers: dict[str, str], reason: str
) -> None:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 403
    assert reason in answer.text
    socket = f"ws://{HOST}{path}socket"
    with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect(socket, headers=headers):
        pass
    assert refused.value.code in (1000, 4403)


def test_a_window_for_other_machines_is_found_by_any_address_but_by_no_other_name(window: Window) -> None:
    app = make_application(window, token=TOKEN, hosts=frozenset({"machine:5000"}), port=5000)
    with TestClient(app, base_url="http://machine:5000") as client:
        for host, status in (
            ("machine:5000", 200),
            ("10.1.2.3:5000", 200),
            ("[fd00::1]:5000", 200),
            ("10.1.2.3:5001", 403),
            ("evil.example:5000", 403),
        ):
            assert client.get(f"/{TOKEN}/", headers={"host": host}).status_code == status


def test_a_drag_is_priced_exactly_and_kept_when_dropped(client: TestClient, window: Window) -> None:
    node = window.design.netlist.names.index("large")
    with page(client) as one:
        scene = one.ask("scene")["ok"]
        assert scene["sessions"][0]["state"]["costs"] == compute_costs(window.design)._asdict()
        answer = one.ask("drag", session=0, nodes=[node], x=[21.0], y=[17.5])["ok"]
        moved = window.design.initial.moved(np.array([node]), np.array([21.0]), np.array([17.5]))
        assert answer["costs"] == compute_costs(window.design, moved)._asdict()
        assert window.session(0).placement == window.design.initial
        assert "ok" in one.ask("drop", session=0)
        assert one.events[-1]["event"] == "changed"
        assert one.events[-1]["places"]["nodes"] == [node]
        assert window.session(0).placement == moved
        assert window.session(1).placement == window.design.initial
        one.ask("undo", session=0)
        assert window.session(0).placement == window.design.initial


def test_what_is_not_understood_is_answered_and_changes_nothing(client: TestClient, window: Window) -> None:
    node = window.design.netlist.names.index("large")
    with page(client) as one:
        for request, message in (
            ({"do": "explode"}, "unknown request"),
            ({"do": "drag", "session": 5, "nodes": [], "x": [], "y": []}, "session 5"),
            ({"do": "drag", "nodes": [node], "x": [1.0], "y": []}, "not understood"),
            ({"do": "drag", "nodes": [node], "x": ["a"], "y": [1.0]}, "not understood"),
            ({"do": "drag", "nodes": [node], "x": [1e300], "y": [1.0]}, "cannot be moved"),
            ({"do": "edit", "what": "turn", "how": "around", "nodes": [node]}, "must be one of"),
            ({"do": "edit", "what": "melt", "nodes": [node]}, "must be turn, swap"),
            ({"do": "edit", "nodes": [node]}, "not understood"),
            ({"do": "save", "path": ""}, "give the name of a file"),
            ({"do": "save", "path": "x", "form": "gds"}, "must be one of plc, constraints"),
        ):
            assert message in one.ask(str(request.pop("do")), **request)["error"]
        one.socket.send_text("{")
        assert "unknown request" in json.loads(one.socket.receive_text())["error"]
        one.socket.send_text("[]")
        assert "unknown request" in json.loads(one.socket.receive_text())["error"]
        assert window.session(0).placement == window.design.initial


def test_every_edit_is_one_step_that_all_pages_hear_of(client: TestClient, window: Window) -> None:
    names = window.design.netlist.names.index
    pair = [names("large"), names("middle")]
    with page(client) as one, page(client) as other:
        for number, (what, how) in enumerate(
            [("turn", "left"), ("swap", ""), ("align", "left"), ("fix", ""), ("release", "")], start=1
        ):
            assert "ok" in one.ask("edit", session=0, what=what, how=how, nodes=pair)
            assert len(window.session(0).steps) == number
        assert "ok" in one.ask("edit", what="move", nodes=pair[:1], x=[11.0], y=[12.0])
        other.ask("scene")
        assert [event["event"] for event in other.events] == ["changed"] * 6
        assert window.session(0).placement.x[pair[0]] == 11.0


def test_two_windows_do_not_drag_at_once_and_a_window_that_goes_lets_go(client: TestClient, window: Window) -> None:
    node = window.design.netlist.names.index("large")
    with page(client) as one:
        with page(client) as other:
            assert "ok" in other.ask("drag", nodes=[node], x=[21.0], y=[17.5])
            assert "another window" in one.ask("drag", nodes=[node], x=[1.0], y=[1.0])["error"]
            assert "another window" in one.ask("undo")["error"]
            assert "ok" in one.ask("drag", session=1, nodes=[node], x=[1.0], y=[1.0])
            one.ask("let_go")
        # the other one is closed without dropping
        assert "ok" in one.ask("drag", nodes=[node], x=[22.0], y=[18.0])
        one.ask("let_go")
        assert window.session(0).placement == window.design.initial
        assert window.session(0).costs == window.session(0).start_costs


def test_what_was_done_is_there_after_a_reload(client: TestClient, window: Window) -> None:
    node = window.design.netlist.names.index("large")
    with page(client) as one:
        one.ask("edit", what="move", nodes=[node], x=[11.0], y=[12.0])
    with page(client) as again:
        state = again.ask("scene")["ok"]["sessions"][0]["state"]
        assert [step["what"] for step in state["steps"]] == ["move large"]
        assert state["is_saved"] is False


def test_saving_asks_before_it_replaces_a_file(client: TestClient, window: Window, tmp_path: Path) -> None:
    node = window.design.netlist.names.index("large")
    with page(client) as one:
        one.ask("edit", what="move", nodes=[node], x=[11.0], y=[12.0])
        file = tmp_path / "mine.plc"
        assert one.ask("save", path="mine.plc")["ok"] == {"path": str(file)}
        assert read_placement(file, window.design.netlist)[1] == window.session(0).placement
        assert window.session(0).is_saved
        one.ask("undo")
        before = file.read_bytes()
        assert one.ask("save", path="mine.plc")["ok"] == {"exists": str(file)}
        assert file.read_bytes() == before
        assert not window.session(0).is_saved
        assert one.ask("save", path="mine.plc", replace=True)["ok"] == {"path": str(file)}
        assert read_placement(file, window.design.netlist)[1] == window.design.initial
        assert "No such file" in one.ask("save", path="nowhere/mine.plc")["error"]
        assert "give the name of a file" in one.ask("save", path=str(tmp_path))["error"]


def test_the_page_gets_positions_sizes_and_halos_bit_by_bit(window: Window) -> None:
    """The page snaps by them: rounding would make legal positions illegal."""
    design = window.design
    netlist = dataclasses.replace(design.netlist, width=design.netlist.width / 3, height=design.netlist.height / 3)
    halo = np.where(design.netlist.kind[:, None] == NodeKind.HARD, [0.1, 0.7, 0.2, 0.3], 0.0)
    constraints = dataclasses.replace(design.constraints, halo=halo)
    placed = dataclasses.replace(design.initial, x=design.initial.x / 3)
    odd = Design("odd", netlist, design.canvas, placed, constraints=constraints)
    values = Window(odd, [Session(odd, placed, name="odd")], folder=window.folder).values()

    def unpacked(packed: dict[str, str]) -> np.ndarray:
        return np.frombuffer(base64.b64decode(packed["data"]), packed["dtype"])

    for name in ("width", "height"):
        assert np.array_equal(unpacked(values["design"][name]), getattr(netlist, name))
    assert np.array_equal(unpacked(values["design"]["halo"]).reshape(-1, 4), halo)
    assert np.array_equal(unpacked(values["sessions"][0]["placement"]["x"]), placed.x)
