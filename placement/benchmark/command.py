"""`macro-placement benchmark`: runs placers on a suite or one design."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import threading
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from placement.benchmark.benchmark_config import BenchmarkConfig
from placement.benchmark.benchmark_plots import draw_one
from placement.benchmark.leaderboard import headline, read_results, score_table, summary_table, without_baseline
from placement.benchmark.leaderboard_page import write_board
from placement.benchmark.placers_to_run import placers_of
from placement.benchmark.running import Job, Result, is_complete, run
from placement.benchmark.runs_on_ray import Runner, ray_runner
from placement.benchmark.scoring import Judge
from placement.benchmark.suites import SuiteDesign, content_checksum, design_path, read_suite, suite_of
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.netlist.files import check_output_folder
from placement.netlist.load import load
from placement.report.progress_bar import progress_bars
from placement.utils.interruption import Interruption

DESIGNS = "designs"  # folder of generated and imported designs, inside that of the results
DEADLINE_SECONDS = 30 * 24 * 3600.0  # wall-clock seconds after which all runs together count as hung
STOPPED = "stopped early; the same command resumes"


def benchmark(config: BenchmarkConfig, console: Console) -> None:
    """Runs every placer on every design with every seed; prints and writes the table, the plots and the page.

    Runs on disk are not repeated, so the same command resumes, and placers, designs and seeds can be added. A missing
    design is reported, and the others run. A failed run is a result like others.

    Raises ConfigError and DesignError if the suite, a placer or a folder cannot be used, or the cluster starts no run;
    KeyboardInterrupt if it was stopped, after the table of the finished runs is written.
    """
    suite = read_suite(config.suite) if config.design is None else suite_of(config.design)
    seconds = config.time if config.time is not None else suite.time
    placers = placers_of(config, seconds)
    out = Path(config.out) if config.out is not None else Path("runs") / "benchmark" / suite.title
    check_output_folder("out", out)
    designs = _designs(suite.chosen(config.split, config.designs), out, console)
    runs = [
        (seed, placer)
        for seed in range(config.seed, config.seed + config.seeds)
        for placer in placers
        if seed == config.seed or not placer.is_placement
    ]
    total = len(designs) * len(runs)
    remote = contextlib.nullcontext() if config.address is None else ray_runner(config, out)
    with Interruption() as interruption, remote as runner, progress_bars(console, suite.title) as (bar,):
        stopped, done = interruption.requested, 0
        for one, path in designs:
            jobs = [Job(suite, one, path, placer, seed, out) for seed, placer in runs]
            for result in _run_all(jobs, config, stopped, runner):
                done += 1
                bar(done / total, f"{one.name}: {result['placer']}, {result['status']}")
                if result["status"] != "ok":
                    what = f"{result['placer']} on {one.name}, seed {result['seed']}"
                    console.print(f"{what}: {result['status']}: {result['reason']}", soft_wrap=True, markup=False)
            if stopped.is_set():
                break
    if done < total:
        console.print(STOPPED)
    names = {one.name for one, _ in designs}
    results = [one for one in read_results(out) if one["suite"] == suite.name and one["design"] in names]
    if not results:
        raise KeyboardInterrupt
    metric = headline(results)
    if config.design is not None:
        console.print(score_table(results, suite.title))
    else:
        console.print(summary_table(results, metric, f"{suite.title}, {config.split}"))
    for baseline, left_out in without_baseline(results, metric).items():
        text = f"not in the table: {', '.join(left_out)}; scores are divided by those of {baseline}: add it to placers"
        console.print(text, soft_wrap=True, markup=False, highlight=False)
    write_board(out, results, plots=config.plots and config.design is None)
    if config.plots and config.design is not None:
        draw_one(out, ready(load(designs[0][1])), results)
    console.print(f"written to {out}", soft_wrap=True)
    if done < total:
        raise KeyboardInterrupt


def _designs(chosen: Sequence[SuiteDesign], out: Path, console: Console) -> list[tuple[SuiteDesign, Path]]:
    """Returns the designs with checksums and folders; reports missing ones. Raises DesignError if all are missing."""
    found, missing = [], []
    for one in chosen:
        try:
            path = design_path(one, out / DESIGNS)
            found.append((dataclasses.replace(one, checksum=content_checksum(load(path))), path))
        except DesignError as error:
            missing.append(str(error))
    if not found:
        raise DesignError(f"no design can be used: {'; '.join(missing)}")
    for text in missing:
        console.print(f"skipped: {text}", soft_wrap=True, markup=False, highlight=False)
    return found


def _run_all(
    jobs: Sequence[Job], config: BenchmarkConfig, stopped: threading.Event, runner: Runner | None
) -> list[Result]:
    """Returns the results of one design's jobs, `config.parallel` at once; once stopped, those of the finished jobs.

    With a `runner`, the cluster limits how many run concurrently; given placements are scored here.
    """
    if not jobs:
        return []
    design = ready(load(jobs[0].path))
    judge = Judge(jobs[0].path, design, full=config.full)
    known = [(job, job.known()) for job in jobs]
    waiting = [job for job, result in known if not is_complete(result, judge)]
    found = [result for _, result in known if result is not None and is_complete(result, judge)]

    def work(job: Job) -> Result | None:
        if stopped.is_set():
            return None
        if runner is not None and job.placer.file is None:
            return runner(job, stopped)
        return run(job, config, design, judge, stopped)

    beside = config.parallel if runner is None else max(1, len(waiting))
    with concurrent.futures.ThreadPoolExecutor(beside, thread_name_prefix="benchmark") as pool:
        futures = [pool.submit(work, job) for job in waiting]
        try:
            for future in concurrent.futures.as_completed(futures, timeout=DEADLINE_SECONDS):
                if (result := future.result()) is not None:
                    found.append(result)
        except BaseException:
            stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return found
