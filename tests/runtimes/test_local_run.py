"""The local runtime end to end, with real environments and a fake network."""

from __future__ import annotations

import csv
import dataclasses
import errno
import json
import logging
import math
import os
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placement.config import (
    ConfigError,
    EnvConfig,
    PolicyConfig,
    PPOConfig,
    ReplayConfig,
    RuntimeConfig,
    TrainConfig,
)
from placement.engine.costs import DEFAULT_WEIGHTS, compute_costs, legality
from placement.netlist.design import NodeKind
from placement.netlist.errors import DesignError
from placement.netlist.formats.plc import read_placement, write_placement
from placement.netlist.formats.protobuf import write_netlist
from placement.netlist.load import load
from placement.replay import in_process
from placement.runtimes import components, local
from placement.runtimes.ray import driver
from placement.training import actor, learner_loop, run_folder
from placement.training.checkpoint import read_parameters
from placement.training.metrics import MetricsWriter
from placement.utils.disk import DiskFull
from placement.utils.worker_threads import WorkerFailed
from tests.support import designs
from tests.support.designs import Node
from tests.support.fakes import FakeAgent, FakeLearner

TIMES = {
    "seconds",
    "episodes_per_second",
    "steps_per_second",
    "infeed_wait_seconds",
    "infeed_wait_share",
    "learner_seconds",
}


class Shown:
    """Records what is shown."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []
        self.notes: list[str] = []

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def iteration(self, row: Any) -> None:
        self.rows.append(dict(row))

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "Agent", FakeAgent)
    monkeypatch.setattr(local, "Learner", FakeLearner)
    monkeypatch.setattr(local, "DrawnLearner", FakeLearner)
    monkeypatch.setattr(local, "keep_compilations", lambda: None)


def _config(folder: Path, *, iterations: int = 4, **changes: Any) -> TrainConfig:
    settings = {
        "design": ("toy6",),
        "run_dir": str(folder),
        "seed": 5,
        "ppo": PPOConfig(iterations=iterations, episodes_per_iteration=8),
        "replay": ReplayConfig(name="memory", timeout=180.0),
        "runtime": RuntimeConfig(envs_per_actor=4, max_staleness=0, checkpoint_every=2, evaluate_every=2),
    }
    return TrainConfig(**{**settings, **changes})


def _runtime(**changes: Any) -> RuntimeConfig:
    return RuntimeConfig(**{"envs_per_actor": 4, "max_staleness": 0, "checkpoint_every": 2, **changes})


def _run(config: TrainConfig) -> tuple[local.Run, Shown]:
    shown = Shown()
    return local.run(config, progress=shown), shown


def _rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def _iterations(folder: Path) -> list[int]:
    return [int(row["iteration"]) for row in _rows(folder)]


def test_a_run_leaves_everything_in_its_folder(tmp_path: Path) -> None:
    result, shown = _run(_config(tmp_path))
    assert (result.iterations, result.episodes, result.interrupted) == (4, 32, False)
    assert {"best.plc", "best.json", "config.yaml", "metrics.csv", "versions.json", "checkpoints", "tensorboard"} <= {
        path.name for path in tmp_path.iterdir()
    }
    rows = _rows(tmp_path)
    assert [int(row["episodes"]) for row in rows] == [8, 16, 24, 32]
    assert [int(row["steps"]) for row in rows] == [48, 96, 144, 192]
    assert [row["greedy_cost"] != "" for row in rows] == [False, True, False, True]
    assert len(shown.rows) == 4 and any("best.plc" in note for note in shown.notes)
    assert float(rows[-1]["cost_mean"]) == pytest.approx(result.mean_cost, rel=1e-6)
    assert result.best_cost <= min(float(row["cost_best"]) for row in rows) + 1e-9


def test_the_best_placement_is_what_it_says(tmp_path: Path) -> None:
    result, _ = _run(_config(tmp_path))
    design = load("toy6")
    _, placement = read_placement(tmp_path / "best.plc", design.netlist)
    assert result.best_files == (tmp_path / "best.plc",)
    assert compute_costs(design, placement, weights=DEFAULT_WEIGHTS).total == pytest.approx(result.best_cost, rel=1e-12)
    assert json.loads((tmp_path / "best.json").read_text())["toy6"]["cost"] == result.best_cost
    assert legality(design, placement) == (0, 0)


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    def numbers(folder: str, seed: int) -> list[dict[str, str]]:
        _run(_config(tmp_path / folder, seed=seed))
        return [{key: value for key, value in row.items() if key not in TIMES} for row in _rows(tmp_path / folder)]

    one, same, other = numbers("one", 1), numbers("same", 1), numbers("other", 2)
    assert one == same
    assert one != other


def test_inference_threads_and_batches_do_not_change_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One actor's episodes do not depend on the inference thread; two batches change them, the thread count does
    not.
    """

    def numbers(folder: str, **changes: Any) -> list[dict[str, str]]:
        _run(_config(tmp_path / folder, runtime=_runtime(evaluate_every=2, **changes)))
        return [{key: value for key, value in row.items() if key not in TIMES} for row in _rows(tmp_path / folder)]

    assert numbers("local") == numbers("central", inference="central", env_threads=2)
    monkeypatch.setattr(actor, "OVERLAPPED_ENVS", 4)
    assert numbers("one") == numbers("three", env_threads=3, inference="central") != numbers("local")


