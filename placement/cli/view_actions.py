"""What the window's buttons do: each action runs what a command runs, and shows that command.

What an action needs is imported when it is first used: the window is to open at once.
"""

from __future__ import annotations

import io

from rich.console import Console

from placement.cli.options import quoted
from placement.config import CostConfig
from placement.engine.soft import place_soft_macros
from placement.evaluation.given_placement import SOFT_PLACER
from placement.netlist.flat_file import FLAT_NAME
from placement.netlist.load import find
from placement.report.view.page import Cells
from placement.report.view.window import Action, Outcome, Parameter, Task

SPACING = Parameter("spacing", "spacing (µm)", 0.0, 0.0, 1e6)
SECONDS = Parameter("time", "CPU time (s)", 10.0, 0.1, 86400.0)
SAMPLES = Parameter("samples", "samples", 4.0, 1.0, 1024.0)


def view_actions(design: str, cost: CostConfig, checkpoint: str = "") -> list[Action]:
    """The actions on placements of a design.

    Args:
        design: its name, as `load` takes it.
        cost: that the window shows.
        checkpoint: the folder of the training run whose policy places macros, until another one is given.
    """
    named = "design=" + quoted(design).replace("{", "{{").replace("}", "}}")
    where = named + " placement={file}"
    usual = CostConfig(name=cost.name)
    changed = {name: value for name, value in vars(cost).items() if value != getattr(usual, name)}
    priced = "".join(f" cost.{name}={value}" for name, value in {"name": cost.name, **changed}.items())
    actions = [
        Action(
            "legalise",
            "Legalise",
            "moves hard macros as little as possible until no rule is broken",
            _legalise,
            f"macro-placement legalise {where} spacing={{spacing}}{priced}",
            (SPACING,),
        ),
        Action(
            "refine",
            "Refine",
            "anneals the placement on the exact cost and keeps the best found",
            _refine,
            f"macro-placement search {where} time={{time}}{priced}",
            (SECONDS,),
            can_stop=True,
        ),
        Action(
            "flip",
            "Flip",
            "mirrors macros in place where that lowers the cost",
            _flip,
            f"macro-placement evaluate {where} flips=true{priced}",
        ),
        Action(
            "soft",
            "Place soft macros",
            "places the soft macros again around the hard ones",
            _place_soft,
            f"macro-placement evaluate {where} soft_placer={SOFT_PLACER}{priced}",
        ),
        Action(
            "policy",
            "Place the rest",
            "fixes the selected macros; a trained policy places all macros that are not fixed",
            lambda task: _place_rest(cost, task),
            f"macro-placement sample checkpoint={{checkpoint}} {named} initial={{file}} samples={{samples}} flips=false"
            f"{priced}",
            (Parameter("checkpoint", "run folder", checkpoint), SAMPLES),
            can_stop=True,
            fixes_chosen=True,
        ),
    ]
    if (find(design).parent / FLAT_NAME).is_file():
        actions.append(
            Action(
                "flat",
                "Full evaluation",
                "places all standard cells around the macros and estimates their routing; changes nothing",
                lambda task: _evaluate_fully(design, task),
                f"macro-placement evaluate {where} flat=true{priced}",
            )
        )
    return actions


def _legalise(task: Task) -> Outcome:
    from placement.annealing.legaliser import legalise
    from placement.evaluation.search_evaluation import displaced

    after = legalise(task.design, task.placement, spacing=task.number("spacing"))
    return Outcome(after, displaced(task.placement, after))


def _refine(task: Task) -> Outcome:
    from placement.annealing.config import AnnealConfig, Budget
    from placement.annealing.search import Watch, search
    from placement.annealing.starts import Start, legal

    config = AnnealConfig()
    watch = Watch(
        None,
        task.stopped,
        lambda progress, point: task.report(progress, f"best cost {point.cost:.6f}, {point.moves:,} moves"),
    )
    start = Start("window", legal(task.design, task.placement, config))
    found = search(
        task.design,
        (start,),
        config=config,
        budget=Budget(seconds=task.number("time")),
        weights=task.weights,
        watch=watch,
    )
    return Outcome(found.placement, f"{found.moves:,} moves in {found.seconds:.1f} CPU s")


def _flip(task: Task) -> Outcome:
    from placement.annealing.flips import flip_macros

    found = flip_macros(task.design, task.placement, weights=task.weights)
    return Outcome(found.placement, f"{found.flipped} macros were mirrored")


def _place_soft(task: Task) -> Outcome:
    return Outcome(place_soft_macros(task.design, task.placement, SOFT_PLACER), f"placed by {SOFT_PLACER}")


def _place_rest(cost: CostConfig, task: Task) -> Outcome:
    task.report(0.0, "reads the policy")
    from placement.evaluation.policy_evaluation import load_policy
    from placement.evaluation.policy_results import cheapest, policy_results
    from placement.evaluation.settings import SampleConfig, SampledCost

    run, samples = str(task.values["checkpoint"]), int(task.number("samples"))
    settings = SampleConfig(design=task.design.name, checkpoint=run, samples=samples, cost=SampledCost(**vars(cost)))
    policy = load_policy(settings, task.design)
    task.report(0.2, f"{len(policy.design.placing_order)} macros, {samples + 1} times")
    evaluations = policy.evaluate(settings.seed, stopped=task.stopped)
    if not evaluations:
        return Outcome(None, "stopped")
    best = cheapest(policy_results(evaluations), policy.design)
    return Outcome(best.placement, f"{best.name}, policy of {run}, iteration {policy.iteration}")


def _evaluate_fully(name: str, task: Task) -> Outcome:
    from placement.evaluation.flat_evaluation import check_placement

    checked = check_placement(name, task.design, task.placement, Console(file=io.StringIO()))
    found = checked.metrics
    text = (
        f"flat wirelength {found.flat_wirelength:,.0f} µm, routed {found.routed_wirelength:,.0f} µm, "
        f"overflow {found.overflow:.3%}, {found.hot_spots} hot spots, {found.flat_seconds:.1f} CPU s"
    )
    return Outcome(None, text, Cells.of(checked.placed.flat, checked.placed.placement, "placed by the full evaluation"))
