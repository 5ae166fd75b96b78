"""What `evaluate.py` is asked for, and the evaluation of a placement file.

Trained policies, searches and comparisons are `placement.distributed`'s; all write the same kinds of files.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from placement.config import ConfigError, CostConfig
from placement.engine.costs import CostWeights, proxy_cost
from placement.netlist.design import Canvas, Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import load
from placement.report.export import write_macros
from placement.report.metrics import Metrics, json_line, json_object, measure, metrics_table
from placement.search.config import AnnealConfig, Budget
from placement.search.flips import flip_macros

DEFAULT_OUT = Path("runs") / "evaluate"
DEFAULT_COST = CostConfig()
DEFAULT_ANNEAL = AnnealConfig()
SEARCHES = ("refine", "anneal", "legalise")
PLACERS = ("random", "greedy", "anneal", "policy", "policy+refine")


@dataclasses.dataclass(frozen=True)
class EvaluateConfig:
    """All of an evaluation.

    Attributes:
        design: a name, a folder or the path of a `.pb.txt[.gz]`; None: that of the checkpoint's run.
        placement: the `.plc` to evaluate; None: the placement that the design comes with.
        initial: the `.plc` that holds the canvas; None: `placement`, or the design's own `initial.plc`.
        checkpoint: the run folder of the policy to evaluate, instead of a placement.
        samples: placements drawn from the policy.
        beam: placements that a beam search with the policy keeps at every step; 0: no such search.
        beam_value_weight: of the value that the network expects beside the log-probability, in that search.
        flips: mirror hard macros in place where that is cheaper; None: only those of a policy's placements.
        seed: of the draws.
        soft_placer: re-places the soft macros before a placement is evaluated; None: they stand where the file says.
        cost: weights of the proxy cost.
        json: end with one JSON object on a line of its own.
        plots: draw pictures; None: only of a policy's placement.
        animation: draw an animation; None: as `plots`.
        search: `refine`: improve the placement, or the policy's best samples, by annealing; `anneal`: begin with the
            search's own starts; `legalise`: only make the placement legal, with as little displacement as can be.
        anneal: how a search anneals.
        time: CPU seconds of a search on each thread; for `placers`, of each placer.
        moves: moves of a search on each thread, instead of `time`.
        threads: of a search.
        placers: the placers to compare at equal time and threads, instead of an evaluation.
        seeds: how many times each of `placers` is run, from `seed` on.
        out: the folder for everything written; None: ``runs/evaluate/<design>/…``.
    """

    design: str | None = None
    placement: str | None = None
    initial: str | None = None
    checkpoint: str | None = None
    samples: int = 16
    beam: int = 0
    beam_value_weight: float = 1.0
    flips: bool | None = None
    seed: int = 0
    soft_placer: str | None = None
    cost: CostConfig = DEFAULT_COST
    json: bool = False
    plots: bool | None = None
    animation: bool | None = None
    search: str | None = None
    anneal: AnnealConfig = DEFAULT_ANNEAL
    time: float = 60.0
    moves: int | None = None
    threads: int = 1
    placers: tuple[str, ...] = ()
    seeds: int = 3
    out: str | None = None

    def __post_init__(self) -> None:
        if self.checkpoint is None and self.design is None:
            raise ConfigError("design: is required: a name, or the path of a .pb.txt or .pb.txt.gz file")
        if self.checkpoint is not None and self.placement is not None:
            raise ConfigError("placement and checkpoint cannot be evaluated together: give one of them")
        if self.samples < 1:
            raise ConfigError(f"samples={self.samples}: must be at least 1")
        for key in ("beam", "beam_value_weight"):
            if getattr(self, key) < 0:
                raise ConfigError(f"{key}={getattr(self, key)}: must be at least 0")
        if self.beam and self.checkpoint is None:
            raise ConfigError(f"beam={self.beam}: needs checkpoint=RUN, the run folder of a trained policy")
        if self.flips and (self.search is not None or self.placers):
            raise ConfigError("flips=true: a search mirrors macros itself, and placers are compared without")
        if not 0 <= self.seed < 2**32:
            raise ConfigError(f"seed={self.seed}: must be in [0, 2³²)")
        self._check_search()

    def _check_search(self) -> None:
        if self.search is not None and self.search not in SEARCHES:
            raise ConfigError(f"search={self.search!r}: must be one of {', '.join(SEARCHES)}")
        if self.search == "anneal" and (self.checkpoint is not None or self.placement is not None):
            raise ConfigError("search=anneal has its own starts: search=refine improves a placement or a checkpoint's")
        if self.search == "legalise" and self.checkpoint is not None:
            raise ConfigError("search=legalise: a policy's samples are legal; give placement=… instead of checkpoint")
        if self.search is not None and self.placers:
            raise ConfigError("search and placers cannot be asked for together: give one of them")
        for placer in self.placers:
            if placer not in PLACERS:
                raise ConfigError(f"placers: {placer!r} must be one of {', '.join(PLACERS)}")
            if placer.startswith("policy") and self.checkpoint is None:
                raise ConfigError(f"placers: {placer!r} needs checkpoint=RUN, the run folder of a trained policy")
        if self.placers and (self.placement is not None or self.moves is not None):
            raise ConfigError("placers are compared at equal time: give neither placement nor moves")
        for key in ("threads", "seeds"):
            if getattr(self, key) < 1:
                raise ConfigError(f"{key}={getattr(self, key)}: must be at least 1")
        Budget(seconds=self.time)  # raises where it is wrong
        _ = self.budget

    @property
    def budget(self) -> Budget:
        """Of a search."""
        return Budget(seconds=self.time) if self.moves is None else Budget(moves=self.moves)

    @property
    def weights(self) -> CostWeights:
        """The proxy cost's weights as the engine takes them."""
        return self.cost.weights()

    @property
    def flips_macros(self) -> bool:
        """Whether macros are mirrored."""
        return self.checkpoint is not None if self.flips is None else self.flips

    @property
    def draws_plots(self) -> bool:
        """Whether pictures are drawn."""
        return self.checkpoint is not None if self.plots is None else self.plots

    @property
    def draws_animation(self) -> bool:
        """Whether an animation is drawn."""
        return self.draws_plots if self.animation is None else self.animation


