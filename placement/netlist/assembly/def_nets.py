"""The nets of a DEF file as the pins of a netlist.

Axis legend: C connections in the file, E nets that are kept, L their pins (one per connection).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.netlist.formats.def_file import DIRECTIONS, USES, DefFile
from placement.netlist.formats.findings import SHOWN, refuse
from placement.netlist.technology import Master

_SUPPLY = (USES.index("POWER"), USES.index("GROUND"))


@dataclasses.dataclass(frozen=True, eq=False)
class Nets:
    """Nets and their pins, drivers first.

    Attributes:
        pin_node: int32 [L], components by their numbers, then ports.
        pin_dx, pin_dy: float64 [L], µm from the node's centre in orientation N.
        start: int32 [E+1]; weight: float64 [E].
        notices: what was left out.
    """

    pin_node: np.ndarray
    pin_dx: np.ndarray
    pin_dy: np.ndarray
    start: np.ndarray
    weight: np.ndarray
    notices: tuple[str, ...]


def nets_of(file: DefFile, masters: list[Master], ports: np.ndarray, is_point: np.ndarray) -> Nets:
    """The signal nets of a file that join two pins or more.

    Args:
        file: the file.
        masters: the master of each entry of `file.components.masters`.
        ports: int64 [·], the design pins that are nodes, in the order of the nodes.
        is_point: bool [components], those whose pins all lie in their centre.

    Raises:
        DesignError: nets join pins that their masters do not have; the first ten are named with file and line.
    """
    nets = file.nets
    offset_x, offset_y, drives = _connections(file, masters)
    at_point = (nets.component >= 0) & np.append(is_point, False)[nets.component]
    offset_x[at_point], offset_y[at_point] = 0.0, 0.0
    degree = np.diff(nets.start)
    is_supply = np.isin(nets.use, _SUPPLY)
    kept = ~is_supply & (degree >= 2)
    net = np.repeat(np.arange(len(degree)), degree)
    of_port = np.full(len(file.pins.names), -1, dtype=np.int64)
    of_port[ports] = len(file.components.names) + np.arange(len(ports))
    node = np.where(nets.component >= 0, nets.component, of_port[np.where(nets.component < 0, nets.pin, 0)]) \
        if len(of_port) else nets.component.astype(np.int64)  # fmt: skip
    taken = np.flatnonzero(kept[net] & (node >= 0))
    # Drivers first, the others as the file has them.
    order = taken[np.lexsort((taken, ~drives[taken], net[taken]))]
    counts = np.bincount(net[taken], minlength=len(degree))
    used = np.flatnonzero(kept & (counts >= 2))
    order = order[counts[net[order]] >= 2]
    return Nets(
        pin_node=node[order].astype(np.int32),
        pin_dx=offset_x[order],
        pin_dy=offset_y[order],
        start=np.concatenate(([0], np.cumsum(counts[used]))).astype(np.int32),
        weight=nets.weight[used],
        notices=_notices(file, is_supply, len(degree) - int(is_supply.sum()) - len(used)),
    )


def _notices(file: DefFile, is_supply: np.ndarray, lone: int) -> tuple[str, ...]:
    notices = []
    if is_supply.any():
        notices.append(f"{file.path}: {int(is_supply.sum()):,} nets of power and ground are left out")
    if lone:
        notices.append(f"{file.path}: {lone:,} nets that join fewer than two pins are left out")
    return tuple(notices)


def _connections(file: DefFile, masters: list[Master]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """µm offsets from the centre float64 [C] each, and whether the pin drives bool [C]."""
    nets = file.nets
    offset_x, offset_y = np.zeros(len(nets.pin)), np.zeros(len(nets.pin))
    drives = np.zeros(len(nets.pin), dtype=np.bool_)
    at_port = nets.component < 0
    drives[at_port] = file.pins.direction[nets.pin[at_port]] == DIRECTIONS.index("INPUT")
    inner = np.flatnonzero(~at_port)
    master = file.components.master[nets.component[inner]].astype(np.int64)
    # Each pair of a master and a pin name is looked up once.
    pairs, member = np.unique(master * max(len(nets.pins), 1) + nets.pin[inner], return_inverse=True)
    member = member.reshape(-1)
    found = np.zeros((len(pairs), 3))
    missing = np.zeros(len(pairs), dtype=np.bool_)
    pins_of = [{_plain(pin.name): pin for pin in master.pins} for master in masters]
    for index, pair in enumerate(pairs.tolist()):
        of_master, of_pin = divmod(pair, max(len(nets.pins), 1))
        pin = pins_of[of_master].get(_plain(nets.pins[of_pin]))
        if pin is None:
            missing[index] = True
            continue
        box = masters[of_master]
        found[index] = pin.x - box.width / 2, pin.y - box.height / 2, pin.direction == "OUTPUT"
    if missing.any():
        _refuse_missing(file, inner[missing[member]])
    offset_x[inner], offset_y[inner] = found[member, 0], found[member, 1]
    drives[inner] = found[member, 2] > 0
    return offset_x, offset_y, drives


def _plain(name: str) -> str:
    """A pin's name without escapes, its bus bits in square brackets."""
    return name.replace("\\", "").replace("<", "[").replace(">", "]")


def _refuse_missing(file: DefFile, connections: np.ndarray) -> None:
    """Raises DesignError for connections (int [·]) to pins that the components' masters do not have."""
    nets, components = file.nets, file.components
    first = []
    for connection in connections[:SHOWN].tolist():
        net = int(np.searchsorted(nets.start, connection, side="right")) - 1
        component = int(nets.component[connection])
        master = components.masters[components.master[component]]
        pin = nets.pins[nets.pin[connection]]
        first.append((file.line(nets.begin[net]), f"{pin} of {components.names[component]} ({master})"))
    refuse(file.path, [("connections to pins that the masters do not have", len(connections), first)])
