"""Freezes a suite of `macro-placement benchmark`: writes the checksum of each design into it.

    python benchmarks/freeze_suite.py placement/benchmark/data/synthetic.json

Public designs are those fetched by `macro-placement fetch` or on PLACEMENT_PATH; entries of missing ones are not
changed. Of an imported design, the SHA-256 of its netlist and floorplan files is written. Run it once for a new version
of a suite; a frozen version must not change, unless an importer was fixed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path

from placement.benchmark.suites import content_checksum, design_path, generated, read_suite
from placement.netlist.errors import DesignError
from placement.netlist.files import write_whole
from placement.netlist.load import SOURCE_NAME, load

OTHER = {".lef", ".lib", ".sdc"}
"""Suffixes of files that are neither netlist nor floorplan."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path, help="its .json file")
    args = parser.parse_args()
    known = json.loads(args.suite.read_text(encoding="utf-8"))
    for one, written in zip(read_suite(str(args.suite)).designs, known["designs"], strict=True):
        if one.kind != "public":
            written["checksum"] = content_checksum(generated(one) if one.kind == "clustered" else load(one.name))
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = design_path(dataclasses.replace(one, checksum=None, sources=()), Path(folder))
            except DesignError as error:
                print(error)
                continue
            if (path / SOURCE_NAME).is_file():
                files = json.loads((path / SOURCE_NAME).read_text(encoding="utf-8"))["files"]
                written["sources"] = [file["sha256"] for file in files if not set(Path(file["name"]).suffixes) & OTHER]
            else:
                written["checksum"] = content_checksum(load(path))
    lines = ",\n".join(f"    {json.dumps(one)}" for one in known.pop("designs"))
    head = json.dumps(known, indent=2)[:-2]
    write_whole(args.suite, f'{head},\n  "designs": [\n{lines}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
