"""Writes a synthetic chip as LEF and DEF: standard cells with Rent-like locality, memories, ports, a clock.

    python benchmarks/made_chip.py --cells 1000000 --macros 100 --out made [--technology asap7] [--placed]

`made/chip.lef` and `made/chip.def` are files as an engineer would have before macro placement.

Axis legend: M standard cells, H macros, Q ports, E nets, L pins of nets. Lengths in µm unless they say database units.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

MOST_INPUTS = 8
MACRO_PINS = 40
# Share of nets with 1, 2, … sinks.
_FANOUTS = (0.55, 0.295, 0.08, 0.03, 0.02, 0.015, 0.01)
_RENT = 0.65
_CLOCKED = 0.15


@dataclasses.dataclass(frozen=True)
class Technology:
    """LEF data of a technology: site (µm), database units per µm, grid (µm), layers (name, direction, pitch)."""

    site: str
    width: float
    height: float
    units: int
    grid: float
    layers: tuple[tuple[str, str, float], ...]


TECHNOLOGIES = {
    "sky130": Technology("unithd", 0.46, 2.72, 1000, 0.005, (
        ("li1", "VERTICAL", 0.46), ("met1", "HORIZONTAL", 0.34), ("met2", "VERTICAL", 0.46),
        ("met3", "HORIZONTAL", 0.68), ("met4", "VERTICAL", 0.92), ("met5", "HORIZONTAL", 3.4))),
    "asap7": Technology("asap7sc7p5t", 0.054, 0.27, 4000, 0.001, (
        ("M1", "VERTICAL", 0.036), ("M2", "HORIZONTAL", 0.036), ("M3", "VERTICAL", 0.036),
        ("M4", "HORIZONTAL", 0.048), ("M5", "VERTICAL", 0.048), ("M6", "HORIZONTAL", 0.064),
        ("M7", "VERTICAL", 0.064), ("M8", "HORIZONTAL", 0.08), ("M9", "VERTICAL", 0.08))),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Options:
    """Parameters of the chip.

    Attributes:
        cells, macros, ports: their numbers.
        technology: a name of `TECHNOLOGIES`.
        placed: whether the standard cells are placed.
        ports_placed: whether the ports are placed.
        seed: seed of all random numbers.
    """

    cells: int = 2000
    macros: int = 12
    ports: int = 64
    technology: str = "sky130"
    placed: bool = False
    ports_placed: bool = True
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class _Plan:
    """Sizes in database units: core width and height, its offset in the die, macros' sizes int64 [H, 2]."""

    core: tuple[int, int]
    offset: int
    macro_sizes: np.ndarray
    macro_kind: np.ndarray


def write_chip(folder: Path, options: Options) -> tuple[Path, Path]:
    """Writes `chip.lef` and `chip.def` to a folder, which is created; returns both paths."""
    folder.mkdir(parents=True, exist_ok=True)
    technology = TECHNOLOGIES[options.technology]
    rng = np.random.default_rng(options.seed)
    pins, start = _nets(options, rng)
    inputs = np.bincount(pins[pins < options.cells], minlength=options.cells)
    inputs -= np.bincount(pins[start[:-1]][pins[start[:-1]] < options.cells], minlength=options.cells)
    plan = _plan(options, technology, inputs, rng)
    lef, chip = folder / "chip.lef", folder / "chip.def"
    with lef.open("w") as file:
        file.writelines(_lef(technology, plan))
    with chip.open("w") as file:
        file.writelines(_def(options, technology, plan, inputs, pins, start, rng))
    return lef, chip


