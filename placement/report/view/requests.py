"""The page's requests to a window, each a function from plain values to plain values.

A request is `{"id": …, "do": name, …}`; the answer is `{"id": …, "ok": {…}}` or `{"id": …, "error": "…"}`. Changes that
concern every page are sent to all as `{"event": name, …}`. Lengths are in µm.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from placement.netlist.errors import DesignError
from placement.report.view.edits import constrain, edit
from placement.report.view.page import map_values
from placement.report.view.session import Session, Step
from placement.report.view.window import Window

Values = dict[str, Any]
Request = Mapping[str, Any]


def answer(window: Window, page: str, request: Request) -> Values:
    """Executes the request of one of the open pages; returns the answer."""
    number, name = request.get("id"), str(request.get("do"))
    try:
        if name in _HANDLERS:
            return {"id": number, "ok": _HANDLERS[name](window, page, request) or {}}
        if name not in _CHANGES:
            raise DesignError(f"{name!r}: unknown request; the requests are {', '.join([*_HANDLERS, *_CHANGES])}")
        index, session = _session(window, request)
        window.check_free(page, index)
        step = _CHANGES[name](session, request)
        window.release(page)
        window.changed(index, step, back=name == "undo")
        return {"id": number, "ok": {}}
    except (DesignError, OSError) as error:
        return {"id": number, "error": str(error)}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return {"id": number, "error": f"{name}: the request is not understood: {error!r}"}


def _session(window: Window, request: Request) -> tuple[int, Session]:
    index = int(request.get("session", 0))
    return index, window.session(index)


def _drag(window: Window, page: str, request: Request) -> Values:
    index, session = _session(window, request)
    nodes = [int(node) for node in request["nodes"]]
    window.check_free(page, index)
    places = zip(map(float, request["x"]), map(float, request["y"]), strict=True)
    costs = session.drag(dict(zip(nodes, places, strict=True)))
    window.hold(page, index)
    faults = {str(node): reasons for node, reasons in session.faults().items()}
    window.tell("dragged", {"session": index, "nodes": nodes, "x": request["x"], "y": request["y"]}, but=page)
    timing: Values = {}
    if request.get("timing") is True:
        try:
            timing["timing"] = window.timing(index)
        except DesignError as error:  # The costs are sent all the same.
            timing["timing_error"] = str(error)
    return {"costs": costs._asdict(), "faults": faults, **timing}


def _start(window: Window, page: str, request: Request) -> None:
    index, _ = _session(window, request)
    window.check_free(page, index)
    window.release(page)
    window.start(index, str(request["name"]), dict(request.get("values", {})))


_HANDLERS: dict[str, Callable[[Window, str, Request], Values | None]] = {
    "scene": lambda window, page, request: window.values(),
    "drag": _drag,
    "let_go": lambda window, page, request: window.release(page),
    "maps": lambda window, page, request: map_values(_session(window, request)[1]),
    "cells": lambda window, page, request: window.cells(),
    "tracks": lambda window, page, request: window.tracks(),
    "timing": lambda window, page, request: window.timing(int(request.get("session", 0))),
    "start": _start,
    "stop": lambda window, page, request: window.stop(_session(window, request)[0]),
    "save": lambda window, page, request: window.save(request),
}


def _edit(session: Session, request: Request) -> Step | None:
    """Edits, moves, fixes or releases the selected macros as one step."""
    nodes, what, how = [int(node) for node in request["nodes"]], str(request["what"]), str(request.get("how", ""))
    if what in ("fix", "release"):
        return session.fix(nodes, fixed=what == "fix")
    design, now, at = session.design, session.placement, session.movable(nodes)
    if what == "move":
        after = now.moved(at, np.array(request["x"], dtype=float), np.array(request["y"], dtype=float))
    else:
        after = edit(design, now, at, what, how)
    return session.change(session.phrase(what, nodes) + (f" ({how})" if how else ""), after)


# Requests that become a step, which is rejected while another page drags or an action runs.
_CHANGES: dict[str, Callable[[Session, Request], Step | None]] = {
    "drop": lambda session, request: session.drop(),
    "undo": lambda session, request: session.undo(),
    "redo": lambda session, request: session.redo(),
    "edit": _edit,
    "constrain": lambda session, request: session.constrain(*constrain(session.design, request)),
}
