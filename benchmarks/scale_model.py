"""Validates the simulation of caches and shards against measurements, and predicts 16 to 4,096 actors. Bar: within 20%.

    python benchmarks/scale_model.py [--shards FILE] [--caches FILE] [--planned] [--plots FOLDER]

The files are written by `bench_shards.py --json` and `bench_caches.py --json`; default: those in benchmarks/measured. A
few constants are fitted to some of the points, which are marked: the fixed time and the time per megabyte of a single
write, the share of a busy link that carries payload, and its decline with more writers. All other points are predicted.
Each point is printed with the standard deviation of single runs of the simulation. The predictions for more actors use
the constants in placement/capacity/plan.py; keep those equal to the fitted ones. With --planned, nothing is fitted,
and all points are predicted with the constants in plan.py. With --plots, the script draws measured and simulated
latencies, and the predictions with and without caches and shards.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from bench_shards import GROUPS
from links import BURST
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, PercentFormatter
from scipy.optimize import minimize
from simulated import Pace, simulate_reads, simulate_writes

from placement.capacity.plan import MEASURED as MEASURED_COSTS
from placement.capacity.plan import Fleet, FleetOutcome, simulate
from placement.capacity.simulation import TransferCosts
from placement.report import style

MEASURED = Path(__file__).parent / "measured"
BAR = 0.2
NOTHING = TransferCosts()
ACTORS = (16, 64, 256, 1024, 4096)
SEEDS = 5
"""Number of simulations of writers that are averaged."""


class Point(NamedTuple):
    """A measured mean latency and simulations of it, one per seed, in seconds."""

    name: str
    fitted: bool
    measured: float
    simulate: Callable[[TransferCosts], np.ndarray]


def write_points(rows: list[dict]) -> list[Point]:
    points = []
    for row in rows:
        link = row["megabytes"] * 8 / row["megabits"]
        pace = Pace(
            row["writers"],
            row["shards"],
            row["megabytes"],
            row["megabits"],
            row["making"] * link,
            burst=BURST / 1e6,
            warm=bool(row.get("warm")),
            processes=GROUPS,
        )
        alone = row["writers"] == min(one["writers"] for one in rows)
        fitted = row["shards"] == (max(one["shards"] for one in rows) if alone else 1)
        name = f"write {row['megabytes']:g} MB, {row['shards']} shards, {row['writers']} writers"
        points.append(
            Point(
                name,
                fitted,
                row["mean"],
                lambda costs, pace=pace, seconds=row["seconds"]: mean_writes(pace, costs, seconds),
            )
        )
    return points


def mean_writes(pace: Pace, costs: TransferCosts, seconds: float) -> np.ndarray:
    return np.array([simulate_writes(pace, costs, seconds=seconds, seed=seed).mean() for seed in range(SEEDS)])


def read_points(found: dict) -> list[Point]:
    options, points = found["options"], []
    for name, caches in (("straight", 0), ("tree", options["caches"])):
        fleet = Fleet(
            actors=options["readers"],
            model_mb=options["megabytes"],
            megabits=options["megabits"],
            caches=caches,
            fan_out=options["fan_out"],
        )

        def mean(costs: TransferCosts, fleet: Fleet = fleet) -> np.ndarray:
            return np.array([simulate_reads(fleet, costs, period=options["period"], reads=options["reads"]).mean()])

        measured = float(np.mean(found[name]["latencies"]))
        points.append(
            Point(f"read {options['megabytes']:g} MB, {name}, {fleet.actors} readers", caches == 0, measured, mean)
        )
    return points


def fit(points: list[Point], first: dict[str, tuple[float, float]], base: TransferCosts = NOTHING) -> TransferCosts:
    """Returns the `TransferCosts` with the least sum of fourth powers of the fitted points' errors.

    Errors are differences of logarithms; fourth powers emphasise the worst one, to which the bar applies.

    Args:
        points: all points; only the fitted ones are used.
        first: initial value and maximum of each constant; the minimum is 0.
        base: the other constants.
    """
    used = [point for point in points if point.fitted]

    def misses(values: np.ndarray) -> float:
        costs = dataclasses.replace(base, **dict(zip(first, map(float, values), strict=True)))
        return sum(float(np.log(max(point.simulate(costs).mean(), 1e-9) / point.measured)) ** 4 for point in used)

    found = minimize(
        misses,
        [guess for guess, _ in first.values()],
        method="Nelder-Mead",
        bounds=[(0, most) for _, most in first.values()],
        options={"maxfev": 400, "xatol": 1e-5, "fatol": 1e-6, "adaptive": True},
    )
    found_costs = {name: float(f"{value:.3g}") for name, value in zip(first, found.x, strict=True)}
    return dataclasses.replace(base, **found_costs)


def compare(points: list[Point], costs: TransferCosts) -> None:
    """Prints measured and simulated latencies, and the number of points within the bar."""
    offs: dict[bool, list[float]] = {True: [], False: []}
    for point in points:
        runs = point.simulate(costs)
        simulated = float(runs.mean())
        off = simulated / point.measured - 1
        offs[point.fitted].append(off)
        spread = f" ± {runs.std() / simulated:.0%}" if len(runs) > 1 else ""
        mark = " (fitted)" if point.fitted else ""
        print(f"{point.name}: measured {point.measured:9.4f} s, simulated {simulated:9.4f} s{spread}, {off:+.0%}{mark}")
    for title, chosen in (("all", offs[True] + offs[False]), ("predicted", offs[False])):
        good = sum(abs(off) <= BAR for off in chosen)
        print(f"{title} points within {BAR:.0%}: {good} of {len(chosen)} ({good / max(len(chosen), 1):.0%})")
    worst = max(map(abs, offs[True] + offs[False]))
    print(f"worst deviation {worst:.0%} (bar {BAR:.0%}: {'met' if worst <= BAR else 'NOT met'})")


def predictions(costs: TransferCosts) -> dict[str, list[FleetOutcome]]:
    """Returns, for each arrangement, one outcome for each of ACTORS."""
    base = Fleet(episode_mb=0.5)
    arrangements = {
        "one server for all": lambda actors: {"caches": 0, "shards": 1},
        "4 shards, no caches": lambda actors: {"caches": 0, "shards": 4},
        "4 shards, a cache for 64 actors": lambda actors: {"caches": max(actors // 64, 1), "shards": 4},
    }
    return {
        name: [
            simulate(dataclasses.replace(base, actors=actors, **chosen(actors)), costs, iterations=3)
            for actors in ACTORS
        ]
        for name, chosen in arrangements.items()
    }


def draw_predictions(found: dict[str, list[FleetOutcome]]) -> Figure:
    figure = style.new_figure(13.0, 4.6)
    panels = (
        ("read", "model read (mean), seconds", True),
        ("write", "a round's write (mean), seconds", True),
        ("idle", "share of time the learner waits", False),
    )
    for place, (field, label, logarithmic) in enumerate(panels):
        axes = figure.add_axes((0.06 + place * 0.33, 0.22, 0.255, 0.55))
        for (name, outcomes), colour, line in zip(found.items(), style.SERIES, ("-", "--", "-"), strict=False):
            values = [getattr(one, field) for one in outcomes]
            axes.plot(ACTORS, values, f"o{line}", color=colour, label=name, markersize=4)
        axes.set_xscale("log", base=2)
        axes.set_xticks(ACTORS, [f"{actors:,}" for actors in ACTORS])
        if logarithmic:
            axes.set_yscale("log")
            axes.set_ylim(0.05, 100)
            axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        else:
            axes.set_ylim(0, 0.6)
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.minorticks_off()
        axes.set_xlabel("actors")
        axes.set_ylabel(label)
        style.dress(axes, grid=True)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=style.SMALL_SIZE)
    style.head(
        figure,
        "Simulated: reads, writes and the learner's waiting, against the number of actors",
        "model 16 MB, rounds of 16 episodes of 0.5 MB in 60 s, learner 60 s an iteration, 10 Gbit/s for each host",
    )
    return figure


def draw_comparison(points: list[Point], costs: TransferCosts) -> Figure:
    figure = style.new_figure(6.4, 5.6)
    axes = figure.add_axes((0.15, 0.12, 0.8, 0.72))
    for fitted, colour, label in ((True, style.ORANGE, "fitted"), (False, style.BLUE, "predicted")):
        chosen = [point for point in points if point.fitted == fitted]
        axes.plot(
            [point.measured for point in chosen],
            [point.simulate(costs).mean() for point in chosen],
            "o",
            color=colour,
            label=label,
        )
    low, high = (chosen(point.measured for point in points) for chosen in (min, max))
    line = np.array([low / 1.5, high * 1.5])
    axes.plot(line, line, color=style.MUTED, linewidth=1)
    axes.fill_between(line, line * (1 - BAR), line * (1 + BAR), color=style.FAINT, label="within 20%")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("measured mean latency, seconds")
    axes.set_ylabel("simulated, seconds")
    axes.legend(frameon=False, fontsize=style.SMALL_SIZE)
    style.dress(axes, grid=True)
    style.head(
        figure,
        "The model beside the measured points",
        "mean latencies, hosts in network namespaces behind limited links",
    )
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=Path, default=MEASURED / "shards.json")
    parser.add_argument("--caches", type=Path, default=MEASURED / "caches.json")
    parser.add_argument("--planned", action="store_true", help="predict all points as `macro-placement plan` does")
    parser.add_argument("--plots", type=Path, help="folder to draw into, such as docs/images")
    arguments = parser.parse_args()
    try:
        writes = write_points(json.loads(arguments.shards.read_text()))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}; bench_shards.py writes it with --json")
    reads = []
    if arguments.caches.exists():
        reads = read_points(json.loads(arguments.caches.read_text()))
    else:
        print(f"{arguments.caches}: not there (bench_caches.py --json writes it), so reads are not compared")
    if arguments.planned:
        compare([point._replace(fitted=False) for point in writes + reads], MEASURED_COSTS)
        return
    guesses = {
        "write_seconds": (0.0015, 1.0),
        "write_seconds_per_mb": (0.006, 1.0),
        "write_goodput": (0.97, 1.0),
        "write_crowding": (0.0012, 0.01),
    }
    of_writes = fit(writes, guesses, TransferCosts(write_chunks=MEASURED_COSTS.write_chunks))
    of_reads = fit(reads, {"read_goodput": (0.94, 1.0)}) if reads else MEASURED_COSTS
    costs = dataclasses.replace(
        of_writes, read_goodput=of_reads.read_goodput, ingest_seconds=MEASURED_COSTS.ingest_seconds
    )
    print(costs)
    compare(writes + reads, costs)
    found = predictions(MEASURED_COSTS)
    for name, outcomes in found.items():
        for actors, one in zip(ACTORS, outcomes, strict=True):
            print(
                f"{name}, {actors} actors: read {one.read:.2f} s, write {one.write:.2f} s, learner idle {one.idle:.1%}"
            )
    if arguments.plots:
        print(style.save_figure(draw_comparison(writes + reads, costs), arguments.plots / "scale_model.png"))
        print(style.save_figure(draw_predictions(found), arguments.plots / "scale_predictions.png"))


if __name__ == "__main__":
    main()
