"""The compact form of a flat design on disk: one `.npz` file without pickled objects, which loads in a moment.

Pins of masters and shapes of standard cells are not kept: a netlist holds the offsets of its own pins.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import tokenize
import zipfile
import zlib
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from placement.netlist.bytes_file import SourceFile
from placement.netlist.design import Netlist, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.flat_design import FlatDesign
from placement.netlist.floorplan import Blockage, Floorplan, Rectangle, Region, Rows, Tracks
from placement.netlist.macro_array import MacroArray
from placement.netlist.technology import LayerDirection, Master, RoutingLayer, Site, Technology

FLAT_NAME = "flat.npz"
DEF_NAME = "source.def.gz"
POSITIONS_NAME = "source.pl.gz"
"""The user's own DEF file, or Bookshelf's positions, that a design was imported from: beside the flat netlist."""
DAMAGED_NPZ = (ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, tokenize.TokenError)
"""What NumPy and zipfile raise for a file that is no `.npz` file, or a damaged one."""
_FORM = 1
_NETLIST = [field.name for field in dataclasses.fields(Netlist) if field.name != "names"]
_PLACEMENT = [field.name for field in dataclasses.fields(Placement)]
_ROWS = [field.name for field in dataclasses.fields(Rows)]


def write_flat(path: str | os.PathLike[str], design: FlatDesign) -> None:
    """Writes a flat design, whole or not at all.

    Raises:
        DesignError: a name holds a line break.
        OSError: the folder does not exist or cannot be written.
    """
    netlist, plan = design.netlist, design.floorplan
    broken = next((name for name in netlist.names if "\n" in name), None)
    if broken is not None:
        raise DesignError(f"node {broken!r}: a name must not hold a line break")
    arrays: dict[str, np.ndarray] = {
        "names": _bytes("\n".join(netlist.names)),
        "header": _bytes(json.dumps(_header(design))),
        "master": design.master,
        "halo_node": plan.halo_node,
        "halo": plan.halo,
    }
    arrays |= {f"netlist_{name}": getattr(netlist, name) for name in _NETLIST}
    arrays |= {f"placement_{name}": getattr(design.placement, name) for name in _PLACEMENT}
    arrays |= {f"rows_{name}": getattr(plan.rows, name) for name in _ROWS}
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    write_whole(path, out.getvalue())


def read_flat(path: str | os.PathLike[str]) -> FlatDesign:
    """The flat design in a file that `write_flat` wrote.

    Raises:
        DesignError: the file cannot be read or is none of these.
    """
    try:
        # Read whole first: np.load leaves a file open that it refuses.
        with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays["header"].tobytes())
    except OSError as error:
        raise DesignError(f"{path}: cannot be read: {error.strerror or error}") from None
    except DAMAGED_NPZ as error:
        raise DesignError(f"{path}: no flat design, or a damaged one: {error}") from None
    if not isinstance(header, dict):
        raise DesignError(f"{path}: no flat design: its header is a {type(header).__name__}, no table of values")
    if header.get("form") != _FORM:
        raise DesignError(f"{path}: is of form {header.get('form')}; this version reads form {_FORM}: import it again")
    try:
        return _design(header, arrays)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise DesignError(f"{path}: no flat design, or a damaged one: {error}") from None


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8"), dtype=np.uint8)


def _header(design: FlatDesign) -> dict[str, Any]:
    plan, technology = design.floorplan, design.technology
    return {
        "form": _FORM,
        "name": design.name,
        "master_names": design.master_names,
        "written_names": {str(node): name for node, name in design.written_names.items()},
        "sources": [dataclasses.astuple(source) for source in design.sources],
        "notices": design.notices,
        "units": plan.units,
        "die": dataclasses.astuple(plan.die),
        "core": dataclasses.astuple(plan.core),
        "manufacturing_grid": plan.manufacturing_grid,
        "tracks": [dataclasses.astuple(tracks) for tracks in plan.tracks],
        "blockages": [
            [blockage.rectangles.tolist(), blockage.layer, blockage.is_soft, blockage.density, blockage.node]
            for blockage in plan.blockages
        ],
        "regions": [
            [region.name, region.rectangles.tolist(), region.nodes.tolist(), region.is_guide, region.is_exclusive]
            for region in plan.regions
        ],
        "technology_units": technology.units,
        "technology_grid": technology.manufacturing_grid,
        "layers": [
            [layer.name, layer.direction.value, layer.pitch_x, layer.pitch_y, layer.width]
            for layer in technology.layers
        ],
        "sites": [dataclasses.astuple(site) for site in technology.sites.values()],
        "masters": [_master(technology.masters[name]) for name in design.master_names if name in technology.masters],
        "arrays": [
            [one.node, one.names, one.written_names, one.width, one.height, one.dx.tolist(), one.dy.tolist()]
            for one in design.arrays
        ],
    }


def _master(master: Master) -> list[Any]:
    shapes = (master.obstructions, master.pin_shapes) if master.is_block else ({}, {})
    return [
        master.name,
        master.kind,
        master.subkind,
        master.width,
        master.height,
        sorted(master.symmetry),
        master.site,
        *({layer: rectangles.tolist() for layer, rectangles in kind.items()} for kind in shapes),
    ]


def _design(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> FlatDesign:
    names = arrays["names"].tobytes().decode("utf-8")
    return FlatDesign(
        name=header["name"],
        netlist=Netlist(
            names=tuple(names.split("\n")) if names else (),
            **{name: arrays[f"netlist_{name}"] for name in _NETLIST},
        ),
        placement=Placement(**{name: arrays[f"placement_{name}"] for name in _PLACEMENT}),
        floorplan=_floorplan(header, arrays),
        technology=_technology(header),
        master=arrays["master"],
        master_names=tuple(header["master_names"]),
        written_names={int(node): name for node, name in header["written_names"].items()},
        sources=tuple(SourceFile(*source) for source in header["sources"]),
        notices=tuple(header["notices"]),
        arrays=tuple(
            MacroArray(node, tuple(names), tuple(written), width, height, np.array(dx), np.array(dy))
            for node, names, written, width, height, dx, dy in header.get("arrays", [])
        ),
    )


def _floorplan(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Floorplan:
    return Floorplan(
        units=header["units"],
        die=Rectangle(*header["die"]),
        core=Rectangle(*header["core"]),
        rows=Rows(**{name: arrays[f"rows_{name}"] for name in _ROWS}),
        tracks=tuple(Tracks(*tracks) for tracks in header["tracks"]),
        blockages=tuple(Blockage(np.array(shape), *rest) for shape, *rest in header["blockages"]),
        regions=tuple(
            Region(name, np.array(shape), np.array(nodes), *rest) for name, shape, nodes, *rest in header["regions"]
        ),
        halo_node=arrays["halo_node"],
        halo=arrays["halo"],
        manufacturing_grid=header["manufacturing_grid"],
    )


def _technology(header: dict[str, Any]) -> Technology:
    layers = [
        RoutingLayer(name, LayerDirection(direction), pitch_x, pitch_y, width, number)
        for number, (name, direction, pitch_x, pitch_y, width) in enumerate(header["layers"])
    ]
    masters = {}
    for name, kind, subkind, width, height, symmetry, site, *shapes in header["masters"]:
        obstructions, pin_shapes = (
            MappingProxyType({layer: np.array(boxes).reshape(-1, 4) for layer, boxes in by_layer.items()})
            for by_layer in shapes
        )
        masters[name] = Master(
            name, kind, subkind, width, height, frozenset(symmetry), site, (), obstructions, pin_shapes
        )
    return Technology(
        units=header["technology_units"],
        manufacturing_grid=header["technology_grid"],
        layers=tuple(layers),
        sites=MappingProxyType({site[0]: Site(*site) for site in header["sites"]}),
        masters=MappingProxyType(masters),
    )
