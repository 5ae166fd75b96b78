"""Public designs that this project does not ship: the locations of their files, their download and their checks.

Every file has a SHA-256, so that a design is the one that the documentation measured, wherever it is downloaded.
"""

import dataclasses
import difflib
import hashlib
import http.client
import json
import shlex
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic

from placement.netlist.errors import DesignError
from placement.netlist.files import check_output_folder, write_whole
from placement.netlist.load import fetched_folder

SOURCE = "https://raw.githubusercontent.com/TILOS-AI-Institute/MacroPlacement/{ref}"
"""The MacroPlacement project's repository (BSD-3-Clause); `{ref}` is a branch or a commit of it."""
SCHEMES = ("https", "http", "file")
CHUNK = 1 << 16  # maximum number of bytes read at once
SILENCE = 30.0  # maximum seconds without data from a server
DEADLINE = 600.0  # maximum seconds for a design


@dataclasses.dataclass(frozen=True)
class PublicFile:
    """A file of a public design."""

    name: str  # name in the design's folder
    path: str  # path below the source
    size: int  # bytes
    sha256: str  # SHA-256 of its bytes as downloaded
    ref: str = "main"  # the branch or commit where the file has these bytes


@dataclasses.dataclass(frozen=True)
class PublicDesign:
    """A public design."""

    about: str  # a one-line description
    files: tuple[PublicFile, ...]  # its files; the netlist is last, since a folder without it is not a design
    # files by option of `macro-placement import`, which makes a design of them; empty if they already are a design
    importing: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    halo: float = 0.0  # µm, of the import

    @property
    def size(self) -> int:
        """Total size of the files, in bytes."""
        return sum(file.size for file in self.files)

    def import_arguments(self, folder: Path) -> str:
        """The arguments of `macro-placement import` for the files in a folder."""
        words = [
            word
            for option, names in self.importing.items()
            for word in (f"--{option}", *(shlex.quote(str(folder / name)) for name in names))
        ]
        return " ".join([*words, *([f"--halo {self.halo:g}"] if self.halo else [])])


def _listed() -> dict[str, PublicDesign]:
    """The designs in `public_designs.json`."""
    listed = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return {
        name: PublicDesign(**one | {"files": tuple(PublicFile(**file) for file in one["files"])})
        for name, one in listed.items()
    }


PUBLIC_DESIGNS = _listed()  # the designs that can be fetched, by name
Progress = Callable[[PublicFile, int], None]
"""Called with a file and the number of its bytes that have arrived; with its size once it is written."""


def public_design(name: str) -> PublicDesign:
    """The design of a name; raises DesignError with the known names if there is none."""
    if name not in PUBLIC_DESIGNS:
        near = difflib.get_close_matches(name, PUBLIC_DESIGNS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the public designs are {', '.join(PUBLIC_DESIGNS)}"
        raise DesignError(f"unknown public design {name!r}; {hint}")
    return PUBLIC_DESIGNS[name]


def fetch(
    name: str,
    out: Path | None = None,
    *,
    source: str = SOURCE,
    seconds: float = DEADLINE,
    progress: Progress = lambda file, done: None,
) -> Path:
    """Downloads a public design's files; intact files in the folder are kept.

    Each file is written whole or not at all, so that the same call completes a download that was interrupted.

    Args:
        name: a key of `PUBLIC_DESIGNS`.
        out: the folder; default: where `load` finds the design by its name.
        source: an address that the files' paths are appended to; `{ref}` in it becomes their branch or commit.
        seconds: maximum duration of the whole download.
        progress: called as bytes arrive.

    Returns:
        The folder.

    Raises:
        DesignError: there is no such design, the source is not an address, or the bytes of a file are not the expected
            ones.
        OSError: a file cannot be downloaded or written; the message names the file, the reason and a remedy.
    """
    design = public_design(name)
    scheme = urllib.parse.urlsplit(source).scheme
    if scheme not in SCHEMES:
        raise DesignError(f"source={source}: must begin with {', '.join(f'{one}://' for one in SCHEMES)}")
    folder = fetched_folder() / name if out is None else out
    check_output_folder("out", folder)
    deadline = monotonic() + seconds
    folder.mkdir(parents=True, exist_ok=True)
    for file in design.files:
        target = folder / file.name
        if not target.is_file() or hashlib.sha256(target.read_bytes()).hexdigest() != file.sha256:
            url = f"{source.replace('{ref}', file.ref).rstrip('/')}/{file.path}"
            write_whole(target, _download(url, file, deadline, progress))
        progress(file, file.size)
    return folder


def _download(url: str, file: PublicFile, deadline: float, progress: Progress) -> bytes:
    """The bytes of a file; raises like `fetch`."""
    try:
        data = _read(url, file, deadline, progress)
    except (OSError, http.client.HTTPException) as error:
        raise OSError(f"{url}: cannot be downloaded: {_reason(error)}") from None
    if (found := hashlib.sha256(data).hexdigest()) != file.sha256:
        raise DesignError(
            f"{url}: is not the expected file: SHA-256 {found} of the first {len(data):,} bytes, instead of "
            f"{file.sha256} of {file.size:,}; nothing was written. The file at its source has changed, or a proxy "
            "answered in its place"
        )
    return data


def _read(url: str, file: PublicFile, deadline: float, progress: Progress) -> bytes:
    """The bytes at an address; at most one byte more than the file's size."""
    data, most = bytearray(), file.size + 1
    with urllib.request.urlopen(url, timeout=max(min(SILENCE, deadline - monotonic()), 0.01)) as response:
        announced = int(response.headers.get("Content-Length", 0))
        while len(data) < most and (chunk := response.read1(min(CHUNK, most - len(data)))):
            data += chunk
            progress(file, min(len(data), file.size))
            if monotonic() > deadline:
                raise TimeoutError(f"{len(data):,} of {file.size:,} bytes arrived in time")
    if len(data) < min(announced, most):
        raise ConnectionError(f"the connection was closed after {len(data):,} of {announced:,} bytes")
    return bytes(data)


def _reason(error: Exception) -> str:
    """The reason for a failed download, and its remedy."""
    elsewhere = "or name another copy of the repository with --source, such as file:///PATH/MacroPlacement"
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}; try again later, {elsewhere}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return f"the download takes too long ({cause}); run the same command again, which keeps complete files"
    return f"{cause}; check the network and the proxy (HTTPS_PROXY), {elsewhere}"
