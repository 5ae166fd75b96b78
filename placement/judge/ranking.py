"""`macro-placement judge rank`: Kendall's τ of the judge, and of what it must be better than, with the flat check."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.stats import kendalltau

from placement.config import ConfigError
from placement.judge.dataset import design_folders
from placement.judge.ensemble import Ensemble, Judgement, centred
from placement.judge.estimate import read_judge
from placement.judge.examples import Example, view_of
from placement.judge.geometry import PARTS
from placement.judge.reading import read_examples
from placement.judge.settings import RankConfig
from placement.report.metrics import make_table
from placement.utils.compilation import keep_compilations
from placement.utils.interruption import Interruption

LEAST = 4
"""Placements of the best quarter, at least."""
WHO = ("judge", "ridge", "clusters", "chip", "proxy", "flat")
"""The clusters routed, as the judge sees them; the costs; the flat wirelength of the check."""


def rank(config: RankConfig, console: Console) -> None:
    """Prints the ranks within each design, their means, and how honest the judge's deviation is.

    Raises:
        ConfigError: there is no such judge, or it was trained on all designs.
        DesignError: the data cannot be used.
        KeyboardInterrupt: on Ctrl-C.
    """
    keep_compilations()
    ensemble = read_judge(config.judge)
    folders = [
        folder for folder in design_folders(Path(config.data)) if config.all or folder.name not in ensemble.designs
    ]
    if not folders:
        raise ConfigError(f"data={config.data}: the judge was trained on all of its designs; all=true ranks them, too")
    rows, errors, deviations, spent, overflow = [], [], [], [], []
    with Interruption() as interruption, interruption.breakable():
        for example in read_examples(folders, config.workers):
            view = view_of(example.viewer, example.geometry, ensemble.scaling)
            said = ensemble.judge_view(view)
            rows.append(taus(example, said, ensemble))
            errors.append(said.wirelength - centred(example.targets.wirelength))
            deviations.append(said.deviation)
            overflow.append(_tau(said.overflow, example.targets.overflow))
            begun = time.process_time()
            ensemble.judge_view(view)  # compiled by now
            spent.append(example.seconds + (time.process_time() - begun) / len(example.chip))
            console.print(
                f"{example.name}: " + ", ".join(f"{who} {tau:.2f}" for who, tau in zip(WHO, rows[-1][0], strict=True))
            )
    _tell(console, np.array(rows), np.concatenate(errors), np.concatenate(deviations))
    ranked = [tau for tau in overflow if np.isfinite(tau)]
    console.print(
        f"overflow: τ {np.mean(ranked) if ranked else np.nan:.2f} on the {len(ranked)} designs that have any; "
        f"{1e3 * np.median(spent):.1f} CPU-ms a placement with annealed soft macros, most of it to spread clusters",
        soft_wrap=True,
    )


def taus(example: Example, said: Judgement, ensemble: Ensemble) -> np.ndarray:
    """float64 [3, 6]: τ with the routed wirelength of `WHO`.

    Over all placements of a design, over the quarter with the shortest flat wirelength, and with the shortest routed.
    """
    truth = example.targets.wirelength
    parts = example.geometry.parts
    clusters = parts[:, PARTS.index("routed wirelength")]
    columns = (said.wirelength, parts @ ensemble.ridge, clusters, example.chip, example.proxy, example.flat)
    quarter = max(LEAST, len(truth) // 4)
    found = []
    for rows in (np.arange(len(truth)), np.argsort(example.flat)[:quarter], np.argsort(truth)[:quarter]):
        found.append([_tau(column[rows], truth[rows]) for column in columns])
    return np.array(found)


def _tau(first: np.ndarray, second: np.ndarray) -> float:
    """Kendall's τ; NaN where one of them is the same everywhere."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return np.nan
    return float(kendalltau(first, second)[0])


def _tell(console: Console, rows: np.ndarray, errors: np.ndarray, deviations: np.ndarray) -> None:
    titles = ("all", "best quarter, flat", "best quarter, routed")
    rows = np.nan_to_num(rows)  # who says the same of all placements ranks none
    mean, error = rows.mean(axis=0), rows.std(axis=0) / np.sqrt(len(rows))
    shown = [
        [title, *(f"{mean[at, who]:.2f}±{error[at, who]:.2f}" for who in range(len(WHO)))]
        for at, title in enumerate(titles)
    ]
    console.print(make_table((f"mean τ of {len(rows)} designs", *WHO), shown, caption="± standard error"))
    ratio = np.abs(errors) / np.maximum(deviations, 1e-9)
    console.print(
        f"error of log wirelength within a design: {errors.std():.3f}; "
        f"its own deviation {np.sqrt((deviations**2).mean()):.3f}; "
        f"within one deviation {np.mean(ratio < 1):.0%} (68% if normal), within two {np.mean(ratio < 2):.0%} (95%); "
        f"τ of |error| and deviation {_tau(np.abs(errors), deviations):.2f}",
        soft_wrap=True,
    )
