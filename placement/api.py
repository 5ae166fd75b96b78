"""Whole jobs from Python: import a chip, place it with a policy, evaluate the result, export it.

Each function does what the command of its name does. Lengths are in µm.
"""

import dataclasses
import io
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from placement.config import CostConfig, CostWeights, EnvConfig
from placement.engine.costs import Costs
from placement.evaluation.full_evaluation import evaluate_fully
from placement.evaluation.policies import TrainedPolicy, cheapest, policy_from_settings, policy_results
from placement.evaluation.settings import TRAINED_COST, SampleConfig, TrainedCost
from placement.flat.global_placement import place_before_clustering
from placement.netlist.design import Design, Placement
from placement.netlist.errors import DesignError
from placement.netlist.export import export_placement
from placement.netlist.files import write_whole
from placement.netlist.flat_design import flat_or_none
from placement.netlist.importing import (
    ChipFiles,
    ImportSettings,
    all_placed,
    import_flat,
    read_chip,
    write_design,
)
from placement.netlist.load import check_design_folder, find, load
from placement.report.placement_metrics import Metrics, measure
from placement.training.run_folder import read_settings
from placement.training.trained_policy import policy_folder

FilePath = str | os.PathLike[str]


@dataclasses.dataclass(frozen=True)
class Placed:
    """What a policy made of a design: the cheapest placement found, with its costs.

    `found_by` is "greedy", "best of 16", "annealed best of 8" or "flipped …".
    """

    design: Design
    placement: Placement
    costs: Costs
    found_by: str


@dataclasses.dataclass(frozen=True)
class Policy:
    """A trained policy, which places any design: its run's folder, and the environment that it was trained in.

    Example:
        >>> placed = placement.load_policy("base").place("toy6", samples=2, annealed=0)
        >>> placed.costs == placement.cost(placed.design, placed.placement)
        True
    """

    folder: Path
    env: EnvConfig

    def place(
        self,
        design: Design | str,
        *,
        samples: int = 16,
        seed: int = 0,
        cost: str | None = None,
        annealed: int = 8,
        flips: bool = True,
    ) -> Placed:
        """Places a design, as `macro-placement sample` does; fixed macros stay.

        Args:
            design: a design, or the name or path of one.
            samples: placements drawn in addition to the greedy one; the cheapest is returned.
            seed: of the draws, in [0, 2³²).
            cost: "chip" or "proxy"; None: the cost that the policy was trained on.
            annealed: of this many of the cheapest placements the soft macros are annealed for the cost.
            flips: whether macros are mirrored in place where that is cheaper.

        Raises:
            ConfigError: a value is out of range, or the checkpoint is damaged.
            DesignError: the design cannot be used, or no episode placed every macro.
        """
        loaded = load(design) if isinstance(design, str) else design
        trained = TRAINED_COST if cost is None else TrainedCost(name=cost)
        config = SampleConfig(
            checkpoint=str(self.folder), samples=samples, seed=seed, cost=trained, annealed=annealed, flips=flips
        )
        policy: TrainedPolicy = policy_from_settings(config, loaded)
        weights = policy.env.cost.weights()
        evaluations = policy.evaluate(seed)
        results = policy_results(evaluations, policy.design, weights, annealed=annealed, flips=flips)
        best = cheapest(results, policy.design)
        assert best.placement is not None and best.costs is not None
        return Placed(policy.design, best.placement, best.costs, best.name)


def load_policy(checkpoint: FilePath) -> Policy:
    """The newest policy of a run folder, or "base", which comes with the project.

    Example:
        >>> policy = placement.load_policy("base")
        >>> policy.env.off_grid
        True

    Raises:
        ConfigError: the folder holds no run.
    """
    folder = policy_folder(str(checkpoint), key="checkpoint")
    return Policy(folder, read_settings(folder, key="checkpoint").env)


