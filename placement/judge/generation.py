"""`macro-placement judge data`: designs, placements of them, and what the flat check says of each."""

from __future__ import annotations

import concurrent.futures
import functools
import multiprocessing
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple, TypeAlias

from rich.console import Console

from placement.judge.dataset import SAMPLES_NAME, TABLE_NAME, Sample, is_design, read_samples, write_sample, write_table
from placement.judge.made_designs import make_design
from placement.judge.processes import process_lost, submit_all
from placement.judge.recipes import make_placement, recipes
from placement.judge.settings import DataConfig
from placement.judge.truth import FlatTruth
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import check_output_folder
from placement.netlist.formats.plc import read_placement
from placement.netlist.importing import write_design
from placement.netlist.load import check_placement_file, find, load
from placement.netlist.user_placement import canvas_note, is_def, read_clustered_def
from placement.utils.interruption import Interruption

POLL_SECONDS = 0.5
"""Between two looks at the workers."""
_DOES = "makes the data"


class Task(NamedTuple):
    """A design and its samples.

    Attributes:
        folder: of the design in the data set.
        given: the design's folder or name, where it is not made.
        seed: of the design and its recipes.
        config: of the command.
    """

    folder: Path
    given: str | None
    seed: int
    config: DataConfig


Share: TypeAlias = Callable[[list[Task], Callable[[], bool], Console], None]
"""Who does tasks: is given them, what says whether to stop, and where each design's line goes."""


def make_data(config: DataConfig, console: Console, *, share: Share | None = None) -> None:
    """Makes a data set, or what is missing of it; a line for each design, and for each sample that this process makes.

    Ctrl-C ends it, within a second or so on this machine; the same command goes on from there.

    Args:
        config: of the command.
        console: gets the lines.
        share: has the tasks done elsewhere; None: this process does them, or `config.workers` beside it.

    Raises:
        DesignError: a given design cannot be used, or no design could be made.
        OSError: a file cannot be written.
        KeyboardInterrupt: on Ctrl-C.
    """
    named_files(config.given)
    check_output_folder("out", config.out)
    Path(config.out).mkdir(parents=True, exist_ok=True)
    todo = list(tasks(config))
    with Interruption() as interruption:
        stopped = interruption.requested.is_set
        if share is not None:
            share(todo, stopped, console)
        elif config.workers == 1:
            for number, task in enumerate(todo):
                if not stopped():
                    tell(console, number, len(todo), task, work(task, stopped, console.print))
        else:
            _share(todo, config.workers, stopped, console)
        if stopped():
            console.print("stopped; the same command goes on from here")
            raise KeyboardInterrupt


def tasks(config: DataConfig) -> Iterator[Task]:
    """What the command has to do, in its order; raises DesignError where a given design is not there."""
    out = Path(config.out)
    names = [find(given).parent.name for given in config.designs]
    for name, given in zip(names, config.designs, strict=True):
        if names.count(name) > 1:
            raise DesignError(f"designs: {names.count(name)} are in folders called {name}; each needs its own name")
        yield Task(out / name, given, config.seed, config)
    for number in range(config.count if not config.designs else 0):
        seed = config.seed + number
        yield Task(out / f"made{seed:05d}", None, seed, config)


def work(task: Task, stopped: Callable[[], bool], show: Callable[[str], None]) -> int:
    """Makes what is missing of a design and its samples.

    Args:
        task: what.
        stopped: is asked often; once it says True, nothing more is written.
        show: is told each sample in a line.

    Returns:
        The number of samples that were made now.
    """
    given = given_placements(task)
    if not is_design(task.folder):
        _write_design(task)
    design = load(str(task.folder))
    made, truth = 0, None
    known = {_places(design, sample.placement): sample.name for sample in read_samples(task.folder)[1]}
    for name, place in [*given, *_recipes(task, design)]:
        if (task.folder / SAMPLES_NAME / f"{name}.npz").exists():
            continue
        if stopped():
            return made
        begun = time.process_time()
        try:
            placement = place()
            searched = time.process_time() - begun
            places = _places(design, placement)
            if places in known:
                show(f"{task.folder.name} {name}: left out: its macros are placed as those of {known[places]}")
                continue
            truth = truth or FlatTruth(task.folder, design)
            found, annealed = truth.check(placement, stopped=stopped)
        except DesignError as error:
            show(f"{task.folder.name} {name}: left out: {error}")
            continue
        if stopped():
            return made
        write_sample(task.folder, Sample(name, annealed, found))
        made += 1
        known[places] = name
        show(
            f"{task.folder.name} {name}: flat {found.flat_wirelength:.5g} µm, "
            f"routed {found.routed_wirelength:.5g} µm, overflow {found.overflow:.2%}; "
            f"{searched:.1f} + {found.seconds:.1f} CPU-s"
        )
    write_table(task.folder)
    return made


