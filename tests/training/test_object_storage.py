"""A run folder in a real S3 server: only whole states, a single writer, and an error message for every mistake."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from pathlib import Path

import pytest

from placement.config import ConfigError
from placement.training import object_storage as store_module
from placement.training import stored_run
from placement.training.object_storage import MANIFEST_NAME, ObjectStore, Publisher, StorageError, fetch, read_manifest
from placement.training.stored_run import LEASE_NAME, Lease
from tests.support.object_server import ObjectServer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore:.*:ResourceWarning")  # from aiohttp's sessions when a store is dropped


class CountedStore(ObjectStore):
    """A store that records writes, and fails at the write with the number `breaks_at`."""

    def __init__(self, address: str, breaks_at: int = sys.maxsize) -> None:
        super().__init__(address, key="run_dir")
        self.written: list[str] = []
        self.breaks_at = breaks_at

    def write(self, name: str, data: bytes) -> None:
        if len(self.written) == self.breaks_at:
            raise StorageError("the network is away")
        super().write(name, data)
        self.written.append(name)


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fill(folder: Path, step: int) -> None:
    """Writes a run folder after `step`, of whose checkpoints two are kept."""
    for number in (step - 1, step):
        for name in ("tree", "record"):
            path = folder / "checkpoints" / str(number) / name / "data"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f"{name} of {number}".encode())
    for old in (folder / "checkpoints").iterdir():
        if old.name.isdigit() and int(old.name) < step - 1:
            shutil.rmtree(old)
    (folder / "metrics.csv").write_text("iteration\n" + "".join(f"{row}\n" for row in range(1, step + 1)))
    (folder / "best.plc").write_text(f"best after {step}")
    (folder / "config.yaml").write_text("design: toy6\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    fill(made, 2)
    return made


def test_objects_are_read_written_created_once_and_removed(address: str) -> None:
    store = ObjectStore(address + "/", key="run_dir")
    assert store.read("a/b") is None
    store.write("a/b", b"one")
    store.write("a/b", b"two")
    assert store.read("a/b") == b"two"
    assert not store.create("a/b", b"three") and store.create("c", b"new")
    assert (store.read("a/b"), store.read("c")) == (b"two", b"new")
    for _ in range(2):
        store.remove("a/b")
    assert store.read("a/b") is None


@pytest.mark.slow
def test_what_takes_several_parts_comes_back_whole(address: str) -> None:
    store = ObjectStore(address, key="run_dir")
    large = bytes(range(256)) * 500_000
    store.write("large", large)
    assert store.read("large") == large


@pytest.mark.parametrize("wrong", ["s3://bucket", "s3://bucket/", "s3:///path", "ftp://bucket/path", "file:///tmp/x"])
def test_invalid_addresses_are_rejected(wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"run_dir='.*': must be a folder, or s3://BUCKET/PATH, or gs://BUCKET/PATH"):
        ObjectStore(wrong, key="run_dir")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(ConfigError, match=r"needs the library gcsfs: pip install 'macro-placement\[gs\]'"):
        ObjectStore("gs://bucket/path", key="checkpoint")


def test_rejections_by_the_store_are_explained(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match=r"^s3://other/run/x cannot be written: no such bucket$"):
        ObjectStore("s3://other/run", key="run_dir").write("x", b"")
    quiet = ObjectStore("s3://bucket/quiet", key="run_dir")
    quiet.write("x", b"")
    server.hang()
    try:
        with monkeypatch.context() as short:
            short.setattr(store_module, "CALL_SECONDS", 1.0)
            with pytest.raises(StorageError, match=r"^s3://bucket/quiet/x: no answer in 1 s$"):
                quiet.read("x")
    finally:
        server.go_on()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StorageError, match="Could not connect"):
        ObjectStore("s3://bucket/away", key="run_dir").read("x")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(StorageError, match="no credentials were found"):
        ObjectStore("s3://bucket/nobody", key="run_dir").read("x")


def test_what_is_published_is_fetched_and_only_changes_are_written(address: str, folder: Path, tmp_path: Path) -> None:
    for left_out in (".lock", "shards/0/table", "checkpoints/3.orbax-checkpoint-tmp/data", ".hidden/x"):
        (folder / left_out).parent.mkdir(parents=True, exist_ok=True)
        (folder / left_out).write_text("not of the state")
    store = CountedStore(address)
    publisher = Publisher(store, folder, read_manifest(store))
    assert publisher.publish() and not publisher.publish()
    assert store.written[-1] == MANIFEST_NAME and len(store.written) == 8
    fetched = fetch(store, tmp_path / "first")
    assert fetched == publisher.manifest and fetched is not None and fetched.steps() == [1, 2]
    assert tree(tmp_path / "first").keys() == fetched.files.keys()
    store.written.clear()
    fill(folder, 3)
    assert publisher.publish()
    assert sorted(store.written) == sorted(
        ["checkpoints/3/record/data", "checkpoints/3/tree/data", "metrics.csv", "best.plc", MANIFEST_NAME]
    )
    assert store.read("checkpoints/1/tree/data") is None
    # Another program without a record of the uploads does not write existing objects again.
    store.written.clear()
    assert not Publisher(store, folder, read_manifest(store)).publish() and store.written == []


@pytest.mark.parametrize("breaks_at", range(5))
def test_a_state_that_was_published_in_part_is_never_read(
    address: str, folder: Path, tmp_path: Path, breaks_at: int
) -> None:
    store = CountedStore(address)
    publisher = Publisher(store, folder, None)
    publisher.publish()
    store.written, store.breaks_at = [], breaks_at
    fill(folder, 3)
    with pytest.raises(StorageError, match="the network is away"):
        publisher.publish()
    seen = fetch(store, tmp_path / "seen")
    assert seen is not None and seen.steps() == [1, 2]
    found = tree(tmp_path / "seen")
    assert {name for name in found if name.startswith("checkpoints")} == {
        f"checkpoints/{step}/{name}/data" for step in (1, 2) for name in ("tree", "record")
    }
    assert found["checkpoints/2/tree/data"] == b"tree of 2"
    # The same publisher resumes later.
    store.breaks_at = sys.maxsize
    assert publisher.publish()
    fetch(store, tmp_path / "later")
    assert tree(tmp_path / "later") == tree(folder)


def test_a_damaged_checkpoint_is_omitted_and_a_run_without_any_is_reported(
    address: str, folder: Path, tmp_path: Path
) -> None:
    store = ObjectStore(address, key="run_dir")
    Publisher(store, folder, None).publish()
    store.write("checkpoints/2/tree/data", b"cut")
    fetch(store, tmp_path / "one")
    assert sorted(path.name for path in (tmp_path / "one/checkpoints").iterdir()) == ["1"]
    store.remove("checkpoints/1/record/data")
    with pytest.raises(StorageError, match=r"no checkpoint could be read whole; .* lists \[1, 2\]"):
        fetch(store, tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is damaged"),
        (b'{"format": 1, "id": "x", "files": {"../../outside": [1, "ab"]}}', r"it names '../../outside'"),
        (b'{"format": 1, "id": "x", "files": {"/etc/outside": [1, "ab"]}}', r"it names '/etc/outside'"),
        (b'{"format": 2, "id": "x", "files": {}}', "its format version is 2"),
        (b'{"format": 1, "id": "x", "files": []}', "is damaged"),
    ],
    ids=["cut", "outside", "absolute", "format", "shape"],
)
def test_a_strange_manifest_is_rejected(address: str, tmp_path: Path, content: bytes, message: str) -> None:
    store = ObjectStore(address, key="run_dir")
    assert fetch(store, tmp_path / "nothing") is None
    store.write(MANIFEST_NAME, content)
    with pytest.raises(StorageError, match=message):
        fetch(store, tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"BEAT_SECONDS": 0.1, "WATCH_SECONDS": 2.0, "SETTLE_SECONDS": 0.5}.items():
        monkeypatch.setattr(stored_run, name, seconds)


def lease(address: str, lost: threading.Event | None = None) -> Lease:
    store = ObjectStore(address, key="run_dir")
    event = lost or threading.Event()
    return Lease(store, key="run_dir", lost=event.set)


@pytest.mark.usefixtures("_soon")
def test_one_run_writes_at_a_time(address: str) -> None:
    first, notes = lease(address), []
    first.acquire(notes.append)
    with pytest.raises(ConfigError, match=rf"run_dir='{address}': process \d+ on \S+ is training there"):
        lease(address).acquire(notes.append)
    first.release()
    assert len(notes) == 1 and "waits 2 s to see whether process" in notes[0]
    second = lease(address)
    second.acquire(notes.append)  # at once, because it was released
    second.release()
    assert len(notes) == 1 and ObjectStore(address, key="run_dir").read(LEASE_NAME) is None


@pytest.mark.usefixtures("_soon")
def test_an_abandoned_lease_is_taken_over_and_its_holder_is_reported(address: str) -> None:
    lost = threading.Event()
    cut_off, store = lease(address, lost), ObjectStore(address, key="run_dir")
    store.write(LEASE_NAME, json.dumps({"id": "dead", "host": "far", "process": 7, "beats": 3}).encode())
    notes: list[str] = []
    cut_off.acquire(notes.append)
    assert "process 7 on far" in notes[0]
    store.write(LEASE_NAME, json.dumps({"id": "new", "host": "near", "process": 8, "beats": 0}).encode())
    wait_until(lost.is_set)
    assert not cut_off.held
    cut_off.release()
    assert b'"new"' in (store.read(LEASE_NAME) or b"")  # it may not remove another's lease


@pytest.mark.usefixtures("_soon")
def test_of_two_that_take_it_over_together_one_gets_it(address: str) -> None:
    store = ObjectStore(address, key="run_dir")
    store.write(LEASE_NAME, b"not even JSON")
    results: list[str] = []

    def take(mine: Lease) -> None:
        try:
            mine.acquire(lambda note: None)
            results.append("has it")
        except ConfigError as error:
            results.append(str(error))

    both = [lease(address), lease(address)]
    threads = [threading.Thread(target=take, args=(one,)) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for one in both:
        one.release()
    assert (sorted(results)[0] == "has it" and "training there" in sorted(results)[1]) or "begun" in sorted(results)[1]
