"""A placer for `macro-placement benchmark`: legalised random placements; docs/how-to/benchmark-suites.md."""

import time

import numpy as np

import placement
from placement import Design, DesignError, Placement


def place(design: Design, seed: int, seconds: float) -> Placement:
    """Returns the cheapest of the placements that the CPU time allows."""
    end, random = time.process_time() + 0.8 * seconds, np.random.default_rng(seed)
    macros, canvas, best = design.placing_order, design.canvas, None
    while best is None or time.process_time() < end:
        x, y = random.random((2, len(macros))) * [[canvas.width], [canvas.height]]
        try:
            found = placement.legalise(design, design.initial.moved(macros, x, y))
        except DesignError:  # no legal position for a macro; other placements may have one
            continue
        cost = placement.cost(design, found).total
        if best is None or cost < best[0]:
            best = cost, found
    return best[1]
