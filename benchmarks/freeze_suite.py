"""Freezes a suite of `macro-placement benchmark`: writes the checksum of each generated and built-in design into it.

    python benchmarks/freeze_suite.py placement/benchmark/data/synthetic.json

Run it once for a new version of a suite; a frozen version is not changed any more.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from placement.benchmark.suites import content_checksum, generated, read_suite
from placement.netlist.files import write_whole
from placement.netlist.load import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path, help="its .json file")
    args = parser.parse_args()
    known = json.loads(args.suite.read_text(encoding="utf-8"))
    for one, written in zip(read_suite(str(args.suite)).designs, known["designs"], strict=True):
        if one.kind != "public":
            written["checksum"] = content_checksum(generated(one) if one.kind == "clustered" else load(one.name))
    lines = ",\n".join(f"    {json.dumps(one)}" for one in known.pop("designs"))
    head = json.dumps(known, indent=2)[:-2]
    write_whole(args.suite, f'{head},\n  "designs": [\n{lines}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
