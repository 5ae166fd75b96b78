"""Public designs that this project does not ship: the locations of their files, their download and their checks.

Every file has a SHA-256, so that a design is the one that the documentation measured, wherever it is downloaded.
"""

import dataclasses
import difflib
import hashlib
import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
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
    # the arguments of `macro-placement import` that make a design of the files, with `{}` for their folder; empty if
    # the files already are a design
    importing: str = ""

    @property
    def size(self) -> int:
        """Total size of the files, in bytes."""
        return sum(file.size for file in self.files)


_ARIANE = "Flows/NanGate45/ariane133"
_CT_ARIANE = "CodeElements/FormatTranslators/test/CTAriane"
_LEFS = "Enablements/NanGate45/lef"
_PUBLISHED = "32faaf996f9f13dd9cfa5fcbf708c668d56be984"
_FLAT_ARIANE = (
    PublicFile(
        "NangateOpenCellLibrary.tech.lef", f"{_LEFS}/NangateOpenCellLibrary.tech.lef", 19_485,
        "834a79295054cd4209178d1bade67c353863c47bb4b3c22ee38b862b7cec37f2",
    ),
    PublicFile(
        "fakeram45_256x16.lef", f"{_LEFS}/fakeram45_256x16.lef", 15_329,
        "9765349e8d204e1a2ef868740bcfc780162fe0a8f06ebfad0de22b6b3ebc7f34",
    ),
    PublicFile(
        "ariane.pb.txt.gz", f"{_ARIANE}/netlist/ariane.pb.txt.gz", 2_332_391,
        "fd4141ac2d3be5066ebaf9969903a318c6d268eb95004b0b7eaa7c42573f9906",
    ),
)  # fmt: skip
_ARIANE_IMPORT = "--protobuf {}/ariane.pb.txt.gz --lef {}/NangateOpenCellLibrary.tech.lef {}/fakeram45_256x16.lef"


def _published(placer: str, size: int, sha256: str) -> PublicFile:
    """The published comparison's floorplan, with the macros where a placer put them."""
    path = f"{_ARIANE}/def/refs/{placer}/ariane_fp_placed_macros.def"
    return PublicFile(f"{placer}.def", path, size, sha256, _PUBLISHED)


PUBLIC_DESIGNS = {  # the designs that can be fetched, by name
    "ariane133_ng45": PublicDesign(
        "Ariane RISC-V core, NanGate45, clustered: 133 hard and 782 soft macros",
        (
            PublicFile(
                "initial.plc", f"{_ARIANE}/netlist/output_CT_Grouping/initial.plc", 41_356,
                "6d85f1cce904ceb19ad9726b8d3eee3d17387c2552d74e67e5f9350a5e269bbe",
            ),
            PublicFile(
                "legalized.plc", f"{_ARIANE}/netlist/output_CT_Grouping/legalized.plc", 41_218,
                "bce97dc18c7a28ea151f4444d7d9a40b7ae9f2001ea7ea72e6a5ee925ec52a9d",
            ),
            PublicFile(
                "netlist.pb.txt", f"{_ARIANE}/netlist/output_CT_Grouping/netlist.pb.txt", 11_093_217,
                "a54bc9ef70a32e2e0b19c312427a46622f5d40bf294a4b7d0594af7e4440efd3",
            ),
        ),
    ),
    "ariane133_ng45_51": PublicDesign(
        "the same core before clustering, 88,411 cells, in a die of 1,600 µm",
        (
            PublicFile(
                "floorplan.def", f"{_ARIANE}/def/ariane133_fp.def", 170_907,
                "5e1e80d0c121197d68e7f15608ddbd2fc62ffb01d712ff1463fe5979b1a32880",
                "c148f72d33c10374aa5ee474a7c7c89d665fa31e",
            ),
            *_FLAT_ARIANE,
        ),
        f"{_ARIANE_IMPORT} --def {{}}/floorplan.def --halo 5",
    ),
    "ariane133_ng45_68": PublicDesign(
        "the same core on the floorplan of the published comparison, with macro placements from five placers",
        (
            _published("CT_AC", 179_871, "85b228ef3d0fe75ca5ea3a3c860ce15e5ecac0bc2e0349de0e80949e8eaa3eb7"),
            _published("CT_Scratch", 179_882, "26d51b25d35ce37fc8d5a5089b7e5379aa27813909e867a6e6c4d4577839e58e"),
            _published("Human", 179_840, "7be70b9503b80e063f64edfc56fb8cd3f665ffeac80ece16b768e370e6930d60"),
            _published("RePlAce", 179_919, "e2144def37b9514a54ab7cb747b2a254bee7035285cd5d722e7e35f0c3456b8d"),
            _published("SA", 179_874, "8358ce704d07d739e4064be46830a62596659a85e1a32aee11dea17a947468db"),
            *_FLAT_ARIANE,
        ),
        f"{_ARIANE_IMPORT} --def {{}}/Human.def --halo 5",
    ),
    "ct_ariane": PublicDesign(
        "Circuit Training's Ariane as LEF and DEF: 133 macros, 82,954 placed components",
        (
            PublicFile(
                "ariane.lef", f"{_CT_ARIANE}/ariane.lef", 317_375,
                "854c1b8900d07c6f3371b8b54e3c982e7175e9bec62a78c7de1d2063ec46af82",
            ),
            PublicFile(
                "ariane.def.gz", f"{_CT_ARIANE}/ariane.def.gz", 2_122_936,
                "8c3c13ea95e32aa5be6abc3560725eebe0defe029fe4bfeb62c3d2d70eec3139",
            ),
        ),
        "--lef {}/ariane.lef --def {}/ariane.def.gz",
    ),
    "ct_ariane_x2": PublicDesign(
        "Circuit Training's Ariane twice as LEF and DEF: 266 macros, 165,908 placed components",
        (
            PublicFile(
                "ariane.lef", f"{_CT_ARIANE}/ariane.lef", 317_375,
                "854c1b8900d07c6f3371b8b54e3c982e7175e9bec62a78c7de1d2063ec46af82",
            ),
            PublicFile(
                "ariane_X2_xflip.def.gz", f"{_CT_ARIANE}/ariane_X2_xflip.def.gz", 3_921_853,
                "9683110afc9495ceab523db023f7610d0bd1e00f654605b731ed776e73997844",
            ),
        ),
        "--lef {}/ariane.lef --def {}/ariane_X2_xflip.def.gz",
    ),
}  # fmt: skip

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
