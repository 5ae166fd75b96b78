"""A data set of episodes in Minari's format, observations included. Needs "minari[hdf5]".

macro-placement dataset toy6 samples=16 time=1 out=episodes
python examples/minari_dataset.py episodes macro-placement/toy6-v0
"""

from __future__ import annotations

import sys

import minari
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TransformObservation

import placement
from placement.training.episode_dataset import EpisodeDataset, read_episodes


def convert(data: EpisodeDataset, dataset_id: str) -> minari.MinariDataset:
    """Replays the episodes in `PlacementEnv`, which Minari records."""
    plain = placement.PlacementEnv(data.design, config=data.env)
    mask = spaces.MultiBinary(plain.observation_space["mask"].shape)  # Minari stores uint8 arrays as lossy pictures
    shown = spaces.Dict({**plain.observation_space.spaces, "mask": mask})
    env = minari.DataCollector(
        TransformObservation(plain, lambda seen: {**seen, "mask": seen["mask"].astype(np.int8)}, shown)
    )
    for actions, length in zip(data.episodes.actions, data.episodes.length, strict=True):
        env.reset()
        for action in actions[:length]:
            env.step(np.int64(action))
    made = env.create_dataset(dataset_id, algorithm_name="macro-placement dataset")
    env.close()
    return made


if __name__ == "__main__":
    print(convert(read_episodes(sys.argv[1]), sys.argv[2]))
