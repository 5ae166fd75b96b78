"""The parameter store: versions, waits, copies."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest

from placement.modelcache.store import MemoryStore, StoreClosed, StoreTimeout

LONG = 90.0


def test_the_newest_snapshot_is_read() -> None:
    store = MemoryStore()
    assert store.version() == -1
    store.publish(0, {"w": jnp.zeros(3)})
    store.publish(4, {"w": jnp.ones(3)})
    version, parameters = store.wait_for(2, timeout=LONG)
    assert version == store.version() == 4
    np.testing.assert_array_equal(parameters["w"], np.ones(3))
    assert store.wait_for(0, timeout=LONG).version == 4


def test_what_was_published_does_not_change() -> None:
    store, array = MemoryStore(), np.zeros(3)
    store.publish(0, [array])
    array[:] = 1
    (held,) = store.wait_for(0, timeout=LONG).parameters
    np.testing.assert_array_equal(held, np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 1


@pytest.mark.parametrize("version", [2, 3])
def test_versions_must_rise(version: int) -> None:
    store = MemoryStore()
    store.publish(3, [])
    with pytest.raises(ValueError, match=f"version {version} published after version 3"):
        store.publish(version, [])


def test_a_wait_past_its_deadline_says_who_waits_for_what() -> None:
    store = MemoryStore()
    store.publish(1, [])
    with pytest.raises(StoreTimeout, match=r"MainThread waited 0\.05 s for parameters of version 2; the newest is 1"):
        store.wait_for(2, timeout=0.05)


def test_waiting_readers_wake_on_publication_and_on_close() -> None:
    store = MemoryStore()
    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(store.wait_for, 1, timeout=LONG) for _ in range(4)]
        store.publish(0, [])
        store.publish(1, [np.ones(1)])
        assert {reader.result(LONG).version for reader in readers} == {1}
        entered = threading.Event()
        waiting = threads.submit(lambda: (entered.set(), store.wait_for(2, timeout=LONG)))
        assert entered.wait(LONG)
        store.close()
        store.close()
        with pytest.raises(StoreClosed):
            waiting.result(LONG)
    with pytest.raises(StoreClosed):
        store.publish(2, [])
