"""Makes the documentation's pictures and generated pages (`make figures`).

    python docs/figures.py [NAME …] [--all] [--list]

Without names it makes those that take less than a minute; `--all` makes every one that can be made on this machine.
Public designs are found on PLACEMENT_PATH; what is absent is named, and its figures are skipped. Designs and placements
are kept in build/figures, so that figures which show the same placement agree; delete a folder there to make it anew.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import animation
import window_pictures
from PIL import Image

import placement
from placement.netlist.design import Design, Placement
from placement.netlist.formats.plc import read_placement, write_placement
from placement.report import plots, style

ROOT = Path(__file__).resolve().parents[1]
IMAGES, WORK = ROOT / "docs/images", ROOT / "build/figures"
QUICK = 60
"""CPU seconds up to which a figure is made by default."""
IMPROVEMENTS = (0.5, 0.5, 1, 1, 1, 2, 2, 2, 4, 4, 6, 6)
"""CPU seconds of the searches in the animation, each from the last one's result."""

IMPORTS = {  # design → the files that it is imported from, and how it is searched
    "riscv": (
        "--lef riscv_asap7/asap7_tech_1x_201209.lef.gz riscv_asap7/asap7sc7p5t_28_R_1x_220121a.lef.gz "
        "riscv_asap7/fr7.lef.gz --def riscv_asap7/riscv.def.gz --free-macros",
        "time=30 anneal.spacing=0.5",
    ),
    "ibm01": ("--bookshelf ibm01/ibm01.aux", "time=30"),
    "ariane68": (
        "--protobuf ariane133_ng45_flat/netlist.pb.txt.gz --def ariane133_ng45_68/floorplan.def.gz "
        "--lef ng45_lef/NangateOpenCellLibrary.tech.lef.gz ng45_lef/fakeram45_256x16.lef.gz --halo 5",
        "time=60",
    ),
    "ct_ariane": ("--lef ct_ariane_lefdef/ariane.lef.gz --def ct_ariane_lefdef/ariane.def.gz", "time=30"),
}
COMPARED = {  # label → placement
    "a minute of search": "{work}/ariane68-search/placement.plc",
    "commercial placer": "ariane133_ng45_68/placed/CMP.def.gz",
    "published annealer": "ariane133_ng45_68/placed/SA.def.gz",
    "AlphaChip (fine-tuned)": "ariane133_ng45_68/placed/CT_AC.def.gz",
}
KEPT = {  # picture → where it is from; its data is not in the repository
    "benchmark_public_profiles.png": "python benchmarks/submissions.py page",
    "benchmark_synthetic_profiles.png": "python benchmarks/submissions.py page",
    "benchmark_synthetic_time_to_quality.png": "python benchmarks/submissions.py page",
    "accelerator_curves.png": "a training of hours on an accelerator: docs/experiments/accelerator.md",
    "ariane_curves.png": "three trainings with preset=ariane: docs/experiments/training.md",
    "chip_cost.svg": "drawn by hand",
    "engine.svg": "drawn by hand",
    "rule_array.svg": "drawn by hand",
    "rule_blockage.svg": "drawn by hand",
    "rule_channel.svg": "drawn by hand",
    "rule_halo.svg": "drawn by hand",
    "rule_orientation.svg": "drawn by hand",
    "rule_ports.svg": "drawn by hand",
    "rule_region.svg": "drawn by hand",
    "rule_tracks.svg": "drawn by hand",
    "sweep_optuna.png": "a sweep with hydra-optuna-sweeper: docs/how-to/sweep.md",
    "tidiness.svg": "drawn by hand",
    "timing.png": "the timing beside OpenSTA's: benchmarks/bench_timing.py, docs/explanation/timing.md",
    "tidy_ariane.png": "three evaluations with plots=true, side by side: docs/explanation/tidiness.md",
    "tidy_designs.png": "the supplied and the tidy placements of the table in docs/explanation/tidiness.md",
    "target_density.png": "two searches with and without a target density: docs/experiments/costs.md",
    "view_flat.png": "a full evaluation in the window: docs/how-to/view.md",
}


class Missing(Exception):
    """Something that a figure needs is not on this machine."""


