"""CPU time of reading a netlist file; the bar is 2 s for Ariane's 11 MB of text.

    python benchmarks/bench_read.py [DESIGN]

DESIGN is a name or a path; default: ariane133_ng45 if it is on PLACEMENT_PATH, else clustered120.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import time

from placement.netlist.errors import DesignError
from placement.netlist.formats.protobuf import read_netlist
from placement.netlist.load import find

ARIANE = "ariane133_ng45"
BAR = 2.0  # seconds, on Ariane


def default_design() -> str:
    """Returns Ariane if it can be found, else a shipped design of its size."""
    try:
        find(ARIANE)
    except DesignError:
        return "clustered120"
    return ARIANE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("design", nargs="?", default=None)
    name = parser.parse_args().design or default_design()
    path = find(name)
    content = path.read_bytes()
    megabytes = len(gzip.decompress(content) if path.suffix == ".gz" else content) / 1e6
    times = []
    for _ in range(5):
        start = time.process_time()
        netlist = read_netlist(path)
        times.append(time.process_time() - start)
    median = statistics.median(times)
    print(f"{name}: {megabytes:.1f} MB of text, {netlist.num_nodes} nodes, {netlist.num_nets} nets")
    print(f"read: median {median:.2f} s, minimum {min(times):.2f} s of CPU time, {megabytes / median:.0f} MB/s")
    if name == ARIANE:
        print(f"bar of {BAR:.0f} s: {'met' if median <= BAR else 'NOT met'} ({BAR / median:.1f} × faster)")


if __name__ == "__main__":
    main()
