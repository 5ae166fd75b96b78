"""Static timing of a placed netlist: how late its paths are, before buffers are inserted and cells are sized.

Axis legend: P pins, N nodes of the flat netlist. Lengths in µm, times in ps.
"""

from __future__ import annotations

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
"""Groups of paths: between registers; that begin in a macro; that end in one, but begin in a register; that begin or
end in a port."""

LISTED_PATHS = 10
"""Worst paths that are listed."""


@dataclasses.dataclass(frozen=True)
class GroupSlack:
    """The slack of the endpoints whose worst path is of a group.

    Attributes:
        endpoints, failing: how many there are, and how many have negative slack.
        wns: ps, the worst slack, also if it is positive; 0 without endpoints.
        tns: ps, the sum of the negative slacks, at most 0.
    """

    endpoints: int
    failing: int
    wns: float
    tns: float


@dataclasses.dataclass(frozen=True)
class TimingPath:
    """A path.

    Attributes:
        slack: ps.
        group: one of `GROUPS`.
        start, end: its first and last pin, `cell/pin`, or a port.
        launch: the clock edge that begins it.
        macros: the macros at its ends, by name.
        pins: its pins; times: ps, when the signal arrives there, as many.
        x, y: µm, where they are.
        wire: ps that its wires take.
    """

    slack: float
    group: str
    start: str
    end: str
    launch: str
    macros: tuple[str, ...]
    pins: tuple[str, ...]
    times: tuple[float, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    wire: float

    @property
    def length(self) -> float:
        """µm, from pin to pin."""
        return float(np.abs(np.diff(self.x)).sum() + np.abs(np.diff(self.y)).sum())


@dataclasses.dataclass(frozen=True, eq=False)
class TimingEstimate:
    """What an analysis found.

    Attributes:
        total: of all endpoints; groups: by the name of their group, those that have endpoints.
        paths: the worst, one per endpoint, worst first.
        slack: float32 [P], of each pin, infinite where no constrained path passes.
        endpoint: int32 [·], the pins at which paths end, with their slack in `slack_at_end`, float32 [·].
        seconds: of CPU.
        notices: what is unusual.
    """

    total: GroupSlack
    groups: dict[str, GroupSlack]
    paths: tuple[TimingPath, ...]
    slack: np.ndarray
    endpoint: np.ndarray
    slack_at_end: np.ndarray
    seconds: float
    notices: tuple[str, ...]

    @property
    def wns(self) -> float:
        """ps, the worst negative slack; 0 if no path fails."""
        return min(self.total.wns, 0.0)

    @property
    def tns(self) -> float:
        """ps, the total negative slack of the endpoints."""
        return self.total.tns


class TimingEvaluator:
    """Times placements of one design, in several threads if need be.

    Args:
        timing: pins, library and constraints, of `flat`.
        flat: the design.

    Attributes:
        notices: what is unusual about the graph and the constraints.

    Raises:
        DesignError: as `tag_arrays`; the two are not of one design.
    """

    def __init__(self, timing: TimingNetlist, flat: FlatDesign) -> None:
        if len(timing.node) and not 0 <= int(timing.node.min()) <= int(timing.node.max()) < flat.netlist.num_nodes:
            raise DesignError(f"{flat.name}: the timing netlist is of another design: import it again")
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
        self._lock = threading.Lock()  # the graph has one set of delays
        self._tags = tag_arrays(timing, flat, self._graph, self.facts)
        self.notices = (*self._graph_notices(), *self._tags.notices)

    def _graph_notices(self) -> list[str]:
        facts, notices = self.facts, list[str]()
        if facts["cut_edges"]:
            pins = ", ".join(self.timing.pin_name(int(pin), self.flat) for pin in facts["cut_pins"][:SHOWN])
            notices.append(f"combinational loops are cut at {facts['cut_edges']:,} arcs: {pins}")
        for key, what in (("undriven_nets", "have no driver"), ("multiply_driven_nets", "have several drivers")):
            if facts[key]:
                notices.append(f"{facts[key]:,} nets {what}: paths through them are not timed as they are")
        return notices

    def places(self, placement: Placement) -> tuple[np.ndarray, np.ndarray]:
        """µm, float32 [P] each: where the pins are in a placement of the flat netlist's N nodes."""
        timing = self.timing
        turn = TURN[placement.orientation[timing.node]]
        x = placement.x[timing.node] + turn[:, 0] * timing.dx + turn[:, 1] * timing.dy
        y = placement.y[timing.node] + turn[:, 2] * timing.dx + turn[:, 3] * timing.dy
        return x.astype(np.float32), y.astype(np.float32)

    def evaluate(self, placement: Placement, *, paths: int = LISTED_PATHS) -> TimingEstimate:
        """The timing of a placement of the flat netlist, with its worst paths.

        Raises:
            DesignError: a node has no position.
        """
        used = np.unique(self.timing.node)
        lost = used[~placement.placed[used]]
        if len(lost):
            name = self.flat.netlist.names[lost[0]]
            raise DesignError(f"{len(lost):,} cells and macros have no position, the first being {name!r}")
        begun = time.process_time()
        x, y = self.places(placement)
        with self._lock:
            self._price(x, y)
            found = self._graph.analyse(**self._tags.arrays, worst=paths)
        groups = self._groups(found["start"], found["end"])
        slack = found["end_slack"]
        present = [(name, groups == number) for number, name in enumerate(GROUPS) if (groups == number).any()]
        notices = list(self.notices)
        if not len(slack):
            notices.append("no constrained path ends anywhere: there is no slack")
        if not found["has_settled"]:
            notices.append("latches lend time to each other in a circle: their slack is that of ten rounds")
        return TimingEstimate(
            total=group_slack(slack),
            groups={name: group_slack(slack[members]) for name, members in present},
            paths=tuple(self._path(path, x, y) for path in found["paths"]),
            slack=found["slack"],
            endpoint=found["end"] // 2,
            slack_at_end=slack,
            seconds=time.process_time() - begun,
            notices=tuple(notices),
        )

    def path_wires(self, placement: Placement, *, paths: int) -> list[tuple[float, np.ndarray]]:
        """The worst path of each of the worst `paths` endpoints: its slack, ps, and its wires, int [·, 2].

        These are the driver and the driven pin. Raises DesignError as `evaluate`.
        """
        with self._lock:
            self._price(*self.places(placement))
            found = self._graph.analyse(**self._tags.arrays, worst=paths)
        steps = [(slack, np.stack([v[:-1], v[1:]], axis=1) // 2) for slack, _, v, _ in found["paths"]]
        driver = self.facts["driver"]
        return [(float(slack), step[driver[step[:, 1]] == step[:, 0]]) for slack, step in steps]

    def delays(self, placement: Placement) -> dict[str, np.ndarray]:
        """A placement's delays of wires (`wire`, ps, [P]) and loads of nets (`load_rise`, `load_fall`, fF)."""
        with self._lock:
            self._price(*self.places(placement))
            found: dict[str, np.ndarray] = self._graph.delays()
        return found

    def _price(self, x: np.ndarray, y: np.ndarray) -> None:
        wires = self.timing.wires
        self._graph.price(
            x, y, self._tags.slew_at,
            delay_per_um=wires.delay_per_um, capacitance_per_um=wires.capacitance_per_um, most_load=wires.most_load,
            stage_delay=wires.stage_delay, fanout_ratio=wires.fanout_ratio,
        )  # fmt: skip

    def _groups(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """The group of paths between vertices (int [·] each), as its place in `GROUPS`."""
        kind = self.flat.netlist.kind[self.timing.node]
        begins, ends = kind[start // 2], kind[end // 2]
        return np.select(
            [(begins == NodeKind.PORT) | (ends == NodeKind.PORT), begins == NodeKind.HARD, ends == NodeKind.HARD],
            [3, 1, 2],
            0,
        )

    def _path(self, found: tuple[float, int, np.ndarray, np.ndarray], x: np.ndarray, y: np.ndarray) -> TimingPath:
        slack, tag, vertices, times = found
        pins, names = vertices // 2, [self.timing.pin_name(int(pin), self.flat) for pin in vertices // 2]
        ends = [pin for pin in (pins[0], pins[-1]) if self.flat.netlist.kind[self.timing.node[pin]] == NodeKind.HARD]
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
            x=tuple(x[pins].tolist()),
            y=tuple(y[pins].tolist()),
            wire=float(np.diff(times)[by_wire].sum()),
        )


def group_slack(slack: np.ndarray) -> GroupSlack:
    """The sums of endpoints' slacks (float [·], ps)."""
    negative = slack[slack < 0]
    worst = float(slack.min()) if len(slack) else 0.0
    return GroupSlack(len(slack), len(negative), worst, float(negative.sum(dtype=np.float64)))
