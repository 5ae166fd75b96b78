"""A design before clustering, with every standard cell and the floorplan around it, and the `.npz` file that stores it.

Axis legend: N nodes (hard macros, ports and standard cells, in file order), M macros of an array, in rows from its
lower left corner. Lengths in µm.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from placement.netlist.design import TURN, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import SourceFile, read_npz, write_npz
from placement.netlist.floorplan import Blockage, Floorplan, Region, Rows, Straps, Tracks
from placement.netlist.geometry import Rectangle, frozen
from placement.netlist.technology import LayerDirection, Master, RoutingLayer, Site, Technology

FLAT_NAME = "flat.npz"
STRAYED = 1.5
"""Database units by which a macro of an array may deviate from its position, since corners and sides are rounded."""
_FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True, eq=False)
class MacroArray:
    """Macros of one size that are placed, mirrored and rotated as one node of the netlist.

    Raises DesignError if there are fewer than two macros, or a length is wrong.
    """

    node: int  # the node of the flat netlist that represents them
    names: tuple[str, ...]  # M unescaped names
    written_names: tuple[str, ...]  # M names as the user's DEF file writes them
    width: float  # width, height: µm, of each macro in orientation N
    height: float
    dx: np.ndarray  # dx, dy: float64 [M], µm, each macro's centre relative to the array's, both in orientation N
    dy: np.ndarray

    def __post_init__(self) -> None:
        for field in ("names", "written_names"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        for field in ("dx", "dy"):
            object.__setattr__(self, field, frozen(getattr(self, field), np.float64))
        count = len(self.names)
        if count < 2 or {len(self.written_names), len(self.dx), len(self.dy)} != {count}:
            raise DesignError(
                f"an array of {count} macros with {len(self.dx)} positions: must be two or more, one position per macro"
            )

    def members_at(self, x: float, y: float, orientation: int) -> tuple[np.ndarray, np.ndarray]:
        """The macros' centres if the array's centre is (x, y), float64 [M] each; all have its orientation."""
        turn = TURN[orientation]
        return x + turn[0] * self.dx + turn[1] * self.dy, y + turn[2] * self.dx + turn[3] * self.dy

    def corners_at(self, x: float, y: float, orientation: int) -> np.ndarray:
        """The corners of the macros' boxes if the array's centre is (x, y), float64 [M, 4, 2]."""
        centres = np.stack(self.members_at(x, y, orientation), axis=1)
        half = np.array([self.width, self.height]) / 2
        half = half[::-1] if Orientation(orientation).swaps_sides else half
        return centres[:, None] + half * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])

    def place_of(
        self, x: np.ndarray, y: np.ndarray, orientation: np.ndarray, *, tolerance: float
    ) -> tuple[float, float, Orientation] | None:
        """The position of the array, from the positions of its macros; None if these do not form the array.

        Args:
            x: float64 [M], µm, the macros' centres.
            y: float64 [M], µm.
            orientation: int [M].
            tolerance: µm by which a macro may deviate from its position on each axis.
        """
        turn = TURN[orientation[0]]
        centre_x = x - turn[0] * self.dx - turn[1] * self.dy
        centre_y = y - turn[2] * self.dx - turn[3] * self.dy
        middle_x, middle_y = float(np.median(centre_x)), float(np.median(centre_y))
        strayed = max(float(np.abs(centre_x - middle_x).max()), float(np.abs(centre_y - middle_y).max()))
        if (orientation != orientation[0]).any() or strayed > tolerance:
            return None
        return middle_x, middle_y, Orientation(orientation[0])


@dataclasses.dataclass(frozen=True, eq=False)
class FlatDesign:
    """A flat netlist on its floorplan.

    Unlike in a clustered netlist, a standard cell has one pin for each net that it is on, each with its own offset.
    Raises DesignError if a length is wrong, a node is a soft macro, a port is not placed, an array is not a hard macro.
    """

    name: str  # the design's name
    # hard macros, ports and standard cells; no soft macros and no supply nets. Names are unescaped and have `/` as the
    # divider.
    netlist: Netlist
    placement: Placement  # µm from the same origin as `floorplan`; all ports are placed
    floorplan: Floorplan  # die, rows, tracks, constraints
    technology: Technology  # layers and masters; empty without LEF files
    master: np.ndarray  # int32 [N], the index of each node's master in `master_names`; -1 for ports
    master_names: tuple[str, ...]  # the masters' names
    written_names: dict[int, str]  # node → its name as the user's DEF file writes it, where that differs
    sources: tuple[SourceFile, ...] = ()  # the files that the design was read from
    notices: tuple[str, ...] = ()  # unusual, assumed or derived facts found while reading, one sentence each
    # hard macros that represent several macros of the files, whose common master they have
    arrays: tuple[MacroArray, ...] = ()

    def __post_init__(self) -> None:
        count = self.netlist.num_nodes
        object.__setattr__(self, "master", frozen(self.master, np.int32))
        if len(self.placement.x) != count or len(self.master) != count:
            raise DesignError(f"{len(self.placement.x)} positions and {len(self.master)} masters for {count} nodes")
        if len(self.netlist.soft):
            raise DesignError(f"node {self.netlist.names[self.netlist.soft[0]]!r} is a soft macro in a flat netlist")
        ports = self.netlist.ports
        if not self.placement.placed[ports].all():
            raise DesignError(f"port {self.netlist.names[ports[~self.placement.placed[ports]][0]]!r} has no position")
        wrong = {array.node for array in self.arrays} - set(self.netlist.hard.tolist())
        if wrong:
            raise DesignError(f"node number {min(wrong)} represents an array but is not a hard macro")

    @functools.cached_property
    def cells(self) -> np.ndarray:
        """The standard cells in file order, int32 [·]."""
        return self.netlist.indices(NodeKind.CELL)

    @functools.cached_property
    def pads(self) -> np.ndarray:
        """The hard macros of the pad ring in file order, int32 [·]."""
        masters = self.technology.masters
        is_pad = np.array([name in masters and masters[name].is_pad for name in self.master_names] + [False])
        hard = self.netlist.hard
        return hard[is_pad[self.master[hard]]]

    def freed(self) -> FlatDesign:
        """The same design with movable macros; fixed ports, cells and pads stay fixed."""
        fixed = self.placement.fixed & (self.netlist.kind != NodeKind.HARD)
        fixed[self.pads] = True
        return dataclasses.replace(self, placement=dataclasses.replace(self.placement, fixed=fixed))

    def written_name(self, node: int) -> str:
        """A node's name as the user's DEF file writes it."""
        return self.written_names.get(node, self.netlist.names[node])


def write_flat(path: str | os.PathLike[str], design: FlatDesign) -> None:
    """Writes a flat design, entirely or not at all, without pickled objects.

    The masters' pins and the shapes of standard cells are omitted, since the netlist has the offsets of its pins.

    Raises:
        DesignError: a name contains a line break.
        OSError: the folder does not exist or cannot be written.
    """
    netlist, plan = design.netlist, design.floorplan
    broken = next((name for name in netlist.names if "\n" in name), None)
    if broken is not None:
        raise DesignError(f"node {broken!r}: a name must not contain a line break")
    arrays: dict[str, np.ndarray] = {
        "names": _bytes("\n".join(netlist.names)),
        "header": _bytes(json.dumps(_header(design), default=lambda direction: direction.value)),
        "master": design.master,
        "halo_node": plan.halo_node,
        "halo": plan.halo,
    }
    for prefix, owner in (("netlist", netlist), ("placement", design.placement), ("rows", plan.rows)):
        columns = (field.name for field in dataclasses.fields(owner) if field.name != "names")
        arrays |= {f"{prefix}_{name}": getattr(owner, name) for name in columns}
    write_npz(path, arrays)


def require_flat(folder: str | os.PathLike[str]) -> Path:
    """Returns the file of the flat design in a design's folder; raises DesignError if there is none."""
    path = Path(folder) / FLAT_NAME
    if not path.is_file():
        raise DesignError(
            f"{folder} has no flat netlist ({FLAT_NAME}): import the design from its LEF, DEF, Bookshelf or flat "
            "protobuf files, or generate one with `macro-placement generate flat`"
        )
    return path