class Figure(NamedTuple):
    """A file of the documentation and how it is made.

    Attributes:
        path: below docs.
        seconds: of CPU time, about, with everything that it is made from.
        make: writes the file; raises Missing.
        command: what it runs, for the list.
    """

    path: str
    seconds: float
    make: Callable[[Path], None]
    command: str


def data(path: str) -> str:
    """A file or folder of the public designs; raises Missing where PLACEMENT_PATH does not have it."""
    for folder in os.environ.get("PLACEMENT_PATH", "").split(os.pathsep):
        if folder and (Path(folder) / path).exists():
            return str(Path(folder) / path)
    raise Missing(f"PLACEMENT_PATH has no {path}")


def run(*words: str) -> None:
    """Runs a command in the project's folder; raises CalledProcessError if it fails."""
    print("$", shlex.join(words), flush=True)
    subprocess.run(words, cwd=ROOT, check=True)


def command(line: str, *more: str) -> None:
    """Runs `macro-placement`; words of `line` that name files of public designs get their whole paths."""
    words = [data(word) if "/" in word else word for word in line.split()]
    run(sys.executable, "-m", "placement", *words, *more)


def shrink(picture: Path, path: Path) -> None:
    """Copies a PNG file with 256 colours."""
    with Image.open(picture) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def imported(name: str) -> Path:
    """The design's folder, imported once."""
    folder = WORK / name
    if not folder.exists():
        command(f"import {IMPORTS[name][0]}", "--out", str(folder))
    return folder


def searched(name: str) -> Path:
    """The folder of a search of an imported design, done once."""
    folder = WORK / f"{name}-search"
    if not (folder / "placement.png").exists():
        command(f"search method=anneal plots=true {IMPORTS[name][1]}", f"design={imported(name)}", f"out={folder}")
    return folder


def compared(path: Path) -> None:
    """Four placements of one floorplan with all cells and their routing."""
    files = [file.format(work=WORK) if file.startswith("{") else data(file) for file in COMPARED.values()]
    searched("ariane68")
    out = WORK / "ariane68-compared"
    named = (f"{label}={file}" for label, file in zip(COMPARED, files, strict=True))
    command("benchmark full=true", f"design={imported('ariane68')}", f"out={out}", "--placements", *named)
    shrink(out / "full.png", path)


def improved() -> tuple[Design, list[Placement]]:
    """Ariane as the policy places it, and as successive searches improve it; done once."""
    data("ariane133_ng45")
    design, folder = placement.load("ariane133_ng45"), WORK / "ariane133_ng45"
    files = [folder / f"{number}.plc" for number in range(len(IMPROVEMENTS) + 1)]
    if not files[-1].exists():
        folder.mkdir(parents=True, exist_ok=True)
        found = placement.load_policy("base").place(design, samples=4, annealed=2, flips=False)
        write_placement(files[0], found.design, found.placement)
        now = found.placement
        for file, seconds in zip(files[1:], IMPROVEMENTS, strict=True):
            now = placement.search(design, now, seconds=seconds).placement
            write_placement(file, design, now)
    return design, [read_placement(file, design.netlist, located=design.initial)[1] for file in files]


def placed(path: Path) -> None:
    """The first of `improved`."""
    design, (first, *_) = improved()
    style.save_figure(plots.plot_placement(design, first, title="Ariane, placed by the trained policy"), path)


def animated(path: Path) -> None:
    """`improved` as an animation."""
    design, (first, *later) = improved()
    spent = [sum(IMPROVEMENTS[: number + 1]) for number in range(len(IMPROVEMENTS))]
    words = [f"search, {seconds:g} s" for seconds in spent]
    title = "Ariane: placed by a policy, improved by search"
    improvements = list(zip(words, later, strict=True))
    animation.save_episode(path, design, first, title=title, improved=improvements, last_first=True)


@functools.cache
def simulated(folder: Path) -> None:
    """Both pictures of the simulation of caches and shards."""
    run(sys.executable, "benchmarks/scale_model.py", "--plots", str(folder))


def scale_model(path: Path) -> None:
    """One of the pictures of the simulation of caches and shards."""
    simulated(path.parent)


def scaled(path: Path) -> None:
    """How times grow with the design."""
    out = WORK / "scale"
    run(sys.executable, "benchmarks/bench_scale.py", str(out), "--search", "--rounds", "2", "--cost", "chip")
    shrink(out / "scale.png", path)


