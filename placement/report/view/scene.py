"""What the page draws, as plain values: the design once, and placements, costs and maps as they change.

Arrays are `packed`. Axis legend: N nodes, E nets,
L net-pin incidences, P pins, R grid rows, C grid columns. Lengths are in µm.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from placement.engine.costs import CostMaps, Costs, CostWeights
from placement.netlist.constraints import Constraints
from placement.netlist.design import Design, NodeKind, Orientation, Placement
from placement.report.view.packing import packed
from placement.report.view.session import Session
from placement.report.view.steps import Places

MOST_PINS = 2_000_000
"""Net-pin incidences beyond which the page gets no nets, and so draws no flylines."""


def design_values(design: Design) -> dict[str, Any]:
    """All of a design that does not change: nodes, nets, canvas, constraints."""
    netlist, canvas, constraints = design.netlist, design.canvas, design.constraints
    with_nets = len(netlist.net_pins) <= MOST_PINS
    macros = netlist.kind != NodeKind.CELL  # cells are many, and nobody looks them up by name
    return {
        "name": design.name,
        "canvas": dataclasses.asdict(canvas),
        "kinds": [kind.name.lower() for kind in NodeKind],
        "orientations": [one.name for one in Orientation],
        "names": [name if named else "" for name, named in zip(netlist.names, macros.tolist(), strict=True)],
        "kind": packed(netlist.kind, "int8"),
        "width": packed(netlist.width, "float32"),
        "height": packed(netlist.height, "float32"),
        "nets": _nets(design) if with_nets else None,
        **constraint_values(constraints),
    }


def constraint_values(constraints: Constraints) -> dict[str, Any]:
    """What macros must keep to."""
    return {
        "halo": packed(constraints.halo, "float32") if constraints.halo.any() else None,
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
        "port_keepout": constraints.port_keepout,
    }


def opened_values(session: Session) -> dict[str, Any]:
    """All of a session that the page shows."""
    return {
        "placement": placement_values(session.placement),
        "state": session_values(session),
        "constraints": constraint_values(session.constraints),
    }


def _nets(design: Design) -> dict[str, Any]:
    """The nets: of each incidence the node and the pin's offset from its centre, turned N."""
    netlist = design.netlist
    pins = netlist.net_pins
    return {
        "start": packed(netlist.net_start, "int32"),
        "node": packed(netlist.pin_node[pins], "int32"),
        "dx": packed(netlist.pin_dx[pins], "float32"),
        "dy": packed(netlist.pin_dy[pins], "float32"),
        "weight": packed(netlist.net_weight, "float32"),
    }


def placement_values(placement: Placement) -> dict[str, Any]:
    """Where every node stands."""
    return {
        "x": packed(placement.x, "float64"),
        "y": packed(placement.y, "float64"),
        "orientation": packed(placement.orientation, "int8"),
        "fixed": packed(placement.fixed, "uint8"),
        "placed": packed(placement.placed, "uint8"),
    }


def places_values(places: Places) -> dict[str, Any]:
    """Where some nodes stand."""
    return {field.name: getattr(places, field.name).tolist() for field in dataclasses.fields(places)}


def cost_values(costs: Costs) -> dict[str, float]:
    """A cost's parts by their names."""
    return costs._asdict()


def weight_values(weights: CostWeights) -> dict[str, Any]:
    """The weights of the cost's parts, and its name."""
    return weights._asdict()


def map_values(maps: CostMaps) -> dict[str, Any]:
    """The maps, [R, C] each, the lowest row first."""
    return {name: packed(values, "float32") for name, values in maps._asdict().items()}


def session_values(session: Session) -> dict[str, Any]:
    """What the page shows of a session beside its places: costs, faults, steps."""
    return {
        "name": session.name,
        "revision": session.revision,
        "costs": cost_values(session.costs),
        "start_costs": cost_values(session.start_costs),
        "weights": weight_values(session.weights),
        "faults": {str(node): reasons for node, reasons in session.faults().items()},
        "steps": [{"what": step.what, "command": step.command} for step in session.steps],
        "undone": [{"what": step.what, "command": step.command} for step in session.undone],
        "is_saved": session.is_saved,
        "has_drawn": session.has_drawn,
    }
