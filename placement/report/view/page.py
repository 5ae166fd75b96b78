"""The data that the page draws, as plain values, and the page without a server, as one HTML file.

Arrays are sent as base64 of their little-endian bytes: `{"dtype": "float32", "data": …}`. All values that decide
whether a position is legal (positions, sizes, halos) are float64, since the page computes snapped positions from them.
Axis legend: M standard cells, R grid rows, C grid columns. Lengths are in µm from the canvas's lower left corner.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from placement.engine.costs import cost_maps
from placement.flat.timing import TimingEstimate
from placement.netlist.constraints import Constraints
from placement.netlist.design import Design, NodeKind, Orientation, Placement
from placement.netlist.flat_design import FlatDesign
from placement.report.view.session import Session, Step

MOST_PINS = 2_000_000  # maximum number of net-pin incidences; beyond it the page gets no nets and draws no flylines
BINS = 40  # bins of the histogram of slack
_PLACEMENT = {"x": "float64", "y": "float64", "orientation": "int8", "fixed": "uint8", "placed": "uint8"}
_IMPORT = re.compile(r'(from |import\()"\./(\w+\.js)"')
_MODULE = "viewer/"  # prefix of the names of modules that are embedded in the page


def packed(array: np.ndarray, dtype: str) -> dict[str, str]:
    """An array in the form that the page unpacks."""
    data = np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()
    return {"dtype": dtype, "data": base64.b64encode(data).decode("ascii")}


def design_values(design: Design) -> dict[str, Any]:
    """The data of a design that do not change (nodes, nets, canvas), and its constraints."""
    netlist = design.netlist
    pins = netlist.net_pins
    macros = netlist.kind != NodeKind.CELL  # Cells are many, and nobody looks them up by name.
    nets = {
        "start": packed(netlist.net_start, "int32"),
        "node": packed(netlist.pin_node[pins], "int32"),
        "dx": packed(netlist.pin_dx[pins], "float32"),
        "dy": packed(netlist.pin_dy[pins], "float32"),
        "weight": packed(netlist.net_weight, "float32"),
    }
    return {
        "name": design.name,
        "canvas": dataclasses.asdict(design.canvas),
        "kinds": [kind.name.lower() for kind in NodeKind],
        "orientations": [one.name for one in Orientation],
        "names": [name if named else "" for name, named in zip(netlist.names, macros.tolist(), strict=True)],
        "kind": packed(netlist.kind, "int8"),
        "width": packed(netlist.width, "float64"),
        "height": packed(netlist.height, "float64"),
        "nets": nets if len(pins) <= MOST_PINS else None,
        **constraint_values(design.constraints),
    }


def constraint_values(constraints: Constraints) -> dict[str, Any]:
    """The constraints of macros."""
    return {
        "halo": packed(constraints.halo, "float64") if constraints.halo.any() else None,
        "blockages": constraints.blockages.tolist(),
        "regions": [
            {
                "name": one.name,
                "rectangles": one.rectangles.tolist(),
                "nodes": one.nodes.tolist(),
                "exclusive": one.is_exclusive,
            }
            for one in constraints.regions
        ],
        "grid": dataclasses.asdict(constraints.grid),
        "macro_grids": [
            {"nodes": one.nodes.tolist(), "grids": [dataclasses.asdict(grid) for grid in one.grids]}
            for one in constraints.macro_grids
        ],
        "port_keepout": constraints.port_keepout,
        "channel": list(constraints.channel),
    }


def opened_values(session: Session) -> dict[str, Any]:
    """All data that the page shows of a session."""
    return {
        "placement": {name: packed(getattr(session.placement, name), dtype) for name, dtype in _PLACEMENT.items()},
        "state": session_values(session),
        "constraints": constraint_values(session.design.constraints),
    }


def changed_values(session: Session, step: Step | None, *, back: bool) -> dict[str, Any]:
    """The data of a session that have changed after a step, or `back` before it."""
    values: dict[str, Any] = {"state": session_values(session)}
    if step is not None:
        places = step.before if back else step.after
        values["places"] = {field.name: getattr(places, field.name).tolist() for field in dataclasses.fields(places)}
        if step.new is not None:
            values["constraints"] = constraint_values(session.design.constraints)
    return values


def map_values(session: Session) -> dict[str, Any]:
    """The maps, including dragged macros, [R, C] each, the lowest row first."""
    maps = cost_maps(session.design, session.shown())
    return {name: packed(values, "float32") for name, values in maps._asdict().items()}


def session_values(session: Session) -> dict[str, Any]:
    """The data that the page shows of a session besides positions: costs, faults, steps."""

    def listed(steps: Sequence[Step]) -> list[dict[str, Any]]:
        return [{"what": step.what, "command": step.command} for step in steps]

    return {
        "name": session.name,
        "revision": session.revision,
        "costs": session.costs._asdict(),
        "start_costs": session.start_costs._asdict(),
        "weights": session.weights._asdict(),
        "faults": {str(node): reasons for node, reasons in session.faults().items()},
        "steps": listed(session.steps),
        "undone": listed(session.undone),
        "is_saved": session.is_saved,
        "has_drawn": session.has_drawn,
    }


def timing_values(design: Design, found: TimingEstimate, macros: Mapping[int, float]) -> dict[str, Any]:
    """An estimate with the worst slack (ps) of hard macros by their nodes, in the page's form."""
    node_of = {name: node for node, name in enumerate(design.netlist.names)}
    counts, edges = np.histogram(found.slack_at_end, bins=BINS)
    paths = [
        {
            "slack": path.slack,
            "start": path.start,
            "end": path.end,
            "macros": [node_of[name] for name in path.macros if name in node_of],
            "x": np.round(path.x, 2).tolist(),
            "y": np.round(path.y, 2).tolist(),
        }
        for path in found.paths
    ]
    return {
        "worst": found.total.wns,
        "tns": found.tns,
        "endpoints": found.total.endpoints,
        "failing": found.total.failing,
        "histogram": {"counts": counts.tolist(), "edges": edges.tolist()},
        "paths": paths,
        "macros": {str(node): slack for node, slack in macros.items()},
    }


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Standard cells in the page's form: centres and oriented sizes (float64 [M], µm), and their positions' source."""

    x: np.ndarray
    y: np.ndarray
    width: np.ndarray
    height: np.ndarray
    source: str

    @classmethod
    def of(cls, flat: FlatDesign, placement: Placement, source: str) -> Cells | None:
        """The cells of a flat design in a placement of it; None if none is placed."""
        core, cells = flat.floorplan.core, flat.cells
        cells = cells[placement.placed[cells]]
        if not len(cells):
            return None
        width, height = (side[cells] for side in flat.netlist.sides(placement.orientation))
        return cls(placement.x[cells] - core.x_low, placement.y[cells] - core.y_low, width, height, source)

    def values(self) -> dict[str, Any]:
        arrays = {name: packed(getattr(self, name), "float32") for name in ("x", "y", "width", "height")}
        return {**arrays, "source": self.source}


@functools.cache
def static_names() -> list[str]:
    """The names of the page's own files."""
    return sorted(entry.name for entry in files("placement.report.view").joinpath("static").iterdir())


