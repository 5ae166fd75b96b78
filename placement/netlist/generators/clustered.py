"""Generates synthetic clustered designs with the statistics of a real one.

The figures below are those of the Ariane core as the MacroPlacement project clusters it (NanGate45: 133 hard and 782
soft macros, 12,422 nets), measured with `macro-placement describe`.
"""

import itertools
import math
import random

import numpy as np

from placement.netlist.builder import NetlistBuilder, all_placed
from placement.netlist.design import Canvas, Design, Netlist, NodeKind, Placement
from placement.netlist.errors import DesignError
from placement.netlist.generators.draws import Draws

GCELL_WIDTH, GCELL_HEIGHT = 60.0, 66.0
# Routing tracks per µm, across and up, and those that a hard macro blocks; gcells over which congestion is spread.
_ROUTES, _SMOOTHING = (57.031, 56.818, 39.583, 30.303), 2
# Fractions of the canvas that hard and soft macros cover.
_HARD_UTILIZATION, _SOFT_UTILIZATION = 0.5, 0.21
# Fraction of its gcells that a memory fills in each direction; the rest is the channel beside it.
_FILL = 0.96
# Memories: gcells across, gcells up, fraction of the banks.
_SHAPES = ((1, 2, 0.6), (1, 1, 0.25), (2, 2, 0.15))
_BANK_SIZES = ((2, 0.3), (4, 0.45), (8, 0.25))
# Fractions of nets with 2, 3, … pins.
_DEGREES = (0.504, 0.177, 0.093, 0.061, 0.045, 0.034, 0.025, 0.022, 0.012, 0.009, 0.006, 0.005, 0.002, 0.002, 0.001)
# Fractions of weights 1, 2, … among nets of two pins: parallel nets between two clusters become one.
_WEIGHTS = (
    *(0.52, 0.172, 0.095, 0.057, 0.034, 0.029, 0.018, 0.016),
    *(0.011, 0.01, 0.005, 0.005, 0.004, 0.003, 0.002, 0.003),
)
# Fractions of memory outputs that 1, 2 and 3 soft macros read.
_READERS = (0.566, 0.295, 0.139)
# Quantiles, evenly spaced, of a soft macro's area (relative) and of the number of nets it drives.
_SOFT_AREA = (0.05, 0.12, 0.25, 0.55, 0.85, 1.0, 1.3, 1.6, 2.0, 2.6, 4.7)
_NETS_DRIVEN = (1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 11.0, 14.0, 18.0, 25.0, 45.0)
_BUS_BITS = (8, 16, 32)
# Soft macros that a bank of memories connects to, and the probability that a soft macro drives the same ones again.
_INTERFACE = 6
_REPEATED = 0.7


def clustered(
    *, seed: int, hard: int, soft: int, ports: int, name: str = "clustered", rent_exponent: float = 0.7
) -> Design:
    """Generates a design of memories in banks, clusters of cells, and ports in buses on all four edges.

    The soft macros are the leaves of a binary hierarchy. A net's scope, the block of the hierarchy that it stays in, is
    drawn so that the wires that leave blocks follow Rent's rule with exponent p (Landman and Russo, 1971; Davis, De,
    Meindl: "A stochastic wire-length distribution", 1998). Memories of a bank share a shape, address nets and some of
    their data nets, and are connected to one leaf's neighbourhood.

    Args:
        seed: seed of all choices; equal arguments give bit-identical designs on every machine.
        hard: number of hard macros (memories).
        soft: number of soft macros.
        ports: number of ports.
        name: the design's name.
        rent_exponent: p, in [0, 1], which sets the nets' locality; 1: no locality.

    Raises:
        DesignError: fewer than 1 hard macro, 16 soft macros or 1 port, hard macros that do not fit, or `rent_exponent`
            out of range.
    """
    for what, value, least in (("hard", hard, 1), ("soft", soft, 16), ("ports", ports, 1)):
        if value < least:
            raise DesignError(f"{what}={value}: must be at least {least}")
    if not 0 <= rent_exponent <= 1:
        raise DesignError(f"rent_exponent={rent_exponent}: must be in [0, 1]")
    generator = _Generator(Draws(random.Random(f"clustered {seed}")), _Hierarchy(soft, rent_exponent))
    banks = generator.banks(hard)
    canvas = _canvas(banks)
    generator.add_nodes(banks, soft, ports, canvas)
    generator.connect_ports()
    generator.connect_memories(banks)
    generator.connect_soft_macros()
    netlist = generator.builder.build()
    return Design(name=name, netlist=netlist, canvas=canvas, initial=_initial(netlist, canvas))


