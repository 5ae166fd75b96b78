"""Static timing analysis of a placed netlist before buffers are inserted and cells are sized.

Axis legend: P pins, N nodes of the flat netlist. Lengths in µm, times in ps.
"""

import dataclasses
import threading
import time
from typing import Any

import numpy as np

from placement.flat import _native
from placement.flat.timing_tags import tag_arrays
from placement.netlist.design import TURN, NodeKind, Placement
from placement.netlist.errors import SHOWN, DesignError
from placement.netlist.flat_design import FlatDesign
from placement.netlist.timing_netlist import TimingNetlist

GROUPS = ("registers", "from macros", "to macros", "ports")
"""Groups of paths: between registers; from a macro; from a register to a macro; from or to a port."""

LISTED_PATHS = 10  # number of worst paths listed
DRAWN_PATHS = 100  # number of worst paths in a picture


@dataclasses.dataclass(frozen=True)
class GroupSlack:
    """Slack of the endpoints whose worst path belongs to one group."""

    endpoints: int  # endpoints, failing: number of endpoints, and of those with negative slack
    failing: int
    wns: float  # worst slack in ps, even if positive; 0 without endpoints
    tns: float  # sum of the negative slacks in ps, at most 0


@dataclasses.dataclass(frozen=True)
class TimingPath:
    """A timing path."""

    slack: float  # slack in ps
    group: str  # one of `GROUPS`
    start: str  # start, end: its first and last pin, `cell/pin`, or a port
    end: str
    launch: str  # the clock edge that launches it
    macros: tuple[str, ...]  # names of the macros at its ends
    pins: tuple[str, ...]  # its pins
    times: tuple[float, ...]  # arrival time at each pin in ps
    x: tuple[float, ...]  # x, y: position of each pin in µm
    y: tuple[float, ...]
    wire: float  # total delay of its wires in ps

    @property
    def length(self) -> float:
        """Length from pin to pin in µm."""
        return float(np.abs(np.diff(self.x)).sum() + np.abs(np.diff(self.y)).sum())


@dataclasses.dataclass(frozen=True, eq=False)
class TimingEstimate:
    """Result of a timing analysis."""

    total: GroupSlack  # slack of all endpoints
    groups: dict[str, GroupSlack]  # slack by group, for groups that have endpoints
    paths: tuple[TimingPath, ...]  # the worst paths, one per endpoint, worst first
    slack: np.ndarray  # float32 [P], slack of each pin; infinite if no constrained path passes through it
    endpoint: np.ndarray  # int32 [·], the pins at which paths end; their slack is `slack_at_end`, float32 [·]
    slack_at_end: np.ndarray
    seconds: float  # CPU seconds
    notices: tuple[str, ...]  # messages about unusual constraints

    @property
    def wns(self) -> float:
        """Worst negative slack in ps; 0 if no path fails."""
        return min(self.total.wns, 0.0)

    @property
    def tns(self) -> float:
        """Total negative slack of the endpoints in ps."""
        return self.total.tns


