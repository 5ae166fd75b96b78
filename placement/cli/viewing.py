"""`macro-placement view`: a window on placements.

The window's buttons run commands, and show them. Their modules are imported at the first use, so that the window opens
at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import shlex
import webbrowser
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.console import Console

from placement.config import ConfigError, CostConfig, DesignSettings, Rule, require
from placement.engine.soft import place_soft_macros
from placement.evaluation.placements import SOFT_PLACER, load_placement, read_file
from placement.evaluation.settings import TRAINED, TRAINED_COST, PlacementSettings, SampleConfig, TrainedCost
from placement.netlist.constraints import SnapGrid
from placement.netlist.constraints_file import CONSTRAINTS_NAME
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FLAT_NAME, read_flat
from placement.netlist.load import DEF_NAME, POSITIONS_NAME, check_placement_file, find
from placement.netlist.timing_netlist import TIMING_NAME
from placement.report.run_watch import SETTINGS_NAME, RunWatch, is_run, searched_cost
from placement.report.view.page import Cells
from placement.report.view.session import Recovery, Session
from placement.report.view.window import Action, Export, Outcome, Parameter, Services, Task, Timer, Window

Port = Annotated[int, Rule("0 (any free port) or in [1, 65535]", lambda value: 0 <= value <= 65535)]
SPACING = Parameter("spacing", "spacing (µm)", 0.0, 0.0, 1e6)
SECONDS = Parameter("time", "CPU time (s)", 10.0, 0.1, 86400.0)
SAMPLES = Parameter("samples", "samples", 4.0, 1.0, 1024.0)
INSTALL = 'the window needs Starlette and uvicorn: pip install "macro-placement[view]"'


@dataclasses.dataclass(frozen=True, kw_only=True)
class ViewConfig(DesignSettings):
    """Settings of `view`.

    Attributes:
        placement: .plc or .def files to open, and a run folder to watch; none: the design's own placement
        checkpoint: run folder of the policy that places macros on request; null: the opened run folder
        host: address to serve at; anyone who has the printed address can change and save placements
        port: port to serve at; 0: any free port
        browser: open the browser; false: only print the address
    """

    placement: tuple[str, ...] = ()
    checkpoint: str | None = None
    cost: TrainedCost = TRAINED_COST
    host: str = "127.0.0.1"
    port: Port = 0
    browser: bool = True

    def _check_given(self) -> None:
        require(self.design is not None, "design", self.design, "the name or path of a design")


def view(config: ViewConfig, console: Console) -> None:
    """Serves the window until Ctrl-C.

    Raises ConfigError if the server's packages are not installed, and DesignError if the design or a placement cannot
    be read.
    """
    design, sessions = open_sessions(config)
    assert config.design is not None
    recovery = Recovery()
    for session in sessions:
        if recovery.bring_back(session):
            console.print(f"{session.name}: restored unsaved changes of an earlier window; undo removes them")
    runs = [path for path in config.placement if is_run(path)]
    actions = view_actions(config.design, shown_cost(config), config.checkpoint or next(iter(runs), ""))
    watch = RunWatch(runs[0], design) if runs else None
    folder = find(config.design).resolve().parent
    exports, cells, tracks = dict[str, Export](), None, None
    if (flat := folder / FLAT_NAME).is_file():
        exports, cells, tracks = _exports(folder, design), partial(_own_cells, flat), partial(_tracks, flat)
    timer = partial(_timer, config.design, design) if (folder / TIMING_NAME).is_file() else None
    services = Services(actions, exports, watch, recovery, cells, folder / CONSTRAINTS_NAME, tracks, timer)
    window = Window(design, sessions, folder=Path.cwd(), services=services)
    _serve(window, config, console)


def open_sessions(config: ViewConfig) -> tuple[Design, list[Session]]:
    """Loads the design, and opens a session of each placement that the settings name."""
    runs = [path for path in config.placement if is_run(path)]
    if len(runs) > 1:
        raise DesignError(f"placement={runs[1]}: only one run folder can be opened; {runs[0]} is given, too")
    assert config.design is not None
    files: list[str | None] = [path for path in config.placement if path not in runs]
    first, *others = files or [None]
    given = PlacementSettings(design=config.design, initial=config.initial, placement=first)
    design, placement, name, _ = load_placement(given)
    opened = [(placement, name)]
    for path in (path for path in others if path is not None):
        check_placement_file("placement", path)
        opened.append((read_file(path, config.design, design)[0], Path(path).name))
    weights = shown_cost(config).weights()
    return design, [Session(design, one, name=called, weights=weights) for one, called in opened]


def shown_cost(config: ViewConfig) -> CostConfig:
    """The requested cost, that of the run folder or search, or the default; raises DesignError."""
    run = next((Path(path) for path in config.placement if is_run(path)), None)
    if config.cost.name != TRAINED or run is None:
        trained = CostConfig()
    elif (run / SETTINGS_NAME).is_file():
        from placement.training.run_folder import read_settings  # not needed for the first picture without a run

        trained = read_settings(run, key="placement").env.cost
    else:
        trained = CostConfig(name=searched_cost(run))
    return config.cost.of(trained)


def _exports(folder: Path, design: Design) -> dict[str, Export]:

    def make(form: str) -> Export:
        def data(placement: Placement, file: str) -> bytes:
            from placement.netlist.export import export_placement  # not needed for the first picture

            return export_placement(design, placement, folder, form=form, name=file).data

        return data

    own = ["def"] if (folder / DEF_NAME).is_file() else ["bookshelf"] if (folder / POSITIONS_NAME).is_file() else []
    return {form: make(form) for form in (*own, "openroad", "innovus", "icc2", "csv")}


def _own_cells(path: Path) -> Cells | None:
    """The standard cells at their positions in the flat netlist's files; None if they have none."""
    flat = read_flat(path)
    return Cells.of(flat, flat.placement, "as in the design's files")


