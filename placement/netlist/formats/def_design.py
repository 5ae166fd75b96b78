"""Builds a flat design from LEF and DEF files: components and design pins become nodes, and nets connect their pins.

Axis legend: N nodes (components, then ports), M components, D design pins, C connections in the file, E nets that are
kept, L their pins. Lengths in µm.
"""

import dataclasses
import os
from collections.abc import Collection, Sequence

import numpy as np

from placement.netlist.builder import file_indices
from placement.netlist.design import TURN, Netlist, NodeKind, Orientation, Placement
from placement.netlist.errors import SHOWN, DesignError, Finding, listing, reject
from placement.netlist.flat_design import FlatDesign
from placement.netlist.flat_design_checks import lint
from placement.netlist.floorplan import Floorplan, place_missing
from placement.netlist.formats.def_file import DIRECTIONS, USES, DefFile, PlacementStatus, read_def
from placement.netlist.formats.def_floorplan import floorplan_of
from placement.netlist.formats.lef import read_lefs
from placement.netlist.formats.verilog import plain
from placement.netlist.technology import Master, Technology

SUPPLY = (USES.index("POWER"), USES.index("GROUND"))  # the `use` values of supply pins and nets
_FILLER_ROWS = 3  # height of the highest fillers, such as decoupling cells, in rows