def flat_or_none(folder: str | os.PathLike[str]) -> FlatDesign | None:
    """The flat design in a design's folder; None if there is none. Raises DesignError if it cannot be read."""
    path = Path(folder) / FLAT_NAME
    return read_flat(path) if path.is_file() else None


def read_flat(path: str | os.PathLike[str]) -> FlatDesign:
    """Reads a flat design from a file that `write_flat` wrote, or from a design's folder.

    Raises DesignError if there is no such file, it cannot be read or is not a flat design.
    """
    if Path(path).is_dir():
        path = require_flat(path)
    arrays = read_npz(path, "flat design")
    try:
        header = json.loads(arrays["header"].tobytes())
        if header.get("form") == _FORMAT_VERSION:
            return _design(header, arrays)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise DesignError(f"{path}: not a valid flat design: {error}") from None
    found = header.get("form")
    raise DesignError(
        f"{path}: has format version {found}; this program reads version {_FORMAT_VERSION}: import the design again"
    )


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8"), dtype=np.uint8)


def _values(one: Any) -> list[Any]:
    """The fields of a dataclass, arrays as lists."""
    values = (getattr(one, field.name) for field in dataclasses.fields(one))
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


def _header(design: FlatDesign) -> dict[str, Any]:
    """The fields that are not arrays of numbers, as JSON values."""
    plan, technology = design.floorplan, design.technology
    return {
        "form": _FORMAT_VERSION,
        "name": design.name,
        "master_names": design.master_names,
        "written_names": design.written_names,
        "sources": [_values(source) for source in design.sources],
        "notices": design.notices,
        "units": plan.units,
        "die": _values(plan.die),
        "core": _values(plan.core),
        "manufacturing_grid": plan.manufacturing_grid,
        "straps": [_values(straps) for straps in plan.straps],
        "tracks": [_values(tracks) for tracks in plan.tracks],
        "blockages": [_values(blockage) for blockage in plan.blockages],
        "regions": [_values(region) for region in plan.regions],
        "technology_units": technology.units,
        "technology_grid": technology.manufacturing_grid,
        "layers": [_layer(layer) for layer in technology.layers],
        "sites": [_values(site) for site in technology.sites.values()],
        "masters": [_master(technology.masters[name]) for name in design.master_names if name in technology.masters],
        "arrays": [_values(array) for array in design.arrays],
    }