def test_several_actors_share_central_inference(tmp_path: Path) -> None:
    result, _ = _run(_config(tmp_path, runtime=_runtime(actors=3, inference="central")))
    assert (result.iterations, result.episodes) == (4, 32)


def test_an_iterations_best_is_reported_before_the_next_iteration_can_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations precede the parameters with which the next iteration's episodes are drawn."""
    events: list[Any] = []
    evaluate, publish = components.Evaluator.evaluate, local.MemoryStore.publish
    monkeypatch.setattr(
        components.Evaluator,
        "evaluate",
        lambda self, *rest, **more: events.append("evaluated") or evaluate(self, *rest, **more),
    )
    monkeypatch.setattr(
        local.MemoryStore,
        "publish",
        lambda self, version, *rest: events.append(version) or publish(self, version, *rest),
    )
    _run(_config(tmp_path))
    assert events == [0, 1, "evaluated", 2, 3, "evaluated"], "nobody plays after the last iteration"


def test_a_finished_run_says_so_at_once_and_builds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = _run(_config(tmp_path))
    before = {name: (tmp_path / name).read_bytes() for name in ("metrics.csv", "best.json", "best.plc")}
    with monkeypatch.context() as patched:
        for name in ("Agent", "Learner", "keep_compilations", "make_pool"):
            patched.setattr(local, name, lambda *rest, **more: pytest.fail("a finished run builds nothing"))
        result, shown = _run(_config(tmp_path))
    assert (result.iterations, result.episodes, result.best_cost) == (4, 32, first.best_cost)
    assert result.already_complete and not first.already_complete and not result.interrupted and not shown.rows
    best = f"best placement {tmp_path / 'best.plc'} (chip cost {first.best_cost:.4f})"
    assert shown.notes[0] == f"complete: 4 iterations; nothing to do; {best}; raise ppo.iterations to continue"
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert _run(_config(tmp_path, iterations=5))[0].iterations == 5


def test_silence_before_the_first_iteration_is_explained(tmp_path: Path) -> None:
    _, shown = _run(_config(tmp_path, iterations=1))
    assert shown.notes[:2] == [
        "compiling the policy and playing the first episodes …",
        "compiling the learner's step …",
    ]


