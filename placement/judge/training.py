"""`macro-placement judge train`: an ensemble of networks, each of which is kept from some of the designs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
import optax
from flax import nnx
from rich.console import Console

from placement.config import ConfigError
from placement.judge.dataset import design_folders
from placement.judge.ensemble import Ensemble, Member, centred, save
from placement.judge.examples import Example, Scaling, Targets, scaling_of, view_of
from placement.judge.finished_members import FinishedMembers
from placement.judge.geometry import MAPS
from placement.judge.losses import judge_loss
from placement.judge.network import JudgeNetwork, View, parameters_of
from placement.judge.reading import read_examples
from placement.judge.ridge import fit_ridge, ridge_level
from placement.judge.settings import JudgeTrainConfig
from placement.netlist.files import check_output_file
from placement.utils.compilation import keep_compilations
from placement.utils.interruption import Interruption

ROWS = 4
"""A step's placements are a multiple of it."""


def train_judge(config: JudgeTrainConfig, console: Console) -> None:
    """Trains the ensemble and writes it; a line for each member.

    Members that are trained are kept beside it until then: stopped, the same training goes on after them.

    Raises:
        ConfigError: there are too few designs.
        DesignError: the data cannot be used.
        OSError: the file cannot be written.
        KeyboardInterrupt: on Ctrl-C.
    """
    check_output_file("out", config.out, makes_folder=True)
    keep_compilations()
    begun = _processor_seconds()
    folders = design_folders(Path(config.data))
    kept = [folder for number, folder in enumerate(folders) if not held_out(number, config.holdout)]
    with Interruption() as interruption, interruption.breakable():
        examples = list(read_examples(kept, config.workers))
    if len(examples) < config.members:
        raise ConfigError(
            f"data={config.data}: {len(examples)} designs to train on, fewer than members={config.members}, each of "
            "which is kept from some of them"
        )
    count = sum(len(example.chip) for example in examples)
    console.print(
        f"{len(examples)} designs, {count} placements; {len(folders) - len(kept)} designs held out; "
        f"read in {_processor_seconds() - begun:.0f} CPU-s",
        soft_wrap=True,
    )
    scaling = scaling_of(examples)
    finished = FinishedMembers(config, examples)
    members = finished.load()
    if members:
        console.print(f"{len(members)} of {config.members} members were trained before", soft_wrap=True)
    elif finished.path.exists():
        console.print(f"{finished.path} is damaged or of another training: begun anew", soft_wrap=True)
    with Interruption() as interruption:
        for number in range(len(members), config.members):
            with interruption.breakable():
                members.append(_train_member(number, examples, scaling, config, console))
            finished.keep(members)
            # Each member's programs are its own. Kept, those of some hundred designs take all the memory maps that
            # Linux lets a process have (65,530), and XLA ends it.
            jax.clear_caches()
    ridge = fit_ridge(examples)
    error, spread = _errors(members, examples, scaling)
    console.print(f"error of log wirelength within designs that were kept from it: {error:.4f}", soft_wrap=True)
    ensemble = Ensemble(
        members=tuple(members),
        scaling=scaling,
        ridge=ridge,
        level=ridge_level(examples, ridge),
        factor=error / max(spread, 1e-6),
        designs=tuple(example.name for example in examples),
        seed=config.seed,
    )
    save(Path(config.out), ensemble)
    finished.forget()
    console.print(f"{config.out}: {_processor_seconds() - begun:.0f} CPU-s in all", soft_wrap=True)


