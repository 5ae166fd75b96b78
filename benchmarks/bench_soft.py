"""CPU time of each soft-macro placer and the proxy cost that it reaches, compared with other placers.

    python benchmarks/bench_soft.py [DESIGN] [PLACEMENT.plc] [--random 20] [--repeats 15]

DESIGN is a name or a path; default: ariane133_ng45 with its legalized.plc if they are on PLACEMENT_PATH, else
clustered120. Each placer places the soft macros around the hard macros of the design's initial placement, of PLACEMENT,
and of `--random` random legal placements of the hard macros (seeds 0, 1, …; each macro on a legal gcell drawn
uniformly). Times are medians and minima of CPU time on one core, without the placer's set-up. The other figures were
measured on Ariane, so ratios and bars are printed for that design only.

The last lines show how far a placer's result depends on rounding: the relative change of the default training cost when
each coordinate of the hard macros changes by a random factor of at most 1 ± 1e-7, about one unit in the last place of
single precision.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time

import numpy as np

from placement.config import CostConfig
from placement.engine import _native
from placement.engine.costs import Costs, compute_costs, proxy_cost
from placement.engine.native_design import native_design
from placement.engine.soft import SOFT_PLACERS, place_soft_macros
from placement.engine.state import PlacementState
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement
from placement.netlist.load import find, load

ARIANE = "ariane133_ng45"
PUBLIC_SECONDS = 0.165  # one force-directed placement, MacroPlacement's C++ (150 to 180 ms)
CLOSED_SECONDS = 0.740  # one force-directed placement, Circuit Training's binary
PUBLIC_COST = 0.849  # MacroPlacement's force-directed placer on legalized.plc's hard macros
FILE_COST = 0.6859  # legalized.plc with its own soft macros
BARS = {"force_directed": 0.025, "analytic": 0.050}  # seconds
ROUNDING = 1e-7  # relative change of the hard macros' coordinates
SAME_COST = 1e-4  # largest relative difference of costs that count as equal


@dataclasses.dataclass(frozen=True)
class Case:
    """A placement of the hard macros."""

    name: str
    placement: Placement


def random_legal(design: Design, seed: int, *, attempts: int = 1000) -> Placement:
    """Returns `design`'s initial placement with each movable hard macro on a random legal gcell."""
    generator = np.random.default_rng(seed)
    state = PlacementState(design)
    for _ in range(attempts):
        state.reset()
        for _ in design.placing_order:
            cells = np.argwhere(state.mask())
            if not len(cells):
                break
            state.place(*(int(index) for index in generator.choice(cells)))
        else:
            centres = state.centres()
            return design.initial.moved(design.placing_order, centres[:, 0], centres[:, 1])
    raise DesignError(f"{design.name}: no random legal placement in {attempts} attempts")


def run(design: Design, placer: str, placement: Placement, repeats: int) -> tuple[Costs, float, float]:
    """Returns the costs of the result, and median and minimum of the CPU seconds of `repeats` calls."""
    native = _native.SoftPlacer(placer, native_design(design))
    times = []
    for _ in range(repeats + 1):
        x, y = placement.x.copy(), placement.y.copy()
        start = time.process_time()
        native.place(x, y, placement.orientation)
        times.append(time.process_time() - start)
    soft = design.netlist.soft
    costs = proxy_cost(design, placement.moved(soft, x[soft], y[soft]))
    return costs, statistics.median(times[1:]), min(times[1:])


def line(label: str, costs: Costs, seconds: str = "") -> str:
    return (
        f"  {label:28s} wirelength {costs.wirelength_cost:.4f}  density {costs.density_cost:.4f}  "
        f"congestion {costs.congestion_cost:.4f}  proxy {costs.total:.4f}  {seconds}"
    )