def read_lef_def(
    lefs: Sequence[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    free_macros: bool = False,
) -> tuple[FlatDesign, DefFile]:
    """Reads a flat design from LEF files and a DEF file with nets; also returns the DEF file.

    Args:
        lefs: technology and library files, in any order.
        path: the DEF file, which an export changes.
        name: the design's name; default: the one in the DEF file.
        free_macros: whether macros that the file fixes may move; pads stay fixed.

    Raises:
        DesignError: like `read_lefs` and `read_def`; masters or masters' pins do not exist, a master has no size, the
            file has no nets, or names are not unique.
    """
    technology, sources = read_lefs(lefs)
    file = read_def(path, units=technology.units)
    design = flat_design_of(file, technology, name=name)
    design = design.freed() if free_macros else design
    notices = (*technology.notices, *design.notices, *lint(design))
    return dataclasses.replace(design, sources=(*sources, file.source), notices=notices), file


def flat_design_of(file: DefFile, technology: Technology, *, name: str | None = None) -> FlatDesign:
    """Builds the flat design of a DEF file and its masters; raises DesignError like `read_lef_def`."""
    if not (file.nets.component >= 0).any():
        raise DesignError(
            f"{file.path}: the file has no nets; write it again with the netlist loaded (OpenROAD: write_def after "
            "link_design; Innovus: defOut -netlist), or also give the netlist as Verilog or as a flat protobuf"
        )
    masters = _masters(file, technology)
    ports = np.flatnonzero(~np.isin(file.pins.use, SUPPLY))
    floorplan, notices = floorplan_of(file, technology, np.arange(len(file.components.names), dtype=np.int32))
    components = _components(file, masters, floorplan, technology)
    names, written_names = _unique_names(file, ports)
    nets = _nets(file, masters, ports, components.is_point)
    kind = np.concatenate((components.kind, np.full(len(ports), NodeKind.PORT, dtype=np.int8)))
    sides = np.zeros(len(ports))
    netlist = Netlist(
        names=names,
        kind=kind,
        width=np.concatenate((components.width, sides)),
        height=np.concatenate((components.height, sides)),
        file_index=file_indices(kind, nets.pin_node),
        pin_node=nets.pin_node,
        pin_dx=nets.pin_dx,
        pin_dy=nets.pin_dy,
        net_weight=nets.weight,
        net_start=nets.start,
        net_pins=np.arange(len(nets.pin_node)),
    )
    x, y, placed, port_notices = port_places(file, ports, floorplan)
    placement = Placement(
        x=np.concatenate((components.x, x)),
        y=np.concatenate((components.y, y)),
        orientation=np.concatenate((file.components.orientation, np.zeros(len(ports), dtype=np.int8))),
        placed=np.concatenate((components.placed, placed)),
        fixed=np.concatenate((components.fixed, np.ones(len(ports), dtype=np.bool_))),
    )
    return FlatDesign(
        name=name or file.design or "design",
        netlist=netlist,
        placement=placement,
        floorplan=floorplan,
        technology=technology,
        master=np.concatenate((file.components.master, np.full(len(ports), -1))),
        master_names=tuple(file.components.masters),
        written_names=written_names,
        sources=(file.source,),
        notices=(*file.notices, *notices, *nets.notices, *components.notices, *port_notices),
    )


def _masters(file: DefFile, technology: Technology) -> list[Master]:
    """The master of each entry of `components.masters`."""
    components, masters = file.components, technology.masters
    unknown = [name for name in components.masters if name not in masters]
    flat = [name for name in components.masters if name in masters and not masters[name].has_size]
    findings = []
    for what, names in (
        ("masters that no LEF file defines", unknown),
        ("masters whose LEF gives no SIZE above 0", [name for name in flat if not masters[name].is_cover]),
    ):
        first = []
        for name in names[:SHOWN]:
            component = int(np.flatnonzero(components.master == components.masters.index(name))[0])
            first.append((file.line(components.begin[component]), name))
        findings += [(what, len(names), first)] if names else []
    reject(file.path, findings)
    return [masters[name] for name in components.masters]


def _unique_names(file: DefFile, ports: np.ndarray) -> tuple[tuple[str, ...], dict[int, str]]:
    """The nodes' names, and the names that the file writes differently.

    Two names that are equal after unescaping keep their backslashes; a port with the name of a component is called
    `port:NAME`.
    """
    plain = file.components.names + [file.pins.names[port] for port in ports]
    written = file.components.written_names + [file.pins.written_names[port] for port in ports]
    components = len(file.components.names)
    names = list(plain)
    if len(set(names)) != len(names):
        seen: dict[str, int] = {}
        for node, name in enumerate(plain):
            if seen.setdefault(name, node) != node:
                names[node] = written[node] if node < components else f"port:{written[node]}"
                first = seen[name]
                names[first] = names[first] if first >= components else written[first]
    if len(set(names)) != len(names):
        raise DesignError(f"{file.path}: components and pins have names that are not unique")
    return tuple(names), {node: text for node, text in enumerate(written) if text != names[node]}


@dataclasses.dataclass(frozen=True, eq=False)
class _Components:
    """The kinds, sizes and positions of components."""

    kind: np.ndarray  # int8 [M], `NodeKind`: macros, cells, and ports for points
    width: np.ndarray  # width, height: float64 [M], µm in orientation N; 0 for points
    height: np.ndarray
    x: np.ndarray  # x, y: float64 [M], µm, centres; 0 where not placed
    y: np.ndarray
    placed: np.ndarray  # placed, fixed, is_point: bool [M]
    fixed: np.ndarray
    is_point: np.ndarray
    notices: tuple[str, ...]  # the assumptions that were made


def placement_status(file: DefFile, is_block: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """The `PlacementStatus` of each component, int8 [M], and notices.

    Tools write unplaced components as PLACED at one point, mostly (0, 0). If more than half of the PLACED macros
    (`is_block`, bool [M]) or cells share a point, all that are PLACED there count as unplaced.
    """
    components, status, notices = file.components, file.components.status.copy(), []
    moves = status == PlacementStatus.PLACED
    at = np.stack((components.x, components.y), axis=1)
    for group in (moves & is_block, moves & ~is_block, moves):
        point = _shared_point(at[group])
        heap = moves & (at == point).all(axis=1) if point is not None else moves & False
        if point is not None and (status[heap] == PlacementStatus.PLACED).any():
            status[heap] = PlacementStatus.UNPLACED
            where = f"({point[0] / file.units:g}, {point[1] / file.units:g})"
            notices.append(
                f"{file.path}: {int(heap.sum()):,} components PLACED at one point {where} are treated as unplaced"
            )
    return status, notices


def _shared_point(at: np.ndarray) -> np.ndarray | None:
    """The point that more than half of two or more points (int [·, 2]) share; None if there is none."""
    if len(at) < 2:
        return None
    middle = np.median(at, axis=0)
    return middle if 2 * int((at == middle).all(axis=1).sum()) > len(at) else None


def _components(file: DefFile, masters: list[Master], plan: Floorplan, technology: Technology) -> _Components:
    """Converts the components to nodes.

    Components of CLASS BLOCK that are fillers are cells: low ones without a signal pin, and those of one row on no net.
    The pad ring is fixed before macros are placed, and bumps lie above everything, so they never move. A pad beside the
    core is a point at its edge towards the core, and a bump a point in its middle; unplaced ones are spread on the
    die's edges. A pad within the core is a fixed macro.
    """
    components, core = file.components, plan.core
    row = plan.rows.row_height or min((s.height for s in technology.sites.values() if s.kind == "CORE"), default=0.0)
    columns = [(m.width, m.height, m.is_block, m.is_pad, m.is_cover, m.kind == "BLOCK", m.has_signals) for m in masters]
    of_master = np.array(columns, dtype=np.float64).reshape(-1, 7)[components.master]
    width, height = of_master[:, 0], of_master[:, 1]
    is_block, is_pad, is_cover, is_plain, has_signals = (of_master[:, column] > 0 for column in range(2, 7))
    is_low, is_short = (is_plain & (height <= rows * row * (1 + 1e-9)) for rows in (1, _FILLER_ROWS))
    is_joined = np.zeros(len(components.names), dtype=np.bool_)
    is_joined[file.nets.component[file.nets.component >= 0]] = True
    without_pin, without_net = is_short & ~has_signals, is_low & has_signals & ~is_joined
    filler = without_pin | without_net
    is_block &= ~filler
    status, notices = placement_status(file, is_block)
    for chosen, rows, what in (
        (without_pin, f"{_FILLER_ROWS} rows", "have no signal pin: they are treated as cells"),
        (without_net, "a row", "are on no net: they are treated as cells"),
        (is_low & ~filler, "a row", "are treated as macros, although only one row high"),
    ):
        count = int(chosen.sum())
        notices += [f"{count:,} components of CLASS BLOCK, no higher than {rows}, {what}"] if count else []
    placed = status >= PlacementStatus.PLACED
    turned = components.orientation >= Orientation.E
    low = np.stack((components.x, components.y), axis=1) / file.units
    high = low + np.stack((np.where(turned, height, width), np.where(turned, width, height)), axis=1)
    core_low, core_high = np.array([core.x_low, core.y_low]), np.array([core.x_high, core.y_high])
    beside = ((high <= core_low) | (low >= core_high)).any(axis=1)
    # Some tools write power rings, seals or routing over the whole chip as a fixed macro.
    above = is_block & (status >= PlacementStatus.FIXED) & ((low <= core_low) & (high >= core_high)).all(axis=1)
    above &= bool((is_block & ~above).any())
    if above.any():
        first = components.names[int(np.flatnonzero(above)[0])]
        notices.append(
            f"{int(above.sum())} fixed macros that cover the whole core, the first being {first!r}, are not obstacles"
        )
    is_cover = is_cover | above
    is_point = is_cover | (is_pad & (beside | ~placed))
    centre = (low + high) / 2
    edge = np.where(high <= core_low, high, np.where(low >= core_high, low, centre))
    at = np.where((is_pad & beside)[:, None], edge, centre)
    x, y = (np.where(placed, column, 0.0) for column in at.T)
    if (is_pad & placed).any():
        notices.append(f"{int((is_pad & placed).sum()):,} pads and corners of the pad ring stay in place")
    points = np.flatnonzero(is_point)
    point_x, point_y, located = x[points], y[points], placed[points]
    notices += place_missing(point_x, point_y, located, box=plan.die, what="pads and bumps")
    x[points], y[points], placed[points] = point_x, point_y, located
    return _Components(
        kind=np.select([is_point, is_block], [NodeKind.PORT, NodeKind.HARD], NodeKind.CELL).astype(np.int8),
        width=np.where(is_point, 0.0, width),
        height=np.where(is_point, 0.0, height),
        x=x,
        y=y,
        placed=placed,
        fixed=is_pad | is_cover | (status >= PlacementStatus.FIXED),
        is_point=is_point,
        notices=tuple(notices),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Nets:
    """Nets and their pins, drivers first."""

    pin_node: np.ndarray  # int32 [L], components by number, then ports
    pin_dx: np.ndarray  # pin_dx, pin_dy: float64 [L], µm from the node's centre in orientation N
    pin_dy: np.ndarray
    start: np.ndarray  # int32 [E+1]; weight: float64 [E]
    weight: np.ndarray
    notices: tuple[str, ...]  # the nets and pins that were omitted


def _nets(file: DefFile, masters: list[Master], ports: np.ndarray, is_point: np.ndarray) -> _Nets:
    """The signal nets of a file that connect at least two pins; raises DesignError for pins that masters do not have.

    `masters` are those of `file.components.masters`, `ports` (int64 [·]) the design pins that are nodes, in the order
    of the nodes; `is_point` (bool [M]) marks components whose pins are all in their centre.
    """
    nets = file.nets
    offset_x, offset_y, drives, feeds = _connections(file, masters)
    at_point = (nets.component >= 0) & np.append(is_point, False)[nets.component]
    offset_x[at_point], offset_y[at_point] = 0.0, 0.0
    degree = np.diff(nets.start)
    net = np.repeat(np.arange(len(degree)), degree)
    is_supply = np.isin(nets.use, SUPPLY)
    is_supply |= (degree > 0) & (np.bincount(net[feeds], minlength=len(degree)) == degree)
    kept = ~is_supply & (degree >= 2)
    of_port = np.full(max(len(file.pins.names), 1), -1, dtype=np.int64)
    of_port[ports] = len(file.components.names) + np.arange(len(ports))
    node = np.where(nets.component >= 0, nets.component, of_port[np.where(nets.component < 0, nets.pin, 0)])
    taken = np.flatnonzero(kept[net] & (node >= 0))
    # Drivers come first, the others in the order of the file.
    order = taken[np.lexsort((taken, ~drives[taken], net[taken]))]
    counts = np.bincount(net[taken], minlength=len(degree))
    used = np.flatnonzero(kept & (counts >= 2))
    order = order[counts[net[order]] >= 2]
    supplies, notices = int(is_supply.sum()), []
    lone = len(degree) - supplies - len(used)
    if supplies:
        notices.append(f"{file.path}: {supplies:,} supply nets are ignored")
    if lone:
        notices.append(f"{file.path}: {lone:,} nets with fewer than two pins are ignored")
    return _Nets(
        pin_node=node[order].astype(np.int32),
        pin_dx=offset_x[order],
        pin_dy=offset_y[order],
        start=np.concatenate(([0], np.cumsum(counts[used]))).astype(np.int32),
        weight=nets.weight[used],
        notices=tuple(notices),
    )


def connection_offsets(file: DefFile, technology: Technology) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of connections' pins from their components' centres in orientation N, float64 [C] each, in µm.

    Raises DesignError if masters or masters' pins do not exist.
    """
    return _connections(file, _masters(file, technology))[:2]


def _connections(file: DefFile, masters: list[Master]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pins' offsets from the centre (µm, float64 [C] each), and whether they drive and are supplies (bool [C] each)."""
    nets = file.nets
    offset_x, offset_y = np.zeros(len(nets.pin)), np.zeros(len(nets.pin))
    drives, feeds = np.zeros((2, len(nets.pin)), dtype=np.bool_)
    at_port = nets.component < 0
    drives[at_port] = file.pins.direction[nets.pin[at_port]] == DIRECTIONS.index("INPUT")
    feeds[at_port] = np.isin(file.pins.use[nets.pin[at_port]], SUPPLY)
    inner = np.flatnonzero(~at_port)
    master = file.components.master[nets.component[inner]].astype(np.int64)
    # Each pair of a master and a pin name is looked up once.
    pairs, member = np.unique(master * max(len(nets.pins), 1) + nets.pin[inner], return_inverse=True)
    member = member.reshape(-1)
    found = np.zeros((len(pairs), 4))
    missing = np.zeros(len(pairs), dtype=np.bool_)
    pins_of = [{plain(pin.name): pin for pin in master.pins} for master in masters]
    for index, pair in enumerate(pairs.tolist()):
        of_master, of_pin = divmod(pair, max(len(nets.pins), 1))
        pin, box = pins_of[of_master].get(plain(nets.pins[of_pin])), masters[of_master]
        if pin is None:
            missing[index] = True
        else:
            at = pin.x - box.width / 2, pin.y - box.height / 2
            found[index] = *at, pin.direction == "OUTPUT", not pin.is_signal
    lost = inner[missing[member]]
    of_net = np.searchsorted(nets.start, lost, side="right") - 1
    lost = lost[~np.isin(nets.use[of_net], SUPPLY)]  # Supply nets are omitted, anyway.
    if len(lost):
        _reject_missing(file, lost)
    offset_x[inner], offset_y[inner] = found[member, 0], found[member, 1]
    drives[inner], feeds[inner] = found[member, 2] > 0, found[member, 3] > 0
    return offset_x, offset_y, drives, feeds


def _reject_missing(file: DefFile, connections: np.ndarray) -> None:
    """Raises DesignError for connections (int [·]) to pins that the components' masters do not have."""
    nets, components = file.nets, file.components
    first = []
    for connection in connections[:SHOWN].tolist():
        net = int(np.searchsorted(nets.start, connection, side="right")) - 1
        component = int(nets.component[connection])
        master = components.masters[components.master[component]]
        pin = nets.pins[nets.pin[connection]]
        first.append((file.line(nets.begin[net]), f"{pin} of {components.names[component]} ({master})"))
    reject(file.path, [("connections to pins that do not exist in their masters", len(connections), first)])


def port_places(
    file: DefFile, ports: np.ndarray, plan: Floorplan
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """X and y (µm, float64 [·] each) of design pins (int [·]), whether they are placed (bool [·]), and notices.

    A placed pin is in the middle of its rotated shapes; other pins are put on the die's edges.
    """
    pins = file.pins
    dx = (pins.box[ports, 0].astype(np.float64) + pins.box[ports, 2]) / 2
    dy = (pins.box[ports, 1].astype(np.float64) + pins.box[ports, 3]) / 2
    turn = TURN[pins.orientation[ports]]
    x = (pins.x[ports] + turn[:, 0] * dx + turn[:, 1] * dy) / file.units
    y = (pins.y[ports] + turn[:, 2] * dx + turn[:, 3] * dy) / file.units
    placed, notices = pins.status[ports] >= PlacementStatus.PLACED, list[str]()
    at = np.stack((pins.x[ports], pins.y[ports]), axis=1)
    point = _shared_point(at[placed])
    if point is not None:
        heap = placed & (at == point).all(axis=1)
        placed &= ~heap
        notices.append(f"{file.path}: {int(heap.sum()):,} pins at one point are treated as unplaced")
    return x, y, placed, notices + place_missing(x, y, placed, box=plan.die)


def component_centres(file: DefFile, netlist: Netlist, node_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centres of components as if placed, float64 [M] each, in µm; their nodes are `node_of` (int [M])."""
    components = file.components
    swapped = components.orientation >= Orientation.E
    width, height = netlist.width[node_of], netlist.height[node_of]
    x = components.x / file.units + np.where(swapped, height, width) / 2
    y = components.y / file.units + np.where(swapped, width, height) / 2
    return x, y


def unmatched_components(
    file: DefFile, node_of: np.ndarray, blocks: Collection[str], whose: str
) -> tuple[list[Finding], list[str]]:
    """A finding of macros without a node (`node_of`, int [M], is -1), and a notice of such cells.

    `blocks` are the masters of macros; `whose` names the netlist that has the nodes.
    """
    components = file.components
    is_block = np.array([name in blocks for name in components.masters] + [False])[components.master]
    macros, cells = (
        _listed(file, np.flatnonzero((node_of < 0) & wanted), what)
        for what, wanted in (
            (f"macros that are not in the {whose}", is_block),
            (f"cells that are not in the {whose} are ignored", ~is_block),
        )
    )
    return macros, [listing(file.path, *finding) for finding in cells]


def _listed(file: DefFile, components: np.ndarray, what: str) -> list[Finding]:
    """A finding of components (int [·]) if there are any."""
    begin, names = file.components.begin, file.components.names
    first = [(file.line(begin[at]), names[at]) for at in components[:SHOWN].tolist()]
    return [(what, len(components), first)] if first else []


def missing_nodes(netlist: Netlist, kind: NodeKind, found: np.ndarray, what: str) -> list[Finding]:
    """A finding if nodes of a kind are not among those found (int [·])."""
    missing = np.setdiff1d(netlist.indices(kind), found)
    first = [(0, netlist.names[node]) for node in missing[:SHOWN].tolist()]
    return [(what, len(missing), first)] if first else []
