"""Freezes a suite of `macro-placement benchmark`: writes the checksum of each design into it.

    python benchmarks/freeze_suite.py placement/benchmark/data/synthetic.json

Public designs are imported from what `macro-placement fetch` brought. Those that it does not bring, or without the
placement that is their baseline, get no checksum. Run it once for a new version of a suite; a frozen version is not
changed any more, unless an importer was mended.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path

from placement.benchmark.suites import SUPPLIED, content_checksum, design_path, generated, read_suite
from placement.evaluation.placements import has_macro_places
from placement.netlist.files import write_whole
from placement.netlist.load import load
from placement.netlist.public_designs import PUBLIC_DESIGNS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path, help="its .json file")
    args = parser.parse_args()
    known = json.loads(args.suite.read_text(encoding="utf-8"))
    for one, written in zip(read_suite(str(args.suite)).designs, known["designs"], strict=True):
        if one.kind != "public":
            written["checksum"] = content_checksum(generated(one) if one.kind == "clustered" else load(one.name))
        elif one.name in PUBLIC_DESIGNS:
            with tempfile.TemporaryDirectory() as folder:
                design = load(design_path(dataclasses.replace(one, checksum=None), Path(folder)))
                if one.baseline != SUPPLIED or has_macro_places(design):
                    written["checksum"] = content_checksum(design)
    lines = ",\n".join(f"    {json.dumps(one)}" for one in known.pop("designs"))
    head = json.dumps(known, indent=2)[:-2]
    write_whole(args.suite, f'{head},\n  "designs": [\n{lines}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
