"""Reports a full disk in one line."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

FULL = {number: os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)}
"""The system's messages for a file that cannot grow, by error number."""


class DiskFull(OSError):
    """There is not enough space to write; the message names the file, the missing space, and a remedy."""


@contextlib.contextmanager
def checked_space(path: Path, size: int | None = None) -> Iterator[None]:
    """Guards a block that writes to `path`, a file or a folder.

    Args:
        path: a path in an existing folder.
        size: bytes to be written, if they are many; the block does not begin without space for them, because libraries
            that write in their own threads handle a full disk badly.

    Raises:
        DiskFull: there is not enough space; replaces the writing library's error.
    """
    folder = next(folder for folder in path.absolute().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    try:
        if size is not None:
            _reserve(folder, size)
        yield
    except Exception as error:
        reason = _reason(error)
        if reason is None or isinstance(error, DiskFull):
            raise
        takes = "" if size is None else f"{_megabytes(size)} are needed, "
        missing = f" ({_megabytes(size - free)} are missing)" if size is not None and size > free else ""
        raise DiskFull(
            f"{path} cannot be written: {reason}: {takes}{_megabytes(free)} were free{missing}. Once there is space, "
            "the same command resumes from the last checkpoint"
        ) from None


def _reserve(folder: Path, size: int) -> None:
    """Raises OSError if a file of `size` bytes does not fit (disk, quota or limit); leaves nothing behind."""
    if hasattr(os, "posix_fallocate"):
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, max(size, 1))


def _reason(error: BaseException | None) -> str | None:
    """The system's message, if any error in the chain comes from a full disk; libraries keep only its text."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return FULL[error.errno]
        for text in FULL.values():
            if text in str(error):
                return text
        error = error.__cause__ or error.__context__
    return None


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