def _processor_seconds() -> float:
    """Of this process and of those that ended beneath it."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def held_out(number: int, share: float) -> bool:
    """Whether the design of that number, by name, is kept from training: evenly spread, the last of each stretch."""
    return int((number + 1) * share + 1e-9) > int(number * share + 1e-9)


def _train_member(
    number: int, examples: list[Example], scaling: Scaling, config: JudgeTrainConfig, console: Console
) -> Member:
    """Trains a network on the designs that are not its fold."""
    begun = time.process_time()
    own = [example for at, example in enumerate(examples) if at % config.members != number]
    network = JudgeNetwork(config.width, rngs=nnx.Rngs(params=jax.random.fold_in(jax.random.key(config.seed), number)))
    steps = config.epochs * len(own)
    schedule = optax.cosine_decay_schedule(config.learning_rate, steps)
    chain = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=config.weight_decay))
    optimizer = nnx.Optimizer(network, chain, wrt=nnx.Param)
    generator = np.random.default_rng([config.seed, number])
    views = [view_of(example.viewer, example.geometry, scaling) for example in own]
    losses: list[float] = []
    for epoch in range(config.epochs):
        total = 0.0
        for at in generator.permutation(len(own)):
            view, targets = some_of(views[at], own[at].targets, generator)
            if generator.integers(2):
                view = turned(view)
                targets = targets._replace(maps=targets.maps.swapaxes(1, 2)[..., ::-1])
            total += float(_step(network, optimizer, view, targets))
        losses.append(total / len(own))
        if config.verbose and (epoch + 1) % 5 == 0:
            console.print(f"member {number + 1}, epoch {epoch + 1}: loss {losses[-1]:.4f}")
    console.print(
        f"member {number + 1} of {config.members}: loss {losses[0]:.3f} to {losses[-1]:.3f}, "
        f"{time.process_time() - begun:.0f} CPU-s",
        soft_wrap=True,
    )
    return Member(parameters_of(network), config.width)


def some_of(view: View, targets: Targets, generator: np.random.Generator) -> tuple[View, Targets]:
    """A design's placements in random order, as many as `ROWS` divides: few sizes are few compilations.

    Args:
        view: of the placements; fewer than `ROWS` are all taken.
        targets: of the same.
        generator: consumed.

    Returns:
        The same of the placements that were drawn.
    """
    count = len(view.parts)
    rows = generator.permutation(count)[: count // ROWS * ROWS or count]
    seen = view._replace(**{name: getattr(view, name)[rows] for name in ("maps", "boxes", "lengths", "parts")})
    return seen, Targets(*(array[rows] for array in targets))


@nnx.jit
def _step(
    network: JudgeNetwork,
    optimizer: nnx.Optimizer[JudgeNetwork],
    view: View,
    targets: Targets,
) -> jax.Array:
    loss, gradients = nnx.value_and_grad(_loss)(network, view, targets)
    optimizer.update(network, gradients)
    return loss


def _loss(network: JudgeNetwork, view: View, targets: Targets) -> jax.Array:
    return judge_loss(network(view), *targets)


def turned(view: View) -> View:
    """The placements with the axes exchanged, horizontal tracks and vertical ones, too."""
    order = [*range(len(MAPS) - 2), len(MAPS) - 1, len(MAPS) - 2]
    return view._replace(
        maps=view.maps.swapaxes(1, 2)[..., order],
        boxes=view.boxes[..., [1, 0, 3, 2]],
        lengths=view.lengths[..., ::-1],
        aspect=view.aspect[::-1],
    )


def _errors(members: Sequence[Member], examples: list[Example], scaling: Scaling) -> tuple[float, float]:
    """Root mean squares: on each design, the error of what was kept from it, and what the members differ by."""
    count = len(members)
    ridges = [fit_ridge([one for at, one in enumerate(examples) if at % count != number]) for number in range(count)]
    errors, spreads = [], []
    for at, example in enumerate(examples):
        view = view_of(example.viewer, example.geometry, scaling)
        said = np.stack([centred(member.predict(view)[0]) for member in members])
        expected = (said[at % count] + centred(example.geometry.parts @ ridges[at % count])) / 2
        errors.append(expected - centred(example.targets.wirelength))
        spreads.append(said.std(axis=0))
    error, spread = (float(np.sqrt((np.concatenate(one) ** 2).mean())) for one in (errors, spreads))
    return error, spread
