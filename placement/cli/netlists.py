"""Command line: `python -m placement.netlist describe DESIGN` and `python -m placement.netlist generate …`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from placement.netlist.errors import DesignError
from placement.netlist.generators.clustered import clustered, planted
from placement.netlist.generators.shipped import SHIPPED, save
from placement.netlist.load import load
from placement.netlist.mirrored import AXES, mirrored


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status, 2 for a user's mistake."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (DesignError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m placement.netlist", description="Look at designs, or make some.")
    commands = parser.add_subparsers(required=True)

    describing = commands.add_parser("describe", help="print a design's statistics")
    describing.add_argument("design", help="a name, a folder, or a path to netlist.pb.txt[.gz]")
    describing.add_argument("--initial", help="the .plc file that holds the canvas (default: initial.plc beside it)")
    describing.add_argument("--plot", type=Path, help="draw the degree and size distributions to this file (.png, …)")
    describing.set_defaults(run=_describe)

    mirroring = commands.add_parser("mirror", help="flip a design, to train on its mirror images as well")
    mirroring.add_argument("design", help="a name, a folder, or a path to netlist.pb.txt[.gz]")
    mirroring.add_argument("--initial", help="the .plc file that holds the canvas (default: initial.plc beside it)")
    mirroring.add_argument("--axis", choices=AXES, required=True, help="x: left and right change places")
    mirroring.add_argument("--out", type=Path, required=True, help="the new design's folder; its last part is its name")
    mirroring.set_defaults(run=_mirror)

    kinds = commands.add_parser("generate", help="make designs").add_subparsers(required=True)
    shipped = kinds.add_parser("shipped", help="make the designs that netlists/ holds, bit for bit")
    shipped.add_argument("--out", type=Path, required=True, help="folder for the designs' folders")
    shipped.set_defaults(run=_generate_shipped)

    cluster = kinds.add_parser("clustered", help="memories in banks, clusters of cells, Rent's rule")
    for name, default in (("hard", 40), ("soft", 250), ("ports", 120), ("seed", 0)):
        cluster.add_argument(f"--{name}", type=int, default=default)
    cluster.add_argument("--out", type=Path, required=True, help="the design's folder; its last part is its name")
    cluster.set_defaults(run=_generate_clustered)

    plant = kinds.add_parser("planted", help="macros whose least wirelength is known")
    for name, default in (
        ("block-columns", 5),
        ("block-rows", 4),
        ("columns", 8),
        ("rows", 8),
        ("multi-pin-nets", 30),
        ("seed", 0),
    ):
        plant.add_argument(f"--{name}", type=int, default=default)
    plant.add_argument("--out", type=Path, required=True, help="the design's folder; its last part is its name")
    plant.set_defaults(run=_generate_planted)
    return parser


def _describe(options: argparse.Namespace) -> None:
    # Rich and Matplotlib are loaded only here.
    from placement.report.describe import plot, print_description

    design = load(options.design, options.initial)
    print_description(design)
    if options.plot:
        plot(design, options.plot)
        print(f"plot: {options.plot}")


def _mirror(options: argparse.Namespace) -> None:
    save(options.out, mirrored(load(options.design, options.initial), options.axis))
    print(options.out)


def _generate_shipped(options: argparse.Namespace) -> None:
    for name, make in SHIPPED.items():
        save(options.out / name, make())
        print(options.out / name)


def _generate_clustered(options: argparse.Namespace) -> None:
    design = clustered(
        seed=options.seed, hard=options.hard, soft=options.soft, ports=options.ports, name=options.out.resolve().name
    )
    save(options.out, design)
    print(options.out)


def _generate_planted(options: argparse.Namespace) -> None:
    solved = planted(
        seed=options.seed,
        block_columns=options.block_columns,
        block_rows=options.block_rows,
        columns=options.columns,
        rows=options.rows,
        multi_pin_nets=options.multi_pin_nets,
        name=options.out.resolve().name,
    )
    save(options.out, solved)
    print(f"{options.out}: least wirelength {solved.wirelength} µm")


if __name__ == "__main__":
    sys.exit(main())