def given_placements(task: Task) -> list[tuple[str, Callable[[], Placement]]]:
    """Names of samples and what makes their placements, of the files that were given; reads all of them.

    Raises:
        DesignError: a file cannot be used.
    """
    files = named_files(task.config.given)
    if not files:
        return []
    assert task.given is not None  # `DataConfig` sees to that
    folder, design = find(task.given).parent, load(task.given)
    return [(f"given-{name}", _made_already(_read_placement(path, folder, design))) for name, path in files]


def _recipes(task: Task, design: Design) -> list[tuple[str, Callable[[], Placement]]]:
    """The same of the recipes, whose placements are not made yet."""
    config = task.config
    found = recipes(config.placements, seed=task.seed, spacings=config.spacings)
    return [(one.name, functools.partial(make_placement, design, one, moves=config.moves)) for one in found]


def named_files(paths: Sequence[str]) -> list[tuple[str, str]]:
    """Files of placements by their names without endings.

    Raises:
        DesignError: a file is not there, or two have one name.
    """
    names = [Path(path).name.split(".")[0] for path in paths]
    for name, path in zip(names, paths, strict=True):
        check_placement_file("given", path)
        if names.count(name) > 1:
            raise DesignError(f"given={path}: {names.count(name)} files are called {name}; each needs its own name")
    return list(zip(names, paths, strict=True))


def _read_placement(path: str, folder: Path, design: Design) -> Placement:
    if is_def(path):
        return read_clustered_def(path, folder, design)[0]
    canvas, placement = read_placement(path, design.netlist, located=design.initial)
    if note := canvas_note(path, canvas, design.canvas, done="checked"):
        print(note, file=sys.stderr)
    return placement


def _made_already(placement: Placement) -> Callable[[], Placement]:
    return lambda: placement


def _places(design: Design, placement: Placement) -> bytes:
    """What tells placements of the hard macros apart: all that the flat check reads of them."""
    hard = design.netlist.hard
    return b"".join(part[hard].tobytes() for part in (placement.x, placement.y, placement.orientation))


def _write_design(task: Task) -> None:
    """The design of a task, made or copied, whole or not at all."""
    if task.given is None:
        config = task.config
        made = make_design(
            task.folder.name,
            seed=task.seed,
            cells=(config.least_cells, config.most_cells),
            macros=(config.least_macros, config.most_macros),
        )
        write_design(task.folder, made)
        return
    with tempfile.TemporaryDirectory(prefix=f".{task.folder.name}.", dir=task.folder.parent) as beside:
        copied = Path(beside) / "design"
        shutil.copytree(find(task.given).parent, copied, ignore=shutil.ignore_patterns(SAMPLES_NAME, TABLE_NAME))
        try:
            copied.rename(task.folder)
        except OSError:
            if not is_design(task.folder):  # another process made it meanwhile
                raise


def _share(todo: list[Task], workers: int, stopped: Callable[[], bool], console: Console) -> None:
    """Has processes do the tasks; they end when somebody asks the command to stop."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with concurrent.futures.ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(stop,)) as pool:
        done = 0
        try:
            waiting = dict(zip(submit_all(pool, _work_apart, todo, process_lost(workers, _DOES)), todo, strict=True))
            while waiting:
                finished, _ = concurrent.futures.wait(
                    waiting, POLL_SECONDS, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for future in finished:
                    task = waiting.pop(future)
                    tell(console, done, len(todo), task, _made(future, workers))
                    done += 1
                if stopped():
                    break
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _made(future: concurrent.futures.Future[int], workers: int) -> int:
    try:
        return future.result()
    except BrokenProcessPool:
        raise process_lost(workers, _DOES) from None


_stop: Event | None = None


def _begin(stop: Event) -> None:
    """Of a worker process: Ctrl-C is the parent's, who tells through `stop`."""
    global _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _stop = stop


def _work_apart(task: Task) -> int:
    assert _stop is not None
    return work(task, _stop.is_set, lambda line: None)


def tell(console: Console, number: int, total: int, task: Task, made: int) -> None:
    """A design's line, once it is done; `number` counts those before it."""
    console.print(f"design {number + 1} of {total}: {task.folder.name}, {made} samples made", soft_wrap=True)