def test_the_metrics_hold_the_best_cost_though_it_was_found_after_the_last_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An actor finds a better placement while the run is ending."""
    design, shut_down = load("toy6"), local.Supervisor.shut_down
    found = compute_costs(design, design.initial)._replace(total=1e-3)

    def last_episode(supervisor: local.Supervisor, *, timeout: float) -> None:
        shut_down(supervisor, timeout=timeout)
        tracker.report(0, found, design.initial, origin="actor 0, an episode of the next iteration")

    monkeypatch.setattr(local.Supervisor, "shut_down", last_episode)
    monkeypatch.setattr(learner_loop.BestTracker, "recover", lambda self, folder: None)
    build = local.build_loop

    def built(*arguments: Any) -> Any:
        nonlocal tracker
        loop = build(*arguments)
        tracker = loop.components.best
        return loop

    tracker: Any = None
    monkeypatch.setattr(local, "build_loop", built)
    result, _ = _run(_config(tmp_path, flips=False))
    assert result.best_cost == 1e-3
    assert [float(row["best_so_far"]) == 1e-3 for row in _rows(tmp_path)] == [False, False, False, True]


def test_a_run_resumes_with_its_whole_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learners: list[FakeLearner] = []

    def make(*args: Any, **options: Any) -> FakeLearner:
        learners.append(FakeLearner(*args, **options))
        return learners[-1]

    monkeypatch.setattr(local, "Learner", make)
    first, _ = _run(_config(tmp_path, iterations=3))
    second, shown = _run(_config(tmp_path, iterations=6))
    assert any("resumes after iteration 3" in note for note in shown.notes)
    assert (second.iterations, second.episodes) == (6, 48)
    assert _iterations(tmp_path) == [1, 2, 3, 4, 5, 6]
    assert learners[1].state["episodes"] == 48
    identities = learners[0].seen + learners[1].seen
    assert len(set(identities)) == len(identities) == 48, "an episode was counted twice"
    assert second.best_cost <= first.best_cost and second.seconds >= first.seconds
    # The random state was restored: an undisturbed run has the same losses.
    _run(_config(tmp_path / "undisturbed", iterations=6))
    losses = [[row["learner_loss"] for row in _rows(folder)] for folder in (tmp_path, tmp_path / "undisturbed")]
    assert losses[0] == losses[1]


def test_a_run_with_other_settings_is_rejected(tmp_path: Path) -> None:
    _run(_config(tmp_path))
    with pytest.raises(ConfigError, match=r"policy\.node_width=5 \(was 32\)"):
        _run(_config(tmp_path, policy=PolicyConfig(node_width=5)))
    with pytest.raises(ConfigError, match=r"design=\['planted20'\] \(was \['toy6'\]\)"):
        _run(_config(tmp_path, design=("planted20",)))


def test_a_wrong_design_is_rejected_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match="no design 'nowhere'"):
        _run(_config(tmp_path / "run", design=("nowhere",)))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("inference", "who"), [("local", "actor 0"), ("central", "central inference")])
def test_an_actors_error_ends_the_run_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inference: str, who: str
) -> None:
    class Failing(FakeAgent):
        def act(self, params: Any, *args: Any, **options: Any) -> Any:
            if params["version"] == 3 and not options.get("greedy"):  # actors are never greedy
                raise ZeroDivisionError("a bug")
            return super().act(params, *args, **options)

    monkeypatch.setattr(local, "Agent", Failing)
    with pytest.raises(WorkerFailed, match=f"{who} failed: ZeroDivisionError: a bug") as caught:
        runtime = _runtime(checkpoint_every=100, evaluate_every=0, inference=inference)
        _run(_config(tmp_path, iterations=9, runtime=runtime))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert read_parameters(tmp_path, FakeAgent().init(0)) == ({"version": 3}, 3)
    monkeypatch.setattr(local, "Agent", FakeAgent)
    result, _ = _run(_config(tmp_path, iterations=5))
    assert result.iterations == 5 and _iterations(tmp_path) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("changes", [{}, {"inference": "central", "actors": 2, "env_threads": 2}])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_learning_saves_what_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, changes: dict[str, Any]
) -> None:
    class Interrupting(FakeLearner):
        def learn(self, episodes: Any, *, iteration: int, elapsed: float = 0.0) -> dict[str, float]:
            if iteration == 2:
                self.state = {}  # partly done: donated buffers
                os.kill(os.getpid(), number)
            return super().learn(episodes, iteration=iteration, elapsed=elapsed)

    monkeypatch.setattr(local, "Learner", Interrupting)
    result, shown = _run(_config(tmp_path, runtime=_runtime(checkpoint_every=100, **changes)))
    assert result.interrupted and result.iterations == 2
    assert not [one.name for one in threading.enumerate() if one.name.startswith(("actor", "central"))]
    assert any("same command" in note for note in shown.notes)
    monkeypatch.setattr(local, "Learner", FakeLearner)
    monkeypatch.setattr(local, "DrawnLearner", FakeLearner)
    result, _ = _run(_config(tmp_path))
    assert not result.interrupted and _iterations(tmp_path) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("what", "rows"),
    # Iteration 3 was learned and saved; the row for which there was no space is missing.
    [("checkpoints/2", [1, 2, 3, 4]), ("metrics.csv", [1, 2, 4])],
)
def test_a_full_disk_ends_the_run_in_one_line_and_it_resumes_once_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, rows: list[int]
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def after_two(writer: Any, row: Any) -> None:
        return write(writer, row) if row["iteration"] <= 2 else full()

    write = MetricsWriter.write
    with monkeypatch.context() as patched:
        if what == "metrics.csv":
            patched.setattr(MetricsWriter, "write", after_two)
        else:
            patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(DiskFull, match=f"/{what} cannot be written: No space left on device") as caught:
            _run(_config(tmp_path))
    assert str(caught.value).count("\n") == 0
    result, _ = _run(_config(tmp_path))
    assert result.iterations == 4 and _iterations(tmp_path) == rows


def test_the_time_limit_ends_a_run_as_if_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.arange(0.0, 1e6, 10.0))
    monkeypatch.setattr(learner_loop.LearnerLoop, "_seconds", lambda self: float(next(clock)), raising=True)
    result, _ = _run(_config(tmp_path, iterations=1000, runtime=_runtime(minutes=1.0)))
    assert 1 <= result.iterations < 10 and not result.interrupted
    assert _rows(tmp_path)[-1]["greedy_cost"] != ""
    again, _ = _run(_config(tmp_path, iterations=1000, runtime=_runtime(minutes=1.0)))
    assert again.iterations == result.iterations


def test_on_ray_a_run_that_its_time_limit_ended_is_reported_before_ray_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may change its runtime, so a local run can be continued by the driver."""
    clock = iter(np.arange(0.0, 1e6, 10.0))
    with monkeypatch.context() as patched:
        patched.setattr(learner_loop.LearnerLoop, "_seconds", lambda self: float(next(clock)))
        result, _ = _run(_config(tmp_path, iterations=1000, runtime=_runtime(minutes=1.0)))

    class Started(Exception):
        pass

    def started(*rest: Any, **more: Any) -> Any:
        raise Started

    monkeypatch.setattr(driver.ray_connection, "opened", started)
    shown = Shown()
    settings = {"iterations": 1000, "replay": ReplayConfig(timeout=180.0)}
    given = _config(tmp_path, **settings, runtime=_runtime(name="ray", minutes=1.0))
    again = driver.run(given, progress=shown)  # type: ignore[arg-type]
    assert again.already_complete and again.iterations == result.iterations
    assert shown.notes[0].startswith(f"complete: {result.iterations} iterations; nothing to do; best placement")
    assert "raise runtime.minutes to continue" in shown.notes[0]
    longer = dataclasses.replace(given, runtime=_runtime(name="ray", minutes=60.0))
    with pytest.raises(Started):
        driver.run(longer, progress=shown)  # type: ignore[arg-type]


