"""A run whose folder is object storage: it resumes anywhere, training never waits for the store, nothing is lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.config import ConfigError, RuntimeConfig, TrainConfig
from placement.training import object_storage as store_module
from placement.training import stored_run
from placement.training.object_storage import ObjectStore, StorageError, read_manifest
from placement.training.run_folder import working_folder
from placement.training.stored_run import LEASE_NAME, published, refresh, stored
from placement.training.trained_policy import policy_folder
from tests.support.command import run_here
from tests.support.object_server import ObjectServer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore:.*:ResourceWarning")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine's empty folder; `monkeypatch.chdir` to another one is another machine."""
    place = tmp_path / "one"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setattr(stored_run, "LOOK_SECONDS", 0.05)
    yield place


def config(address: str) -> TrainConfig:
    return TrainConfig(design=("toy6",), run_dir=address)


def learn(folder: Path, *steps: int) -> None:
    """Writes what a run leaves after these steps."""
    for step in steps:
        path = folder / "checkpoints" / str(step) / "tree"
        path.parent.mkdir(parents=True)
        path.write_text(f"step {step}")
    (folder / "best.plc").write_text(f"best after {steps[-1]}")


def steps(address: str) -> list[int]:
    manifest = read_manifest(ObjectStore(address, key="run_dir"))
    return [] if manifest is None else manifest.steps()


def test_a_folder_is_left_alone(machine: Path) -> None:
    with stored(config("runs/mine")), published(config("runs/mine"), note=print):
        refresh(config("runs/mine"))
    assert list(machine.iterdir()) == []


