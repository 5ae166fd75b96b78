"""Readers of large files and the clustering: CPU and wall seconds, peak memory, nets between clusters.

    python benchmarks/bench_import.py [--cells 1000000] [--skip-clustering]

Every figure comes from a process of its own. The files are real ones from PLACEMENT_PATH; what is absent is left out.
`--cells N` clusters a made flat netlist of N cells instead.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
from pathlib import Path

READERS = {
    "DEF": ("ct_ariane_lefdef/ariane.def.gz", "from placement.netlist.formats.def_file import read_def as read"),
    "flat protobuf": (
        "ariane133_ng45_flat/netlist.pb.txt.gz",
        "from placement.netlist.formats.flat_protobuf import read_flat_nodes as read",
    ),
}
MEASURE = """
import resource, sys, time
{imports}
wall, cpu = time.perf_counter(), time.process_time()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{work}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"{{time.perf_counter() - wall:.2f}} s wall, {{time.process_time() - cpu:.2f}} s CPU, "
      f"{{(peak - before) / 1024:.0f}} MiB more, {{peak / 1024:.0f}} MiB in all", said, flush=True)
"""
CLUSTER = """
from placement.netlist.canvas import canvas_of
from placement.netlist.clustering.cluster import cluster_cells
from placement.netlist.clustering.clustered import clustered_design
from placement.netlist.clustering.settings import ClusteringSettings
"""
ARIANE = """
from placement.netlist.load import load
from placement.netlist.assembly.flat_protobuf import read_protobuf_canvas
canvas = load({clustered!r}).canvas
flat = read_protobuf_canvas({flat!r}, canvas)
"""
MADE = """
from placement.testing.flat_designs import chain_design
blocks = [(f"block{{number}}/", {cells} // 100) for number in range(100)]
flat = chain_design(blocks, macro_after=10, parallel=3 * {cells})
canvas = canvas_of(flat, columns=30, rows=30)[0]
"""
WORK = """
clustering = cluster_cells(flat, canvas, settings=ClusteringSettings(parts={parts}))
netlist = clustered_design(flat, clustering, canvas).netlist
said = f"{clustering.count} soft macros, {netlist.num_nets} nets, {netlist.net_weight.sum():g} by weight"
"""


def find(name: str) -> Path | None:
    """A file below a folder of PLACEMENT_PATH."""
    folders = [Path(folder) for folder in os.environ.get("PLACEMENT_PATH", "").split(os.pathsep) if folder]
    return next((folder / name for folder in folders if (folder / name).exists()), None)


def measure(title: str, imports: str, work: str) -> None:
    script = MEASURE.format(imports=imports, work=work)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=3600, check=False)
    print(f"{title}: {done.stdout.strip() or done.stderr.strip()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, help="cluster a made netlist of so many cells")
    parser.add_argument("--parts", type=int, default=500, help="of the partition")
    parser.add_argument("--skip-clustering", action="store_true")
    arguments = parser.parse_args()
    for title, (name, imports) in READERS.items():
        path = find(name)
        if path is not None:
            size = len(gzip.decompress(path.read_bytes())) / 2**20
            measure(f"{title} of {size:.0f} MiB", imports, f'read({str(path)!r})\nsaid = ""')
    clustered, flat = find("ariane133_ng45/netlist.pb.txt.gz"), find("ariane133_ng45_flat/netlist.pb.txt.gz")
    work = WORK.replace("{parts}", str(arguments.parts))
    if arguments.cells:
        measure(f"clustering {arguments.cells:,} made cells", CLUSTER + MADE.format(cells=arguments.cells), work)
    elif clustered and flat and not arguments.skip_clustering:
        prepared = ARIANE.format(clustered=str(clustered.parent), flat=str(flat))
        measure("clustering Ariane (published: 782, 12422, 22584)", CLUSTER + prepared, work)


if __name__ == "__main__":
    main()
