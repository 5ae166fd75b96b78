"""`macro-placement view`: a window on placements; or, with `out`, steps replayed without one."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from rich.console import Console

from placement.cli.view_actions import view_actions
from placement.config import ConfigError, CostConfig, Rule, Settings, require
from placement.evaluation.given_placement import load_placement, placed_by_def
from placement.evaluation.settings import TRAINED, TRAINED_COST, EvaluateConfig, SampledCost
from placement.netlist.constraints import SnapGrid
from placement.netlist.constraints_file import CONSTRAINTS_NAME
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import check_output_file
from placement.netlist.flat_file import DEF_NAME, FLAT_NAME, POSITIONS_NAME, read_flat
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import check_placement_file, find
from placement.netlist.user_placement import is_def
from placement.report.run_folder import SETTINGS_NAME, RunWatch, is_run, searched_cost
from placement.report.view.page import Cells
from placement.report.view.session import Recovery, Session, read_steps
from placement.report.view.window import Export, Services, Window

Port = Annotated[int, Rule("0 (any that is free) or in [1, 65535]", lambda value: 0 <= value <= 65535)]
INSTALL = 'the window needs Starlette and uvicorn: pip install "macro-placement[view]"'


@dataclasses.dataclass(frozen=True, kw_only=True)
class ViewConfig(Settings):
    """Of `view`."""

    design: str | None = None
    placement: tuple[str, ...] = ()
    initial: str | None = None
    checkpoint: str | None = None
    cost: SampledCost = TRAINED_COST
    host: str = "127.0.0.1"
    port: Port = 0
    browser: bool = True
    steps: str | None = None
    out: str | None = None
    force: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.design is not None, "design", self.design, "a design's name, or the path of one")


def view(config: ViewConfig, console: Console) -> None:
    """Serves the window until Ctrl-C, or writes the replayed placement.

    Raises:
        ConfigError: the server's packages are not installed.
        DesignError: the design, a placement or the steps cannot be read, or the file is there already.
        OSError: the file cannot be written.
    """
    out = None if config.out is None else Path(config.out)
    if out is not None:
        check_output_file("out", out)
        if out.exists() and not config.force:
            raise DesignError(f"out={out}: is there already; give another name, or --force")
    design, sessions = open_sessions(config)
    if config.steps is not None:
        replay(sessions[0], config.steps)
    if out is not None:
        first = sessions[0]
        write_placement(out, design, first.placement)
        console.print(f"{len(first.steps)} steps, cost {first.costs.total:.6f}: {out}", soft_wrap=True)
        return
    assert config.design is not None
    recovery = Recovery()
    for session in sessions if config.steps is None else ():
        back = recovery.bring_back(session)
        if back:
            console.print(f"{session.name}: {back} unsaved steps of an earlier window are back; undo takes them away")
    runs = [path for path in config.placement if is_run(path)]
    actions = view_actions(config.design, shown_cost(config), config.checkpoint or next(iter(runs), ""))
    exports = _exports(config.design, design)
    watch = RunWatch(runs[0], design) if runs else None
    constraints_path = find(config.design).resolve().parent / CONSTRAINTS_NAME
    cells, tracks = _cells_reader(config.design), _tracks_reader(config.design)
    services = Services(actions, exports, watch, recovery, cells, constraints_path, tracks)
    window = Window(design, sessions, folder=Path.cwd(), services=services)
    _serve(window, config, console)


def open_sessions(config: ViewConfig) -> tuple[Design, list[Session]]:
    """The design, and a session of each placement that the settings name."""
    runs = [path for path in config.placement if is_run(path)]
    if len(runs) > 1:
        raise DesignError(f"placement={runs[1]}: a window looks at one run folder, {runs[0]} already")
    first, *others = [path for path in config.placement if path not in runs] or (None,)
    design, placement, name = load_placement(
        EvaluateConfig(design=config.design, initial=config.initial, placement=first)
    )
    opened = [(placement, name), *((_other(config, design, path), Path(path).name) for path in others if path)]
    weights = shown_cost(config).weights()
    return design, [Session(design, one, name=called, weights=weights) for one, called in opened]


def shown_cost(config: ViewConfig) -> CostConfig:
    """The cost that is asked for, or that the run folder or search goes by, or the default cost; raises DesignError."""
    run = next((Path(path) for path in config.placement if is_run(path)), None)
    if config.cost.name != TRAINED or run is None:
        trained = CostConfig()
    elif (run / SETTINGS_NAME).is_file():
        from placement.training.run_record import read_settings  # not needed for the first picture without a run

        trained = read_settings(run, key="placement").env.cost
    else:
        trained = CostConfig(name=searched_cost(run))
    return config.cost.of(trained)


def _other(config: ViewConfig, design: Design, path: str) -> Placement:
    """A placement beside the first one, on the same canvas."""
    assert config.design is not None
    check_placement_file("placement", path)
    if is_def(path):
        return placed_by_def(path, config.design, design)
    return read_placement(path, design.netlist, located=design.initial)[1]


def _exports(name: str, design: Design) -> dict[str, Export]:
    """The forms that a placement of the design can be saved in beside `.plc`: of an imported one, its user's own."""
    folder = find(name).parent
    if not (folder / FLAT_NAME).is_file():
        return {}

    def make(form: str) -> Export:
        def data(placement: Placement, file: str) -> bytes:
            from placement.cli.exporting import user_data  # its readers of files are not needed for the first picture

            content = user_data(form, folder, design, placement)[0]
            return gzip.compress(content, 6, mtime=0) if file.endswith(".gz") else content

        return data

    own = ["def"] if (folder / DEF_NAME).is_file() else ["bookshelf"] if (folder / POSITIONS_NAME).is_file() else []
    return {form: make(form) for form in (*own, "openroad", "innovus", "icc2", "csv")}


def _cells_reader(name: str) -> Callable[[], Cells | None] | None:
    """Reads where the flat netlist's own files put the standard cells; None where the design has no flat netlist."""
    path = find(name).parent / FLAT_NAME
    if not path.is_file():
        return None

    def read() -> Cells | None:
        flat = read_flat(path)
        return Cells.of(flat, flat.placement, "as the design's own files have them")

    return read


def _tracks_reader(name: str) -> Callable[[], SnapGrid] | None:
    """Reads the routing tracks of the user's floorplan; None where the design has no flat netlist."""
    path = find(name).parent / FLAT_NAME
    if not path.is_file():
        return None

    def read() -> SnapGrid:
        from placement.netlist.snapping import track_grid

        flat = read_flat(path)
        return track_grid(flat.floorplan, flat.technology)

    return read


def replay(session: Session, path: str) -> None:
    """Does the steps of a file to a session; raises DesignError."""
    if not Path(path).is_file():
        raise DesignError(f"steps={path}: there is no such file")
    for step in read_steps(path, session.design):
        session.replay(step)


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

    with contextlib.suppress(KeyboardInterrupt):  # uvicorn ends well, and then raises it
        serve(window, listen(config.host, config.port), host=config.host, ready=ready)