def _tracks(path: Path) -> SnapGrid:
    from placement.netlist.import_constraints import track_grid

    flat = read_flat(path)
    return track_grid(flat.floorplan, flat.technology)


def _timer(name: str, design: Design) -> Timer:
    from placement.flat.placement_timer import PlacementTimer  # not needed for the first picture

    return PlacementTimer(name, design)


def _serve(window: Window, config: ViewConfig, console: Console) -> None:
    try:
        from placement.report.view.server import listen, serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"{INSTALL} ({error.name} is missing)") from None

    def ready(address: str) -> None:
        console.print(f"{window.title}: {address}", markup=False, highlight=False, soft_wrap=True)
        console.print("Ctrl-C ends the window.", highlight=False)
        if config.browser:
            webbrowser.open(address)

    with contextlib.suppress(KeyboardInterrupt):  # uvicorn ends cleanly, and then raises it.
        serve(window, listen(config.host, config.port), host=config.host, ready=ready)


def view_actions(design: str, cost: CostConfig, checkpoint: str = "") -> list[Action]:
    """The actions on placements of a design, by its name; `checkpoint` is the run folder of the default policy."""
    named = "design=" + shlex.quote(design).replace("{", "{{").replace("}", "}}")
    where = named + " placement={file}"
    usual = CostConfig(name=cost.name)
    changed = {name: value for name, value in vars(cost).items() if value != getattr(usual, name)}
    priced = "".join(f" cost.{name}={value}" for name, value in {"name": cost.name, **changed}.items())
    actions = [
        Action(
            "legalise",
            "Legalise",
            "moves hard macros as little as possible until no rule is broken",
            _legalise,
            f"macro-placement legalise {where} spacing={{spacing}}{priced}",
            (SPACING,),
        ),
        Action(
            "refine",
            "Refine",
            "anneals this placement on the exact cost and keeps the best result",
            _refine,
            f"macro-placement search {where} time={{time}}{priced}",
            (SECONDS,),
            can_stop=True,
        ),
        Action(
            "flip",
            "Flip",
            "mirrors macros in place if that lowers the cost",
            _flip,
            f"macro-placement evaluate {where} flips=true{priced}",
        ),
        Action(
            "soft",
            "Place soft macros",
            "places the soft macros again around the hard macros",
            _place_soft,
            f"macro-placement evaluate {where} soft_placer={SOFT_PLACER}{priced}",
        ),
        Action(
            "policy",
            "Place the rest",
            "fixes the selected macros; a trained policy places all others that are not fixed",
            lambda task: _place_rest(cost, task),
            f"macro-placement sample checkpoint={{checkpoint}} {named} initial={{file}} samples={{samples}} flips=false"
            f"{priced}",
            (Parameter("checkpoint", "run folder", checkpoint), SAMPLES),
            can_stop=True,
            fixes_chosen=True,
        ),
    ]
    if (find(design).parent / FLAT_NAME).is_file():
        actions.append(
            Action(
                "full",
                "Full evaluation",
                "places all standard cells around the macros and estimates their routing; moves no macro",
                lambda task: _evaluate_fully(design, task),
                f"macro-placement evaluate {where} full=true{priced}",
            )
        )
    return actions


