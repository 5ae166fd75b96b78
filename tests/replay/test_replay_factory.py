"""The replay selected by the configuration, with and without Reverb."""

from __future__ import annotations

import importlib.util
import logging
import sys

import pytest

from placement.config import ConfigError, ReplayConfig
from placement.replay import in_process
from placement.replay.in_process import MemoryReplay


@pytest.fixture
def without_reverb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reverb", None)
    for name in ("replay.shard", "replay.shard_items", "transport.reverb_server"):
        monkeypatch.delitem(sys.modules, f"placement.{name}", raising=False)
    in_process._warn_once.cache_clear()


@pytest.mark.usefixtures("without_reverb")
def test_auto_falls_back_to_memory_and_logs_it_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            assert isinstance(in_process.make_replay(ReplayConfig(name="auto"), steps=3), MemoryReplay)
    (message,) = caplog.messages
    assert "Reverb is not installed" in message and "would" in message and "\n" not in message


@pytest.mark.usefixtures("without_reverb")
def test_reverb_by_name_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"replay\.name='reverb'.*replay\.name=memory.*`make install`"):
        in_process.make_replay(ReplayConfig(name="reverb"), steps=3)


def test_memory_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert isinstance(in_process.make_replay(ReplayConfig(name="memory"), steps=3), MemoryReplay)
    assert not caplog.messages


@pytest.mark.skipif(importlib.util.find_spec("reverb") is None, reason="Reverb is not installed")
def test_auto_takes_reverb_where_it_is_installed() -> None:
    replay = in_process.make_replay(ReplayConfig(name="auto", capacity=3), steps=3)
    try:
        assert type(replay).__name__ == "ReverbReplay"
    finally:
        replay.close()