class _Hierarchy:
    """A binary tree over leaves 0 … count − 1, whose blocks are halved.

    `blocks` are the blocks (first leaf, end) around each leaf, from the leaf itself to the whole; `shares` are the
    fractions of its nets whose scope is each of them. By Rent's rule t·Bᵖ wires leave a block of B leaves, t·Bᵖ⁻¹ for
    each leaf; those that leave the block below but not this one have it as scope. No wire leaves the whole. The leaf
    itself counts as two halves.
    """

    def __init__(self, count: int, rent_exponent: float) -> None:
        self.blocks: list[list[tuple[int, int]]] = []
        self.shares: list[list[float]] = []
        for leaf in range(count):
            low, high, blocks = 0, count, [(0, count)]
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if leaf < middle else (middle, high)
                blocks.insert(0, (low, high))
            inner = [(high - low) ** (rent_exponent - 1) for low, high in blocks[:-1]]
            leaving = [0.5 ** (rent_exponent - 1), *inner, 0.0]
            self.blocks.append(blocks)
            self.shares.append([below - above for below, above in itertools.pairwise(leaving)])

    def near(self, draws: Draws, leaf: int, count: int, *, itself: bool = False) -> list[int]:
        """`count` distinct leaves of a randomly drawn scope around `leaf`, one of them outside the next smaller block.

        Without `itself`, `leaf` is excluded. There are fewer if the hierarchy has fewer leaves.
        """
        blocks = self.blocks[leaf]
        low, high = blocks[-1]
        count = min(count, high - low - (not itself))
        levels = [level for level in range(1, len(blocks)) if blocks[level][1] - blocks[level][0] > count]
        if itself and count == 1:
            levels = [0, *levels]
        levels = levels or [len(blocks) - 1]
        level = levels[draws.weighted([self.shares[leaf][level] for level in levels])]
        if level == 0:
            return [leaf]
        (low, high), (inner_low, inner_high) = blocks[level], blocks[level - 1]
        outer = inner_high + draws.below(high - inner_high) if inner_low == low else low + draws.below(inner_low - low)
        chosen = [outer]
        while len(chosen) < count:
            other = low + draws.below(high - low)
            if other not in chosen and (itself or other != leaf):
                chosen.append(other)
        return chosen


class _Bank:
    """`count` memories of one shape (gcells across and up); sides in µm."""

    def __init__(self, across: int, up: int, count: int) -> None:
        self.gcells, self.count = across * up, count
        self.width, self.height = round(across * GCELL_WIDTH * _FILL, 3), round(up * GCELL_HEIGHT * _FILL, 3)
        self.data_bits, self.address_bits = 8 * self.gcells, 8 + int(math.log2(self.gcells))