@pytest.mark.parametrize("staleness", [0, 1])
def test_staleness_is_bounded_and_logged(tmp_path: Path, staleness: int) -> None:
    runtime = _runtime(actors=2, max_staleness=staleness, evaluate_every=0)
    _run(_config(tmp_path, iterations=6, runtime=runtime))
    measured = [(float(row["staleness_mean"]), float(row["staleness_max"])) for row in _rows(tmp_path)]
    assert all(0 <= mean <= most <= staleness for mean, most in measured)


def test_several_designs_train_together(tmp_path: Path) -> None:
    result, _ = _run(_config(tmp_path, design=("toy6", "planted20")))
    assert len(result.best_files) == 2 and all(file.exists() for file in result.best_files)
    content = json.loads((tmp_path / "best.json").read_text())
    assert result.best_cost == pytest.approx(np.mean([entry["cost"] for entry in content.values()]))


def test_without_reverb_it_trains_and_reports_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("reverb", "tensorflow"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("replay.reverb", "replay.shard", "replay.shard_reader", "transport.reverb_server"):
        monkeypatch.delitem(sys.modules, f"placement.{name}", raising=False)
    in_process._warn_once.cache_clear()
    with caplog.at_level(logging.INFO, logger="placement"):
        result, _ = _run(_config(tmp_path, replay=ReplayConfig(name="auto")))
    assert result.iterations == 4
    assert sum("Reverb is not installed" in message for message in caplog.messages) == 1


def test_the_best_survives_a_kill_between_checkpoints(tmp_path: Path) -> None:
    """The files are newer than the checkpoint: their contents are restored."""
    seeds = {seed: _run(_config(tmp_path / str(seed), iterations=2, seed=seed))[0].best_cost for seed in (6, 7)}
    worse, better = max(seeds, key=seeds.get), min(seeds, key=seeds.get)
    assert seeds[better] < seeds[worse]
    shutil.copy(tmp_path / str(better) / "best.plc", tmp_path / str(worse) / "best.plc")
    result, _ = _run(_config(tmp_path / str(worse), iterations=2, seed=worse))
    assert result.best_cost == seeds[better]


def test_the_best_is_flipped_at_the_end_and_stays_what_it_is(tmp_path: Path) -> None:
    result, shown = _run(_config(tmp_path, iterations=1, design=("clustered40",)))
    design = load("clustered40")
    costs = {}
    for name in ("best.plc", "best_flipped.plc"):
        _, placement = read_placement(tmp_path / name, design.netlist, located=design.initial)
        assert legality(design, placement) == (0, 0)
        costs[name] = compute_costs(design, placement, weights=DEFAULT_WEIGHTS).total
    assert costs["best_flipped.plc"] < costs["best.plc"] == pytest.approx(result.best_cost, rel=1e-12)
    (note_text,) = [note for note in shown.notes if "best_flipped.plc" in note]
    assert "macros flipped" in note_text and f"{costs['best_flipped.plc']:.4f}" in note_text


def test_flips_can_be_turned_off_even_when_a_run_resumes(tmp_path: Path) -> None:
    _run(_config(tmp_path, iterations=1))
    (tmp_path / "best_flipped.plc").unlink()
    _run(_config(tmp_path, iterations=2, flips=False))
    assert not (tmp_path / "best_flipped.plc").exists()


def test_a_run_of_dead_ends_alone_says_once_what_to_try(tmp_path: Path) -> None:
    """Both macros fit above each other, but each only alone on gcell centres."""
    nodes = [
        Node("port", NodeKind.PORT, 0.0, 15.0),
        Node("one", NodeKind.HARD, 15.0, 7.0, 20.0, 12.0),
        Node("two", NodeKind.HARD, 15.0, 22.0, 20.0, 12.0),
    ]
    tight = designs.build("tight", designs.square_canvas(3, 3), nodes, [designs.Net([("one", 0, 0), ("two", 0, 0)])])
    folder = tmp_path / "tight"
    folder.mkdir()
    write_netlist(folder / "netlist.pb.txt", tight.netlist)
    write_placement(folder / "initial.plc", tight, tight.initial)
    result, shown = _run(_config(tmp_path / "run", design=(str(folder),), iterations=7))
    assert math.isnan(result.best_cost) and not result.best_files
    dead_end_notes = [note for note in shown.notes if "no episode of 5 iterations placed all macros" in note]
    assert len(dead_end_notes) == 1 and "env.action_scale=2" in dead_end_notes[0]
    _, shown = _run(_config(tmp_path / "finer", design=(str(folder),), iterations=7, env=EnvConfig(action_scale=4)))
    assert not any("placed all macros" in note for note in shown.notes)


def test_drawn_designs_are_trained_on_and_others_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two starts learn from the same designs as one start, four episodes of each, and from none twice."""
    monkeypatch.setattr(run_folder, "VALIDATION_DESIGNS", 2)
    seen: list[int] = []

    class Watched(FakeLearner):
        def learn(self, episodes: Any, **options: Any) -> dict[str, float]:
            seen.extend(int(episode.design) for episode in episodes)
            return super().learn(episodes, **options)

    monkeypatch.setattr(local, "DrawnLearner", Watched)
    config = _config(tmp_path, iterations=2, design=("synthetic:3-4",))
    _run(config)
    result, shown = _run(dataclasses.replace(config, ppo=dataclasses.replace(config.ppo, iterations=4)))
    assert seen == [number for number in range(8) for _ in range(4)]
    assert (result.iterations, result.episodes) == (4, 32)
    rows = _rows(tmp_path)
    assert [bool(row["greedy_cost"]) for row in rows] == [False, True, False, True]
    assert not any(column.startswith("design") for column in rows[0])
    assert list(result.placements()) == ["validation_0_0", "validation_0_1"]
    assert not any("best placement" in note for note in shown.notes)
