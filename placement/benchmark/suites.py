"""Frozen suites: versioned sets of designs on which placers are compared, with a checksum of each design.

A suite is a JSON file in `data/`. A change of a design, or of its generator, needs a new version.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from placement.netlist.constraints import Constraints, SnapGrid
from placement.netlist.design import Design
from placement.netlist.errors import DesignError
from placement.netlist.files import read_text
from placement.netlist.generators.clustered import clustered
from placement.netlist.import_constraints import ConstraintSettings
from placement.netlist.importing import ImportSettings
from placement.netlist.load import SEARCH_VARIABLE, SOURCE_NAME, fetched_folder, find, load, save
from placement.netlist.public_designs import PUBLIC_DESIGNS, PublicDesign

DATA = Path(__file__).resolve().parent / "data"
SUPPLIED = "supplied"
KINDS = ("built_in", "clustered", "public")
_GIVEN = "given"
ONE_SECONDS = 60.0  # default CPU seconds of a run on a single design
_NETLIST_ARRAYS = (
    "kind", "width", "height", "pin_node", "pin_dx", "pin_dy", "net_weight", "net_start", "net_pins",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class SuiteDesign:
    """A design of a suite."""

    name: str  # name within the suite and of its folder
    kind: str  # origin of the design, one of `KINDS`
    split: str = "test"  # train, validation or test
    # the placer whose score is 1; `SUPPLIED`: the placement that came with the design; None: scores are not divided
    baseline: str | None = SUPPLIED
    # `content_checksum` of the design; None: an imported design, whose clusters may differ between machines
    checksum: str | None = None
    sources: Sequence[str] = ()  # SHA-256 of the unpacked netlist and floorplan files of an imported design
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # arguments of the generator
    # constraints of a generated design: `halo` and `grid` in µm; `blocked`, the share of each side of the canvas that a
    # blockage in the lower left corner takes
    constraints: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Suite:
    """A named set of designs; results of different versions are not compared."""

    name: str  # name, version, about: name, version and description
    version: int
    about: str
    time: float  # default CPU seconds of a run
    designs: tuple[SuiteDesign, ...]  # designs of all splits

    @property
    def title(self) -> str:
        """Name and version in one word; the name of a single design."""
        return f"{self.name}-{self.version}" if self.version else self.name

    def chosen(self, split: str, names: Sequence[str] = ()) -> tuple[SuiteDesign, ...]:
        """Returns the designs of a split, or those named among all; raises DesignError if there are none."""
        known = {one.name: one for one in self.designs}
        for name in names:
            if name not in known:
                raise DesignError(
                    f"designs: the suite {self.title} does not contain {name!r}; it contains {', '.join(known)}"
                )
        found = tuple(known[name] for name in names) or tuple(one for one in self.designs if one.split == split)
        if not found:
            raise DesignError(f"split={split}: the suite {self.title} has no designs in this split")
        return found


def suite_of(name: str) -> Suite:
    """Returns a suite of the single design that the user names; raises DesignError if it cannot be loaded."""
    design = load(name)
    path = {"path": str(find(name).parent)}
    one = SuiteDesign(design.name, _GIVEN, baseline=None, checksum=content_checksum(design), options=path)
    return Suite(design.name, 0, "one design", ONE_SECONDS, (one,))


def suite_names() -> list[str]:
    """Returns the names of the suites that come with the project."""
    return sorted(path.stem for path in DATA.glob("*.json"))


def read_suite(name: str) -> Suite:
    """Reads the suite of that name or file; raises DesignError."""
    path = DATA / f"{name}.json"
    if not path.is_file():
        path = Path(name)
        if not path.is_file():
            raise DesignError(f"suite={name}: is neither one of {', '.join(suite_names())} nor a file")
    try:
        known = json.loads(read_text(path))
        designs = tuple(SuiteDesign(**one) for one in known["designs"])
        suite = Suite(known["name"], int(known["version"]), known["about"], float(known["time"]), designs)
    except (ValueError, TypeError, KeyError) as error:
        raise DesignError(
            f"{path}: is not a suite file: {error}; docs/how-to/benchmark-suites.md describes one"
        ) from None
    for design in suite.designs:
        if not isinstance(design.name, str) or not isinstance(design.options, Mapping):
            raise DesignError(f"{path}: {design.name!r}: the name must be a string, and the options an object")
        if not isinstance(design.sources, list | tuple) or not all(isinstance(one, str) for one in design.sources):
            raise DesignError(f"{path}: {design.name}: sources must be a list of SHA-256 checksums")
        if design.kind not in KINDS:
            raise DesignError(f"{path}: {design.name}: kind {design.kind!r} must be one of {', '.join(KINDS)}")
    return suite


def content_checksum(design: Design) -> str:
    """Returns the SHA-256 of what placers see: netlist, canvas, initial placement, constraints; names are ignored."""
    digest = hashlib.sha256()
    for field in _NETLIST_ARRAYS:
        values = getattr(design.netlist, field)
        digest.update(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes())
    digest.update(repr(dataclasses.astuple(design.canvas)).encode())
    for values in (design.initial.x, design.initial.y):
        digest.update(np.round(values, 3).astype("<f8").tobytes())
    digest.update(design.initial.orientation.astype("i1").tobytes() + design.initial.fixed.tobytes())
    digest.update(design.constraints.as_bytes())
    return digest.hexdigest()


def generated(one: SuiteDesign) -> Design:
    """Generates a design with its constraints; raises DesignError if that is impossible."""
    try:
        design = clustered(name=one.name, **one.options)
    except TypeError as error:
        raise DesignError(f"{one.name}: options of the generator: {error}") from None
    rules, netlist, canvas = one.constraints, design.netlist, design.canvas
    if not rules:
        return design
    none = Constraints.none(netlist.num_nodes)
    halo = np.zeros((netlist.num_nodes, 2))
    halo[netlist.hard] = rules.get("halo", 0.0)
    blocked, pitch = rules.get("blocked", 0.0), rules.get("grid", 0.0)
    corner = [[0.0, 0.0, round(blocked * canvas.width, 3), round(blocked * canvas.height, 3)]] if blocked else []
    kept = dataclasses.replace(none, halo=halo, blockages=np.array(corner).reshape(-1, 4), grid=SnapGrid(pitch, pitch))
    return dataclasses.replace(design, constraints=kept)


def design_path(one: SuiteDesign, folder: Path) -> Path:
    """Returns the folder of a suite's design, which is made below `folder` if it does not exist.

    Raises DesignError if the design is missing, with instructions to obtain it, or is not the one that the suite froze.
    """
    own = folder / one.name
    if one.kind == "built_in":
        own = find(one.name).parent
    elif one.kind == _GIVEN:
        return Path(one.options["path"])
    elif one.kind == "clustered":
        if not own.is_dir():
            save(own, generated(one))
    else:
        own = _public_path(one.name, own)
    design = load(own)
    if one.checksum is not None and (found := content_checksum(design)) != one.checksum:
        raise DesignError(
            f"{one.name}: differs from the design in the suite: its checksum is {found} instead of "
            f"{one.checksum}; remove {own} if it was changed there, or use the version of the project that created "
            "the suite"
        )
    _check_sources(one, own)
    return own


def _check_sources(one: SuiteDesign, folder: Path) -> None:
    """Raises DesignError if an imported design was not made from the files that the suite froze."""
    if not one.sources:
        return
    path = folder / SOURCE_NAME
    if not path.is_file():
        raise DesignError(
            f"{one.name}: {folder} was not imported (it has no {SOURCE_NAME}); import the public files, or give the "
            "folder another name"
        )
    try:
        files = {file["sha256"]: file["name"] for file in json.loads(read_text(path))["files"]}
    except (ValueError, TypeError, KeyError) as error:
        raise DesignError(f"{path}: does not list the files of an import: {error}") from None
    for sha256 in one.sources:
        if sha256 not in files:
            raise DesignError(
                f"{one.name}: {folder} was imported from files that differ from the suite's: none of "
                f"{', '.join(map(str, files.values()))} has the SHA-256 {sha256} (unpacked); import the public "
                "files, or give the folder another name"
            )


def _public_path(name: str, own: Path) -> Path:
    """Returns the folder of a public design, importing fetched files if necessary."""
    if own.is_dir():
        return own
    try:
        return find(name).parent
    except DesignError:
        pass
    public = PUBLIC_DESIGNS.get(name)
    if public is None:
        raise DesignError(
            f"{name}: is missing; import it (docs/import.md) to a folder of that name in a folder of {SEARCH_VARIABLE}"
        )
    listed = [Path(one) for one in os.environ.get(SEARCH_VARIABLE, "").split(os.pathsep) if one]
    for place in (fetched_folder(), *listed):
        if public.importing and all((place / name / file.name).is_file() for file in public.files):
            _import(public, place / name, own)
            return own
    raise DesignError(f"{name}: is missing; macro-placement fetch {name} downloads it ({public.size / 1e6:.1f} MB)")


def _import(public: PublicDesign, files: Path, out: Path) -> None:
    """Imports the files of a public design as `fetch` specifies."""
    from placement.api import import_design  # JAX takes seconds to import

    given = {option: [files / name for name in names] for option, names in public.importing.items()}
    import_design(
        lef=given["lef"],
        def_=next(iter(given.get("def", [])), None),
        protobuf=next(iter(given.get("protobuf", [])), None),
        out=out,
        settings=ImportSettings(constraints=ConstraintSettings(halo=(public.halo, public.halo))),
    )