def test_a_run_resumes_on_another_machine(address: str, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    with stored(config(address), note=notes.append):
        assert working_folder(address).parts[:4] == ("runs", "remote", "s3", "bucket")
        learn(working_folder(address), 1)
        wait_until(lambda: steps(address) == [1])  # while the run is active
        learn(working_folder(address), 2)
    assert notes == [
        f"{address}: starts a run; its working folder is {working_folder(address)}",
        f"published: {address}",
    ]
    other = machine.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    with stored(config(address), note=notes.append):
        assert notes[-1].endswith(f"3 files fetched into {working_folder(address)}, checkpoints [1, 2]")
        assert (working_folder(address) / "best.plc").read_text() == "best after 2"
        learn(working_folder(address), 3)
    # Back on the first machine, the local state is older, and is kept.
    monkeypatch.chdir(machine)
    with stored(config(address), note=notes.append):
        assert sorted(path.name for path in (working_folder(address) / "checkpoints").iterdir()) == ["1", "2", "3"]
        aside = Path(f"{working_folder(address)}.before-1")
        assert sorted(path.name for path in (aside / "checkpoints").iterdir()) == ["1", "2"]
    assert any(str(aside) in note for note in notes)
    with stored(config(address), note=notes.append):
        assert notes[-1] == f"{address}: resumes with {working_folder(address)}"


def test_training_continues_while_the_store_does_not_answer(
    address: str, server: ObjectServer, machine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stored_run, "RETRY_SECONDS", 0.2)
    with stored(config(address)):
        learn(working_folder(address), 1)
        wait_until(lambda: steps(address) == [1])
        server.hang()
        try:
            with monkeypatch.context() as short:
                short.setattr(store_module, "CALL_SECONDS", 0.2)
                learn(working_folder(address), 2)
                wait_until(lambda: "training continues, and is published later" in caplog.text)
            learn(working_folder(address), 3)
        finally:
            server.go_on()
        wait_until(lambda: steps(address) == [1, 2, 3])
    assert caplog.text.count("published later") == 1


def test_unpublished_files_are_reported_and_published_later(
    address: str, server: ObjectServer, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    with monkeypatch.context() as short:
        try:
            rejection = pytest.raises(
                StorageError, match=r"is not up to date: .* \(the run is complete in runs/remote/"
            )
            with rejection, stored(config(address), note=notes.append):
                learn(working_folder(address), 1)
                wait_until(lambda: steps(address) == [1])
                learn(working_folder(address), 2)
                server.hang()
                short.setattr(store_module, "CALL_SECONDS", 0.2)
                short.setattr(stored_run, "END_SECONDS", 0.8)
        finally:
            server.go_on()
    store = ObjectStore(address, key="run_dir")
    store.remove(LEASE_NAME)  # otherwise it could not be released, and would be polled for half a minute
    with stored(config(address), note=notes.append):
        pass
    assert steps(address) == [1, 2] and notes[-2:] == [
        f"{address}: resumes with {working_folder(address)}",
        f"published: {address}",
    ]


def test_a_run_that_is_taken_over_stops_and_keeps_what_it_has(
    address: str, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_run, "BEAT_SECONDS", 0.1)
    stops: list[int] = []
    monkeypatch.setattr(stored_run.os, "kill", lambda process, number: stops.append(process))
    rejection = pytest.raises(
        StorageError, match=r"another run has taken it over \(the last state of this run is only in runs/remote"
    )
    with rejection, stored(config(address)):
        learn(working_folder(address), 1)
        wait_until(lambda: steps(address) == [1])
        ObjectStore(address, key="run_dir").write(LEASE_NAME, b'{"id": "another"}')
        wait_until(lambda: bool(stops))
        learn(working_folder(address), 2)
    assert steps(address) == [1] and stops == [stored_run.os.getpid()]


def test_a_failure_of_the_run_is_reported(address: str, machine: Path) -> None:
    with pytest.raises(ValueError, match="of the run"), stored(config(address)):
        learn(working_folder(address), 1)
        raise ValueError("of the run")
    assert steps(address) == [1]


def test_a_policy_is_read_from_there(address: str, machine: Path) -> None:
    with stored(config(address)):
        learn(working_folder(address), 1)
    found = policy_folder(address, key="checkpoint")
    assert (found / "checkpoints/1/tree").read_text() == "step 1" and found.name == address.rpartition("/")[2]
    with pytest.raises(ConfigError, match=rf"checkpoint='{address}9': must be the folder of a training run"):
        policy_folder(f"{address}9", key="checkpoint")


def test_the_command_says_in_one_line_what_is_wrong(server: ObjectServer, machine: Path) -> None:
    done = run_here("macro-placement", "train", "design=toy6", "run_dir=s3://nobody/x", folder=machine)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("no such bucket") and "Traceback" not in done.stderr
    assert list(machine.iterdir()) == []


def test_a_learner_on_another_node_publishes_and_the_command_has_it_at_the_end(
    address: str, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = dataclasses.replace(config(address), runtime=RuntimeConfig(name="ray"))
    node = machine.parent / "node"
    node.mkdir()
    monkeypatch.setattr(stored_run, "PUBLISH_SECONDS", 0.1)
    with stored(settings):
        working_folder(address).mkdir(parents=True)
        (working_folder(address) / "config.yaml").write_text("of the command")
        monkeypatch.chdir(node)
        with published(settings, note=print):
            learn(working_folder(address), 1)
            wait_until(lambda: steps(address) == [1])
            # It dies before publishing its last state, and another run starts on the node.
            learn(working_folder(address), 2)
        with published(settings, note=print):
            assert sorted(path.name for path in (working_folder(address) / "checkpoints").iterdir()) == ["1", "2"]
            learn(working_folder(address), 3)
        monkeypatch.chdir(machine)
        refresh(settings)
        assert (working_folder(address) / "best.plc").read_text() == "best after 3"
        (working_folder(address) / "report.html").write_text("of the command")
    assert steps(address) == [1, 2, 3]
    assert ObjectStore(address, key="run_dir").read("report.html") == b"of the command"


def test_a_learner_whose_command_lost_the_store_publishes_nothing(
    address: str, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = dataclasses.replace(config(address), runtime=RuntimeConfig(name="ray"))
    store = ObjectStore(address, key="run_dir")
    store.write(LEASE_NAME, b'{"id": "the command"}')
    with pytest.raises(StorageError, match="another run has taken it over"), published(settings, note=print):
        learn(working_folder(address), 1)
        wait_until(lambda: steps(address) == [1])
        store.write(LEASE_NAME, b'{"id": "another"}')
        learn(working_folder(address), 2)
    assert steps(address) == [1]