def stable_baselines(path: Path) -> None:
    """The curve of the example with Stable-Baselines3."""
    if importlib.util.find_spec("sb3_contrib") is None:
        raise Missing("the extra sb3 is not installed")
    run(sys.executable, "examples/sb3_maskable_ppo.py", "--steps", "60000", "--plot", str(path))


def window(path: Path) -> None:
    """A picture of the window."""
    if importlib.util.find_spec("playwright") is None or not window_pictures.browser():
        raise Missing("Chromium or Playwright is not installed")
    design, (first, *_, last) = improved()
    shown = {WORK / design.name / "search.plc": last, WORK / design.name / "policy.plc": first}
    for file, one in shown.items():
        write_placement(file, design, one)
    window_pictures.draw(path, design, [str(file) for file in shown])


def settings(path: Path) -> None:
    """The page of all settings."""
    run(sys.executable, "docs/settings.py")


def copied(make: Callable[[str], Path], name: str, file: str) -> Callable[[Path], None]:
    """Makes a figure by copying a file from what `make(name)` returns."""
    return lambda path: shrink(make(name) / file, path)


def figures() -> Iterator[Figure]:
    """All that can be made, the quick ones first."""
    yield Figure("reference/settings.md", 5, settings, "python docs/settings.py")
    yield Figure("images/scale_model.png", 30, scale_model, "python benchmarks/scale_model.py --plots docs/images")
    yield Figure("images/scale_predictions.png", 30, scale_model, "the same")
    yield Figure("images/sb3_toy6.png", 30, stable_baselines, "python examples/sb3_maskable_ppo.py --steps 60000")
    for name, seconds in (("riscv", 60), ("ibm01", 60), ("ct_ariane", 130)):
        text = f"macro-placement import {IMPORTS[name][0]}; search method=anneal {IMPORTS[name][1]}"
        yield Figure(f"images/import_{name}.png", seconds, copied(searched, name, "placement.png"), text)
    text = f"macro-placement import {IMPORTS['ariane68'][0]}"
    yield Figure("images/import_floorplan.png", 75, copied(imported, "ariane68", "floorplan.png"), text)
    text += f"; search method=anneal {IMPORTS['ariane68'][1]}"
    yield Figure("images/import_ariane.png", 135, copied(searched, "ariane68", "placement.png"), text)
    text += "; macro-placement benchmark full=true placements=…"
    yield Figure("images/outcomes_ariane.png", 450, compared, text)
    text = "placement.load_policy('base').place('ariane133_ng45', samples=4)"
    yield Figure("images/ariane_placement.png", 60, placed, text)
    yield Figure("images/ariane.gif", 90, animated, f"{text}, then placement.search")
    for name in window_pictures.PICTURES:
        yield Figure(f"images/{name}", 60, window, "macro-placement view ariane133_ng45 …, in Chromium")
    text = "python benchmarks/bench_scale.py OUT --search --rounds 2 --cost chip"
    yield Figure("images/scale_designs_chip.png", 3000, scaled, text)


def main() -> int:
    """Makes the figures that the command line names; returns 1 if one could not be made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a figure, as `--list` shows it")
    parser.add_argument("--all", action="store_true", help=f"also those that take more than {QUICK} CPU seconds")
    parser.add_argument("--list", action="store_true", help="list the figures, what each takes and its command")
    arguments = parser.parse_args()
    known = {Path(figure.path).name: figure for figure in figures()}
    if wrong := [name for name in arguments.names if name not in known]:
        parser.error(f"no such figure: {', '.join(wrong)}; --list shows all")
    if arguments.list:
        for name, figure in known.items():
            print(f"{name:<24}{figure.seconds:6.0f} s  {figure.command}")
        for name, why in KEPT.items():
            print(f"{name:<24}  kept  {why}")
        return 0
    chosen = arguments.names or [name for name in known if arguments.all or known[name].seconds <= QUICK]
    failed = 0
    for name in chosen:
        try:
            known[name].make(ROOT / "docs" / known[name].path)
            print(f"made: docs/{known[name].path}")
        except Missing as missing:
            print(f"skipped: docs/{known[name].path}: {missing}")
        except subprocess.CalledProcessError as error:
            failed = 1
            print(f"failed: docs/{known[name].path}: {error}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