class _Generator:
    """Adds nodes, then nets, to a builder."""

    def __init__(self, draws: Draws, hierarchy: _Hierarchy) -> None:
        self.draws, self.hierarchy, self.builder = draws, hierarchy, NetlistBuilder()
        self.buses: list[list[int]] = []  # pins of each bus
        self.memories: list[list[int]] = []  # nodes of each bank
        self.soft_macros: list[int] = []
        self.soft_inputs: list[int] = []  # the single input pin of each soft macro
        self.nets_driven: list[int] = []

    def banks(self, hard: int) -> list[_Bank]:
        """Draws banks with `hard` memories in total."""
        banks: list[_Bank] = []
        while hard:
            across, up, _ = _SHAPES[self.draws.weighted([share for _, _, share in _SHAPES])]
            count = min(hard, _BANK_SIZES[self.draws.weighted([share for _, share in _BANK_SIZES])][0])
            banks.append(_Bank(across, up, count))
            hard -= count
        return banks

    def add_nodes(self, banks: list[_Bank], soft: int, ports: int, canvas: Canvas) -> None:
        """Adds ports, memories and soft macros, in this order."""
        while ports:
            bits = min(ports, _BUS_BITS[self.draws.below(len(_BUS_BITS))])
            self.buses.append([self.builder.port(f"bus_{len(self.buses)}[{bit}]") for bit in range(bits)])
            ports -= bits
        for number, bank in enumerate(banks):
            size = (bank.width, bank.height)
            names = [f"bank_{number}/memory_{index}" for index in range(bank.count)]
            self.memories.append([self.builder.macro(name, NodeKind.HARD, *size) for name in names])
        ranks = [self.draws.uniform() for _ in range(soft)]
        areas = [self.draws.quantile(_SOFT_AREA, rank) for rank in ranks]
        scale = _SOFT_UTILIZATION * canvas.width * canvas.height / sum(areas)
        for number, (rank, area) in enumerate(zip(ranks, areas, strict=True)):
            # The aspect ratios range from 1:1.5 to 1.5:1.
            side = math.sqrt(area * scale * (2 / 3 + self.draws.uniform() * 5 / 6))
            width = max(0.1, round(side, 3))
            height = max(0.1, round(area * scale / width, 3))
            macro = self.builder.macro(f"Grp_{number}", NodeKind.SOFT, width, height)
            self.soft_macros.append(macro)
            self.soft_inputs.append(self.builder.pin(macro, 0.0, 0.0))
            self.nets_driven.append(max(1, round(self.draws.quantile(_NETS_DRIVEN, rank))))

    def _soft_output(self, leaf: int) -> int:
        """Adds a driving pin."""
        return self.builder.pin(self.soft_macros[leaf], 0.0, 0.0)

    def connect_ports(self) -> None:
        """Connects each bus as an input or an output of one leaf's neighbourhood."""
        for bus in self.buses:
            leaf = self.draws.below(len(self.soft_macros))
            is_input = self.draws.uniform() < 0.5
            for pin in bus:
                if is_input:
                    readers = self.hierarchy.near(self.draws, leaf, 1 + self.draws.weighted(_READERS), itself=True)
                    self.builder.net(1.0, pin, [self.soft_inputs[reader] for reader in readers])
                else:
                    writer = self.hierarchy.near(self.draws, leaf, 1, itself=True)[0]
                    self.builder.net(1.0, self._soft_output(writer), [pin])

    def connect_memories(self, banks: list[_Bank]) -> None:
        """Connects outputs to soft macros, and address and data inputs shared within the bank."""
        soft = len(self.soft_macros)
        for number, (bank, nodes) in enumerate(zip(banks, self.memories, strict=True)):
            leaf = (2 * number + 1) * soft // (2 * len(banks))
            interface = self.hierarchy.near(self.draws, leaf, _INTERFACE, itself=True)
            # Outputs, then inputs, are evenly spaced along the left side of each memory.
            total = 2 * bank.data_bits + bank.address_bits
            offsets = [round(bank.height * ((place + 1) / (total + 1) - 0.5), 3) for place in range(total)]
            memories = [[self.builder.pin(node, -bank.width / 2, offset) for offset in offsets] for node in nodes]
            for pins in memories:
                for bit, pin in enumerate(pins[: bank.data_bits]):
                    readers = self._of_interface(interface, bit / bank.data_bits, 1 + self.draws.weighted(_READERS))
                    self.builder.net(1.0, pin, [self.soft_inputs[reader] for reader in readers])
            self._write_memories(bank, [pins[bank.data_bits :] for pins in memories], interface)

    def _write_memories(self, bank: _Bank, inputs: list[list[int]], interface: list[int]) -> None:
        """Adds nets from the bank's interface to the address and data pins, `inputs` being those of each memory."""
        bits = bank.address_bits + bank.data_bits
        for bit in range(bits):
            is_address = bit < bank.address_bits
            sharing = bank.count if is_address else min(bank.count, (2, 4, 8)[self.draws.below(3)])
            for first in range(0, bank.count, sharing):
                writer, reader = self._of_interface(interface, bit / bits, 2)
                sinks = [pins[bit] for pins in inputs[first : first + sharing]]
                if self.draws.uniform() < 0.5:
                    sinks.append(self.soft_inputs[reader])
                self.builder.net(1.0, self._soft_output(writer), sinks)

    def _of_interface(self, interface: list[int], part: float, count: int) -> list[int]:
        """`count` leaves of an interface, first the leaf of the bits at fraction `part` of the word."""
        first = int(part * len(interface))
        others = self.draws.shuffled([leaf for leaf in interface if leaf != interface[first]])
        return [interface[first], *others[: count - 1]]

    def connect_soft_macros(self) -> None:
        """Adds nets among soft macros; the bits of a bus join the same macros."""
        for leaf, count in enumerate(self.nets_driven):
            earlier: list[list[int]] = []
            for _ in range(count):
                sinks = 1 + self.draws.weighted(_DEGREES)
                weight = float(1 + self.draws.weighted(_WEIGHTS)) if sinks == 1 else 1.0
                alike = [readers for readers in earlier if len(readers) >= sinks > 1]
                if alike and self.draws.uniform() < _REPEATED:
                    readers = alike[self.draws.below(len(alike))][:sinks]
                else:
                    readers = self.hierarchy.near(self.draws, leaf, sinks)
                    earlier.append(readers)
                self.builder.net(weight, self._soft_output(leaf), [self.soft_inputs[reader] for reader in readers])


