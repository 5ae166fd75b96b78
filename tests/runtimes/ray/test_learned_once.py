"""No episode is learned from twice, even if learner and shard both restart from checkpoints."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from placement.config import TrainConfig
from placement.netlist.load import load
from placement.replay.replay import ReplayTimeout
from placement.training import run_folder
from placement.training.best import BestTracker
from placement.training.checkpoint import Counters, Saver, TrainingState, on_host
from tests.support.episodes import STEPS, counts, episode
from tests.support.fakes import FakeLearner
from tests.support.shard_process import ShardProcess

pytest.importorskip("placement.replay.shard_items", reason="Reverb is not installed", exc_type=ImportError)
from placement.replay.shard_reader import ShardedReplay
from placement.replay.shard_writer import ShardWriter

LONG = 120.0


def test_learner_and_shard_both_restart(tmp_path: Path) -> None:
    designs, learner = [load("toy6")], FakeLearner()
    identity = run_folder.identity(TrainConfig(design=("toy6",), run_dir=str(tmp_path / "run")), designs)
    shard = ShardProcess(0, tmp_path / "shard")
    with contextlib.closing(ShardWriter(lambda: (shard.address,), home=0, steps=STEPS)) as writer:
        for count in range(6):
            writer.write(episode(count), timeout=LONG)
    assert shard.ask("checkpoint")["size"] == 6
    with contextlib.closing(ShardedReplay(lambda: (shard.address,), steps=STEPS, designs=2)) as replay:
        assert counts(replay.read(4, timeout=LONG)) == [0, 1, 2, 3]
        state = TrainingState(Counters(iteration=1, episodes=4), on_host(learner.state), learner.parameters())
        with Saver(tmp_path / "run", identity) as saver:
            saver.learned = replay.intervals
            saver.save(state, BestTracker(designs))
    shard.kill()

    shard = ShardProcess(0, tmp_path / "shard")  # with all six
    try:
        assert shard.ask("nothing")["size"] == 6
        with Saver(tmp_path / "run", identity) as saver:
            assert saver.restore(FakeLearner(), BestTracker(designs)).iteration == 1
            learned = saver.learned_before
        with contextlib.closing(
            ShardedReplay(lambda: (shard.address,), steps=STEPS, designs=2, intervals=learned)
        ) as replay:
            assert counts(replay.read(2, timeout=LONG)) == [4, 5]
            with pytest.raises(ReplayTimeout):
                replay.read(1, timeout=0.5)
            assert replay.duplicates == 4
    finally:
        shard.kill()
