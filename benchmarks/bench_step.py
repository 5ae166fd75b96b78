"""CPU time of one environment step: legal mask, wire mask, maps, observation; no soft macros placed, no cost.

    PLACEMENT_PATH=… python benchmarks/bench_step.py [DESIGN …]

Compared with 54 to 97 ms per step, which is what Circuit Training's environment takes on Ariane over the open Python
evaluator (measured on a 2-core AMD EPYC machine).
"""

from __future__ import annotations

import argparse
import dataclasses
import time

import numpy as np

from placement.config import EnvConfig
from placement.engine.pool import make_pool
from placement.engine.state import EpisodeRenderer, PlacementState
from placement.netlist.design import Design
from placement.netlist.load import load

ARIANE = "ariane133_ng45"
PEER_MS = (54.0, 97.0)
REPEATS = 15


def episode(design: Design, seed: int) -> np.ndarray:
    """Returns random legal actions that place every macro, int32 [T]."""
    generator = np.random.default_rng(seed)
    while True:
        state, actions = PlacementState(design), []
        while state.legal_cells:
            cell = int(generator.choice(np.flatnonzero(state.mask())))
            state.place(*divmod(cell, design.canvas.columns))
            actions.append(cell)
        if len(actions) == len(design.placing_order):
            return np.array(actions, np.int32)


def microseconds_replayed(design: Design, actions: np.ndarray) -> float:
    """Returns CPU µs per step inside the engine: 16 episodes rendered into observations."""
    renderer = EpisodeRenderer([design])
    out = renderer.arrays(16, len(actions))
    copies = np.repeat(actions[None], 16, axis=0)
    lengths = np.full(16, len(actions), np.int32)
    renderer.render(np.zeros(16, np.int32), copies, lengths, out=out)
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        renderer.render(np.zeros(16, np.int32), copies, lengths, out=out)
        times.append(time.process_time() - start)
    return float(np.median(times)) / copies.size * 1e6


def microseconds_stepped(design: Design, actions: np.ndarray, envs: int) -> float:
    """Returns CPU µs per step through the pool's Python interface, all but the last step of an episode."""
    pool = make_pool(design, envs, num_threads=1, config=EnvConfig(soft_placer="none"))
    batches = np.ascontiguousarray(np.repeat(actions[:-1, None], envs, axis=1))
    times = []
    for _ in range(REPEATS):
        pool.reset()
        start = time.process_time()
        for batch in batches:
            pool.step(batch)
        times.append(time.process_time() - start)
    return float(np.median(times)) / batches.size * 1e6


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("designs", nargs="*", default=[ARIANE, "clustered120"])
    for name in parser.parse_args().designs:
        loaded = load(name)
        finer = dataclasses.replace(loaded.canvas, columns=64, rows=64)
        for design in (loaded, dataclasses.replace(loaded, name=f"{name} at 64 × 64", canvas=finer)):
            actions = episode(design, 0)
            engine = microseconds_replayed(design, actions)
            print(f"{design.name}: {len(actions)} macros, {design.canvas.columns} × {design.canvas.rows} gcells")
            print(f"  engine, per step            {engine:8.2f} µs CPU  (bar on Ariane: 20)")
            for envs in (1, 64):
                stepped = microseconds_stepped(design, actions, envs)
                print(f"  pool of {envs:2d}, per step         {stepped:8.2f} µs CPU")
            if design is loaded and name == ARIANE:
                low, high = (peer * 1e3 / engine for peer in PEER_MS)
                print(f"  Circuit Training's environment over the open evaluator: {low:,.0f}× to {high:,.0f}× as long")


if __name__ == "__main__":
    main()