def import_design(  # noqa: PLR0913  files and options of one command, all with a default
    *,
    lef: FilePath | Sequence[FilePath] = (),
    def_: FilePath | None = None,
    bookshelf: FilePath | None = None,
    protobuf: FilePath | None = None,
    plc: FilePath | None = None,
    verilog: FilePath | Sequence[FilePath] = (),
    out: FilePath | None = None,
    force: bool = False,
    free_macros: bool = False,
    settings: ImportSettings | None = None,
) -> Design:
    """Reads a chip and clusters its standard cells, as `macro-placement import` does.

    Args:
        lef: technology and library files, one or several in any order.
        def_: the DEF file, with nets; with `protobuf` or `verilog`, a floorplan is enough.
        bookshelf: the .aux file of a Bookshelf design.
        protobuf: Circuit Training's netlist before clustering.
        plc: a placement file whose canvas a protobuf without DEF is placed on.
        verilog: files of structural Verilog, hierarchical or flat, if the DEF file contains only its floorplan.
        out: the design folder that is written, which `export` and a full evaluation need; None: none.
        force: whether a design that is in the folder already is replaced.
        free_macros: whether macros that the files fix may move; pads stay fixed.
        settings: grid, clustering, constraints, arrays; default: `ImportSettings()`.

    Example:
        >>> placement.import_design(bookshelf="tiny.aux")
        Traceback (most recent call last):
        placement.netlist.errors.DesignError: tiny.aux: cannot be read: No such file or directory

    Raises:
        DesignError: a file cannot be used; the message has its name and line.
        OSError: the folder cannot be written.
    """
    files = ChipFiles(
        lef=_paths(lef), def_=def_, bookshelf=bookshelf, protobuf=protobuf, plc=plc, verilog=_paths(verilog)
    )
    if out is not None:
        check_design_folder(out, force=force)
    chip = read_chip(files, free_macros=free_macros)
    imported = import_flat(chip.flat, settings, canvas=chip.canvas, place=place_before_clustering)
    if out is None:
        return dataclasses.replace(imported.design, initial=all_placed(imported.design))
    write_design(out, imported, def_data=chip.def_data, positions_data=chip.positions_data)
    return load(out)


def _paths(given: FilePath | Sequence[FilePath]) -> tuple[FilePath, ...]:
    return (given,) if isinstance(given, (str, os.PathLike)) else tuple(given)


def evaluate(
    design: Design | str, placement: Placement | None = None, *, cost: str | CostWeights = "chip", full: bool = False
) -> Metrics:
    """Measures a placement, as `macro-placement evaluate` does.

    Args:
        design: a design, or the name or path of one.
        placement: None: the design's own.
        cost: "chip", "proxy", or weights of your own.
        full: whether all standard cells are placed around the macros and their routing is estimated, which takes a
            minute on 100,000 cells; needs `design` as the name or path of an imported design.

    Returns:
        `costs`, `legality`, `violations`, `rows` (of the name or path of an imported design), and with `full` also
        `full`: routed wirelength (µm), overflow (share).

    Example:
        >>> metrics = placement.evaluate("toy6")
        >>> metrics.legality.overlaps, round(metrics.costs.total, 6)
        (0, 0.291667)

    Raises:
        ConfigError: there is no such cost.
        DesignError: the placement is not whole, or the design has no flat netlist.
    """
    loaded = load(design) if isinstance(design, str) else design
    placement = loaded.initial if placement is None else placement
    weights = CostConfig(name=cost).weights() if isinstance(cost, str) else cost
    flat = flat_or_none(find(design).parent) if isinstance(design, str) else None
    metrics = measure(loaded, placement, weights=weights, flat=flat)
    if not full:
        return metrics
    if not isinstance(design, str):
        raise DesignError(f"{loaded.name}: a full evaluation reads the flat netlist: give the design's name or folder")
    found = evaluate_fully(design, loaded, placement, Console(file=io.StringIO()))
    return dataclasses.replace(metrics, full=found.metrics)


def export(
    design: str,
    placement: Placement,
    out: FilePath,
    *,
    format: str = "def",
    force: bool = False,
    blockages: bool = False,
    cut_rows: bool = False,
) -> None:
    """Writes a placement for the next tool, as `macro-placement export` does.

    Args:
        design: the name or path of an imported design.
        placement: of its macros.
        out: the file that is written, gzipped if its name ends in .gz.
        format: def, openroad, innovus, icc2, bookshelf, plc, csv, protobuf, or the import path of an `ExportFormat`.
        force: whether an existing file is replaced.
        blockages: whether a script also adds placement blockages: the macros with their halos, and those of the import.
        cut_rows: whether a script also cuts the rows at the macros.

    Example:
        >>> design = placement.load("toy6")
        >>> placement.export("toy6", design.initial, "toy6.plc", format="plc")

    Raises:
        DesignError: the design was not imported from files of the format, the format cannot express an option, or the
            file exists.
        OSError: the file cannot be written.
    """
    path = Path(out)
    if path.exists() and not force:
        raise DesignError(f"out={path}: already exists; give another name, or force=True")
    written = export_placement(
        load(design), placement, find(design).parent, form=format, name=path.name, blockages=blockages,
        cut_rows=cut_rows,
    )  # fmt: skip
    write_whole(path, written.data)