def _nets(options: Options, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Returns endpoints on nets, drivers first (int64 [L]), and the start of each net (int64 [E+1]).

    Endpoints are cells' numbers, then MACRO_PINS for each macro, then ports. Cells are leaves of a binary tree; a sink
    is drawn from the subtree of the driver that has 2^l leaves, P(level ≥ l) = 2^(−(1−p)·l).
    """
    cells, macros = options.cells, options.macros
    shares = np.array(_FANOUTS) / sum(_FANOUTS)
    fanout = 1 + rng.choice(len(shares), cells, p=shares)
    driver = np.repeat(np.arange(cells), fanout)
    level = 1 + rng.exponential(1 / ((1 - _RENT) * math.log(2)), len(driver)).astype(np.int64)
    block = 2 ** np.minimum(level, 40)
    first = driver // block * block
    sink = first + (rng.random(len(driver)) * np.minimum(block, cells - first)).astype(np.int64)
    region = max(cells // max(macros, 1), 1)
    macro_pin = np.arange(macros * MACRO_PINS)
    partner = np.minimum(macro_pin // MACRO_PINS * region, cells - 1)
    partner = np.minimum(partner + rng.integers(0, region, len(partner)), cells - 1)
    drives = macro_pin % 2 == 0
    port = cells + macros * MACRO_PINS + np.arange(options.ports)
    other = rng.integers(0, cells, options.ports)
    comes_in = np.arange(options.ports) % 2 == 0
    ends = (
        np.concatenate((cells + macro_pin[drives], port[comes_in])),
        np.concatenate((partner[drives], other[comes_in])),
    )
    driver = np.concatenate((driver, ends[0], partner[~drives], other[~comes_in]))
    sink = np.concatenate((sink, ends[1], cells + macro_pin[~drives], port[~comes_in]))
    return _joined(driver, sink, cells)


def _joined(driver: np.ndarray, sink: np.ndarray, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Builds nets from pairs of a driver and a sink; a cell is on at most MOST_INPUTS nets, and none of its own."""
    pairs = np.unique(np.stack((driver, sink), axis=1)[driver != sink], axis=0)
    by_sink = np.argsort(pairs[:, 1], kind="stable")
    sorted_sink = pairs[by_sink, 1]
    rank = np.arange(len(pairs)) - np.searchsorted(sorted_sink, sorted_sink)
    kept = np.ones(len(pairs), dtype=np.bool_)
    kept[by_sink] = (rank < MOST_INPUTS) | (sorted_sink >= cells)
    pairs = pairs[kept]
    found, count = np.unique(pairs[:, 0], return_counts=True)
    start = np.concatenate(([0], np.cumsum(count + 1)))
    pins = np.empty(int(start[-1]), dtype=np.int64)
    is_driver = np.zeros(len(pins), dtype=np.bool_)
    is_driver[start[:-1]] = True
    pins[is_driver], pins[~is_driver] = found, pairs[:, 1]
    return pins, start


def _plan(options: Options, technology: Technology, inputs: np.ndarray, rng: np.random.Generator) -> _Plan:
    """Sizes the core: macros cover two fifths of it, cells three fifths of the rest."""
    cell_area = float(_cell_width(technology, inputs).sum()) * technology.height
    free = cell_area / 0.6
    core = free / 0.6 if options.macros else free
    kinds = np.array([[1.0, 1.0], [1.6, 0.7], [0.6, 0.9], [2.0, 1.3]])
    kind = np.sort(rng.integers(0, len(kinds), options.macros))
    unit = math.sqrt(0.4 * core / max(float(kinds[kind].prod(axis=1).sum()), 1e-9))
    row, step = _units(technology.height, technology), _units(technology.width, technology)
    side = math.sqrt(core) * technology.units
    width, height = math.ceil(side / step) * step, math.ceil(side / row) * row
    sizes = np.maximum(np.round(kinds * unit * technology.units / step).astype(np.int64) * step, step)
    return _Plan((width, height), 10 * row, sizes, kind)


def _units(value: float, technology: Technology) -> int:
    return round(value * technology.units)


def _cell_width(technology: Technology, inputs: np.ndarray) -> np.ndarray:
    """Returns the width of each cell in µm."""
    return (2 + 1.5 * np.maximum(inputs, 1)).astype(np.int64) * technology.width


def _lef(technology: Technology, plan: _Plan) -> Iterator[str]:
    yield 'VERSION 5.8 ;\nBUSBITCHARS "[]" ;\nDIVIDERCHAR "/" ;\n'
    yield f"UNITS\n  DATABASE MICRONS {technology.units} ;\nEND UNITS\n"
    yield f"MANUFACTURINGGRID {technology.grid} ;\n"
    for name, direction, pitch in technology.layers:
        yield f"LAYER {name}\n  TYPE ROUTING ;\n  DIRECTION {direction} ;\n  PITCH {pitch} ;\n  WIDTH {pitch / 2:g} ;\n"
        yield f"END {name}\n"
    yield f"SITE {technology.site}\n  CLASS CORE ;\n  SIZE {technology.width} BY {technology.height} ;\n"
    yield f"END {technology.site}\n"
    first = technology.layers[0][0]
    for count in range(MOST_INPUTS + 1):
        width = float(_cell_width(technology, np.array([count]))[0])
        yield f"MACRO GATE{count}\n  CLASS CORE ;\n  ORIGIN 0 0 ;\n  SIZE {width:g} BY {technology.height} ;\n"
        yield f"  SYMMETRY X Y ;\n  SITE {technology.site} ;\n"
        names = [*(f"A{number}" for number in range(count)), "CK", "Y"]
        for number, name in enumerate(names):
            at = width * (number + 0.5) / len(names)
            yield _lef_pin(name, first, at, technology.height / 2, "OUTPUT" if name == "Y" else "INPUT", technology)
        yield f"END GATE{count}\n"
    for kind, (width, height) in enumerate((plan.macro_sizes / technology.units).tolist()):
        yield f"MACRO RAM{kind}\n  CLASS BLOCK ;\n  ORIGIN 0 0 ;\n  SIZE {width} BY {height} ;\n  SYMMETRY X Y R90 ;\n"
        for pin in range(MACRO_PINS):
            at = height * (pin + 0.5) / MACRO_PINS
            side = "OUTPUT" if pin % 2 == 0 else "INPUT"
            yield _lef_pin(_macro_pin(pin), technology.layers[2][0], technology.width, at, side, technology)
        yield _lef_pin("clk", technology.layers[2][0], width / 2, technology.width, "INPUT", technology)
        yield "  OBS\n"
        for name, _, _ in technology.layers[:4]:
            yield f"    LAYER {name} ;\n      RECT 0 0 {width} {height} ;\n"
        yield f"  END\nEND RAM{kind}\n"
    yield "END LIBRARY\n"


def _macro_pin(pin: int) -> str:
    return f"rd[{pin // 2}]" if pin % 2 == 0 else f"wd[{pin // 2}]"


def _lef_pin(name: str, layer: str, x: float, y: float, direction: str, technology: Technology) -> str:
    half = technology.width / 8
    return (
        f"  PIN {name}\n    DIRECTION {direction} ;\n    USE {'CLOCK' if name in ('CK', 'clk') else 'SIGNAL'} ;\n"
        f"    PORT\n      LAYER {layer} ;\n        RECT {x - half:.4f} {y - half:.4f} {x + half:.4f} {y + half:.4f} ;\n"
        f"    END\n  END {name}\n"
    )


def _def(
    options: Options, technology: Technology, plan: _Plan, inputs: np.ndarray, pins: np.ndarray, start: np.ndarray,
    rng: np.random.Generator,
) -> Iterator[str]:  # fmt: skip
    width, height = plan.core
    die = width + 2 * plan.offset, height + 2 * plan.offset
    yield 'VERSION 5.8 ;\nDIVIDERCHAR "/" ;\nBUSBITCHARS "[]" ;\nDESIGN made ;\n'
    yield f"UNITS DISTANCE MICRONS {technology.units} ;\n"
    yield f"DIEAREA ( 0 0 ) ( {die[0]} {die[1]} ) ;\n"
    row, step = _units(technology.height, technology), _units(technology.width, technology)
    for number in range(height // row):
        turn = "N" if number % 2 == 0 else "FS"
        y = plan.offset + number * row
        yield f"ROW ROW_{number} {technology.site} {plan.offset} {y} {turn} DO {width // step} BY 1 STEP {step} 0 ;\n"
    for name, direction, pitch in technology.layers:
        axis, length = ("X", die[0]) if direction == "VERTICAL" else ("Y", die[1])
        each = _units(pitch, technology)
        yield f"TRACKS {axis} {each // 2} DO {length // each} STEP {each} LAYER {name} ;\n"
    yield from _components(options, technology, plan, inputs)
    yield from _pins(options, die, technology)
    yield from _net_lines(options, pins, start, rng)
    yield "END DESIGN\n"


def _cell_name(number: int) -> str:
    return f"core/u{number >> 12}/b{(number >> 6) & 63}/g{number}"


def _macro_name(number: int) -> str:
    return rf"core/u{number}/mem\[{number}\]"


def _components(options: Options, technology: Technology, plan: _Plan, inputs: np.ndarray) -> Iterator[str]:
    yield f"COMPONENTS {options.cells + options.macros} ;\n"
    for number in range(options.macros):
        yield f"- {_macro_name(number)} RAM{plan.macro_kind[number]} ;\n"
    x, y = _curve(options.cells)
    width, height = plan.core
    row = _units(technology.height, technology)
    at_x = (plan.offset + x * (width * 0.95)).astype(np.int64)
    at_y = plan.offset + (y * (height // row - 1)).astype(np.int64) * row
    for number, (count, left, low) in enumerate(zip(inputs.tolist(), at_x.tolist(), at_y.tolist(), strict=True)):
        place = f" + PLACED ( {left} {low} ) N" if options.placed else ""
        yield f"- {_cell_name(number)} GATE{count}{place} ;\n"
    yield "END COMPONENTS\n"


def _curve(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions in the unit square along a Z-order curve, so that neighbours in the tree are close together."""
    number = np.arange(count)
    bits = max(1, math.ceil(math.log2(max(count, 2)) / 2))
    number = number * (4**bits) // max(count, 1)
    x = sum(((number >> (2 * bit)) & 1) << bit for bit in range(bits))
    y = sum(((number >> (2 * bit + 1)) & 1) << bit for bit in range(bits))
    return np.asarray(x) / 2**bits, np.asarray(y) / 2**bits


def _pins(options: Options, die: tuple[int, int], technology: Technology) -> Iterator[str]:
    yield f"PINS {options.ports + 1} ;\n"
    layer, half = technology.layers[3][0], _units(technology.width, technology) // 4
    for port in range(options.ports + 1):
        name = "clk" if port == options.ports else f"p[{port}]"
        side = "INPUT" if name == "clk" or port % 2 == 0 else "OUTPUT"
        place = ""
        if options.ports_placed:
            along = (port + 0.5) / (options.ports + 1) * 4
            edge, rest = int(along), along % 1
            across, up = [(rest, 0.0), (1.0, rest), (1 - rest, 1.0), (0.0, 1 - rest)][edge]
            place = f" + PLACED ( {int(across * die[0])} {int(up * die[1])} ) N"
        shape = f"LAYER {layer} ( -{half} 0 ) ( {half} {half} )"
        yield f"- {name} + NET {name} + DIRECTION {side} + USE SIGNAL + {shape}{place} ;\n"
    yield "END PINS\n"


def _net_lines(options: Options, pins: np.ndarray, start: np.ndarray, rng: np.random.Generator) -> Iterator[str]:
    cells, first_port = options.cells, options.cells + options.macros * MACRO_PINS
    clocked = np.flatnonzero(rng.random(cells) < _CLOCKED).tolist()
    yield f"NETS {len(start)} ;\n"
    taken = [0] * cells
    places, begin = pins.tolist(), start.tolist()
    for net in range(len(begin) - 1):
        ends, name = [], f"n{net}"
        for number, place in enumerate(places[begin[net] : begin[net + 1]]):
            if place >= first_port:
                ends.append(f"( PIN p[{place - first_port}] )")
                name = f"p[{place - first_port}]"
            elif place >= cells:
                macro, pin = divmod(place - cells, MACRO_PINS)
                ends.append(f"( {_macro_name(macro)} {_macro_pin(pin)} )")
            elif number == 0:
                ends.append(f"( {_cell_name(place)} Y )")
            else:
                ends.append(f"( {_cell_name(place)} A{taken[place]} )")
                taken[place] += 1
        yield f"- {name} {' '.join(ends)} ;\n"
    yield "- clk ( PIN clk )"
    for cell in clocked:
        yield f" ( {_cell_name(cell)} CK )"
    for macro in range(options.macros):
        yield f"\n ( {_macro_name(macro)} clk )"
    yield " + USE CLOCK ;\nEND NETS\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--macros", type=int, default=100)
    parser.add_argument("--ports", type=int, default=500)
    parser.add_argument("--technology", choices=sorted(TECHNOLOGIES), default="asap7")
    parser.add_argument("--placed", action="store_true", help="the standard cells have places")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    values = vars(parser.parse_args())
    for path in write_chip(values.pop("out"), Options(**values)):
        print(path)


if __name__ == "__main__":
    main()
