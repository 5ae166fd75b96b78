"""Draws pictures and an HTML report of a training run from the files in its folder.

It reads `metrics.csv`, `best.json` with the placement files that it names, `config.yaml` and `versions.json`, each of
which may be missing, and writes `plots/*.png` and `report.html`. The page is self-contained: pictures are embedded and
styles are inline; scripts are only in the window on a placement.
"""

import base64
import html
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from placement.engine.costs import DEFAULT_WEIGHTS, CostWeights
from placement.flat.placement_timer import PlacementTimer
from placement.flat.timing import DRAWN_PATHS
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement
from placement.report import curves, plots, style
from placement.report.run_watch import INDEX_NAME, METRICS_NAME, SETTINGS_NAME, read_metrics
from placement.report.view.page import framed, static_page
from placement.report.view.session import Session

DRAWN = 8  # designs whose best placements are drawn
ReadTimer = Callable[[Design], PlacementTimer | None]
_SUMMARY = {
    "iteration": "iterations",
    "episodes": "episodes",
    "steps": "steps",
    "seconds": "seconds",
    "cost_mean": "{} cost, mean of the episodes",
    "cost_best": "{} cost, best of the episodes",
    "wirelength_cost_mean": "wirelength cost, mean",
    "density_cost_mean": "density cost, mean",
    "congestion_cost_mean": "congestion cost, mean",
    "learner_entropy": "entropy of the policy (nats)",
    "learner_approx_kl": "approximate KL divergence (nats)",
    "dead_ends": "dead ends",
    "steps_per_second": "steps per second",
}
_COSTS = ("cost", "wirelength_cost", "density_cost", "congestion_cost")
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: #22262b; background: #fff; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; margin-bottom: 0; }} h2 {{ font-size: 1.15rem; margin-top: 2.5rem; }}
p.line {{ color: #667079; margin-top: 0.2rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: right; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid #d9dde1; }}
th:first-child, td:first-child {{ text-align: left; }} th {{ font-weight: 600; }}
.wide {{ overflow-x: auto; }} img {{ max-width: 100%; height: auto; }}
figure {{ margin: 1rem 0; }} figcaption {{ color: #667079; font-size: 0.9rem; }}
summary {{ cursor: pointer; }} pre {{ background: #f7f8f9; padding: 0.8rem; overflow-x: auto; font-size: 0.85rem; }}
</style></head><body>
<h1>{title}</h1>
<p class="line">{line}</p>
{body}
</body></html>
"""


def write_report(
    folder: str | os.PathLike[str],
    designs: Sequence[Design],
    *,
    weights: CostWeights = DEFAULT_WEIGHTS,
    read_timer: ReadTimer = lambda design: None,
) -> Path:
    """Draws a run's training curves and the best placements of the first `DRAWN` designs, and writes `report.html`.

    `weights` are those of the training cost. The worst paths of designs with a timer are drawn with the cells in their
    clusters. Raises DesignError if a placement file or `metrics.csv` cannot be read.
    """
    folder = Path(folder)
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    index = folder / INDEX_NAME
    best = json.loads(index.read_text(encoding="utf-8")) if index.exists() else {}
    title = f"{' and '.join(design.name for design in designs)}, {folder.name}"
    found = _table(
        ("design", weights.name, "wirelength", "density", "congestion", "file"),
        [(name, *(f"{entry[cost]:.6f}" for cost in _COSTS), entry["file"]) for name, entry in best.items()],
    )
    sections = [("Training", _draw_training(folder, title, weights.name)), ("Best placements", [found] if best else [])]
    shown = [design for design in designs if design.name in best]
    for design in shown[:DRAWN]:
        suffix = "" if len(designs) == 1 else f"-{design.name}"
        file = best[design.name]["file"]
        sections.append((design.name, _draw_best(folder, design, file, suffix, weights, read_timer)))
    if len(shown) > DRAWN:
        text = (
            f"The placements of the other {len(shown) - DRAWN} designs are in the run folder, not drawn: "
            "macro-placement evaluate design=NAME placement=FILE plots=true"
        )
        sections.append(("Other designs", [f"<p>{html.escape(text)}</p>"]))
    settings = [_folded(folder / name) for name in (SETTINGS_NAME, "versions.json") if (folder / name).exists()]
    sections.append(("Settings and versions", settings))
    body = [f"<h2>{html.escape(heading)}</h2>\n" + "\n".join(content) for heading, content in sections if content]
    values = {"title": html.escape(title), "line": html.escape(f"run folder {folder.name}"), "body": "\n".join(body)}
    page = folder / "report.html"
    write_whole(page, _PAGE.format(**values))
    return page


def _draw_training(folder: Path, title: str, cost: str) -> list[str]:
    """The table and the picture of the run's progress; empty before its first iteration."""
    if not (folder / METRICS_NAME).exists():
        return []
    columns = read_metrics(folder / METRICS_NAME)
    known = [(label.format(cost), columns[name]) for name, label in _SUMMARY.items() if name in columns]
    rows = [(label, _number(values[0]), _number(values[-1])) for label, values in known]
    figure = curves.plot_training(columns, title=title, cost=cost)
    path = style.save_figure(figure, folder / "plots" / "training.png")
    return [
        _table(("", "first iteration", "last iteration"), rows),
        _picture(path, "cost of the sampled episodes, entropy and KL divergence of the policy, by iteration"),
    ]


def _draw_best(
    folder: Path, design: Design, file: str, suffix: str, weights: CostWeights, read_timer: ReadTimer
) -> list[str]:
    _, placement = read_placement(folder / file, design.netlist, located=design.initial)
    title, place = f"{design.name}: best of {folder.name}", folder / "plots"
    figure = plots.plot_placement(design, placement, weights=weights, title=title)
    pictures = [(style.save_figure(figure, place / f"placement{suffix}.png"), f"best placement of {design.name}")]
    figure = plots.plot_maps(design, placement, weights=weights, title=title)
    pictures.append((style.save_figure(figure, place / f"maps{suffix}.png"), "its density and congestion"))
    opened = [Session(design, placement, name=file, weights=weights)]
    if design.initial.placed.all():
        opened.append(Session(design, design.initial, name="initial.plc", weights=weights))
    window = framed(static_page(design, opened, title=title), f"a window on the best placement of {design.name}")
    paths = _draw_paths(design, placement, read_timer, place / f"paths{suffix}.png", title)
    return [*(_picture(path, caption) for path, caption in pictures), *paths, window]


def _draw_paths(design: Design, placement: Placement, read_timer: ReadTimer, path: Path, title: str) -> list[str]:
    """The picture of the worst paths, or the reason why there is none; empty if the design has no timing."""
    try:
        timer = read_timer(design)
        if timer is None:
            return []
        found = timer.evaluate(placement, paths=DRAWN_PATHS)
    except DesignError as error:  # The rest of the report does not depend on the timing.
        return [f"<p>{html.escape(f'not timed: {error}')}</p>"]
    figure = plots.plot_paths(design, placement, found, title=title)
    return [_picture(style.save_figure(figure, path), "its worst paths, with the cells in their clusters")]


def _number(value: np.float64) -> str:
    if math.isnan(value):
        return "–"
    return f"{int(value):,}" if float(value).is_integer() else f"{value:,.4f}" if abs(value) < 100 else f"{value:,.1f}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    lines = ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def _picture(path: Path, caption: str) -> str:
    """An embedded PNG file."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    text = html.escape(caption)
    return f'<figure><img src="data:image/png;base64,{data}" alt="{text}"><figcaption>{text}</figcaption></figure>'


def _folded(path: Path) -> str:
    text = html.escape(path.read_text(encoding="utf-8"))
    return f"<details><summary>{html.escape(path.name)}</summary><pre>{text}</pre></details>"
