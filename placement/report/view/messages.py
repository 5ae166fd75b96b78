"""What the page may ask of a window, each request a function from plain values to plain values.

A request is `{"id": …, "do": name, …}`; the answer is `{"id": …, "ok": {…}}` or `{"id": …, "error": "…"}`. What
changes for everybody goes to every page as `{"event": name, …}`. Lengths are in µm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from placement.engine.costs import cost_maps
from placement.netlist.errors import DesignError
from placement.report.view import drawing, tools
from placement.report.view.scene import cost_values, map_values, opened_values
from placement.report.view.session import Session
from placement.report.view.steps import Step
from placement.report.view.window import Window

Values = dict[str, Any]
Handler = Callable[[Window, str, Mapping[str, Any]], Values]


def answer(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    """Does what a page asks; returns the answer.

    Args:
        window: of the page.
        page: which of the pages that are open asks.
        request: what it asks.
    """
    number = request.get("id")
    handler = _HANDLERS.get(str(request.get("do")))
    if handler is None:
        return {"id": number, "error": f"{request.get('do')!r}: no such request; there are {', '.join(_HANDLERS)}"}
    try:
        return {"id": number, "ok": handler(window, page, request)}
    except (DesignError, OSError) as error:
        return {"id": number, "error": str(error)}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return {"id": number, "error": f"{request.get('do')}: the request is not understood: {error!r}"}


def _session(window: Window, request: Mapping[str, Any]) -> tuple[int, Session]:
    index = int(request.get("session", 0))
    return index, window.session(index)


def _changed(window: Window, index: int, step: Step | None, *, back: bool = False) -> Values:
    """Tells every page how a session stands now."""
    window.changed(index, step, back=back)
    return {}


def _scene(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    return window.values()


def _drag(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    index, session = _session(window, request)
    nodes = [int(node) for node in request["nodes"]]
    window.check_free(page, index)
    places = dict(zip(nodes, zip(map(float, request["x"]), map(float, request["y"]), strict=True), strict=True))
    costs = session.drag(places)
    window.hold(page, index)
    faults = {str(node): reasons for node, reasons in session.faults().items()}
    window.tell("dragged", {"session": index, "nodes": nodes, "x": request["x"], "y": request["y"]}, but=page)
    return {"costs": cost_values(costs), "faults": faults}


def _drop(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    index, session = _session(window, request)
    window.check_free(page, index)
    step = session.drop()
    window.release(page)
    return _changed(window, index, step)


def _let_go(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    window.release(page)
    return {}


def _undo(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    index, session = _session(window, request)
    window.check_free(page, index)
    step = session.undo()
    window.release(page)
    return _changed(window, index, step, back=True)


def _redo(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    index, session = _session(window, request)
    window.check_free(page, index)
    step = session.redo()
    window.release(page)
    return _changed(window, index, step)


def _edit(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    """Turns, swaps, aligns, distributes, moves, fixes or releases the selected macros, as one step."""
    index, session = _session(window, request)
    window.check_free(page, index)
    nodes, how = [int(node) for node in request["nodes"]], str(request.get("how", ""))
    design, now = session.design, session.placement
    what = str(request["what"])
    if what in ("fix", "release"):
        step = session.fix(nodes, fixed=what == "fix")
    else:
        at = session.movable(nodes)
        names = design.netlist.names[nodes[0]] if len(nodes) == 1 else f"{len(nodes)} macros"
        if what == "turn":
            after = tools.turn(design, now, at, how)
        elif what == "swap":
            after = tools.swap(now, at)
        elif what == "align":
            after = tools.align(design, now, at, how)
        elif what == "distribute":
            after = tools.distribute(design, now, at, how)
        elif what == "move":
            after = now.moved(at, np.array(request["x"], dtype=float), np.array(request["y"], dtype=float))
        else:
            raise DesignError(f"edit {what!r}: must be turn, swap, align, distribute, move, fix or release")
        step = session.change(f"{what} {names}{f' ({how})' if how else ''}", after)
    window.release(page)
    return _changed(window, index, step)


def _constrain(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    """Adds a constraint, or takes one away, as one step."""
    index, session = _session(window, request)
    window.check_free(page, index)
    what, constraints = drawing.changed(session.design, request)
    step = session.constrain(what, constraints)
    window.release(page)
    return _changed(window, index, step)


def _maps(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    _, session = _session(window, request)
    return map_values(cost_maps(session.design, session.shown()))


def _places(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    index, session = _session(window, request)
    return {"session": index, **opened_values(session)}


def _start(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    index, _ = _session(window, request)
    window.check_free(page, index)
    window.release(page)
    window.start(index, str(request["name"]), dict(request.get("values", {})))
    return {}


def _stop(window: Window, page: str, request: Mapping[str, Any]) -> Values:
    window.stop(_session(window, request)[0])
    return {}


_HANDLERS: dict[str, Handler] = {
    "scene": _scene,
    "drag": _drag,
    "drop": _drop,
    "let_go": _let_go,
    "undo": _undo,
    "redo": _redo,
    "edit": _edit,
    "constrain": _constrain,
    "maps": _maps,
    "places": _places,
    "cells": lambda window, page, request: window.cells(),
    "tracks": lambda window, page, request: window.tracks(),
    "start": _start,
    "stop": _stop,
    "save": lambda window, page, request: window.save(request),
}