class Found(NamedTuple):
    """A placement that was evaluated.

    Attributes:
        design: whose it is.
        placement: of all nodes.
        metrics: of `placement`.
        title: what it is called in pictures.
        origin: where it comes from, for `metrics.json`.
    """

    design: Design
    placement: Placement
    metrics: Metrics
    title: str
    origin: Mapping[str, Any]


def evaluate_placement(config: EvaluateConfig, console: Console) -> Metrics:
    """Prints the metrics of a placement, and writes files where they are asked for.

    Raises:
        DesignError: the design or the placement cannot be found or read.
        ConfigError: no such soft placer.
        OSError: a file cannot be written.
    """
    design, placement, name = load_placement(config)
    if config.soft_placer is not None:
        placement = _soft_placed(design, placement, config.soft_placer)
    title = f"{design.name}: {name}"
    if config.flips_macros:
        before, found = placement, flip_macros(design, placement, weights=config.weights)
        placement, title = found.placement, f"{title}, {found.flipped} macros flipped"
        cost = proxy_cost(design, before, weights=config.weights).proxy_cost
        console.print(
            f"{found.flipped} macros flipped in {found.sweeps} sweeps: "
            f"proxy cost {cost:.6f} → {found.costs.proxy_cost:.6f}"
        )
    metrics = measure(design, placement, weights=config.weights)
    console.print(metrics_table(metrics, title))
    if config.out is not None or config.draws_plots or config.draws_animation or config.flips_macros:
        folder = Path(config.out) if config.out is not None else DEFAULT_OUT / design.name / Path(name).stem
        write_results(folder, Found(design, placement, metrics, title, {"placement": name}), config)
        console.print(f"written to {folder}", soft_wrap=True)
    return metrics


def load_placement(config: EvaluateConfig) -> tuple[Design, Placement, str]:
    """The design on the canvas that the settings name, the placement to evaluate, and what to call that."""
    assert config.design is not None
    for key, name in (("placement", config.placement), ("initial", config.initial)):
        if name is not None and not Path(name).is_file():
            raise DesignError(f"{key}={name}: there is no such file")
    canvas_file = config.initial if config.initial is not None else config.placement
    design = load(config.design, canvas_file)
    if config.placement is None:
        return design, design.initial, Path(canvas_file).name if canvas_file else "initial.plc"
    if config.initial is None:
        return design, design.initial, Path(config.placement).name
    canvas, placement = read_placement(config.placement, design.netlist, located=design.initial)
    if canvas != design.canvas:
        _warn(f"{config.placement} was made for {_described(canvas)}; evaluated on {_described(design.canvas)}")
    return design, placement, Path(config.placement).name


def write_results(folder: Path, found: Found, config: EvaluateConfig) -> list[Path]:
    """Writes `placement.plc`, `macros.csv`, `metrics.json` and the pictures asked for; returns their paths."""
    design, placement, metrics = found.design, found.placement, found.metrics
    folder.mkdir(parents=True, exist_ok=True)
    write_placement(folder / "placement.plc", design, placement, comments=[found.title])
    write_macros(folder / "macros.csv", design, placement)
    described = {"design": design.name, **found.origin, "weights": metrics.weights._asdict(), **json_object(metrics)}
    write_whole(folder / "metrics.json", json.dumps(described, indent=2) + "\n")
    paths = [folder / name for name in ("placement.plc", "macros.csv", "metrics.json")]
    # Matplotlib takes a second to import, and a table should not wait for it.
    if config.draws_plots:
        from placement.report import plots, style

        figure = plots.plot_placement(design, placement, weights=metrics.weights, title=found.title)
        paths.append(style.save_figure(figure, folder / "placement.png"))
        paths.append(style.save_figure(plots.plot_maps(design, placement, title=found.title), folder / "maps.png"))
    if config.draws_animation:
        from placement.report import animation

        paths.append(animation.save_episode(folder / "episode.gif", design, placement, weights=metrics.weights))
    return paths


def print_json(metrics: Metrics) -> None:
    """The JSON object as a line of its own on standard output."""
    sys.stdout.flush()
    print(json_line(metrics), flush=True)


def _soft_placed(design: Design, placement: Placement, placer: str) -> Placement:
    from placement.engine.soft import SOFT_PLACERS, place_soft_macros

    if placer not in SOFT_PLACERS:
        raise ConfigError(f"soft_placer={placer!r}: must be one of {', '.join(SOFT_PLACERS)}")
    return place_soft_macros(design, placement, placer)


def _described(canvas: Canvas) -> str:
    return (
        f"a canvas of {canvas.width:g} × {canvas.height:g} µm, {canvas.columns} × {canvas.rows} gcells, "
        f"{canvas.routes_horizontal:g} and {canvas.routes_vertical:g} routes per µm, smoothing {canvas.smoothing}"
    )


def _warn(message: str) -> None:
    print(f"evaluate.py: note: {message}", file=sys.stderr)