def _layer(layer: RoutingLayer) -> list[Any]:
    """All fields of a layer except its number, which is its index in the list."""
    return [value for field, value in vars(layer).items() if field != "number"]


def _master(master: Master) -> list[Any]:
    size, symmetry = (master.width, master.height), sorted(master.symmetry)
    shapes = (master.obstructions, master.pin_shapes) if master.is_block else ({}, {})
    by_layer = [{layer: rectangles.tolist() for layer, rectangles in kind.items()} for kind in shapes]
    return [master.name, master.kind, master.subkind, *size, symmetry, master.site, *by_layer]


def _design(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> FlatDesign:
    names = arrays["names"].tobytes().decode("utf-8")

    def columns(prefix: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    return FlatDesign(
        name=header["name"],
        netlist=Netlist(names=tuple(names.split("\n")) if names else (), **columns("netlist_")),
        placement=Placement(**columns("placement_")),
        floorplan=Floorplan(
            units=header["units"],
            die=Rectangle(*header["die"]),
            core=Rectangle(*header["core"]),
            rows=Rows(**columns("rows_")),
            tracks=tuple(Tracks(*tracks) for tracks in header["tracks"]),
            blockages=tuple(Blockage(*blockage) for blockage in header["blockages"]),
            regions=tuple(Region(*region) for region in header["regions"]),
            halo_node=arrays["halo_node"],
            halo=arrays["halo"],
            manufacturing_grid=header["manufacturing_grid"],
            straps=tuple(Straps(*straps) for straps in header.get("straps", [])),
        ),
        technology=_technology(header),
        master=arrays["master"],
        master_names=tuple(header["master_names"]),
        written_names={int(node): name for node, name in header["written_names"].items()},
        sources=tuple(SourceFile(*source) for source in header["sources"]),
        notices=tuple(header["notices"]),
        arrays=tuple(MacroArray(*array) for array in header.get("arrays", [])),
    )


def _technology(header: dict[str, Any]) -> Technology:
    layers = (
        RoutingLayer(name, LayerDirection(direction), pitch_x, pitch_y, width, number, *electrical)
        for number, (name, direction, pitch_x, pitch_y, width, *electrical) in enumerate(header["layers"])
    )
    masters = {}
    for name, kind, subkind, width, height, symmetry, site, *shapes in header["masters"]:
        shapes = [
            MappingProxyType({layer: np.array(boxes).reshape(-1, 4) for layer, boxes in by_layer.items()})
            for by_layer in shapes
        ]
        masters[name] = Master(name, kind, subkind, width, height, frozenset(symmetry), site, (), *shapes)
    return Technology(
        units=header["technology_units"],
        manufacturing_grid=header["technology_grid"],
        layers=tuple(layers),
        sites=MappingProxyType({site[0]: Site(*site) for site in header["sites"]}),
        masters=MappingProxyType(masters),
    )
