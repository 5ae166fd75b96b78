"""The delay of a wire with optimal repeaters from the library.

A long wire is cut into segments, each driven by a buffer, so that its delay is linear in its length. The segment and
the buffer are those of minimum delay per µm: the buffer's own delay from its tables, into a segment and the next
buffer's input, plus the segment's (Elmore, 0.69 R C). Wires have the resistance and capacitance of the third routing
layer that has any.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.netlist.errors import DesignError
from placement.netlist.technology import RoutingLayer
from placement.netlist.timing_library import Buffer, TimingLibrary, buffers
from placement.netlist.timing_netlist import WireModel

LAYER = 2  # index of the layer that prices wires, among the layers with resistance and capacitance
ASSUMED_CAPACITANCE = 0.17  # capacitance in fF/µm if the LEF files give none; nearly the same in all technologies
ASSUMED_RESISTIVITY = 0.02
"""Resistivity in Ω µm of a wire twice as high as wide, if the LEF files give no resistance. With it the third layer of
ASAP7 has 31 Ω and 0.17 fF per µm; OpenROAD's flow, which fits them to extracted designs, has 32 Ω and 0.17 fF for its
signals."""
_ELMORE = 0.69
_SLEW_OF_WIRE = 2.2  # slew of the whole swing over a segment's R C; its square is added to the buffer's
_ROUNDS = 6  # iterations of the slew that a repeater passes to the next
_SEGMENTS = np.geomspace(2.0, 4000.0, 60)  # candidate distances between repeaters, in µm


class _Stage(NamedTuple):
    per_um: float
    delay: float
    segment: float
    load: float
    buffer: Buffer


def wire_model(library: TimingLibrary, layers: Sequence[RoutingLayer]) -> WireModel:
    """The wire model of a technology with the buffers of a library. Raises DesignError if the library has no buffer."""
    resistance, capacitance, source = _electrical(layers)
    found = [
        stage
        for buffer in buffers(library)
        for segment in _SEGMENTS.tolist()
        if (stage := _stage(library, buffer, segment, resistance, capacitance)) is not None
    ]
    if not found:
        raise DesignError(
            "the Liberty files have no buffer (one input, one output, not inverting) for the wires: give the "
            "library of the standard cells, too"
        )
    best = min(found)
    loaded = _input_load(library, best.buffer)
    return WireModel(
        delay_per_um=best.per_um,
        capacitance_per_um=capacitance,
        resistance_per_um=resistance,
        most_load=best.load,
        stage_delay=best.delay,
        segment=best.segment,
        fanout_ratio=max(best.load / loaded, 2.0) if loaded > 0 else 2.0,
        repeater=library.cells[best.buffer.cell],
        source=source,
    )


def _electrical(layers: Sequence[RoutingLayer]) -> tuple[float, float, str]:
    """Ω and fF per µm, and their source."""
    known = [layer for layer in layers if layer.resistance > 0 and layer.capacitance > 0]
    if known:
        layer = known[min(LAYER, len(known) - 1)]
        return layer.resistance, layer.capacitance, f"layer {layer.name} of the LEF files"
    wide = [layer for layer in layers if layer.width > 0]
    width = wide[min(LAYER, len(wide) - 1)].width if wide else 0.1
    why = f"assumed, as the LEF files give none (copper, {width:g} µm wide, {2 * width:g} µm high)"
    return ASSUMED_RESISTIVITY / (2 * width**2), ASSUMED_CAPACITANCE, why


def _input_load(library: TimingLibrary, buffer: Buffer) -> float:
    return float(max(library.rise_capacitance[buffer.input], library.fall_capacitance[buffer.input]))


def _stage(
    library: TimingLibrary, buffer: Buffer, segment: float, resistance: float, capacitance: float
) -> _Stage | None:
    """A repeater and its segment, as one of many in a row; None if the buffer may not drive it."""
    own = _input_load(library, buffer)
    load = capacitance * segment + own
    most = float(library.max_capacitance[buffer.output])
    if most and load > most:
        return None
    rise, fall, slew_rise, slew_fall = (int(table) for table in library.arc_tables[4 * buffer.arc : 4 * buffer.arc + 4])
    # Ω × fF are 1/1000 ps.
    elmore = resistance * segment * (capacitance * segment / 2 + own) / 1000
    slew = 0.0
    for _ in range(_ROUNDS):
        driven = max(library.look_up(slew_rise, slew, load), library.look_up(slew_fall, slew, load))
        slew = float(np.hypot(driven, _SLEW_OF_WIRE * elmore))
    delay = (library.look_up(rise, slew, load) + library.look_up(fall, slew, load)) / 2 + _ELMORE * elmore
    return _Stage(delay / segment, delay, segment, load, buffer) if delay > 0 else None