@functools.cache
def static_text(name: str) -> str:
    """The text of one of the page's own files."""
    return files("placement.report.view").joinpath("static", name).read_text(encoding="utf-8")


def static_page(design: Design, sessions: Sequence[Session], *, title: str = "") -> str:
    """The page with its data and its program in one file, which loads nothing."""
    values = {
        "title": title or design.name,
        "design": design_values(design),
        "sessions": [{**opened_values(one), "maps": map_values(one)} for one in sessions],
        "folder": "",
    }
    modules = [name for name in static_names() if name.endswith(".js")]
    imports = {f"{_MODULE}{name}": _as_address(static_text(name)) for name in modules}
    data = json.dumps(values, allow_nan=False).replace("<", "\\u003c")  # The data must not end the script element.
    head = (
        f"<style>\n{static_text('style.css')}</style>\n"
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>\n'
        f'<script type="application/json" id="embedded">{data}</script>\n'
        f'<script type="module">import "{_MODULE}main.js";</script>'
    )
    loads = r'<link rel="stylesheet".*?>\n<script .*?</script>'
    page = re.sub(loads, lambda _: head, static_text("index.html"), flags=re.DOTALL)
    return page.replace("<title>Placement</title>", f"<title>{html.escape(title or design.name)}</title>")


def _as_address(script: str) -> str:
    """A module as a `data:` address that imports others by name."""
    named = _IMPORT.sub(rf'\1"{_MODULE}\2"', script)
    return "data:text/javascript;base64," + base64.b64encode(named.encode()).decode("ascii")


def framed(page: str, title: str) -> str:
    """A page as a frame of another page, without a separate file."""
    return (
        f'<iframe class="viewer" title="{html.escape(title)}" srcdoc="{html.escape(page)}" '
        'style="width: 100%; height: 44rem; border: 1px solid #d9dde1"></iframe>'
    )
