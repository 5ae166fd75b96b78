"""Readers of large files and the clustering: CPU and wall seconds, peak memory, nets between clusters.

    python benchmarks/bench_import.py [--cells 1000000] [--skip-clustering]

Every figure is measured in its own process. The files are real ones from PLACEMENT_PATH; missing ones are skipped.
`--cells N` imports a synthetic chip of N cells (made_chip.py) by the command instead.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from made_chip import Options, write_chip

READERS = {
    "DEF": ("ct_ariane_lefdef/ariane.def.gz", "from placement.netlist.formats.def_file import read_def as read"),
    "flat protobuf": (
        "ariane133_ng45_flat/netlist.pb.txt.gz",
        "from placement.netlist.formats.protobuf import read_netlist_file as read",
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
from placement.netlist.clustering.soft_macros import clustered_design
from placement.netlist.clustering.cluster import ClusteringSettings
"""
ARIANE = """
from placement.netlist.load import load
from placement.netlist.formats.protobuf_design import read_protobuf_canvas
canvas = load({clustered!r}).canvas
flat = read_protobuf_canvas({flat!r}, canvas)
"""
IMPORT = """
from placement.cli.main import main
said = f"exit status {{main({arguments!r})}}"
"""
WORK = """
clustering = cluster_cells(flat, canvas, settings=ClusteringSettings(clusters={clusters}))
netlist = clustered_design(flat, clustering, canvas)[0].netlist
said = f"{clustering.count} soft macros, {netlist.num_nets} nets, {netlist.net_weight.sum():g} by weight"
"""


def find(name: str) -> Path | None:
    """Finds a file below a folder of PLACEMENT_PATH."""
    folders = [Path(folder) for folder in os.environ.get("PLACEMENT_PATH", "").split(os.pathsep) if folder]
    return next((folder / name for folder in folders if (folder / name).exists()), None)


def measure(title: str, imports: str, work: str) -> None:
    script = MEASURE.format(imports=imports, work=work)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=3600, check=False)
    print(f"{title}: {done.stdout.strip() or done.stderr.strip()}", flush=True)


def measure_made(cells: int, clusters: int) -> None:
    """Imports a synthetic chip by the command."""
    with tempfile.TemporaryDirectory() as folder:
        lef, chip = write_chip(Path(folder) / "made", Options(cells=cells, macros=100, ports=500, technology="asap7"))
        size = chip.stat().st_size / 2**20
        words = [
            "import",
            "--lef",
            str(lef),
            "--def",
            str(chip),
            "--out",
            f"{folder}/design",
            "--clusters",
            str(clusters),
        ]
        measure(f"importing {cells:,} made cells, DEF of {size:.0f} MiB", "", IMPORT.format(arguments=words))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, help="import a generated chip with this many cells")
    parser.add_argument("--clusters", type=int, default=500, help="to aim at")
    parser.add_argument("--skip-clustering", action="store_true")
    arguments = parser.parse_args()
    for title, (name, imports) in READERS.items():
        path = find(name)
        if path is not None:
            size = len(gzip.decompress(path.read_bytes())) / 2**20
            measure(f"{title} of {size:.0f} MiB", imports, f'read({str(path)!r})\nsaid = ""')
    clustered, flat = find("ariane133_ng45/netlist.pb.txt.gz"), find("ariane133_ng45_flat/netlist.pb.txt.gz")
    work = WORK.replace("{clusters}", str(arguments.clusters))
    if arguments.cells:
        measure_made(arguments.cells, arguments.clusters)
    elif clustered and flat and not arguments.skip_clustering:
        prepared = ARIANE.format(clustered=str(clustered.parent), flat=str(flat))
        measure("clustering Ariane (published: 782, 12422, 22584)", CLUSTER + prepared, work)


if __name__ == "__main__":
    main()
