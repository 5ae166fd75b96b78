"""Cost of the action model: the loss of a policy that knows the position of every macro in a good placement.

    python benchmarks/bench_action_model.py DESIGN … [--cost chip] [--seconds 10] [--scales 1 2 4] [--flat]

A search of `--seconds` CPU seconds finds the good placement. Then each macro, in the environment's order, takes the
free cell nearest to its position there, on the grid and off it (`env.off_grid`), with action grids of each of
`--scales`. For comparison, the macros are put in the middle of their cells, with overlaps, and legalised at the end.
Soft macros are placed and macros mirrored in every case, as `sample` does. --flat: also the routed wirelength, with all
cells placed (imported and generated flat designs). One line each.
"""

from __future__ import annotations

import argparse

import numpy as np

from placement.annealing.anneal_config import AnnealConfig
from placement.annealing.finishing import anneal_soft_macros, flip_macros
from placement.annealing.search import search
from placement.annealing.starts import legal
from placement.config import CostConfig, EnvConfig
from placement.engine.costs import CostWeights, compute_costs
from placement.env.gym_env import PlacementEnv
from placement.evaluation.full_evaluation import FullEvaluator
from placement.netlist.design import Design, Placement
from placement.netlist.load import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="+")
    parser.add_argument("--cost", choices=("chip", "proxy"), default="chip")
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds of the search")
    parser.add_argument("--scales", type=int, nargs="+", default=(1, 2, 4), help="columns and rows of actions, times")
    parser.add_argument("--flat", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    cost = CostConfig(name=arguments.cost)
    for name in arguments.designs:
        design = load(name)
        evaluator = FullEvaluator(name, design) if arguments.flat else None
        best = search(
            design,
            seconds=arguments.seconds,
            weights=cost.weights(),
            seed=arguments.seed,
        ).placement
        tell(design, "search", best, best, cost.weights(), evaluator)
        for scale in arguments.scales:
            for off_grid in (False, True):
                config = EnvConfig(cost=cost, soft_placer="analytic_fast", action_scale=scale, off_grid=off_grid)
                title = f"scale {scale}, free cells in turn, {'off' if off_grid else 'on'} the grid"
                tell(design, title, one_by_one(design, best, config), best, cost.weights(), evaluator)
            tell(
                design,
                f"scale {scale}, legal at the end",
                at_once(design, best, scale),
                best,
                cost.weights(),
                evaluator,
            )


def one_by_one(design: Design, best: Placement, config: EnvConfig) -> Placement | None:
    """Puts each macro on the free cell nearest to its position in `best`; returns None at a dead end."""
    env = PlacementEnv(design, config=config)
    observation, info = env.reset()
    rows, columns = observation["mask"].shape
    across, up = middles(design, columns, rows)
    ended = False
    for macro in design.placing_order:
        if ended:
            return None
        away = np.abs(across - best.x[macro])[None, :] + np.abs(up - best.y[macro])[:, None]
        free = np.asarray(info["action_mask"]).reshape(rows, columns) > 0
        _, _, ended, _, info = env.step(np.int64(np.where(free, away, np.inf).argmin()))
    return env.placement if "costs" in info else None


def at_once(design: Design, best: Placement, scale: int) -> Placement:
    """Puts the macros in the middle of their cells in `best`, then legalises them."""
    canvas, macros = design.canvas, design.placing_order
    columns, rows = canvas.columns * scale, canvas.rows * scale
    across, up = middles(design, columns, rows)
    column = np.clip((best.x[macros] * columns / canvas.width).astype(int), 0, columns - 1)
    row = np.clip((best.y[macros] * rows / canvas.height).astype(int), 0, rows - 1)
    width, height = (side[macros] / 2 for side in design.netlist.sides(best.orientation))
    x = np.clip(across[column], width, canvas.width - width)
    y = np.clip(up[row], height, canvas.height - height)
    return legal(design, best.moved(macros, x, y), AnnealConfig())


def middles(design: Design, columns: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the centres of a grid's cells in µm, float64 [columns] and [rows]."""
    canvas = design.canvas
    return (np.arange(columns) + 0.5) * canvas.width / columns, (np.arange(rows) + 0.5) * canvas.height / rows


def tell(
    design: Design,
    title: str,
    placement: Placement | None,
    best: Placement,
    weights: CostWeights,
    evaluator: FullEvaluator | None,
) -> None:
    """Prints the distance of the macros from `best`, and the cost after soft macros are placed and macros mirrored."""
    if placement is None:
        print(f"{design.name}: {title}: dead end", flush=True)
        return
    macros = design.placing_order
    settled = placement
    if placement is not best:
        settled = anneal_soft_macros(design, placement, weights=weights)
        settled = flip_macros(design, settled, weights=weights).placement
    away = np.hypot(placement.x - best.x, placement.y - best.y)[macros]
    words = f"cost {compute_costs(design, settled, weights=weights).total:.4f}"
    words += f", macros {away.mean():.1f} µm away in the mean, {away.max():.1f} at most"
    if evaluator is not None:
        found = evaluator.evaluate(settled).metrics
        words += f", routed {found.routed_wirelength / 1e3:.1f} mm, flat {found.flat_wirelength / 1e3:.1f} mm"
    print(f"{design.name}: {title}: {words}", flush=True)


if __name__ == "__main__":
    main()
