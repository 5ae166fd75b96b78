"""`macro-placement dataset`: writes episodes of a policy or of searches, for learners that do not play."""

import dataclasses
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

from placement.annealing.search import Watch, search, search_identity
from placement.config import ConfigError, EnvConfig
from placement.engine.costs import compute_costs
from placement.engine.pool import make_pool
from placement.episode import Episode, signature, stack_episodes
from placement.evaluation.placements import check_out
from placement.evaluation.policies import policy_from_settings
from placement.evaluation.settings import AnnealSettings
from placement.netlist.design import Design, Placement
from placement.netlist.feasibility import ready
from placement.netlist.files import write_whole
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.load import load
from placement.report.progress_bar import progress_bars
from placement.training.episode_dataset import EpisodeDataset
from placement.utils.interruption import Interruption

SEARCHES = "searches"  # the folder of the searches, inside the data set's folder until the data set is written
RECORD_NAME, PLACEMENT_NAME = "found.json", "placement.plc"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DatasetConfig(AnnealSettings):
    """Settings of `dataset`."""

    def _check_given(self) -> None:
        if self.checkpoint is None and self.design is None:
            raise ConfigError("design: is required, or a checkpoint")


def write_dataset(config: DatasetConfig, console: Console) -> None:
    """Writes `samples` episodes, drawn from the policy in `checkpoint` or made from as many searches of `time` seconds
    each.

    A search's episode places each macro in the legal cell nearest to its position in the search. Ctrl-C ends the
    searches (KeyboardInterrupt); the same command resumes from there.
    """
    check_out(config)
    found = policy_episodes(config) if config.checkpoint else search_episodes(config, console)
    folder = config.folder(found.design, "dataset")
    found.write(folder)
    shutil.rmtree(folder / SEARCHES, ignore_errors=True)
    costs = found.episodes.costs[:, 4]
    console.print(
        f"{folder}: {len(found)} episodes of {found.design.name}, mean cost {np.nanmean(costs):.4f}, "
        f"minimum {np.nanmin(costs):.4f}",
        soft_wrap=True,
    )


def policy_episodes(config: DatasetConfig) -> EpisodeDataset:
    """Returns episodes drawn from a trained policy."""
    policy = policy_from_settings(config)
    episodes = policy.evaluator.episodes(policy.parameters, jax.random.key(config.seed))
    origin = {"policy": str(policy.run), "iteration": policy.iteration, "seed": config.seed}
    return EpisodeDataset(policy.design, policy.env, episodes, origin)


def search_episodes(config: DatasetConfig, console: Console) -> EpisodeDataset:
    """Returns episodes that lead to the placements of searches, which are kept in `SEARCHES`.

    Raises KeyboardInterrupt when stopped; the same call resumes from there.
    """
    assert config.design is not None
    env = EnvConfig(cost=config.cost, action_scale=0, off_grid=True, soft_placer=config.soft_placer or "annealed")
    design = ready(load(config.design, config.initial)).with_actions(0, off_grid=True)
    folder, count, placements = config.folder(design, "dataset") / SEARCHES, config.samples, list[Placement]()
    with Interruption() as interruption, progress_bars(console, f"{count} searches") as (bar,):
        for number in range(count):
            watch = Watch(
                folder / str(number),
                interruption.requested.is_set,
                lambda share, point, done=number: bar((done + share) / count, f"best {point.cost:.6f}"),  # type: ignore[misc]
            )
            found = _searched(design, config, config.seed + number, watch)
            if found is None:
                console.print(f"{number} of {count} searches: stopped; the same command resumes")
                raise KeyboardInterrupt
            placements.append(found)
            cost = compute_costs(design, found, weights=config.weights).total
            console.print(f"search {number + 1}/{count}: {config.weights.name} cost {cost:.6f}", highlight=False)
    origin = {"search": dataclasses.asdict(config.anneal), "seconds": config.time, "seed": config.seed}
    return EpisodeDataset(design, env, imitated(design, placements, env), origin)


def _searched(design: Design, config: DatasetConfig, seed: int, watch: Watch) -> Placement | None:
    """The placement that a search finds, or left in its folder earlier; None if it was stopped."""
    settings: dict[str, Any] = {"config": config.anneal, "weights": config.weights, "seconds": config.time}
    settings |= {"threads": config.threads, "seed": seed}
    about, folder = search_identity(design, (), **settings), watch.folder
    assert folder is not None
    if _known(folder / RECORD_NAME) != about:
        found = search(design, watch=watch, **settings)
        if not found.finished:
            return None
        write_placement(folder / PLACEMENT_NAME, design, found.placement)
        write_whole(folder / RECORD_NAME, json.dumps(about) + "\n")
    return read_placement(folder / PLACEMENT_NAME, design.netlist, located=design.initial)[1]  # as rounded in the file


def _known(record: Path) -> Any:
    """The record of a finished search; None if there is none."""
    try:
        return json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def imitated(design: Design, placements: Sequence[Placement], env: EnvConfig) -> Episode:
    """Episodes, axis E first, that place each macro in the legal cell whose centre is nearest to its own."""
    order, canvas = design.placing_order, design.action_canvas
    x = (np.arange(canvas.columns) + 0.5) * canvas.cell_width
    y = (np.arange(canvas.rows) + 0.5) * canvas.cell_height
    episodes = []
    with make_pool(design, 1, config=env, num_threads=1) as pool:
        for number, wanted in enumerate(placements):
            played = signature(len(order))
            played.actions[:] = -1
            observation, ended, step = pool.reset()[0], False, 0
            while not ended:
                node = order[step]
                away = (x[None, :] - wanted.x[node]) ** 2 + (y[:, None] - wanted.y[node]) ** 2
                action = int(np.where(observation["mask"][0] != 0, away, np.inf).argmin())
                observation, reward, terminated, _, info = pool.step([action])
                played.actions[step] = action
                ended, step = bool(terminated[0]), step + 1
            episodes.append(
                played._replace(
                    identity=np.array([0, number], np.int64),
                    length=np.array(step, np.int32),
                    dead_end=np.array(info["dead_end"][0]),
                    reward=np.array(reward[0]),
                    costs=info["costs"][0].copy(),
                )
            )
    return stack_episodes(episodes)
