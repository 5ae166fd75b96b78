"""A full disk is reported in one line: what could not be written, how much is missing, what to do."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from placement.training.checkpoint import Checkpoints
from placement.utils.disk import DiskFull, checked_space


@pytest.fixture
def file_limit() -> Iterator[int]:
    """Limits the size of this process's files; yields the limit in bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    yield 1 << 20
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_the_systems_message_is_reported_with_the_file(tmp_path: Path, number: int) -> None:
    message = f"metrics.csv cannot be written: {os.strerror(number)}: .* were free.*resumes"
    with pytest.raises(DiskFull, match=message), checked_space(tmp_path / "metrics.csv"):
        raise OSError(number, os.strerror(number))


def test_a_librarys_error_that_keeps_no_more_than_the_text_is_recognised(tmp_path: Path) -> None:
    message = "a/b/3 cannot be written: No space left on device"
    with pytest.raises(DiskFull, match=message), checked_space(tmp_path / "a" / "b" / "3"):
        try:
            raise ValueError("RESOURCE_EXHAUSTED: Failed writing: No space left on device [OS error 28]")
        except ValueError as error:
            raise RuntimeError("the saving thread failed") from error


def test_the_missing_amount_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=2_500_000))
    message = r"4\.0 MB are needed, 2\.5 MB were free \(1\.5 MB are missing\)"
    with pytest.raises(DiskFull, match=message), checked_space(tmp_path / "3", 4_000_000):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "Permission denied"), ValueError("a bug")])
def test_other_errors_stay_what_they_are(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(type(error)) as caught, checked_space(tmp_path / "file", 10):
        raise error
    assert caught.value is error


def test_a_checkpoint_without_room_is_not_begun_and_succeeds_later(tmp_path: Path, file_limit: int) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.save(1, {"a": np.zeros(10)}, {})
    with pytest.raises(DiskFull, match="checkpoints/2 cannot be written: File too large: 2"):
        checkpoints.save(2, {"a": np.zeros(2 * file_limit, np.uint8)}, {})
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["1"]
    checkpoints.save(2, {"a": np.zeros(file_limit // 2, np.uint8)}, {})
    assert checkpoints.steps() == [1, 2]
    checkpoints.close()