def _canvas(banks: list[_Bank]) -> Canvas:
    """A nearly square canvas of whole gcells."""
    rows, columns = _grid(sum(bank.gcells * bank.count for bank in banks))
    return Canvas(columns * GCELL_WIDTH, rows * GCELL_HEIGHT, columns, rows, *_ROUTES, _SMOOTHING)


def _grid(macro_gcells: int) -> tuple[int, int]:
    """Rows and columns of the canvas for memories of `macro_gcells` gcells."""
    gcells = macro_gcells * _FILL**2 / _HARD_UTILIZATION
    rows = max(2, round(math.sqrt(gcells * GCELL_WIDTH / GCELL_HEIGHT)))
    return rows, max(2, math.ceil(gcells / rows))


def largest_grid(hard: tuple[int, int]) -> tuple[int, int]:
    """Maximum rows and maximum columns of any `clustered` design with `hard` (minimum, maximum) hard macros."""
    gcells = [across * up for across, up, _ in _SHAPES]
    grids = [_grid(number) for number in range(hard[0] * min(gcells), hard[1] * max(gcells) + 1)]
    return max(rows for rows, _ in grids), max(columns for _, columns in grids)


def _initial(netlist: Netlist, canvas: Canvas) -> Placement:
    """Places ports around the edges, hard macros in rows in file order, and soft macros on a lattice in file order."""
    x, y = np.zeros(netlist.num_nodes), np.zeros(netlist.num_nodes)
    for number, port in enumerate(netlist.ports):
        at = (number + 0.5) / len(netlist.ports) * 2 * (canvas.width + canvas.height)
        x[port], y[port] = (round(value, 3) for value in _on_edge(at, canvas))
    _pack_rows(netlist, canvas, x, y)
    side = math.ceil(math.sqrt(len(netlist.soft)))
    for number, macro in enumerate(netlist.soft):
        x[macro] = round((number % side + 0.5) / side * canvas.width, 3)
        y[macro] = round((number // side + 0.5) / side * canvas.height, 3)
    return all_placed(netlist, x, y)


def _on_edge(at: float, canvas: Canvas) -> tuple[float, float]:
    """The point `at` µm along the edge, counter-clockwise from the lower left corner."""
    if at < canvas.width:
        return at, 0.0
    if at < canvas.width + canvas.height:
        return canvas.width, at - canvas.width
    if at < 2 * canvas.width + canvas.height:
        return 2 * canvas.width + canvas.height - at, canvas.height
    return 0.0, 2 * (canvas.width + canvas.height) - at


def _pack_rows(netlist: Netlist, canvas: Canvas, x: np.ndarray, y: np.ndarray) -> None:
    """Places hard macros without overlap in rows, bottom up, highest first (then file order)."""
    order = sorted(netlist.hard.tolist(), key=lambda macro: -netlist.height[macro])
    left, bottom, row_height = 0.0, 0.0, 0.0
    for macro in order:
        width, height = float(netlist.width[macro]), float(netlist.height[macro])
        if left + width > canvas.width:
            left, bottom, row_height = 0.0, bottom + row_height, 0.0
        if bottom + height > canvas.height or width > canvas.width:
            canvas_size = f"{canvas.width} × {canvas.height} µm"
            raise DesignError(f"hard={len(order)}: the macros do not fit on {canvas_size}; give another number or seed")
        x[macro], y[macro] = round(left + width / 2, 3), round(bottom + height / 2, 3)
        left, row_height = left + width, max(row_height, height)
