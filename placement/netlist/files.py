"""Reading and writing whole files: text from plain or gzip files, and writes that happen entirely or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path

from placement.netlist.errors import DesignError

_GZIP_MAGIC = b"\x1f\x8b"


def unpacked_bytes(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes, unpacked where it is gzip; raises DesignError where it cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise DesignError(f"{path}: cannot be read: {error.strerror or error}") from None
    if data.startswith(_GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise DesignError(f"{path}: damaged gzip file: {error}") from None
    return data


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file, unpacked where it is gzip; raises DesignError where it cannot be read."""
    return decoded(unpacked_bytes(path), path)


def decoded(data: bytes, path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file's bytes; raises DesignError, with the file and line, where they are none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DesignError.at(path, line, f"byte {data[error.start]:#04x} is not UTF-8 text") from None


def write_whole(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Writes `data` to `path` entirely or not at all: under a temporary name beside it, then renamed.

    Raises:
        OSError: the folder does not exist or cannot be written; `path` is then as it was before.
    """
    target = Path(path)
    content = data.encode("utf-8") if isinstance(data, str) else data
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp files are private; a result is as readable as any other new file.
        os.chmod(temporary, 0o666 & ~umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as the text of a CSV file, a line each."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def umask() -> int:
    """The process's file mode mask. There is no way to read it but to set it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
