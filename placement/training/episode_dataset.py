"""Episodes on disk, for learners that do not play: a folder with a design and the actions taken in it.

The folder contains `design/` (for `placement.load`), `episodes.npz` (the fields of `placement.episode.Episode`, each
with a leading axis E of episodes) and `dataset.json` (the format's version, the environment's settings, and the origin
of the episodes). Observations are not stored; the engine plays the actions again.

Axis legend: E episodes, T macros to place.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from placement.config import ConfigError, EnvConfig, build
from placement.engine.observation import Observation
from placement.engine.state import EpisodeRenderer
from placement.episode import Episode, MalformedEpisode, Schema
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.feasibility import ready
from placement.netlist.files import read_npz, write_npz, write_whole
from placement.netlist.load import load, save

VERSION = 1
DESIGN_NAME, EPISODES_NAME, ABOUT_NAME = "design", "episodes.npz", "dataset.json"
FilePath = str | os.PathLike[str]


@dataclasses.dataclass(frozen=True)
class EpisodeDataset:
    """Whole episodes of one design."""

    design: Design  # the design, with the grid of actions of `env`
    env: EnvConfig  # the environment that the episodes were played in
    episodes: Episode  # one `Episode` whose fields have the axis E first; `design` is 0, T the design's macros to place
    origin: Mapping[str, Any]  # the origin of the episodes, as plain values

    def __len__(self) -> int:
        return len(self.episodes.length)

    def observations(self, which: np.ndarray | None = None) -> Observation:
        """Observations before each action of the episodes `which` (int [B]; None: all), with leading axes [B, T]."""
        chosen = np.arange(len(self)) if which is None else which
        episodes = self.episodes
        return EpisodeRenderer([self.design]).render(
            episodes.design[chosen], episodes.actions[chosen], episodes.length[chosen]
        )

    def write(self, folder: FilePath) -> None:
        """Writes the folder, `dataset.json` last; an earlier data set in it is replaced."""
        root = Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        (root / ABOUT_NAME).unlink(missing_ok=True)  # The folder contains one complete data set or none.
        save(root / DESIGN_NAME, self.design)
        write_npz(root / EPISODES_NAME, self.episodes._asdict())
        about = {"version": VERSION, "env": dataclasses.asdict(self.env), "origin": dict(self.origin)}
        write_whole(root / ABOUT_NAME, json.dumps(about, indent=2) + "\n")


def read_episodes(folder: FilePath) -> EpisodeDataset:
    """Reads the data set of a folder.

    Raises DesignError if a file is missing or damaged, or the format's version is unknown; names the file.
    """
    root = Path(folder)
    try:
        about = json.loads((root / ABOUT_NAME).read_text(encoding="utf-8"))
        if about["version"] != VERSION:
            raise DesignError(f"{root / ABOUT_NAME}: version {about['version']}; this program reads {VERSION}")
        env = build(EnvConfig, about["env"])
        arrays = read_npz(root / EPISODES_NAME, "episodes")
        episodes = Episode(*(arrays[name] for name in Episode._fields))
        design = ready(load(root / DESIGN_NAME)).with_actions(env.action_scale, off_grid=env.off_grid)
        schema = Schema(len(design.placing_order), designs=1)
        for index in range(len(episodes.length)):
            schema.check(Episode(*(field[index] for field in episodes)))
    except (OSError, ValueError, KeyError, TypeError, ConfigError, MalformedEpisode) as error:
        if isinstance(error, DesignError):
            raise
        raise DesignError(f"{root}: is not a data set of episodes: {error}") from None
    return EpisodeDataset(design, env, episodes, about["origin"])