class TimingEvaluator:
    """Times placements of one design; thread-safe.

    Args:
        timing: pins, library and constraints of `flat`.
        flat: the flat design.

    Attributes:
        notices: messages about an unusual graph or unusual constraints.

    Raises:
        DesignError: as for `tag_arrays`; or the two are not of one design.
    """

    def __init__(self, timing: TimingNetlist, flat: FlatDesign) -> None:
        if len(timing.node) and not 0 <= int(timing.node.min()) <= int(timing.node.max()) < flat.netlist.num_nodes:
            raise DesignError(f"{flat.name}: the timing netlist belongs to a different design: import the design again")
        self.timing, self.flat = timing, flat
        try:
            self._graph = _native.TimingGraph(
                timing.library.arrays(),
                cell=timing.cell,
                instance=timing.instance,
                library_pin=timing.library_pin,
                port=timing.port,
                net_start=timing.net_start,
            )
        except ValueError as error:
            raise DesignError(f"{flat.name}: a damaged timing netlist ({error}): import the design again") from None
        self.facts: dict[str, Any] = self._graph.facts()
        self._lock = threading.Lock()  # the graph has a single set of delays
        self._tags = tag_arrays(timing, flat, self._graph, self.facts)
        self._graph.constrain(**self._tags.arrays)
        self._used = np.unique(timing.node)
        self._timed: Placement | None = None  # the placement of the graph's current times
        self.notices = (*self._graph_notices(), *self._tags.notices)

    def _graph_notices(self) -> list[str]:
        facts, notices = self.facts, list[str]()
        if facts["cut_edges"]:
            pins = ", ".join(self.timing.pin_name(int(pin), self.flat) for pin in facts["cut_pins"][:SHOWN])
            notices.append(f"combinational loops are cut at {facts['cut_edges']:,} arcs: {pins}")
        for key, what in (("undriven_nets", "have no driver"), ("multiply_driven_nets", "have several drivers")):
            if facts[key]:
                notices.append(f"{facts[key]:,} nets {what}: the timing of paths through them is not exact")
        return notices

    def places(self, placement: Placement, pins: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Returns the positions of pins (default: all P) in a placement of the flat netlist, float32 [·] each, µm."""
        node, dx, dy = (values[pins] for values in (self.timing.node, self.timing.dx, self.timing.dy))
        turn = TURN[placement.orientation[node]]
        x = placement.x[node] + turn[:, 0] * dx + turn[:, 1] * dy
        y = placement.y[node] + turn[:, 2] * dx + turn[:, 3] * dy
        return x.astype(np.float32), y.astype(np.float32)

    def evaluate(self, placement: Placement, *, paths: int = LISTED_PATHS) -> TimingEstimate:
        """Returns the timing of a placement of the flat netlist, with its worst paths.

        Raises:
            DesignError: a node has no position; no constrained path ends anywhere.
        """
        return self._time(placement, paths, update=False)

    def update(self, placement: Placement, *, paths: int = LISTED_PATHS) -> TimingEstimate:
        """Returns the result of `evaluate`, but recomputes only what depends on the nodes moved since the last call.

        Raises DesignError if a node has no position, or no constrained path ends anywhere.
        """
        return self._time(placement, paths, update=True)

    def _time(self, placement: Placement, paths: int, *, update: bool) -> TimingEstimate:
        self._check_placed(placement)
        begun = time.process_time()
        with self._lock:
            moved = _moved(self._timed, placement) if update and self._timed is not None else None
            if moved is not None and 2 * moved.sum() < len(moved):
                pins = np.flatnonzero(moved[self.timing.node]).astype(np.int32)
                found = self._graph.move(pins, *self.places(placement, pins), worst=paths)
            else:
                self._price(placement)
                found = self._graph.analyse(worst=paths)
            self._timed = placement
        return self._estimate(found, placement, begun)

    def _check_placed(self, placement: Placement) -> None:
        lost = self._used[~placement.placed[self._used]]
        if len(lost):
            name = self.flat.netlist.names[lost[0]]
            raise DesignError(f"{len(lost):,} cells and macros have no position, the first being {name!r}")

    def _estimate(self, found: dict[str, Any], placement: Placement, begun: float) -> TimingEstimate:
        groups = self._groups(found["start"], found["end"])
        slack = found["end_slack"]
        present = [(name, groups == number) for number, name in enumerate(GROUPS) if (groups == number).any()]
        notices = list(self.notices)
        if not len(slack):
            raise DesignError(f"{self.flat.name}: no endpoint is constrained, so there is no slack")
        if not found["has_settled"]:
            notices.append("latches borrow time from each other in a loop: their slack is that of ten rounds")
        return TimingEstimate(
            total=group_slack(slack),
            groups={name: group_slack(slack[members]) for name, members in present},
            paths=tuple(self._path(path, placement) for path in found["paths"]),
            slack=found["slack"],
            endpoint=found["end"] // 2,
            slack_at_end=slack,
            seconds=time.process_time() - begun,
            notices=tuple(notices),
        )

    def path_wires(self, placement: Placement, *, paths: int) -> list[tuple[float, np.ndarray]]:
        """Returns the worst path of each of the worst `paths` endpoints: its slack in ps and its wires, int [·, 2].

        A wire is its driver and its driven pin. Raises DesignError if a node has no position.
        """
        self._check_placed(placement)
        with self._lock:
            self._price(placement)
            found = self._graph.analyse(worst=paths)
        steps = [(slack, np.stack([v[:-1], v[1:]], axis=1) // 2) for slack, _, v, _ in found["paths"]]
        driver = self.facts["driver"]
        return [(float(slack), step[driver[step[:, 1]] == step[:, 0]]) for slack, step in steps]

    def delays(self, placement: Placement) -> dict[str, np.ndarray]:
        """Returns wire delays without derating (`wire`, ps, [P]) and net loads (`load_rise`, `load_fall`, fF)."""
        with self._lock:
            self._price(placement)
            found: dict[str, np.ndarray] = self._graph.delays()
        return found | {"wire": found["wire"] / np.float32(self.timing.constraints.derating.wires)}

    def _price(self, placement: Placement) -> None:
        wires, derating = self.timing.wires, self.timing.constraints.derating
        self._timed = None
        self._graph.price(
            *self.places(placement),
            delay_per_um=derating.wires * wires.delay_per_um, capacitance_per_um=wires.capacitance_per_um,
            most_load=wires.most_load, stage_delay=derating.wires * wires.stage_delay, fanout_ratio=wires.fanout_ratio,
            cell_factor=derating.cells,
        )  # fmt: skip

    def _groups(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Returns the group of paths between vertices (int [·] each), as an index into `GROUPS`."""
        begins, ends = (self.flat.netlist.kind[self.timing.node[vertex // 2]] for vertex in (start, end))
        return np.select(
            [(begins == NodeKind.PORT) | (ends == NodeKind.PORT), begins == NodeKind.HARD, ends == NodeKind.HARD],
            [3, 1, 2],
            0,
        )

    def _path(self, found: tuple[float, int, np.ndarray, np.ndarray], placement: Placement) -> TimingPath:
        slack, tag, vertices, times = found
        pins, names = vertices // 2, [self.timing.pin_name(int(pin), self.flat) for pin in vertices // 2]
        ends = [pin for pin in (pins[0], pins[-1]) if self.flat.netlist.kind[self.timing.node[pin]] == NodeKind.HARD]
        x, y = self.places(placement, pins)
        by_wire = self.facts["driver"][pins[1:]] == pins[:-1]
        return TimingPath(
            slack=float(slack),
            group=GROUPS[int(self._groups(vertices[:1], vertices[-1:])[0])],
            start=names[0],
            end=names[-1],
            launch=self._tags.clocks[tag],
            macros=tuple(dict.fromkeys(self.timing.pin_name(int(pin), self.flat).rpartition("/")[0] for pin in ends)),
            pins=tuple(names),
            times=tuple(times.tolist()),
            x=tuple(x.tolist()),
            y=tuple(y.tolist()),
            wire=float(np.diff(times)[by_wire].sum()),
        )


def _moved(before: Placement, after: Placement) -> np.ndarray:
    """Returns whether each node changed its position or orientation, bool [N]."""
    moved: np.ndarray = (before.x != after.x) | (before.y != after.y) | (before.orientation != after.orientation)
    return moved


def group_slack(slack: np.ndarray) -> GroupSlack:
    """Returns the sums over endpoints' slacks (float [·], ps)."""
    negative = slack[slack < 0]
    worst = float(slack.min()) if len(slack) else 0.0
    return GroupSlack(len(slack), len(negative), worst, float(negative.sum(dtype=np.float64)))