def report_cases(design: Design, cases: list[Case], repeats: int) -> None:
    for case in cases:
        print(f"hard macros of {case.name}")
        print(line("soft macros as they are", proxy_cost(design, case.placement)))
        for placer in SOFT_PLACERS:
            costs, median, least = run(design, placer, case.placement, repeats)
            print(line(placer, costs, f"{median * 1e3:6.1f} ms median, {least * 1e3:.1f} ms least"))
            if design.name == ARIANE:
                print(f"  {'':28s} {PUBLIC_SECONDS / median:.1f}× the speed of the public placer, ", end="")
                print(f"{CLOSED_SECONDS / median:.0f}× of the closed binary", end="")
                bar = BARS.get(placer)
                print(f"; bar of {bar * 1e3:.0f} ms {'met' if median <= bar else 'NOT met'}" if bar else "")
            if design.name == ARIANE and case.name == "legalized.plc":
                print(
                    f"  {'':28s} proxy {costs.total / PUBLIC_COST:.3f} of the public placer's {PUBLIC_COST}, ",
                    end="",
                )
                print(f"{costs.total / FILE_COST:.3f} of the file's {FILE_COST}")


def report_random(design: Design, placements: list[Placement]) -> None:
    count = len(placements)
    print(f"{count} random legal placements of the hard macros (mean, standard deviation of the proxy cost)")
    means = {}
    for placer in SOFT_PLACERS:
        results = [run(design, placer, placement, 1) for placement in placements]
        parts = np.array([costs for costs, _, _ in results])
        means[placer] = np.array([costs.total for costs, _, _ in results])
        milliseconds = statistics.median(median for _, median, _ in results) * 1e3
        print(line(placer, Costs(*parts.mean(axis=0)), f"± {means[placer].std():.4f}  {milliseconds:6.1f} ms median"))
    for placer in SOFT_PLACERS[1:]:
        better = int((means[placer] < means["force_directed"]).sum())
        ratio = means[placer].mean() / means["force_directed"].mean()
        print(f"  {placer}: {ratio:.3f} of force_directed's mean cost, lower on {better} of {count}")


def report_rounding(design: Design, placements: list[Placement]) -> None:
    weights, hard = CostConfig().weights(), design.netlist.hard
    generator = np.random.default_rng(0)
    for placer in SOFT_PLACERS:
        changes = []
        for placement in placements:
            factors = 1 + generator.uniform(-ROUNDING, ROUNDING, (2, len(hard)))
            rounded = placement.moved(hard, placement.x[hard] * factors[0], placement.y[hard] * factors[1])
            before, after = (
                compute_costs(design, place_soft_macros(design, start, placer), weights=weights).total
                for start in (placement, rounded)
            )
            changes.append(abs(after / before - 1))
        found = np.array(changes)
        print(
            f"  {placer}: rounding changes {(found > SAME_COST).mean():.0%} of the costs by more than {SAME_COST:g}; "
            f"median {np.median(found):.2g}, root mean square {np.sqrt((found**2).mean()):.2g}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="?", default=None)
    parser.add_argument("placement", nargs="?", default=None)
    parser.add_argument("--random", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    try:
        design = load(arguments.design or ARIANE)
    except DesignError:
        if arguments.design is not None:
            raise
        design = load("clustered120")
    cases = [Case("the initial placement", design.initial)]
    legalized = find(design.name).parent / "legalized.plc" if arguments.design is None else None
    path = arguments.placement or (legalized if legalized is not None and legalized.exists() else None)
    if path is not None:
        cases.append(Case(str(path).rsplit("/", maxsplit=1)[-1], read_placement(path, design.netlist)[1]))
    counts = design.netlist
    print(f"{design.name}: {len(counts.hard)} hard macros, {len(counts.soft)} soft macros, {counts.num_nets} nets")
    report_cases(design, cases, arguments.repeats)
    if arguments.random > 0:
        placements = [random_legal(design, seed) for seed in range(arguments.random)]
        report_random(design, placements)
        report_rounding(design, placements)


if __name__ == "__main__":
    main()
