"""A run compiles only in its first iteration: actors, evaluator and learner, on two designs and on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from placement.config import EnvConfig, PolicyConfig, PPOConfig, ReplayConfig, RuntimeConfig, TrainConfig
from placement.policy.agent import Agent
from placement.ppo.learner import Learner
from placement.runtimes import local

POLICY = PolicyConfig(node_width=8, rounds=1, grid_width=8)
"""The policy that tests/training/test_initial_policy.py compiles as well."""


class Traces:
    """Records after each iteration how often agent and learner have been traced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: list[tuple[int, int]] = []
        self._made: dict[str, Any] = {}
        for cls in (Agent, Learner):
            monkeypatch.setattr(local, cls.__name__, self._remembering(cls))
        monkeypatch.setattr(local, "keep_compilations", lambda: None)

    def _remembering(self, cls: type) -> Any:
        def make(*args: Any, **kwargs: Any) -> Any:
            self._made[cls.__name__] = cls(*args, **kwargs)
            return self._made[cls.__name__]

        return make

    def __enter__(self) -> Traces:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def iteration(self, row: Any) -> None:
        self.counts.append((self._made["Agent"].trace_count, self._made["Learner"].trace_count))

    def note(self, text: str) -> None:
        pass


@pytest.mark.slow
def test_traces_stop_growing_after_the_first_iteration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = Traces(monkeypatch)
    config = TrainConfig(
        design=("toy6", "planted20"),
        run_dir=str(tmp_path / "run"),
        env=EnvConfig(soft_placer="none"),
        policy=POLICY,
        ppo=PPOConfig(iterations=3, episodes_per_iteration=8, epochs=1, minibatch_size=16),
        replay=ReplayConfig(name="memory", timeout=180.0),
        runtime=RuntimeConfig(envs_per_actor=4, max_staleness=0, evaluate_every=1, checkpoint_every=100),
    )
    local.run(config, progress=traces)
    assert len(traces.counts) == 3
    assert min(traces.counts[0]) >= 1
    assert set(traces.counts) == {traces.counts[0]}