def _legalise(task: Task) -> Outcome:
    from placement.annealing.legaliser import legalise
    from placement.evaluation.searching import displaced

    after = legalise(task.design, task.placement, spacing=task.number("spacing"))
    return Outcome(after, displaced(task.placement, after))


def _refine(task: Task) -> Outcome:
    from placement.annealing.search import Point, Watch, search

    def show(progress: float, point: Point) -> None:
        task.report(progress, f"best cost {point.cost:.6f}, {point.moves:,} moves")

    watch, seconds = Watch(None, task.stopped, show), task.number("time")
    found = search(task.design, task.placement, seconds=seconds, weights=task.weights, watch=watch)
    return Outcome(found.placement, f"{found.moves:,} moves in {found.seconds:.1f} CPU s")


def _flip(task: Task) -> Outcome:
    from placement.annealing.finishing import flip_macros

    found = flip_macros(task.design, task.placement, weights=task.weights)
    return Outcome(found.placement, f"{found.flipped} macros were mirrored")


def _place_soft(task: Task) -> Outcome:
    return Outcome(place_soft_macros(task.design, task.placement, SOFT_PLACER), f"placed by {SOFT_PLACER}")


def _place_rest(cost: CostConfig, task: Task) -> Outcome:
    task.report(0.0, "reads the policy")
    from placement.evaluation.policies import cheapest, policy_from_settings, policy_results

    run, samples = str(task.values["checkpoint"]), int(task.number("samples"))
    settings = SampleConfig(design=task.design.name, checkpoint=run, samples=samples, cost=TrainedCost(**vars(cost)))
    policy = policy_from_settings(settings, task.design)
    task.report(0.2, f"{len(policy.design.placing_order)} macros, {samples + 1} times")
    evaluations = policy.evaluate(settings.seed, stopped=task.stopped)
    if not evaluations:
        return Outcome(None, "stopped")
    best = cheapest(policy_results(evaluations, policy.design, cost.weights()), policy.design)
    return Outcome(best.placement, f"{best.name}, policy of {run}, iteration {policy.iteration}")


def _evaluate_fully(name: str, task: Task) -> Outcome:
    from placement.evaluation.full_evaluation import evaluate_fully

    full = evaluate_fully(name, task.design, task.placement, Console(file=io.StringIO()))
    found = full.metrics
    text = (
        f"flat wirelength {found.flat_wirelength:,.0f} µm, routed {found.routed_wirelength:,.0f} µm, "
        f"overflow {found.overflow:.3%}, {found.hot_spots} hot spots, {found.cells_without_place} cells without "
        f"a place, {found.flat_seconds:.1f} CPU s"
    )
    return Outcome(None, text, Cells.of(full.placed.flat, full.placed.placement, "placed by the full evaluation"))
