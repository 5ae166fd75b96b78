"""Reading and writing whole files: plain or gzipped input with its checksum, and atomic writes."""

import csv
import dataclasses
import gzip
import hashlib
import io
import math
import os
import re
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from placement.netlist.errors import DesignError

_DAMAGED = (ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, tokenize.TokenError)
"""Exceptions that NumPy and zipfile raise for a file that is damaged or not an `.npz` file."""
_GZIP_MAGIC = b"\x1f\x8b"
# The first bytes of files in other compression formats, which are not read.
_COMPRESSED = {b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """The source of some data: the file's name without its folder, and the SHA-256 of its unpacked bytes."""

    name: str
    sha256: str


def unpacked_bytes(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes, decompressed if it is gzipped; raises DesignError if it cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise DesignError(f"{path}: cannot be read: {error.strerror or error}") from None
    if data.startswith(_GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise DesignError(f"{path}: damaged gzip file: {error}") from None
    for magic, name in _COMPRESSED.items():
        if data.startswith(magic):
            raise DesignError(f"{path}: is compressed with {name}; must be plain or gzipped")
    return data


def read_bytes(path: str | os.PathLike[str]) -> tuple[bytes, SourceFile]:
    """A file's unpacked bytes and their source; raises DesignError if it cannot be read."""
    data = unpacked_bytes(path)
    return data, SourceFile(name=Path(path).name, sha256=hashlib.sha256(data).hexdigest())


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file, decompressed if it is gzipped; raises DesignError if it cannot be read."""
    return decoded(unpacked_bytes(path), path)


def decoded(data: bytes, path: str | os.PathLike[str]) -> str:
    """The bytes of a UTF-8 file as text; raises DesignError with file and line if they are not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DesignError.at(path, line, f"byte {data[error.start]:#04x} is not UTF-8 text") from None


def decoded_leniently(data: bytes) -> str:
    """The bytes of a file as text; Latin-1 if it is not UTF-8, as with © or µ in a comment."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def stem(path: str | os.PathLike[str]) -> str:
    """The name of a file without its folder and its suffixes `.aux`, `.pb`, `.txt`, `.gz`."""
    return re.sub(r"(\.aux|(\.pb)?(\.txt)?(\.gz)?)$", "", Path(path).name)


def finite(text: str) -> float | None:
    """A finite number written in ASCII, or None."""
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def write_whole(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Writes `data` to `path` entirely or not at all, by renaming a temporary file beside it.

    Raises OSError if the folder does not exist or cannot be written; `path` is then unchanged.
    """
    target = Path(path)
    content = data.encode("utf-8") if isinstance(data, str) else data
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; a result is as readable as any other new file.
        os.chmod(temporary, 0o666 & ~umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes named arrays, compressed, entirely or not at all, without pickled objects; raises OSError."""
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    write_whole(path, data.getvalue())


def read_npz(path: str | os.PathLike[str], what: str) -> dict[str, np.ndarray]:
    """The arrays of an `.npz` file that contains `what`; raises DesignError if it cannot be read or is damaged."""
    try:
        # The file is read whole first, since np.load leaves it open if it rejects it.
        with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise DesignError(f"{path}: cannot be read: {error.strerror or error}") from None
    except _DAMAGED as error:
        raise DesignError(f"{path}: not a valid {what} file: {error}") from None


def packed(name: str, data: str | bytes, *, level: int = 6) -> bytes:
    """The bytes of a file called `name`, gzipped without a timestamp if it ends in .gz, so that they repeat."""
    content = data.encode("utf-8") if isinstance(data, str) else data
    return gzip.compress(content, level, mtime=0) if name.endswith(".gz") else content


def check_output_folder(key: str, folder: str | os.PathLike[str]) -> None:
    """Raises DesignError if files cannot be written to the folder that the setting `key` names; writes nothing.

    The folder need not exist; the writer creates it with its parents.
    """
    path = Path(folder)
    existing = next(parent for parent in (path, *path.absolute().parents) if os.path.lexists(parent))
    _check_takes_files(existing, f"{key}={folder}: cannot be written")


def check_output_file(key: str, file: str | os.PathLike[str]) -> None:
    """Raises DesignError if the file that the setting `key` names cannot be written; writes nothing.

    The file need not exist, but its folder must.
    """
    path, rejected = Path(file), f"{key}={file}: cannot be written"
    if os.path.isdir(path):
        raise DesignError(f"{rejected}: is a folder, but must be a file")
    if not os.path.lexists(path.parent):
        raise DesignError(f"{rejected}: there is no folder {path.parent}")
    _check_takes_files(path.parent, rejected)


def _check_takes_files(folder: Path, rejected: str) -> None:
    if not os.path.isdir(folder):
        raise DesignError(f"{rejected}: {folder} is a file, but must be a folder")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise DesignError(f"{rejected}: {folder} is not writable ({error.strerror or error})") from None


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as the text of a CSV file, one line each."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def umask() -> int:
    """The process's file mode mask, which can be read only by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
