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


def check_output_folder(key: str, folder: str | os.PathLike[str]) -> None:
    """Raises DesignError where no file can be written in a folder; leaves nothing behind.

    Args:
        key: the setting that names it.
        folder: it need not exist: who writes makes it, with the folders above it.
    """
    path = Path(folder)
    there = next(part for part in (path, *path.absolute().parents) if os.path.lexists(part))
    _check_takes_files(there, f"{key}={folder}: cannot be written")


def check_output_file(key: str, file: str | os.PathLike[str], *, makes_folder: bool = False) -> None:
    """Raises DesignError where a file cannot be written; leaves nothing behind.

    Args:
        key: the setting that names it.
        file: it need not exist.
        makes_folder: who writes makes the file's folder; else that must exist.
    """
    path, refused = Path(file), f"{key}={file}: cannot be written"
    if os.path.isdir(path):
        raise DesignError(f"{refused}: a folder is there, where a file is to be")
    if makes_folder:
        check_output_folder(key, path.parent)
    elif not os.path.lexists(path.parent):
        raise DesignError(f"{refused}: there is no folder {path.parent}")
    else:
        _check_takes_files(path.parent, refused)


def _check_takes_files(folder: Path, refused: str) -> None:
    """Raises DesignError, `refused` and the reason, where no file can be made in a folder."""
    if not os.path.isdir(folder):
        raise DesignError(f"{refused}: {folder} is a file, where a folder is to be")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise DesignError(f"{refused}: {folder} takes no files ({error.strerror or error})") from None


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
